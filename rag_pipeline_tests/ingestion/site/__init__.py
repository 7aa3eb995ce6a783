"""Tests of `rag_pipeline.ingestion.site`."""
