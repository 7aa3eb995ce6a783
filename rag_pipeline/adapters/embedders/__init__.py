"""Embedders, one module per provider, and the BM25 encoder."""
