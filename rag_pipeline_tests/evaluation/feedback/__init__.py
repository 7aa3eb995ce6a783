"""Tests of rag_pipeline.evaluation."""
