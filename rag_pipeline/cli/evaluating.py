"""The commands that measure quality: `evaluate`, `sweep`, `validate` and `review`."""

# ruff: noqa: PLC0415  # each command imports only what it needs, so that it starts fast

from __future__ import annotations

import dataclasses
import errno
import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rag_pipeline.cli.ingesting import ingest_and_tell, open_ingestion
from rag_pipeline.cli.initializing import load_book, load_book_or_site
from rag_pipeline.cli.options import AsJson, DocsDir, DocsPlugin, RunConfig, SiteDir, TestSet
from rag_pipeline.cli.output import print_result, tell
from rag_pipeline.core.errors import ConfigurationError

if TYPE_CHECKING:
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.evaluation.book import BookEvaluation
    from rag_pipeline.evaluation.pages import Block
    from rag_pipeline.evaluation.validation import ValidationSuiteReport

commands = typer.Typer()


@commands.command()
def evaluate(
    test_set: TestSet = None,
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
    from rag_pipeline.evaluation.book import evaluate_book
    from rag_pipeline.evaluation.pages import to_text
    from rag_pipeline.evaluation.records import Answering
    from rag_pipeline.evaluation.rendering import describe_gates

    settings = load_book(docs_dir)
    chosen = {None: Answering.QUOTED, True: Answering.CONFIGURED, False: Answering.NONE}
    if html is not None:
        prepare_file("--html", html)

    evaluation = evaluate_book(
        settings,
        test_set,
        accept_baseline=accept,
        paraphrased=paraphrased,
        answering=chosen[answers],
        ingest=lambda: ingest_and_tell(settings),
    )
    page = evaluation.folder / "report.html"
    if html is not None:
        write_file(html, page.read_text(encoding="utf-8"))
    record = {
        "passed": evaluation.passed,
        "gates": [dataclasses.asdict(gate) for gate in evaluation.gates],
        "report": json.loads((evaluation.folder / "report.json").read_bytes()),
        "answers": dataclasses.asdict(evaluation.answers) if evaluation.answers else None,
    }
    text = to_text(describe_gates(evaluation.report, evaluation.gates)) + "\n"
    shows_measures = verbose or not evaluation.gates
    if shows_measures:
        blocks: list[Block] = [*evaluation.report.describe_measures()]
        if evaluation.answers is not None:
            blocks.append(evaluation.answers.describe())
        text += f"\n{to_text(blocks)}\n"
    text += f"Report: {html or page}"
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
    test_set: TestSet = None,
    docs_dir: DocsDir = None,
    as_json: AsJson = False,
) -> None:
    """Compare values of settings by search quality, with half of the golden set's questions.

    That half is the tuning half; the other half is kept for reports. The command builds a separate
    collection for the current settings and for each variant, and does not change the book's own. It
    names a winner only if the difference is statistically significant.
    """
    from rag_pipeline.evaluation.book import describe_sweep, sweep_book
    from rag_pipeline.evaluation.pages import to_text

    settings = load_book(docs_dir)
    axes = _read_axes(values, settings)
    result = sweep_book(
        settings, axes, test_set, open_ingestion, lambda name: tell(f"evaluating {name}")
    )
    text = to_text(describe_sweep(result))
    print_result(dataclasses.asdict(result), text, as_json=as_json)


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
    """Audit the collection, and check that searches find the chunks they should.

    Exits with code 1 if a check fails. Writes the results to three files in DATA_DIR.
    """
    from rag_pipeline.evaluation.pages import to_text
    from rag_pipeline.evaluation.validation import (
        describe_validation,
        write_results,
    )

    settings = load_book(docs_dir)
    site = check_site("--site", site)
    prepare_file("DATA_DIR", settings.state_dir / "VALIDATION_RESULTS.md")
    report = _validate(settings, site)
    files = [str(path) for path in write_results(report, settings.state_dir)]
    text = "\n".join(
        [to_text(describe_validation(report)), *(f"Written: {path}" for path in files)]
    )
    print_result(report.to_json() | {"files": files}, text, as_json=as_json)
    if not report.passed:
        raise typer.Exit(1)


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
    test_set: TestSet = None,
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
    from rag_pipeline.evaluation.book import check_libraries
    from rag_pipeline.evaluation.records import dump_record
    from rag_pipeline.evaluation.review import build_review, load_review, render_review

    settings, _ = load_book_or_site(
        docs_dir, site, docs_plugin, run_config=run_config, may_ask=False
    )
    check_libraries()
    earlier = load_review(before) if before else None
    built_site = check_site("--built-site", built_site)
    if write is not None:
        prepare_file("--write", write)
    ingested = ingest_and_tell(settings)
    validated = _validate(settings, built_site)
    found = build_review(ingested, validated, _measure_search(settings, test_set))
    data = dump_record(found)
    if write is not None:
        write_file(write, data.decode())
    record = json.loads(data) | {"passed": found.passed}
    print_result(record, render_review(found, earlier).rstrip(), as_json=as_json)
    if not found.passed:
        raise typer.Exit(1)


def _validate(settings: Settings, site: str | None) -> ValidationSuiteReport:
    """Audit the collection, query its own content, and check cited addresses in a built site."""
    from rag_pipeline.evaluation.validation import run_validation
    from rag_pipeline.ingestion.audit import audit_known
    from rag_pipeline.retrieval import open_retriever

    audited = audit_known(open_ingestion(settings))
    with open_retriever(settings) as retriever:
        return run_validation(retriever, settings, audited, site)


def _measure_search(settings: Settings, test_set: Path | None) -> BookEvaluation | None:
    """Ask the questions of the book's golden set; None if the book has none."""
    from rag_pipeline.core.settings.rules import OWN_DOCS_DIR
    from rag_pipeline.evaluation.book import evaluate_book
    from rag_pipeline.evaluation.records import Answering

    is_named = test_set is not None or settings.evaluation_test_set
    if not is_named and settings.docs_dir.resolve() != OWN_DOCS_DIR:
        return None
    return evaluate_book(settings, test_set, answering=Answering.NONE)


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


def check_site(option: str, site: str | None) -> str | None:
    """Check that an option names the folder of a built site or the URL of a served one, if any.

    Raises:
        ConfigurationError: There is no such folder, or the URL is invalid.
    """
    from rag_pipeline.adapters.http import read_url

    if site is None or (site and Path(site).is_dir()):
        return site
    if site.startswith(("http://", "https://")):
        return read_url(option, site)
    problem = f"{site!r} is not a folder"
    raise ConfigurationError(option, problem, "Build the site with `npm run build` in its folder")


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
