"""Tests of `rag_pipeline.answering.quoting`."""
