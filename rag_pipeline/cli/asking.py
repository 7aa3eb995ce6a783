"""Commands that ask the book: search and query."""

# ruff: noqa: PLC0415  # each command imports its own parts, so that a light one starts fast

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from rag_pipeline.cli.options import AsJson, AskedMode, DocsDir, FilterValues, TopK, with_filters
from rag_pipeline.cli.output import print_result, write_text
from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.settings import load_settings

if TYPE_CHECKING:
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.retrieval.models import Mode, Query

commands = typer.Typer()


@commands.command()
@with_filters
def search(
    question: Annotated[str, typer.Argument(help="What to look for.")],
    filters: FilterValues,
    top_k: TopK = 5,
    mode: AskedMode = None,
    docs_dir: DocsDir = None,
    as_json: AsJson = False,
) -> None:
    """Rank the book's passages for a question, with their places; no answer."""
    from rag_pipeline.adapters.connect import load_model_early
    from rag_pipeline.cli.terminal import show_hits
    from rag_pipeline.retrieval import Query, QueryFilters, open_retriever

    asked = Query(
        question,
        mode=_choose_mode(mode, None, "Use `rag-pipeline query --selected-text`"),
        filters=QueryFilters(**filters, top_k=top_k),
    )
    asked.check()
    settings = load_settings(docs_dir=docs_dir)
    load_model_early(settings)
    with open_retriever(settings) as retriever:
        result = retriever.retrieve(asked)
    record = {
        "question": question,
        "mode": result.mode.value,
        "total_candidates": result.total_candidates,
        "chunks": [dataclasses.asdict(chunk) for chunk in result.chunks],
    }
    print_result(record, show_hits(result), as_json=as_json)


@commands.command()
@with_filters
def query(
    question: Annotated[str, typer.Argument(help="What to ask the book.")],
    filters: FilterValues,
    top_k: TopK = 5,
    mode: AskedMode = None,
    selected_text: Annotated[
        str | None, typer.Option("--selected-text", help="Answer from this text alone.")
    ] = None,
    source_doc: Annotated[
        str | None, typer.Option("--source-doc", help="Document the text was selected in.")
    ] = None,
    source_section: Annotated[
        str | None, typer.Option("--source-section", help="Heading the text stands under.")
    ] = None,
    source_url: Annotated[
        str | None, typer.Option("--source-url", help="Address of the page it was selected on.")
    ] = None,
    even_if_unrelated: Annotated[
        bool,
        typer.Option(
            "--even-if-unrelated",
            help="Answer though the selected text seems to be about something else.",
        ),
    ] = False,
    docs_dir: DocsDir = None,
    as_json: AsJson = False,
) -> None:
    """Answer a question from the book alone, with links to the exact sections."""
    from rag_pipeline.retrieval import Query, QueryFilters

    if even_if_unrelated and selected_text is None:
        problem = "it is about a selected text, and none is given"
        raise ConfigurationError("--even-if-unrelated", problem, "Add --selected-text")
    asked = Query(
        question,
        mode=_choose_mode(mode, selected_text, "Add --selected-text"),
        selected_text=selected_text,
        source_doc_path=source_doc,
        source_section=source_section,
        source_url=source_url,
        filters=QueryFilters(**filters, top_k=top_k),
    )
    _answer(asked, load_settings(docs_dir=docs_dir), as_json, even_if_unrelated=even_if_unrelated)


def _choose_mode(asked: AskedMode, selected_text: str | None, remedy: str) -> Mode:
    """Return the mode that was asked for, or the one that follows from the other options.

    Raises:
        ConfigurationError: The mode and the selected text contradict each other.
    """
    from rag_pipeline.retrieval import Mode

    mode = Mode.NORMAL if selected_text is None else Mode.SELECTED_TEXT_ONLY
    if asked is None or asked == mode:
        return mode
    if selected_text is None:
        raise ConfigurationError(f"--mode {asked}", "it needs a selected text", remedy)
    problem = "--selected-text was given, which this mode does not read"
    raise ConfigurationError(f"--mode {asked}", problem, "Remove one of the two options")


def _answer(asked: Query, settings: Settings, as_json: bool, *, even_if_unrelated: bool) -> None:
    from rag_pipeline.adapters.connect import load_model_early
    from rag_pipeline.retrieval import Mode

    asked.check()
    if asked.mode is Mode.NORMAL:
        load_model_early(settings)
    from rag_pipeline.answering import stream_answer
    from rag_pipeline.cli.terminal import show_answer_sources

    with stream_answer(asked, settings=settings, even_if_unrelated=even_if_unrelated) as stream:
        if not as_json:
            for piece in stream:
                write_text(piece)
        answer = stream.answer
        chunks = stream.result.chunks
    record = {
        "question": answer.question,
        "mode": answer.grounding.mode.value,
        "kind": answer.kind.value,
        "answer": answer.text,
        "sufficient_context": answer.grounding.sufficient_context,
        "reason": answer.grounding.reason.value,
        "model": answer.model,
        "sentences": [dataclasses.asdict(sentence) for sentence in answer.sentences],
        "citations": [dataclasses.asdict(citation) for citation in answer.citations],
        "chunks": [dataclasses.asdict(chunk) for chunk in chunks],
        "notices": list(answer.notices),
    }
    print_result(record, show_answer_sources(answer), as_json=as_json)
