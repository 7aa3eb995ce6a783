"""Tests of `rag_pipeline.adapters.question_log`."""
