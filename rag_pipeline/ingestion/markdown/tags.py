"""Find the tags, expressions and statements of MDX pages, and read attributes and literals."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple, TypeAlias

_TAG_START: Final = re.compile(r"<(?:/?[A-Za-z][\w.:-]*(?=\s|/?>)|/?(?=>))")
_TAG_JUMP: Final = re.compile(r"""["'{<>]""")
# The text inside JSX contains apostrophes and URLs. Therefore a quote after a letter does not open
# a string, and the `//` of `http://` does not start a comment. A regular expression literal is
# recognised only where a value can begin.
_QUOTED: Final = (
    r"""(?<![\w\\])["']|(?<!\\)`|/\*|(?<!:)//"""
    r"""|(?:(?<=[(,=:!&|?{[])|(?<=[(,=:!&|?{[][ ]))"""
    r"""/(?![*/])(?:[^\\/\[\n]|\\.|\[(?:[^]\\\n]|\\.){1,40}\]){1,99}/"""
)
_BRACE_JUMP: Final = re.compile(rf"[{{}}]|{_QUOTED}")
_VALUE: Final = re.compile(
    r"""(?P<quote>["'])(?P<text>(?:(?!(?P=quote))[^\\\n]|\\.)*)(?P=quote)"""
    r"""|`(?P<template>(?:[^`\\$]|\\.|\$(?!\{))*)`|(?P<number>-?\d{1,20}(?:\.\d{1,20})?)""",
    re.DOTALL,
)
_ESCAPE: Final = re.compile(r"\\(?:u\{?([0-9a-fA-F]{4,5})\}?|(.))", re.DOTALL)
_ESCAPED: Final = {"n": "\n", "t": "\t", "r": "", "\n": ""}
_BLANK_LINE: Final = re.compile(r"\n[ \t]*(?=\n)")
_STATEMENT_JUMP: Final = re.compile(
    rf"{_BLANK_LINE.pattern}|\n(?=#{{1,6}}[ \t])"
    rf"|[][(){{}}]|<(?=>|[A-Za-z][\w.]*[\s/>])|</|/>|{_QUOTED}"
)
SCANNER: Final = "scanner"
"""Key in the parser's environment for the `Scanner` of the text that is being parsed."""

MAX_CONSTRUCT: Final = 2_000_000  # characters; a longer tag or expression is read as text
_FREE_SCANS: Final = 2_000_000  # characters that scans without a result may read in any text
_SCANS_PER_CHARACTER: Final = 20  # further characters for each character of the text


class Scanner:
    """A scanner that finds where the tags, braces and statements of one text end.

    The total cost of scans that find no end is limited, so that a text with many unclosed tags
    still takes linear time. After the limit, tags and braces are treated as plain text.

    Args:
        text: The text to scan.
        mdx: True if `{...}` inside a tag is an expression, as in MDX.
    """

    def __init__(self, text: str, *, mdx: bool) -> None:
        self.text = text
        self._mdx = mdx
        self._budget = _FREE_SCANS + _SCANS_PER_CHARACTER * len(text)

    def find_tag_end(self, start: int, limit: int) -> int | None:
        """Return the offset after the tag that begins at `start`; None if there is no tag.

        The tag must end before `limit` and must not be longer than `MAX_CONSTRUCT` characters.
        """
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
        """Return the offset after the `}` that closes the `{` at `start`; None if it is not closed.

        Braces in strings, comments and regular expressions are skipped. The closing brace must come
        before `limit`, at most `MAX_CONSTRUCT` characters after `start`.
        """
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
        """Return the offset where the `import` or `export` statement that begins at `start` ends.

        Outside of its brackets, the first blank line or heading line ends the statement. If
        its brackets are never closed, the text was probably not a statement. Then the result is the
        offset of the first blank line, so that the rest of the page is kept. The result is at most
        `limit`.
        """
        depth, at = 0, start
        reach = min(limit, start + MAX_CONSTRUCT) if self._budget >= 0 else start
        while (jump := _STATEMENT_JUMP.search(self.text, at, reach)) is not None:
            char, at = jump.group(), jump.end()
            if char.startswith("\n"):
                if depth <= 0:
                    return jump.start()
                if self.text[at] == "#":  # a line of a statement never begins like a heading
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
    """Return the offset after a comment, string or regular expression, which is skipped.

    A comment without an end reaches to `limit`. A quotation mark without a closing one is plain
    text, so the result is then `at`.

    Args:
        text: The text to scan.
        opener: The opening characters of the comment or string. A regular expression is given
            completely.
        at: Offset after `opener`.
        limit: Offset at which the search for the end stops.
    """
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
    """Return True if an MDX expression `{...}` contains only comments or white space."""
    return not re.sub(r"/\*.*?\*/|//[^\n]*\n", "", text[1:-1], flags=re.DOTALL).strip()


def read_literal(expression: str) -> str | None:
    """Return the text that a string or number of JavaScript shows; None for anything else.

    A template with a value inside, such as `v${n}`, is not a plain string.
    """
    match = _VALUE.fullmatch(expression)
    if match is None:
        return None
    text = match["text"] if match["text"] is not None else match["template"]
    return match["number"] if text is None else _ESCAPE.sub(_unescape, text)


def _unescape(match: re.Match[str]) -> str:
    if match[1] is not None:
        return chr(int(match[1], 16))
    return _ESCAPED.get(match[2], match[2])


FindValue: TypeAlias = Callable[[str], "str | None"]

OPENING: Final = re.compile(r"<([A-Za-z][\w.:-]*)")
"""The start of an opening tag, with its name."""
_ATTRIBUTE: Final = re.compile(
    r"""\s+(?:(?P<name>[A-Za-z_][\w.:-]*)"""
    r"""(?:\s*=\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?=\{)))?|(?=\{))"""
)


def read_attributes(
    scanner: Scanner, start: int, close: int, find_value: FindValue = read_literal
) -> dict[str, str]:
    """Return the attributes of a tag whose values are known, such as `"x"` and `{'x'}`.

    Args:
        scanner: Scanner of the whole source.
        start: Offset of the tag's first character.
        close: Offset after the tag's last character.
        find_value: Function that returns the text of an expression; None if it is not known.

    Returns:
        The values by name. An attribute with another expression is left out, and so is everything
        after a part of the tag that cannot be read.
    """
    found: dict[str, str] = {}
    for name, first, last, is_expression in list_attributes(scanner, start, close):
        written = scanner.text[first:last]
        value = find_value(written.strip()) if is_expression else written
        if name and value is not None:
            found[name] = value
    return found


def list_attributes(
    scanner: Scanner, start: int, close: int
) -> Iterator[tuple[str, int, int, bool]]:
    """Yield the attributes of an opening tag, up to a part that cannot be read.

    Yields:
        The name, which is empty for `{...props}`; start and end offset of the value, without its
        quotes or braces; and True if the value is an expression.
    """
    opening = OPENING.match(scanner.text, start, close)
    at = close if opening is None else opening.end()
    while (attribute := _ATTRIBUTE.match(scanner.text, at, close)) is not None:
        name, at = attribute["name"] or "", attribute.end()
        if scanner.text.startswith("{", at):
            end = scanner.find_brace_end(at, close) or close
            yield name, at + 1, end - 1, True
            at = end
        else:
            quote = "single" if attribute["single"] is not None else "double"
            yield name, *attribute.span(quote), False


class Piece(NamedTuple):
    """A text that readers see.

    Attributes:
        start: Offset of its first character in the source.
        end: Offset after its last character.
        text: Another text that replaces it; None to keep it as written.
        prefix: Text before it, such as `default: `.
        joint: Text between the piece before and this one; None for the usual separator.
    """

    start: int
    end: int
    text: str | None = None
    prefix: str = ""
    joint: str | None = None

    def separate(self, usual: str) -> str:
        """Return the text between the piece before and this one, where `usual` separates texts."""
        return (usual if self.joint is None else self.joint) + self.prefix
