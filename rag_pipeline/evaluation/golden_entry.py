"""Helps to write a golden-set entry: the sections that may answer it, and a fair wording.

It looks up words and never asks retrieval: a set written from what a retriever finds would judge
that retriever too kindly.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.docusaurus import MARKDOWN_SUFFIXES
from rag_pipeline.core.errors import QueryError
from rag_pipeline.core.terms import extract_terms, extract_words
from rag_pipeline.evaluation.golden_set import SECTION_LEVEL
from rag_pipeline.ingestion.markdown.constructs.marks import FRONT_MATTER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.models import JsonValue, ParsedDoc
    from rag_pipeline.evaluation.golden_set import Half

MAX_SHARED_WORDS: Final = 4  # longest run of words a question may share with a section
MAX_TERM_SHARE: Final = 0.9  # of the question's terms; the rest must be the asker's own
_NEARLY_BEST: Final = 0.8  # share of the best section's match from which a section is proposed
_MAX_ID_WORDS: Final = 5


@dataclass(frozen=True, slots=True)
class Overlap:
    """Overlap of a question's wording with a section.

    Attributes:
        shared_words: Words in the longest run that occurs in both, in order.
        term_share: Share of the question's distinct terms that occur in the section, 0 to 1.
    """

    shared_words: int
    term_share: float

    @property
    def is_fair(self) -> bool:
        """True if the question is in a student's words and not copied."""
        return self.shared_words <= MAX_SHARED_WORDS and self.term_share <= MAX_TERM_SHARE


@dataclass(frozen=True, slots=True)
class SectionMatch:
    """A section that may answer a question.

    Attributes:
        share: Share of the searched terms that occur in the section, 0 to 1; 0 without any term.
        overlap: Overlap with the question; None without a question.
    """

    doc_path: str
    section_heading: str
    share: float
    overlap: Overlap | None


@dataclass(frozen=True, slots=True)
class EntrySuggestion:
    """A proposal for a new entry.

    Attributes:
        sections: Sections of the page in its order, or of all pages with the best match first.
        entry: An entry for `queries`. Its `expected` lists every section that matches nearly as
            well as the best, for the author to read and strike out.
        warnings: Reasons not to use the entry as it is.
    """

    sections: tuple[SectionMatch, ...]
    entry: dict[str, JsonValue]
    warnings: tuple[str, ...]


def read_section_texts(parsed: ParsedDoc) -> dict[str, str]:
    """Return the source of each h1, h2 and h3 section by its heading, without its subsections.

    Sections with the same heading are joined.
    """
    document = parsed.document
    name, texts = document.title, dict[str, str]()
    for block in parsed.blocks:
        if block.kind == FRONT_MATTER.name:
            continue
        if block.heading is not None:
            heading = document.headings[block.heading]
            if heading.level <= SECTION_LEVEL:
                name = heading.text or document.title
        texts[name] = f"{texts.get(name, '')}{parsed.source[block.start : block.end]}\n"
    return texts


def measure_overlap(question: str, text: str) -> Overlap:
    """Compare a question with a section's text, ignoring letter case."""
    asked = [word.casefold() for word in extract_words(question)]
    there = [word.casefold() for word in extract_words(text)]
    run = difflib.SequenceMatcher(None, asked, there, autojunk=False).find_longest_match()
    return Overlap(run.size, _share_terms(question, set(extract_terms(text))))


def choose_half(query_id: str) -> Half:
    """Return the half of the set that an id belongs to; fixed before anything is measured."""
    return "report" if hashlib.sha256(query_id.encode()).digest()[0] % 2 else "tune"


def suggest_entry(
    pages: Sequence[ParsedDoc], text: str, *, question: str = "", limit: int = 8
) -> EntrySuggestion:
    """Propose an entry for a page or for words to search for.

    Args:
        pages: The whole corpus.
        text: Path of a page, to list its sections; or words, to list the sections of all pages
            that contain them.
        question: The question as it will be asked; ranks the sections of a page.
        limit: Longest list of sections found by words.

    Raises:
        QueryError: No page has that path, or no section contains any of the words.
    """
    chosen = [page for page in pages if page.document.doc_path == text]
    if not chosen and text.endswith(MARKDOWN_SUFFIXES):
        near = difflib.get_close_matches(text, [page.document.doc_path for page in pages], n=1)
        hint = f"The nearest is {near[0]}" if near else "Give a path below the docs folder"
        raise QueryError(f"{text[:80]!r} is no page. {hint}")
    matches = [
        _match_section(page, heading, body, question if chosen else text, question)
        for page in chosen or pages
        for heading, body in read_section_texts(page).items()
    ]
    ranked = sorted(matches, key=lambda match: -match.share)
    best = ranked[0].share if ranked else 0.0
    if not chosen and not best:
        raise QueryError(f"no section holds words of {text[:80]!r}. Try others, or a page's path")
    if not chosen:
        matches = [match for match in ranked if match.share > 0][:limit]
    proposed = [match for match in ranked if match.share >= best * _NEARLY_BEST][:limit]
    words = [word.casefold() for word in re.findall(r"[^\W_]+", question or text)]
    name = "-".join(words[:_MAX_ID_WORDS]) or "new"
    entry: dict[str, JsonValue] = {
        "id": name,
        "question": question,
        "category": "fact",
        "all_of": False,
        "expected": [
            {"doc_path": match.doc_path, "section_heading": match.section_heading}
            for match in proposed
        ],
        "split": choose_half(name),
    }
    return EntrySuggestion(tuple(matches), entry, tuple(_find_faults(question, proposed)))


def _match_section(
    page: ParsedDoc, heading: str, body: str, searched: str, question: str
) -> SectionMatch:
    overlap = measure_overlap(question, body) if question else None
    share = _share_terms(searched, set(extract_terms(f"{heading}\n{body}")))
    return SectionMatch(str(page.document.doc_path), heading, share, overlap)


def _share_terms(text: str, there: set[str]) -> float:
    terms = set(extract_terms(text))
    return len(terms & there) / len(terms) if terms else 0.0


def _find_faults(question: str, proposed: Sequence[SectionMatch]) -> list[str]:
    if not question:
        return ["question is empty: ask it in a student's words"]
    return [
        f"the question shares {match.overlap.shared_words} words in a row and "
        f"{match.overlap.term_share:.0%} of its terms with {match.doc_path} "
        f"({match.section_heading}): ask it in other words"
        for match in proposed
        if match.overlap and not match.overlap.is_fair
    ]
