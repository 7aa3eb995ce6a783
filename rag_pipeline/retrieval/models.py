"""The results of the retrieval library.

The field names are part of the library's public contract.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rag_pipeline.core.ids import to_json
from rag_pipeline.core.protocols import ALL_POINTS, PointFilter
from rag_pipeline.retrieval.relatedness import SelectionVerdict

if TYPE_CHECKING:
    from rag_pipeline.core.models import TextBlock
    from rag_pipeline.core.payload import ChunkMetadata
    from rag_pipeline.core.text.abbreviations import Abbreviation
    from rag_pipeline.retrieval.queries import Mode, Query


@dataclass(frozen=True, slots=True)
class ChannelScores:
    """The scores of a hit against the question, by each channel and fused.

    Attributes:
        dense: Cosine of the question's and the chunk's vectors, -1 to 1.
        windows: Late-interaction (MaxSim) score, -1 to 1: the mean over the question's tokens,
            without stop words, of each token's cosine with the chunk's nearest window (a vector of
            four words). Equal to `dense` if the model has no windows.
        bm25: BM25 score, 0 or more, without an upper bound.
        lexical: Share of the question's terms that occur in the chunk or its headings, 0 to 1.
        fused: The combined score by which hits are ordered; mostly 0 to 1, but without bounds.
    """

    dense: float
    windows: float
    bm25: float
    lexical: float
    fused: float


@dataclass(frozen=True, slots=True)
class Citation:
    """The source of a passage: page title, section, URL (empty if unknown), module and chapter.

    Attributes:
        version: The version as the site names it, such as `2.0.x`; empty for the latest version.
        locale: The language, such as `fr`; empty for the default language.
        tabs: Labels of the tabs to open on the page, the outermost first.
    """

    title: str
    section: str
    url: str
    module: str
    chapter: str
    version: str = ""
    locale: str = ""
    tabs: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Title and section joined by `>`, and then the version and the language, if any."""
        parts = dict.fromkeys(part for part in (self.title, self.section) if part)
        version = f"version {self.version}" if self.version else ""
        edition = ", ".join(part for part in (version, self.locale) if part)
        return " > ".join(parts) + (f" ({edition})" if edition else "")


def name_edition(metadata: ChunkMetadata) -> tuple[str, str]:
    """Return `version` and `locale` of the citation of a chunk, both empty by default."""
    version = "" if metadata.is_latest else metadata.version_label or metadata.version or ""
    locale = "" if metadata.is_default_locale else metadata.locale or ""
    return version, locale


def name_section(metadata: ChunkMetadata) -> str:
    """Return the heading of a chunk's section, and the labels of the tabs below it."""
    heading = metadata.section_heading or metadata.title  # no heading at the top of a page
    path, tabs = [*metadata.heading_breadcrumb], [*metadata.tabs]
    below: list[str] = []
    while tabs and path and path[-1] == tabs[-1]:
        below.insert(0, tabs.pop())
        path.pop()
    is_top = heading == metadata.title
    return " > ".join(below if is_top and below else [heading, *below])


@dataclass(frozen=True, slots=True)
class ScoredChunk:
    """A passage that was found, with its score, metadata and citation.

    Attributes:
        chunk_id: 16 hexadecimal digits.
        text: The text of the chunk as it is in the book, after cleaning.
        score: 0 to 1, never rising: the question's highest similarity for the first hit and parts
            of it for the others, or a reranker's scores. 1 for a selection.
        channels: The scores of each channel; None for a selection, which was not searched for.
        expanded_text: The chunk joined with its neighbours; None if the query does not ask for it.
        expanded_blocks: The blocks of `expanded_text`. The blocks of `text` are in `metadata`.
    """

    chunk_id: str
    text: str
    score: float
    metadata: ChunkMetadata
    citation: Citation
    channels: ChannelScores | None = None
    expanded_text: str | None = None
    expanded_blocks: tuple[TextBlock, ...] = ()

    @property
    def context_text(self) -> str:
        """The expanded text if there is one, otherwise the text of the chunk."""
        return self.text if self.expanded_text is None else self.expanded_text

    @property
    def context_blocks(self) -> tuple[TextBlock, ...]:
        """The blocks (paragraphs, lists, code and others) of `context_text`."""
        return self.metadata.blocks if self.expanded_text is None else self.expanded_blocks


@dataclass(frozen=True, slots=True)
class TermWeight:
    """A term of the question with its weight in the book.

    Attributes:
        term: A lower-case, stemmed word or identifier.
        word: The word of the question that the term comes from, as written.
        weight: Greater than 0; higher for rarer terms, lower for words such as `code` that only
            say in which form to answer.
        known: True if the term occurs anywhere in the book.
    """

    term: str
    word: str
    weight: float
    known: bool


@dataclass(frozen=True, slots=True)
class WordNearness:
    """A word of the question with its similarity to the best passages.

    Attributes:
        weight: The weight of the heaviest term that the word contains.
        nearness: Late-interaction (MaxSim) score of the word, -1 to 1: the mean over its tokens of
            each token's cosine with the nearest window of a passage. The best passage counts.
    """

    word: str
    weight: float
    nearness: float


@dataclass(frozen=True, slots=True)
class Evidence:
    """Data from which the grounding rule decides if the book answers a question.

    Attributes:
        model: Fingerprint of the embedding model that the channel scores come from.
        chunk_count: Number of chunks that the query's filters allow.
        terms: The question's distinct terms in order, weighed over the whole book without other
            filters than `corpus`; empty for a question of stop words only.
        words: The question's words in order, compared with the five best passages; may be empty.
        unrelated: Mean and deviation of unrelated questions' best cosines; None with windows.
        corpus: The filter by version and language for the chunks whose terms are weighed.
        abbreviations: Abbreviations that the book spells out and of which the question has a form.
    """

    model: str
    chunk_count: int
    terms: tuple[TermWeight, ...]
    words: tuple[WordNearness, ...] = ()
    unrelated: tuple[float, float] | None = None
    corpus: PointFilter = ALL_POINTS
    abbreviations: tuple[Abbreviation, ...] = ()


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """The passages that were found for a query.

    Attributes:
        chunks: At most `top_k` passages, best first, without near-duplicates.
        total_candidates: Number of passages that were ranked before the cut to `top_k`.
        verdict: How the selection is related to the question; `ANSWERS` in normal mode.
        relatedness: Relatedness of question and selection, 0 to 1; None in normal mode.
        notice: A hint to show to the reader, such as to ask the whole book; None if there is none.
        evidence: Data for the grounding rule; None in selected-text mode.
        search_question: What was searched instead of the question; None if the question itself was.
        index_id: Id of the collection that was searched; empty in selected-text mode.
    """

    chunks: tuple[ScoredChunk, ...]
    query: Query
    mode: Mode
    total_candidates: int
    verdict: SelectionVerdict = SelectionVerdict.ANSWERS
    relatedness: float | None = None
    notice: str | None = None
    evidence: Evidence | None = None
    search_question: str | None = None
    index_id: str = ""

    @property
    def related(self) -> bool:
        """False if the question is not about the selection; True in normal mode."""
        return self.verdict is not SelectionVerdict.UNRELATED

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dictionary for `json.dumps`, with the fields of `SearchRecord`."""
        same = (
            "search_question",
            "index_id",
            "total_candidates",
            "chunks",
            "relatedness",
            "notice",
        )
        record = SearchRecord(
            question=self.query.question,
            mode=self.mode.value,
            verdict=self.verdict.value,
            **{name: getattr(self, name) for name in same},
        )
        form: dict[str, Any] = to_json(record)
        return form


@dataclass(frozen=True, slots=True)
class SearchRecord:
    """A search result as JSON, as `RetrievalResult.to_dict()` returns it.

    Attributes:
        question: The question as it was asked.
        mode: `normal` (the whole book was searched) or `selected_text_only`.
        search_question: The question that was searched because words of the question are
            misspelled; null if nothing was corrected.
        index_id: Id of the collection that was searched; empty in selected-text mode.
        total_candidates: Number of passages that were ranked before the list was cut to `top_k`.
        chunks: The passages, best first.
        verdict: Relation of the selection to the question; `answers` in normal mode.
        relatedness: Relatedness of question and selection, 0 to 1; null in normal mode.
        notice: A hint for the reader; null if there is none.
    """

    question: str
    mode: str
    search_question: str | None
    index_id: str
    total_candidates: int
    chunks: tuple[ScoredChunk, ...]
    verdict: str
    relatedness: float | None
    notice: str | None
