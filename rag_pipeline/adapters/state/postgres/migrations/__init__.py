"""The migrations of the ledger's tables in Postgres."""
