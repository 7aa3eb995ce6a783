"""Tests of `rag_pipeline.serving.chat`."""
