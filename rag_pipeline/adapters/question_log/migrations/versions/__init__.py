"""One module for each version of the question log's tables."""
