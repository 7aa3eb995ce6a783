"""Suggestions for a golden set: questions with their sections, and the terms of a glossary.

Sections are found by matching words, never by retrieval. If a retriever chose the expected
sections, the golden set would make that retriever look too good.
"""

from __future__ import annotations

import difflib
import hashlib
import posixpath
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from pydantic import TypeAdapter

from rag_pipeline.core.errors import QueryError
from rag_pipeline.core.models import ContentType
from rag_pipeline.core.site.docusaurus import MARKDOWN_SUFFIXES, strip_number_prefix
from rag_pipeline.core.text.sentences import split_sentences
from rag_pipeline.core.text.terms import extract_terms, extract_words
from rag_pipeline.evaluation.golden_set import DefinitionCase, ExpectedSection
from rag_pipeline.ingestion.markdown.constructs.text import FRONT_MATTER, PARAGRAPH, TABLE
from rag_pipeline.retrieval.contents import GLOSSARY
from rag_pipeline.retrieval.queries import Mode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rag_pipeline.core.models import JsonValue, ParsedDoc
    from rag_pipeline.evaluation.feedback import LogEntries
    from rag_pipeline.evaluation.golden_set import Half

MAX_SHARED_WORDS: Final = 4  # most consecutive words that a question may share with a section
MAX_TERM_SHARE: Final = 0.9  # highest share of a question's terms that may occur in a section
_MAX_SECTIONS: Final = 8  # proposed for a page or words, or listed for words
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


def suggest_entry(pages: Sequence[ParsedDoc], text: str, *, question: str = "") -> EntrySuggestion:
    """Suggest a golden-set entry for a page, or for the sections that contain given words.

    Args:
        pages: All documents of the corpus.
        text: Path of a page below the docs folder, to list its sections; or words, to list the
            sections of all pages that contain them.
        question: The question as it will be asked. Together with a page path, its terms decide
            which sections are proposed.

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
        matches = [match for match in ranked if match.share > 0][:_MAX_SECTIONS]
    proposed = [match for match in ranked if match.share >= best * _NEARLY_BEST][:_MAX_SECTIONS]
    expected: list[JsonValue] = [
        {"doc_path": match.doc_path, "section_heading": match.section_heading} for match in proposed
    ]
    entry = _make_entry(question, expected, id_text=question or text)
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


def _make_entry(
    question: str, expected: list[JsonValue], *, id_text: str = ""
) -> dict[str, JsonValue]:
    """Return an entry whose id consists of the first words of the question, or of another text."""
    words = re.findall(r"[^\W_]+", (id_text or question).casefold())
    name = "-".join(words[:_MAX_ID_WORDS]) or "new"
    return {
        "id": name,
        "question": question,
        "category": "fact",
        "all_of": False,
        "expected": expected,
        "split": choose_half(name),
    }


def draft_entry(
    entries: LogEntries, answer_id: str, pages: Sequence[ParsedDoc]
) -> dict[str, JsonValue]:
    """Return a golden-set entry for a logged question, as a suggestion to check.

    Its expected sections are those that the answer cited; a refusal has none. Retrieval found them,
    so the author must check each of them in the book.

    Args:
        entries: The entries of the question log.
        answer_id: Id of the answer to the question.
        pages: All documents of the book.

    Raises:
        QueryError: The log has no such answer, or its question was not logged, or the question is
            about a selection, which is never logged.
    """
    found = [one for one in entries.answers if one.answer_id == answer_id]
    if not found:
        raise QueryError(f"the question log has no answer {answer_id[:80]!r}")
    if not found[0].question:
        raise QueryError(
            "the text of this question was not logged. LOG_QUESTIONS=true logs the text of later "
            "questions"
        )
    if found[0].mode == Mode.SELECTED_TEXT_ONLY:
        raise QueryError("this question is about a selected text, which is not logged")
    question = " ".join((found[0].search_question or found[0].question).split())
    # The sections that a refusal names are related to the question, but do not answer it.
    is_refused = found[0].kind == "refused"
    return _make_entry(question, [] if is_refused else _find_sections(found[0].sources, pages))


def _find_sections(urls: Sequence[str], pages: Sequence[ParsedDoc]) -> list[JsonValue]:
    """Return the sections of the book that have the URLs; unknown URLs are left out."""
    by_page = {page.document.url.rstrip("/"): page.document for page in pages}
    expected: list[JsonValue] = []
    for url in urls:
        address, _, anchor = url.partition("#")
        document = by_page.get(address.rstrip("/"))
        if document is None:
            continue
        texts = [one.text for one in document.headings if anchor and one.anchor == anchor]
        heading = texts[0] if texts else document.title
        section: JsonValue = {"doc_path": str(document.doc_path), "section_heading": heading}
        if section not in expected:
            expected.append(section)
    return expected


QUIZZES: Final = frozenset({ContentType.QUIZ, ContentType.ASSESSMENT})
"""Kinds of pages that ask questions instead of explaining."""

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
    listed = TypeAdapter(tuple[DefinitionCase, ...]).dump_python(
        tuple(cases), mode="json", exclude_none=True
    )
    return {"definitions": listed}


def is_glossary(parsed: ParsedDoc) -> bool:
    """Return True if the file name, title or sidebar label of a page contains "glossary"."""
    document = parsed.document
    stem = posixpath.splitext(posixpath.basename(document.doc_path))[0]
    names = (strip_number_prefix(stem), document.title, document.sidebar_label)
    return any(GLOSSARY.search(name) for name in names)


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
