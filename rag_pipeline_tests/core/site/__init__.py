"""Tests of rag_pipeline.core.site."""
