"""Rules that every result keeps, whatever was asked: order, bounds, fields, addresses.

Belongs here: what can be told from results alone. Whether they are relevant: evaluation.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rag_pipeline.retrieval.models import ScoredChunk

_CHUNK_ID: Final = re.compile(r"[0-9a-f]{16}")


def check_results(chunks: Sequence[ScoredChunk]) -> dict[str, str]:
    """Check results against each rule.

    Returns:
        For each rule, in a fixed order, an empty text where it holds, else what breaks it.
    """
    return {name: rule(chunks) for name, rule in _RULES.items()}


def _rank_order(chunks: Sequence[ScoredChunk]) -> str:
    for at in range(1, len(chunks)):
        if chunks[at].score > chunks[at - 1].score:
            return f"result {at + 1} scores higher than result {at}"
    return ""


def _score_bounds(chunks: Sequence[ScoredChunk]) -> str:
    for chunk in chunks:
        if not (math.isfinite(chunk.score) and 0.0 <= chunk.score <= 1.0):
            return f"chunk {chunk.chunk_id} scores {chunk.score}"
    return ""


def _unique_ids(chunks: Sequence[ScoredChunk]) -> str:
    ids = [chunk.chunk_id for chunk in chunks]
    repeated = sorted({chunk_id for chunk_id in ids if ids.count(chunk_id) > 1})
    return f"chunk {repeated[0]} stands there twice" if repeated else ""


def _required_fields(chunks: Sequence[ScoredChunk]) -> str:
    for chunk in chunks:
        metadata = chunk.metadata
        required = {
            "text": chunk.text,
            "url": metadata.url,
            "title": metadata.title,
            "doc_path": metadata.doc_path,
            "content_type": metadata.content_type,
            "content_hash": metadata.content_hash,
        }
        for name, value in required.items():
            if not value.strip():
                return f"chunk {chunk.chunk_id} has no {name}"
        if not _CHUNK_ID.fullmatch(chunk.chunk_id) or chunk.chunk_id != metadata.chunk_id:
            return f"chunk id {chunk.chunk_id!r:.40} is none"
        if metadata.chunk_index < 0:
            return f"chunk {chunk.chunk_id} has index {metadata.chunk_index}"
    return ""


def _urls(chunks: Sequence[ScoredChunk]) -> str:
    for chunk in chunks:
        if not _is_address(chunk.citation.url):
            return f"chunk {chunk.chunk_id} has the address {chunk.citation.url!r:.80}"
    return ""


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    named = parts.path.startswith("/") and parts.scheme in {"", "http", "https"}
    return named and not any(char.isspace() for char in url)


_RULES: Final[dict[str, Callable[[Sequence[ScoredChunk]], str]]] = {
    "rank_order": _rank_order,
    "score_bounds": _score_bounds,
    "unique_ids": _unique_ids,
    "required_fields": _required_fields,
    "urls": _urls,
}
