"""Questions that a program makes from a book, for a first measurement without a golden set.

A question is a heading of the book, or the most unusual words of one sentence. Nobody has read the
questions, and they use the book's own words. Figures from them are higher than those from questions
of readers.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.core.text.sentences import split_sentences
from rag_pipeline.core.text.terms import extract_terms, find_content_words, find_distinct_terms
from rag_pipeline.evaluation.definitions import QUIZZES
from rag_pipeline.evaluation.golden_entry import choose_half
from rag_pipeline.evaluation.golden_set import MACHINE_MADE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rag_pipeline.core.models import JsonValue, ParsedDoc

_MIN_HEADING_TERMS: Final = 2  # "Summary" alone asks for nothing
_MIN_SENTENCE_WORDS: Final = 5  # content words; shorter sentences rarely say one thing completely
_MAX_SENTENCE_WORDS: Final = 25
_QUESTION_WORDS: Final = 6  # as many as people type into a search box


@dataclass(frozen=True, slots=True)
class _Section:
    """A section of a page.

    Attributes:
        heading: The section's own heading, which no other section of the page has.
        terms: The distinct terms of the section's text.
        sentences: The sentences of its paragraphs, without their Markdown.
    """

    doc_path: str
    heading: str
    terms: frozenset[str]
    sentences: tuple[str, ...]


def suggest_questions(pages: Sequence[ParsedDoc], limit: int = 50) -> list[dict[str, JsonValue]]:
    """Return questions about a book as entries of a golden set, each with the section it is from.

    Half of the questions are headings, the other half are words of sentences. They come from as
    many pages as possible. The same book always gives the same questions. Quizzes give none.

    Args:
        pages: All documents of the book.
        limit: Most questions to return. A small book gives fewer.
    """
    sections = [section for page in pages for section in _read_sections(page)]
    counts = Counter(term for section in sections for term in section.terms)
    headings = Counter(section.heading.casefold() for section in sections)
    entries: list[dict[str, JsonValue]] = []
    for section in _spread(sections):
        words = _choose_words(section, counts, len(sections))
        is_unique = headings[section.heading.casefold()] == 1
        terms = len(extract_terms(section.heading))
        is_clear = is_unique and _MIN_HEADING_TERMS <= terms <= _MAX_SENTENCE_WORDS
        heading = section.heading if is_clear else ""
        question = (heading or words) if len(entries) % 2 == 0 else (words or heading)
        if question and len(entries) < limit:
            entries.append(_make_entry(len(entries) + 1, question, section))
    return entries


def _make_entry(number: int, question: str, section: _Section) -> dict[str, JsonValue]:
    name = f"machine-{number:03}"
    place: dict[str, JsonValue] = {
        "doc_path": section.doc_path,
        "section_heading": section.heading,
    }
    return {
        "id": name,
        "question": question,
        "category": MACHINE_MADE,
        "all_of": False,
        "expected": [place],
        "split": choose_half(name),
    }


def _read_sections(page: ParsedDoc) -> Iterator[_Section]:
    """Yield the sections of a page that a golden set can name and that contain text."""
    document = page.document
    if document.content_type in QUIZZES:
        return
    texts: dict[str, list[str]] = {}
    sentences: dict[str, list[str]] = {}
    name, repeated = document.title, set[str]()
    for block in page.blocks:
        if block.heading is not None:
            name = document.headings[block.heading].text or document.title
            if texts.get(name):
                repeated.add(name)
            texts.setdefault(name, [])
            continue
        texts.setdefault(name, []).append(block.text)
        if block.text_kind is TextBlockKind.PARAGRAPH and not block.containers:
            spans = split_sentences(block.text)
            sentences.setdefault(name, []).extend(block.text[start:end] for start, end in spans)
    for heading, parts in texts.items():
        terms = find_distinct_terms("\n".join(parts))
        if terms and heading not in repeated:
            found = tuple(sentences.get(heading, ()))
            yield _Section(str(document.doc_path), heading, terms, found)


def _spread(sections: Iterable[_Section]) -> list[_Section]:
    """Return the sections in an order in which each page comes again only after all others."""
    rounds: Counter[str] = Counter()
    keyed = []
    for section in sorted(sections, key=_hash):
        keyed.append((rounds[section.doc_path], section))
        rounds[section.doc_path] += 1
    return [section for _, section in sorted(keyed, key=lambda one: (one[0], _hash(one[1])))]


def _hash(section: _Section) -> bytes:
    return hashlib.sha256(f"{section.doc_path}\0{section.heading}".encode()).digest()


def _choose_words(section: _Section, counts: Counter[str], total: int) -> str:
    """Return the most unusual words of the section's most unusual sentence; empty without one.

    A word is unusual if few sections of the book contain it.
    """
    best, question = 0.0, ""
    for sentence in section.sentences:
        words = [sentence[start:end] for start, end in find_content_words(sentence)]
        if not _MIN_SENTENCE_WORDS <= len(words) <= _MAX_SENTENCE_WORDS:
            continue
        weights = [
            max((math.log(total / counts[term]) for term in extract_terms(word)), default=0.0)
            for word in words
        ]
        ranked = sorted(range(len(words)), key=lambda at: -weights[at])[:_QUESTION_WORDS]
        mean = sum(weights[at] for at in ranked) / len(ranked)
        if mean > best:
            best, question = mean, " ".join(words[at] for at in sorted(ranked))
    return question
