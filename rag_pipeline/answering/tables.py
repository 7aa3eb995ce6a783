"""Cut tables and texts to the parts that answer a question."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.models import TextBlock, TextBlockKind
from rag_pipeline.core.text.sentences import SENTENCE_MARKS, split_sentences
from rag_pipeline.core.text.terms import find_distinct_terms

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


CODE_SPAN: Final = r"(?P<ticks>`++)[^\n]+?(?<!`)(?P=ticks)(?!`)"
DISPLAYED: Final = r"\$\$(?:(?!\$\$|\n[ \t\r]*\n).)++\$\$"
INLINE_FORMULA: Final = r"\$(?![\s$])(?:\\[^\n]|[^\\$\n])++(?<!\s)\$(?!\d)"
"""A formula on one line, as Pandoc defines it.

No white space follows the opening mark or precedes the closing mark, and no digit follows the
closing mark. Therefore the prices in "$5 and $10" are not a formula.
"""
NO_MARK: Final = r"\\[\\$`]?|`++|\$++"
"""Escaped marks and marks that nothing closes. This pattern must be tried last."""

_LITERAL: Final = re.compile(
    rf"(?P<literal>{DISPLAYED}|{CODE_SPAN}|{INLINE_FORMULA})|{NO_MARK}", re.DOTALL
)
_WHOLE: Final = frozenset({TextBlockKind.CODE, TextBlockKind.TABLE, TextBlockKind.FORMULA})
_SOFT_BREAK: Final = re.compile(r"(?<!  )(?<![\\\n])\r?\n(?!\r?\n)[ \t>]*+(?!\r?\n)")
"""A line break that is shown as a space: neither a hard break nor the end of a paragraph."""
_CITED: Final = r"(?:\[[^\]\n]*\][ \t]*)*+"
_LEADING_CITED: Final = re.compile(_CITED)
_ENDED: Final = re.compile(rf"(?:^|[{SENTENCE_MARKS}][\"')\]*_ \t]*){_CITED}$")
_LOOK_BACK: Final = 64  # characters; longer than a full stop with its citations


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence, code block, table or formula of a text, which can be quoted on its own.

    Attributes:
        start: Offset of the first character in the text.
        end: Offset after the last character in the text.
        first: Kind of the block in which the unit begins. LIST_ITEM if a list item begins here.
        last: Kind of the block in which the unit ends.
    """

    start: int
    end: int
    first: TextBlockKind
    last: TextBlockKind

    @property
    def is_block(self) -> bool:
        """True if the unit begins with a code block, a table or a formula."""
        return self.first in _WHOLE


def split_units(text: str, blocks: Sequence[TextBlock] = ()) -> list[Unit]:
    """Split a Markdown text into sentences, code blocks, tables and formulas, in order.

    A displayed formula forms one unit with the unfinished sentence before it and with the rest of
    that sentence after it.

    Args:
        text: Markdown text.
        blocks: Blocks of the text. If they are empty, the text is parsed. Then line breaks end
            sentences, because the text may be plain text that a reader selected on a page.
    """
    units: list[Unit] = []
    for run in _read_runs(text, blocks or find_blocks(text)):
        sentences = _split_run(text, run, soft_breaks=bool(blocks))
        for unit in [run] if run.is_block else sentences:
            joins = bool(units) and _belong_together(text, units[-1], unit)
            before = units.pop() if joins else unit
            units.append(replace(unit, start=before.start, first=before.first))
    return units


def find_blocks(text: str) -> Sequence[TextBlock]:
    """Parse a Markdown text, such as a model's answer, and return its blocks.

    The result is empty for a text without visible characters.
    """
    if not text.strip():
        return ()
    from rag_pipeline.ingestion.markdown.blocks import find_text_blocks  # noqa: PLC0415  # loads markdown-it

    return find_text_blocks(text)


def _read_runs(text: str, blocks: Sequence[TextBlock]) -> Iterator[Unit]:
    """Split a text at the start and end of each of its blocks.

    Yields:
        The non-blank pieces in order, each with the kind of the innermost block around it.
    """
    edges = {edge for block in blocks for edge in (block.start, block.end)}
    inside: list[TextBlock] = []
    following = 0
    for low, high in pairwise(sorted(edges | {0, len(text)})):
        inside = [block for block in inside if block.end > low]
        while following < len(blocks) and blocks[following].start <= low:
            inside.append(blocks[following])
            following += 1
        kinds = [TextBlockKind.PARAGRAPH, *(block.kind for block in inside)]
        quoted = TextBlockKind.QUOTE in kinds
        if not text[low:high].strip(" \t\r\n>" if quoted else None):
            continue
        end = low + len(text[low:high].rstrip())
        begun = {block.kind for block in inside if block.start == low}
        kind = TextBlockKind.PARAGRAPH if kinds[-1] is TextBlockKind.LIST_ITEM else kinds[-1]
        is_entry = TextBlockKind.LIST_ITEM in begun and kind not in _WHOLE
        first = TextBlockKind.LIST_ITEM if is_entry else kind
        yield Unit(low, end, first, kind)


def _split_run(text: str, run: Unit, *, soft_breaks: bool) -> Iterator[Unit]:
    prose = hide_literals(text[run.start : run.end])
    if soft_breaks and run.last is TextBlockKind.PARAGRAPH:
        prose = _SOFT_BREAK.sub(lambda found: " " * len(found.group()), prose)
    kind = run.first
    for start, end in split_sentences(prose):
        yield Unit(run.start + start, run.start + end, kind, run.last)
        kind = run.last


def hide_literals(prose: str) -> str:
    """Return the text with the inside of code spans and formulas replaced by `x` characters.

    No sentence can then end inside them. The text keeps its length.
    """

    def hide(part: re.Match[str]) -> str:
        found = part.group()
        hidden = part["literal"] is not None
        return found[0] + re.sub(r"\S", "x", found[1:-1]) + found[-1] if hidden else found

    return _LITERAL.sub(hide, prose)


def _belong_together(text: str, before: Unit, unit: Unit) -> bool:
    """Return True if two units next to each other are parts of one sentence with a formula.

    Either `unit` is a formula and the sentence before it is unfinished, or `before` ends with a
    formula and `unit` continues the sentence.
    """
    if any(text.count("$$", part.start, part.end) % 2 for part in (before, unit)):
        return False  # one mark of the formula is not selected, so its end is uncertain
    if unit.first is TextBlockKind.FORMULA:
        ended = _ENDED.search(text[max(before.start, before.end - _LOOK_BACK) : before.end])
        return not (ended or before.first is TextBlockKind.HEADING or before.last in _WHOLE)
    if before.last is not TextBlockKind.FORMULA:
        return False
    cited = _LEADING_CITED.match(text, unit.start, unit.end)
    following = text[cited.end() if cited else unit.start : unit.end][:1]
    return following.islower() or following in {",", ".", ";", ":", ")"}


MOST_ROWS: Final = 12
"""Largest number of rows of a table that an answer or a prompt shows, without the header."""

MOST_CODE_LINES: Final = 60
"""Largest number of lines of a code block that a prompt shows."""

_FIRST_LINES: Final = 12  # of a long code block, which are always shown
_BAR: Final = re.compile(r"(?<!\\)\|")
_LEAST_SHARE: Final = 0.7
"""Smallest share of the best row's weight that another row needs."""

_DELIMITER: Final = re.compile(r"[\s>]*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*")


def cut_tables(
    text: str, blocks: Sequence[TextBlock], question: str
) -> tuple[str, tuple[TextBlock, ...]]:
    """Return a text whose long tables have only the rows that answer a question.

    A row counts by the terms of the question that it contains; a term of few rows counts more. If
    no row contains one, the first rows are kept. A table of at most `MOST_ROWS` rows stays whole.

    Args:
        text: Text of one or more chunks.
        blocks: Blocks of the text.
        question: The question of the reader.

    Returns:
        The text and its blocks. The lines of a block in the document do not change.
    """
    cuts: list[tuple[int, int]] = []
    for block in blocks:
        if block.kind is TextBlockKind.TABLE:
            cuts += _find_cuts(text, block, question)
    return cut_out(text, blocks, cuts)


def cut_out(
    text: str, blocks: Sequence[TextBlock], cuts: Sequence[tuple[int, int]]
) -> tuple[str, tuple[TextBlock, ...]]:
    """Return a text without some spans, and its blocks at their places in the shorter text.

    Args:
        text: A text.
        blocks: Blocks of the text.
        cuts: Start and end (exclusive) of each span to leave out, in order.
    """
    starts = [0, *(end for _, end in cuts)]
    ends = [*(start for start, _ in cuts), len(text)]
    kept = (text[start:end] for start, end in zip(starts, ends, strict=True))

    def shift(offset: int) -> int:
        return offset - sum(min(end, offset) - start for start, end in cuts if start < offset)

    return "".join(kept), tuple(
        replace(block, start=shift(block.start), end=shift(block.end)) for block in blocks
    )


def shorten_code(text: str, blocks: Sequence[TextBlock], question: str) -> str:
    """Return a text whose long code has only its first lines and the functions that answer.

    Code is cut at lines without indentation that follow an empty line. A line with three dots
    stands for the lines that are left out. Code of at most `MOST_CODE_LINES` lines stays whole.

    Args:
        text: Text of one or more chunks.
        blocks: Blocks of the text.
        question: The question of the reader.
    """
    for block in reversed(blocks):
        if block.kind is TextBlockKind.CODE:
            lines = text[block.start : block.end].split("\n")
            if len(lines) > MOST_CODE_LINES:
                shown = "\n".join(_choose_lines(lines, question))
                text = text[: block.start] + shown + text[block.end :]
    return text


def _choose_lines(lines: Sequence[str], question: str) -> list[str]:
    """Return the first lines of code, and then the parts with most terms of a question."""
    edges = [
        at
        for at in range(_FIRST_LINES, len(lines) - 1)
        if lines[at].strip() and not lines[at][0].isspace() and not lines[at - 1].strip()
    ]
    if not edges:  # code without functions, such as a list of values
        edges = [*range(_FIRST_LINES, len(lines) - 1, _FIRST_LINES)]
    parts = [*pairwise([*edges, len(lines) - 1])]
    texts = ["\n".join(lines[start:end]) for start, end in parts]
    scores = _score_rows(texts, question)
    kept = {*range(min(_FIRST_LINES, edges[0])), len(lines) - 1}  # the last line ends the fence
    ranked = sorted(scores, key=lambda number: (-scores[number], number)) or [*range(len(parts))]
    for number in ranked:
        start, end = parts[number]
        room = MOST_CODE_LINES - len(kept)
        if end - start <= room or number == ranked[0]:
            kept.update(range(start, min(end, start + room)))
    shown: list[str] = []
    for at, line in enumerate(lines):
        if at in kept:
            shown.append(line)
        elif at - 1 in kept:
            shown.append("...")
    return shown


def _find_cuts(text: str, table: TextBlock, question: str) -> list[tuple[int, int]]:
    """Return start and end offset of the rows to leave out, each with the line end before it."""
    rows: list[tuple[int, int]] = []
    at = table.start
    for line in text[table.start : table.end].split("\n"):
        rows.append((at, at + len(line)))
        at += len(line) + 1
    has_header = len(rows) > 1 and _DELIMITER.fullmatch(text[slice(*rows[1])]) is not None
    header = text[slice(*rows[0])] if has_header else ""
    rows = rows[2:] if has_header else rows
    if len(rows) <= MOST_ROWS:
        return []
    chosen = _choose_rows([text[start:end] for start, end in rows], question, header)
    return [
        (start - (start > table.start), end)
        for number, (start, end) in enumerate(rows)
        if number not in chosen
    ]


def _choose_rows(rows: Sequence[str], question: str, header: str) -> set[int]:
    """Return the indexes of the rows that contain the rarest terms of a question.

    A question about two columns gets the rows in which they differ. A question about two rows gets
    both, although one may contain more of its terms.
    """
    scores = _score_rows(rows, question)
    asked = find_distinct_terms(question)
    columns = [at for at, cell in enumerate(_split(header)) if find_distinct_terms(cell) & asked]
    cells = {number: _split(row) for number, row in enumerate(rows)}
    differing = [
        number
        for number, own in cells.items()
        if len({own[at] if at < len(own) else "" for at in columns}) > 1
    ]
    if len(columns) > 1 and differing:
        best = max((scores.get(number, 0.0) for number in differing), default=0.0)
        ranked = sorted(differing, key=lambda number: (-scores.get(number, 0.0), number))
        named = [number for number in ranked if scores.get(number, 0.0) >= _LEAST_SHARE * best]
        return set(named[:MOST_ROWS])
    least = _LEAST_SHARE * max(scores.values(), default=0.0)
    ranked = sorted(scores, key=lambda number: (-scores[number], number))
    chosen = [number for number in ranked if scores[number] >= least][:MOST_ROWS]
    shown = asked & find_distinct_terms("\n".join(rows[number] for number in chosen))
    for number in ranked if len(chosen) < MOST_ROWS else ():
        own = find_distinct_terms(rows[number]) & asked
        if own - shown and len(chosen) < MOST_ROWS:
            chosen.append(number)
            shown |= own
    return set(chosen) or {*range(MOST_ROWS)}


def _split(row: str) -> list[str]:
    """Return the cells of a row."""
    return [cell.strip() for cell in _BAR.split(row.strip(" >").strip("|"))]


def _score_rows(rows: Sequence[str], question: str) -> dict[int, float]:
    """Return a score for each text that contains terms of a question; rare terms count more."""
    asked = find_distinct_terms(question)
    beginnings = {term[:4] for term in asked}  # a stem may end otherwise than the word
    found: dict[int, frozenset[str]] = {}
    for number, row in enumerate(rows):
        lowered = row.lower()
        if any(begins in lowered for begins in beginnings):
            terms = find_distinct_terms(row) & asked
            if terms:
                found[number] = terms
    counts = Counter(term for terms in found.values() for term in terms)
    weights = {term: math.log(1 + len(rows) / count) for term, count in counts.items()}
    return {number: sum(weights[term] for term in terms) for number, terms in found.items()}
