"""Tests of `rag_pipeline.ingestion.pages`."""
