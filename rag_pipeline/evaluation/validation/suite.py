"""Checks a collection, and asks it questions made of its own content, so that they fit any book."""

from __future__ import annotations

import resource
import sys
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeVar

from rag_pipeline.core.errors import PayloadError, QueryError
from rag_pipeline.core.rules import COLLECTION_RULES, read_collection
from rag_pipeline.core.terms import extract_terms, extract_words
from rag_pipeline.evaluation.validation.report import (
    CheckOutcome,
    ProbeOutcome,
    Timings,
    ValidationSuiteReport,
)
from rag_pipeline.retrieval.hits import check_results
from rag_pipeline.retrieval.models import MAX_QUESTION_CHARS, MAX_TOP_K, Query
from rag_pipeline.retrieval.service import CollectionStats

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rag_pipeline.core.payload import ChunkMetadata
    from rag_pipeline.core.protocols.stores import StoredPoint
    from rag_pipeline.evaluation.validation.report import AddressReport
    from rag_pipeline.retrieval.models import ScoredChunk
    from rag_pipeline.retrieval.retriever import Retriever

_Entry = TypeVar("_Entry")

PER_CLASS: Final = 8
"""Most probes of each class except the edge cases. The plan asks for 8 to 10 queries in all."""

_BATCH_SIZE: Final = 10  # of the validation plan

_MIN_LONG_CHARS: Final = 500  # "very long query" of the validation plan
_EXAMPLES: Final = 3  # culprits named by a check over the whole collection


class ProbeClass(StrEnum):
    """Query classes of the validation plan."""

    KEYWORD = "keyword"
    PHRASE = "phrase"
    COMPLEX = "complex"
    EDGE = "edge"


@dataclass(frozen=True, slots=True)
class Probe:
    """A query and what must be among its results.

    Attributes:
        expected_term: Some result contains this word, or a form of it, in text, headings or tags.
        expected_doc: Some result belongs to this document.
    """

    kind: ProbeClass
    question: str
    expected_term: str = ""
    expected_doc: str = ""


def run_validation(
    retriever: Retriever,
    *,
    collection_name: str = "",
    check_addresses: Callable[[Iterable[str]], AddressReport] | None = None,
) -> ValidationSuiteReport:
    """Read the whole collection, ask it for what it contains, and check what comes back.

    Args:
        retriever: A retriever over the collection.
        collection_name: The collection's name, for the report.
        check_addresses: Takes every cited address once, for example `addresses.check_built_site`
            with its folder filled in. None leaves addresses unchecked.

    Raises:
        StoreError: The collection is missing, empty, of another model, or not reached.
        EmbeddingError: A question could not be embedded.
    """
    with retriever.session.use() as index:
        points = index.scroll()
        started = time.perf_counter()
        vector_count = index.count()
        stats_ms = _since(started)
        dimension = index.space.model.dim
    readable, checks = check_collection(points)
    probes = derive_probes(readable)
    batch = [Query(probe.question) for probe in probes[:_BATCH_SIZE]]
    timings = Timings(
        first_query_ms=_time(lambda: retriever.retrieve(batch[0])) or 0.0,
        batch_size=len(batch),
        batch_latency_ms=_time(lambda: retriever.retrieve_many(batch)),
        stats_latency_ms=stats_ms,
    )
    outcomes = tuple(_run_probe(retriever, probe) for probe in probes)
    return ValidationSuiteReport(
        validated_at=datetime.now(UTC).isoformat(timespec="seconds"),
        stats=CollectionStats(
            total_vectors=vector_count,
            vector_dimension=dimension,
            collection_name=collection_name,
            vector_count=vector_count,
            memory_usage=_read_peak_memory(),
        ),
        timings=timings,
        chunk_count=len(points),
        document_count=len({metadata.doc_path for metadata, _ in readable}),
        checks=(*checks, *_check_refusals()),
        probes=outcomes,
        addresses=check_addresses(metadata.url for metadata, _ in readable)
        if check_addresses
        else None,
    )


def check_collection(
    points: Sequence[StoredPoint],
) -> tuple[list[tuple[ChunkMetadata, str]], list[CheckOutcome]]:
    """Check a collection's points against `COLLECTION_RULES`.

    Returns:
        Metadata and text of the points that keep the contract, and the outcome of each check.
    """
    collection = read_collection(points)
    checks = []
    for rule in COLLECTION_RULES:
        faults = list(rule.find(collection))
        problem = f"{len(faults)} of {len(points)}: {', '.join(faults[:_EXAMPLES])}"
        checks.append(CheckOutcome(rule.ensures, not faults, problem if faults else ""))
    return [(point.metadata, point.text) for point in collection.readable], checks


def derive_probes(chunks: Sequence[tuple[ChunkMetadata, str]]) -> list[Probe]:
    """Make probes of what the collection contains, always the same for the same collection.

    Keywords are tags and words of titles, phrases are section headings, and complex questions join
    a heading and its page. All are taken evenly over the book.
    """
    ordered = sorted(chunks, key=lambda chunk: (chunk[0].doc_path, chunk[0].chunk_index))
    metadata = [entry for entry, _ in ordered]
    tags = sorted({tag for entry in metadata for tag in entry.tags})
    titles = sorted({word for entry in metadata for word in extract_words(entry.title)})
    keywords = [word for word in [*tags, *titles] if len(word) > 2 and extract_terms(word)]
    headed = [entry for entry in metadata if len(extract_terms(entry.section_heading)) > 1]
    probes = [
        Probe(ProbeClass.KEYWORD, word, expected_term=word) for word in _spread(keywords[:400])
    ]
    probes += [
        Probe(ProbeClass.PHRASE, entry.section_heading, expected_doc=entry.doc_path)
        for entry in _spread(_unique_headings(headed))
    ]
    probes += [
        Probe(
            ProbeClass.COMPLEX,
            f"How does the part about {entry.section_heading} fit into {entry.title}, and why?",
            expected_doc=entry.doc_path,
        )
        for entry in _spread(_unique_headings(headed)[1:])
    ]
    return [*probes, *_edge_probes(ordered)]


def _edge_probes(ordered: Sequence[tuple[ChunkMetadata, str]]) -> list[Probe]:
    plain = ["a", "123", "special@chars!", "ü ñ 中文 🤖", "what is it", "x" * 300]
    probes = [Probe(ProbeClass.EDGE, question) for question in plain]
    long_chunks = [chunk for chunk in ordered if len(chunk[1]) > _MIN_LONG_CHARS]
    if long_chunks:
        metadata, text = long_chunks[len(long_chunks) // 2]
        probes.append(
            Probe(ProbeClass.EDGE, text[:MAX_QUESTION_CHARS], expected_doc=metadata.doc_path)
        )
    probes.append(Probe(ProbeClass.EDGE, "why " * (MAX_QUESTION_CHARS // 4)))
    return probes


def _time(action: Callable[[], object]) -> float | None:
    """Return the milliseconds that an action takes; None if a damaged point ends it."""
    started = time.perf_counter()
    with suppress(PayloadError):  # the probes report it
        action()
        return _since(started)
    return None


def _since(started: float) -> float:
    return (time.perf_counter() - started) * 1000


def _read_peak_memory() -> str:
    unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss: bytes there, KiB elsewhere
    return f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6:.1f} MB"


def _run_probe(retriever: Retriever, probe: Probe) -> ProbeOutcome:
    query = Query(probe.question)
    started = time.perf_counter()
    try:
        first = retriever.retrieve(query).chunks
        latency_ms = _since(started)
        second = retriever.retrieve(query).chunks
    except PayloadError as error:  # one damaged point must not hide what else is wrong
        first, second, latency_ms = (), (), _since(started)
        broken = {"readable": str(error)}
    else:
        broken = {name: problem for name, problem in check_results(first).items() if problem}
    if [(hit.chunk_id, hit.score) for hit in first] != [
        (hit.chunk_id, hit.score) for hit in second
    ]:
        broken["deterministic"] = "a second run gave other results"
    return ProbeOutcome(
        kind=probe.kind.value,
        question=probe.question,
        result_count=len(first),
        best_score=first[0].score if first else 0.0,
        best_url=first[0].citation.url if first else "",
        relevant=_is_relevant(probe, first),
        latency_ms=latency_ms,
        broken=tuple(sorted(broken.items())),
    )


def _is_relevant(probe: Probe, hits: Sequence[ScoredChunk]) -> bool | None:
    """Return True if the expected document or term is there; None without an expectation."""
    if probe.expected_doc:
        return any(hit.metadata.doc_path == probe.expected_doc for hit in hits)
    if not probe.expected_term:
        return None
    wanted = set(extract_terms(probe.expected_term))
    return any(
        wanted
        & set(
            extract_terms(
                " ".join((*hit.metadata.heading_breadcrumb, *hit.metadata.tags, hit.text))
            )
        )
        for hit in hits
    )


def _check_refusals() -> list[CheckOutcome]:
    """Check that bad queries are refused, each with its code, before anything is searched."""
    cases = {
        "QUERY_EMPTY": Query("   "),
        "QUERY_TOO_LONG": Query("x" * (MAX_QUESTION_CHARS + 1)),
        "INVALID_K": Query("x", top_k=MAX_TOP_K + 1),
    }
    outcomes = []
    for code, query in cases.items():
        found = "no error"
        try:
            query.check()
        except QueryError as error:
            found = error.code
        problem = "" if found == code else f"{found} came instead"
        outcomes.append(CheckOutcome(f"refuses {code}", found == code, problem))
    return outcomes


def _unique_headings(entries: Sequence[ChunkMetadata]) -> list[ChunkMetadata]:
    """Select entries whose heading occurs in only one document: otherwise any could be meant."""
    places: dict[str, set[str]] = defaultdict(set)
    for entry in entries:
        places[entry.section_heading].add(entry.doc_path)
    first = {entry.section_heading: entry for entry in reversed(entries)}
    kept = [entry for heading, entry in first.items() if len(places[heading]) == 1]
    return sorted(kept, key=lambda entry: (entry.doc_path, entry.chunk_index))


def _spread(entries: Sequence[_Entry]) -> list[_Entry]:
    """Select at most PER_CLASS entries, evenly over all."""
    count = min(PER_CLASS, len(entries))
    return [entries[at * len(entries) // count] for at in range(count)]
