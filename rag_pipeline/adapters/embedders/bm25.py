"""BM25 term weights, computed by Qdrant's own encoder from the terms of `core.terms`.

The embedded store and the Qdrant server use the same encoder.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import qdrant_edge as edge

from rag_pipeline.core.text.abbreviations import mark_abbreviations
from rag_pipeline.core.text.terms import extract_terms
from rag_pipeline.core.vectors import SparseVector

if TYPE_CHECKING:
    from collections.abc import Sequence

AVERAGE_LENGTH: Final = 90.0
"""Average number of terms in a chunk with its heading path, measured on the textbook.

BM25 uses it only to scale the penalty for long texts.
"""

_K: Final = 1.2
_B: Final = 0.75


class Bm25Encoder:
    """A sparse encoder that computes BM25 term weights with k = 1.2 and b = 0.75.

    The weights do not include the inverse document frequency; the store multiplies by it during a
    search.
    """

    def __init__(self) -> None:
        # The terms are already normalized, so the encoder must not stem, fold or drop any.
        self._bm25 = edge.Bm25(
            edge.Bm25Config(
                k=_K,
                b=_B,
                avg_len=AVERAGE_LENGTH,
                tokenizer=edge.TokenizerType.Whitespace,
                lowercase=False,
                stopwords=edge.StopwordsSet(),
                stemmer=edge.DisabledStemmer(),
            )
        )

    def encode_passages(self, texts: Sequence[str]) -> list[SparseVector]:
        """Return the BM25 term weights of each text to be indexed, in order.

        A text that spells out an abbreviation also gets the marks of the abbreviation.
        """
        return [self._encode([*extract_terms(text), *mark_abbreviations(text)]) for text in texts]

    def encode_query(self, text: str) -> SparseVector:
        """Return the terms of a question, each with weight 1; empty if it has no terms."""
        return _sort(self._bm25.embed_query(" ".join(extract_terms(text))))

    def encode_terms(self, terms: Sequence[str]) -> list[SparseVector]:
        """Return one sparse vector per term, in order, with only that term and weight 1."""
        return [_sort(self._bm25.embed_query(term)) for term in terms]

    def _encode(self, terms: Sequence[str]) -> SparseVector:
        """Return the weights of the terms of one text.

        In a text of many thousand terms, two terms may have the same id. The engine then gives the
        id the weight of either term by chance. Here it gets the weight of both terms together.
        """
        vector = _sort(self._bm25.embed_document(" ".join(terms)))
        counts = Counter(terms)
        if len(vector.indices) == len(counts):
            return vector
        ids = (entry.indices[0] for entry in self.encode_terms(list(counts)))
        by_id: Counter[int] = Counter()
        for term_id, count in zip(ids, counts.values(), strict=True):
            by_id[term_id] += count
        length = _K * (1 - _B + _B * len(terms) / AVERAGE_LENGTH)
        pairs = sorted(by_id.items())
        return SparseVector(
            tuple(term_id for term_id, _ in pairs),
            tuple(count * (_K + 1) / (count + length) for _, count in pairs),
        )


def _sort(vector: Any) -> SparseVector:  # noqa: ANN401  # the engine's classes have no usable types
    pairs = sorted(zip(vector.indices, vector.values, strict=True))
    return SparseVector(tuple(index for index, _ in pairs), tuple(value for _, value in pairs))
