"""The command `review`, which says what a change of the pages does to the index."""

# ruff: noqa: PLC0415  # each command imports only what it needs, so that it starts fast

from __future__ import annotations

from pathlib import Path  # noqa: TC003  # Typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from rag_pipeline.cli.evaluating import make_address_check, prepare_file, write_file
from rag_pipeline.cli.indexing import ingest_and_tell
from rag_pipeline.cli.initializing import load_book_or_site
from rag_pipeline.cli.options import AsJson, DocsDir, DocsPlugin, RunConfig, SiteDir
from rag_pipeline.cli.output import print_result

if TYPE_CHECKING:
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.evaluation.review import SearchFigures

commands = typer.Typer()


@commands.command()
def review(
    docs_dir: DocsDir = None,
    site: SiteDir = None,
    docs_plugin: DocsPlugin = None,
    run_config: RunConfig = False,
    built_site: Annotated[
        str | None,
        typer.Option(
            "--built-site",
            help="Also check that cited links exist: folder of the built site, or its URL.",
        ),
    ] = None,
    test_set: Annotated[
        Path | None,
        typer.Option("--test-set", help="JSON file with the book's golden set, if it has one."),
    ] = None,
    before: Annotated[
        Path | None,
        typer.Option(
            "--before", help="Compare with this file, which --write of an earlier review wrote."
        ),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option("--write", help="Write the figures to this file, for a later --before."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Index changed documents, check the index and its links, and compare with an earlier review.

    Prints a table in Markdown, as the GitHub Action posts it on a pull request. Exits with code 1
    if a document failed, or if a check or a quality gate fails.
    """
    import json

    from rag_pipeline.evaluation.book import check_libraries
    from rag_pipeline.evaluation.review import (
        build_review,
        dump_review,
        load_review,
        render_review,
    )
    from rag_pipeline.evaluation.validation.suite import run_validation
    from rag_pipeline.retrieval import open_retriever

    settings, _ = load_book_or_site(
        docs_dir, site, docs_plugin, run_config=run_config, may_ask=False
    )
    check_libraries()
    earlier = load_review(before) if before else None
    check = make_address_check("--built-site", built_site, settings)
    if write is not None:
        prepare_file("--write", write)
    ingested = ingest_and_tell(settings)
    with open_retriever(settings) as retriever:
        validated = run_validation(
            retriever, collection_name=settings.qdrant_collection, check_addresses=check
        )
    found = build_review(ingested, validated, _measure_search(settings, test_set))
    data = dump_review(found)
    if write is not None:
        write_file(write, data.decode())
    record = json.loads(data) | {"passed": found.passed}
    print_result(record, render_review(found, earlier).rstrip(), as_json=as_json)
    if not found.passed:
        raise typer.Exit(1)


def _measure_search(settings: Settings, test_set: Path | None) -> SearchFigures | None:
    """Ask the questions of the book's golden set; None if the book has none."""
    from rag_pipeline.core.settings.rules import OWN_DOCS_DIR
    from rag_pipeline.evaluation.book import Answering, evaluate_book
    from rag_pipeline.evaluation.review import read_search_figures

    is_named = test_set is not None or settings.evaluation_test_set
    if not is_named and settings.docs_dir.resolve() != OWN_DOCS_DIR:
        return None
    evaluation = evaluate_book(settings, test_set, answering=Answering.NONE)
    failed = [gate.sentence for gate in evaluation.gates if not gate.passed]
    return read_search_figures(evaluation.report, failed)
