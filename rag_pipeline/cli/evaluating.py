"""The commands that measure quality, such as `evaluate`, `sweep` and `validate`."""

# ruff: noqa: PLC0415  # each command imports only what it needs, so that it starts fast

from __future__ import annotations

import dataclasses
import errno
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag_pipeline.cli.indexing import ingest_and_tell, open_ingestion
from rag_pipeline.cli.loading import load_book, load_index
from rag_pipeline.cli.options import AsJson, DocsDir
from rag_pipeline.cli.output import print_result
from rag_pipeline.core.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rag_pipeline.core.settings import Settings
    from rag_pipeline.evaluation.validation.report import AddressReport

commands = typer.Typer()


@commands.command()
def evaluate(
    test_set: Annotated[
        Path | None,
        typer.Option(
            "--test-set",
            help=(
                "JSON file with the golden set. Default: the setting EVALUATION_TEST_SET, or else "
                "the questions about this repository's textbook."
            ),
        ),
    ] = None,
    docs_dir: DocsDir = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Also write the HTML report to this file.")
    ] = None,
    accept: Annotated[
        bool,
        typer.Option("--accept", help="Save this result as the baseline of later evaluations."),
    ] = False,
    paraphrased: Annotated[
        bool, typer.Option("--paraphrased", help="Use the harder wordings; check no gates.")
    ] = False,
    answers: Annotated[
        bool | None,
        typer.Option(
            "--answers/--no-answers",
            help=(
                "Let the chat model write the answers, if one is set; or measure only the search. "
                "Default: answer without a model."
            ),
        ),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also print all measures.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Index changed documents, then measure search and answers with a golden set of questions.

    Prints the verdict and the quality gates. Exits with code 1 if a quality gate fails. Writes a
    report as HTML and JSON.
    """
    from rag_pipeline.evaluation.book import Answering, evaluate_book
    from rag_pipeline.evaluation.rendering import render_answers, render_text, render_verdict

    settings = load_book(docs_dir)
    answering = Answering.QUOTED
    if answers is not None:
        answering = Answering.CONFIGURED if answers else Answering.NONE
    if html is not None:
        prepare_file("--html", html)

    evaluation = evaluate_book(
        settings,
        test_set,
        accept_baseline=accept,
        paraphrased=paraphrased,
        answering=answering,
        ingest=lambda: ingest_and_tell(settings),
    )
    if html is not None:
        write_file(html, evaluation.files.html_path.read_text(encoding="utf-8"))
    record = {
        "passed": evaluation.passed,
        "gates": [dataclasses.asdict(gate) for gate in evaluation.gates],
        "report": json.loads(evaluation.files.json_path.read_bytes()),
        "answers": dataclasses.asdict(evaluation.answers) if evaluation.answers else None,
    }
    text = render_verdict(evaluation.report, evaluation.gates)
    shows_measures = verbose or not evaluation.gates
    if shows_measures:
        text += f"\n{render_text(evaluation.report)}"
        if evaluation.answers is not None:
            text += render_answers(evaluation.answers, evaluation.report.latency)
    text += f"Report: {html or evaluation.files.html_path}"
    if not shows_measures:
        text += "\nThe measures are in the report. --verbose prints them too."
    print_result(record, text, as_json=as_json)
    if not evaluation.passed:
        raise typer.Exit(1)


@commands.command()
def sweep(
    values: Annotated[
        list[str],
        typer.Argument(help="Settings with values to try: CHUNK_TARGET_TOKENS=300,500,700 ..."),
    ],
    crossed: Annotated[
        bool,
        typer.Option(
            "--crossed", help="Try every combination; the default changes one setting at a time."
        ),
    ] = False,
    test_set: Annotated[
        Path | None, typer.Option("--test-set", help="JSON file with the golden set.")
    ] = None,
    docs_dir: DocsDir = None,
    as_json: AsJson = False,
) -> None:
    """Compare values of settings by search quality, with half of the golden set's questions.

    That half is the tuning half; the other half is kept for reports. The command builds a separate
    collection for the current settings and for each variant, and does not change the book's own. It
    names a winner only if the difference is statistically significant.
    """
    from rag_pipeline.evaluation.sweep import (
        check_sweep,
        evaluate_cell,
        make_grid,
        render_sweep,
        run_sweep,
    )

    settings = load_book(docs_dir)
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


@commands.command("report-feedback")
def report_feedback(
    html: Annotated[
        Path | None,
        typer.Option(
            "--html", help="File to write. Default: feedback.html in the book's state folder."
        ),
    ] = None,
    docs_dir: DocsDir = None,
    as_json: AsJson = False,
) -> None:
    """Write an HTML page about the question log: levels, unanswered questions and ratings.

    The page groups the questions that the book did not answer and names the sections nearest to
    them. It has a download of all questions as CSV.
    """
    from rag_pipeline.evaluation.feedback import list_feedback_numbers, read_log
    from rag_pipeline.evaluation.feedback import report_feedback as count_feedback
    from rag_pipeline.evaluation.feedback_page import write_page

    settings = load_index(docs_dir)
    if html is not None:
        prepare_file("--html", html)
    entries = read_log(settings)
    if entries is None:
        raise ConfigurationError("QUESTION_LOG_DAYS", "it is 0", "Set the number of days to keep")
    path = write_page(settings, entries, path=html)
    report = count_feedback(entries.answers, entries.ratings)
    text = (
        f"{report.answer_count} answers, {report.unanswered_count} not fully answered\nPage: {path}"
    )
    record = {"page": str(path), **list_feedback_numbers(report), "by_level": report.by_level}
    print_result(record, text, as_json=as_json)


@commands.command()
def validate(
    site: Annotated[
        str | None,
        typer.Option(
            "--site",
            help="Also check that cited links exist: folder of the built site, or its URL.",
        ),
    ] = None,
    docs_dir: DocsDir = None,
    as_json: AsJson = False,
) -> None:
    """Check the stored data of the collection, and that searches find the chunks they should.

    Exits with code 1 if a check fails. Writes the results to three files in DATA_DIR.
    """
    from rag_pipeline.evaluation.validation.report import (
        report_to_record,
        report_to_text,
        write_results,
    )
    from rag_pipeline.evaluation.validation.suite import run_validation
    from rag_pipeline.retrieval import open_retriever

    settings = load_book(docs_dir)
    check = make_address_check("--site", site, settings)
    with open_retriever(settings) as retriever:
        prepare_file("DATA_DIR", settings.state_dir / "VALIDATION_RESULTS.md")
        report = run_validation(
            retriever, collection_name=settings.qdrant_collection, check_addresses=check
        )
    files = [str(path) for path in write_results(report, settings.state_dir)]
    text = "\n".join([report_to_text(report), *(f"Written: {path}" for path in files)])
    print_result(report_to_record(report) | {"files": files}, text, as_json=as_json)
    if not report.passed:
        raise typer.Exit(1)


def _read_axes(values: list[str], settings: Settings) -> dict[str, list[str]]:
    """Parse arguments like `CHUNK_TARGET_TOKENS=300,500` into values by setting name.

    Returns:
        The setting's name in lower case, with its values as texts, for each named setting. Repeated
        values are left out.

    Raises:
        ConfigurationError: An argument has no value, or names a setting that cannot affect results.
    """
    from rag_pipeline.evaluation.records import select_settings

    axes: dict[str, list[str]] = {}
    for value in values:
        name, _, choices = value.partition("=")
        if name.lower() not in select_settings(settings) or not choices:
            problem = f"{name[:80]!r} is not a setting that affects results, or has no values"
            remedy = "Write NAME=value,value with a setting from .env.example"
            raise ConfigurationError("sweep", problem, remedy)
        found = axes.setdefault(name.lower(), [])
        found += [choice for choice in choices.split(",") if choice not in found]
    return axes


def make_address_check(
    option: str, site: str | None, settings: Settings
) -> Callable[[Iterable[str]], AddressReport] | None:
    """Return the check of cited addresses for a built site; None without a site.

    Args:
        option: The option that names the site, for the error message.
        site: Folder of the built site, or its URL.
        settings: The settings of the book.

    Raises:
        ConfigurationError: There is no such folder, or the URL is invalid.
    """
    from functools import partial

    from rag_pipeline.adapters.http import read_url
    from rag_pipeline.evaluation.validation.report import check_built_site, check_served_site

    if site is None:
        return None
    if site.startswith(("http://", "https://")):
        return partial(check_served_site, origin=read_url(option, site))
    if not site or not Path(site).is_dir():
        problem = f"{site!r} is not a folder"
        raise ConfigurationError(
            option, problem, "Build the site with `npm run build` in its folder"
        )
    return partial(check_built_site, site_dir=Path(site), base_url=settings.site.base_url)


def write_file(path: Path, text: str) -> None:
    """Write a file that an option names. A link with its name is replaced and not followed."""
    from rag_pipeline.core.site.files import write_site_file

    write_site_file(path.parent, path.name, text)


def prepare_file(option: str, path: Path) -> None:
    """Check that a file can be written, before a long computation whose result goes into the file.

    Creates the parent folder if it is missing. The file itself is neither created nor changed.

    Args:
        option: Option or setting that names the file, for the error message.
        path: The file.

    Raises:
        ConfigurationError: The file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        problem = f"{path} cannot be written ({error.strerror})"
        raise ConfigurationError(option, problem, "Choose a file that you can write") from error
