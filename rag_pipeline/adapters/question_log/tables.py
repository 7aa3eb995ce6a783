"""The tables of the question log, and the conversion of entries to rows and back.

Times are stored without a time zone, in UTC. The migrations create the tables.
"""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import sqlalchemy as sa

from rag_pipeline.core.protocols.question_log import LoggedAnswer, Rating

if TYPE_CHECKING:
    from sqlalchemy import RowMapping

METADATA: Final = sa.MetaData()

ANSWERS: Final = sa.Table(
    "answers",
    METADATA,
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

RATINGS: Final = sa.Table(
    "ratings",
    METADATA,
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


def make_row(entry: LoggedAnswer | Rating) -> dict[str, Any]:
    """Return the row of an answer or a rating, with texts that every database can store."""
    return {field.name: _store(getattr(entry, field.name)) for field in dataclasses.fields(entry)}


def read_answer(row: RowMapping) -> LoggedAnswer:
    """Return the answer of a row."""
    return LoggedAnswer(**{name: _load(value) for name, value in row.items()})


def read_rating(row: RowMapping) -> Rating:
    """Return the rating of a row."""
    return Rating(**{name: _load(value) for name, value in row.items()})


def store_time(time: datetime) -> datetime:
    """Return a time in UTC without a time zone. A time without a zone is taken as UTC."""
    return time if time.tzinfo is None else time.astimezone(UTC).replace(tzinfo=None)


def _store(value: object) -> object:
    if isinstance(value, datetime):
        return store_time(value)
    if isinstance(value, tuple):
        return [_store(part) for part in value]
    if isinstance(value, str):
        # Postgres stores no NUL, and no database stores half of a surrogate pair.
        return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    return value


def _load(value: Any) -> Any:  # noqa: ANN401  # any value of a column
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC)
    return tuple(value) if isinstance(value, list) else value
