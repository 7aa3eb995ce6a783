"""Runs the migrations on the connection that `question_log.migrating` passes to alembic."""

from __future__ import annotations

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    transactional_ddl=True,  # the caller's transaction contains all steps
)
context.run_migrations()
