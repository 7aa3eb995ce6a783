"""Tests of the `rag-pipeline` command line."""
