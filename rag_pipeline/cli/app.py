"""The `rag-pipeline` command; with definitions.py the only place that wires parts together.

Standard output holds the result alone, with `--json` one JSON document; everything else goes to
standard error. Exit codes: 0 done, 1 the work fell short, 2 bad usage or configuration. Heavy parts
are imported by the command that needs them, so that a command that finds nothing to do takes well
under a second.
"""

# ruff: noqa: PLC0415  # see above: each command imports its own parts

from __future__ import annotations

import dataclasses
import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_pipeline.cli.output import (
    end_output,
    open_closed_streams,
    print_result,
    tell_failure,
    write_text,
)
from rag_pipeline.core.errors import ConfigurationError, RagPipelineError
from rag_pipeline.core.settings import load_settings

if TYPE_CHECKING:
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.ingestion.changes import IngestionPlan
    from rag_pipeline.ingestion.discovery import Discovery
    from rag_pipeline.ingestion.report import IngestionReport
    from rag_pipeline.ingestion.run import IngestionEnvironment, IngestionRequest
    from rag_pipeline.retrieval.models import Query

_INTERRUPTED = 130  # exit code of a command that Ctrl-C ended

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Turn a Docusaurus book into cited answers.",
)

DocsDir = Annotated[  # as text, for a Path would take '' as the current folder
    str | None,
    typer.Option("--docs-dir", metavar="PATH", help="Folder of the Markdown files [DOCS_DIR]."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
TopK = Annotated[int, typer.Option("--top-k", "-k", help="Number of passages, 1 to 100.")]
Modules = Annotated[list[str] | None, typer.Option("--module", help="Only this module.")]
Chapters = Annotated[list[str] | None, typer.Option("--chapter", help="Only this chapter.")]
Types = Annotated[
    list[str] | None,
    typer.Option("--type", help="Only prose, code, table, lab, quiz or assessment."),
]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="Only documents with this tag.")]


def main() -> None:
    """Run the command; an error is one line that names the culprit and the mend."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends it as Ctrl-C does
    open_closed_streams()
    try:
        code = app(standalone_mode=False)
        if code == _INTERRUPTED:  # what typer makes of an interrupt
            raise KeyboardInterrupt  # noqa: TRY301  # told like one from elsewhere
    except RagPipelineError as error:
        code = tell_failure(error.code, str(error), error.exit_code)
    except typer.Exit as stop:
        code = stop.exit_code
    except (KeyboardInterrupt, typer.Abort):
        goes_on = "; the next ingest goes on from here" if _is_ingesting() else ""
        code = tell_failure("INTERRUPTED", f"stopped{goes_on}", _INTERRUPTED)
    except BrokenPipeError:
        code = 1
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        mend = "Check disk space and permissions"
        code = tell_failure("SYSTEM_ERROR", f"{place}{error.strerror or error}. {mend}", 1)
    except Exception as error:
        usage = getattr(error, "format_message", None)  # click's usage errors, by any click
        if usage is None:
            raise
        told = usage()  # nothing where the help was shown instead
        code = tell_failure("USAGE", f"{told} See `rag-pipeline --help`", 2) if told else 2
    end_output()
    sys.exit(code or 0)


@app.command()
def ingest(
    docs_dir: DocsDir = None,
    rebuild: Annotated[
        bool,
        typer.Option("--rebuild", help="Build a new collection beside the old one, then switch."),
    ] = False,
    roll_back: Annotated[
        bool, typer.Option("--roll-back", help="Put the collection before the last rebuild in use.")
    ] = False,
    prune_cache: Annotated[
        bool, typer.Option("--prune-cache", help="Forget embeddings that no document uses.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Index what changed in the docs folder; what is unchanged costs nothing."""
    from rag_pipeline.orchestration.environment import build_environment

    if roll_back and (rebuild or prune_cache):
        problem = "it builds nothing and forgets nothing"
        raise ConfigurationError("--roll-back", problem, "Leave out --rebuild and --prune-cache")
    settings = load_settings(docs_dir=docs_dir)
    environment = build_environment(settings)
    if roll_back:
        collection_id = environment.catalog.roll_back()
        print_result(
            {"collection_id": collection_id}, f"In use again: {collection_id}", as_json=as_json
        )
        return
    report = _ingest_changes(settings, environment, rebuild=rebuild)
    if prune_cache:
        from rag_pipeline.orchestration.environment import prune_embeddings

        forgotten = prune_embeddings(environment)
        report.warnings.append(f"{forgotten} unused embeddings forgotten")
    _finish_ingest(report, settings, as_json)


@app.command("ingest-doc")
def ingest_doc(
    doc_path: Annotated[str, typer.Argument(help="Path below the docs folder.")],
    docs_dir: DocsDir = None,
    as_json: AsJson = False,
) -> None:
    """Index one document, changed or not; remove it if its file is gone."""
    from rag_pipeline.core.ids import parse_doc_id
    from rag_pipeline.ingestion.run import scan
    from rag_pipeline.orchestration.environment import build_environment

    settings = load_settings(docs_dir=docs_dir)
    environment = build_environment(settings)
    doc_id = parse_doc_id(doc_path.removeprefix("./"))
    _, plan, _ = scan(environment)
    gone = doc_id in plan.delete
    report = _launch(settings, environment, [] if gone else [doc_id], [doc_id] if gone else [], 1)
    _finish_ingest(report, settings, as_json)


@app.command()
def chunks(docs_dir: DocsDir = None, as_json: AsJson = False) -> None:
    """Parse and chunk the docs folder, embedding nothing."""
    from rag_pipeline.ingestion.export import chunk_folder

    settings = load_settings(docs_dir=docs_dir)
    record = chunk_folder(settings.docs_dir, settings.site, settings.chunk_limits)
    documents, found, failures = (
        _as_list(record[key]) for key in ("documents", "chunks", "failures")
    )
    lines = [
        f"{chunk['doc_path']}:{chunk['start_line']}-{chunk['end_line']}  {chunk['token_count']:>4} "
        f"tokens  {chunk['content_type']:<10}  {chunk['section_heading']}"
        for chunk in found
    ]
    lines += [f"FAILED {failure['message']}" for failure in failures]
    lines.append(f"{len(documents)} documents, {len(found)} chunks, {len(failures)} failures")
    print_result(record, "\n".join(lines), as_json=as_json)
    if failures:
        raise typer.Exit(1)


@app.command()
def search(
    question: Annotated[str, typer.Argument(help="What to look for.")],
    top_k: TopK = 5,
    module: Modules = None,
    chapter: Chapters = None,
    content_type: Types = None,
    tag: Tags = None,
    docs_dir: DocsDir = None,
    as_json: AsJson = False,
) -> None:
    """Rank the book's passages for a question, with their places; no answer."""
    from rag_pipeline.cli.terminal import show_hits
    from rag_pipeline.retrieval import Query, QueryFilters, open_retriever

    query = Query(question, filters=QueryFilters(module, chapter, content_type, tag, top_k))
    with open_retriever(load_settings(docs_dir=docs_dir)) as retriever:
        result = retriever.retrieve(query)
    record = {
        "question": question,
        "mode": result.mode.value,
        "total_candidates": result.total_candidates,
        "chunks": [dataclasses.asdict(chunk) for chunk in result.chunks],
    }
    print_result(record, show_hits(result), as_json=as_json)


@app.command()
def query(
    question: Annotated[str, typer.Argument(help="What to ask the book.")],
    top_k: TopK = 5,
    module: Modules = None,
    chapter: Chapters = None,
    content_type: Types = None,
    tag: Tags = None,
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
    from rag_pipeline.retrieval import Mode, Query, QueryFilters

    if even_if_unrelated and selected_text is None:
        problem = "it is about a selected text, and none is given"
        raise ConfigurationError("--even-if-unrelated", problem, "Add --selected-text")
    asked = Query(
        question,
        mode=Mode.NORMAL if selected_text is None else Mode.SELECTED_TEXT_ONLY,
        selected_text=selected_text,
        source_doc_path=source_doc,
        source_section=source_section,
        source_url=source_url,
        filters=QueryFilters(module, chapter, content_type, tag, top_k),
    )
    _answer(asked, load_settings(docs_dir=docs_dir), as_json, even_if_unrelated=even_if_unrelated)


@app.command()
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
    from rag_pipeline.evaluation.report_text import render_text
    from rag_pipeline.orchestration.environment import build_environment

    settings = load_settings(docs_dir=docs_dir)
    if html is not None:
        _prepare_file("--html", html)

    def ingest() -> None:
        ingested = _ingest_changes(settings, build_environment(settings), rebuild=False)
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


@app.command()
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
    from rag_pipeline.evaluation.sweep import make_grid, render_sweep, run_sweep
    from rag_pipeline.orchestration.sweep_cells import check_sweep, evaluate_cell

    settings = load_settings(docs_dir=docs_dir)
    cells = make_grid(_read_axes(values, settings), crossed=crossed)
    check_sweep(settings, cells, test_set)
    result = run_sweep(
        cells,
        lambda cell: evaluate_cell(settings, cell, test_set),
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


@app.command("golden-entry")
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


@app.command()
def validate(
    site: Annotated[
        str | None,
        typer.Option("--site", help="Check cited addresses too: the built folder, or http://..."),
    ] = None,
    docs_dir: DocsDir = None,
    as_json: AsJson = False,
) -> None:
    """Check that what lies in the collection comes back as it must; exit 1 where it does not."""
    from functools import partial

    from rag_pipeline.adapters.connect import read_url
    from rag_pipeline.evaluation.addresses import check_built_site, check_served_site
    from rag_pipeline.evaluation.validation import run_validation
    from rag_pipeline.evaluation.validation_records import report_to_json, report_to_text
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
        report = run_validation(retriever, check_addresses=check)
    print_result(json.loads(report_to_json(report)), report_to_text(report), as_json=as_json)
    if not report.passed:
        raise typer.Exit(1)


@app.command()
def stats(docs_dir: DocsDir = None, as_json: AsJson = False) -> None:
    """Show what the collection in use holds and how it was built."""
    from rag_pipeline.cli.terminal import show_fields
    from rag_pipeline.orchestration.environment import build_environment, read_stats

    record = read_stats(build_environment(load_settings(docs_dir=docs_dir)))
    print_result(record, show_fields(list(record.items())), as_json=as_json)


@app.command()
def audit(
    docs_dir: DocsDir = None,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what is found.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compare ledger, artifacts and store both ways; exit 1 while they disagree."""
    from rag_pipeline.cli.terminal import show_audit
    from rag_pipeline.orchestration.auditing import audit_environment, repair_environment
    from rag_pipeline.orchestration.environment import build_environment

    settings = load_settings(docs_dir=docs_dir)
    environment = build_environment(settings)
    found = audit_environment(environment)

    def launch(request: IngestionRequest) -> None:
        docs, gone = list(request.doc_ids or ()), list(request.delete_ids)
        _launch(settings, environment, docs, gone, len(docs), rewrite=request.rewrite)

    repaired = False
    if repair and found.findings:
        repaired = not repair_environment(environment, found, launch).findings
    record = found.to_json() | {"repaired": repaired}
    print_result(record, show_audit(found, repaired=repaired), as_json=as_json)
    if found.findings and not repaired:
        raise typer.Exit(1)


def _ingest_changes(
    settings: Settings, environment: IngestionEnvironment, *, rebuild: bool
) -> IngestionReport:
    """Find out what changed; where nothing has, neither Dagster nor a model is loaded."""
    from rag_pipeline.ingestion.report import IngestionReport
    from rag_pipeline.ingestion.run import refresh_ledger, scan, sweep_if_idle

    discovery, plan, entries = scan(environment)
    if rebuild:
        return _launch(settings, environment, None, [], len(discovery.docs), rebuild=True)
    if not plan.is_empty:
        return _ingest_in_runs(settings, environment, discovery, plan)
    collection_id = environment.catalog.current_id() or ""
    refresh_ledger(environment.open_ledger(collection_id), plan.unchanged, entries)
    sweep_if_idle(environment, {*entries, *(doc.doc_id for doc in discovery.docs)})
    report = IngestionReport(
        collection_id=collection_id,
        docs_discovered=len(discovery.docs) + len(discovery.failures),
        docs_unchanged=len(plan.unchanged),
        chunks_unchanged=sum(entries[doc.doc_id].chunk_count for doc in plan.unchanged),
    )
    for failure in discovery.failures:
        report.add_failure(failure)
    return report


def _ingest_in_runs(
    settings: Settings,
    environment: IngestionEnvironment,
    discovery: Discovery,
    plan: IngestionPlan,
) -> IngestionReport:
    """Cut a bulk ingestion into runs that bound memory and the event log of each.

    Each document is in one run alone; the last run removes what is gone.
    """
    from rag_pipeline.ingestion.report import IngestionReport

    doc_ids, size = [str(doc.doc_id) for doc in plan.process], environment.max_run_docs
    if len(doc_ids) <= size:
        return _launch(settings, environment, None, [], len(doc_ids))
    report = IngestionReport()
    for start in range(0, len(doc_ids), size):
        page = doc_ids[start : start + size]
        gone = [] if start + size < len(doc_ids) else [str(doc_id) for doc_id in plan.delete]
        report.merge(_launch(settings, environment, page, gone, len(page)))
    for failure in discovery.failures:
        report.add_failure(failure)
    # Each run counts what the runs before it wrote as unchanged: the whole is counted at the end.
    report.docs_discovered = len(discovery.docs) + len(discovery.failures)
    report.docs_unchanged = len(plan.unchanged)
    entries = environment.open_ledger(report.collection_id).entries().values()
    point_count = sum(entry.chunk_count for entry in entries)
    report.chunks_unchanged = point_count - report.chunks_created - report.chunks_updated
    return report


def _launch(
    settings: Settings,
    environment: IngestionEnvironment,
    doc_ids: list[str] | None,
    delete_ids: list[str],
    count: int,
    *,
    rewrite: bool = False,
    rebuild: bool = False,
) -> IngestionReport:
    from rag_pipeline.cli.terminal import IngestionProgress
    from rag_pipeline.ingestion.report import IngestionReport
    from rag_pipeline.orchestration.instance import prepare_dagster_home

    try:
        import dagster  # noqa: F401  # told apart from an error inside the modules below
    except ImportError as error:
        from rag_pipeline.core.errors import MissingDependencyError

        raise MissingDependencyError("dagster", "pipeline") from error
    prepare_dagster_home(settings)
    from rag_pipeline.definitions import build_defs
    from rag_pipeline.orchestration.launch import run_ingest_job
    from rag_pipeline.orchestration.resources import IngestionResource

    outcome: list[object] = []
    with IngestionProgress(count) as progress:

        def observe(event: object) -> None:
            progress.observe(event)
            if isinstance(event, (IngestionReport, RagPipelineError)):
                outcome.append(event)

        watched = dataclasses.replace(environment, observe=observe)
        definitions = build_defs({"ingestion": IngestionResource(build=lambda: watched)})
        run_ingest_job(definitions, doc_ids, delete_ids, rewrite=rewrite, rebuild=rebuild)
    last = outcome[-1] if outcome else None
    if isinstance(last, RagPipelineError):
        raise last
    if not isinstance(last, IngestionReport):
        home = os.environ["DAGSTER_HOME"]
        problem = "the Dagster run ended before ingestion began"
        raise ConfigurationError("DAGSTER_HOME", problem, f"See the runs in {home} with `make dev`")
    return last


def _finish_ingest(report: IngestionReport, settings: Settings, as_json: bool) -> None:
    from rag_pipeline.cli.terminal import show_ingestion

    print_result(report.to_json(), show_ingestion(report, str(settings.docs_dir)), as_json=as_json)
    if report.docs_failed:
        raise typer.Exit(1)


def _answer(asked: Query, settings: Settings, as_json: bool, *, even_if_unrelated: bool) -> None:
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
    """Find out that a file cannot be written before the work that it is to hold."""
    is_new = not path.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
        if is_new:
            path.unlink()
    except OSError as error:
        problem = f"{path} cannot be written ({error.strerror})"
        raise ConfigurationError(option, problem, "Name a file in a folder of yours") from error


def _as_list(value: Any) -> list[dict[str, Any]]:  # noqa: ANN401  # JSON
    return list(value)


def _is_ingesting() -> bool:
    return sys.argv[1:2] in (["ingest"], ["ingest-doc"])


if __name__ == "__main__":
    main()
