"""Tests of `rag_pipeline.answering.reading`."""
