"""Text for a terminal: results, and the progress of a command."""

from __future__ import annotations

import logging
import sys
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Self

from rag_pipeline.adapters.connect import read_running_ingestion
from rag_pipeline.answering.voice import list_shown
from rag_pipeline.cli.output import tell
from rag_pipeline.core.errors import DOCUMENT_MISSING
from rag_pipeline.ingestion.events import IngestionEvent, ends_document

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from rag_pipeline.answering.checking import ModelCheck
    from rag_pipeline.answering.models import Answer, Passage
    from rag_pipeline.core.models import DocFailure, Figure
    from rag_pipeline.core.rules import CheckReport
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.ingestion.report import IngestionReport
    from rag_pipeline.retrieval.models import Citation, RetrievalResult


_SILENT_S: Final = 10.0
_LOGGER: Final = logging.getLogger("rag_pipeline")


class IngestionProgress(logging.Handler):
    """A progress bar on standard error while documents are ingested.

    Beside the bar is what the ingestion is doing. If standard error is not a terminal, there is no
    bar. In both cases a line says what the ingestion is doing if it does the same for 10 s, and
    warnings of the package are shown.

    Args:
        total: Number of documents that the run will process.
    """

    def __init__(self, total: int) -> None:
        from rich import console, progress  # noqa: PLC0415  # 50 ms, which other commands save

        super().__init__(logging.INFO)
        self._progress = progress.Progress(
            progress.SpinnerColumn(),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeElapsedColumn(),
            progress.TextColumn("{task.description}", markup=False),
            console=console.Console(stderr=True),
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        self._task = self._progress.add_task("starting Dagster", total=total)
        self._activity = ""
        self._begun = time.monotonic()
        self._ended = threading.Event()
        self._level_before = _LOGGER.level

    def __enter__(self) -> Self:
        """Show the progress bar if standard error is a terminal, and begin to watch for waits."""
        self._progress.start()
        _LOGGER.addHandler(self)
        _LOGGER.setLevel(logging.INFO)
        threading.Thread(target=self._watch, name="tell-waits", daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the progress bar."""
        self._ended.set()
        _LOGGER.removeHandler(self)
        _LOGGER.setLevel(self._level_before)
        self._progress.stop()

    def observe(self, event: IngestionEvent) -> None:
        """Advance the bar by one if the event says that a document is indexed or has failed."""
        if ends_document(event):
            self._progress.advance(self._task)

    def emit(self, record: logging.LogRecord) -> None:
        """Show a warning at once, and remember other records as what the ingestion is doing."""
        if record.levelno >= logging.WARNING:
            tell(record.getMessage())  # which begins with the name of the program
        else:
            self._activity, self._begun = record.getMessage(), time.monotonic()
            self._progress.update(self._task, description=self._activity)

    def _watch(self) -> None:
        while not self._ended.wait(_SILENT_S):
            waited_s = time.monotonic() - self._begun
            if self._activity and waited_s >= _SILENT_S:
                tell_note(f"{self._activity} ({waited_s:.0f} s so far)")


def tell_running_ingestion(settings: Settings) -> None:
    """Write a note to standard error if an ingestion of the book is still running."""
    running = read_running_ingestion(settings)
    if running is not None and running.done < running.total:
        tell_note(
            f"an ingestion is running: {running.done} of {running.total} documents are done, so "
            "results may be incomplete"
        )


def tell_note(text: str) -> None:
    """Write one line to standard error, after the name of the program."""
    tell(f"rag-pipeline: {text}")


_TEXT_LINES = 6
_LINE_WIDTH = 100
_LISTED_DOCS = 3  # documents that one line about a failure names


def show_ingestion(report: IngestionReport, docs_dir: str, options: str = "") -> str:
    """Format an ingestion report as text: counts, notes, failures, and what to do next.

    Args:
        report: The report.
        docs_dir: The docs folder.
        options: The options, such as `--docs-dir docs`, that a question about this index needs.
    """
    stages = ", ".join(
        f"{stage} {seconds:.1f}"
        for stage, seconds in report.stage_seconds.items()
        if seconds >= 0.05
    )
    lines = [
        f"Ingested {docs_dir} in {report.duration_s:.1f} s" + (f" ({stages})" if stages else ""),
        (
            f"  documents  {report.docs_discovered} found: {report.docs_processed} processed, "
            f"{report.docs_unchanged} unchanged, {report.docs_deleted} deleted, "
            f"{report.docs_failed} failed"
        ),
        (
            f"  chunks     {report.chunks_created} created, {report.chunks_updated} updated, "
            f"{report.chunks_unchanged} unchanged, {report.chunks_deleted} deleted"
        ),
        (
            f"  embedding  {report.texts_embedded} texts ({report.tokens_embedded} tokens), "
            f"{report.embeddings_reused} reused ({report.tokens_saved} tokens saved), "
            f"${report.cost_usd:.4f}"
        ),
    ]
    counts = {
        "unlisted pages that are not indexed (INDEX_UNLISTED includes them)": report.docs_unlisted,
        "chunks longer than the model's input, embedded in parts": report.chunks_in_parts,
        "MDX expressions without a known value, left out of the text": report.expressions_left_out,
    }
    lines += [f"  note: {what}: {count}" for what, count in counts.items() if count]
    lines += [
        f"  note: pages with a text in `<{name}>` that cannot be read without running code: "
        f"{count}. COMPONENT_TEXT can leave it out"
        for name, count in sorted(report.components_left_out.items())
    ]
    lines += [f"  note: {warning}" for warning in report.warnings]
    lines += [f"  {line}" for line in show_failures(report.failures)]
    is_any_indexed = bool(report.docs_processed or report.docs_unchanged)
    if any(failure.error != DOCUMENT_MISSING for failure in report.failures):
        rest = " All other documents are indexed." if is_any_indexed else ""
        lines.append(f"The next ingest tries failed documents again.{rest}")
    if is_any_indexed:
        query = " ".join(filter(None, ("rag-pipeline query", options, '"..."')))
        lines.append(f"Next: ask a question with the same settings: {query}")
    return "\n".join(lines)


def show_failures(failures: Sequence[DocFailure]) -> list[str]:
    """Format failures as one line for each message, with the documents that it does not name."""
    docs: dict[str, list[str]] = {}
    for failure in failures:
        docs.setdefault(failure.message, []).append(failure.doc_path)
    lines = []
    for message, paths in docs.items():
        shown = ", ".join(paths[:_LISTED_DOCS])
        more = len(paths) - _LISTED_DOCS
        place = "" if paths[0] in message else f"{shown}{f' and {more} more' * (more > 0)}: "
        lines.append(f"FAILED {place}{message}")
    return lines


def show_hits(result: RetrievalResult) -> str:
    """Format the passages that a search found as a numbered list with citations and scores."""
    if not result.chunks:
        return "No passages found. If you used filters, try again without them."
    lines: list[str] = []
    for rank, chunk in enumerate(result.chunks, start=1):
        lines.append(f"{rank}. {show_citation(chunk.citation)}  (score {chunk.score:.3f})")
        lines.extend(f"     {line}" for line in shorten(chunk.text).splitlines())
        lines.append("")
    lines.append(f"{len(result.chunks)} of {result.total_candidates} candidates shown")
    if result.search_question is not None:
        lines.append(f'Note: Showing results for "{result.search_question}".')
    if result.notice:
        lines.append(f"Note: {result.notice}")
    return "\n".join(lines)


def show_quotes(answer: Answer) -> str:
    """Format an answer without a chat model: each passage with its place below, and the notices.

    A refusal is shown as its text.
    """
    blocks = [answer.text]
    if answer.passages:
        shown = [
            "\n".join(
                [
                    f"{passage.text}\n\n  [{passage.number}] {show_citation(passage.citation)}",
                    *(f"      Figure: {_name_figure(one, passage)}" for one in passage.figures),
                ]
            )
            for passage in answer.passages
        ]
        blocks = [text for text in (answer.grounding.message, *shown) if text]
    notes = _show_notices(answer)
    return "\n".join(["\n\n".join(blocks), *([""] if answer.passages and notes else []), *notes])


def _name_figure(figure: Figure, passage: Passage) -> str:
    """Format an image's address, with its caption or alternative text unless the passage has it."""
    if figure.kind != "image":
        return figure.caption or "diagram"
    name = figure.caption or figure.text
    is_quoted = name in " ".join(passage.text.split())
    return figure.address if is_quoted else f"{name}  {figure.address}"


def show_answer_sources(answer: Answer) -> str:
    """Format the text below an answer: the numbered sources and the notices about the answer."""
    lines = [""]  # a line break, because the answer was streamed without one
    if answer.cited_numbers:  # empty for a refusal, which names its sections in the answer text
        lines.append("Sources:")
        lines += [
            f"  [{number}] {show_citation(citation)}"
            for number, citation in answer.numbered_citations.items()
        ]
    return "\n".join([*lines, *_show_notices(answer)])


def _show_notices(answer: Answer) -> list[str]:
    """Format the notices, with advice for a user of the command."""
    shown = [one for one in list_shown(answer) if one.code != "filter_unknown"]  # told already
    lines = [f"Note: {notice.text}" for notice in shown]
    codes = {notice.code for notice in answer.notices}
    if "no_model" in codes:
        lines.append(
            "Note: Set OPENAI_API_KEY, or OPENAI_BASE_URL and ANSWER_MODEL, to get a written "
            "answer."
        )
    return lines


def show_model_check(check: ModelCheck) -> str:
    """Format the check of a model: one line for each question, the measures, and the verdict."""
    lines = [
        f"{entry.outcome:<13} {entry.first_s:6.1f} s to the first text, {entry.total_s:6.1f} s  "
        f"{entry.question}" + (f"  ({entry.error})" if entry.error else "")
        for entry in check.answers
    ]
    fields = [
        ("model", check.model),
        ("prompt", f"at most {check.prompt_tokens} tokens"),
        ("failed", f"{check.failed} of {len(check.answers)}"),
        ("declined", f"{check.declined} that the passages answer"),
        ("grounded", f"{check.grounded_share:.0%} of the written sentences"),
        ("cited", f"{check.cited_share:.0%} of the written sentences, by the model itself"),
    ]
    verdict = "Use it." if check.is_useful else "The quotes are better than this model."
    return "\n".join([*lines, "", show_fields(fields), "", verdict])


def show_citation(citation: Citation) -> str:
    """Format a citation as `title > section  url`, without empty parts and repetitions."""
    return f"{citation.place}  {citation.url}".rstrip()


def show_audit(
    found: CheckReport, left: CheckReport | None = None, failures: Sequence[DocFailure] = ()
) -> str:
    """Format an audit report: one line per finding, the totals, and what to do about the findings.

    After a repair, each line says if the finding was repaired or is left.

    Args:
        found: The findings of the audit.
        left: The findings after the repair; None if nothing was repaired.
        failures: The documents that the repair could not index.
    """
    from rag_pipeline.core.rules import WRONG_MODEL  # noqa: PLC0415  # loads numpy, which most commands do not need

    if left is not None:
        return _show_repair(found, left, failures)
    lines = [*map(str, found.findings), _count_problems(found, len(found.findings))]
    if found.findings:
        advice = "Repair them with `rag-pipeline audit --repair`"
        if any(finding.kind == WRONG_MODEL for finding in found.findings):
            advice += ", or with `rag-pipeline ingest --rebuild` if the embedding model was changed"
        lines.append(f"{advice}.")
    return "\n".join(lines)


def _show_repair(found: CheckReport, left: CheckReport, failures: Sequence[DocFailure]) -> str:
    """Format the findings that a repair fixed, those that are left, and what to do about these."""
    # Only the detail of a finding may differ in two audits.
    remaining = {replace(one, detail="") for one in left.findings}
    repaired = [one for one in found.findings if replace(one, detail="") not in remaining]
    lines = [f"repaired  {finding}" for finding in repaired]
    lines += [f"left      {finding}" for finding in left.findings]
    totals = _count_problems(left, len(found.findings))
    lines.append(f"{totals}, {len(repaired)} repaired, {len(left.findings)} left")
    lines += show_failures(failures)
    if not left.findings:
        lines.append("All problems were repaired.")
    elif failures:
        lines.append("Fix the failed documents, then run `rag-pipeline audit --repair` again.")
    else:
        lines.append(
            "The repair could not read or change these documents. Run `rag-pipeline ingest`, "
            "which says why, then `rag-pipeline audit --repair` again."
        )
    return "\n".join(lines)


def _count_problems(report: CheckReport, problem_count: int) -> str:
    """Format the numbers of documents and points of a report, and a number of problems."""
    size = f"{report.doc_count} documents, {report.point_count} points"
    return f"{size}: {problem_count} problems found"


def show_fields(fields: Sequence[tuple[str, object]]) -> str:
    """Format names and values as two aligned columns, one pair per line."""
    width = max((len(name) for name, _ in fields), default=0)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in fields)


def shorten(text: str) -> str:
    """Return the first 6 lines of a text, each cut to 100 characters; `…` marks what was cut."""
    lines = text.splitlines()
    shown = [
        line if len(line) <= _LINE_WIDTH else line[: _LINE_WIDTH - 1] + "…"
        for line in lines[:_TEXT_LINES]
    ]
    return "\n".join(shown + (["…"] if len(lines) > _TEXT_LINES else []))
