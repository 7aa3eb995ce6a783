"""The database of a book: ledger, vectors, site, running ingestions and the question log."""
