"""State besides the store: ledger, embedding caches, artifacts, files and locks."""
