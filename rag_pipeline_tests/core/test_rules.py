"""Each rule for a document that was just written, with a document that breaks it.

The rules for collections are tested with `validate`, those for results with the retrieval service.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rag_pipeline.core.ids import to_point_id
from rag_pipeline.core.models import Chunk, ChunkLimits, TextBlock, TextBlockKind
from rag_pipeline.core.protocols import StoredPoint
from rag_pipeline.core.rules import (
    AUDIT_CHECKS,
    COLLECTION_RULES,
    DOCUMENT_RULES,
    SEARCH_CHECKS,
    Finding,
    IndexedDocument,
    find_faults,
    is_closed,
)
from rag_pipeline.core.vectors import ChunkVectors
from rag_pipeline_tests.ingestion.records import make_chunk

LIMITS = ChunkLimits(1, 5, 10, 0)
UNIT = np.array([0.6, 0.8], dtype=np.float32)
SOUND = ChunkVectors(UNIT, np.stack([UNIT, UNIT]))


def make_block(index: int, text: str, kind: TextBlockKind = TextBlockKind.CODE) -> Chunk:
    """Build a chunk that consists of one block."""
    return replace(make_chunk(index, text), blocks=(TextBlock(kind, 0, len(text), 1, 1),))


def make_stored(chunk: Chunk, vectors: ChunkVectors = SOUND) -> StoredPoint:
    return StoredPoint(to_point_id(chunk.chunk_id), {"chunk_id": chunk.chunk_id}, vectors)


def find(chunks: list[Chunk], points: list[StoredPoint] | None = None) -> set[str]:
    stored = [make_stored(chunk) for chunk in chunks] if points is None else points
    document = IndexedDocument(chunks, LIMITS)
    for point in stored:
        document.add_point(point, 2)
    return {finding.kind for finding in find_faults(DOCUMENT_RULES, document)}


def test_each_check_has_a_name_that_does_not_change() -> None:
    assert [rule.name for rule in DOCUMENT_RULES] == [
        "chunk_bounds", "balanced_fences", "sound_vectors", "points_equal_chunks",
        "unique_chunk_ids",
    ]  # fmt: skip
    assert [rule.name for rule in COLLECTION_RULES] == ["citation", "addresses"]
    names = [*(rule.name for rule in (*DOCUMENT_RULES, *COLLECTION_RULES))]
    names += [*AUDIT_CHECKS, *SEARCH_CHECKS]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("finding", "line"),
    [
        (Finding("missing", "a.md", "00ff", "no point"), "missing        a.md 00ff: no point"),
        (Finding("stale", "a.md", "", "no end"), "stale          a.md: no end"),
        (Finding("relevance", "", "", "too few"), "relevance      too few"),
    ],
)
def test_a_finding_is_one_line(finding: Finding, line: str) -> None:
    assert str(finding) == line


def test_a_valid_document_and_an_empty_document_break_no_rule() -> None:
    assert find([make_chunk(0), make_block(1, "```\ncode\n```")]) == set()
    assert find([], []) == set()


@pytest.mark.parametrize(
    ("chunk", "fault"),
    [
        (make_chunk(0, " \n"), "chunk_bounds"),
        (make_chunk(0, "word " * 11), "chunk_bounds"),
        (make_block(0, "| cell " * 11, TextBlockKind.TABLE), None),
        (make_block(0, "word " * 11, TextBlockKind.PARAGRAPH), "chunk_bounds"),
    ],
)
def test_a_chunk_that_is_blank_or_too_long_breaks_a_rule(chunk: Chunk, fault: str | None) -> None:
    assert find([chunk]) == ({fault} if fault else set())


def test_only_the_last_chunk_of_a_document_may_leave_a_fence_open() -> None:
    cut, rest = make_block(0, "```\nopen"), make_block(1, "on\n```")
    assert find([cut, rest]) == {"balanced_fences"}
    assert find([cut]) == set()


def test_missing_stray_and_repeated_points_break_a_rule() -> None:
    first, second = make_chunk(0), make_chunk(1)
    assert find([first, second], [make_stored(first)]) == {"points_equal_chunks"}
    assert find([first], [make_stored(first), make_stored(second)]) == {"points_equal_chunks"}
    assert find([first, replace(second, chunk_id=first.chunk_id)]) == {"unique_chunk_ids"}


@pytest.mark.parametrize(
    "vectors",
    [
        ChunkVectors(UNIT * 2, SOUND.windows),
        ChunkVectors(UNIT * np.float32("nan"), SOUND.windows),
        ChunkVectors(UNIT[:1], SOUND.windows),
        ChunkVectors(UNIT, SOUND.windows[:0]),
        ChunkVectors(UNIT, np.zeros((1, 2), dtype=np.float32)),
        ChunkVectors(UNIT, np.ones((1, 3), dtype=np.float32)),
    ],
    ids=["length", "nan", "dimension", "no_window", "zero_window", "window_dimension"],
)
def test_vectors_of_a_wrong_length_shape_or_value_break_a_rule(vectors: ChunkVectors) -> None:
    chunk = make_chunk(0)
    assert find([chunk], [make_stored(chunk, vectors)]) == {"sound_vectors"}


@pytest.mark.parametrize(
    ("code", "closed"),
    [
        ("```python\nx\n```", True),
        ("````\n```\n````", True),
        ("```\n````", True),
        ("````\n```", False),
        ("~~~\n```\n~~~", True),
        ("```\n  x\n  ```", True),
        ("> ```\n> x\n> ```", True),
        ("> ```\n> x", False),
        ("    indented", True),
        ("```", False),
        ("```\nx\n``` no end", False),
    ],
)
def test_a_code_block_is_closed_by_a_fence_like_its_opening_fence(
    code: str, *, closed: bool
) -> None:
    assert is_closed(code) == closed
