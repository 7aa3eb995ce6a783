"""Migrations of the tables, run by alembic."""
