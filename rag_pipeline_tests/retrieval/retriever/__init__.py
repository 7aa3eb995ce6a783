"""Tests of the retriever, over a real embedded store with the real local model."""
