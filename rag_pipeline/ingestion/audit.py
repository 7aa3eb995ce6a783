"""Compare the docs folder, the database and the vector store, and repair what differs.

Other processes may use the index meanwhile, so differences are checked again under the lock. A
repair indexes the documents again, then deletes points that belong to no document.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from rag_pipeline.core.errors import (
    DocsFolderError,
    RagPipelineError,
    StoreDamagedError,
    StoreError,
    StoreLockedError,
    StoreUnavailableError,
)
from rag_pipeline.core.ids import DocId, PointId, hash_text, make_chunk_id, to_point_id
from rag_pipeline.core.models import ContentType
from rag_pipeline.core.payload import build_payload
from rag_pipeline.core.protocols import PointFilter
from rag_pipeline.core.rules import STRAY, WRONG_MODEL, CheckReport, Finding, check_documents
from rag_pipeline.ingestion import planning
from rag_pipeline.ingestion.chunking import chunk_doc
from rag_pipeline.ingestion.context import IngestionContext, IngestionRequest
from rag_pipeline.ingestion.discovery import Discovery
from rag_pipeline.ingestion.events import RunPlanned
from rag_pipeline.ingestion.parsing import parse_doc
from rag_pipeline.ingestion.report import IngestionReport
from rag_pipeline.ingestion.run import compute_data_version
from rag_pipeline.ingestion.site.detection import check_sources
from rag_pipeline.ingestion.stages import split_chunks

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from rag_pipeline.core.models import Chunk, DiscoveredDoc, Document, JsonValue, Payload
    from rag_pipeline.core.protocols import LedgerEntry, StoredPoint, VectorIndex
    from rag_pipeline.core.vectors import ChunkVectors, SparseVector
    from rag_pipeline.ingestion.planning import Scan


_COSINE_TOLERANCE: Final = 1e-3  # stores round the numbers and normalize again
_PAGE_CHUNKS: Final = 512
_OPENING_CHUNKS: Final = 8_192  # the embedded store maps what is read, until it is closed
_GIVE_WAY_S: Final = 0.3  # a process that waits for the store tries to open it every 0.25 s
_STRAY_FIELDS: Final = ("doc_path", "chunk_id")
_NO_POINT: Final = "the chunk has no point in the store"
_OTHER_VECTORS: Final = "the point's vectors differ from those that were computed for the chunk"

_Page: TypeAlias = "list[tuple[LedgerEntry, DiscoveredDoc | None]]"
"""Indexed documents that are read together, with their files if they can be read."""

_Read: TypeAlias = "Callable[[Sequence[PointId]], Mapping[PointId, StoredPoint]]"
"""A function that returns at least those of the named points that the store has."""


def check_indexed(
    context: IngestionContext, doc_ids: Collection[DocId] | None = None
) -> Iterator[tuple[DocId, tuple[Finding, ...]]]:
    """Yield indexed documents with the rules that they break, read from the docs folder and store.

    A document whose file changed since it was indexed, or cannot be read any more, is left out.

    Args:
        context: The settings and services.
        doc_ids: The documents to check; None for all.

    Raises:
        StoreUnavailableError: The store is not reachable, or another process has it open.
    """
    scan = planning.scan_docs(context)
    unchanged = [doc.doc_id for doc in scan.unchanged if doc_ids is None or doc.doc_id in doc_ids]
    limits, dim = context.settings.chunk_limits, context.space.model.dim
    if not unchanged:
        return
    with closing(context.services.catalog.open(scan.collection_id)) as store:
        for page in _list_pages(scan, unchanged):
            chunks = {}
            for entry, doc in page:
                with suppress(RagPipelineError, OSError):
                    assert doc is not None  # noqa: S101  # it is unchanged
                    parsed = parse_doc(doc, context.settings.site)
                    chunks[entry.doc_id] = chunk_doc(parsed, limits)
            if chunks:  # an empty filter would match all points
                points = store.scroll(PointFilter.any_of(doc_path=tuple(chunks)), with_vectors=True)
                yield from check_documents(chunks, points, limits, dim).items()


def _list_pages(scan: Scan, doc_ids: Iterable[DocId]) -> Iterator[_Page]:
    """Yield documents of the ledger in pages of about 512 chunks; one empty page if there are none.

    A document with more chunks is a page of its own.
    """
    docs = {doc.doc_id: doc for doc in scan.discovery.docs}
    page: _Page = []
    size = 0
    for entry in [scan.entries[doc_id] for doc_id in sorted(doc_ids)]:
        if page and size + entry.chunk_count > _PAGE_CHUNKS:
            yield page
            page, size = [], 0
        page.append((entry, docs.get(entry.doc_id)))
        size += entry.chunk_count
    yield page


def audit_collection(context: IngestionContext, scan: Scan) -> CheckReport:
    """Compare the points in the store with the points that the documents require.

    The chunks of an unchanged file are computed again. A file that has changed since it was
    indexed is compared with the hash of its payloads and with its vectors, both in the database.

    About 512 chunks are in memory at a time. The store is closed after each 8,192 chunks, or
    earlier if another process waits for it. An ingestion that runs at the same time can cause
    findings that are not real; check them with `confirm_findings`.
    """
    findings: list[Finding] = []
    known_count = total = 0
    catalog, collection_id = context.services.catalog, scan.collection_id
    pages = _list_pages(scan, scan.entries)
    page = next(pages, None)
    while page is not None:
        room = _OPENING_CHUNKS
        with closing(catalog.open(collection_id)) as store:
            while page is not None and room > 0:
                found, count = _audit_page(context, collection_id, page, store)
                findings += found
                known_count += count
                room = 0 if catalog.is_wanted() else room - count
                page = next(pages, None)
            total = store.count()
        if page is not None and catalog.is_wanted():
            time.sleep(_GIVE_WAY_S)
    if total != known_count:
        with closing(catalog.open(collection_id)) as store:
            findings += _find_unknown(store.scroll_fields(_STRAY_FIELDS), scan)
    point_count = sum(entry.chunk_count for entry in scan.entries.values())
    return CheckReport(collection_id, len(scan.entries), point_count, tuple(findings))


def confirm_findings(
    context: IngestionContext, scan: Scan, found: Sequence[Finding]
) -> list[Finding]:
    """Check the documents and points of earlier findings again.

    The caller holds the ingestion lock, so that no ingestion writes during the check.

    Args:
        context: The settings and services.
        scan: The docs folder and the ledger as they are now.
        found: Findings of `audit_collection`. All their documents are read into memory at once.

    Returns:
        The findings about these documents and points now; empty if all is right.
    """
    doc_ids = {DocId(one.doc_path) for one in found if one.doc_path in scan.entries}
    others = [one for one in found if one.doc_path not in scan.entries]
    with closing(context.services.catalog.open(scan.collection_id)) as store:
        findings = [
            finding
            for page in _list_pages(scan, doc_ids)
            for finding in _audit_page(context, scan.collection_id, page, store)[0]
        ]
        unknown = store.fetch([one.point_id for one in others if one.point_id is not None])
    lost = [one for one in others if one.point_id is None]
    points = [(point.point_id, point.payload) for point in unknown]
    return findings + lost + _find_unknown(points, scan)


def _audit_page(
    context: IngestionContext, collection_id: str, page: _Page, store: VectorIndex
) -> tuple[list[Finding], int]:
    """Return the findings about the documents in `page`, and the number of their stored points."""
    if not page:  # an empty filter would match all points
        return [], 0
    where = PointFilter.any_of(doc_path=[entry.doc_id for entry, _ in page])
    points: dict[PointId, StoredPoint] = {}
    stored: dict[str, dict[PointId, Payload]] = {entry.doc_id: {} for entry, _ in page}
    if sum(entry.chunk_count for entry, _ in page) <= _PAGE_CHUNKS:
        points = {point.point_id: point for point in store.scroll(where, with_vectors=True)}
        fields = iter([(point.point_id, point.payload) for point in points.values()])
    else:
        fields = store.scroll_fields(_STRAY_FIELDS, where)
    for point_id, payload in fields:
        stored[str(payload["doc_path"])][point_id] = payload

    def read(ids: Sequence[PointId]) -> Mapping[PointId, StoredPoint]:
        missing = [point_id for point_id in ids if point_id not in points]
        found = store.fetch(missing, with_vectors=True) if missing else []
        return points | {point.point_id: point for point in found}

    findings: list[Finding] = []
    for entry, doc in page:
        made_with = (collection_id, context.fingerprint_of(entry.doc_id))
        if (entry.collection_id, entry.pipeline_fingerprint) != made_with:
            detail = "the document was indexed with other settings or into another collection"
            findings.append(Finding(WRONG_MODEL, entry.doc_id, "", detail))
        else:
            findings += _audit_document(context, entry, doc, stored[entry.doc_id], read)
    return findings, sum(map(len, stored.values()))


def _find_unknown(points: Iterable[tuple[PointId, Payload]], scan: Scan) -> list[Finding]:
    """Return findings about the points of documents that the ledger does not list.

    A document of the docs folder has one finding, because its points may be right: the ledger was
    lost with the database, or an ingestion was killed. Each point of another document is stray.
    """
    in_folder = {str(doc.doc_id) for doc in scan.discovery.docs}
    lost, strays = set[str](), list[Finding]()
    for point_id, payload in points:
        doc_path = str(payload.get("doc_path", ""))
        if doc_path in scan.entries:
            continue
        if doc_path in in_folder:
            lost.add(doc_path)
        else:
            strays.append(_stray(point_id, payload, "the ledger does not list its document"))
    strays.sort(key=lambda finding: (finding.doc_path, finding.point_id or 0))
    detail = "the ledger does not list the document, but the store has points of it"
    return [*(Finding("stale", doc_path, "", detail) for doc_path in sorted(lost)), *strays]


def _stray(point_id: PointId, payload: Payload, detail: str) -> Finding:
    """Return the finding for a stray point, which belongs to no chunk of the ledger's documents."""
    doc_path, chunk_id = str(payload.get("doc_path", "")), str(payload.get("chunk_id", ""))
    return Finding(STRAY, doc_path, chunk_id, detail, point_id)


def _audit_document(
    context: IngestionContext,
    entry: LedgerEntry,
    doc: DiscoveredDoc | None,
    stored: Mapping[PointId, Payload],
    read: _Read,
) -> Iterator[Finding]:
    """Yield each difference between a document's points and its chunks.

    `doc` is the file, if it can be read. `stored` has the ids of its points, with the fields that
    describe a stray point.
    """
    doc_id = entry.doc_id
    if not entry.sha256:
        yield Finding("stale", doc_id, "", "an ingestion of the document did not end")
        return
    if doc is None or doc.sha256 != entry.sha256:
        ids = [make_chunk_id(doc_id, number) for number in range(entry.chunk_count)]
        wanted = {to_point_id(chunk_id): chunk_id for chunk_id in ids}
        yield from _audit_changed(context, entry, wanted, read)
    else:
        parsed = parse_doc(doc, context.settings.site)
        chunks = chunk_doc(parsed, context.settings.chunk_limits)
        wanted = {to_point_id(chunk.chunk_id): chunk.chunk_id for chunk in chunks}
        yield from _audit_chunks(context, parsed.document, chunks, read)
    for point_id, payload in stored.items():
        if point_id not in wanted:
            yield _stray(point_id, payload, "no chunk of the document has this id")


def _audit_chunks(
    context: IngestionContext, document: Document, chunks: Sequence[Chunk], read: _Read
) -> Iterator[Finding]:
    """Yield each difference between the chunks of a document and their points."""
    services = context.services
    for part in split_chunks(chunks):
        hashes = sorted({hash_text(chunk.embedding_text) for chunk in part})
        vectors = services.cache.get_many(services.embedder.model.fingerprint, hashes)
        if len(vectors) < len(hashes):
            detail = "vectors of the document are not in the database"
            yield Finding("no_vectors", document.doc_path, "", detail)
            return
        points = read([to_point_id(chunk.chunk_id) for chunk in part])
        terms = services.sparse.encode_passages([each.embedding_text for each in part])
        for chunk, chunk_terms in zip(part, terms, strict=True):
            point_id, vector = to_point_id(chunk.chunk_id), vectors[hash_text(chunk.embedding_text)]
            if point_id in points:
                yield from _audit_point(document, chunk, points[point_id], vector, chunk_terms)
            else:
                yield Finding("missing", chunk.doc_path, chunk.chunk_id, _NO_POINT, point_id)


def _audit_changed(
    context: IngestionContext, entry: LedgerEntry, wanted: Mapping[PointId, str], read: _Read
) -> Iterator[Finding]:
    """Yield each difference between the points of a document and the database.

    The file has changed, so its chunks are not known. `wanted` has the id of each chunk by the id
    of its point.
    """
    services, doc_id = context.services, entry.doc_id
    found = read([*wanted])
    points = {point_id: found[point_id] for point_id in wanted if point_id in found}
    for point_id, chunk_id in wanted.items():
        if point_id not in points:
            yield Finding("missing", doc_id, chunk_id, _NO_POINT, point_id)
    payloads = {point_id: point.payload for point_id, point in points.items()}
    if points.keys() == wanted.keys() and compute_data_version(payloads) != entry.data_version:
        detail = "the payloads of the document's points differ from those that were indexed"
        yield Finding("wrong_payload", doc_id, "", detail)
    hashes = {point_id: str(payload["embedding_hash"]) for point_id, payload in payloads.items()}
    fingerprint = services.embedder.model.fingerprint
    vectors = services.cache.get_many(fingerprint, sorted(set(hashes.values())))
    for point_id, point in points.items():
        vector = vectors.get(hashes[point_id])
        if vector is not None and not _agree(vector, point.vectors):
            chunk_id = str(point.payload["chunk_id"])
            yield Finding("wrong_vector", doc_id, chunk_id, _OTHER_VECTORS, point_id)


def _audit_point(
    document: Document, chunk: Chunk, point: StoredPoint, vector: ChunkVectors, terms: SparseVector
) -> Iterator[Finding]:
    """Yield each difference between a chunk and its point."""
    place = (document.doc_path, chunk.chunk_id)
    expected = build_payload(chunk, document, str(point.payload.get("ingested_at")))
    names = sorted(point.payload.keys() | expected.keys())
    wrong = [name for name in names if point.payload.get(name) != expected.get(name)]
    if wrong:
        detail = f"the point's payload differs in {', '.join(wrong)}"
        yield Finding("wrong_payload", *place, detail, point.point_id)
    if not _agree(vector, point.vectors):
        yield Finding("wrong_vector", *place, _OTHER_VECTORS, point.point_id)
    stored = point.sparse
    if (
        stored is None
        or terms.indices != stored.indices
        or not np.allclose(terms.values, stored.values)
    ):
        detail = "the point's BM25 terms differ from the terms of the chunk"
        yield Finding("wrong_terms", *place, detail, point.point_id)


def _agree(expected: ChunkVectors, stored: ChunkVectors | None) -> bool:
    """Return True if expected and stored vectors have equal directions, apart from rounding."""
    if stored is None or expected.windows.shape != stored.windows.shape:
        return False
    units = []
    for vectors in (expected, stored):
        # The squares of damaged float32 values may be too large for float32.
        rows = np.vstack([vectors.dense, vectors.windows]).astype(np.float64)
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        units.append(rows / np.where(norms > 0, norms, 1.0))
    ours, theirs = units
    return bool(np.isfinite(theirs).all() and np.allclose(ours, theirs, atol=_COSINE_TOLERANCE))


def read_stats(context: IngestionContext) -> dict[str, JsonValue]:
    """Return statistics of the current collection as a JSON object.

    It contains the numbers of points, documents and failed documents, the points per content type,
    the embedding space, and the time at which a document was last indexed (None if none is).

    Raises:
        CollectionMissingError: Nothing has been ingested yet.
        StoreUnavailableError: The store is not reachable, or another process has it open.
    """
    with closing(context.services.catalog.open_current()) as store:
        count = store.count()
        by_type: dict[str, JsonValue] = {
            kind.value: store.count(PointFilter.any_of(content_type=(kind.value,)))
            for kind in ContentType
        }
        space, collection_id = store.space, store.collection_id
    ledger = context.services.open_ledger(collection_id)
    entries = [entry for entry in ledger.entries().values() if entry.sha256]
    return {
        "collection_id": collection_id,
        "point_count": count,
        "doc_count": len(entries),
        "failed_doc_count": len(ledger.failures()),
        "content_types": by_type,
        "provider": space.model.provider,
        "model": space.model.model,
        "dim": space.model.dim,
        "format_version": space.format_version,
        "last_indexed_at": max((entry.indexed_at for entry in entries), default=None),
    }


def prune_embeddings(context: IngestionContext) -> int:
    """Delete cached embeddings that no chunk of the current collection uses.

    Entries of other embedding models are deleted too. Returns the number of deleted entries.
    """
    with closing(context.services.catalog.open_current()) as store:
        points = store.scroll_fields(["embedding_hash"])
        hashes = (str(payload.get("embedding_hash")) for _, payload in points)
        return context.services.cache.prune({store.space.model.fingerprint: hashes})


def recover_current(context: IngestionContext) -> None:
    """Find the current collection again, with a warning, if the record of it is lost.

    Raises:
        StoreLockedError: Another ingestion of the book did not end within INGEST_LOCK_TIMEOUT_S.
    """
    services = context.services
    try:
        if services.catalog.current_id() is not None:
            return
    except StoreDamagedError:
        pass
    with services.lock():
        services.catalog.recover()


def report_unchanged(context: IngestionContext, scan: Scan) -> IngestionReport:
    """Return the report of an ingestion that finds no document to index or to remove.

    Before that, the store is checked, a file with a new modification time and the same content gets
    the new time in the ledger (the record of what is indexed), and files that killed ingestions
    left are deleted. The report lists documents that cannot be read.

    Raises:
        StoreDamagedError: The store lacks points that the ledger lists, or cannot be read.
        StoreUnavailableError: The server of the store does not answer.
    """
    if scan.collection_id:
        check_store(context, scan)
        planning.refresh_ledger_if_idle(context, scan)
        planning.record_site(context, context.services.open_ledger(scan.collection_id))
    planning.sweep_if_idle(context)
    report = IngestionReport()
    report.add(RunPlanned("", scan, ()))
    for failure in scan.discovery.failures:
        report.add(failure)
    return report


def check_store(context: IngestionContext, scan: Scan) -> None:
    """Check that the store can be read and has at least the number of points in the ledger.

    Of the documents, only the first and the last are read completely. `rag-pipeline audit` reads
    all of them. A store that another process has open is not checked.

    Raises:
        StoreDamagedError: The store is damaged.
        StoreUnavailableError: The server of the store does not answer.
    """
    entries = [scan.entries[doc.doc_id] for doc in scan.unchanged]
    wanted = sum(entry.chunk_count for entry in entries)
    try:
        with closing(context.services.catalog.open(scan.collection_id)) as store:
            _check_number("the store", store.count(), wanted)
            for entry in {entry.doc_id: entry for entry in (*entries[:1], *entries[-1:])}.values():
                where = PointFilter.any_of(doc_path=(entry.doc_id,))
                points = store.scroll(where, with_vectors=True)
                found = sum(point.vectors is not None for point in points)
                _check_number(entry.doc_id, found, entry.chunk_count)
    except StoreLockedError:
        return
    except (StoreDamagedError, StoreUnavailableError):
        raise
    except StoreError as error:
        raise StoreDamagedError(f"it cannot be read ({error})") from error


def _check_number(place: str, found: int, wanted: int) -> None:
    if found < wanted:
        raise StoreDamagedError(f"{place} has {found} of {wanted} chunks")


_PAGE_DOCS: Final = 100  # documents checked while the lock is held, which takes a second or two
_PAUSE_S: Final = 0.2  # pause without the lock; a waiting ingestion tries to get it every 0.05 s


def audit_index(context: IngestionContext) -> CheckReport:
    """Compare the docs folder, the database and the store of the current collection.

    The comparison takes no lock, so an ingestion can run at the same time and cause apparent
    differences. Documents with differences are therefore compared again while the ingestion lock
    is held. Only differences that remain are reported.

    Raises:
        CollectionMissingError: Nothing has been ingested yet.
        StoreUnavailableError: The store is not reachable, another process has it open, or the lock
            was not free within INGEST_LOCK_TIMEOUT_S.
    """
    confirmed = None
    while confirmed is None:
        confirmed = _confirm(context, audit_collection(context, _read_book(context)))
    return confirmed


def audit_known(context: IngestionContext) -> CheckReport | None:
    """Audit the current collection as `audit_index` does, if the database lists its documents.

    The result is None if it lists none, as on a machine that only serves the book.

    Raises:
        ConfigurationError: The index has pages of a folder that no setting names.
    """
    require_sources(context)
    return audit_index(context) if _read_book(context).entries else None


def require_sources(context: IngestionContext) -> None:
    """Check that the settings name the folders of all pages of the current index, if there is one.

    Raises:
        ConfigurationError: The index has pages of a folder that no setting names.
    """
    collection_id = context.services.catalog.current_id()
    if collection_id:
        ledger = context.services.open_ledger(collection_id)
        check_sources(context.settings, ledger.entries(), ledger)


def repair_index(
    context: IngestionContext,
    found: CheckReport,
    ingest: Callable[[IngestionRequest], object],
) -> CheckReport:
    """Repair the findings of an audit, then audit again.

    Documents with findings are indexed again, or deleted if their files are gone. After that,
    points that belong to no document of the docs folder are deleted.

    Args:
        context: The settings and services.
        found: The report of `audit_index`.
        ingest: Runs an ingestion request. A document that fails keeps its current points.

    Returns:
        The report of a new audit, with the findings that remain.

    Raises:
        DocsFolderError: The docs folder is missing or empty.
        SpaceMismatchError: The collection was built with another model and needs a rebuild.
    """
    scan = planning.scan_docs(context)
    in_folder = {doc.doc_id for doc in scan.discovery.docs}
    docs = tuple(doc_id for doc_id in found.doc_paths if doc_id in in_folder)
    gone = tuple(doc_id for doc_id in scan.delete if doc_id in found.doc_paths)
    if docs or gone:
        ingest(IngestionRequest(docs, gone, rewrite=True))
    left = audit_index(context)
    strays = [finding for finding in left.findings if finding.kind == STRAY]
    if strays and _delete_strays(context, strays):
        left = audit_index(context)
    return left


def _read_book(context: IngestionContext) -> Scan:
    """Compare the docs folder, which may be missing, with the ledger of the current collection.

    Raises:
        CollectionMissingError: Nothing has been ingested yet.
    """
    services = context.services
    # Without a current id, opening raises the error that tells the user what is missing.
    collection_id = services.catalog.current_id() or services.catalog.open_current().collection_id
    try:
        return planning.scan_docs(context)
    except DocsFolderError:
        entries = services.open_ledger(collection_id).entries()
        nothing, fingerprint_of = Discovery((), ()), context.fingerprint_of
        return planning.compare(fingerprint_of, nothing, collection_id, entries, {})


def _confirm(context: IngestionContext, found: CheckReport) -> CheckReport | None:
    """Check findings again while the ingestion lock is held; return a report of those that remain.

    Returns None if another collection has become the current one; the audit must start again.
    """
    confirmed, doc_paths = list[Finding](), found.doc_paths
    for start in range(0, len(doc_paths), _PAGE_DOCS):
        page = frozenset(doc_paths[start : start + _PAGE_DOCS])
        if start:
            time.sleep(_PAUSE_S)
        with ExitStack() as stack:
            with suppress(OSError):  # on a read-only disk, no ingestion can run here
                stack.enter_context(context.services.lock())
            scan = _read_book(context)
            if scan.collection_id != found.collection_id:
                return None
            again = [finding for finding in found.findings if finding.doc_path in page]
            confirmed += confirm_findings(context, scan, again)
    return replace(found, findings=tuple(sorted(confirmed, key=lambda one: one.doc_path)))


def _delete_strays(context: IngestionContext, found: Sequence[Finding]) -> int:
    """Delete points that belong to no document of the ledger or the docs folder.

    The findings are checked again first. Returns the number of deleted points.
    """
    with context.services.lock():
        scan = planning.scan_docs(context)
        in_folder = {str(doc.doc_id) for doc in scan.discovery.docs}
        strays = [
            finding.point_id
            for finding in confirm_findings(context, scan, found)
            if finding.kind == STRAY
            and finding.point_id is not None
            and finding.doc_path not in in_folder
            and not scan.discovery.is_hidden(finding.doc_path)
        ]
        if strays:
            with closing(context.services.catalog.open_current(context.space)) as store:
                store.delete(strays)
    return len(strays)
