"""Measures of how well retrieved spans cover the expected sections, in tokens."""

from __future__ import annotations

import pytest

from rag_pipeline.core.text.terms import count_tokens, find_token_ends
from rag_pipeline.evaluation.golden_set import ExpectedSection
from rag_pipeline.evaluation.metrics import TokenMap, score_spans
from rag_pipeline.evaluation.records import RetrievedChunk
from rag_pipeline_tests.evaluation.generated_book import CHUNKS, DOCUMENTS, parse_page

SOURCE = """---
title: Page
---

# Page

Lead text stands here.

## One

First words of one.

### Deep

Deeper words are here.

#### Deepest

Deepest words.

## Two

Words of two, größer als 1 — ok.

## One

Again one.
"""
PARSED = parse_page("page.md", SOURCE)
MAP = TokenMap(PARSED)


def find_bytes(text: str) -> tuple[int, int]:
    start = SOURCE.encode().index(text.encode())
    return start, start + len(text.encode())


def read(flags: object) -> str:
    """Return the text of the marked tokens."""
    ends = find_token_ends(SOURCE)
    data = SOURCE.encode()
    pieces = zip([0, *ends[:-1]], ends, flags, strict=True)  # type: ignore[call-overload]  # an array
    return b"".join(data[start:end] for start, end, flag in pieces if flag).decode()


def chunk(doc_path: str, text: str) -> RetrievedChunk:
    start, end = find_bytes(text)
    return RetrievedChunk("id", doc_path, "", (), 0.5, start, end, count_tokens(text), "")


@pytest.mark.parametrize(
    ("heading", "inside", "outside"),
    [
        ("One", ["First words", "Deeper", "Deepest words", "Again"], ["Lead", "two", "## "]),
        ("Deep", ["Deeper", "Deepest words"], ["First", "two", "Again"]),
        ("Two", ["größer als 1 — ok"], ["Deepest", "Again"]),
        ("Page", ["Lead text"], ["First", "title"]),
        ("Absent", [], ["Lead", "First"]),
    ],
)
def test_a_section_reaches_to_the_next_heading_of_its_level(
    heading: str, inside: list[str], outside: list[str]
) -> None:
    text = read(MAP.find_section(heading))
    assert all(part in text for part in inside)
    assert not any(part in text for part in outside)


def test_a_title_without_a_heading_stands_for_the_text_before_the_first_heading() -> None:
    source = "---\ntitle: Guide\n---\n\nWelcome here.\n\n## Start\n\nGo.\n"
    token_map = TokenMap(parse_page("guide.md", source))
    assert int(token_map.find_section("Guide").sum()) == count_tokens(" Welcome here.") - 1


def test_token_ends_add_up_to_the_bytes() -> None:
    for text in ("", "größer — 你好 🤖", "a" * 5000, SOURCE):
        ends = find_token_ends(text)
        assert len(ends) == count_tokens(text)
        assert (ends[-1] if ends else 0) == len(text.encode())
        assert ends == sorted(ends)


def test_a_chunk_of_exactly_the_expected_section_scores_one() -> None:
    scores = score_spans(
        [ExpectedSection("page.md", "Two")],
        [chunk("page.md", "## Two\n\nWords of two, größer als 1 — ok.")],
        {"page.md": MAP},
    )
    assert scores == {"recall@5": 1.0, "precision@5": 1.0, "IoU@5": 1.0}


def test_more_text_lowers_precision_and_less_text_lowers_recall() -> None:
    expected = [ExpectedSection("page.md", "Two")]
    wide = chunk("page.md", "Words of two, größer als 1 — ok.\n\n## One\n\nAgain one.")
    narrow = chunk("page.md", "Words of two")
    more = score_spans(expected, [wide], {"page.md": MAP})
    less = score_spans(expected, [narrow], {"page.md": MAP})
    assert more["recall@5"] == 1.0
    assert more["precision@5"] < 1.0
    assert less["precision@5"] == 1.0
    assert less["recall@5"] == pytest.approx(less["IoU@5"])
    assert less["recall@5"] < 1.0


def test_a_token_returned_twice_is_found_once() -> None:
    expected = [ExpectedSection("page.md", "Two")]
    once = chunk("page.md", "Words of two, größer als 1 — ok.")
    twice = score_spans(expected, [once, once], {"page.md": MAP})
    assert twice == {
        "recall@5": 1.0,
        "precision@5": 0.5,
        "IoU@5": 0.5,
    }


def test_the_sixth_chunk_and_a_page_outside_the_corpus_find_nothing() -> None:
    expected = [ExpectedSection("page.md", "Two")]
    right = chunk("page.md", "Words of two, größer als 1 — ok.")
    stale = chunk("gone.md", "Words of two")
    assert score_spans(expected, [stale] * 5 + [right], {"page.md": MAP}) == {
        "recall@5": 0.0,
        "precision@5": 0.0,
        "IoU@5": 0.0,
    }
    assert score_spans(expected, [right, stale], {"page.md": MAP})["precision@5"] < 1.0
    assert set(score_spans(expected, [], {"page.md": MAP}).values()) == {0.0}


def test_the_chunks_of_a_page_cover_each_of_its_sections() -> None:
    parsed = DOCUMENTS[3]
    path = parsed.document.doc_path
    spans = [
        RetrievedChunk(
            "id", path, "", (), 0.5, one.metadata.start_byte, one.metadata.end_byte, 1, ""
        )
        for one in CHUNKS
        if one.metadata.doc_path == path
    ]
    for heading in parsed.document.headings:
        expected = [ExpectedSection(path, heading.text)]
        found = max(
            score_spans(expected, spans[at : at + 5], {path: TokenMap(parsed)})["recall@5"]
            for at in range(len(spans))
        )
        assert found == 1.0
