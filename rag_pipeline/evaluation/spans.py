"""How well retrieved spans cover the expected text, counted in tokens: chunking quality.

Belongs here: spans of documents as sets of tokens. Does not belong here: ranks (metrics).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from rag_pipeline.core.models import BlockKind
from rag_pipeline.core.tokens import find_token_ends

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from rag_pipeline.core.models import Heading, ParsedDoc
    from rag_pipeline.evaluation.golden_set import ExpectedSection
    from rag_pipeline.evaluation.records import RetrievedChunk

_DEPTH: Final = 5
_NO_TEXT_KINDS: Final = frozenset(
    {
        BlockKind.HEADING,
        BlockKind.FRONT_MATTER,
        BlockKind.ESM,
        BlockKind.COMMENT,
        BlockKind.THEMATIC_BREAK,
    }
)
_LOWEST_SECTION_LEVEL: Final = 3  # FR-002: h1, h2 and h3 divide chunks


class TokenMap:
    """A document's tokens by their place in the source; those of headings and of syntax without
    text do not count, so that a chunker is not judged by whether it repeats headings.
    """

    def __init__(self, parsed: ParsedDoc) -> None:
        self._parsed = parsed
        self._ends = np.array(find_token_ends(parsed.source), dtype=np.int64)
        self._counts = np.zeros(len(self._ends), dtype=np.bool_)
        for block in parsed.blocks:
            if block.kind not in _NO_TEXT_KINDS:
                self._counts |= self._within(block.start_byte, block.end_byte)

    def find_span(self, start_byte: int, end_byte: int) -> NDArray[np.bool_]:
        """Tokens that count and end within a span of bytes: a flag for each token."""
        return self._counts & self._within(start_byte, end_byte)

    def find_section(self, heading: str) -> NDArray[np.bool_]:
        """Tokens under every heading of that text, sections below it included.

        Under the document's title stands the text before the first other heading, as in
        `matching.hits_section`.
        """
        document, blocks = self._parsed.document, self._parsed.blocks
        starts = [
            (block.start_byte, block.heading) for block in blocks if block.heading is not None
        ]
        places = [(at, document.headings[index]) for at, index in starts]
        flags = np.zeros(len(self._ends), dtype=np.bool_)
        for position, (start, own) in enumerate(places):
            if own.text == heading:
                is_title = own.level == 1 and own.text == document.title
                lowest = _LOWEST_SECTION_LEVEL if is_title else own.level
                flags |= self.find_span(start, self._end_of(places[position + 1 :], lowest))
        if heading == document.title:
            flags |= self.find_span(0, self._end_of(places, _LOWEST_SECTION_LEVEL))
        return flags

    def _within(self, start_byte: int, end_byte: int) -> NDArray[np.bool_]:
        return (self._ends > start_byte) & (self._ends <= end_byte)

    def _end_of(self, following: Iterable[tuple[int, Heading]], lowest: int) -> int:
        last = int(self._ends[-1]) if len(self._ends) else 0
        return next((start for start, heading in following if heading.level <= lowest), last)


def score_spans(
    expected: Sequence[ExpectedSection],
    retrieved: Sequence[RetrievedChunk],
    maps: Mapping[str, TokenMap],
) -> dict[str, float]:
    """Recall, precision and intersection over union of the first five chunks, in tokens.

    A token that is returned twice counts once as found and twice as returned, so overlap has its
    price. A chunk of a document that is not in the corpus is returned and never right.

    Returns:
        `recall@5`, `precision@5`, `IoU@5`, each 0 to 1.

    Source:
        Token-wise measures: Smith, Troynikov: Evaluating Chunking Strategies for Retrieval, Chroma
        technical report, 2024.
    """
    wanted: dict[str, NDArray[np.bool_]] = {}
    for section in expected:
        flags = maps[section.doc_path].find_section(section.section_heading)
        wanted[section.doc_path] = wanted.get(section.doc_path, np.zeros_like(flags)) | flags
    found = {path: np.zeros_like(flags) for path, flags in wanted.items()}
    returned_count = 0
    for chunk in retrieved[:_DEPTH]:
        token_map = maps.get(chunk.doc_path)
        if token_map is None:
            returned_count += chunk.token_count
            continue
        flags = token_map.find_span(chunk.start_byte, chunk.end_byte)
        returned_count += int(flags.sum())
        if chunk.doc_path in wanted:
            found[chunk.doc_path] |= flags & wanted[chunk.doc_path]
    wanted_count = sum(int(flags.sum()) for flags in wanted.values())
    found_count = sum(int(flags.sum()) for flags in found.values())
    return {
        "recall@5": _divide(found_count, wanted_count),
        "precision@5": _divide(found_count, returned_count),
        "IoU@5": _divide(found_count, wanted_count + returned_count - found_count),
    }


def _divide(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
