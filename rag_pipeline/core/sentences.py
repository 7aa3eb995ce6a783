"""Where sentences begin and end in cleaned text: long texts and answers are cut there."""

from __future__ import annotations

import re
from typing import Final

_BOUNDARY: Final = re.compile(
    r"(?<![.!?])(?P<end>[.!?]++[\"')\]*_]*+)(?P<gap>[ \t]++)(?=[\"'(\[*_`$]*[A-Z0-9\"'(\[*_`$])"
    r"|(?<![ \t])(?P<line>[ \t]*+\n\s*)"
)
"""Each run of marks or blanks is looked at once, from its beginning: a long one took its square."""

_ABBREVIATIONS: Final = frozenset(
    [
        "approx",
        "cf",
        "ch",
        "dr",
        "e.g",
        "ed",
        "eds",
        "eq",
        "eqs",
        "etc",
        "fig",
        "figs",
        "i.e",
        "incl",
        "inc",
        "jr",
        "mr",
        "mrs",
        "ms",
        "no",
        "nos",
        "p",
        "pp",
        "prof",
        "resp",
        "sec",
        "st",
        "vol",
        "vs",
    ]
)
_LAST_WORD: Final = re.compile(r"([A-Za-z][A-Za-z.]*)\.$")
_WRAPPED_LINE: Final = re.compile(r"[a-z,;(]")
_MAX_LOOK_BACK: Final = 24  # characters; longer than any abbreviation


def split_sentences(text: str) -> list[tuple[int, int]]:
    """Spans of the sentences of a text, in order, without the white space between them.

    A line break ends a sentence unless the next line goes on in lower case, so that list entries,
    table rows and code
    lines count as sentences of their own. Abbreviations and single initials end none. Joined, the
    spans hold every
    character of the text but white space; a text of white space alone has none.
    """
    spans: list[tuple[int, int]] = []
    start = len(text) - len(text.lstrip())
    for match in _BOUNDARY.finditer(text):
        if match.start() < start:
            continue
        if match.group("line") is not None:
            end, following = match.start(), match.end()
            wrapped = "\n" not in match.group().strip(" \t")[1:] and _WRAPPED_LINE.match(
                text, following
            )
            if wrapped and text[end - 1 : end] not in {".", "!", "?", ":"}:
                continue
        else:
            end, following = match.end("end"), match.end()
            if match.group("end").startswith(".") and _is_abbreviation(text, match.start() + 1):
                continue
        if end > start:
            spans.append((start, end))
        start = following
    end = len(text.rstrip())
    if end > start:
        spans.append((start, end))
    return spans


def _is_abbreviation(text: str, end: int) -> bool:
    last = _LAST_WORD.search(text, max(0, end - _MAX_LOOK_BACK), end)
    if last is None:
        return False
    word = last.group(1)
    return word.lower() in _ABBREVIATIONS or (len(word) == 1 and word.isupper() and word != "I")
