"""The rules that indexed documents and collections must keep, each declared once.

Ingestion checks each document that it has just written, and `rag-pipeline validate` checks a whole
collection. The rules of search results are in retrieval.hits.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar

import numpy as np

from rag_pipeline.core.errors import PayloadError
from rag_pipeline.core.ids import hash_text, to_point_id
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


def register_rule(rules: list[Rule[_Subject]], ensures: str) -> Callable[[_Find[_Subject]], object]:
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


@register_rule(
    DOCUMENT_RULES, "No chunk is empty; only code, tables and formulas exceed the maximum."
)
def _chunk_bounds(document: IndexedDocument) -> Iterator[str]:
    limit = document.limits.max_tokens
    for chunk in document.chunks:
        if not chunk.text.strip():
            yield f"chunk {chunk.chunk_index} is empty"
        if chunk.token_count > limit and _ATOMIC_KINDS.isdisjoint(b.kind for b in chunk.blocks):
            yield f"chunk {chunk.chunk_index} has {chunk.token_count} tokens of at most {limit}"


@register_rule(
    DOCUMENT_RULES, "Every chunk closes its code fences, except the last chunk of a page."
)
def _balanced_fences(document: IndexedDocument) -> Iterator[str]:
    # A page may leave its last fence open. A fence that was cut continues in another chunk.
    for chunk in document.chunks[:-1]:
        code = (b for b in chunk.blocks if b.kind is TextBlockKind.CODE)
        if not all(is_closed(chunk.text[block.start : block.end]) for block in code):
            yield f"chunk {chunk.chunk_index} opens a fence and leaves it open"


@register_rule(DOCUMENT_RULES, "Every point has finite unit vectors of the model's dimension.")
def _sound_vectors(document: IndexedDocument) -> Iterator[str]:
    for point in document.points:
        if not _has_sound_vectors(point, document.dim):
            yield f"point {point.payload.get('chunk_id', point.point_id)}"


@register_rule(DOCUMENT_RULES, "The document has one point for each chunk, and no other points.")
def _points_equal_chunks(document: IndexedDocument) -> Iterator[str]:
    wanted = {to_point_id(chunk.chunk_id) for chunk in document.chunks}
    stored = {point.point_id for point in document.points}
    if wanted != stored:
        yield f"{len(wanted - stored)} points missing, {len(stored - wanted)} stray"


@register_rule(DOCUMENT_RULES, "No two chunks of the document have the same id.")
def _unique_chunk_ids(document: IndexedDocument) -> Iterator[str]:
    return find_repeated(chunk.chunk_id for chunk in document.chunks)


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


@register_rule(COLLECTION_RULES, "every point carries every payload field")
def _fields(collection: StoredCollection) -> Iterator[str]:
    for error in collection.errors:
        if error.field != "text":
            yield f"{error.chunk_id}: {error.field}"


@register_rule(COLLECTION_RULES, "every point has a text")
def _text(collection: StoredCollection) -> Iterator[str]:
    for error in collection.errors:
        if error.field == "text":
            yield error.chunk_id


@register_rule(COLLECTION_RULES, "point ids are the chunk ids")
def _ids(collection: StoredCollection) -> Iterator[str]:
    for point in collection.readable:
        if int(point.metadata.chunk_id, 16) != point.point_id:
            yield point.metadata.chunk_id


@register_rule(COLLECTION_RULES, "content hashes are those of the texts")
def _content_hash(collection: StoredCollection) -> Iterator[str]:
    for point in collection.readable:
        if hash_text(point.text) != point.metadata.content_hash:
            yield point.metadata.chunk_id


@register_rule(COLLECTION_RULES, "every point can be cited: url and title")
def _citation(collection: StoredCollection) -> Iterator[str]:
    for point in collection.readable:
        metadata = point.metadata
        if not metadata.url.strip() or not metadata.title.strip() or metadata.word_count < 0:
            yield metadata.chunk_id


@register_rule(COLLECTION_RULES, "chunk indexes of each document have no gap")
def _positions(collection: StoredCollection) -> Iterator[str]:
    indexes: dict[str, list[int]] = defaultdict(list)
    for point in collection.points:  # unreadable points have a position too
        path, index = point.payload.get("doc_path"), point.payload.get("chunk_index")
        if isinstance(path, str) and isinstance(index, int):
            indexes[path].append(index)
    for path, found in indexes.items():
        if sorted(found) != list(range(len(found))):
            yield path


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


def find_repeated(chunk_ids: Iterable[str]) -> Iterator[str]:
    """Describe each id that occurs more than once."""
    for chunk_id, count in Counter(chunk_ids).items():
        if count > 1:
            yield f"chunk {chunk_id} occurs {count} times"
