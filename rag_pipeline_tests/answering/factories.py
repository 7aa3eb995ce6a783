"""Factories for small retrieval results, a retriever with fixed passages and a scripted model."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rag_pipeline.core.errors import CollectionMissingError
from rag_pipeline.core.ids import hash_text
from rag_pipeline.core.payload import ChunkMetadata
from rag_pipeline.core.text.terms import extract_terms, extract_words
from rag_pipeline.retrieval.limits import Protection
from rag_pipeline.retrieval.models import (
    ChannelScores,
    Citation,
    Evidence,
    RetrievalResult,
    ScoredChunk,
    TermWeight,
)
from rag_pipeline.retrieval.queries import Mode, Query

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn, Self

    from rag_pipeline.core.protocols import ChatMessage, ChatStream

LOCAL_MODEL = "local/all-MiniLM-L6-v2-int8-7df275c0-late/384/254/64"

WALKING = (
    "A walking robot keeps its balance by placing its foot on the capture point. "
    "The capture point depends on the velocity of the centre of mass. "
    "Ankle torque corrects small errors within the support polygon."
)
SENSING = (
    "An inertial measurement unit reports angular velocity at 400 Hz. "
    "Its gyroscope drifts, so the filter adds the accelerometer's gravity direction."
)
CODE = (
    "Start the node like this:\n\n```python\nnode = Node('walker')\nrclpy.spin(node)\n```\n\n"
    "The spin call blocks."
)


def make_chunk(
    text: str = WALKING,
    *,
    title: str = "Balance",
    section: str = "Capture point",
    cosine: float | None = 0.6,
) -> ScoredChunk:
    """Return a retrieved passage. With `cosine=None` it has no channel scores."""
    citation = Citation(title, section, f"/docs/{section}", "module-1", "1.1-start")
    metadata = ChunkMetadata(
        chunk_id=hash_text(text)[:16],
        doc_path="module-1/1.1-start/page.md",
        module="module-1",
        chapter="1.1-start",
        title=title,
        description="",
        section_heading=section,
        heading_breadcrumb=(title, section),
        heading_level=2,
        anchor=section,
        url=citation.url,
        chunk_index=0,
        content_type="prose",
        tags=(),
        learning_objectives=(),
        sidebar_label=title,
        sidebar_position=None,
        content_hash=hash_text(text),
        word_count=len(extract_words(text)),
        token_count=len(text) // 4,
        start_line=1,
        end_line=1,
        start_byte=0,
        end_byte=len(text.encode()),
        ingested_at="2026-01-01T00:00:00+00:00",
    )
    channels = None if cosine is None else ChannelScores(cosine, cosine, 5.0, 0.5, 0.9)
    return ScoredChunk(metadata.chunk_id, text, cosine or 0.5, metadata, citation, channels)


def make_evidence(question: str, unknown: Sequence[str] = (), model: str = LOCAL_MODEL) -> Evidence:
    """Return evidence of a book that contains all words of the question except `unknown`."""
    terms = {
        term: TermWeight(term, word, 8.0 if word in unknown else 5.0, word not in unknown)
        for word in extract_words(question)
        for term in extract_terms(word)
    }
    return Evidence(model, 1_000, tuple(terms.values()))


def make_result(
    question: str,
    chunks: Sequence[ScoredChunk],
    *,
    unknown: Sequence[str] = (),
    model: str = LOCAL_MODEL,
    query: Query | None = None,
) -> RetrievalResult:
    """Return a retrieval result in normal mode with the given passages."""
    evidence = make_evidence(question, unknown, model)
    query = query or Query(question)
    return RetrievalResult(tuple(chunks), query, Mode.NORMAL, len(chunks), evidence=evidence)


@dataclass(slots=True)
class FixedRetriever:
    """A retriever that returns the same passages for every question and records the queries."""

    chunks: Sequence[ScoredChunk]
    unknown: Sequence[str] = ()
    asked: list[Query] = field(default_factory=list)
    protection: Protection = field(default_factory=Protection)

    def retrieve(self, query: Query) -> RetrievalResult:
        """Return a result with the fixed passages."""
        self.asked.append(query)
        return make_result(query.question, self.chunks, unknown=self.unknown, query=query)

    def read_index(self, _: object) -> NoReturn:
        """Fail, because there is no collection."""
        raise CollectionMissingError("fixed", "memory")

    def close(self) -> None:
        """Close nothing."""


class ScriptedStream:
    """The pieces of a `ScriptedModel`, or an error of which they are the beginning."""

    def __init__(self, model: ScriptedModel) -> None:
        self.complete = True
        self._model = model
        self._pieces = iter(model.pieces)

    def __aiter__(self) -> Self:
        """Return the stream itself."""
        return self

    async def __anext__(self) -> str:
        """Return the next piece."""
        await asyncio.sleep(0)
        piece = next(self._pieces, None)
        if piece is not None:
            return piece
        self.complete = self._model.complete
        if self._model.error is not None:
            raise self._model.error
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Note that the stream was closed."""
        self._model.closed = True


@dataclass(slots=True)
class ScriptedModel:
    """A `ChatModel` that writes the given pieces and records the messages it receives."""

    pieces: Sequence[str]
    complete: bool = True
    name: str = "scripted"
    told: list[Sequence[ChatMessage]] = field(default_factory=list)
    closed: bool = False
    error: Exception | None = None
    prompt_tokens: int = 100_000

    def count_tokens(self, text: str) -> int:
        """Return a rough number of tokens."""
        return len(text) // 4

    async def prepare(self) -> None:
        """Do nothing."""

    def stream(self, messages: Sequence[ChatMessage], *, stop: Sequence[str] = ()) -> ChatStream:
        """Return a stream of the pieces."""
        del stop
        self.told.append(messages)
        return ScriptedStream(self)


class WaitingModel(ScriptedModel):
    """A `ChatModel` that writes nothing until its stream is closed, and then fails.

    Args:
        error: The error with which it fails.

    Attributes:
        reading: Set when the stream is read.
        ended: Set when the stream is closed.
    """

    def __init__(self, error: Exception) -> None:
        super().__init__([], name="waiting")
        self.reading, self.ended, self._error = asyncio.Event(), asyncio.Event(), error

    def stream(self, messages: Sequence[ChatMessage], *, stop: Sequence[str] = ()) -> ChatStream:
        """Return the model itself as the stream."""
        del messages, stop
        return self

    def __aiter__(self) -> Self:
        """Return the stream itself."""
        return self

    async def __anext__(self) -> str:
        """Wait until the stream is closed, and raise the error."""
        self.reading.set()
        await self.ended.wait()
        raise self._error

    async def aclose(self) -> None:
        """Let the reader fail."""
        self.ended.set()
