"""What commands show to people: plain text on standard output, progress on standard error.

Belongs here: wording and layout for a terminal. Does not belong here: JSON for machines (cli), web
pages (evaluation).
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rag_pipeline.core.models import DOCUMENT_MISSING, DocFailure, Stage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self

    from rich.progress import Progress, TaskID

    from rag_pipeline.answering.models import Answer
    from rag_pipeline.ingestion.report import IngestionReport
    from rag_pipeline.ingestion.upkeep.audit import AuditReport
    from rag_pipeline.retrieval.models import Citation, RetrievalResult

_TEXT_LINES = 6
_LINE_WIDTH = 100


class IngestionProgress:
    """A bar on standard error while documents are ingested; nothing where that is no terminal."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._progress: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        """Show the bar."""
        if sys.stderr.isatty():
            from rich.console import Console  # noqa: PLC0415  # 50 ms that a piped command saves
            from rich.progress import Progress  # noqa: PLC0415  # the same

            self._progress = Progress(console=Console(stderr=True), transient=True)
            self._progress.start()
            self._task = self._progress.add_task("Ingesting", total=self._total)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the bar."""
        if self._progress is not None:
            self._progress.stop()

    def observe(self, event: object) -> None:
        """Move on by one for each document that is done or has failed."""
        if self._progress is None or self._task is None:
            return
        if isinstance(event, DocFailure) or getattr(event, "stage", None) is Stage.POINTS:
            self._progress.advance(self._task)


def show_ingestion(report: IngestionReport, docs_dir: str) -> str:
    """The ingestion report, and how to go on."""
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
    if report.chunks_in_parts:
        lines.append(
            f"  note: {report.chunks_in_parts} chunks are longer than the model's input and were "
            "embedded in parts"
        )
    lines += [f"  note: {warning}" for warning in report.warnings]
    lines += [f"  FAILED {failure.message}" for failure in report.failures]
    if any(failure.error != DOCUMENT_MISSING for failure in report.failures):
        lines.append("Failed documents are tried again by the next ingest; the others are indexed.")
    if report.docs_processed or report.docs_unchanged:
        lines.append('Ask the book: rag-pipeline query "..." with the same settings')
    return "\n".join(lines)


def show_hits(result: RetrievalResult) -> str:
    """Ranked passages with their place in the book."""
    if not result.chunks:
        return "Nothing found. Filters may exclude everything; try without them."
    lines: list[str] = []
    for rank, chunk in enumerate(result.chunks, start=1):
        lines.append(f"{rank}. {show_citation(chunk.citation)}  (score {chunk.score:.3f})")
        lines.extend(f"     {line}" for line in shorten(chunk.text).splitlines())
        lines.append("")
    lines.append(f"{len(result.chunks)} of {result.total_candidates} candidates")
    if result.notice:
        lines.append(f"Note: {result.notice}")
    return "\n".join(lines)


def show_answer_sources(answer: Answer) -> str:
    """What stands below an answer: sources by number, notices, what was dropped or left uncited."""
    lines = [""]  # ends the answer's last line
    if answer.cited_numbers:  # a refusal names its sections in its own text
        lines.append("Sources:")
        lines += [
            f"  [{number}] {show_citation(citation)}"
            for number, citation in zip(answer.cited_numbers, answer.citations, strict=True)
        ]
    lines += [f"Note: {notice}" for notice in answer.notices]
    return "\n".join(lines)


def show_citation(citation: Citation) -> str:
    """Title, section and link of a citation."""
    place = " > ".join(dict.fromkeys(part for part in (citation.title, citation.section) if part))
    return f"{place}  {citation.url}".rstrip()


def show_audit(report: AuditReport, *, repaired: bool) -> str:
    """What disagrees, a line each, and what to do."""
    from rag_pipeline.ingestion.upkeep.audit import WRONG_MODEL  # noqa: PLC0415  # loads numpy, which most commands do not need

    lines = [
        f"{finding.kind:<14} {finding.doc_path} {finding.chunk_id} {finding.detail}"
        for finding in report.findings
    ]
    lines.append(
        f"{report.doc_count} documents, {report.point_count} points: "
        f"{len(report.findings)} disagreements"
    )
    if report.findings and repaired:
        lines.append("Mended.")
    elif report.findings:
        mend = "Mend them with `rag-pipeline audit --repair`"
        if any(finding.kind == WRONG_MODEL for finding in report.findings):
            mend += ", and those of another model with `rag-pipeline ingest --rebuild`"
        lines.append(f"{mend}.")
    return "\n".join(lines)


def show_fields(fields: Sequence[tuple[str, object]]) -> str:
    """Names and values in two columns."""
    width = max((len(name) for name, _ in fields), default=0)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in fields)


def shorten(text: str) -> str:
    """The first lines of a passage, none wider than a terminal."""
    lines = text.splitlines()
    shown = [
        line if len(line) <= _LINE_WIDTH else line[: _LINE_WIDTH - 1] + "…"
        for line in lines[:_TEXT_LINES]
    ]
    return "\n".join(shown + (["…"] if len(lines) > _TEXT_LINES else []))
