"""Tests of `rag_pipeline.adapters.database`."""
