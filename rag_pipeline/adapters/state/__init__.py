"""State kept outside the store: ledger, embedding caches, stage outputs and locks."""
