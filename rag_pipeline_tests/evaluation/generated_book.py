"""A generated book of 16 pages, its golden set, and one perfect and four bad retrievers."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from rag_pipeline.core.ids import DocId, hash_text
from rag_pipeline.core.models import ChunkLimits, DiscoveredDoc, SiteSettings
from rag_pipeline.core.payload import build_payload, read_metadata
from rag_pipeline.evaluation.golden_set import (
    ExpectedSection,
    GoldenQuery,
    GoldenSet,
)
from rag_pipeline.evaluation.records import EvaluationReport, Fingerprint
from rag_pipeline.evaluation.report import evaluate
from rag_pipeline.ingestion.chunking import chunk_doc
from rag_pipeline.ingestion.parsing import parse_doc
from rag_pipeline.retrieval import (
    Citation,
    Query,
    RetrievalResult,
    ScoredChunk,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.models import ParsedDoc
    from rag_pipeline.evaluation.report import Grounder
    from rag_pipeline.retrieval import Retriever

PAGE_COUNT = 16
SECTION_COUNT = 3
FINGERPRINT = Fingerprint("corpus", "golden", 1, "model", {"chunk_max_tokens": "800"})


def parse_page(doc_path: str, source: str) -> ParsedDoc:
    """Return a parsed page with the given path and Markdown source; no file is needed."""
    data = source.encode()
    doc = DiscoveredDoc(DocId(doc_path), Path(doc_path), hash_text(source), len(data), 0)
    return parse_doc(doc, SiteSettings(), data)


def _write_page(number: int) -> str:
    sections = "\n\n".join(
        f"## Part {part} of page {number}\n\nText {number}-{part} about subject {number}. "
        f"It says that value {number * 10 + part} is right.\n\n### Detail {number}-{part}\n\n"
        f"A finer point {number}-{part} with a measure of {number + part} units."
        for part in range(SECTION_COUNT)
    )
    return f"---\ntitle: Page {number}\n---\n\n# Page {number}\n\nLead {number}.\n\n{sections}\n"


DOCUMENTS = tuple(
    parse_page(f"module-{number % 4 + 1}/page-{number}.md", _write_page(number))
    for number in range(PAGE_COUNT)
)


def score_chunk(parsed: ParsedDoc, index: int, score: float = 0.5) -> ScoredChunk:
    """Return a chunk of a page, by index, in the form in which a retriever returns it."""
    chunk = chunk_doc(parsed, ChunkLimits())[index]
    metadata = read_metadata(build_payload(chunk, parsed.document, "2026-01-01T00:00:00Z"))
    citation = Citation(chunk.title, chunk.section_heading, chunk.url, chunk.module, chunk.chapter)
    return ScoredChunk(chunk.chunk_id, chunk.text, score, metadata, citation)


CHUNKS = tuple(
    score_chunk(parsed, index)
    for parsed in DOCUMENTS
    for index in range(len(chunk_doc(parsed, ChunkLimits())))
)


def _make_golden_set() -> GoldenSet:
    asked = tuple(
        GoldenQuery(
            f"q{number}-{part}",
            f"What is right on page {number}, part {part}?",
            (
                ExpectedSection(
                    DOCUMENTS[number].document.doc_path, f"Part {part} of page {number}"
                ),
            ),
            "fact" if part else "how-to",
            half="tune" if (number + part) % 2 else "report",
        )
        for number in range(PAGE_COUNT)
        for part in range(SECTION_COUNT)
    )
    unanswerable = tuple(
        GoldenQuery(f"out-{number}", f"Who won match {number}?", (), "unanswerable")
        for number in range(12)
    )
    return GoldenSet(Path("golden.json"), (*asked, *unanswerable))


GOLDEN = _make_golden_set()


class KnowingRetriever:
    """A perfect retriever: it returns the expected section first, then all other chunks."""

    def retrieve(self, query: Query) -> RetrievalResult:
        """Return the best passages for the query."""
        chunks = tuple(self.rank(query)[: query.result_count])
        return RetrievalResult(chunks, query, query.mode, len(CHUNKS))

    def rank(self, query: Query) -> list[ScoredChunk]:
        """Return all chunks, best first, with score 0.9; or 0.1 if the book has no answer."""
        golden = next(one for one in GOLDEN.queries if one.question == query.question)
        wanted = {(one.doc_path, one.section_heading) for one in golden.expected}
        places = [(chunk.metadata.doc_path, chunk.metadata.section_heading) for chunk in CHUNKS]
        first = [chunk for chunk, at in zip(CHUNKS, places, strict=True) if at in wanted]
        rest = [chunk for chunk, at in zip(CHUNKS, places, strict=True) if at not in wanted]
        level = 0.9 if wanted else 0.1
        return [replace(chunk, score=level) for chunk in (*first, *rest)]


class RandomRetriever(KnowingRetriever):
    """A retriever that returns chunks in random order."""

    def __init__(self) -> None:
        self._random = random.Random(7)  # noqa: S311  # no secret

    def rank(self, query: Query) -> list[ScoredChunk]:
        """Return all chunks in random order."""
        chunks = super().rank(query)
        self._random.shuffle(chunks)
        return chunks


class ReversedRetriever(KnowingRetriever):
    """A retriever that returns the best chunk last."""

    def rank(self, query: Query) -> list[ScoredChunk]:
        """Return all chunks, worst first."""
        return super().rank(query)[::-1]


class ConstantRetriever(KnowingRetriever):
    """A retriever that returns the same page for every question."""

    def rank(self, query: Query) -> list[ScoredChunk]:
        """Return the chunks of the first page."""
        del query
        return [chunk for chunk in CHUNKS if chunk.metadata.title == "Page 0"]


class RaisingRetriever(KnowingRetriever):
    """A retriever that raises an error for every question."""

    def retrieve(self, query: Query) -> RetrievalResult:
        """Raise ConnectionError."""
        raise ConnectionError(f"no store for {query.question}")


@dataclass
class ThresholdGrounder:
    """A grounding policy that accepts passages if the best score reaches the threshold."""

    threshold: float = 0.5
    asked: list[str] = field(default_factory=list)

    def __call__(self, result: RetrievalResult, question: str) -> bool:
        """Return the decision, and record the question in `asked`."""
        self.asked.append(question)
        best = max((chunk.score for chunk in result.chunks), default=0.0)
        return best >= self.threshold


def evaluate_generated_book(
    retriever: Retriever,
    grounder: Grounder | None = None,
    golden: GoldenSet = GOLDEN,
    documents: Sequence[ParsedDoc] = DOCUMENTS,
) -> EvaluationReport:
    """Return the evaluation report of a retriever over the generated book."""
    return evaluate(golden, retriever, grounder or ThresholdGrounder(), documents, FINGERPRINT)


@cache
def evaluate_once(retriever: type[KnowingRetriever]) -> EvaluationReport:
    """Return the evaluation of a retriever of this kind, which a process makes only once."""
    return evaluate_generated_book(retriever())
