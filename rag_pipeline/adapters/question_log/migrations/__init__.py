"""The alembic migrations of the question log's tables."""
