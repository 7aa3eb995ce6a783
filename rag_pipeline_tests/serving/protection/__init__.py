"""Tests of `rag_pipeline.serving.protection.requests`."""
