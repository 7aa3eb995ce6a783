"""What the question log and the ledger share: connections to Postgres and updates of tables."""
