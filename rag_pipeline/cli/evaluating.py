"""Commands that measure: evaluate, sweep, golden-entry and validate."""

# ruff: noqa: PLC0415  # each command imports its own parts, so that a light one starts fast

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag_pipeline.cli.ingesting import ingest_changes, open_ingestion
from rag_pipeline.cli.options import AsJson, DocsDir
from rag_pipeline.cli.output import print_result
from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.settings import load_settings

if TYPE_CHECKING:
    from rag_pipeline.core.settings import Settings

commands = typer.Typer()


@commands.command()
def evaluate(
    test_set: Annotated[
        Path | None,
        typer.Option(
            "--test-set", help="Questions (JSON) [EVALUATION_TEST_SET, or the textbook's]."
        ),
    ] = None,
    docs_dir: DocsDir = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write the report page here.")] = None,
    accept: Annotated[
        bool, typer.Option("--accept", help="Compare later evaluations with this one.")
    ] = False,
    paraphrased: Annotated[
        bool, typer.Option("--paraphrased", help="Ask in the harder wording; nothing is gated.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Measure retrieval by a golden set; exit 1 when a gate fails. Ingests first what changed."""
    from rag_pipeline.cli.terminal import show_ingestion
    from rag_pipeline.evaluation.book import evaluate_book
    from rag_pipeline.evaluation.rendering import render_text

    settings = load_settings(docs_dir=docs_dir)
    if html is not None:
        _prepare_file("--html", html)

    def ingest() -> None:
        ingested = ingest_changes(open_ingestion(settings))
        sys.stderr.write(show_ingestion(ingested, str(settings.docs_dir)) + "\n")

    evaluation = evaluate_book(
        settings, test_set, accept_baseline=accept, paraphrased=paraphrased, ingest=ingest
    )
    if html is not None:
        html.write_bytes(evaluation.files.html_path.read_bytes())
    record = {
        "passed": evaluation.passed,
        "gates": [dataclasses.asdict(gate) for gate in evaluation.gates],
        "report": json.loads(evaluation.files.json_path.read_bytes()),
    }
    text = render_text(evaluation.report, evaluation.gates)
    print_result(record, f"{text}Report: {html or evaluation.files.html_path}", as_json=as_json)
    if not evaluation.passed:
        raise typer.Exit(1)


@commands.command()
def sweep(
    values: Annotated[
        list[str],
        typer.Argument(help="Settings to move: CHUNK_TARGET_TOKENS=300,500,700 ..."),
    ],
    crossed: Annotated[
        bool, typer.Option("--crossed", help="Every combination, not one setting at a time.")
    ] = False,
    test_set: Annotated[Path | None, typer.Option("--test-set", help="Questions (JSON).")] = None,
    docs_dir: DocsDir = None,
    as_json: AsJson = False,
) -> None:
    """Compare designs on the tune half of a golden set, each in a collection of its own."""
    from rag_pipeline.evaluation.sweep import (
        check_sweep,
        evaluate_cell,
        make_grid,
        render_sweep,
        run_sweep,
    )

    settings = load_settings(docs_dir=docs_dir)
    cells = make_grid(_read_axes(values, settings), crossed=crossed)
    check_sweep(settings, cells, test_set, open_ingestion)
    result = run_sweep(
        cells,
        lambda cell: evaluate_cell(settings, cell, test_set, open_ingestion),
        on_cell=lambda cell: print(f"evaluating {cell.name}", file=sys.stderr),
    )
    record = {
        "winner": result.winner.name if result.winner else None,
        "rows": [
            dataclasses.asdict(row) | {"cell": row.cell.name, "overrides": dict(row.cell.overrides)}
            for row in result.rows
        ],
    }
    print_result(record, render_sweep(result), as_json=as_json)


@commands.command("golden-entry")
def golden_entry(
    text: Annotated[str, typer.Argument(help="A page's path, or words to look for.")],
    question: Annotated[str, typer.Option("--question", help="The question to enter.")] = "",
    docs_dir: DocsDir = None,
    as_json: AsJson = False,
) -> None:
    """Help to write a golden question: sections it may expect, and the JSON to paste."""
    from rag_pipeline.evaluation.book import parse_corpus
    from rag_pipeline.evaluation.golden_entry import suggest_entry

    settings = load_settings(docs_dir=docs_dir)
    corpus = parse_corpus(settings.docs_dir, settings.site)
    found = suggest_entry(corpus.documents, text, question=question)
    record = dataclasses.asdict(found)
    print_result(record, json.dumps(record, ensure_ascii=False, indent=1), as_json=as_json)


@commands.command()
def validate(
    site: Annotated[
        str | None,
        typer.Option("--site", help="Check cited addresses too: the built folder, or http://..."),
    ] = None,
    docs_dir: DocsDir = None,
    as_json: AsJson = False,
) -> None:
    """Check that the collection is whole and gives back what it contains; exit 1 if it does not."""
    from functools import partial

    from rag_pipeline.adapters.connect import read_url
    from rag_pipeline.evaluation.validation.addresses import check_built_site, check_served_site
    from rag_pipeline.evaluation.validation.report import (
        report_to_record,
        report_to_text,
        write_results,
    )
    from rag_pipeline.evaluation.validation.suite import run_validation
    from rag_pipeline.retrieval import open_retriever

    settings = load_settings(docs_dir=docs_dir)
    check = None
    if site is not None and site.startswith(("http://", "https://")):
        check = partial(check_served_site, origin=read_url("--site", site))
    elif site is not None:
        if not site or not Path(site).is_dir():
            problem = f"{site!r} is no folder"
            raise ConfigurationError("--site", problem, "Build it with `make site`")
        check = partial(check_built_site, site_dir=Path(site), base_url=settings.site_base_url)
    with open_retriever(settings) as retriever:
        _prepare_file("DATA_DIR", settings.data_dir / "VALIDATION_RESULTS.md")
        report = run_validation(
            retriever, collection_name=settings.qdrant_collection, check_addresses=check
        )
    files = [str(path) for path in write_results(report, settings.data_dir)]
    text = "\n".join([report_to_text(report), *(f"Written: {path}" for path in files)])
    print_result(report_to_record(report) | {"files": files}, text, as_json=as_json)
    if not report.passed:
        raise typer.Exit(1)


def _read_axes(values: list[str], settings: Settings) -> dict[str, list[str]]:
    from rag_pipeline.evaluation.fingerprint import select_settings

    axes: dict[str, list[str]] = {}
    for value in values:
        name, _, choices = value.partition("=")
        if name.lower() not in select_settings(settings) or not choices:
            problem = f"{name[:80]!r} with its values is nothing to sweep over"
            mend = "Write NAME=value,value with a setting of .env.example that moves results"
            raise ConfigurationError("sweep", problem, mend)
        found = axes.setdefault(name.lower(), [])
        found += [choice for choice in choices.split(",") if choice not in found]
    return axes


def _prepare_file(option: str, path: Path) -> None:
    """Raise ConfigurationError if a file cannot be written, before the work that it is for."""
    is_new = not path.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
        if is_new:
            path.unlink()
    except OSError as error:
        problem = f"{path} cannot be written ({error.strerror})"
        raise ConfigurationError(option, problem, "Name a file in a folder of yours") from error
