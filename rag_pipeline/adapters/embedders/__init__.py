"""One module per embedding provider, and the BM25 encoder."""
