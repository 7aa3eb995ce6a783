"""The second version of the tables: what all workers of a book must have in common."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0002"
down_revision: Final = "0001"
branch_labels: Final = None
depends_on: Final = None


def upgrade() -> None:
    """Create the table; the next ingest of each book fills it."""
    op.create_table(
        "ledger_books",
        sa.Column("state_name", sa.Text, primary_key=True),
        sa.Column("bucket_count", sa.SmallInteger, nullable=False),
        sa.Column("collection", sa.Text, nullable=False),
    )


def downgrade() -> None:
    """Delete the table."""
    op.drop_table("ledger_books")
