"""Looking after an index."""
