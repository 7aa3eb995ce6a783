"""Find the parts of a source that can be quoted: whole blocks that belong together.

A part is a paragraph, a list, table, code block or formula with the paragraph that introduces it,
or an admonition. A passage is a run of such parts. Headings separate runs and are never quoted.
"""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from rag_pipeline.answering.models import Source
from rag_pipeline.answering.reading.questions import NUMBERED_PART
from rag_pipeline.answering.tables import cut_out, find_blocks
from rag_pipeline.core.models import ContentType, Figure, TextBlock, TextBlockKind
from rag_pipeline.core.text.sentences import SENTENCE_MARKS, split_sentences
from rag_pipeline.core.text.terms import count_words, find_distinct_terms
from rag_pipeline.retrieval.models import Citation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rag_pipeline.retrieval.contents import SectionText


MOST_FIGURES: Final = 3
"""Figures that are shown beside one passage."""

_MERMAID: Final = re.compile(
    r"[\s>*+-]*(`{3,}|~{3,})[ \t]*mermaid\b[^\n]*\n(?P<source>.*)", re.DOTALL
)
_LAST_FENCE: Final = re.compile(r"\n[\s>]*(?:`{3,}|~{3,})\s*$")


def find_figures(source: Source, start_line: int, end_line: int) -> tuple[Figure, ...]:
    """Return the figures inside a passage of a source, and those with no other text between.

    Images of other hosts than that of the page are left out, because they would be remote.

    Args:
        source: The source of the passage.
        start_line: First line of the passage in the document's file.
        end_line: Last line, inclusive.
    """
    shown = list(list_shown(source))
    for block in source.blocks:
        code = _MERMAID.match(source.text[block.start : block.end])
        if block.kind is TextBlockKind.CODE and code is not None:
            text = _LAST_FENCE.sub("", code["source"]).strip()
            shown.append(Figure("diagram", "", text, "", block.start_line))

    def is_apart(line: int) -> bool:
        low, high = (end_line, line) if line > end_line else (line, start_line)
        return not start_line <= line <= end_line and any(
            low < block.start_line and block.end_line < high for block in source.blocks
        )

    beside = [figure for figure in shown if not is_apart(figure.line)]
    return tuple(sorted(beside, key=lambda figure: figure.line)[:MOST_FIGURES])


def list_shown(source: Source) -> Iterator[Figure]:
    """Yield the images of a source that are not remote."""
    own = urlsplit(source.citation.url).netloc
    for figure in source.figures:
        if urlsplit(figure.address).netloc in {"", own}:
            yield figure


LONG_LIST_WORDS: Final = 150
"""Size from which the items of a list are parts of their own."""

_INTRODUCED: Final = frozenset(
    {TextBlockKind.LIST, TextBlockKind.TABLE, TextBlockKind.CODE, TextBlockKind.FORMULA}
)
_LABEL_WORDS: Final = 3
_TITLE_WORDS: Final = 12
_SENTENCE_ENDS: Final = (*SENTENCE_MARKS, ":")
_INTRODUCES: Final = frozenset({TextBlockKind.PARAGRAPH, TextBlockKind.HTML})
_DIAGRAM: Final = re.compile(r"[\s>*+-]*(?:`{3,}|~{3,})\s*(?:mermaid|plantuml|dot|graphviz)\b")
REFERRING_WORDS: Final = (
    "he|hers?|him|his|its?|she|such|that|their|them|these|they|this|those|accordingly"
    "|additionally|also|and|besides|but|consequently|conversely|furthermore|hence|however"
    "|instead|likewise|meanwhile|moreover|nevertheless|nonetheless|or|otherwise|similarly|so"
    "|then|therefore|thus|yet"
)
"""English pronouns and connectives that refer to a text before them, as a regular expression."""

_REFERS_BACK: Final = re.compile(
    r"(?:[-*+>][ \t]++|\d{1,3}[.)][ \t]++|[*_]++(?=[^\W_]))*+"
    rf"(?:{REFERRING_WORDS})(?![^\W_])",
    re.IGNORECASE,
)
_CONTINUES: Final = re.compile(r"[a-z,.;:)]")
_PAGE: Final = (
    r"(?:chapter|lesson|page|section|tutorial|guide|article|document|course|book|lab|quiz)s?"
)
_ANNOUNCES: Final = re.compile(
    rf"\b(?:this|these|each)\s+(?:\w+\s+)?{_PAGE}\s+(?:(?:also|only|first|then|will)\s+)?"
    r"(?:(?:is|are)\s+about|will|(?:answer|assume|build|contain|cover|describe|discuss|explain|give"
    r"|introduce|list|look|open|present|provide|show|take|teach|tell|walk)(?:s|es)?)\b",
    re.IGNORECASE,
)
_POINTS_TO_PAGES: Final = re.compile(
    rf"\b(?:this|these|the\s+(?:next|previous|following|last|first|second|third))\s+(?:\w+\s+)?{_PAGE}"
    rf"\b(?!\s+of\b)|\b(?:two|three|four|five|six|seven|eight|nine|ten|\d+)\s+{_PAGE[:-1]}\b"
    r"|\b(?:you|we)(?:['\u2019]ll|\s+will|\s+can)?\s+(?:learn|cover|discuss|explore|look\s+at)\b",
    re.IGNORECASE,
)
_NAMES_PAGE: Final = re.compile(rf"://|\b{NUMBERED_PART}\b", re.IGNORECASE)
_PAGE_TABLE: Final = re.compile(
    r"[ \t>]*\|[^\n]*\b(?:weeks?|chapters?|lessons?|pages?)\b", re.IGNORECASE
)
_MARKS: Final = re.compile(r"[\s>*_|`+\-]*(?:\d+[.)]\s+)?[*_`]*")


@dataclass(frozen=True, slots=True)
class Part:
    """A group of whole blocks of a source that an answer quotes together or not at all.

    Attributes:
        source: The source that contains the part.
        start: Offset of the first character in the source's text.
        end: Offset after the last character.
        start_line: First line in the document's file, 1-based.
        end_line: Last line, inclusive.
        kinds: Kinds of the outermost blocks; LIST_ITEM for an item of a long list.
        words: Number of words.
        terms: Distinct search terms (stemmed words).
        run: Number of the run of parts without a heading between them, from 0.
        opens: True if the part is the first of its run.
        has_code: True if a block of code, other than a diagram, is in the part.
        lists_pages: True if at least half of the items of its lists begin with a link, contain an
            address, or name a numbered part of the book, such as `Chapter 2`.
        announces: True if the part says what pages contain, as in "this chapter explains", if its
            first sentence names pages, or if it is a table with a column of pages or weeks.
        items: Number of items of its lists.
        introduction: Length of the text before its last block.
        labelled: True if the part begins with a label, such as `Answer` or the title of a tab.
    """

    source: Source
    start: int
    end: int
    start_line: int
    end_line: int
    kinds: tuple[TextBlockKind, ...]
    words: int
    terms: frozenset[str]
    run: int
    opens: bool
    has_code: bool
    items: int
    introduction: int
    labelled: bool
    lists_pages: bool
    announces: bool

    @property
    def text(self) -> str:
        """The Markdown text of the part, exactly as in the source."""
        return self.source.text[self.start : self.end]

    @property
    def sentences(self) -> list[str]:
        """The sentences of the part, the items of its lists and the rows of its tables."""
        text = self.text
        return [text[start:end] for start, end in split_sentences(text)]


def refers_back(text: str) -> bool:
    """Return True if a text begins with a word such as `It` that refers to the text before it."""
    return _REFERS_BACK.match(text) is not None


def find_parts(source: Source) -> list[Part]:
    """Return the parts of a source in the order of its text.

    The blocks of a source from the book are known. Only a text without blocks, such as a reader's
    selection, is parsed. A list of at least `LONG_LIST_WORDS` words gives one part for each item.
    The alternative text of an image is in no part, because the image is shown beside the passage.
    """
    text, blocks = source.text, source.blocks or find_blocks(source.text)
    told = [
        block
        for block in blocks
        if not describes_image(source, text[block.start : block.end].strip())
    ]
    groups: list[tuple[int, Sequence[TextBlock]]] = []
    for run, group in _group_blocks(text, told):
        last = group[-1]
        is_list = last.kind is TextBlockKind.LIST
        if not is_list or count_words(text[last.start : last.end]) < LONG_LIST_WORDS:
            groups.append((run, group))
            continue
        if group[:-1]:
            groups.append((run, group[:-1]))
        inner = _read_inner(blocks, last.start, last.end)
        items = [block for block in inner if block.kind is TextBlockKind.LIST_ITEM]
        groups += [(run, [item]) for item in _drop_inner(items)]
    parts: list[Part] = []
    for run, group in groups:
        opens = not parts or parts[-1].run != run
        parts.append(_make_part(source, blocks, group, run, opens=opens))
    return parts


def describes_image(source: Source, text: str) -> bool:
    """Return True if a text is only the alternative text of an image of the source."""
    return any(figure.kind == "image" and figure.text == text for figure in source.figures)


def hide_solutions(source: Source) -> Source:
    """Return a source of a quiz without its solutions; return any other source unchanged.

    A solution is the text of a section from a label, such as `Answer`, to the next heading.
    """
    if source.content_type != ContentType.QUIZ:
        return source
    cuts: list[tuple[int, int]] = []
    solved: set[int] = set()  # runs with a solution so far
    for part in find_parts(source):
        if part.labelled or part.run in solved:
            solved.add(part.run)
            before = cuts[-1][1] if cuts else 0
            shown = source.text[before : part.start].rstrip()
            cuts.append((before + len(shown), part.end))
    if not cuts:
        return source
    kept = [
        block
        for block in source.blocks
        if not any(start < block.end and block.start < end for start, end in cuts)
    ]
    text, blocks = cut_out(source.text, kept, cuts)
    figures = tuple(
        figure
        for figure in source.figures
        if any(block.start_line <= figure.line <= block.end_line for block in kept)
    )
    return replace(source, text=text.rstrip(), blocks=blocks, figures=figures)


def hide_section_solutions(section: SectionText) -> SectionText:
    """Return the text of a section without the solutions of a quiz. See `hide_solutions`."""
    place = Citation(section.title, section.section, section.url, section.module, section.chapter)
    source = Source(1, "", section.text, place, content_type=section.content_type)
    return replace(section, text=hide_solutions(source).text)


def skip_marks(text: str) -> str:
    """Return a text without the list marks, quote marks and emphasis at its beginning."""
    marks = _MARKS.match(text)
    return text[marks.end() :] if marks else text


def ends_sentence(text: str) -> bool:
    """Return True if a text ends with a mark that ends or introduces a sentence."""
    return text.rstrip("*_\"')] \n").endswith(_SENTENCE_ENDS)


def _group_blocks(
    text: str, blocks: Sequence[TextBlock]
) -> Iterator[tuple[int, Sequence[TextBlock]]]:
    """Yield the number of the run and the outermost blocks of each part of a text."""
    run = 0
    group: list[TextBlock] = []
    for block in _drop_inner(blocks):
        last = group[-1].kind if group else None
        introduced = block.kind in _INTRODUCED and last in _INTRODUCES
        introduced |= bool(group) and _is_label(text, group[-1], _TITLE_WORDS)
        continued = last is TextBlockKind.FORMULA and (
            _CONTINUES.match(text, block.start) is not None
        )
        is_heading = block.kind is TextBlockKind.HEADING
        if group and (is_heading or not (introduced or continued)):
            yield run, group
            group = []
        if is_heading:
            run += 1
        else:
            group.append(block)
    if group:
        yield run, group


def _is_label(text: str, block: TextBlock, most_words: int = _LABEL_WORDS) -> bool:
    """Return True for a paragraph of a few words that names the text after it, such as `Answer`.

    The title of a note may have more words than a label that separates a question from its answer.
    A text such as "Crust: the outer part" is an entry.
    """
    if block.kind not in _INTRODUCES:
        return False
    words = text[block.start : block.end]
    return not ends_sentence(words) and ": " not in words and count_words(words) <= most_words


def _make_part(
    source: Source,
    blocks: Sequence[TextBlock],
    group: Sequence[TextBlock],
    run: int,
    *,
    opens: bool,
) -> Part:
    start, end = group[0].start, group[-1].end
    text = source.text[start:end]
    inner = _read_inner(blocks, start, end)
    has_code = any(
        block.kind is TextBlockKind.CODE and not _DIAGRAM.match(source.text, block.start)
        for block in inner
    )
    items = [block for block in inner if block.kind is TextBlockKind.LIST_ITEM]
    linked = sum(
        item.opens_with_link or _NAMES_PAGE.search(source.text, item.start, item.end) is not None
        for item in items
    )
    [(first, last), *_] = split_sentences(text) or [(0, 0)]
    announces = (
        (group[-1].kind is TextBlockKind.TABLE and _PAGE_TABLE.match(text) is not None)
        or _ANNOUNCES.search(text) is not None
        or _POINTS_TO_PAGES.search(text, first, last) is not None
    )
    return Part(
        source=source,
        start=start,
        end=end,
        start_line=group[0].start_line,
        end_line=group[-1].end_line,
        kinds=tuple(block.kind for block in group),
        words=count_words(text),
        terms=find_distinct_terms(text),
        run=run,
        opens=opens,
        has_code=has_code,
        items=len(items),
        introduction=group[-1].start - start,
        labelled=_is_label(source.text, group[0]),
        lists_pages=linked > 0 and 2 * linked >= len(items),
        announces=announces,
    )


def _read_inner(blocks: Sequence[TextBlock], start: int, end: int) -> Sequence[TextBlock]:
    """Return the blocks that begin between two offsets."""
    first = bisect.bisect_left(blocks, start, key=lambda block: block.start)
    return blocks[first : bisect.bisect_left(blocks, end, key=lambda block: block.start)]


def _drop_inner(blocks: Sequence[TextBlock]) -> list[TextBlock]:
    """Return the blocks that are not inside another of the given blocks."""
    outer: list[TextBlock] = []
    for block in blocks:
        if not outer or block.start >= outer[-1].end:
            outer.append(block)
    return outer
