"""The first version of the tables: documents, their failures, and sites."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0001"
down_revision: Final = None
branch_labels: Final = None
depends_on: Final = None


def upgrade() -> None:
    """Create the tables."""
    version = sa.Column("version", sa.BigInteger, nullable=False)
    for table, *extra in (("ledger_documents", version), ("ledger_failures",)):
        op.create_table(
            table,
            sa.Column("state_name", sa.Text, primary_key=True),
            sa.Column("collection_id", sa.Text, primary_key=True),
            sa.Column("doc_id", sa.Text, primary_key=True),
            sa.Column("bucket", sa.SmallInteger, nullable=False),
            *extra,
            sa.Column("record", sa.JSON, nullable=False),
        )
    op.create_table(
        "ledger_sites",
        sa.Column("state_name", sa.Text, primary_key=True),
        sa.Column("collection_id", sa.Text, primary_key=True),
        sa.Column("site", sa.JSON, nullable=False),
    )


def downgrade() -> None:
    """Delete the tables with all entries, after which the next ingest reads all documents."""
    for table in ("ledger_sites", "ledger_failures", "ledger_documents"):
        op.drop_table(table)
