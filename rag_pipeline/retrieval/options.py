"""The options of a retriever."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_pipeline.core.models import SiteSettings
from rag_pipeline.retrieval.ranking import FusionWeights

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from collections.abc import Set as AbstractSet

    from rag_pipeline.core.sources import Source


@dataclass(frozen=True, slots=True)
class RetrieverOptions:
    """The thresholds, weights and word list of retrieval.

    Attributes:
        dedup_threshold: Two chunks whose vectors have a higher cosine are near-duplicates, and
            only the better chunk is returned.
        selected_text_threshold: The least share of a question's words, 0 to 1, in a selection that
            answers it. A similar meaning can replace the words.
        weights: The weights of the fused score.
        site: The site settings from which URLs of selections are built.
        sources: The sources of the site, which name the version and language of selections.
        load_everyday_words: Returns words, in lower case, that are not misspelled although the book
            lacks them. None corrects no question.
    """

    dedup_threshold: float = 0.95
    selected_text_threshold: float = 0.38
    weights: FusionWeights = FusionWeights()  # noqa: RUF009  # frozen
    site: SiteSettings = SiteSettings()  # noqa: RUF009  # frozen
    sources: Sequence[Source] = ()
    load_everyday_words: Callable[[], AbstractSet[str]] | None = None
