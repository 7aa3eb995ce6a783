"""Runs the migrations on the connection that `database.migrating` passes to alembic."""

from __future__ import annotations

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table=context.config.attributes["version_table"],
    transactional_ddl=True,  # the caller's transaction contains all steps
)
context.run_migrations()
