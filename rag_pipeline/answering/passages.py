"""Units of a text that an answer quotes or cites whole: sentences, code blocks, tables, formulas.

Belongs here: where units begin and end. Which of them answer a question: extractive.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.literals import CODE_SPAN, DISPLAYED, INLINE_FORMULA, NO_MARK
from rag_pipeline.core.sentences import SENTENCE_MARKS, split_sentences

if TYPE_CHECKING:
    from collections.abc import Iterator

_FENCE: Final = re.compile(
    r"^(?P<lead>[ \t>]*)(?P<mark>`{3,}+(?=[^`\n]*$)|~{3,}+)[^\n]*$", re.MULTILINE
)
_ROW: Final = r"[^\n|]*\|[^\n]*(?:\n|\Z)"
_RULE: Final = r"[ \t>]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)+\|?[ \t\r]*(?:\n|\Z)"
_PARTS: Final = re.compile(
    rf"(?P<table>(?:^[ \t>]*\|[^\n]*(?:\n|\Z))+|^{_ROW}{_RULE}(?:{_ROW})*)"
    rf"|(?P<formula>{DISPLAYED})|(?P<literal>{CODE_SPAN}|{INLINE_FORMULA})|{NO_MARK}",
    re.MULTILINE | re.DOTALL,
)
"""What stands in prose; a table without pipes at its edges is known by the rule below its head."""

_CITED: Final = r"(?:\[[^\]\n]*\][ \t]*)*+"
_LEADING_CITED: Final = re.compile(_CITED)
_ENDED: Final = re.compile(rf"(?:^|[{SENTENCE_MARKS}][\"')\]*_ \t]*){_CITED}$")
_LOOK_BACK: Final = 64  # characters; longer than a full stop with its citations


def split_units(text: str) -> list[tuple[int, int]]:
    """Spans of the units of a text, in order.

    Code fences and tables are one unit each. A displayed formula is one with the sentence that
    leads to it and the one that goes on behind it, since each says nothing without the other.
    """
    spans: list[tuple[int, int]] = []
    position = 0
    formula_end: int | None = None
    for start, end in [*_find_blocks(text), (len(text), len(text))]:
        for low, high in split_sentences(_hide_literals(text[position:start])):
            sentence = (position + low, position + high)
            if spans and spans[-1][1] == formula_end and _goes_on(text, *sentence):
                sentence = (spans.pop()[0], sentence[1])
            spans.append(sentence)
        position, begin = end, start
        if text.startswith("$$", start):
            formula_end = end
            if spans and _leads(text[slice(*spans[-1])]):
                begin = spans.pop()[0]
        if begin < end:
            spans.append((begin, end))
    return spans


def is_block(unit: str) -> bool:
    """Tell whether a unit begins with a code block, a table or a formula."""
    part = _PARTS.match(unit)
    return bool(_FENCE.match(unit) or (part and part.lastgroup in {"table", "formula"}))


def ends_with_block(unit: str) -> bool:
    """Tell whether nothing can be written behind a unit on its last line."""
    return unit.endswith("$$") or (is_block(unit) and not unit.startswith("$$"))


def unindent(unit: str) -> str:
    """A unit as it stands at the margin: without indentation and the marks of a block quote."""
    fence = _FENCE.match(unit)
    if fence is None:
        return re.sub(r"^[ \t]*(?:>[ \t]*)*", "", unit, flags=re.MULTILINE)
    lead = fence.group("lead")
    marks = " \t>" if ">" in lead else " \t"
    return re.sub(rf"^[{marks}]{{0,{len(lead)}}}", "", unit, flags=re.MULTILINE)


def _find_blocks(text: str) -> Iterator[tuple[int, int]]:
    position = 0
    while position < len(text):
        fence = _FENCE.search(text, position)
        end_of_prose = fence.start() if fence else len(text)
        for part in _PARTS.finditer(text, position, end_of_prose):
            if part.lastgroup in {"table", "formula"}:
                yield part.start(), part.start() + len(part.group().rstrip())
        if fence is None:
            return
        quoted = ">" if ">" in fence.group("lead") else ""
        closing = re.compile(
            rf"^[ \t{quoted}]*{fence.group('mark')}[`~]*[ \t]*{_CITED}(?=[ \t\r]*$)", re.MULTILINE
        ).search(text, fence.end())
        position = closing.end() if closing else len(text)
        yield fence.start(), fence.start() + len(text[fence.start() : position].rstrip())


def _hide_literals(prose: str) -> str:
    """The same length without the marks in code and formulas, where no sentence ends."""
    return _PARTS.sub(_hide, prose)


def _hide(part: re.Match[str]) -> str:
    found = part.group()
    hidden = part.group("literal") is not None
    return found[0] + re.sub(r"\S", "x", found[1:-1]) + found[-1] if hidden else found


def _leads(unit: str) -> bool:
    ended = _ENDED.search(unit[-_LOOK_BACK:])
    return not (ended or unit.startswith("#") or ends_with_block(unit))


def _goes_on(text: str, start: int, end: int) -> bool:
    cited = _LEADING_CITED.match(text, start, end)
    following = text[cited.end() if cited else start : end][:1]
    return following.islower() or following in {",", ".", ";", ":", ")"}
