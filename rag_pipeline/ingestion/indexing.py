"""What must change in the store so that it holds a document's chunks and nothing else of it.

Belongs here: the comparison of wanted and existing points. Reading and writing them: adapters.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_pipeline.core.ids import to_point_id
from rag_pipeline.core.payload import build_payload

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.models import Chunk, Document, Payload


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """Writes in the order that loses nothing: upserts, payload updates, then deletes (decision 6).

    Attributes:
        upserts: Payloads of points that are new or whose vectors change.
        payload_updates: Payloads of points whose vectors stay.
        deletes: Points that no chunk stands for any more, ascending.
        created: How many of `upserts` are new ids.
        unchanged: Points left alone.
    """

    upserts: dict[PointId, Payload]
    payload_updates: dict[PointId, Payload]
    deletes: tuple[PointId, ...]
    created: int
    unchanged: int

    @property
    def updated(self) -> int:
        """Existing points that are written again, whole or in their payload."""
        return len(self.upserts) - self.created + len(self.payload_updates)


def plan_index(
    wanted: Mapping[PointId, Payload],
    existing: Mapping[PointId, Payload],
    *,
    rewrite: bool = False,
) -> IndexPlan:
    """Compare the points a document should have with those it has.

    `ingested_at` alone never makes a difference: a point that is otherwise equal stays as it is.

    Args:
        wanted: Payloads of the document's chunks.
        existing: Payloads of its points.
        rewrite: Write every point whole, for a store whose vectors cannot be trusted.
    """
    upserts: dict[PointId, Payload] = {}
    payload_updates: dict[PointId, Payload] = {}
    created = 0
    for point_id, payload in wanted.items():
        stored = existing.get(point_id)
        if stored is None:
            created += 1
            upserts[point_id] = payload
        elif rewrite or stored.get("embedding_hash") != payload["embedding_hash"]:
            upserts[point_id] = payload
        elif _contents(stored) != _contents(payload):
            payload_updates[point_id] = payload
    deletes = tuple(sorted(point_id for point_id in existing if point_id not in wanted))
    unchanged = len(wanted) - len(upserts) - len(payload_updates)
    return IndexPlan(upserts, payload_updates, deletes, created, unchanged)


def build_payloads(
    document: Document,
    chunks: Sequence[Chunk],
    ingested_at_by_content: Mapping[str, str],
    now: str,
) -> dict[PointId, Payload]:
    """Payloads of a document's chunks by point id, in chunk order.

    Args:
        document: Where the chunks come from.
        chunks: All chunks of the document.
        ingested_at_by_content: Time of ingestion by content hash of what was there before: it moves
            only with content.
        now: ISO 8601 in UTC, for content that is new.
    """
    return {
        to_point_id(chunk.chunk_id): build_payload(
            chunk, document, ingested_at_by_content.get(chunk.content_hash, now)
        )
        for chunk in chunks
    }


def compute_data_version(payloads: Mapping[PointId, Payload]) -> str:
    """Hash of everything indexed of a document but times of ingestion: 16 hexadecimal digits."""
    contents = [[point_id, _contents(payload)] for point_id, payload in sorted(payloads.items())]
    text = json.dumps(contents, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _contents(payload: Payload) -> Payload:
    return {key: value for key, value in payload.items() if key != "ingested_at"}
