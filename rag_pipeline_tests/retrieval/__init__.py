"""Tests of the retrieval library."""
