"""Compare the docs folder, the database and the vector store, and repair what differs.

Other processes may use the index meanwhile, so differences are checked again under the lock. A
repair indexes the documents again, then deletes points that belong to no document.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, closing, suppress
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

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
from rag_pipeline.core.protocols import LedgerEntry, PointFilter, StoredPoint, VectorIndex
from rag_pipeline.core.rules import STRAY, WRONG_MODEL, CheckReport, Finding, check_documents
from rag_pipeline.ingestion.chunking import chunk_doc
from rag_pipeline.ingestion.context import IngestionContext, IngestionRequest
from rag_pipeline.ingestion.events import RunPlanned
from rag_pipeline.ingestion.parsing import parse_doc
from rag_pipeline.ingestion.planning import (
    record_site,
    refresh_ledger_if_idle,
    scan_docs,
    sweep_if_idle,
)
from rag_pipeline.ingestion.report import IngestionReport
from rag_pipeline.ingestion.site.detection import check_sources
from rag_pipeline.ingestion.stages import split_chunks
from rag_pipeline.ingestion.writing import compute_data_version

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from rag_pipeline.core.models import (
        Chunk,
        DiscoveredDoc,
        DocFailure,
        Document,
        JsonValue,
        Payload,
    )
    from rag_pipeline.core.vectors import ChunkVectors, FloatMatrix, SparseVector
    from rag_pipeline.ingestion.planning import Scan


_COSINE_TOLERANCE = 1e-3  # stores round the numbers and normalize again, so values differ slightly


def agree(expected: ChunkVectors, stored: ChunkVectors) -> bool:
    """Return True if expected and stored vectors have equal directions, apart from rounding."""
    is_finite = np.isfinite(stored.dense).all() and np.isfinite(stored.windows).all()
    if not is_finite or expected.windows.shape != stored.windows.shape:
        return False
    return all(
        bool(np.allclose(_unit(one), _unit(other), atol=_COSINE_TOLERANCE))
        for one, other in (
            (expected.dense[np.newaxis, :], stored.dense[np.newaxis, :]),
            (expected.windows, stored.windows),
        )
    )


def _unit(rows: FloatMatrix) -> FloatMatrix:
    """Return the rows scaled to unit length; rows of zeros stay as they are."""
    wide = rows.astype(np.float64)  # the squares of damaged float32 values may be too large
    norms = np.linalg.norm(wide, axis=1, keepdims=True)
    unit: FloatMatrix = (wide / np.where(norms > 0, norms, 1.0)).astype(np.float32)
    return unit


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
    scan = scan_docs(context)
    unchanged = {doc.doc_id: doc for doc in scan.unchanged}
    docs = {key: doc for key, doc in unchanged.items() if doc_ids is None or key in doc_ids}
    limits, dim = context.settings.chunk_limits, context.space.model.dim
    if not docs:
        return
    with closing(context.services.catalog.open(scan.collection_id)) as store:
        for page in _split_entries([scan.entries[doc_id] for doc_id in docs]):
            chunks = {}
            for entry in page:
                with suppress(RagPipelineError, OSError):
                    parsed = parse_doc(docs[entry.doc_id], context.settings.site)
                    chunks[entry.doc_id] = chunk_doc(parsed, limits)
            if chunks:  # an empty filter would match all points
                points = store.scroll(PointFilter.any_of(doc_path=tuple(chunks)), with_vectors=True)
                yield from check_documents(chunks, points, limits, dim).items()


_PAGE_CHUNKS: Final = 512
_OPENING_CHUNKS: Final = 8_192  # the embedded store maps what is read, until it is closed
_GIVE_WAY_S: Final = 0.3  # a process that waits for the store tries to open it every 0.25 s
_STRAY_FIELDS: Final = ("doc_path", "chunk_id")


@dataclass(frozen=True, slots=True)
class _Page:
    """A store, of which some points were read in advance, for several documents at once.

    Attributes:
        asked: The ids of the points that were read in advance.
        points: These points by id, with their vectors, without those that the store lacks.
    """

    store: VectorIndex
    asked: frozenset[PointId]
    points: Mapping[PointId, StoredPoint]

    @classmethod
    def read(cls, store: VectorIndex, entries: Sequence[LedgerEntry]) -> _Page:
        """Read the points of the documents of some ledger entries, unless they are too many."""
        ids = [point_id for entry in entries for point_id in list_points(entry)]
        ids = ids if len(ids) <= _PAGE_CHUNKS else []
        points = {point.point_id: point for point in store.fetch(ids, with_vectors=True)}
        return cls(store, frozenset(ids), points)

    def fetch(self, point_ids: Sequence[PointId]) -> dict[PointId, StoredPoint]:
        """Return points with their vectors, by id; missing points are left out."""
        found = {
            point_id: self.points[point_id] for point_id in point_ids if point_id in self.points
        }
        others = [point_id for point_id in point_ids if point_id not in self.asked]
        more = self.store.fetch(others, with_vectors=True) if others else []
        return found | {point.point_id: point for point in more}


def list_points(entry: LedgerEntry) -> dict[PointId, int]:
    """Return the ids of a document's points, with the number of the chunk."""
    return {to_point_id(make_chunk_id(entry.doc_id, at)): at for at in range(entry.chunk_count)}


@dataclass(frozen=True, slots=True)
class IndexedBook:
    """What the docs folder and the database say about a collection.

    Attributes:
        context: The settings and services.
        collection_id: Id of the collection.
        entries: The ledger entries of this collection.
        docs: The documents of the docs folder; empty if there is no such folder.
    """

    context: IngestionContext
    collection_id: str
    entries: Mapping[DocId, LedgerEntry]
    docs: Mapping[DocId, DiscoveredDoc]


def audit_collection(book: IndexedBook) -> CheckReport:
    """Compare the points in the store with the points that the documents require.

    The chunks of an unchanged file are computed again. A file that has changed since it was
    indexed is compared with the hash of its payloads and with its vectors, both in the database.

    About 512 chunks are in memory at a time. The store is closed after each 8,192 chunks, or
    earlier if another process waits for it. An ingestion that runs at the same time can cause
    findings that are not real; check them with `confirm_findings`.
    """
    findings: list[Finding] = []
    known_count = total = 0
    catalog, entries = book.context.services.catalog, book.entries
    pages = _split_entries([entries[doc_id] for doc_id in sorted(entries)])
    page = next(pages, None)
    while page is not None:
        read_count = 0
        with closing(catalog.open(book.collection_id)) as store:
            while page is not None and read_count < _OPENING_CHUNKS:
                found, count = _audit_page(book, page, store)
                findings += found
                read_count += count
                page = next(pages, None)
                if catalog.is_wanted():
                    break
            total = store.count()
        known_count += read_count
        if page is not None and catalog.is_wanted():
            time.sleep(_GIVE_WAY_S)
    if total != known_count:
        with closing(catalog.open(book.collection_id)) as store:
            findings += _find_unknown(store.scroll_fields(_STRAY_FIELDS), book)
    point_count = sum(entry.chunk_count for entry in entries.values())
    return CheckReport(book.collection_id, len(entries), point_count, tuple(findings))


def confirm_findings(found: Sequence[Finding], book: IndexedBook) -> list[Finding]:
    """Check the documents and points of earlier findings again.

    The caller holds the ingestion lock, so that no ingestion writes during the check.

    Args:
        found: Findings of `audit_collection`. All their documents are read into memory at once.
        book: The collection that was audited, as it is now.

    Returns:
        The findings about these documents and points now; empty if all is right.
    """
    entries = book.entries
    page = sorted({DocId(one.doc_path) for one in found if one.doc_path in entries})
    unknown = [
        one.point_id for one in found if one.doc_path not in entries and one.point_id is not None
    ]
    findings: list[Finding] = []
    with closing(book.context.services.catalog.open(book.collection_id)) as store:
        for part in _split_entries([entries[doc_id] for doc_id in page]):
            findings += _audit_page(book, part, store)[0]
        points = [(point.point_id, point.payload) for point in store.fetch(unknown)]
        lost = [one for one in found if one.point_id is None and one.doc_path not in entries]
        return findings + lost + _find_unknown(points, book)


def _split_entries(entries: Sequence[LedgerEntry]) -> Iterator[list[LedgerEntry]]:
    """Yield the entries in pages of about 512 chunks, and one empty page if there are none."""
    page: list[LedgerEntry] = []
    for entry in entries:
        if page and sum(each.chunk_count for each in page) + entry.chunk_count > _PAGE_CHUNKS:
            yield page
            page = []
        page.append(entry)
    yield page


def _audit_page(
    book: IndexedBook, page: Sequence[LedgerEntry], store: VectorIndex
) -> tuple[list[Finding], int]:
    """Return the findings about the documents in `page`, and the number of their stored points."""
    if not page:  # an empty filter would match all points
        return [], 0
    findings: list[Finding] = []
    stored: dict[str, dict[PointId, Payload]] = {entry.doc_id: {} for entry in page}
    where = PointFilter.any_of(doc_path=tuple(entry.doc_id for entry in page))
    for point_id, payload in store.scroll_fields(_STRAY_FIELDS, where):
        stored[str(payload["doc_path"])][point_id] = payload
    ahead = _Page.read(store, page)
    for entry in page:
        made_with = (book.collection_id, book.context.fingerprint_of(entry.doc_id))
        if (entry.collection_id, entry.pipeline_fingerprint) != made_with:
            detail = "the document was indexed with other settings or into another collection"
            findings.append(Finding(WRONG_MODEL, entry.doc_id, "", detail))
        else:
            own, doc = stored[entry.doc_id], book.docs.get(entry.doc_id)
            findings += _audit_document(book.context, entry, own, doc, ahead)
    return findings, sum(len(points) for points in stored.values())


def _find_unknown(points: Iterable[tuple[PointId, Payload]], book: IndexedBook) -> list[Finding]:
    """Return findings about the points of documents that the ledger does not list.

    A document of the docs folder has one finding, because its points may be right: the ledger was
    lost with the database, or an ingestion was killed. Each point of another document is stray.
    """
    lost, strays = set[str](), list[Finding]()
    for point_id, payload in points:
        doc_path = str(payload.get("doc_path", ""))
        if doc_path in book.entries:
            continue
        if doc_path in book.docs:
            lost.add(doc_path)
        else:
            strays.append(_stray(point_id, payload, "the ledger does not list its document"))
    strays.sort(key=lambda finding: (finding.doc_path, finding.point_id or 0))
    detail = "the ledger does not list the document, but the store has points of it"
    return [*(Finding("stale", doc_path, "", detail) for doc_path in sorted(lost)), *strays]


def _audit_document(
    context: IngestionContext,
    entry: LedgerEntry,
    stored: Mapping[PointId, Payload],
    doc: DiscoveredDoc | None,
    page: _Page,
) -> Iterable[Finding]:
    """Yield each difference between a document's points and its chunks.

    `stored` has the ids of its points, with the fields that describe a stray point. `doc` is the
    file, if it can be read.
    """
    doc_id = entry.doc_id
    if not entry.sha256:
        yield Finding("stale", doc_id, "", "an ingestion of the document did not end")
        return
    if doc is None or doc.sha256 != entry.sha256:
        wanted = list_points(entry)
        yield from _audit_changed(context, entry, wanted, page)
    else:
        parsed = parse_doc(doc, context.settings.site)
        chunks = chunk_doc(parsed, context.settings.chunk_limits)
        wanted = {to_point_id(chunk.chunk_id): at for at, chunk in enumerate(chunks)}
        yield from _audit_chunks(context, parsed.document, chunks, page)
    for point_id, payload in stored.items():
        if point_id not in wanted:
            yield _stray(point_id, payload, "no chunk of the document has this id")


def _audit_chunks(
    context: IngestionContext, document: Document, chunks: Sequence[Chunk], page: _Page
) -> Iterable[Finding]:
    """Yield each difference between the chunks of a document and their points."""
    services = context.services
    for part in split_chunks(chunks):
        hashes = sorted({hash_text(chunk.embedding_text) for chunk in part})
        vectors = services.cache.get_many(services.embedder.model.fingerprint, hashes)
        if len(vectors) < len(hashes):
            detail = "vectors of the document are not in the database"
            yield Finding("no_vectors", document.doc_path, "", detail)
            return
        ids = [to_point_id(chunk.chunk_id) for chunk in part]
        points = page.fetch(ids)
        terms = services.sparse.encode_passages([each.embedding_text for each in part])
        for point_id, chunk, chunk_terms in zip(ids, part, terms, strict=True):
            found = points.get(point_id)
            yield from _audit_point(document, chunk, found, vectors, chunk_terms)


def _audit_changed(
    context: IngestionContext,
    entry: LedgerEntry,
    wanted: Mapping[PointId, int],
    page: _Page,
) -> Iterable[Finding]:
    """Yield each difference between the points of a document and the database.

    The file has changed, so its chunks are not known. `wanted` has the number of each chunk by the
    id of its point.
    """
    services, doc_id = context.services, entry.doc_id
    points = page.fetch([*wanted])
    for point_id, at in wanted.items():
        if point_id not in points:
            yield _miss(doc_id, make_chunk_id(doc_id, at), point_id)
    payloads = {point_id: point.payload for point_id, point in points.items()}
    if points.keys() == wanted.keys() and compute_data_version(payloads) != entry.data_version:
        detail = "the payloads of the document's points differ from those that were indexed"
        yield Finding("wrong_payload", doc_id, "", detail)
    hashes = {point_id: str(payload["embedding_hash"]) for point_id, payload in payloads.items()}
    fingerprint = services.embedder.model.fingerprint
    vectors = services.cache.get_many(fingerprint, sorted(set(hashes.values())))
    for point_id, point in points.items():
        vector = vectors.get(hashes[point_id])
        if vector is not None and (point.vectors is None or not agree(vector, point.vectors)):
            yield _mistake(doc_id, str(point.payload["chunk_id"]), point_id)


def _audit_point(
    document: Document,
    chunk: Chunk,
    point: StoredPoint | None,
    vectors: Mapping[str, ChunkVectors],
    terms: SparseVector,
) -> Iterable[Finding]:
    """Yield each difference between a chunk and its point, which is None if it is missing."""
    doc_id, point_id = document.doc_path, to_point_id(chunk.chunk_id)
    if point is None:
        yield _miss(doc_id, chunk.chunk_id, point_id)
        return
    expected = build_payload(chunk, document, str(point.payload.get("ingested_at")))
    names = sorted(point.payload.keys() | expected.keys())
    wrong = [name for name in names if point.payload.get(name) != expected.get(name)]
    if wrong:
        detail = f"the point's payload differs in {', '.join(wrong)}"
        yield Finding("wrong_payload", doc_id, chunk.chunk_id, detail, point_id)
    vector = vectors.get(hash_text(chunk.embedding_text))
    if vector is None or point.vectors is None or not agree(vector, point.vectors):
        yield _mistake(doc_id, chunk.chunk_id, point_id)
    stored = point.sparse
    if (
        stored is None
        or terms.indices != stored.indices
        or not np.allclose(terms.values, stored.values)
    ):
        detail = "the point's BM25 terms differ from the terms of the chunk"
        yield Finding("wrong_terms", doc_id, chunk.chunk_id, detail, point_id)


def _miss(doc_id: DocId, chunk_id: str, point_id: PointId) -> Finding:
    detail = "the chunk has no point in the store"
    return Finding("missing", doc_id, chunk_id, detail, point_id)


def _mistake(doc_id: DocId, chunk_id: str, point_id: PointId) -> Finding:
    detail = "the point's vectors differ from those that were computed for the chunk"
    return Finding("wrong_vector", doc_id, chunk_id, detail, point_id)


def _stray(point_id: PointId, payload: Payload, detail: str) -> Finding:
    """Return the finding for a stray point, which belongs to no chunk of the ledger's documents."""
    doc_path, chunk_id = str(payload.get("doc_path", "")), str(payload.get("chunk_id", ""))
    return Finding(STRAY, doc_path, chunk_id, detail, point_id)


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
        refresh_ledger_if_idle(context, scan)
        record_site(context, context.services.open_ledger(scan.collection_id))
    sweep_if_idle(context)
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
        confirmed = _confirm(context, audit_collection(_read_book(context)))
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
    scan = scan_docs(context)
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


def describe_audit(
    found: CheckReport, left: CheckReport | None, failures: Sequence[DocFailure]
) -> dict[str, JsonValue]:
    """Return an audit and its repair as a JSON object.

    Args:
        found: The findings of the audit.
        left: The findings after the repair; None if nothing was repaired.
        failures: The documents that the repair could not index.

    Returns:
        The audit's report, with `repaired` (True if a repair fixed all findings), `remaining` (the
        findings that are left) and `failures`.
    """
    return found.to_json() | {
        "repaired": left is not None and not left.findings,
        "remaining": (left or found).to_json()["findings"],
        "failures": [asdict(failure) for failure in failures],
    }


def _read_book(context: IngestionContext) -> IndexedBook:
    """Read what the docs folder and the database say about the current collection.

    Raises:
        CollectionMissingError: Nothing has been ingested yet.
    """
    catalog = context.services.catalog
    # Without a current id, opening raises the error that tells the user what is missing.
    collection_id = catalog.current_id() or catalog.open_current().collection_id
    docs: dict[DocId, DiscoveredDoc] = {}
    with suppress(DocsFolderError):
        docs = {doc.doc_id: doc for doc in scan_docs(context).discovery.docs}
    entries = context.services.open_ledger(collection_id).entries()
    return IndexedBook(context, collection_id, entries, docs)


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
            book = _read_book(context)
            if book.collection_id != found.collection_id:
                return None
            again = [finding for finding in found.findings if finding.doc_path in page]
            confirmed += confirm_findings(again, book)
    return replace(found, findings=tuple(sorted(confirmed, key=lambda one: one.doc_path)))


def _delete_strays(context: IngestionContext, found: Sequence[Finding]) -> int:
    """Delete points that belong to no document of the ledger or the docs folder.

    The findings are checked again first. Returns the number of deleted points.
    """
    with context.services.lock():
        scan, book = scan_docs(context), _read_book(context)
        strays = [
            finding.point_id
            for finding in confirm_findings(found, book)
            if finding.kind == STRAY
            and finding.point_id is not None
            and finding.doc_path not in book.docs
            and not scan.discovery.is_hidden(finding.doc_path)
        ]
        if strays:
            with closing(context.services.catalog.open_current(context.space)) as store:
                store.delete(strays)
    return len(strays)
