r"""Units of a text that an answer quotes or cites whole: sentences, code blocks, tables, formulas.

The blocks of the text come from the parser (`core.models.TextBlock`). Only code spans and formulas
within a sentence have no blocks; one regular expression finds them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.core.sentences import SENTENCE_MARKS, split_sentences

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rag_pipeline.core.models import TextBlock

CODE_SPAN: Final = r"(?P<ticks>`++)[^\n]+?(?<!`)(?P=ticks)(?!`)"
DISPLAYED: Final = r"\$\$(?:(?!\$\$|\n[ \t\r]*\n).)++\$\$"
INLINE_FORMULA: Final = r"\$(?![\s$])(?:\\[^\n]|[^\\$\n])++(?<!\s)\$(?!\d)"
"""A formula by Pandoc's rule: no blank after the opening mark or before the closing mark, no digit
after it, all on one line. The prices in "$5 and $10" are not a formula."""
NO_MARK: Final = r"\\[\\$`]?|`++|\$++"
"""Escaped marks and runs of marks that nothing closes; tried last."""

_LITERAL: Final = re.compile(
    rf"(?P<literal>{DISPLAYED}|{CODE_SPAN}|{INLINE_FORMULA})|{NO_MARK}", re.DOTALL
)
_WHOLE: Final = frozenset({TextBlockKind.CODE, TextBlockKind.TABLE, TextBlockKind.FORMULA})
_FENCE: Final = re.compile("`{3}|~{3}")
_SOFT_BREAK: Final = re.compile(r"(?<!  )(?<![\\\n])\r?\n(?!\r?\n)[ \t>]*+(?!\r?\n)")
"""A line break that a reader sees as a blank: neither a hard break nor the end of a paragraph."""
_CITED: Final = r"(?:\[[^\]\n]*\][ \t]*)*+"
_LEADING_CITED: Final = re.compile(_CITED)
_ENDED: Final = re.compile(rf"(?:^|[{SENTENCE_MARKS}][\"')\]*_ \t]*){_CITED}$")
_LOOK_BACK: Final = 64  # characters; longer than a full stop with its citations


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of a text that makes sense without its neighbours.

    Attributes:
        start: Offset of the first character in the text.
        end: Offset after the last character.
        first: Kind of the block that the unit begins in; LIST_ITEM only at the item's beginning.
        last: Kind of the block that the unit ends in.
        quoted: True within a block quote.
    """

    start: int
    end: int
    first: TextBlockKind
    last: TextBlockKind
    quoted: bool = False

    @property
    def is_block(self) -> bool:
        """True if the unit begins with a code block, a table or a formula."""
        return self.first in _WHOLE

    @property
    def ends_with_block(self) -> bool:
        """True if nothing can be written after the unit on its last line."""
        return self.last in _WHOLE


def split_units(text: str, blocks: Sequence[TextBlock] = ()) -> list[Unit]:
    """Split a text into units, in order.

    Code blocks and tables are one unit each. A displayed formula is one unit with the sentence that
    leads to it and the sentence that goes on after it: each says nothing without the other.

    Args:
        text: Markdown.
        blocks: The blocks of the text. Without them the text is parsed. It may then be plain text
            that was selected on a page, so that line breaks still end sentences.
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
    """Parse a text that has no blocks of a chunk: a reader's selection or a model's answer."""
    if not text.strip():
        return ()
    from rag_pipeline.ingestion.markdown.text_blocks import find_text_blocks  # noqa: PLC0415  # loads markdown-it

    return find_text_blocks(text)


def show_unit(text: str, unit: Unit) -> str:
    """Return a unit as it stands at the margin: without indentation and quote marks.

    Indented code outside its list would be shown with its fences.
    """
    marks = " \t>" if unit.quoted else " \t"
    lines = text[unit.start : unit.end].split("\n")
    if unit.first is not TextBlockKind.CODE:
        return "\n".join(line.lstrip(marks) for line in lines)
    fence = _FENCE.search(lines[0])  # a list mark may stand before it
    column = fence.start() if fence else _count_lead(lines[0], marks)
    cut = [line[min(column, _count_lead(line, marks)) :] for line in lines[1:]]
    return "\n".join([lines[0][column:], *cut])


def _count_lead(line: str, marks: str) -> int:
    return len(line) - len(line.lstrip(marks))


def _read_runs(text: str, blocks: Sequence[TextBlock]) -> Iterator[Unit]:
    """Divide a text at the edges of its blocks; each run has the kind of the innermost block."""
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
        yield Unit(low, end, first, kind, quoted)


def _split_run(text: str, run: Unit, *, soft_breaks: bool) -> Iterator[Unit]:
    prose = _hide_literals(text[run.start : run.end])
    if soft_breaks and run.last is TextBlockKind.PARAGRAPH:
        prose = _SOFT_BREAK.sub(lambda found: " " * len(found.group()), prose)
    kind = run.first
    for start, end in split_sentences(prose):
        yield Unit(run.start + start, run.start + end, kind, run.last, run.quoted)
        kind = run.last


def _hide_literals(prose: str) -> str:
    """Mask code spans and formulas, in which no sentence ends; the length stays."""
    return _LITERAL.sub(_hide, prose)


def _hide(part: re.Match[str]) -> str:
    found = part.group()
    hidden = part.group("literal") is not None
    return found[0] + re.sub(r"\S", "x", found[1:-1]) + found[-1] if hidden else found


def _belong_together(text: str, before: Unit, unit: Unit) -> bool:
    """Tell if a formula completes the sentence before it, or a sentence goes on after a formula."""
    if unit.first is TextBlockKind.FORMULA:
        ended = _ENDED.search(text[max(before.start, before.end - _LOOK_BACK) : before.end])
        return not (ended or before.first is TextBlockKind.HEADING or before.ends_with_block)
    if before.last is not TextBlockKind.FORMULA:
        return False
    cited = _LEADING_CITED.match(text, unit.start, unit.end)
    following = text[cited.end() if cited else unit.start : unit.end][:1]
    return following.islower() or following in {",", ".", ";", ":", ")"}
