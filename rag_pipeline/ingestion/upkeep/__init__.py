"""Maintenance of an index: audit, repair, statistics, and pruning of the embedding cache."""
