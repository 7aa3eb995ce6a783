"""Suggestions for a new golden-set question: sections that may answer it, and its wording.

Sections are found by matching words, never by retrieval. If a retriever chose the expected
sections, the golden set would make that retriever look too good.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import QueryError
from rag_pipeline.core.site.docusaurus import MARKDOWN_SUFFIXES
from rag_pipeline.core.text.terms import extract_terms, extract_words
from rag_pipeline.ingestion.markdown.constructs.text import FRONT_MATTER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.models import JsonValue, ParsedDoc
    from rag_pipeline.evaluation.golden_set import Half

MAX_SHARED_WORDS: Final = 4  # most consecutive words that a question may share with a section
MAX_TERM_SHARE: Final = 0.9  # highest share of a question's terms that may occur in a section
_NEARLY_BEST: Final = 0.8  # proposed sections match at least this share of the best match
_MAX_ID_WORDS: Final = 5


@dataclass(frozen=True, slots=True)
class Overlap:
    """The overlap between the wording of a question and the text of a section.

    Attributes:
        shared_words: Number of words in the longest run of consecutive words that both contain.
        term_share: Share of the question's distinct terms (stemmed words without stop words) that
            occur in the section, 0 to 1.
    """

    shared_words: int
    term_share: float

    @property
    def is_fair(self) -> bool:
        """True if the question is not copied from the section.

        The question may share at most `MAX_SHARED_WORDS` consecutive words and at most the share
        `MAX_TERM_SHARE` of its terms with the section.
        """
        return self.shared_words <= MAX_SHARED_WORDS and self.term_share <= MAX_TERM_SHARE


@dataclass(frozen=True, slots=True)
class SectionMatch:
    """A section of the book that may answer a new golden-set question.

    Attributes:
        doc_path: Id of the document that contains the section.
        section_heading: The section's heading.
        share: Share of the distinct search terms that occur in the section, 0 to 1; 0 if there are
            none. The terms come from the search words, or from the question if a page was named.
        overlap: Overlap of the section with the question's wording; None without a question.
    """

    doc_path: str
    section_heading: str
    share: float
    overlap: Overlap | None


@dataclass(frozen=True, slots=True)
class EntrySuggestion:
    """A suggested golden-set entry, with the sections that its author should look at.

    Attributes:
        sections: If a page was given, all its sections in page order. If words were given, the
            matching sections of all pages, best match first.
        entry: A JSON object for the list `queries`. Its `expected` contains every section that
            matches nearly as well as the best one; the author removes those that do not answer.
        warnings: Reasons why the question should be reworded before the entry is used.
    """

    sections: tuple[SectionMatch, ...]
    entry: dict[str, JsonValue]
    warnings: tuple[str, ...]


def read_section_texts(parsed: ParsedDoc) -> dict[str, str]:
    """Return the Markdown source of each section of a document, by heading.

    A section reaches from a heading of any level to the next heading. The text before the
    first heading is filed under the document's title, and front matter is left out. Sections with
    the same heading are joined.
    """
    document = parsed.document
    name, texts = document.title, dict[str, str]()
    for block in parsed.blocks:
        if block.kind == FRONT_MATTER.name:
            continue
        if block.heading is not None:
            name = document.headings[block.heading].text or document.title
        texts[name] = f"{texts.get(name, '')}{parsed.source[block.start : block.end]}\n"
    return texts


def measure_overlap(question: str, text: str) -> Overlap:
    """Measure how much of a question's wording occurs in a section's text, ignoring letter case."""
    words = [word.casefold() for word in extract_words(question)]
    section_words = [word.casefold() for word in extract_words(text)]
    run = difflib.SequenceMatcher(None, words, section_words, autojunk=False).find_longest_match()
    return Overlap(run.size, _share_terms(question, set(extract_terms(text))))


def choose_half(query_id: str) -> Half:
    """Return the half of the golden set, "tune" or "report", for the id of a new question.

    The half depends only on a hash of the id, so that nobody can choose it by looking at results.
    """
    return "report" if hashlib.sha256(query_id.encode()).digest()[0] % 2 else "tune"


def suggest_entry(
    pages: Sequence[ParsedDoc], text: str, *, question: str = "", limit: int = 8
) -> EntrySuggestion:
    """Suggest a golden-set entry for a page, or for the sections that contain given words.

    Args:
        pages: All documents of the corpus.
        text: Path of a page below the docs folder, to list its sections; or words, to list the
            sections of all pages that contain them.
        question: The question as it will be asked. Together with a page path, its terms decide
            which sections are proposed.
        limit: Most sections to propose, and most sections to list when words are given.

    Raises:
        QueryError: `text` ends like a document's path, but no page has this path; or no section
            contains any of the words.
    """
    chosen = [page for page in pages if page.document.doc_path == text]
    if not chosen and text.endswith(MARKDOWN_SUFFIXES):
        near = difflib.get_close_matches(text, [page.document.doc_path for page in pages], n=1)
        hint = f"Did you mean {near[0]}?" if near else "Give a path below the docs folder"
        raise QueryError(f"the docs folder has no page {text[:80]!r}. {hint}")
    matches = [
        _match_section(page, heading, body, question if chosen else text, question)
        for page in chosen or pages
        for heading, body in read_section_texts(page).items()
    ]
    ranked = sorted(matches, key=lambda match: -match.share)
    best = ranked[0].share if ranked else 0.0
    if not chosen and not best:
        raise QueryError(
            f"no section contains a word of {text[:80]!r}. Try other words, or give a page's path"
        )
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
    return EntrySuggestion(tuple(matches), entry, tuple(_list_warnings(question, proposed)))


def _match_section(
    page: ParsedDoc, heading: str, body: str, searched: str, question: str
) -> SectionMatch:
    overlap = measure_overlap(question, body) if question else None
    share = _share_terms(searched, set(extract_terms(f"{heading}\n{body}")))
    return SectionMatch(str(page.document.doc_path), heading, share, overlap)


def _share_terms(text: str, section_terms: set[str]) -> float:
    terms = set(extract_terms(text))
    return len(terms & section_terms) / len(terms) if terms else 0.0


def _list_warnings(question: str, proposed: Sequence[SectionMatch]) -> list[str]:
    if not question:
        return ["the question is empty. Write it in a student's words"]
    return [
        f"the question shares {match.overlap.shared_words} words in a row and "
        f"{match.overlap.term_share:.0%} of its terms with {match.doc_path} "
        f"({match.section_heading}). Ask it in other words"
        for match in proposed
        if match.overlap and not match.overlap.is_fair
    ]
