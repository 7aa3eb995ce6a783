"""Tests of `rag_pipeline.answering.writing`."""
