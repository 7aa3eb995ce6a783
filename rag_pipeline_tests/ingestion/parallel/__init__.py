"""Tests of `rag_pipeline.ingestion.parallel`."""
