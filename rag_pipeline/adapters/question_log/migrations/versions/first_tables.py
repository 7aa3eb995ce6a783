"""The first version of the tables: answers and their ratings."""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0001"
down_revision: Final = None
branch_labels: Final = None
depends_on: Final = None


def upgrade() -> None:
    """Create both tables."""
    op.create_table(
        "answers",
        sa.Column("answer_id", sa.Text, primary_key=True),
        sa.Column("conversation_id", sa.Text, nullable=False, index=True),
        sa.Column("asked_at", sa.DateTime, nullable=False, index=True),
        sa.Column("mode", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("level", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("question", sa.Text),
        sa.Column("search_question", sa.Text),
        sa.Column("confidence", sa.Float),
        sa.Column("sources", sa.JSON, nullable=False),
        sa.Column("model", sa.Text),
        sa.Column("index_id", sa.Text, nullable=False),
        sa.Column("latency_ms", sa.Float, nullable=False),
    )
    op.create_table(
        "ratings",
        sa.Column(
            "answer_id",
            sa.Text,
            sa.ForeignKey("answers.answer_id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("rated_at", sa.DateTime, nullable=False),
        sa.Column("rating", sa.Integer, nullable=False),
        sa.Column("tags", sa.JSON, nullable=False),
        sa.Column("note", sa.Text, nullable=False),
    )


def downgrade() -> None:
    """Delete both tables with all entries."""
    op.drop_table("ratings")
    op.drop_table("answers")
