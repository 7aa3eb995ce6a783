"""Find the blocks of a text that a reader selected on a page.

A page shows code without its fences, and a selection may begin or end inside a code block, a table
or a formula. The lines of such a part are recognized by their look, so that an answer quotes them
together. All other lines are parsed as Markdown.
"""

from __future__ import annotations

import re
from dataclasses import replace
from enum import Enum
from itertools import groupby
from textwrap import dedent
from typing import TYPE_CHECKING, Final, TypeAlias

from rag_pipeline.core.models import TextBlock, TextBlockKind
from rag_pipeline.core.text.terms import STOP_WORDS, extract_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Part: TypeAlias = tuple[TextBlockKind, int, int]
"""Kind, first line and line after the last one of a part that is not parsed. Lines count from 0."""

_FENCE: Final = re.compile(r"[ \t>]*(`{3,}|~{3,})[ \t]*([^`\r\n]*)\r?$")
_DISPLAY: Final = "$$"
_CODE_SPAN: Final = re.compile(r"(?<!`)(`{1,2})(?!`).+?(?<!`)\1(?!`)|\$[^$\n]+\$")
_ENDED: Final = re.compile(r"[.!?;][\"')\]*_]*\s*$")
_REMARK: Final = re.compile(r"\s*(?:#|//|--|/\*|\*/|%|\"\"\"|''')")
_SIGN: Final = re.compile(
    r"[{};\\,]\s*$|[(\[]\s*$|\)\s*:\s*$|^\s*[})\]]|^\s*(?:@\w|\$ |>>> |#include|#!)"  # line ends
    r"|\w\([^()]*\)|\w\(\s*$|\w\[[\w:'\"-]+\]|\w\(\w+\."  # calls and subscripts
    r"|\w[\])\"']?\s*(?:[-+*/%:!=<>|&]?=|=>|->|::|<-|>>|\|\||&&)\s*\S|\w(?:\+\+|--)"  # operators
    r"|^\s*<(?!/?(?:details|summary|br|p|div|img|a|span)\b)[/?]?[a-z][^<>]*>"  # XML, not page HTML
    r"|\s--?[a-zA-Z]|\s[/~][\w.]|\s#\s"  # options, paths and remarks
    r"|^\s*(?:- )?[\w./-]+:(?:\s+\S+)?\s*$|^\s*(?:if|else|for|while|try|with|except)\b.*:\s*$"
    r"|^\s*(?:import|package|using|export|sudo|def|class|struct|const|let|var|return)\s+\S+$"
    r"|^\s*(?:from \S+ import|import \S+ as|sudo|apt|pip|npm|git|docker)\s"
    r"|(?:[\w%:)\]]|\d\.) {2,}\S|[│├└]"  # columns and trees, as programs print them
    r"|:\s+-?\d+\.\d+\s*\S{0,6}$|(?:\d\.\d.*){3}"  # measured values
)
_OPEN_END: Final = re.compile(r"[\\:{(\[,]\s*$")
_PATH: Final = re.compile(r"[^\W\d]\w*[._/]\w")
_FORMULA_SIGN: Final = re.compile(r"\\[a-zA-Z]+|[\^_=]")
_MAX_LINE_CHARS: Final = 400  # the rest of a longer line is not looked at
_MIN_PROSE_WORDS: Final = 5
_MIN_FUNCTION_WORDS: Final = 0.2  # share of the words of a line of prose
_MIN_CODE_LINES: Final = 2


class _Look(Enum):
    """The look of a line: certainly code, certainly prose, either, or a line that is left alone."""

    CODE = "code"
    PROSE = "prose"
    EITHER = "either"
    BLANK = "blank"


def find_selected_blocks(text: str) -> tuple[TextBlock, ...]:
    """Return the blocks of a selected text in order, such as paragraphs and code.

    Two or more lines that look like code are a code block, even without fences. Two or more lines
    that begin with `|` are a table, even without its head. If only one of the two marks of a code
    block or a displayed formula is selected, the block reaches from the mark to the end or to the
    beginning of its lines.

    Returns:
        The blocks, as `ingestion.markdown.text_blocks.find_text_blocks` returns them. No text
        causes an error. Empty for a text without visible characters.
    """
    from rag_pipeline.ingestion.markdown.blocks import find_text_blocks  # noqa: PLC0415  # loads markdown-it

    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    found: list[TextBlock] = []
    done = 0
    for kind, first, after in [*_find_parts(lines), (TextBlockKind.OTHER, len(lines), len(lines))]:
        start, until = starts[done], max(starts[done], starts[first] - 1)
        if text[start:until].strip():
            found += [
                replace(
                    block,
                    start=block.start + start,
                    end=block.end + start,
                    start_line=block.start_line + done,
                    end_line=block.end_line + done,
                )
                for block in find_text_blocks(text[start:until])
            ]
        if first < after:
            found.append(TextBlock(kind, starts[first], starts[after] - 1, first + 1, after))
        done = after
    return tuple(found)


def complete_marks(text: str, kind: TextBlockKind) -> str:
    """Return the text of a block as Markdown that shows it as such.

    Code without fences gets them and loses the indentation that all its lines share. A missing mark
    of code or of a displayed formula is added.
    Other text is returned unchanged.
    """
    lines = text.split("\n")
    if kind is TextBlockKind.FORMULA and text.count(_DISPLAY) % 2:
        opens = text.lstrip().startswith(_DISPLAY)
        return f"{text}\n{_DISPLAY}" if opens else f"{_DISPLAY}\n{text}"
    if kind is not TextBlockKind.CODE:
        return text
    first, last = _FENCE.match(lines[0]), _FENCE.match(lines[-1])
    if first:
        closed = len(lines) > 1 and last and last[1].startswith(first[1])
        return text if closed else f"{text}\n{first[1]}"
    if last:
        return f"{last[1]}\n{text}"
    marks = "```" if "```" not in text else "~~~~"
    return f"{marks}\n{dedent(text)}\n{marks}"


def _find_parts(lines: Sequence[str]) -> list[Part]:
    """Return the parts of a text that are recognized by their look, in order, without overlaps."""
    parts: list[Part] = []
    marked = [False] * len(lines)  # lines of code blocks and formulas that the parser finds
    fences = [at for at, line in enumerate(lines) if _FENCE.match(line)]
    looks = _judge_lines(lines)
    if len(fences) % 2:
        first = fences[0]
        info = (_FENCE.match(lines[first]) or [""])[2]
        if first and not info and _Look.PROSE not in looks[:first]:
            parts.append((TextBlockKind.CODE, 0, first + 1))
            fences = fences[1:]
        else:
            fences.append(len(lines) - 1)
    for opening, closing in zip(fences[::2], fences[1::2], strict=True):
        marked[opening : closing + 1] = [True] * (closing + 1 - opening)
    for _, first, after in parts:
        marked[first:after] = [True] * (after - first)
    parts += _find_formulas(lines, marked)
    for is_row, group in groupby(
        range(len(lines)), key=lambda at: not marked[at] and lines[at].lstrip().startswith("|")
    ):
        rows = list(group)
        if is_row and len(rows) > 1:
            parts.append((TextBlockKind.TABLE, rows[0], rows[-1] + 1))
            marked[rows[0] : rows[-1] + 1] = [True] * len(rows)
    parts += _find_code(lines, looks, marked)
    return sorted(parts, key=lambda part: part[1])


def _find_formulas(lines: Sequence[str], marked: list[bool]) -> Iterator[Part]:
    """Yield the formula of which only one `$$` is selected, and mark the lines of all formulas."""
    ends = [
        at
        for at, line in enumerate(lines)
        if not marked[at]
        and line.count(_DISPLAY) == 1
        and (line.strip().startswith(_DISPLAY) or line.strip().endswith(_DISPLAY))
    ]
    if len(ends) % 2:
        before = [line for line in lines[: ends[0]] if line.strip()]
        if before and all(map(_is_formula_line, before)):
            cut = ends.pop(0)
            first, after = 0, cut + 1
        else:
            first = ends.pop()
            after = first + 1
            while after < len(lines) and _is_formula_line(lines[after]):
                after += 1
        if not any(marked[first:after]):
            yield TextBlockKind.FORMULA, first, after
            marked[first:after] = [True] * (after - first)
    for opening, closing in zip(ends[::2], ends[1::2], strict=True):
        marked[opening : closing + 1] = [True] * (closing + 1 - opening)


def _is_formula_line(line: str) -> bool:
    return bool(_FORMULA_SIGN.search(line)) and _judge_line(line) is not _Look.PROSE


def _find_code(
    lines: Sequence[str], looks: Sequence[_Look], marked: Sequence[bool]
) -> Iterator[Part]:
    """Yield the runs of lines without prose in which at least half of the lines are code."""
    for is_open, group in groupby(
        range(len(looks)), key=lambda at: not marked[at] and looks[at] is not _Look.PROSE
    ):
        run = list(group)
        if not is_open:
            continue
        # A short line that blank lines separate from the code may be a title, except inside it.
        stanzas = [
            list(stanza)
            for blank, stanza in groupby(run, key=lambda at: looks[at] is _Look.BLANK)
            if not blank
        ]
        while stanzas and not any(looks[at] is _Look.CODE for at in stanzas[0]):
            stanzas.pop(0)
        while stanzas and not any(
            looks[at] is _Look.CODE or lines[at][:1].isspace() for at in stanzas[-1]
        ):
            stanzas.pop()
        kept = [at for stanza in stanzas for at in stanza]
        count = sum(looks[at] is _Look.CODE for at in kept)
        if count >= _MIN_CODE_LINES and 2 * count >= len(kept):
            yield TextBlockKind.CODE, kept[0], kept[-1] + 1


def _judge_lines(lines: Sequence[str]) -> list[_Look]:
    """Judge each line. An indented line after code is never prose, because it may be a remark.

    It is code if the line before it is not complete.
    """
    looks: list[_Look] = []
    before, is_open = _Look.PROSE, False
    for line in lines:
        look = _judge_line(line)
        if look is not _Look.BLANK and line.startswith(("  ", "\t")):
            if is_open:
                look = _Look.CODE
            elif look is _Look.PROSE and before is not _Look.PROSE:
                look = _Look.EITHER
        looks.append(look)
        before = before if look is _Look.BLANK else look
        is_open = look is _Look.CODE and bool(_OPEN_END.search(line))
    return looks


def _judge_line(line: str) -> _Look:
    if not line.strip():
        return _Look.BLANK
    plain = _CODE_SPAN.sub("x", line[:_MAX_LINE_CHARS])
    words = extract_words(plain)
    functional = sum(word.lower() in STOP_WORDS for word in words)
    wordy = len(words) >= _MIN_PROSE_WORDS and functional >= _MIN_FUNCTION_WORDS * len(words)
    if _REMARK.match(line):
        return _Look.EITHER
    if wordy and _ENDED.search(plain):
        return _Look.PROSE
    if _SIGN.search(plain) or (len(words) < _MIN_PROSE_WORDS and _PATH.search(plain)):
        return _Look.CODE
    return _Look.PROSE if wordy or _ENDED.search(plain) else _Look.EITHER
