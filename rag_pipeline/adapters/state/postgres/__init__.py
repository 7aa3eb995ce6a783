"""The ledger and the ingestion's locks in Postgres, for workers on several hosts."""
