"""Tests of `rag_pipeline.ingestion.upkeep`."""
