"""Tests of the text that a command prints below an answer and after an ingestion."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.answering import answer
from rag_pipeline.cli.asking import write_pieces
from rag_pipeline.cli.terminal import show_answer_sources, show_ingestion, show_quotes
from rag_pipeline.core.errors import AnswerServiceError
from rag_pipeline.core.ids import DocId
from rag_pipeline.core.models import DocFailure, Figure, Stage
from rag_pipeline.core.settings import Settings
from rag_pipeline.ingestion.events import StageDone
from rag_pipeline.ingestion.report import IngestionReport
from rag_pipeline.retrieval import Mode, Query, QueryFilters
from rag_pipeline_tests.answering.factories import FixedRetriever

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS = Settings(_env_file=None)
SELECTION = "A servo holds its joint at an angle."


def ask(question: str) -> str:
    """Answer a question from `SELECTION`, and return the text that is printed below the answer."""
    query = Query(question, Mode.SELECTED_TEXT_ONLY, selected_text=SELECTION)
    return show_answer_sources(answer(query, settings=SETTINGS))


def test_sources_and_notices_are_printed_below_the_answer() -> None:
    lines = ask("What holds a servo?").split("\n")
    assert lines[:3] == ["", "Sources:", "  [1] Selected text"]
    assert all(line.startswith("Note: ") for line in lines[3:])


def test_a_quoted_passage_is_printed_with_its_place_below() -> None:
    query = Query("What holds a servo?", Mode.SELECTED_TEXT_ONLY, selected_text=SELECTION)
    quoted = answer(query, settings=SETTINGS)
    lines = show_quotes(quoted).split("\n")
    assert lines[:4] == [SELECTION, "", "  [1] Selected text", ""]
    assert lines[4] == f"Note: {quoted.notices[0].text}"


def test_a_figure_is_named_unless_the_passage_has_its_text() -> None:
    query = Query("What holds a servo?", Mode.SELECTED_TEXT_ONLY, selected_text=SELECTION)
    quoted = answer(query, settings=SETTINGS)
    figures = (
        Figure("image", "/a.png", "A servo at work", "", 1),
        Figure("image", "/b.png", "its joint at an angle", "", 1),
        Figure("image", "/c.png", "", "", 1),
        Figure("diagram", "", "graph TD", "", 1),
    )
    passage = replace(quoted.passages[0], figures=figures)
    lines = show_quotes(replace(quoted, passages=(passage,))).split("\n")
    assert [line.strip() for line in lines if line.startswith("      ")] == [
        "Figure: A servo at work  /a.png",
        "Figure: /b.png",
        "Figure: /c.png",
        "Figure: diagram",
    ]


def test_a_notice_of_a_refusal_starts_on_its_own_line() -> None:
    query = Query("Which glue?", filters=QueryFilters(modules=["module-9"]))
    refused = answer(query, retriever=FixedRetriever(()), settings=SETTINGS)  # type: ignore[arg-type]  # has the methods that are used
    assert show_answer_sources(refused).split("\n") == ["", f"Note: {refused.notices[0].text}"]
    assert show_quotes(refused) == f"{refused.text}\nNote: {refused.notices[0].text}"


def test_what_was_not_indexed_as_it_is_written_is_counted() -> None:
    report = IngestionReport(docs_unlisted=2, expressions_left_out=1, components_left_out={"T": 3})
    notes = [line for line in show_ingestion(report, "docs").split("\n") if "note:" in line]
    assert notes[:2] == [
        "  note: unlisted pages that are not indexed (INDEX_UNLISTED includes them): 2",
        "  note: MDX expressions without a known value, left out of the text: 1",
    ]
    unread = "pages with a text in `<T>` that cannot be read without running code: 3."
    assert notes[2:] == [f"  note: {unread} COMPONENT_TEXT can leave it out"]


def test_the_next_command_has_the_options_that_it_needs() -> None:
    report = IngestionReport(docs_processed=1)
    assert show_ingestion(report, "docs").endswith('settings: rag-pipeline query "..."')
    shown = show_ingestion(report, "docs", "--docs-dir 'my docs'")
    assert shown.endswith("settings: rag-pipeline query --docs-dir 'my docs' \"...\"")


def test_chunks_embedded_in_parts_are_reported_in_one_line_without_a_warning() -> None:
    report = IngestionReport()
    for name in ("a.md", "b.md", "c.md", "d.md"):
        report.add(StageDone(Stage.EMBEDDINGS, DocId(name), "v", {"windowed_chunks": 16}))
    notes = [line for line in show_ingestion(report, "docs").split("\n") if "note:" in line]
    assert len(notes) == 1
    assert notes[0].endswith("chunks longer than the model's input, embedded in parts: 64")
    assert report.warnings == []


def test_documents_that_failed_for_the_same_reason_share_one_line() -> None:
    report = IngestionReport()
    for name in ("a.md", "b.md", "c.md", "d.md", "e.md"):
        report.add(DocFailure(name, "qdrant_points", "StoreError", "the disk is full"))
    report.add(DocFailure("f.md", "parsed_docs", "FrontMatterError", "f.md: line 2 is wrong"))
    lines = [line for line in show_ingestion(report, "docs").split("\n") if "FAILED" in line]
    assert lines == [
        "  FAILED a.md, b.md, c.md and 2 more: the disk is full",
        "  FAILED f.md: line 2 is wrong",
    ]


def test_the_error_after_a_part_of_an_answer_has_its_own_line(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    def break_off() -> Iterator[str]:
        yield "A servo is"
        raise AnswerServiceError("the service stopped")

    with pytest.raises(AnswerServiceError):
        write_pieces(break_off())
    assert capfdbinary.readouterr().out == b"A servo is\n"
