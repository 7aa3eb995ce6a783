"""The commands `search`, `query` and `check-model`."""

# ruff: noqa: PLC0415  # each command imports only what it needs, so that it starts fast

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rag_pipeline.cli.initializing import load_index
from rag_pipeline.cli.options import AsJson, DocsDir, FilterValues, TopK, with_filters
from rag_pipeline.cli.output import print_result, write_text
from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.ids import to_json
from rag_pipeline.retrieval.queries import Mode, Query, QueryFilters

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rag_pipeline.retrieval.retriever import Retriever

commands = typer.Typer()

ExactWords = Annotated[
    bool,
    typer.Option(
        "--exact-words", help="Search the words as written, without correcting misspelled words."
    ),
]


@commands.command()
@with_filters
def search(
    question: Annotated[str, typer.Argument(help="The question or words to search for.")],
    filters: FilterValues,
    top_k: TopK = 5,
    exact_words: ExactWords = False,
    docs_dir: DocsDir = None,
    as_json: AsJson = False,
) -> None:
    """Find the passages of the book that best match a question, without writing an answer."""
    from rag_pipeline.adapters.connect import load_model_early
    from rag_pipeline.cli.terminal import show_hits, tell_running_ingestion
    from rag_pipeline.retrieval import open_retriever

    asked = Query(
        question,
        filters=QueryFilters(**filters, top_k=top_k),
        exact_words=exact_words,
    )
    asked.check()
    settings = load_index(docs_dir)
    tell_running_ingestion(settings)
    load_model_early(settings)
    with open_retriever(settings) as retriever:
        result = retriever.retrieve(asked)
        if not result.chunks:
            _tell_unknown_values(retriever, asked.filters)
    print_result(result.to_dict(), show_hits(result), as_json=as_json)


@commands.command()
@with_filters
def query(
    question: Annotated[str, typer.Argument(help="The question to answer.")],
    filters: FilterValues,
    top_k: TopK = 5,
    mode: Annotated[
        Literal["normal", "selected_text_only"] | None,
        typer.Option(
            "--mode", help="Search the book (normal) or only the text of --selected-text."
        ),
    ] = None,
    exact_words: ExactWords = False,
    selected_text: Annotated[
        str | None, typer.Option("--selected-text", help="Answer only from this text.")
    ] = None,
    even_if_unrelated: Annotated[
        bool,
        typer.Option(
            "--even-if-unrelated",
            help="Answer even if the selected text seems unrelated to the question.",
        ),
    ] = False,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Also show why this answer was given. JSON always has it."),
    ] = False,
    docs_dir: DocsDir = None,
    as_json: AsJson = False,
) -> None:
    """Answer a question using only the book, with links to the cited sections."""
    from rag_pipeline.adapters.connect import load_model_early
    from rag_pipeline.answering.reading.small_talk import find_reply
    from rag_pipeline.cli.terminal import tell_note, tell_running_ingestion

    if even_if_unrelated and selected_text is None:
        problem = "this option works only together with --selected-text"
        raise ConfigurationError("--even-if-unrelated", problem, "Add --selected-text")
    asked = Query(
        question,
        mode=_choose_mode(mode, selected_text),
        selected_text=selected_text,
        filters=QueryFilters(**filters, top_k=top_k),
        exact_words=exact_words,
    )
    asked.check()
    settings = load_index(docs_dir)
    # A failure of the model is told below the answer, after the name of the program.
    logging.getLogger("rag_pipeline.answering").addHandler(logging.NullHandler())
    is_searched = asked.mode is Mode.NORMAL and not find_reply(asked)
    if is_searched:
        tell_running_ingestion(settings)
        load_model_early(settings)
    from rag_pipeline.answering import open_assistant
    from rag_pipeline.cli.explaining import record_query, show_explanation
    from rag_pipeline.cli.terminal import show_answer_sources, show_quotes

    with (
        open_assistant(settings) as assistant,
        assistant.stream(asked, even_if_unrelated=even_if_unrelated) as stream,
    ):
        model = assistant.chat_model
        if model is not None and not as_json:
            write_pieces(stream)
        answer = stream.answer
        if is_searched and stream.result and not stream.result.chunks:
            _tell_unknown_values(assistant.retriever, asked.filters)
    if answer.model_error is not None:
        tell_note(f"the model could not answer: {answer.model_error.partition(': ')[2]}")
    record = record_query(answer, stream.result)
    text = show_quotes(answer) if model is None else show_answer_sources(answer)
    if explain:
        text = f"{text}\n\n{show_explanation(record)}"
    print_result(to_json(record), text, as_json=as_json)


@commands.command("check-model")
def check_answer_model(docs_dir: DocsDir = None, as_json: AsJson = False) -> None:
    """Ask the answer model six questions about the book, and say if it is good enough."""
    from rag_pipeline.answering import open_assistant
    from rag_pipeline.answering.checking import check_model, choose_questions
    from rag_pipeline.cli.terminal import show_model_check
    from rag_pipeline.retrieval import read_contents

    settings = load_index(docs_dir)
    with open_assistant(settings) as assistant:
        if assistant.chat_model is None:
            problem = "no answer model is configured"
            remedy = "Set OPENAI_API_KEY, or OPENAI_BASE_URL and ANSWER_MODEL"
            raise ConfigurationError("ANSWER_MODEL", problem, remedy)
        questions = choose_questions(read_contents(assistant.retriever))
        checked = check_model(assistant, questions)
    print_result(to_json(checked), show_model_check(checked), as_json=as_json)
    if not checked.is_useful:
        raise typer.Exit(1)


def _tell_unknown_values(retriever: Retriever, filters: QueryFilters | None) -> None:
    """Write a note to standard error for each filter value that no page of the book has."""
    from rag_pipeline.cli.terminal import tell_note
    from rag_pipeline.retrieval.contents import explain_filters

    for sentence in explain_filters(retriever.read_index, filters, as_options=True):
        tell_note(sentence)


def _choose_mode(requested: str | None, selected_text: str | None) -> Mode:
    """Return the query mode that follows from the options.

    The mode is `selected_text_only` if a selected text was given, otherwise `normal`.

    Args:
        requested: Value of --mode; None if the option was not given.
        selected_text: Value of --selected-text; None if the option was not given.

    Raises:
        ConfigurationError: The value of --mode contradicts the presence of a selected text.
    """
    mode = Mode.NORMAL if selected_text is None else Mode.SELECTED_TEXT_ONLY
    if requested is None or requested == mode:
        return mode
    problem, remedy = "this mode ignores --selected-text", "Remove one of the two options"
    if selected_text is None:
        problem, remedy = "this mode needs a selected text", "Add --selected-text"
    raise ConfigurationError(f"--mode {requested}", problem, remedy)


def write_pieces(pieces: Iterable[str]) -> None:
    """Write the pieces of an answer.

    If they break off, end the line, so that the error begins on a new line.
    """
    last = ""
    try:
        for piece in pieces:
            write_text(piece)
            last = piece or last
    except BaseException:
        if last and not last.endswith("\n"):
            with suppress(OSError):  # nobody reads standard output any more
                write_text("\n")
        raise
