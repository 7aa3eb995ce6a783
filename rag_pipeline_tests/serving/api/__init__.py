"""Tests of `rag_pipeline.serving.api`."""
