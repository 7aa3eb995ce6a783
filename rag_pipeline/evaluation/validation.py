"""The suite behind `rag-pipeline validate`: does what lies in the store come back as it must?

Belongs here: probes made of the collection itself, so that they fit any book, and the rules that
their results keep. Does not belong here: relevance against a golden set (report), addresses against
the built site (addresses).
"""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeVar

from rag_pipeline.core.errors import PayloadError, QueryError
from rag_pipeline.core.rules import COLLECTION_RULES, check_results, read_collection
from rag_pipeline.core.terms import extract_terms, extract_words
from rag_pipeline.evaluation.validation_records import (
    CheckOutcome,
    ProbeOutcome,
    ValidationSuiteReport,
)
from rag_pipeline.retrieval.models import MAX_QUESTION_CHARS, MAX_TOP_K, Query

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rag_pipeline.core.payload import ChunkMetadata
    from rag_pipeline.core.protocols.stores import StoredPoint
    from rag_pipeline.evaluation.validation_records import AddressReport
    from rag_pipeline.retrieval.models import ScoredChunk
    from rag_pipeline.retrieval.retriever import Retriever

_Entry = TypeVar("_Entry")

PER_CLASS: Final = 8
"""Probes of each class but the edge cases; the plan asks for 8 to 10 queries in all."""

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
        expected_term: Some result holds this word, or a form of it, in text, headings or tags.
        expected_doc: Some result is of this document.
    """

    kind: ProbeClass
    question: str
    expected_term: str = ""
    expected_doc: str = ""


def run_validation(
    retriever: Retriever,
    *,
    check_addresses: Callable[[Iterable[str]], AddressReport] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> ValidationSuiteReport:
    """Read the whole collection, ask it for what it holds, and check what comes back.

    Args:
        retriever: Over the collection.
        check_addresses: Takes every cited address once, such as `addresses.check_built_site` with
            its folder filled in; None leaves addresses unchecked.
        clock: Seconds, for latencies.

    Raises:
        StoreError: The collection is missing, empty, of another model, or not reached.
        EmbeddingError: A question could not be embedded.
    """
    with retriever.session.use() as index:
        points = index.scroll()
    readable, checks = check_collection(points)
    probes = derive_probes(readable)
    outcomes = tuple(_run_probe(retriever, probe, clock) for probe in probes)
    return ValidationSuiteReport(
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
    """Make probes of what the collection holds, the same for the same collection.

    Keywords are tags and words of titles, phrases are section headings, complex questions join a
    heading and its page; all are taken evenly over the book.
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


def _run_probe(retriever: Retriever, probe: Probe, clock: Callable[[], float]) -> ProbeOutcome:
    query = Query(probe.question)
    start = clock()
    try:
        first = retriever.retrieve(query).chunks
        latency_ms = (clock() - start) * 1000
        second = retriever.retrieve(query).chunks
    except PayloadError as error:  # one damaged point must not hide what else is wrong
        first, second, latency_ms = (), (), (clock() - start) * 1000
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
    """Whether what was expected is there; None where nothing is."""
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
    """Queries that must be refused, each with its code, before anything is searched."""
    cases = {
        "QUERY_EMPTY": Query("   "),
        "QUERY_TOO_LONG": Query("x" * (MAX_QUESTION_CHARS + 1)),
        "INVALID_K": Query("x", top_k=MAX_TOP_K + 1),
    }
    return [
        CheckOutcome(f"refuses {code}", _code_of(query) == code, "not refused as it must be")
        for code, query in cases.items()
    ]


def _code_of(query: Query) -> str:
    try:
        query.check()
    except QueryError as error:
        return error.code
    return ""


def _unique_headings(entries: Sequence[ChunkMetadata]) -> list[ChunkMetadata]:
    """Entries whose heading stands in one document alone: any other could be meant as well."""
    places: dict[str, set[str]] = defaultdict(set)
    for entry in entries:
        places[entry.section_heading].add(entry.doc_path)
    first = {entry.section_heading: entry for entry in reversed(entries)}
    kept = [entry for heading, entry in first.items() if len(places[heading]) == 1]
    return sorted(kept, key=lambda entry: (entry.doc_path, entry.chunk_index))


def _spread(entries: Sequence[_Entry]) -> list[_Entry]:
    """At most PER_CLASS entries, evenly over all."""
    count = min(PER_CLASS, len(entries))
    return [entries[at * len(entries) // count] for at in range(count)]
