"""Split a text into units: sentences, code blocks, tables and formulas.

An answer quotes or cites a unit as a whole. The Markdown parser finds the blocks of the text
(`core.models.TextBlock`); a regular expression finds code spans and formulas within a sentence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.core.text.sentences import SENTENCE_MARKS, split_sentences

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rag_pipeline.core.models import TextBlock

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
        quoted: True if the unit is inside a block quote.
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
        """True if the unit ends with a code block, a table or a formula.

        Nothing can be written after such a unit on its last line.
        """
        return self.last in _WHOLE


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
    from rag_pipeline.ingestion.markdown.text_blocks import find_text_blocks  # noqa: PLC0415  # loads markdown-it

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
        yield Unit(low, end, first, kind, quoted)


def _split_run(text: str, run: Unit, *, soft_breaks: bool) -> Iterator[Unit]:
    prose = hide_literals(text[run.start : run.end])
    if soft_breaks and run.last is TextBlockKind.PARAGRAPH:
        prose = _SOFT_BREAK.sub(lambda found: " " * len(found.group()), prose)
    kind = run.first
    for start, end in split_sentences(prose):
        yield Unit(run.start + start, run.start + end, kind, run.last, run.quoted)
        kind = run.last


def hide_literals(prose: str) -> str:
    """Return the text with the inside of code spans and formulas replaced by `x` characters.

    No sentence can then end inside them. The text keeps its length.
    """
    return _LITERAL.sub(_hide, prose)


def _hide(part: re.Match[str]) -> str:
    found = part.group()
    hidden = part.group("literal") is not None
    return found[0] + re.sub(r"\S", "x", found[1:-1]) + found[-1] if hidden else found


def _belong_together(text: str, before: Unit, unit: Unit) -> bool:
    """Return True if two units next to each other are parts of one sentence with a formula.

    Either `unit` is a formula and the sentence before it is unfinished, or `before` ends with a
    formula and `unit` continues the sentence.
    """
    if any(text.count("$$", part.start, part.end) % 2 for part in (before, unit)):
        return False  # one mark of the formula is not selected, so its end is uncertain
    if unit.first is TextBlockKind.FORMULA:
        ended = _ENDED.search(text[max(before.start, before.end - _LOOK_BACK) : before.end])
        return not (ended or before.first is TextBlockKind.HEADING or before.ends_with_block)
    if before.last is not TextBlockKind.FORMULA:
        return False
    cited = _LEADING_CITED.match(text, unit.start, unit.end)
    following = text[cited.end() if cited else unit.start : unit.end][:1]
    return following.islower() or following in {",", ".", ";", ":", ")"}
