"""The first version of the tables.

Names of states and builds are part of the keys, because several books can share a Postgres
database. Times are texts in ISO 8601 and UTC, and lists are JSON texts, so that both kinds of
database return the same values.
"""

from __future__ import annotations

from typing import Final

import sqlalchemy as sa
from alembic import op

revision: Final = "0001"
down_revision: Final = None
branch_labels: Final = None
depends_on: Final = None


def _key(*names: str) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, primary_key=True) for name in names]


def _texts(*names: str, nullable: bool = False) -> list[sa.Column[str]]:
    return [sa.Column(name, sa.Text, nullable=nullable) for name in names]


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "documents",
        *_key("state_name", "collection_id", "doc_id"),
        sa.Column("version", sa.BigInteger, nullable=False),
        *_texts("sha256", "pipeline_fingerprint", "data_version", "run_id", "indexed_at"),
        sa.Column("size_bytes", sa.BigInteger, nullable=False),
        sa.Column("mtime_ns", sa.BigInteger, nullable=False),
        sa.Column("chunk_count", sa.Integer, nullable=False),
    )
    op.create_table(
        "failures",
        *_key("state_name", "collection_id", "doc_id"),
        *_texts("sha256", "stage", "error", "message", "failed_at"),
        sa.Column("attempts", sa.Integer, nullable=False),
    )
    op.create_table("claims", *_key("state_name", "collection_id", "doc_id"), *_texts("run_id"))
    op.create_table("sites", *_key("state_name", "collection_id"), *_texts("site"))
    op.create_table("books", *_key("state_name"), *_texts("collection", "docs_dir", "data_dir"))
    op.create_table(
        "runs",
        *_key("state_name", "run_id"),
        sa.Column("done", sa.Integer, nullable=False),
        sa.Column("total", sa.Integer, nullable=False),
    )
    op.create_table(
        "vectors",
        *_key("state_name", "fingerprint", "text_hash"),
        sa.Column("dim", sa.Integer, nullable=False),
        sa.Column("numbers", sa.LargeBinary, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "answers",
        *_key("answer_id"),
        *_texts("state_name"),
        sa.Column("conversation_id", sa.Text, nullable=False, index=True),
        sa.Column("asked_at", sa.Text, nullable=False, index=True),
        *_texts("mode", "kind", "level", "reason", "sources", "index_id"),
        *_texts("question", "search_question", "model", nullable=True),
        sa.Column("confidence", sa.Float),
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
        sa.Column("rating", sa.Integer, nullable=False),
        *_texts("rated_at", "tags", "note"),
    )


def downgrade() -> None:
    """Delete the tables with all their rows."""
    tables = ("ratings", "answers", "vectors", "runs", "books", "sites", "claims", "failures")
    for name in (*tables, "documents"):
        op.drop_table(name)
