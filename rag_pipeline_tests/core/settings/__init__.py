"""Tests of rag_pipeline.core.settings."""
