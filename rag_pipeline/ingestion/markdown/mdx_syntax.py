"""The ends of MDX constructs in plain text; all scans take linear time and never raise."""

from __future__ import annotations

import re
from typing import Final

_TAG_START: Final = re.compile(r"<(?:/?[A-Za-z][\w.:-]*(?=\s|/?>)|/?(?=>))")
_TAG_JUMP: Final = re.compile(r"""["'{<>]""")
# Text in JSX contains apostrophes and addresses: a quote after a letter does not open a string, and
# the `//` of `http://` is not a comment. A regular expression stands where a value can begin.
_QUOTED: Final = (
    r"""(?<![\w\\])["']|(?<!\\)`|/\*|(?<!:)//"""
    r"""|(?:(?<=[(,=:!&|?{[])|(?<=[(,=:!&|?{[][ ]))"""
    r"""/(?![*/])(?:[^\\/\[\n]|\\.|\[(?:[^]\\\n]|\\.){1,40}\]){1,99}/"""
)
_BRACE_JUMP: Final = re.compile(rf"[{{}}]|{_QUOTED}")
_NAMED_ATTRIBUTE: Final = re.compile(
    r"""\b(?P<name>label|title|alt|summary|value)\s*[=:]\s*(?:\{\s*)?(?P<quote>["'`])(?P<text>.*?)(?P=quote)""",
    re.DOTALL,
)
_TAG_NAME: Final = re.compile(r"</?([\w.:-]*)")
_LITERAL: Final = re.compile(r"""\{\s*(["'`])((?:(?!\1|\\|\$\{).)*)\1\s*\}""", re.DOTALL)
_BLANK_LINE: Final = re.compile(r"\n[ \t]*(?=\n)")
_STATEMENT_JUMP: Final = re.compile(
    rf"{_BLANK_LINE.pattern}|\n(?=#{{1,6}}[ \t])"
    rf"|[][(){{}}]|<(?=>|[A-Za-z][\w.]*[\s/>])|</|/>|{_QUOTED}"
)
SCANNER: Final = "scanner"
"""Key of the parser's environment: the scanner of the text being parsed."""

MAX_CONSTRUCT: Final = 10_000  # characters; a longer tag or expression is read as text
_FREE_SCANS: Final = 2_000_000  # characters that scans of constructs never closed may cost
_SCANS_PER_CHARACTER: Final = 20


class Scanner:
    """Finds where tags and braces of one text end.

    The cost of scans that find nothing is bounded for the whole text, so that a source with many
    open constructs takes linear time. After the bound its tags are read as text.
    """

    def __init__(self, text: str, *, mdx: bool) -> None:
        self.text = text
        self._mdx = mdx
        self._budget = _FREE_SCANS + _SCANS_PER_CHARACTER * len(text)

    def find_tag_end(self, start: int, limit: int) -> int | None:
        """Return the position after the tag that begins at `start`; None if it is not a tag."""
        match = _TAG_START.match(self.text, start, limit)
        if match is None or self._budget < 0:
            return None
        at, limit = match.end(), min(limit, start + MAX_CONSTRUCT)
        while (jump := _TAG_JUMP.search(self.text, at, limit)) is not None:
            char, at = jump.group(), jump.end()
            if char == ">":
                return at
            if char == "<":
                return None
            if char == "{":
                end = self.find_brace_end(at - 1, limit) if self._mdx else at
            else:
                end = self.text.find(char, at, limit) + 1 or None
            if end is None:
                break
            at = end
        self._budget -= limit - start
        return None

    def find_brace_end(self, start: int, limit: int) -> int | None:
        """Return the position after the `}` that closes the `{` at `start`; None if none does."""
        if self._budget < 0:
            return None
        depth, at, limit = 0, start, min(limit, start + MAX_CONSTRUCT)
        while (jump := _BRACE_JUMP.search(self.text, at, limit)) is not None:
            char, at = jump.group(), jump.end()
            if char == "{":
                depth += 1
            elif char == "}":
                depth -= 1
                if depth == 0:
                    return at
            else:
                at = _skip_quoted(self.text, char, at, limit)
        self._budget -= limit - start
        return None

    def find_statement_end(self, start: int, limit: int) -> int:
        """Return the end of the `import` or `export` at `start`: a blank line follows.

        A statement that stays open was misread. It ends at its first blank line, so that the rest
        of the page is kept.
        """
        depth, at = 0, start
        reach = min(limit, start + MAX_CONSTRUCT) if self._budget >= 0 else start
        while (jump := _STATEMENT_JUMP.search(self.text, at, reach)) is not None:
            char, at = jump.group(), jump.end()
            if char.startswith("\n"):
                if depth <= 0:
                    return jump.start()
                if self.text[at] == "#":  # no line of a statement begins like a heading
                    break
            elif char in {"(", "[", "{", "<"}:
                depth += 1
            elif char in {")", "]", "}", "</", "/>"}:
                depth -= 1
            else:
                at = _skip_quoted(self.text, char, at, reach)
        else:
            if reach == limit and depth <= 0:
                return limit
        self._budget -= reach - start
        blank = _BLANK_LINE.search(self.text, start, limit)
        return blank.start() if blank is not None else limit


def _skip_quoted(text: str, opener: str, at: int, limit: int) -> int:
    """Return the position after a comment, string or regular expression; an open string is text."""
    if len(opener) > len("//"):
        return at
    if opener in {"/*", "//"}:
        end = text.find("*/" if opener == "/*" else "\n", at, limit)
        return limit if end < 0 else end + 2 * (opener == "/*")
    end = at
    while (end := text.find(opener, end, limit) + 1) > 0:
        if text[end - 2] != "\\" or text[end - 3 : end - 1] == "\\\\":
            return end if opener == "`" or text.find("\n", at, end) < 0 else at
    return at


def is_comment_expression(text: str) -> bool:
    """Tell whether `{...}` contains only comments."""
    return not re.sub(r"/\*.*?\*/|//[^\n]*\n", "", text[1:-1], flags=re.DOTALL).strip()


def find_literal(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Find the text of `{'text'}`; nothing for an expression that is computed."""
    match = _LITERAL.fullmatch(text, start, end)
    return [match.span(2)] if match else []


def find_tag_texts(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Find the attributes of a tag that readers see: tab labels, titles, alternative texts.

    A `value` counts only for a tab without a label.
    """
    name = _TAG_NAME.match(text, start, end)
    is_tab = name is not None and name.group(1).endswith("TabItem")
    shown: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    for match in _NAMED_ATTRIBUTE.finditer(text, start, end):
        if match["text"].strip():
            shown[match["name"] == "value"].append(match.span("text"))
    return shown[False] or (shown[True] if is_tab else [])
