"""The checks of an index: what must hold, and the findings of what does not.

Ingestion checks each document after writing it. `rag-pipeline audit` compares a collection with the
docs folder and the database, and `rag-pipeline validate` also searches it. All of them report
findings of the same form. The rules for search results are in `retrieval.hits`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from rag_pipeline.core.ids import DocId, PointId, to_point_id
from rag_pipeline.core.models import Chunk, ChunkLimits, JsonValue, TextBlockKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rag_pipeline.core.payload import ChunkMetadata
    from rag_pipeline.core.protocols import StoredPoint

_Subject = TypeVar("_Subject")
_Find: TypeAlias = "Callable[[_Subject], Iterator[Fault]]"

_ATOMIC_KINDS: Final = frozenset({TextBlockKind.CODE, TextBlockKind.TABLE, TextBlockKind.FORMULA})
_UNIT_TOLERANCE: Final = 1e-3


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong with a collection, a document, a point or a search result.

    Attributes:
        kind: Name of the broken rule, or the key of a check.
        doc_path: Path of the document as the ledger or the point's payload has it; empty if the
            finding is not about a document.
        chunk_id: Id of the chunk; empty if the finding is not about a chunk.
        detail: A sentence that describes what is wrong.
        point_id: Id of the point; None if the finding is not about a point of the store.
    """

    kind: str
    doc_path: str
    chunk_id: str
    detail: str
    point_id: PointId | None = None

    def __str__(self) -> str:
        """Return the finding as one line: kind, document, chunk id and detail."""
        place = " ".join(part for part in (self.doc_path, self.chunk_id) if part)
        return f"{self.kind:<14} {place}{': ' if place else ''}{self.detail}"


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The findings of a check of a collection, and the numbers of its documents and points."""

    collection_id: str
    doc_count: int
    point_count: int
    findings: tuple[Finding, ...]

    @property
    def doc_paths(self) -> tuple[str, ...]:
        """Paths of all documents with findings, ascending and without repeats."""
        return tuple(sorted({finding.doc_path for finding in self.findings}))

    def to_json(self) -> dict[str, JsonValue]:
        """Return the report as a JSON object, with the number of findings as `finding_count`."""
        return {
            "collection_id": self.collection_id,
            "doc_count": self.doc_count,
            "point_count": self.point_count,
            "finding_count": len(self.findings),
            "findings": [asdict(finding) for finding in self.findings],
        }


class Fault(NamedTuple):
    """A violation of a rule: a description, and the document and chunk if the rule knows them."""

    detail: str
    doc_path: str = ""
    chunk_id: str = ""


@dataclass(frozen=True, slots=True)
class Rule(Generic[_Subject]):
    """A rule that a document, a collection or a search result must follow.

    Attributes:
        name: Name of the rule in events, reports and JSON.
        ensures: Sentence that is true if the rule is followed.
        find: Function that takes the checked object and yields each violation.
    """

    name: str
    ensures: str
    find: _Find[_Subject]


DOCUMENT_RULES: Final[list[Rule[IndexedDocument]]] = []
"""Rules for a document that was just written. Dagster shows them as asset checks."""

COLLECTION_RULES: Final[list[Rule[Sequence[ChunkMetadata]]]] = []
"""Rules for all chunks of a collection, which `rag-pipeline validate` checks."""


def register_rule(rules: list[Rule[_Subject]], ensures: str) -> Callable[[_Find[_Subject]], object]:
    """Return a decorator that appends a function to a list of rules.

    The rule has the function's name without the leading underscore.

    Args:
        rules: List that the rule is appended to, such as `DOCUMENT_RULES`.
        ensures: Sentence that is true if the rule is followed.
    """
    return lambda find: rules.append(Rule(find.__name__.removeprefix("_"), ensures, find))


def find_faults(
    rules: Iterable[Rule[_Subject]], subject: _Subject, doc_path: str = ""
) -> Iterator[Finding]:
    """Yield a finding for each violation, in the order of the rules.

    `doc_path` is the document of findings whose rule does not name one.
    """
    for rule in rules:
        for fault in rule.find(subject):
            place = fault.doc_path or doc_path
            yield Finding(rule.name, place, fault.chunk_id, fault.detail)


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """The chunks of a document, and its points as they were read back from the store.

    Attributes:
        chunks: All chunks of the document, in order.
        limits: Size limits of the chunks.
        point_ids: Ids of all points of the document.
        unsound: Names of the points with unusable vectors: the chunk id in the payload, or the
            point's id if the payload has none.
    """

    chunks: Sequence[Chunk]
    limits: ChunkLimits
    point_ids: set[PointId] = field(default_factory=set)
    unsound: list[str] = field(default_factory=list)

    def add_point(self, point: StoredPoint, dim: int) -> None:
        """Add a point that was read with its vectors, which are not kept."""
        self.point_ids.add(point.point_id)
        if not has_sound_vectors(point, dim):
            self.unsound.append(str(point.payload.get("chunk_id", point.point_id)))


def check_documents(
    chunks: Mapping[DocId, Sequence[Chunk]],
    points: Iterable[StoredPoint],
    limits: ChunkLimits,
    dim: int,
) -> dict[DocId, tuple[Finding, ...]]:
    """Return the violations of `DOCUMENT_RULES` of each document.

    Args:
        chunks: All chunks of each document, in order.
        points: All points of these documents, with their vectors. Each is dropped when it is read.
        limits: Size limits of the chunks.
        dim: Dimension of the vectors.
    """
    documents = {doc_id: IndexedDocument(own, limits) for doc_id, own in chunks.items()}
    for point in points:
        documents[DocId(str(point.payload["doc_path"]))].add_point(point, dim)
    return {
        doc_id: tuple(find_faults(DOCUMENT_RULES, document, doc_id))
        for doc_id, document in documents.items()
    }


@register_rule(
    DOCUMENT_RULES,
    "No chunk is empty, and only chunks with code, a table or a formula exceed the maximum size.",
)
def _chunk_bounds(document: IndexedDocument) -> Iterator[Fault]:
    limit = document.limits.max_tokens
    for chunk in document.chunks:
        if not chunk.text.strip():
            yield Fault(f"chunk {chunk.chunk_index} is empty")
        if chunk.token_count > limit and _ATOMIC_KINDS.isdisjoint(b.kind for b in chunk.blocks):
            size = f"{chunk.token_count} tokens, more than {limit}"
            yield Fault(f"chunk {chunk.chunk_index} has {size}")


@register_rule(
    DOCUMENT_RULES, "Every chunk closes its code fences, except the last chunk of a page."
)
def _balanced_fences(document: IndexedDocument) -> Iterator[Fault]:
    # An author may leave the last fence of a page open. In any other chunk, an open fence was cut.
    for chunk in document.chunks[:-1]:
        code = (b for b in chunk.blocks if b.kind is TextBlockKind.CODE)
        if not all(is_closed(chunk.text[block.start : block.end]) for block in code):
            yield Fault(f"chunk {chunk.chunk_index} does not close its code fence")


@register_rule(
    DOCUMENT_RULES, "The vectors of every point have the model's dimension and length 1."
)
def _sound_vectors(document: IndexedDocument) -> Iterator[Fault]:
    for name in document.unsound:
        yield Fault(f"point {name} has unusable vectors")


@register_rule(DOCUMENT_RULES, "The document has one point for each chunk, and no other points.")
def _points_equal_chunks(document: IndexedDocument) -> Iterator[Fault]:
    wanted = {to_point_id(chunk.chunk_id) for chunk in document.chunks}
    stored = document.point_ids
    if wanted != stored:
        yield Fault(f"{len(wanted - stored)} points missing, {len(stored - wanted)} stray")


@register_rule(DOCUMENT_RULES, "No two chunks of the document have the same id.")
def _unique_chunk_ids(document: IndexedDocument) -> Iterator[Fault]:
    return find_repeated(chunk.chunk_id for chunk in document.chunks)


@register_rule(COLLECTION_RULES, "Every chunk has a URL and a title for citations.")
def _citation(chunks: Sequence[ChunkMetadata]) -> Iterator[Fault]:
    for chunk in chunks:
        if not chunk.url.strip() or not chunk.title.strip():
            yield Fault("the URL or the title is blank", chunk.doc_path, chunk.chunk_id)


@register_rule(COLLECTION_RULES, "The address of every page belongs to one document.")
def _addresses(chunks: Sequence[ChunkMetadata]) -> Iterator[Fault]:
    places = ((chunk.url, chunk.doc_path) for chunk in chunks)
    for address, (first, *others) in find_shared_addresses(places).items():
        yield Fault(f"{', '.join(others)} has the same address {address}", first)


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


def has_sound_vectors(point: StoredPoint, dim: int) -> bool:
    """Return True if the vectors of a point have the dimension `dim` and length 1."""
    if point.vectors is None or point.vectors.dense.shape != (dim,):
        return False
    windows = point.vectors.windows
    if windows.ndim != 2 or windows.shape[0] < 1 or windows.shape[1] != dim:
        return False
    rows = np.vstack([point.vectors.dense[np.newaxis, :], windows])
    with np.errstate(all="ignore"):  # numbers of a damaged store
        norms = np.linalg.norm(rows, axis=1)
    return bool(np.isfinite(rows).all() and (np.abs(norms - 1.0) <= _UNIT_TOLERANCE).all())


def find_repeated(chunk_ids: Iterable[str]) -> Iterator[Fault]:
    """Yield a description of each chunk id that occurs more than once."""
    for chunk_id, count in Counter(chunk_ids).items():
        if count > 1:
            yield Fault(f"chunk {chunk_id} occurs {count} times")


STRAY: Final = "stray"
WRONG_MODEL: Final = "wrong_model"

AUDIT_CHECKS: Final = {
    "missing": "Every chunk has a point in the store.",
    STRAY: "Every point belongs to a chunk.",
    "stale": "The last ingestion of every document ended.",
    "wrong_payload": "The payload of every point is that of its chunk.",
    "wrong_vector": "The vectors of every point are those that were computed for its chunk.",
    "wrong_terms": "The BM25 terms of every point are those of its chunk.",
    WRONG_MODEL: "Every document was indexed with the present settings, into this collection.",
    "no_vectors": "The database has the vectors of every document.",
}
"""What an audit checks, by the kind of its findings."""

SEARCH_CHECKS: Final = {
    "readable": "Every point has a payload that can be read.",
    "refusals": "Invalid questions are refused with their error codes.",
    "deterministic": "A question has the same results each time.",
    "relevance": "Most questions about the collection's content find it.",
}
"""What a validation checks besides, by the kind of its findings."""
