"""Questions about the terms of a book's glossary, and the sections that define each term."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from rag_pipeline.core.models import ContentType
from rag_pipeline.core.site.docusaurus import strip_number_prefix
from rag_pipeline.core.text.sentences import split_sentences
from rag_pipeline.core.text.terms import extract_terms
from rag_pipeline.evaluation.golden_set import DefinitionCase, ExpectedSection
from rag_pipeline.ingestion.markdown.constructs.paragraph import PARAGRAPH
from rag_pipeline.ingestion.markdown.constructs.table import TABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rag_pipeline.core.models import JsonValue, ParsedDoc

QUIZZES: Final = frozenset({ContentType.QUIZ, ContentType.ASSESSMENT})
"""Kinds of pages that ask questions instead of explaining."""

_GLOSSARY: Final = re.compile(r"\bgloss?a[ir]", re.IGNORECASE)  # also glossaire, Glossar, glosario
_MARKUP: Final = re.compile(r"[*`]+|(?<!\w)_+|_+(?!\w)")  # an identifier keeps its underscores
_INLINE: Final = re.compile(
    r"(?:[-*+]|\d+[.)])?[ \t]*(?P<mark>\*\*|__|`)(?P<term>[^*`\n]{1,80}?)(?P=mark)"
    r"[ \t:=\u2013\u2014-]*\s*(?P<text>\S.*)",
    re.DOTALL,
)
"""A paragraph or list item that begins with a term in bold or code, and then explains it."""

_PARENTHESES: Final = re.compile(r"^(?P<name>.+?)\s*\((?P<other>[^()]+)\)$")
_VERBS: Final = (
    r"(?:(?:is|are)\s+(?:an?|the|any|one|how|what|called|defined)|means?|refers?\s+to"
    r"|stands?\s+for|denotes?|describes?)\b"
)


class _Entry(NamedTuple):
    """An entry of a glossary: its term, its heading if it has one, and the explaining text."""

    term: str
    heading: str | None
    text: str


def find_definitions(documents: Sequence[ParsedDoc]) -> tuple[DefinitionCase, ...]:
    """Return the terms of a book's glossary in its order, each once, with the defining sections.

    A page is a glossary if its file name, title or sidebar label says so. Its entries are the
    headings that a text follows, or the paragraphs, list items or table rows that begin with a
    term, whichever are more. A section of another page defines a term if its heading is the term,
    or if a paragraph begins with a sentence such as "A term is a ...". Quizzes define nothing.
    The result is empty for a book without a glossary.
    """
    explaining = [
        parsed
        for parsed in documents
        if parsed.document.content_type not in QUIZZES and not is_glossary(parsed)
    ]
    headings = [place for parsed in explaining for place in _read_headings(parsed)]
    heading_terms = [(place, extract_terms(place.section_heading)) for place in headings]
    sentences = [found for parsed in explaining for found in _read_sentences(parsed)]
    cases: dict[str, DefinitionCase] = {}
    for parsed in filter(is_glossary, documents):
        for term, heading, text in _read_entries(parsed):
            names = name_variants(term)
            wanted = [terms for name in names if (terms := extract_terms(name))]
            defines = re.compile(
                rf"(?:an?\s+|the\s+)?(?:{'|'.join(map(re.escape, names))})s?"
                rf"(?:\s*\([^()]*\))?\s+{_VERBS}",
                re.IGNORECASE,
            )
            own = [ExpectedSection(parsed.document.doc_path, heading)] if heading else []
            titled = [place for place, terms in heading_terms if terms in wanted]
            said = [place for place, sentence in sentences if defines.match(sentence)]
            start, end = next(iter(split_sentences(text)), (0, len(text)))
            places = tuple(dict.fromkeys([*own, *titled, *said]))
            cases.setdefault(term.casefold(), DefinitionCase(term, text[start:end], places))
    return tuple(cases.values())


def list_definitions(cases: Sequence[DefinitionCase]) -> dict[str, JsonValue]:
    """Return the cases in the format of a golden set, under the key `definitions`."""
    return {
        "definitions": [
            {
                "term": case.term,
                "definition": case.definition,
                "places": [
                    {"doc_path": place.doc_path, "section_heading": place.section_heading}
                    for place in case.places
                ],
            }
            for case in cases
        ]
    }


def is_glossary(parsed: ParsedDoc) -> bool:
    """Return True if the file name, title or sidebar label of a page contains "glossary"."""
    document = parsed.document
    stem = posixpath.splitext(posixpath.basename(document.doc_path))[0]
    names = (strip_number_prefix(stem), document.title, document.sidebar_label)
    return any(_GLOSSARY.search(name) for name in names)


def _read_entries(parsed: ParsedDoc) -> list[_Entry]:
    """Return the entries of a glossary page in page order."""
    headed: dict[int, list[_Entry]] = {}  # by level of the heading
    inline: list[_Entry] = []
    heading = None
    for block in parsed.blocks:
        if block.heading is not None:
            heading = parsed.document.headings[block.heading]
            continue
        if block.kind == TABLE.name:
            rows = block.text.split("\n")[2:]  # the first two lines are the head
            cells = [[cell.strip() for cell in row.strip().strip("|").split("|")] for row in rows]
            full = [row for row in cells if all(row[:2]) and row[1:]]
            inline += [_Entry(_clean(row[0]), None, row[1]) for row in full]
        elif block.kind == PARAGRAPH.name and block.text.strip():
            if match := _INLINE.match(block.text):
                inline.append(_Entry(_clean(match["term"]), None, match["text"]))
            # The title and the letters of the alphabet are no terms.
            if heading and len(heading.text) > 1 and heading.text != parsed.document.title:
                entry = _Entry(_clean(heading.text), heading.text, block.text)
                headed.setdefault(heading.level, []).append(entry)
        heading = None
    most = max(headed.values(), key=len, default=[])
    return most if len(most) >= len(inline) else inline


def _clean(term: str) -> str:
    return " ".join(_MARKUP.sub("", term).strip().rstrip(":").split())


def name_variants(term: str) -> tuple[str, ...]:
    """Return the ways to write a term: as given, and without or only with its parentheses.

    "Intersection over union (IoU)" also gives "Intersection over union" and "IoU".
    """
    match = _PARENTHESES.match(term)
    return (term, match["name"], match["other"]) if match else (term,)


def _read_headings(parsed: ParsedDoc) -> Iterator[ExpectedSection]:
    document = parsed.document
    for heading in dict.fromkeys([document.title, *(one.text for one in document.headings)]):
        if heading:
            yield ExpectedSection(document.doc_path, heading)


def _read_sentences(parsed: ParsedDoc) -> Iterator[tuple[ExpectedSection, str]]:
    """Yield each sentence of a page's paragraphs without emphasis, with its section."""
    document = parsed.document
    place = ExpectedSection(document.doc_path, document.title)
    for block in parsed.blocks:
        if block.heading is not None:
            heading = document.headings[block.heading].text or document.title
            place = ExpectedSection(document.doc_path, heading)
        elif block.kind == PARAGRAPH.name:
            text = _MARKUP.sub("", block.text).lstrip("-+ \t")
            yield from ((place, text[start:end]) for start, end in split_sentences(text))
