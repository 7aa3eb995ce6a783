"""The stages of a document up to its vectors: parse and chunk it, and embed its chunks.

The last stage, which writes the points, is in `writing`. The vectors of a document with more than
256 chunks are computed, stored and read back in parts, so that the memory does not grow with the
size of a document. If the cache was lost, the vectors of indexed chunks come from the store.
"""

from __future__ import annotations

import logging
import time
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import numpy as np

from rag_pipeline.core.errors import (
    EmbeddingDimensionError,
    RagPipelineError,
    StoreError,
    describe_kind,
)
from rag_pipeline.core.ids import DocId, hash_text
from rag_pipeline.core.models import Chunk, DiscoveredDoc, DocFailure, Document, Stage
from rag_pipeline.core.protocols import LedgerEntry, PointFilter
from rag_pipeline.core.rules import has_sound_vectors
from rag_pipeline.core.text.sentences import split_sentences
from rag_pipeline.core.text.terms import find_content_words
from rag_pipeline.core.vectors import ChunkVectors, EmbeddingUsage, round_numbers
from rag_pipeline.ingestion.chunking import chunk_doc
from rag_pipeline.ingestion.context import IngestionContext, IngestionRequest, now_utc
from rag_pipeline.ingestion.events import StageDone
from rag_pipeline.ingestion.markdown.source import (
    find_invalid_line,
    has_open_front_matter,
    read_doc,
)
from rag_pipeline.ingestion.parsing import parse_doc
from rag_pipeline.ingestion.splicing import hash_content, read_doc_imports

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rag_pipeline.core.protocols import (
        Embedder,
        EmbeddingCache,
        Ledger,
        PointStore,
        StoredPoint,
        WindowEmbedder,
    )
    from rag_pipeline.core.vectors import EmbeddingModel, FloatMatrix, FloatVector, Window
    from rag_pipeline.ingestion.planning import Scan

_LOG: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class IngestionRun:
    """One ingestion run over one collection: what it does, and the state that it found.

    Attributes:
        run_id: Id of the Dagster run, or any name for a run without Dagster.
        scan: The docs folder and the ledger before the run, with the id of the collection that the
            run writes to.
        ledger: The ledger of this collection.
        docs: The documents to process.
        deletes: The documents to delete.
        failed: The failures until now.
        places: Address and document of each chunk until now.
        times_by_content: Time of first ingestion by content hash, from documents that this run
            deletes. Content that has moved to another page keeps its time.
        store: The open collection if the whole run uses one connection; otherwise None.
    """

    context: IngestionContext
    request: IngestionRequest
    run_id: str
    scan: Scan
    ledger: Ledger
    docs: Sequence[DiscoveredDoc]
    deletes: Sequence[DocId]
    failed: list[DocFailure]
    places: set[tuple[str, str]] = field(default_factory=set)
    times_by_content: Mapping[str, str] = field(default_factory=dict)
    store: PointStore | None = None

    def hold_store(self) -> AbstractContextManager[PointStore]:
        """Return a context manager for the open collection; it closes the collection at the end.

        Keep it open only while a group of documents is written, so that other processes can query
        in between. If `store` is set, as in a rebuild, return `store` and leave it open.

        Raises:
            SpaceMismatchError: The collection was built with another embedding space.
            StoreUnavailableError: The store is not reachable, or another process has it open.
        """
        if self.store is not None:
            return nullcontext(self.store)
        catalog = self.context.services.catalog
        return closing(catalog.open(self.scan.collection_id, self.context.space))

    def make_entry(
        self, doc: DiscoveredDoc, *, data_version: str = "", chunk_count: int = 0, version: int = 0
    ) -> LedgerEntry:
        """Return the ledger entry for a document that this run indexes, with the current time.

        Args:
            doc: The file with the content that is indexed.
            data_version: Hash of the ids and payloads of the document's chunks.
            chunk_count: Number of the document's chunks.
            version: The version of the entry that this one will replace; 0 if there is none.
        """
        return LedgerEntry(
            doc_id=doc.doc_id,
            sha256=doc.sha256,
            size_bytes=doc.size_bytes,
            mtime_ns=doc.mtime_ns,
            pipeline_fingerprint=self.context.fingerprint_of(doc.doc_id),
            collection_id=self.scan.collection_id,
            data_version=data_version,
            chunk_count=chunk_count,
            run_id=self.run_id,
            indexed_at=now_utc(),
            version=version,
        )

    def record_begun(self, entry: LedgerEntry) -> LedgerEntry:
        """Write the ledger entry without its file hash, before the document's points change.

        No file matches such an entry, so if this run is killed, the next run repeats the document.

        Returns:
            The entry as it was written, with its new version.

        Raises:
            LedgerConflictError: Another run has changed the entry since this run has read it.
        """
        return self.ledger.record_begun(replace(entry, sha256="", size_bytes=-1, mtime_ns=0))


@dataclass(slots=True)
class DocInProgress:
    """A document during a run. Each stage fills in its results.

    Attributes:
        doc: The file, with the hash of the content that is indexed.
        document: The parsed metadata and headings.
        chunks: The chunks, in order.
        vectors: The vectors of each chunk, in the order of the chunks; empty for a document whose
            vectors are handled in parts, see `read_vectors`.
        figures: Figures about the embedding of its chunks.
        results: One event per finished stage.
        failure: Set when a stage fails; the later stages are then skipped.
        begun: The entry that this run wrote with `record_begun`; None before that.
    """

    doc: DiscoveredDoc
    document: Document | None = None
    chunks: tuple[Chunk, ...] = ()
    vectors: list[ChunkVectors] = field(default_factory=list)
    figures: dict[str, int | float] = field(default_factory=dict)
    results: dict[Stage, StageDone] = field(default_factory=dict)
    failure: DocFailure | None = None
    begun: LedgerEntry | None = None

    def keep_result(
        self,
        stage: Stage,
        data_version: str,
        counts: Mapping[str, int | float | str],
        warnings: tuple[str, ...] = (),
    ) -> None:
        """Store the event of a finished stage; it replaces an earlier event of the same stage."""
        done = StageDone(stage, self.doc.doc_id, data_version, counts, warnings=warnings)
        self.results[stage] = done

    def fail(self, stage: Stage, error: Exception) -> None:
        """Store the error of a stage as the document's failure, and drop a result of the stage."""
        self.failure = describe_failure(self.doc.doc_id, stage, error)
        self.results.pop(stage, None)


def describe_failure(doc_id: DocId, stage: Stage, error: Exception) -> DocFailure:
    """Return the record of an error that stopped a document in a stage."""
    message, name = str(error), type(error).__name__
    if not isinstance(error, (RagPipelineError, OSError)):
        hint = "Please report this error together with the file"
        message = f"{doc_id}: unexpected {describe_kind(error)} in {stage.value}: {message}. {hint}"
    return DocFailure(doc_id, stage.value, name, message)


def prepare_doc(run: IngestionRun, work: DocInProgress) -> None:
    """Run the stages of a document up to chunking.

    Then mark the ledger entry of a changed document as incomplete, see `IngestionRun.record_begun`.

    Raises:
        DocumentError: The file cannot be read or parsed, or another run has changed the entry.
    """
    doc, settings = work.doc, run.context.settings
    work.keep_result(Stage.DISCOVERED, doc.sha256[:16], {"size_bytes": doc.size_bytes})
    start = time.perf_counter()
    _LOG.info("parsing %s (%d KB)", doc.doc_id, doc.size_bytes // 1000)
    data = read_doc(doc)
    # The file may have changed since the scan. The bytes read here are what is indexed.
    imported = read_doc_imports(doc, data)
    # If the scan found another hash, no file has the size, so the next scan reads the file again.
    digest = hash_content(data, imported)
    if digest != doc.sha256:
        doc = work.doc = replace(doc, sha256=digest, size_bytes=-1, mtime_ns=0)
    parsed = parse_doc(doc, settings.site, data, imported)
    document = work.document = parsed.document
    counts: dict[str, int | float | str] = {
        "title": document.title,
        "url": document.url,
        "heading_count": len(document.headings),
        "block_count": len(parsed.blocks),
        "expressions_left_out": parsed.notes.left_out,
        "components_left_out": " ".join(parsed.notes.components),
        "duration_s": time.perf_counter() - start,
    }
    warnings = parsed.notes.warnings
    if has_open_front_matter(parsed.source):
        problem = "the front matter has no `---` at its end, so it was read as text. Add that line"
        warnings = (*warnings, f"{doc.doc_id}: {problem}")
    if invalid_line := find_invalid_line(data):
        problem = f"line {invalid_line} contains bytes that are not UTF-8. They are shown as \ufffd"
        warnings = (*warnings, f"{doc.doc_id}: {problem}; save the file as UTF-8")
    version = hash_text(repr((document, parsed.source)))[:16]
    work.keep_result(Stage.PARSED, version, counts, warnings)

    start = time.perf_counter()
    _LOG.info("chunking %s, which has %d blocks", doc.doc_id, len(parsed.blocks))
    chunks = work.chunks = chunk_doc(parsed, settings.chunk_limits)
    entry = run.scan.entries.get(doc.doc_id)
    wanted = (doc.sha256, run.context.fingerprint_of(doc.doc_id))
    if entry is None or (entry.sha256, entry.pipeline_fingerprint) != wanted:
        work.begun = run.record_begun(entry or run.make_entry(doc))
    version = hash_text(repr((*wanted, document, chunks)))[:16]
    tokens = [chunk.token_count for chunk in chunks]
    counts = {
        "chunk_count": len(chunks),
        "token_total": sum(tokens),
        "token_max": max(tokens, default=0),
        "word_total": sum(chunk.word_count for chunk in chunks),
        "duration_s": time.perf_counter() - start,
    }
    work.keep_result(Stage.CHUNKS, version, counts)


_Span: TypeAlias = tuple[int, int]

_MOST_PARTS: Final = 64
"""Largest number of parts of a text that has windows; a table of 100 KB has more."""

_MOST_ROWS: Final = 1000
"""Largest number of parts that stand for windows; a store limits the size of a point."""


@dataclass(frozen=True, slots=True)
class EmbeddedChunks:
    """The vectors of a list of chunks, and what it took to compute them.

    Attributes:
        vectors: The vectors of each chunk, in the order of the chunks.
        embedded_hashes: SHA-256 of each embedding text that was sent to the model. All other
            vectors came from the cache.
        usage: Requests, retries, tokens and seconds; all zero if nothing was sent to the model.
        windowed_hashes: SHA-256 of those texts that are longer than the model's input limit. The
            dense vector of such a text is the mean over its parts.
    """

    vectors: tuple[ChunkVectors, ...]
    embedded_hashes: frozenset[str]
    usage: EmbeddingUsage
    windowed_hashes: frozenset[str]


def embed_chunks(
    chunks: Sequence[Chunk],
    embedder: Embedder,
    cache: EmbeddingCache,
    read_spare: Callable[[frozenset[str]], Mapping[str, ChunkVectors]] = lambda _: {},
) -> EmbeddedChunks:
    """Return the vectors of chunks; only texts that are not in the cache are sent to the model.

    The text that is embedded is `chunk.embedding_text` (headings and body), not the stored
    `chunk.text`. New vectors are written to the cache before the function returns.

    Args:
        chunks: Chunks of one or more documents. A text that occurs several times is embedded once.
        embedder: The model. It gets all new texts in one call, so that it can batch them.
        cache: Vectors by model fingerprint and SHA-256 of the embedding text. A cached vector with
            a wrong dimension or with values that are not finite is computed again.
        read_spare: Takes the hashes of texts that the cache lacks, and returns those of their
            vectors that another place has, by text hash. They are sound and of the same model.

    Returns:
        The vectors, in the order of `chunks`.

    Raises:
        EmbeddingServiceError: The service failed after all retries. Nothing was cached.
        EmbeddingDimensionError: The model returned a wrong number of vectors, a wrong dimension or
            values that are not finite.
    """
    model = embedder.model
    hashes = [hash_text(chunk.embedding_text) for chunk in chunks]
    kept = cache.get_many(model.fingerprint, sorted(set(hashes)))
    known = {text_hash: found for text_hash, found in kept.items() if _is_sound(found, model)}
    if lacking := frozenset(hashes) - known.keys():
        restored = read_spare(lacking)
        if restored:
            cache.put_many(model.fingerprint, restored)
        known |= restored
    missing = {
        text_hash: chunk.embedding_text
        for text_hash, chunk in zip(hashes, chunks, strict=True)
        if text_hash not in known
    }
    windowed, usage = frozenset[str](), EmbeddingUsage()
    if missing:
        fresh, usage, windowed = _embed_missing(missing, embedder)
        cache.put_many(model.fingerprint, fresh)
        known |= fresh
    return EmbeddedChunks(
        vectors=tuple(known[text_hash] for text_hash in hashes),
        embedded_hashes=frozenset(missing),
        usage=usage,
        windowed_hashes=windowed,
    )


def _embed_missing(
    missing: dict[str, str], embedder: Embedder
) -> tuple[dict[str, ChunkVectors], EmbeddingUsage, frozenset[str]]:
    """Embed the texts in `missing`, which are named by their hashes, in one call.

    Returns the vectors by text hash, the usage, and the hashes of texts that were cut into parts.

    Raises:
        EmbeddingDimensionError: The model returned a wrong number of vectors, a wrong dimension or
            values that are not finite.
    """
    model = embedder.model
    plans = _plan_texts(list(missing.values()), embedder)
    texts = [text for parts, _ in plans for text in parts]
    windows = [spans for _, own in plans for spans in own]
    if model.window_words is None:
        rows, usage = embedder.embed_passages(texts)
    else:
        rows, usage = cast("WindowEmbedder", embedder).embed_passages(texts, windows)
    shape = (len(texts) + sum(map(len, windows)), model.dim)
    expected = f"{shape[0]} vectors of {model.dim} finite numbers"
    if rows.shape != shape:
        raise EmbeddingDimensionError(model.model, expected, f"an array of shape {rows.shape}")
    if not np.isfinite(rows).all():
        raise EmbeddingDimensionError(model.model, expected, "vectors with NaN or infinite values")
    fresh: dict[str, ChunkVectors] = {}
    windowed: set[str] = set()
    part, window = 0, len(texts)
    for text_hash, (planned, spans) in zip(missing, plans, strict=True):
        parts = rows[part : part + len(planned)]
        part += len(parts)
        own = rows[window : window + sum(map(len, spans))]
        window += len(own)
        dense = parts[0] if len(parts) == 1 else _unit_mean(parts)
        rest = own if len(own) else _merge_rows(parts)
        fresh[text_hash] = ChunkVectors(round_numbers(dense), round_numbers(rest))
        if len(parts) > 1:
            windowed.add(text_hash)
    return fresh, usage, frozenset(windowed)


def _merge_rows(rows: FloatMatrix) -> FloatMatrix:
    """Return at most `_MOST_ROWS` rows; each is the mean of equally many consecutive rows."""
    size = -(-len(rows) // _MOST_ROWS)
    if size <= 1:
        return rows
    return np.array([_unit_mean(rows[at : at + size]) for at in range(0, len(rows), size)])


def _plan_texts(
    texts: Sequence[str], embedder: Embedder
) -> list[tuple[Sequence[str], list[tuple[Window, ...]]]]:
    """Return the parts and the windows of each text.

    A text over the model's input limit is cut into parts. A window is a group of words that gets a
    vector of its own. A text of more than `_MOST_PARTS` parts has no windows.
    """
    limit, window_words = embedder.model.max_input_tokens, embedder.model.window_words
    plans = []
    for text, total in zip(texts, embedder.count_tokens(texts), strict=True):
        parts: Sequence[str] = (text,)
        if total > limit:
            parts = [text[start:end] for start, end in cut_parts(text, limit, embedder)]
        words = window_words if len(parts) <= _MOST_PARTS else None
        windows = [group_words(part, words) if words else () for part in parts]
        plans.append((parts, windows))
    return plans


def group_words(text: str, count: int) -> tuple[Window, ...]:
    """Group the content words of a text into windows of `count` consecutive words, in order.

    Content words are all words except stop words. Each window, which gets a vector of its own,
    lists the (start, end) offsets of its words. The last window may have fewer words.
    """
    words = find_content_words(text)
    return tuple(tuple(words[at : at + count]) for at in range(0, len(words), count))


def cut_parts(text: str, max_tokens: int, embedder: Embedder) -> tuple[_Span, ...]:
    """Cut a text into parts of whole sentences that have at most `max_tokens` model tokens each.

    A sentence that is longer than the limit is cut between words, a longer word between
    characters. No part begins or ends with white space.

    Args:
        text: The text. A text of only white space gives no parts.
        max_tokens: Longest part in tokens of the embedder, at least 1.
        embedder: The model whose tokens are counted.

    Returns:
        The (start, end) offsets of the parts, in order. They cover everything except white space.
    """
    sentences = split_sentences(text)
    following = [start for start, _ in sentences[1:]] + [len(text)]
    counts = embedder.count_tokens(  # with the white space up to the next sentence
        [text[start:after] for (start, _), after in zip(sentences, following, strict=False)]
    )
    parts: list[_Span] = []
    total = 0
    for sentence, whole in zip(sentences, counts, strict=True):
        for (start, end), count in _halve(text, sentence, whole, max_tokens, embedder):
            if parts and total + count <= max_tokens:
                parts[-1] = (parts[-1][0], end)
                total += count
            else:
                parts.append((start, end))
                total = count
    return tuple(parts)


def _halve(
    text: str, span: _Span, count: int, max_tokens: int, embedder: Embedder
) -> Iterator[tuple[_Span, int]]:
    """Halve a span of a text until each piece fits the limit; yield the pieces with their counts.

    The cut is at the space nearest to the middle; without a space it is exactly in the middle.
    """
    start, end = span
    if count <= max_tokens or end - start <= 1:
        yield span, min(count, max_tokens)
        return
    middle = (start + end) // 2
    before, after = text.rfind(" ", start + 1, middle + 1), text.find(" ", middle, end - 1)
    spaces = [place for place in (before, after) if place > 0]
    cut = min(spaces, key=lambda place: abs(place - middle)) if spaces else middle
    for begin, stop in ((start, cut), (cut, end)):
        half = text[begin:stop].rstrip()
        rest = half.lstrip()
        own = (begin + len(half) - len(rest), begin + len(half))
        yield from _halve(text, own, embedder.count_tokens([half])[0], max_tokens, embedder)


def _unit_mean(rows: FloatMatrix) -> FloatVector:
    """Return the mean of the rows, scaled to unit length; the first row if the mean is zero."""
    mean: FloatVector = rows.mean(axis=0)
    norm = float(np.linalg.norm(mean))
    if norm == 0.0:
        mean, norm = rows[0], 1.0
    return (mean / norm).astype(np.float32)


def _is_sound(vectors: ChunkVectors, model: EmbeddingModel) -> bool:
    """Return True if cached vectors have the model's dimension and only finite values."""
    rows = (vectors.dense[np.newaxis, :], vectors.windows)
    return all(matrix.shape[1] == model.dim and np.isfinite(matrix).all() for matrix in rows)


PART_CHUNKS: Final = 256
"""Largest number of chunks whose vectors are in memory at a time."""

_NO_FIGURES: Final[dict[str, int | float]] = {
    "texts_embedded": 0,
    "embeddings_reused": 0,
    "tokens_embedded": 0,
    "tokens_reused": 0,
    "windowed_chunks": 0,
    "duration_s": 0.0,
}
"""The figures of the embedding of a document before its first chunk."""


def split_chunks(chunks: Sequence[Chunk]) -> list[Sequence[Chunk]]:
    """Split the chunks of a document into parts of 256; no chunks give one empty part."""
    starts = range(0, max(len(chunks), 1), PART_CHUNKS)
    return [chunks[start : start + PART_CHUNKS] for start in starts]


def embed_docs(run: IngestionRun, group: Sequence[DocInProgress]) -> None:
    """Embed the chunks of several documents together; the cache then has all their vectors.

    Raises:
        EmbeddingError: The service failed, or its vectors cannot be used.
    """
    services = run.context.services
    model = services.embedder.model
    price_usd = run.context.settings.embedding_prices.get(model.model, 0.0)
    for work in group:
        work.vectors, work.figures = [], {**_NO_FIGURES}
    pairs = [(work, chunk) for work in group for chunk in work.chunks]
    for at in range(0, len(pairs), PART_CHUNKS):
        _embed_part(run, pairs[at : at + PART_CHUNKS])
    for work in group:
        hashes = "".join(hash_text(chunk.embedding_text) for chunk in work.chunks)
        version = hash_text(model.fingerprint + hashes)[:16]
        work.figures["cost_usd"] = work.figures["tokens_embedded"] * price_usd / 1e6
        work.keep_result(Stage.EMBEDDINGS, version, work.figures)


def read_vectors(
    run: IngestionRun, work: DocInProgress
) -> Iterator[tuple[Sequence[Chunk], Sequence[ChunkVectors]]]:
    """Yield the chunks of an embedded document with their vectors, in parts.

    Raises:
        StoreError: The database has lost a vector meanwhile.
    """
    if len(work.chunks) <= PART_CHUNKS:
        yield work.chunks, work.vectors
        return
    services = run.context.services
    for chunks in split_chunks(work.chunks):
        hashes = [hash_text(chunk.embedding_text) for chunk in chunks]
        kept = services.cache.get_many(services.embedder.model.fingerprint, sorted(set(hashes)))
        if any(text_hash not in kept for text_hash in hashes):
            raise StoreError(
                f"the database has lost vectors of {work.doc.doc_id} meanwhile. Run `rag-pipeline "
                "ingest` again"
            )
        yield chunks, [kept[text_hash] for text_hash in hashes]


def _embed_part(run: IngestionRun, pairs: Sequence[tuple[DocInProgress, Chunk]]) -> None:
    """Embed chunks in one call, and add to the figures of their documents."""
    services = run.context.services
    model = services.embedder.model
    doc_ids = list(dict.fromkeys(work.doc.doc_id for work, _ in pairs))
    _LOG.info(
        "embedding %d chunks of %s with the %s model %s",
        len(pairs),
        doc_ids[0] if len(doc_ids) == 1 else f"{len(doc_ids)} documents",
        model.provider,
        model.model,
    )
    embedded = embed_chunks(
        [chunk for _, chunk in pairs],
        services.embedder,
        services.cache,
        lambda lacking: _read_stored(run, doc_ids, lacking),
    )
    usage, fresh = embedded.usage, set(embedded.embedded_hashes)
    first = pairs[0][0].figures
    first["requests"] = first.get("requests", 0) + usage.requests
    first["retries"] = first.get("retries", 0) + usage.retries
    share_s = usage.seconds / max(len(fresh), 1)
    for (work, chunk), vectors in zip(pairs, embedded.vectors, strict=True):
        if len(work.chunks) <= PART_CHUNKS:
            work.vectors.append(vectors)
        text_hash = hash_text(chunk.embedding_text)
        counts = work.figures
        counts["windowed_chunks"] += text_hash in embedded.windowed_hashes
        if text_hash in fresh:
            fresh.discard(text_hash)  # a text counts only for the first chunk that has it
            counts["texts_embedded"] += 1
            counts["tokens_embedded"] += chunk.token_count
            counts["duration_s"] += share_s
        else:
            counts["embeddings_reused"] += 1
            counts["tokens_reused"] += chunk.token_count


def _read_stored(
    run: IngestionRun, doc_ids: Sequence[DocId], text_hashes: frozenset[str]
) -> dict[str, ChunkVectors]:
    """Return the vectors that points of the given documents in the current collection have.

    They replace those of a database that was damaged or deleted, together with the ledger.

    Args:
        run: The run.
        doc_ids: Ids of the documents.
        text_hashes: Hashes of the texts whose vectors are wanted.
    """
    services = run.context.services
    model, collection_id = services.embedder.model, services.catalog.current_id()
    if collection_id is None or (run.store and run.store.collection_id == collection_id):
        return {}  # a first build contains only what this run wrote, and this run has it open
    found: dict[str, ChunkVectors] = {}
    try:
        with closing(services.catalog.open(collection_id)) as store:
            if store.space.model != model:
                return {}
            points = store.scroll(PointFilter.any_of(doc_path=tuple(doc_ids)))
            ids = [point.point_id for point in points if _read_hash(point) in text_hashes]
            for start in range(0, len(ids), PART_CHUNKS):
                for point in store.fetch(ids[start : start + PART_CHUNKS], with_vectors=True):
                    if point.vectors and has_sound_vectors(point, model.dim):
                        found[_read_hash(point)] = point.vectors
    except StoreError as error:
        _LOG.info("no vectors were read from the store: %s", error)
    return found


def _read_hash(point: StoredPoint) -> str:
    return str(point.payload.get("embedding_hash"))
