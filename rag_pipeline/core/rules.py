"""The rules that indexed documents and collections must follow, each declared once.

Ingestion checks each document after writing it, and `rag-pipeline validate` checks a whole
collection. The rules for search results are in `retrieval.hits`.
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
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rag_pipeline.core.ids import DocId, PointId
    from rag_pipeline.core.models import Chunk, ChunkLimits
    from rag_pipeline.core.payload import ChunkMetadata
    from rag_pipeline.core.protocols import StoredPoint

_Subject = TypeVar("_Subject")
_Find: TypeAlias = "Callable[[_Subject], Iterator[str]]"

Fault: TypeAlias = "tuple[str, str]"
"""Name of a broken rule, and a description of what breaks the rule."""

_ATOMIC_KINDS: Final = frozenset({TextBlockKind.CODE, TextBlockKind.TABLE, TextBlockKind.FORMULA})
_UNIT_TOLERANCE: Final = 1e-3


@dataclass(frozen=True, slots=True)
class Rule(Generic[_Subject]):
    """A rule that a document, a collection or a search result must follow.

    Attributes:
        name: Name of the rule in events, reports and JSON.
        ensures: Sentence that is true if the rule is followed.
        find: Function that takes the checked object and yields a description of each violation.
    """

    name: str
    ensures: str
    find: _Find[_Subject]


DOCUMENT_RULES: Final[list[Rule[IndexedDocument]]] = []
"""Rules for a document that was just written. Dagster shows them as asset checks."""

COLLECTION_RULES: Final[list[Rule[StoredCollection]]] = []
"""Rules of `rag-pipeline validate` for a whole collection. Reports show their sentences."""


def register_rule(rules: list[Rule[_Subject]], ensures: str) -> Callable[[_Find[_Subject]], object]:
    """Return a decorator that appends a function to a list of rules.

    The rule has the function's name without the leading underscore.

    Args:
        rules: List that the rule is appended to, such as `DOCUMENT_RULES`.
        ensures: Sentence that is true if the rule is followed.
    """
    return lambda find: rules.append(Rule(find.__name__.removeprefix("_"), ensures, find))


def find_faults(rules: Iterable[Rule[_Subject]], subject: _Subject) -> Iterator[Fault]:
    """Yield the rule's name and a description for each violation, in the order of the rules."""
    for rule in rules:
        for detail in rule.find(subject):
            yield rule.name, detail


@dataclass(frozen=True, slots=True)
class CheckedPoint:
    """A stored point without its vectors, which were checked when the point was read.

    Attributes:
        name: The chunk id in the payload, or the point's id if the payload has none.
    """

    point_id: PointId
    name: str
    has_sound_vectors: bool


def check_point(point: StoredPoint, dim: int) -> CheckedPoint:
    """Check that the vectors of a point have the dimension `dim` and length 1."""
    name = str(point.payload.get("chunk_id", point.point_id))
    return CheckedPoint(point.point_id, name, _has_sound_vectors(point, dim))


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """The chunks of a document, and its points as they were read back from the store.

    Attributes:
        chunks: All chunks of the document, in order.
        points: All points of the document.
        limits: Size limits of the chunks.
    """

    chunks: Sequence[Chunk]
    points: Sequence[CheckedPoint]
    limits: ChunkLimits


def check_documents(
    chunks: Mapping[DocId, Sequence[Chunk]],
    points: Iterable[StoredPoint],
    limits: ChunkLimits,
    dim: int,
) -> dict[DocId, tuple[Fault, ...]]:
    """Return the violations of `DOCUMENT_RULES` of each document.

    Args:
        chunks: All chunks of each document, in order.
        points: All points of these documents, with their vectors. Each is dropped when it is read.
        limits: Size limits of the chunks.
        dim: Dimension of the vectors.
    """
    checked: dict[str, list[CheckedPoint]] = {doc_id: [] for doc_id in chunks}
    for point in points:
        checked[str(point.payload["doc_path"])].append(check_point(point, dim))
    return {
        doc_id: tuple(find_faults(DOCUMENT_RULES, IndexedDocument(own, checked[doc_id], limits)))
        for doc_id, own in chunks.items()
    }


@register_rule(
    DOCUMENT_RULES,
    "No chunk is empty, and only chunks with code, a table or a formula exceed the maximum size.",
)
def _chunk_bounds(document: IndexedDocument) -> Iterator[str]:
    limit = document.limits.max_tokens
    for chunk in document.chunks:
        if not chunk.text.strip():
            yield f"chunk {chunk.chunk_index} is empty"
        if chunk.token_count > limit and _ATOMIC_KINDS.isdisjoint(b.kind for b in chunk.blocks):
            yield f"chunk {chunk.chunk_index} has {chunk.token_count} tokens, more than {limit}"


@register_rule(
    DOCUMENT_RULES, "Every chunk closes its code fences, except the last chunk of a page."
)
def _balanced_fences(document: IndexedDocument) -> Iterator[str]:
    # An author may leave the last fence of a page open. In any other chunk, an open fence was cut.
    for chunk in document.chunks[:-1]:
        code = (b for b in chunk.blocks if b.kind is TextBlockKind.CODE)
        if not all(is_closed(chunk.text[block.start : block.end]) for block in code):
            yield f"chunk {chunk.chunk_index} does not close its code fence"


@register_rule(
    DOCUMENT_RULES, "The vectors of every point have the model's dimension and length 1."
)
def _sound_vectors(document: IndexedDocument) -> Iterator[str]:
    for point in document.points:
        if not point.has_sound_vectors:
            yield f"point {point.name} has unusable vectors"


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
    """A point whose payload has all fields and whose text is not blank."""

    point_id: PointId
    metadata: ChunkMetadata
    text: str


@dataclass(frozen=True, slots=True)
class StoredCollection:
    """The points of a collection, and which of them have a payload that can be read.

    Attributes:
        points: All points as they are stored.
        readable: The points with a valid payload and a text that is not blank.
        errors: One error for each of the other points.
    """

    points: Sequence[StoredPoint]
    readable: tuple[ReadablePoint, ...]
    errors: tuple[PayloadError, ...]


def read_collection(points: Sequence[StoredPoint]) -> StoredCollection:
    """Read the payload of every point, and return the readable points and an error for each other.

    A point is readable if its payload is valid and its text is not blank.
    """
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


@register_rule(COLLECTION_RULES, "every point has all payload fields")
def _fields(collection: StoredCollection) -> Iterator[str]:
    for error in collection.errors:
        if error.field != "text":
            yield f"{error.chunk_id}: {error.field}"


@register_rule(COLLECTION_RULES, "every point has a text that is not blank")
def _text(collection: StoredCollection) -> Iterator[str]:
    for error in collection.errors:
        if error.field == "text":
            yield error.chunk_id


@register_rule(COLLECTION_RULES, "the id of every point is the number of its chunk id")
def _ids(collection: StoredCollection) -> Iterator[str]:
    for point in collection.readable:
        if int(point.metadata.chunk_id, 16) != point.point_id:
            yield point.metadata.chunk_id


@register_rule(COLLECTION_RULES, "the content hash of every point is the hash of its text")
def _content_hash(collection: StoredCollection) -> Iterator[str]:
    for point in collection.readable:
        if hash_text(point.text) != point.metadata.content_hash:
            yield point.metadata.chunk_id


@register_rule(COLLECTION_RULES, "every point has a URL and a title for citations")
def _citation(collection: StoredCollection) -> Iterator[str]:
    for point in collection.readable:
        metadata = point.metadata
        if not metadata.url.strip() or not metadata.title.strip() or metadata.word_count < 0:
            yield metadata.chunk_id


@register_rule(COLLECTION_RULES, "the address of every page belongs to one document")
def _addresses(collection: StoredCollection) -> Iterator[str]:
    places = ((point.metadata.url, point.metadata.doc_path) for point in collection.readable)
    for address, doc_paths in find_shared_addresses(places).items():
        yield f"{address} ({', '.join(doc_paths)})"


@register_rule(COLLECTION_RULES, "the chunks of every document are numbered from 0 without gaps")
def _positions(collection: StoredCollection) -> Iterator[str]:
    indexes: dict[str, list[int]] = defaultdict(list)
    for point in collection.points:  # points with an invalid payload may still have a position
        path, index = point.payload.get("doc_path"), point.payload.get("chunk_index")
        if isinstance(path, str) and isinstance(index, int):
            indexes[path].append(index)
    for path, found in indexes.items():
        if sorted(found) != list(range(len(found))):
            yield path


def find_shared_addresses(places: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the addresses that several documents have, from the URL and document of each chunk."""
    found: dict[str, set[str]] = defaultdict(set)
    for url, doc_path in places:
        found[url.partition("#")[0]].add(doc_path)
    return {
        address: sorted(paths)
        for address, paths in sorted(found.items())
        if address and len(paths) > 1
    }


def is_closed(code: str) -> bool:
    """Return True if a Markdown code block has a closing fence, or if it has no opening fence.

    The closing fence consists of the same character and is at least as long as the opening fence.
    """
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
    with np.errstate(all="ignore"):  # numbers of a damaged store
        norms = np.linalg.norm(rows, axis=1)
    return bool(np.isfinite(rows).all() and (np.abs(norms - 1.0) <= _UNIT_TOLERANCE).all())


def find_repeated(chunk_ids: Iterable[str]) -> Iterator[str]:
    """Yield a description of each chunk id that occurs more than once."""
    for chunk_id, count in Counter(chunk_ids).items():
        if count > 1:
            yield f"chunk {chunk_id} occurs {count} times"
