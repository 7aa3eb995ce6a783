"""Packs of vectors: the format of an object with the vectors of many texts, and an index of packs.

A pack begins with its head: four bytes that name the format, the dimension and the number of texts,
the SHA-256 of each text, and each text's number of rows. After the head come the rows of all texts
in the same order, as `STORED_DTYPE`. The first row of a text is its dense vector, the others
are those of its windows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from rag_pipeline.core.vectors import STORED_DTYPE, ChunkVectors

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

_MAGIC: Final = b"RPV2"
_FIXED_BYTES: Final = 12
_NUMBER_BYTES: Final = np.dtype(STORED_DTYPE).itemsize
_TEXT_BYTES: Final = 36
_KEY_BYTES: Final = 16  # of the 32 of a hash; no two texts share them
_MOST_RECENT: Final = 50_000
_ENTRY: Final = np.dtype(
    [("key", f"S{_KEY_BYTES}"), ("pack", "<u4"), ("start", "<u8"), ("end", "<u8")]
)
HEAD_BYTES: Final = 65_536
"""Bytes to read from the start of a pack. They contain the head of up to 1,800 texts."""


class Head(NamedTuple):
    """The head of a pack.

    Attributes:
        dim: Dimension of the vectors.
        text_hashes: SHA-256 of each text, in the order of the rows.
        row_counts: Number of rows of each text, shape (n,).
    """

    dim: int
    text_hashes: tuple[str, ...]
    row_counts: NDArray[np.int64]


class Place(NamedTuple):
    """The place of a text's rows.

    Attributes:
        pack: Name of the pack.
        start: First byte of the rows.
        end: End of the rows (exclusive).
        dim: Dimension of the vectors.
    """

    pack: str
    start: int
    end: int
    dim: int


def dump_pack(vectors: Mapping[str, ChunkVectors]) -> bytes:
    """Return a pack with the vectors of texts, which are given by the SHA-256 of the text.

    All vectors have the same dimension. There is at least one text.
    """
    dim = len(next(iter(vectors.values())).dense)
    hashes = b"".join(bytes.fromhex(text_hash) for text_hash in vectors)
    counts = np.array([1 + len(entry.windows) for entry in vectors.values()], dtype="<u4")
    fixed = _MAGIC + np.array([dim, len(vectors)], dtype="<u4").tobytes()
    return b"".join((fixed, hashes, counts.tobytes(), *map(dump_rows, vectors.values())))


def count_head_bytes(start: bytes) -> int:
    """Return the length of the head of a pack, given its first bytes; 0 if it is not a pack."""
    if len(start) < _FIXED_BYTES or not start.startswith(_MAGIC):
        return 0
    _, count = np.frombuffer(start[len(_MAGIC) : _FIXED_BYTES], dtype="<u4")
    return _FIXED_BYTES + _TEXT_BYTES * int(count)


def load_head(start: bytes) -> Head | None:
    """Read the head of a pack from its first bytes; None if it is damaged or incomplete."""
    length = count_head_bytes(start)
    if not length or len(start) < length:
        return None
    dim, count = (int(part) for part in np.frombuffer(start[len(_MAGIC) : _FIXED_BYTES], "<u4"))
    hashes = start[_FIXED_BYTES : _FIXED_BYTES + 32 * count]
    counts = np.frombuffer(start[_FIXED_BYTES + 32 * count : length], "<u4").astype(np.int64)
    if dim < 1 or (counts < 2).any():
        return None
    names = tuple(hashes[at : at + 32].hex() for at in range(0, len(hashes), 32))
    return Head(dim, names, counts)


def load_pack(data: bytes) -> dict[str, ChunkVectors]:
    """Read the vectors of all texts of a pack, by text hash; damaged texts are left out."""
    head = load_head(data)
    if head is None:
        return {}
    found: dict[str, ChunkVectors] = {}
    start = count_head_bytes(data)
    for text_hash, count in zip(head.text_hashes, head.row_counts.tolist(), strict=True):
        end = start + _NUMBER_BYTES * head.dim * count
        vectors = load_rows(data[start:end], head.dim)
        if vectors is not None and end <= len(data):
            found[text_hash] = vectors
        start = end
    return found


def dump_rows(vectors: ChunkVectors) -> bytes:
    """Return the rows of one text."""
    rows = np.vstack([vectors.dense[np.newaxis, :], vectors.windows])
    return rows.astype(STORED_DTYPE).tobytes()


def load_rows(rows: bytes, dim: int) -> ChunkVectors | None:
    """Read the rows of one text; None if they are damaged or incomplete."""
    row_bytes = _NUMBER_BYTES * dim
    if dim < 1 or len(rows) < 2 * row_bytes or len(rows) % row_bytes:
        return None
    matrix = np.frombuffer(rows, dtype=STORED_DTYPE).reshape(-1, dim).astype(np.float32)
    return ChunkVectors(matrix[0], matrix[1:])


class PackIndex:
    """An index of the texts in packs, which takes about 40 bytes of memory for each text.

    Most texts are in sorted arrays. Those of the packs that were added last are in a dictionary
    until there are enough of them to sort the arrays again.
    """

    def __init__(self) -> None:
        self._names: list[str] = []
        self._dims: list[int] = []
        self._numbers: dict[str, int] = {}
        self._gone: set[int] = set()
        self._sorted = np.zeros(0, _ENTRY)
        self._recent: dict[bytes, tuple[int, int, int]] = {}

    @property
    def names(self) -> frozenset[str]:
        """The names of all packs that were ever added."""
        return frozenset(self._numbers)

    def add(self, name: str, head: Head) -> None:
        """Add a pack."""
        number = len(self._names)
        self._names.append(name)
        self._dims.append(head.dim)
        self._numbers[name] = number
        sizes = head.row_counts * _NUMBER_BYTES * head.dim
        ends = _FIXED_BYTES + _TEXT_BYTES * len(sizes) + np.cumsum(sizes)
        for text_hash, end, size in zip(
            head.text_hashes, ends.tolist(), sizes.tolist(), strict=True
        ):
            self._recent[_to_key(text_hash)] = (number, end - size, end)
        if len(self._recent) >= _MOST_RECENT:
            self._sort()

    def remove(self, name: str) -> None:
        """Forget the texts of a pack that was deleted."""
        if name in self._numbers:
            self._gone.add(self._numbers[name])

    def find(self, text_hashes: Sequence[str]) -> dict[str, Place]:
        """Return the place of each text that a pack has, by text hash."""
        keys = [_to_key(text_hash) for text_hash in text_hashes]
        wanted = np.array(keys, dtype=_ENTRY["key"])
        first = np.searchsorted(self._sorted["key"], wanted, "left").tolist()
        last = np.searchsorted(self._sorted["key"], wanted, "right").tolist()
        found: dict[str, Place] = {}
        for text_hash, key, start, end in zip(text_hashes, keys, first, last, strict=True):
            places = [tuple(entry)[1:] for entry in self._sorted[start:end].tolist()]
            recent = self._recent.get(key)
            for number, begin, stop in (*places, *([recent] if recent else [])):
                if number not in self._gone:
                    found[text_hash] = Place(self._names[number], begin, stop, self._dims[number])
        return found

    def _sort(self) -> None:
        recent = np.array([(key, *place) for key, place in self._recent.items()], dtype=_ENTRY)
        whole = np.concatenate([self._sorted, recent])
        self._sorted = whole[np.argsort(whole["key"], kind="stable")]
        self._recent = {}


def group_places(
    places: Mapping[str, Place], largest_gap: int = 262_144
) -> Iterator[list[tuple[str, Place]]]:
    """Yield the texts in groups that one read can get: of one pack, with small gaps between them.

    Args:
        places: The place of each text, by text hash.
        largest_gap: Largest number of bytes between two texts of a group.
    """
    group: list[tuple[str, Place]] = []
    for entry in sorted(places.items(), key=lambda pair: pair[1]):
        if group:
            last, place = group[-1][1], entry[1]
            if place.pack != last.pack or place.start - last.end > largest_gap:
                yield group
                group = []
        group.append(entry)
    if group:
        yield group


def _to_key(text_hash: str) -> bytes:
    return bytes.fromhex(text_hash)[-_KEY_BYTES:]
