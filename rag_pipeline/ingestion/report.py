"""What an ingestion did, why it did so, and the documents and chunks of a folder as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.ids import DocId, to_json
from rag_pipeline.core.models import DocFailure, Stage
from rag_pipeline.core.settings.rules import OPEN, SITE_FIELDS
from rag_pipeline.core.sources import DEFAULT_EDITION, Source, find_source
from rag_pipeline.ingestion.chunking import chunk_doc
from rag_pipeline.ingestion.discovery import discover_docs
from rag_pipeline.ingestion.events import DocDeleted, RunEnded, RunPlanned, StageDone
from rag_pipeline.ingestion.parsing import parse_docs
from rag_pipeline.ingestion.planning import Scan, find_ledger
from rag_pipeline.ingestion.site.detection import name_some

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rag_pipeline.core.models import Chunk, ChunkLimits, Document, JsonValue, SiteSettings
    from rag_pipeline.ingestion.context import IngestionContext
    from rag_pipeline.ingestion.events import IngestionEvent


@dataclass(slots=True)
class IngestionReport:
    """The totals of one ingestion, updated while it runs.

    Attributes:
        docs_discovered: Number of documents in the docs folder, including unreadable files.
        docs_draft: Number of files with `draft: true`, which are not indexed.
        docs_unlisted: Number of files with `unlisted: true` that are not indexed.
        docs_processed: Number of documents whose points this run has brought up to date.
        chunks_unchanged: Number of points that were not written because they were up to date,
            including the points of unchanged documents.
        chunks_in_parts: Number of chunks that are longer than the embedding model's input. Such a
            chunk is embedded in parts, and its vector is the mean over the parts.
        expressions_left_out: Number of MDX expressions without a known value, such as `{version}`.
            The text of the chunks leaves them out.
        components_left_out: Number of pages with a text of a component that cannot be read without
            running code, by the component's name.
        tokens_embedded: cl100k_base tokens of the chunks whose texts were sent to the model.
        tokens_saved: cl100k_base tokens of the chunks whose vectors were reused.
        cost_usd: Price of `tokens_embedded` in US dollars according to the configured prices; 0
            for the local model.
        stage_seconds: Seconds per stage, summed over the documents.
        failures: Documents that failed, with the reasons. The next ingestion tries them again.
        warnings: Notes for the user, such as the number of cache entries that were deleted.
    """

    run_id: str = ""
    collection_id: str = ""
    docs_discovered: int = 0
    docs_draft: int = 0
    docs_unlisted: int = 0
    docs_processed: int = 0
    docs_unchanged: int = 0
    docs_failed: int = 0
    docs_deleted: int = 0
    chunks_created: int = 0
    chunks_updated: int = 0
    chunks_unchanged: int = 0
    chunks_deleted: int = 0
    chunks_in_parts: int = 0
    expressions_left_out: int = 0
    texts_embedded: int = 0
    embeddings_reused: int = 0
    tokens_embedded: int = 0
    tokens_saved: int = 0
    requests: int = 0
    retries: int = 0
    cost_usd: float = 0.0
    duration_s: float = 0.0
    stage_seconds: dict[str, float] = field(
        default_factory=lambda: {stage.value: 0.0 for stage in Stage}
    )
    components_left_out: dict[str, int] = field(default_factory=dict)
    failures: list[DocFailure] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def add(self, event: IngestionEvent) -> None:
        """Add the figures of one event of a run to the totals.

        Several runs may follow each other, each for other documents of the same docs folder. The
        numbers of discovered and unchanged documents are those of the last run.
        """
        if isinstance(event, RunPlanned):
            scan, unchanged = event.scan, event.unchanged
            self.run_id, self.collection_id = event.run_id, scan.collection_id
            self.docs_discovered = len(scan.discovery.docs) + len(scan.discovery.failures)
            self.docs_unchanged = len(unchanged)
            self.docs_draft = len(scan.discovery.drafts)
            self.docs_unlisted = len(scan.discovery.unlisted)
            self._warn(scan.discovery.notes)
            self.chunks_unchanged += sum(scan.entries[doc.doc_id].chunk_count for doc in unchanged)
        elif isinstance(event, StageDone):
            for count in event.counts.keys() & _SUMMED:
                name = _NAMED_OTHERWISE.get(count, count)
                setattr(self, name, getattr(self, name) + event.counts[count])
            self.stage_seconds[event.stage.value] += float(event.counts.get("duration_s", 0.0))
            for name in str(event.counts.get("components_left_out", "")).split():
                self.components_left_out[name] = self.components_left_out.get(name, 0) + 1
            self.docs_processed += event.stage is Stage.POINTS
            self._warn(event.warnings)
        elif isinstance(event, DocFailure):
            self.docs_failed += 1
            self.failures.append(event)
        elif isinstance(event, DocDeleted):
            self.docs_deleted += 1
            self.chunks_deleted += event.point_count
        elif isinstance(event, RunEnded):
            self.duration_s += event.duration_s
            self._warn(event.warnings)

    def _warn(self, warnings: Iterable[str]) -> None:
        self.warnings += [one for one in warnings if one not in self.warnings]

    def to_json(self) -> dict[str, JsonValue]:
        """Return the report as a JSON object, with seconds rounded to three decimals."""
        record = asdict(self)
        record["duration_s"] = round(self.duration_s, 3)
        record["cost_usd"] = round(self.cost_usd, 6)
        record["stage_seconds"] = {
            stage: round(seconds, 3) for stage, seconds in self.stage_seconds.items()
        }
        return record


def chunk_folder(
    docs_dir: Path,
    site: SiteSettings,
    limits: ChunkLimits,
    manifest: Path | None = None,
    sources: Sequence[Source] = (),
) -> dict[str, JsonValue]:
    """Find, parse and chunk the documents of a docs folder, without a model or a store.

    Args:
        docs_dir: The docs folder.
        site: Settings of the built site, for the page addresses.
        limits: Chunk sizes.
        manifest: The `rag-manifest.json` of the built site, if it has one.
        sources: The sources of the book; empty if it has only its docs folder.

    Returns:
        A JSON object with the lists `documents`, `chunks` and `failures`, each in the order of
        document paths. An unchanged folder always gives an equal result.

    Raises:
        DocsFolderError: The folder is missing, unreadable or contains no Markdown file.
    """
    discovery = discover_docs(
        docs_dir, manifest=manifest, sources=sources, with_unlisted=site.index_unlisted
    )
    documents: list[JsonValue] = []
    chunks: list[JsonValue] = []
    failures = list(discovery.failures)
    for parsed in parse_docs(discovery.docs, site, failures):
        documents.append(document_record(parsed.document))
        chunks.extend(chunk_record(chunk) for chunk in chunk_doc(parsed, limits))
    failures.sort(key=lambda failure: failure.doc_path)
    return {
        "documents": documents,
        "chunks": chunks,
        "failures": [
            {"doc_path": one.doc_path, "error": one.error, "message": one.message}
            for one in failures
        ],
    }


def document_record(document: Document) -> dict[str, JsonValue]:
    """Return the metadata and headings of a document, without its text, as a JSON object."""
    record: dict[str, JsonValue] = to_json(document)
    if document.edition == DEFAULT_EDITION:
        del record["edition"]
    return record


_NOT_PRINTED: Final = {"start_byte", "content_start_byte", "end_byte"}
_MAY_LACK: Final = {"sources", "tabs", "figures"}
"""Fields of a chunk that its JSON object leaves out if they are empty."""


def chunk_record(chunk: Chunk) -> dict[str, JsonValue]:
    """Return a chunk as a JSON object.

    Line numbers count from 1 and are inclusive. The offsets of `blocks` refer to the chunk's text.
    """
    return {
        name: value
        for name, value in to_json(chunk).items()
        if name not in _NOT_PRINTED and (value or name not in _MAY_LACK)
    }


_PLACES: Final = {"folder", "fallback", "prefix"}


def list_changes(context: IngestionContext, scan: Scan) -> list[str]:
    """Return what changed on the site since the last ingestion, as sentences for the report.

    Call it before the ingestion, which records the site as it is then.
    """
    settings, ledger = context.settings, find_ledger(context, scan)
    recorded = ledger.read_site() if ledger else None
    if recorded is None:
        return []
    lines = []
    for name in SITE_FIELDS:
        old, new = (getattr(one, name) for one in (recorded.site, settings.site))
        if old != new:
            unset = "/" if name == "route_base_path" else OPEN
            shown = f"was {_show(old, unset)} and is {_show(new, unset)}"
            lines.append(f"The site changed: SITE_{name.upper()} {shown}")
    before, now = dict[str, Source](), dict[str, Source]()
    if recorded.sources or settings.sources:
        before = _by_prefix(recorded.sources, recorded.site)
        now = _by_prefix(settings.sources or (), settings.site)
        lines += _compare_sources(before, now)
        lines += _list_sources("not part of it any more", before, now)
        lines += _list_sources("new", now, before)
    if not lines:
        return []
    again, added = [], []
    for doc in scan.process:
        entry = scan.entries.get(doc.doc_id)
        if entry is None:
            added.append(doc.doc_id)
        elif entry.sha256 == doc.sha256:
            again.append(doc.doc_id)
    lines += _list_pages("indexed again with an unchanged text", again)
    lines += _list_pages("new", _choose_pages(added, now, before))
    lines += _list_pages("removed", _choose_pages(scan.delete, before, now))
    return lines


def _by_prefix(sources: Sequence[Source], site: SiteSettings) -> dict[str, Source]:
    """Return the sources by prefix; without any, the docs folder is one."""
    docs = Source(
        name="docs", folder=Path(), prefix="", route_base_path=site.route_base_path.strip("/")
    )
    return {source.prefix: source for source in sources or (docs,)}


def _compare_sources(before: dict[str, Source], now: dict[str, Source]) -> Iterator[str]:
    """Yield a sentence for each way in which sources changed, with the sources that did."""
    changed: dict[str, list[str]] = {}
    for prefix in before.keys() & now.keys():
        old, new = before[prefix], now[prefix]
        parts = [
            f"{name} was {_show(old_value, 'not set')} and is {_show(new_value, 'not set')}"
            for name in (field.name for field in fields(Source) if field.name not in _PLACES)
            if (old_value := getattr(old, name)) != (new_value := getattr(new, name))
        ]
        if parts:
            changed.setdefault(", ".join(parts), []).append(str(new))
    for what, names in sorted(changed.items()):
        yield f"The site changed: of {name_some(sorted(names))}, {what}"


def _list_sources(what: str, these: dict[str, Source], others: dict[str, Source]) -> Iterator[str]:
    names = sorted(str(these[prefix]) for prefix in these.keys() - others.keys())
    if names:
        verb = "is" if len(names) == 1 else "are"
        yield f"The site changed: {name_some(names)} {verb} {what}"


def _choose_pages(
    doc_ids: Iterable[DocId], these: dict[str, Source], others: dict[str, Source]
) -> list[DocId]:
    """Return the documents of sources that the others lack, or that choose other files there."""
    chosen, sources = [], tuple(these.values())
    for doc_id in doc_ids:
        source = find_source(sources, doc_id)
        other = others.get(source.prefix) if source else None
        if source and (source.include, source.exclude) != (
            (other.include, other.exclude) if other else ()
        ):
            chosen.append(doc_id)
    return chosen


def _list_pages(what: str, doc_ids: Sequence[DocId]) -> Iterator[str]:
    if doc_ids:
        count = "1 page is" if len(doc_ids) == 1 else f"{len(doc_ids)} pages are"
        yield f"For this, {count} {what}: {name_some(doc_ids)}"


def _show(value: object, unset: str) -> str:
    if value is None or value == "":
        return unset
    if isinstance(value, tuple):
        return " ".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


_NUMBERS: Final = {one.name for one in fields(IngestionReport) if one.type in {"int", "float"}}
_NAMED_OTHERWISE: Final = {"tokens_reused": "tokens_saved", "windowed_chunks": "chunks_in_parts"}
"""Counts of a `StageDone` event that the report sums in a field with another name."""

_SUMMED: Final = _NUMBERS - {"duration_s"} | _NAMED_OTHERWISE.keys()
