"""Answer questions about the book itself from its table of contents, without a search.

The questions are how large it is, what it is about, where to start, and who wrote it. The patterns
are for English, German, Spanish and French. They must fit the whole question, so that a question
about a subject of the book is searched.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.models import GroundedResponse, Level, Notice, Reason
from rag_pipeline.answering.reading.questions import NUMBER_WORD, NUMBERED_PART, read_question
from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.core.payload import read_metadata, read_text
from rag_pipeline.core.protocols import PointFilter
from rag_pipeline.core.text.terms import count_words, extract_terms, find_distinct_terms
from rag_pipeline.retrieval.models import Citation
from rag_pipeline.retrieval.queries import Mode, Query

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from rag_pipeline.answering.voice import Voice
    from rag_pipeline.retrieval.open_index import ContentsPage, OpenIndex

    Neighbor = tuple[str, ContentsPage, ContentsPage] | None

_MAX_PLACES: Final = 8  # pages that an answer names
_LEAD: Final = 5  # paragraphs at the beginning of a page
_LEAST_WORDS: Final = 8  # a shorter paragraph is a label or a caption

_BOOK: Final = (
    r"(?:(?:this|the|your|a|dieses|das|dem|diesem|der|die|dieser|este|el|la|esta|ce|le|cette) )?"
    r"(?:(?:whole|entire) )?(?:text|hand)?(?:book|course|docs?|documentation|guide|manual|tutorial"
    r"|web ?site|site|material|buch|lehrbuch|handbuch|kurs|dokumentation|libro|curso|manual"
    r"|documentación|livre|cours|manuel)"
)
_UNITS: Final = (
    r"(?:modules?|chapters?|lessons?|pages?|parts?|sections?|module?n?|kapitel|seiten|lektionen"
    r"|abschnitte|módulos|capítulos|páginas|lecciones|chapitres|leçons)"
)
_ABOUT: Final = {
    "book_size": rf"""
        how many {_UNITS}(?: are there)?(?: in {_BOOK})
        how many {_UNITS} (?:does|do) {_BOOK} (?:have|contain)
        how many {_UNITS} has {_BOOK}
        how (?:big|large) is {_BOOK}
        wie viele {_UNITS} (?:hat|gibt es in) {_BOOK}
        cuánt[ao]s {_UNITS} (?:tiene|hay en) {_BOOK}
        combien de {_UNITS} (?:a|y a-t-il dans|contient) {_BOOK}
    """,
    "book_author": rf"""
        who (?:wrote|made|created|is the author of|are the authors of|maintains|published) {_BOOK}
        who is {_BOOK} (?:by|from)
        wer hat {_BOOK} (?:geschrieben|gemacht|verfasst)
        quién (?:escribió|hizo) {_BOOK}
        qui a (?:écrit|fait) {_BOOK}
    """,
    "book_subject": rf"""
        what(?: is|'s|s) {_BOOK}(?: all)? about
        what (?:does|do) {_BOOK} (?:cover|teach|contain|explain)
        what (?:topics|subjects) (?:does|do) {_BOOK} (?:cover|have|contain|teach)
        what(?: is|'s|s) in {_BOOK}
        what (?:can|will) i learn (?:from|in|with) {_BOOK}
        summari[sz]e {_BOOK}
        (?:list|name|show)(?: me)?(?: all)? the {_UNITS} (?:of|in) {_BOOK}
        (?:show (?:me )?)?(?:the )?table of contents(?: of {_BOOK})?
        worum geht es in {_BOOK}
        was behandelt {_BOOK}
        de qué trata {_BOOK}
        de quoi parle {_BOOK}
    """,
    "book_start": rf"""
        where (?:do|should|can) i (?:start|begin)(?: (?:with|in) {_BOOK})
        how (?:do|should|can) i (?:start|begin)(?: (?:with|in|reading) {_BOOK})
        wo (?:fange|soll) ich (?:an|anfangen|beginnen)(?: (?:in|mit) {_BOOK})
        por dónde empiezo(?: (?:con|en) {_BOOK})
        par où commencer(?: (?:avec|dans) {_BOOK})
    """,
}
"""Questions that name the book, by the kind of their answer."""

BOOK_QUESTIONS: Final = frozenset(_ABOUT)
"""The kinds of questions about the book."""

_POINTING: Final = {
    "book_size": rf"""
        how many {_UNITS}(?: are there)?(?: in (?:total|all))?
        how many {_UNITS} does it have
        wie viele {_UNITS} gibt es
        cuánt[ao]s {_UNITS} hay
        combien de {_UNITS}(?: y a-t-il)?
    """,
    "book_author": """
        who (?:wrote|made|published) (?:this|it)
        who (?:is|are) the authors?
        wer (?:ist der autor|sind die autoren)
        quién es el autor
        qui est l'auteur
    """,
    "book_subject": rf"""
        what(?: is|'s|s) (?:this|it)(?: all)? about
        what does (?:this|it) cover
        what (?:topics|subjects) (?:are|do you) (?:covered|cover|there)
        (?:list|name|show)(?: me)?(?: all)? the {_UNITS}
        (?:what|which) {_UNITS} are there
        worum geht es(?: hier)?
        de qué trata
        de quoi ça parle
    """,
    "book_start": """
        where (?:do|should|can) i (?:start|begin)(?: reading)?
        where to (?:start|begin)
        wo (?:fange|soll) ich (?:an|anfangen|beginnen)
        por dónde empiezo
        par où commencer
    """,
}
"""Questions that mean the book only if nothing was asked before them."""


def join_phrases(phrases: dict[str, str]) -> str:
    """Return a pattern with a named group for each kind of phrases, which are one on a line."""
    return "|".join(
        f"(?P<{kind}>{'|'.join(line.strip() for line in lines.strip().splitlines())})"
        for kind, lines in phrases.items()
    )


_THIS_BOOK: Final = (
    r"(?:this|the|your)\s+(?:(?:whole|entire)\s+)?(?:text|hand)?(?:book|course|guide|manual|tutorial"
    r"|documentation|docs)"
)
_NAMES_BOOK: Final = re.compile(
    rf"\b(?:{_THIS_BOOK}|(?:this|the|your)\s+class)\b(?!\s+of\b)", re.IGNORECASE
)
_ASKS_BOOK: Final = re.compile(
    r"\b(?:(?:what|where|how|why|when)\s+)?(?:does|do)\s+"
    rf"{_THIS_BOOK}\s+(?:also\s+)?(?:say|describe|mention|cover|discuss|explain|treat|teach|define"
    r"|present|introduce|address)(?:\s+about)?\b"
    rf"|^in\s+{_THIS_BOOK}\s*,|,?\s*\baccording\s+to\s+{_THIS_BOOK}\b,?",
    re.IGNORECASE,
)
"""Words that only say that the book shall answer, as in "what does the book say about torque"."""
_NAMED_PATTERN: Final = re.compile(join_phrases(_ABOUT))
_POINTING_PATTERN: Final = re.compile(join_phrases(_POINTING))
_PART: Final = re.compile(NUMBERED_PART, re.IGNORECASE)
_AUTHOR_HEADING: Final = re.compile(
    r"\b(?:authors?|contributors|acknowledg\w+|instructors?|maintainers?|about us"
    r"|autor(?:en|es)?|auteurs?|impressum)\b|^(?:(?:the|our|core)\s+)*(?:credits|team)$",
    re.IGNORECASE,
)
_MAX_CHARS: Final = 100
_ORDER: Final = re.compile(
    rf"(?:what|which)(?: is)?(?: the)?(?: next| previous)?(?: (?P<unit>{_UNITS}))?"
    r"(?: is| comes?| goes)?(?: right| directly| next| just)?"
    rf" (?:(?P<before>before|precedes)|after|follows) (?P<place>.+?)(?: {_UNITS})?"
)
_PART_TITLE: Final = re.compile(r"^\W*(?:\w+ )?\d+(?:\.\d+)*\W+")
"""The beginning of a title such as "Chapter 3.2: Perception"."""
_COUNT_WORD: Final = re.compile(rf"\b(?:{NUMBER_WORD})\b", re.IGNORECASE)
_LEAST_SECTIONS: Final = 3
_MAX_SECTIONS: Final = 20


def find_book_question(question: str, *, is_first: bool) -> str:
    """Return the kind of a question about the book itself, such as `book_size`, otherwise "".

    Args:
        question: The question of the user.
        is_first: True if no earlier turn counts, so that `it` can only mean the book.
    """
    text = _simplify(question)
    if len(text) > _MAX_CHARS:
        return ""
    found = _NAMED_PATTERN.fullmatch(text)
    if found is None and is_first:
        found = _POINTING_PATTERN.fullmatch(text)
    return (found.lastgroup or "") if found else ""


def _simplify(question: str) -> str:
    return " ".join(question.casefold().replace("\u2019", "'").split()).strip(" ?!.\u00bf")


def names_book(question: str) -> bool:
    """Return True if a question names the book itself, as in "how long does the course take"."""
    return _NAMES_BOOK.search(question) is not None


def drop_book(question: str) -> str:
    """Return a question without words such as "according to the book", which no passage has.

    A question that has no other word to search stays as it is.
    """
    left = re.sub(r"\s+(?=[\s?!.,]|$)", "", _ASKS_BOOK.sub(" ", question)).strip()
    return left if left != question and extract_terms(left) else question


def list_pages(opened: OpenIndex) -> list[ContentsPage]:
    """Return the pages that readers see by default, in the order of the book."""
    return [
        page
        for page in opened.read_outline().pages
        if page.edition.is_latest and page.edition.is_default_locale
    ]


def find_numbered_part(question: str) -> str:
    """Return the numbered part that a question asks about, such as `chapter 3.2`, otherwise ""."""
    subject = read_question(question).subject
    return subject if _PART.fullmatch(subject) else ""


def find_part_pages(part: str, pages: Sequence[ContentsPage]) -> list[ContentsPage]:
    """Return the pages of a numbered part; empty if the book has no such part.

    These are the pages with the name of the part in their titles, otherwise those whose titles
    begin with its number, otherwise those with such a section, and otherwise the first page of the
    folder that is named after the part.
    """
    unit, number = part.split()
    unit, number = re.escape(unit), re.escape(number)
    headed = re.compile(
        rf"(?:^|\W\s*){unit}\s+{number}(?=\s*[:.)\u2013\u2014|-]\D|\s*$)|^{number}(?!\.?\d)(?=\W)",
        re.IGNORECASE,
    )
    folder = re.compile(rf"(?:{unit}[-_. ]?)?0*{number}(?![.\d])", re.IGNORECASE)
    return (
        [page for page in pages if headed.search(page.title)]
        or [page for page in pages if any(headed.search(one.heading) for one in page.sections)]
        or [page for page in pages if folder.match(page.chapter) or folder.match(page.module)][:1]
    )


def _read_order(question: str) -> re.Match[str] | None:
    text = _simplify(question)
    return _ORDER.fullmatch(text) if len(text) <= _MAX_CHARS else None


def find_neighbor(question: str, pages: Sequence[ContentsPage]) -> Neighbor:
    """Return what comes after or before a page or chapter that a question names, or None.

    A name is the title of a page, or a numbered part, or a part of the title of only one chapter
    if the question asks for a chapter, module or page.

    Args:
        question: The question, such as "Which chapter comes after Sensors?".
        pages: The pages of the book, in their order.

    Returns:
        `book_next` or `book_previous`, the named page, and the first page of what is beside it.
    """
    found = _read_order(question)
    if found is None:
        return None
    terms = find_distinct_terms(_PART_TITLE.sub("", found["place"]))
    if not terms:
        return None
    titles = [(find_distinct_terms(_PART_TITLE.sub("", page.title)), page) for page in pages]
    is_part = _PART.fullmatch(found["place"]) is not None
    named = (
        find_part_pages(found["place"], pages)
        if is_part
        else [page for own, page in titles if own == terms]
        or [page for own, page in titles if found["unit"] and terms < own and page.chapter]
    )
    if len({(page.module, page.chapter) for page in named}) != 1:
        return None
    unit = found["unit"] or (found["place"] if is_part else "")
    firsts = _list_firsts(pages, lambda page: (page.module, page.chapter))
    is_chapter = unit.startswith("chapter") or (not unit and named[0] in firsts)

    def name_place(page: ContentsPage) -> tuple[str, ...]:
        if unit.startswith("module") and page.module:
            return (page.module,)
        return (page.module, page.chapter) if is_chapter and page.chapter else (page.doc_path,)

    parts = _list_firsts(pages, name_place)
    at = [*map(name_place, parts)].index(name_place(named[0])) + (-1 if found["before"] else 1)
    if not 0 <= at < len(parts):
        return None
    return "book_previous" if found["before"] else "book_next", named[0], parts[at]


def _list_firsts(
    pages: Sequence[ContentsPage], name_place: Callable[[ContentsPage], object]
) -> list[ContentsPage]:
    """Return the first page of each place, such as a chapter or a folder."""
    firsts: dict[object, ContentsPage] = {}
    for page in pages:
        firsts.setdefault(name_place(page), page)
    return list(firsts.values())


def list_sections(
    things: str, pages: Sequence[ContentsPage], doc_paths: Collection[str]
) -> tuple[str, list[str]]:
    """Return the page or section that is named after some things, and the sections directly in it.

    Such sections are often the things themselves: those of "Our internal systems" are the systems.

    Args:
        things: The things, such as `internal systems`.
        pages: The pages of the book.
        doc_paths: The documents that were found for the question. Other pages do not count.

    Returns:
        The heading, and the headings of its sections. Both are empty if nothing is named after the
        things, or if it has fewer than three sections.
    """
    asked = find_distinct_terms(things)
    for page in pages:
        if page.doc_path not in doc_paths:
            continue
        headings = [(page.title, 1), *((one.heading, one.level) for one in page.sections)]
        for at, (heading, level) in enumerate(headings):
            if find_distinct_terms(_COUNT_WORD.sub(" ", heading)) != asked:
                continue
            end = next((n for n, one in enumerate(headings) if n > at and one[1] <= level), None)
            below = headings[at + 1 : end]
            top = min((own for _, own in below), default=0)
            names = [name for name, own in below if own == top]
            if len(names) >= _LEAST_SECTIONS:
                return heading, names[:_MAX_SECTIONS]
    return "", []


def ground_book_question(
    query: Query, kind: str, voice: Voice, opened: OpenIndex
) -> GroundedResponse:
    """Return the answer to a question about the book, as its message, with the pages to read.

    Only pages that readers see by default count. What the book is about begins with the paragraph
    of its first page that says what "this book" is, or else with the first paragraph of this page
    if it is at the top of the docs folder. Then come its folders, and the pages beside them.

    Args:
        query: The question.
        kind: The kind of the question, as `find_book_question` returns it.
        voice: The language of the answer.
        opened: The collection of the book.
    """
    pages = list_pages(opened)
    places: list[Citation] = []
    introduction = ""
    if kind == "book_size":
        note = voice.note(kind, **_count(pages, voice))
    elif kind == "book_author":
        places = [place for page in pages for place in _find_authors(page)][:_MAX_PLACES]
        note = voice.note("book_author" if places else "book_no_author")
    else:
        parts = _list_firsts(pages, lambda page: page.doc_path.partition("/")[0])
        if kind == "book_start":
            parts = parts[:2]
        else:
            parts.sort(key=lambda page: "/" not in page.doc_path)
            introduction = _introduce(pages[0], opened) if pages else ""
        places = [_cite(page) for page in parts[:_MAX_PLACES]]
        note = voice.note(kind, count=len(pages))
    return _tell(query, note, places, introduction)


def ground_neighbor(
    query: Query,
    question: str,
    voice: Voice,
    read_index: Callable[[Callable[[OpenIndex], Neighbor]], Neighbor],
) -> GroundedResponse | None:
    """Return the answer to a question for the chapter or page beside another one, or None.

    Args:
        query: The query as asked.
        question: The question with what it needs from earlier turns.
        voice: The language of the answer.
        read_index: Runs an action on the collection. It is called only for such a question.
    """
    if query.mode != Mode.NORMAL or _read_order(question) is None:
        return None
    found = read_index(lambda opened: find_neighbor(question, list_pages(opened)))
    if found is None:
        return None
    kind, named, other = found
    return _tell(query, voice.note(kind, place=named.title), [_cite(other)])


def _tell(
    query: Query, note: Notice, places: Sequence[Citation], introduction: str = ""
) -> GroundedResponse:
    """Return an answer that is a sentence and the places that it announces."""
    listed = "".join(f"\n- {one.place} ({one.url})" for one in places)
    return GroundedResponse(
        context="",
        system_instruction="",
        citations=(),
        mode=Mode(query.mode),
        level=Level.ANSWERED,
        reason=Reason.ABOUT_BOOK,
        message="\n".join(filter(None, (introduction, note.text, listed))),
        related=tuple(places),
        notices=(note,),
    )


def _introduce(page: ContentsPage, opened: OpenIndex) -> str:
    """Return the paragraph of a page that says what the book is, as it is; "" if it has none."""
    points = opened.store.scroll(PointFilter.any_of(doc_path=[page.doc_path]))
    pieces = [(read_metadata(point.payload), read_text(point.payload)) for point in points]
    paragraphs = [
        text[block.start : block.end]
        for metadata, text in sorted(pieces, key=lambda piece: piece[0].chunk_index)
        for block in metadata.blocks
        if block.kind is TextBlockKind.PARAGRAPH
    ]
    whole = [text for text in paragraphs if count_words(text) >= _LEAST_WORDS]
    first = whole[0] if whole and "/" not in page.doc_path else ""
    found = next(filter(names_book, whole[:_LEAD]), first)
    return f"{found}\n" if found else ""


def _count(pages: Sequence[ContentsPage], voice: Voice) -> dict[str, object]:
    """Return the numbers of modules, chapters and pages, and a text that lists those above 0."""
    counts = {
        "modules": len({page.module for page in pages if page.module}),
        "chapters": len({(page.module, page.chapter) for page in pages if page.chapter}),
        "pages": len(pages),
    }
    named = [voice.count(unit, count) for unit, count in counts.items() if count]
    return {**counts, "counts": ", ".join(named)}


def _find_authors(page: ContentsPage) -> list[Citation]:
    """Return the page or its sections if their headings say that they are about the authors."""
    if _AUTHOR_HEADING.search(page.title):
        return [_cite(page)]
    return [
        Citation(page.title, section.heading, section.url, page.module, page.chapter)
        for section in page.sections
        if _AUTHOR_HEADING.search(section.heading)
    ]


def _cite(page: ContentsPage) -> Citation:
    return Citation(page.title, page.title, page.url, page.module, page.chapter)
