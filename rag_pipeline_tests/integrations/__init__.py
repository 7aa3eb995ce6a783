"""Tests of `rag_pipeline.integrations`."""
