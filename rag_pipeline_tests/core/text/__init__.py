"""Tests of rag_pipeline.core.text."""
