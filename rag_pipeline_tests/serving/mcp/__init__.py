"""Tests of `rag_pipeline.serving.mcp`."""
