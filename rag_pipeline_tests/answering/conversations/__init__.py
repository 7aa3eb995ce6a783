"""Tests of `rag_pipeline.answering.conversations`."""
