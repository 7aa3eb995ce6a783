"""Looking after an index: auditing and repairing it, and counting what is in it."""
