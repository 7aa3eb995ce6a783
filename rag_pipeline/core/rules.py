"""The rules that indexed documents, collections and results must keep, each declared once.

Ingestion checks what it has just written, `rag-pipeline validate` a whole collection, and the
retrieval service every result.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeAlias, TypeVar
from urllib.parse import urlsplit

import numpy as np

from rag_pipeline.core.errors import PayloadError
from rag_pipeline.core.ids import hash_text, is_chunk_id, to_point_id
from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.core.payload import read_metadata, read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.models import Chunk, ChunkLimits
    from rag_pipeline.core.payload import ChunkMetadata
    from rag_pipeline.core.protocols.stores import StoredPoint

_Subject = TypeVar("_Subject")
_Find: TypeAlias = "Callable[[_Subject], Iterator[str]]"

Fault: TypeAlias = "tuple[str, str]"
"""The name of a rule, and a description of what breaks it."""

_ATOMIC_KINDS: Final = frozenset({TextBlockKind.CODE, TextBlockKind.TABLE, TextBlockKind.FORMULA})
_UNIT_TOLERANCE: Final = 1e-3
_REQUIRED_FIELDS: Final = ("url", "title", "doc_path", "content_type", "content_hash")


@dataclass(frozen=True, slots=True)
class Rule(Generic[_Subject]):
    """A rule about one kind of subject.

    Attributes:
        name: The rule's name in events, reports and JSON.
        ensures: The sentence that is true when nothing breaks the rule.
        find: Yields a description of each thing that breaks the rule.
    """

    name: str
    ensures: str
    find: _Find[_Subject]


DOCUMENT_RULES: Final[list[Rule[IndexedDocument]]] = []
"""The asset checks of a document that was just written."""

COLLECTION_RULES: Final[list[Rule[StoredCollection]]] = []
"""The checks of `rag-pipeline validate` over a whole collection; reports show the sentences."""

RESULT_RULES: Final[list[Rule[Sequence[Hit]]]] = []
"""The checks of every result, whatever the question was."""


def _rule(rules: list[Rule[_Subject]], ensures: str) -> Callable[[_Find[_Subject]], object]:
    """Register a function as a rule that has the function's name."""
    return lambda find: rules.append(Rule(find.__name__.removeprefix("_"), ensures, find))


def find_faults(rules: Iterable[Rule[_Subject]], subject: _Subject) -> Iterator[Fault]:
    """Yield what breaks each rule, in the order of the rules."""
    for rule in rules:
        for detail in rule.find(subject):
            yield rule.name, detail


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """A document as it was chunked and as the store returned it.

    Attributes:
        chunks: All chunks of the document, in order.
        points: All points of the document, with vectors.
        limits: The sizes that the chunks were made with.
        dim: The dimension of the collection's vectors.
    """

    chunks: Sequence[Chunk]
    points: Sequence[StoredPoint]
    limits: ChunkLimits
    dim: int


@_rule(DOCUMENT_RULES, "No chunk is empty; only code, tables and formulas exceed the maximum.")
def _chunk_bounds(document: IndexedDocument) -> Iterator[str]:
    limit = document.limits.max_tokens
    for chunk in document.chunks:
        if not chunk.text.strip():
            yield f"chunk {chunk.chunk_index} is empty"
        if chunk.token_count > limit and _ATOMIC_KINDS.isdisjoint(b.kind for b in chunk.blocks):
            yield f"chunk {chunk.chunk_index} has {chunk.token_count} tokens of at most {limit}"


@_rule(DOCUMENT_RULES, "Every chunk closes its code fences, except the last chunk of a page.")
def _balanced_fences(document: IndexedDocument) -> Iterator[str]:
    # A page may leave its last fence open. A fence that was cut continues in another chunk.
    for chunk in document.chunks[:-1]:
        code = (b for b in chunk.blocks if b.kind is TextBlockKind.CODE)
        if not all(is_closed(chunk.text[block.start : block.end]) for block in code):
            yield f"chunk {chunk.chunk_index} opens a fence and leaves it open"


@_rule(DOCUMENT_RULES, "Every point has finite unit vectors of the model's dimension.")
def _sound_vectors(document: IndexedDocument) -> Iterator[str]:
    for point in document.points:
        if not _has_sound_vectors(point, document.dim):
            yield f"point {point.payload.get('chunk_id', point.point_id)}"


@_rule(DOCUMENT_RULES, "The document has one point for each chunk, and no other points.")
def _points_equal_chunks(document: IndexedDocument) -> Iterator[str]:
    wanted = {to_point_id(chunk.chunk_id) for chunk in document.chunks}
    stored = {point.point_id for point in document.points}
    if wanted != stored:
        yield f"{len(wanted - stored)} points missing, {len(stored - wanted)} stray"


@_rule(DOCUMENT_RULES, "No two chunks of the document have the same id.")
def _unique_chunk_ids(document: IndexedDocument) -> Iterator[str]:
    return _find_repeated(chunk.chunk_id for chunk in document.chunks)


@dataclass(frozen=True, slots=True)
class ReadablePoint:
    """A point whose payload keeps the contract and has a text."""

    point_id: PointId
    metadata: ChunkMetadata
    text: str


@dataclass(frozen=True, slots=True)
class StoredCollection:
    """All points of a collection, read once.

    Attributes:
        points: As stored.
        readable: The points that can be read.
        errors: Why each of the other points cannot be read.
    """

    points: Sequence[StoredPoint]
    readable: tuple[ReadablePoint, ...]
    errors: tuple[PayloadError, ...]


def read_collection(points: Sequence[StoredPoint]) -> StoredCollection:
    """Read every point's payload."""
    readable: list[ReadablePoint] = []
    errors: list[PayloadError] = []
    for point in points:
        try:
            metadata, text = read_metadata(point.payload), read_text(point.payload)
        except PayloadError as error:
            errors.append(error)
            continue
        if text.strip():
            readable.append(ReadablePoint(point.point_id, metadata, text))
        else:
            errors.append(PayloadError(metadata.chunk_id, "text", text))
    return StoredCollection(points, tuple(readable), tuple(errors))


@_rule(COLLECTION_RULES, "every point carries every payload field")
def _fields(collection: StoredCollection) -> Iterator[str]:
    for error in collection.errors:
        if error.field != "text":
            yield f"{error.chunk_id}: {error.field}"


@_rule(COLLECTION_RULES, "every point has a text")
def _text(collection: StoredCollection) -> Iterator[str]:
    for error in collection.errors:
        if error.field == "text":
            yield error.chunk_id


@_rule(COLLECTION_RULES, "point ids are the chunk ids")
def _ids(collection: StoredCollection) -> Iterator[str]:
    for point in collection.readable:
        if int(point.metadata.chunk_id, 16) != point.point_id:
            yield point.metadata.chunk_id


@_rule(COLLECTION_RULES, "content hashes are those of the texts")
def _content_hash(collection: StoredCollection) -> Iterator[str]:
    for point in collection.readable:
        if hash_text(point.text) != point.metadata.content_hash:
            yield point.metadata.chunk_id


@_rule(COLLECTION_RULES, "every point can be cited: url and title")
def _citation(collection: StoredCollection) -> Iterator[str]:
    for point in collection.readable:
        metadata = point.metadata
        if not metadata.url.strip() or not metadata.title.strip() or metadata.word_count < 0:
            yield metadata.chunk_id


@_rule(COLLECTION_RULES, "chunk indexes of each document have no gap")
def _positions(collection: StoredCollection) -> Iterator[str]:
    indexes: dict[str, list[int]] = defaultdict(list)
    for point in collection.points:  # unreadable points have a position too
        path, index = point.payload.get("doc_path"), point.payload.get("chunk_index")
        if isinstance(path, str) and isinstance(index, int):
            indexes[path].append(index)
    for path, found in indexes.items():
        if sorted(found) != list(range(len(found))):
            yield path


class Linked(Protocol):
    """The part of a citation that rules read."""

    @property
    def url(self) -> str:
        """The address of the passage."""


class Hit(Protocol):
    """The part of a search result that rules read; `retrieval.ScoredChunk` is one."""

    @property
    def chunk_id(self) -> str:
        """The id of the chunk."""

    @property
    def text(self) -> str:
        """The text of the chunk."""

    @property
    def score(self) -> float:
        """The result's score, 0 to 1."""

    @property
    def metadata(self) -> ChunkMetadata:
        """The payload."""

    @property
    def citation(self) -> Linked:
        """Where the passage is."""


def check_results(hits: Sequence[Hit]) -> dict[str, str]:
    """Check results, best first, against each rule.

    Returns:
        For each rule, in a fixed order, the first thing that breaks it; empty if nothing does.
    """
    return {rule.name: next(rule.find(hits), "") for rule in RESULT_RULES}


@_rule(RESULT_RULES, "No result scores higher than the result before it.")
def _rank_order(hits: Sequence[Hit]) -> Iterator[str]:
    for at in range(1, len(hits)):
        if hits[at].score > hits[at - 1].score:
            yield f"result {at + 1} scores higher than result {at}"


@_rule(RESULT_RULES, "Every score is a number from 0 to 1.")
def _score_bounds(hits: Sequence[Hit]) -> Iterator[str]:
    for hit in hits:
        if not (math.isfinite(hit.score) and 0.0 <= hit.score <= 1.0):
            yield f"chunk {hit.chunk_id} scores {hit.score}"


@_rule(RESULT_RULES, "No chunk occurs twice.")
def _unique_ids(hits: Sequence[Hit]) -> Iterator[str]:
    return _find_repeated(hit.chunk_id for hit in hits)


@_rule(RESULT_RULES, "Every result has a text, an id and a source.")
def _required_fields(hits: Sequence[Hit]) -> Iterator[str]:
    for hit in hits:
        metadata = hit.metadata
        required = {name: getattr(metadata, name) for name in _REQUIRED_FIELDS}
        for name, value in {"text": hit.text, **required}.items():
            if not value.strip():
                yield f"chunk {hit.chunk_id} has no {name}"
        if not is_chunk_id(hit.chunk_id) or hit.chunk_id != metadata.chunk_id:
            yield f"{hit.chunk_id!r:.40} is not the id of a chunk"
        if metadata.chunk_index < 0:
            yield f"chunk {hit.chunk_id} has index {metadata.chunk_index}"


@_rule(RESULT_RULES, "Every result can be linked to.")
def _urls(hits: Sequence[Hit]) -> Iterator[str]:
    for hit in hits:
        if not _is_address(hit.citation.url):
            yield f"chunk {hit.chunk_id} has the address {hit.citation.url!r:.80}"


def is_closed(code: str) -> bool:
    """Tell if a code block ends with the fence that it begins with; true without a fence."""
    opening = code.lstrip("> \t")
    mark = opening[:1]
    if opening[:3] not in {"```", "~~~"}:
        return True
    fence = opening[: len(opening) - len(opening.lstrip(mark))]
    _, line_end, last = code.rpartition("\n")
    closing = last.strip("> \t")
    return line_end != "" and closing.startswith(fence) and not closing.strip(mark)


def _has_sound_vectors(point: StoredPoint, dim: int) -> bool:
    if point.vectors is None or point.vectors.dense.shape != (dim,):
        return False
    windows = point.vectors.windows
    if windows.ndim != 2 or windows.shape[0] < 1 or windows.shape[1] != dim:
        return False
    rows = np.vstack([point.vectors.dense[np.newaxis, :], windows])
    norms = np.linalg.norm(rows, axis=1)
    return bool(np.isfinite(rows).all() and (np.abs(norms - 1.0) <= _UNIT_TOLERANCE).all())


def _find_repeated(chunk_ids: Iterable[str]) -> Iterator[str]:
    for chunk_id, count in Counter(chunk_ids).items():
        if count > 1:
            yield f"chunk {chunk_id} occurs {count} times"


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    has_path = parts.path.startswith("/") and parts.scheme in {"", "http", "https"}
    return has_path and not any(char.isspace() for char in url)
