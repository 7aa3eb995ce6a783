"""Recognise the texts that define a term: headings, glossary entries and defining sentences."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.quoting.passages import skip_marks
from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.core.text.terms import extract_terms

if TYPE_CHECKING:
    from rag_pipeline.answering.quoting.passages import Part

HEADED: Final = 1.0
"""Degree of the text directly below a heading that is the term."""

ENTRY: Final = 0.9
"""Degree of a text that begins with the term, as an entry of a glossary does."""

_ROW: Final = 0.8
_SENTENCE: Final = 0.6
_BELOW_HEADING: Final = 0.5
_EMPHASIS: Final = 0.3

_WORD: Final = re.compile(r"[^\W_]+(?:\+\+|#)?")
_BRACKETS: Final = re.compile(r"\(([^()]*)\)")
_VERSION: Final = re.compile(r"\s\d[\d.]*$")
_SAYS: Final = (
    r"(?:(?:is|are|was|were)\s+(?:an?|the|any|what|how|when|one|called|defined)\b"
    r"|means?\b|refers?\s+to\b|denotes?\b|stands?\s+for\b|describes?\b)"
)


def measure_definition(part: Part, subject: str) -> float:
    """Return how clearly a part of a source defines a term, from 0 (not at all) to 1.

    The clearest definition is the text directly below a heading that is the term. Then follow a
    glossary entry, which begins with the term, a row of a table that does, a sentence such as "X is
    a ...", other text below such a heading, and the term in emphasis, as authors introduce a term.
    """
    entry, row, sentence, emphasis = _compile(subject)
    degree = 0.0
    if part.source.headings and _is_named(part.source.headings[-1], subject):
        degree = HEADED if part.opens else _BELOW_HEADING
    if entry.match(skip_marks(part.text)):
        return max(degree, ENTRY)
    if TextBlockKind.TABLE in part.kinds and row.search(part.text):
        return max(degree, _ROW)
    if sentence.search(part.text):
        return max(degree, _SENTENCE)
    return max(degree, _EMPHASIS if emphasis.search(part.text) else 0.0)


def is_defined_by(sentence: str, subject: str) -> bool:
    """Return True if a sentence says what a term is, such as "X is a ..."."""
    entry, _, defining, _ = _compile(subject)
    return bool(entry.match(skip_marks(sentence)) or defining.search(sentence))


def _is_named(heading: str, subject: str) -> bool:
    """Return True if a heading is the subject, apart from stop words, word forms and brackets.

    `Intersection over union (IoU)` is named by each of its two names and by both together. A number
    at the end, such as that of a version, may be missing from the subject.
    """
    names = [heading, _BRACKETS.sub(" ", heading), *_BRACKETS.findall(heading)]
    names += [_VERSION.sub("", name) for name in names]
    asked = [subject, _BRACKETS.sub(" ", subject), *_BRACKETS.findall(subject)]
    terms = {tuple(extract_terms(name)) for name in asked} - {()}
    return any(tuple(extract_terms(name)) in terms for name in names)


@lru_cache(maxsize=64)
def _compile(subject: str) -> tuple[re.Pattern[str], ...]:
    """Return the patterns of an entry, a row of a table, a defining sentence and a marked term."""
    words = _WORD.findall(_BRACKETS.sub(" ", subject)) or _WORD.findall(subject)
    term = r"[\W_]{0,3}".join(map(re.escape, words)) + r"(?:e?s)?(?:\s?\d[\d.]*)?"
    # Each repetition has a small bound or is possessive, so that no text takes quadratic time.
    marks = r"[*_`]{0,3}"
    alone = rf"{term}(?![\w+#])(?:{marks}\s?\([^()\n]{{1,60}}\))?"
    short = rf"(?:[^\n.:|]{{1,60}}\(\s?{term}\s?\)|{alone})"
    entry = rf"{short}{marks}\s?(?:[:|\u2013\u2014]|-\s|,\s+(?:also|or)\b|{_SAYS})"
    sentence = rf"(?:^\s?|[.!?:;]\s)(?:an?\s|the\s)?{marks}{short}{marks}\s{_SAYS}"
    emphasis = rf"(?<!\w)(?:[*_]{{1,3}}){term}(?:[*_]{{1,3}})(?!\w)"
    row = rf"^[ \t>]*+\|?[ \t]*+{marks}{short}{marks}[ \t]*+\|"
    flags = re.IGNORECASE | re.MULTILINE
    return tuple(re.compile(pattern, flags) for pattern in (entry, row, sentence, emphasis))
