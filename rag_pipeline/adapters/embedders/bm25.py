"""BM25 term weights by Qdrant's own encoder over our terms; one encoder feeds the embedded store
and a server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import qdrant_edge as edge

from rag_pipeline.core.terms import extract_terms
from rag_pipeline.core.vectors import SparseVector

if TYPE_CHECKING:
    from collections.abc import Sequence

AVERAGE_LENGTH: Final = 90.0
"""Terms a chunk, heading path included: measured over the textbook; it only scales the length
penalty.
"""


class Bm25Encoder:
    """A `SparseEncoder`: term weights with k = 1.2, b = 0.75; the store multiplies by inverse
    document frequency.
    """

    def __init__(self) -> None:
        # Our terms are final: the encoder must neither stem, fold nor drop any of them.
        self._bm25 = edge.Bm25(
            edge.Bm25Config(
                k=1.2,
                b=0.75,
                avg_len=AVERAGE_LENGTH,
                tokenizer=edge.TokenizerType.Whitespace,
                lowercase=False,
                stopwords=edge.StopwordsSet(),
                stemmer=edge.DisabledStemmer(),
            )
        )

    def encode_passages(self, texts: Sequence[str]) -> list[SparseVector]:
        """Term weights of texts to be found, in order."""
        return [_sort(self._bm25.embed_document(" ".join(extract_terms(text)))) for text in texts]

    def encode_query(self, text: str) -> SparseVector:
        """Term weights of a question: 1 for each term."""
        return _sort(self._bm25.embed_query(" ".join(extract_terms(text))))

    def encode_terms(self, terms: Sequence[str]) -> list[SparseVector]:
        """Each term alone, with weight 1."""
        return [_sort(self._bm25.embed_query(term)) for term in terms]


def _sort(vector: Any) -> SparseVector:  # noqa: ANN401  # the engine's class carries no usable type
    pairs = sorted(zip(vector.indices, vector.values, strict=True))
    return SparseVector(tuple(index for index, _ in pairs), tuple(value for _, value in pairs))
