"""The commands that help to write a golden set."""

# ruff: noqa: PLC0415  # each command imports only what it needs, so that it starts fast

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Annotated

import typer

from rag_pipeline.cli.loading import load_book
from rag_pipeline.cli.options import AsJson, DocsDir
from rag_pipeline.cli.output import print_result
from rag_pipeline.core.errors import ConfigurationError

if TYPE_CHECKING:
    from rag_pipeline.core.settings import Settings

commands = typer.Typer()


@commands.command("golden-entry")
def golden_entry(
    text: Annotated[str, typer.Argument(help="Path of a document, or words to search for.")] = "",
    question: Annotated[
        str, typer.Option("--question", help="The question of the new entry.")
    ] = "",
    from_log: Annotated[
        str, typer.Option("--from-log", help="Id of a logged answer whose question is used.")
    ] = "",
    docs_dir: DocsDir = None,
    as_json: AsJson = False,
) -> None:
    """Suggest a golden set entry: a test question with the sections that answer it, as JSON.

    The command finds sections only by comparing words. If it used the search that the golden set
    measures, that search would look too good. With `--from-log`, the entry names the sections that
    the logged answer cited; check each of them in the book.
    """
    from rag_pipeline.evaluation.book import parse_corpus
    from rag_pipeline.evaluation.golden_entry import suggest_entry

    settings = load_book(docs_dir)
    if bool(text) == bool(from_log) or (from_log and question):
        problem = "it needs either a text, with or without --question, or only --from-log"
        remedy = "Name a document, such as intro.md, or words to search for"
        raise ConfigurationError("golden-entry", problem, remedy)
    if from_log:
        _draft_from_log(settings, from_log, as_json=as_json)
        return
    corpus = parse_corpus(settings)
    found = suggest_entry(corpus.documents, text, question=question)
    record = dataclasses.asdict(found)
    print_result(record, json.dumps(record, ensure_ascii=False, indent=1), as_json=as_json)


@commands.command("golden-definitions")
def golden_definitions(docs_dir: DocsDir = None, as_json: AsJson = False) -> None:
    """List the terms of the book's glossary with the sections that define them, as JSON.

    The list can be pasted into a golden set. An evaluation of answers then asks "What is ...?" for
    each term. The list is empty if no page is called a glossary.
    """
    from rag_pipeline.evaluation.book import parse_corpus
    from rag_pipeline.evaluation.gates import find_definitions, list_definitions

    settings = load_book(docs_dir)
    corpus = parse_corpus(settings)
    record = list_definitions(find_definitions(corpus.documents))
    print_result(record, json.dumps(record, ensure_ascii=False, indent=1), as_json=as_json)


def _draft_from_log(settings: Settings, answer_id: str, *, as_json: bool) -> None:
    """Print a golden set entry for a logged question.

    Raises:
        ConfigurationError: QUESTION_LOG_DAYS is 0.
        QueryError: The log has no such answer, or its question was not logged.
        QuestionLogError: The log cannot be read.
    """
    from rag_pipeline.evaluation.book import parse_corpus
    from rag_pipeline.evaluation.feedback import draft_entry, read_log

    entries = read_log(settings)
    if entries is None:
        raise ConfigurationError("QUESTION_LOG_DAYS", "it is 0", "Set the number of days to keep")
    corpus = parse_corpus(settings)
    entry = draft_entry(entries, answer_id, corpus.documents)
    record = {"entry": entry, "warnings": ["a search found these sections. Check each of them"]}
    print_result(record, json.dumps(record, ensure_ascii=False, indent=1), as_json=as_json)
