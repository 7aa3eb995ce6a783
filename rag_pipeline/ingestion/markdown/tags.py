"""Read tags with their attributes, and the expressions of MDX pages.

Components show texts in their attributes, such as `<Card title="Calibrate">`. A string counts as
text unless the name of its attribute says otherwise. Strings in arrays, objects and JSX count too.
A value that needs code to run is reported as unread.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
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
_SHOWN: Final = frozenset({"label", "title", "alt", "summary", "value"})
_LITERAL: Final = re.compile(r"""\{\s*(["'`])((?:(?!\1|\\|\$\{).)*)\1\s*\}""", re.DOTALL)
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


def find_literal(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Return the start and end offset of the text in an MDX expression such as `{'text'}`.

    The result is None if the expression is not a plain string.
    """
    match = _LITERAL.fullmatch(text, start, end)
    return match.span(2) if match else None


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


def find_tag_texts(scanner: Scanner, start: int, close: int) -> list[tuple[int, int]]:
    """Return the start and end offsets of the attribute values of a tag that readers see.

    These are the values of `label`, `title`, `alt` and `summary`. If a `TabItem` tag has none of
    them, its `value` is returned. Empty values are left out.

    Args:
        scanner: Scanner of the whole source.
        start: Offset of the tag's first character.
        close: Offset after the tag's last character.
    """
    opening = _OPENING.match(scanner.text, start, close)
    is_tab = opening is not None and opening[1].endswith("TabItem")
    shown: dict[bool, list[tuple[int, int]]] = {True: [], False: []}
    for name, first, last, is_expression in list_attributes(scanner, start, close):
        span: tuple[int, int] | None = (first, last)
        if is_expression:
            span = find_literal(scanner.text, first - 1, last + 1)
        if name in _SHOWN and span and scanner.text[slice(*span)].strip():
            shown[name == "value"].append(span)
    return shown[False] or (shown[True] if is_tab else [])


FindValue: TypeAlias = Callable[[str], "str | None"]

_OPENING: Final = re.compile(r"<([A-Za-z][\w.:-]*)")
_ATTRIBUTE: Final = re.compile(
    r"""\s+(?:(?P<name>[A-Za-z_][\w.:-]*)"""
    r"""(?:\s*=\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?=\{)))?|(?=\{))"""
)
_LINKS: Final = frozenset({"a", "Link"})


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
    opening = _OPENING.match(scanner.text, start, close)
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


def find_link_tag(scanner: Scanner, start: int, close: int) -> tuple[str, str] | None:
    """Return name and target of an opening tag `<a>` or `<Link>`; None for any other tag."""
    name = _OPENING.match(scanner.text, start, close)
    if name is None or name[1] not in _LINKS or scanner.text.startswith("/>", close - 2):
        return None
    attributes = read_attributes(scanner, start, close)
    target = attributes.get("href") or attributes.get("to")
    return (name[1], target) if target else None


_NOT_TEXT: Final = re.compile(
    r"(?:.*(?:class(?:name)?s?|style|ur[li]|href|src|srcset|colou?r|icon|image|img|logo|width|height"
    r"|size|key|ref|variant|theme|align|language|background|component)"
    r"|id|.+(?:_id|-id|(?-i:Ids?))|to|as|is|link|target|rel|role|slot|lang|layout|position|value|path"
    r"|querystring|on(?-i:[A-Z]).*|data-.*|aria-(?!label).*)",
    re.IGNORECASE,
)
"""Names of attributes and keys whose strings are not text. `COMPONENT_TEXT` adds exceptions."""

_BARE: Final = re.compile(
    "|title|description|text|label|children|content|heading|caption|summary|alt|message|subtitle"
    "|question|answer|header|footer|body|quote|author|note"
)
"""Names that are not written before their value."""

_THEME: Final = re.compile(
    "Tabs|TabItem|Tab|CodeBlock|Admonition|Details|Link|Image|Img|IdealImage|Translate|Head|Input"
    "|Button|Icon|Script|TOCInline|Redirect|BrowserOnly|MDXContent|Fragment"
)
"""Components that show, of their attributes, only those that HTML elements show too."""

_TOKEN: Final = re.compile(
    r"""(?P<blank>[\s,]+|/\*(?:[^*]|\*(?!/))*\*/|//[^\n]*)"""
    r"""|"(?P<double>(?:[^"\\\n]|\\.)*)"|'(?P<single>(?:[^'\\\n]|\\.)*)'"""
    r"""|`(?P<template>(?:[^`\\$]|\\.|\$(?!\{))*)`"""
    r"""|(?P<word>[A-Za-z_$][\w$.-]*|-?\d[\w.]*)|(?P<tag><)|(?P<mark>[\[\]{}:])""",
    re.DOTALL,
)
_INLINE_TAG: Final = re.compile(r"</?(?:a|abbr|b|code|em|i|kbd|span|strong|sub|sup|u|var)[\s>]")
_JSX_MARK: Final = re.compile("[<{]")
_COLON: Final = re.compile(r"\s*:")
_NAMED: Final = re.compile(r"\s(?:name|param|prop|property|field|parameter)\s*=")
_CONSTANTS: Final = frozenset({"true", "false", "null", "undefined"})
_COLOUR: Final = re.compile(r"#[0-9a-fA-F]{3,8}")
_NUMBER: Final = re.compile(r"\s*-?\d[\d_.]*\s*")
_MOST_TEXT: Final = 100_000  # characters of one tag
_MOST_NESTED: Final = 5  # components inside the attributes of components


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


@dataclass(slots=True)
class PropTexts:
    """The texts of a tag, while they are read.

    Attributes:
        scanner: Scanner of the whole source.
        values: Values of expressions that are known without running code.
        literals: Source of the arrays and objects that the page exports, by name.
        rules: The setting `COMPONENT_TEXT`.
        files: Names of the files that the page imports.
        used: The names of those that the tag passes on, in order.
        pieces: The texts with the name of their attribute or key, in order.
        is_unread: True if a value cannot be read without running code, or is too long.
    """

    scanner: Scanner
    values: Mapping[str, str]
    literals: Mapping[str, str]
    rules: str = ""
    files: Collection[str] = ()
    used: list[str] = field(default_factory=list)
    pieces: list[tuple[str, Piece]] = field(default_factory=list)
    is_unread: bool = False
    _length: int = 0

    def read_tag(self, start: int, close: int, depth: int = 0) -> None:
        """Add the texts of the opening tag between two offsets."""
        text = self.scanner.text
        opening = _OPENING.match(text, start, close)
        if opening is None:
            return
        component = opening[1]
        if component in self.files:
            self.used.append(component)
            return
        # If the tag has a name, its `type` is the type of what it describes.
        described = _NAMED.search(text, start, min(close, start + _MOST_TEXT)) is not None
        has_content = not text.startswith("/>", close - 2)
        for name, first, last, is_expression in list_attributes(self.scanner, start, close):
            # A number in a tag around other content, such as `cols={2}`, arranges the content.
            arranges = has_content and is_expression and _NUMBER.fullmatch(text, first, last)
            if not _is_text(
                component, name, self.rules, described=described, arranges=bool(arranges)
            ):
                continue
            if is_expression:
                self._read_value(component, name, first - 1, last + 1, depth)
            elif first < last:
                value = text[first:last]
                self._add(name, first, last, html.unescape(value) if "&" in value else None)

    def _read_value(self, component: str, name: str, start: int, end: int, depth: int) -> None:
        """Add the texts of an expression in braces."""
        text, before = self.scanner.text, len(self.pieces)
        inner = text[start + 1 : end - 1].strip()
        if is_comment_expression(f"{{{inner}}}"):
            return
        if inner in self.values:
            self._add(name, start, end, self.values[inner])
        elif inner in self.literals:
            shown = read_strings(self.literals[inner], self.rules, component, name)
            self._add(name, start, end, shown)
            self.is_unread |= shown is None
        elif not self._read_literal(component, name, start + 1, end - 1, depth):
            del self.pieces[before:]
            self.is_unread = True

    def _read_literal(self, component: str, name: str, at: int, end: int, depth: int) -> bool:
        """Add the texts of a literal; return False if it is not a literal."""
        text, key = self.scanner.text, name
        names = [name]  # of the arrays and objects around; empty for one without text
        marks = [""]  # the brackets around
        in_row = False  # True after a text of an array that is inside an array
        while at < end and names:
            token = _TOKEN.match(text, at, end)
            if token is None:
                return False
            kind, at = str(token.lastgroup), token.end()
            is_text = bool(names[-1]) and _is_text(component, key, self.rules, described=True)
            if kind == "tag":
                after = self._read_jsx(token.start(), end, key, depth, is_text=is_text)
                if after is None:
                    return False
                at = after
            elif kind == "mark":
                key = _follow(token["mark"], names, marks, key if is_text else "")
                in_row = False
            elif kind != "blank":
                colon = _COLON.match(text, at, end)
                if colon is not None:
                    key, at = token[kind], colon.end()
                elif not self._read_scalar(key, token, is_text=is_text, in_row=in_row):
                    return False
                else:
                    key = names[-1]
                    in_row = marks[-2:] == ["[", "["]
        return len(names) == 1

    def _read_scalar(self, key: str, token: re.Match[str], *, is_text: bool, in_row: bool) -> bool:
        """Add a string or number; return False for a name, whose value is not known.

        The strings of an array inside an array form a row.
        """
        kind = str(token.lastgroup)
        shown = token[kind]
        if kind == "word":
            if shown in _CONSTANTS:
                return True
            if shown in self.files:
                self.used.append(shown)
                return True
            if shown[0] not in "-0123456789":
                return False
        if is_text and shown:
            value = read_literal(token.group()) if "\\" in shown else None
            self._add(key, *token.span(kind), value, " | " if in_row else None)
        return True

    def _read_jsx(self, start: int, end: int, key: str, depth: int, *, is_text: bool) -> int | None:
        """Add the texts of JSX that begins at an offset; return the offset after it.

        The result is None if the JSX has no end.
        """
        text, at, opened = self.scanner.text, start, 0
        may_nest = is_text and depth < _MOST_NESTED
        joint = None
        while at < end:
            if text[at] not in "<{":
                following = _JSX_MARK.search(text, at, end)
                until = end if following is None else following.start()
                if is_text and text[at:until].strip():
                    self._add(key, at, until, None, joint)
                    joint = ""
                at = until
                continue
            is_tag = text[at] == "<"
            close = (self.scanner.find_tag_end if is_tag else self.scanner.find_brace_end)(at, end)
            if close is None:
                return None
            if is_tag:
                joint = None if _INLINE_TAG.match(text, at, close) is None else joint
                opened += -1 if text[at + 1] == "/" else text[close - 2] != "/"
                if may_nest and text[at + 1].isupper():
                    self.read_tag(at, close, depth + 1)
                if opened <= 0:
                    return close
            elif may_nest:
                self._read_value("", key, at, close, depth + 1)
            at = close
        return None

    def _add(
        self, name: str, start: int, end: int, text: str | None, joint: str | None = None
    ) -> None:
        shown = self.scanner.text[start:end] if text is None else text
        if self._length + len(shown) > _MOST_TEXT:
            self.is_unread = True
        elif shown.strip() and not _COLOUR.fullmatch(shown):
            self._length += len(shown)
            self.pieces.append((name, Piece(start, end, text, joint=joint)))

    def join(self) -> list[Piece]:
        """Return the texts as pieces; short `name: value` pairs of one tag form one row.

        A number gets its name too if it is the only text of a tag.
        """
        pairs = [name for name, _ in self.pieces if _BARE.fullmatch(name) is None]
        is_row = len({name for name, _ in self.pieces}) > 1 and len(pairs) == len(set(pairs))
        if len(self.pieces) == 1:
            ((_, only),) = self.pieces
            shown = only.text or self.scanner.text[only.start : only.end]
            is_row = _NUMBER.fullmatch(shown) is not None
        joined: list[Piece] = []
        in_row = False
        for name, piece in self.pieces:
            is_pair = is_row and _BARE.fullmatch(name) is None
            prefix = f"{name}: " if is_pair else ""
            joint = ", " if is_pair and in_row else piece.joint
            joined.append(piece._replace(prefix=prefix, joint=joint))
            in_row = is_pair
        return joined


def _follow(mark: str, names: list[str], marks: list[str], name: str) -> str:
    """Enter or leave an array or object called `name`; return the name of what follows."""
    if mark in "[{":
        names.append(name)
        marks.append(mark)
    elif mark in "]}":
        names.pop()
        marks.pop()
    return names[-1] if names else ""


def is_component(name: str) -> bool:
    """Return True if the attributes of a tag are read by the rule for components."""
    return (name[:1].isupper() or "." in name) and _THEME.fullmatch(name) is None


@lru_cache(maxsize=4096)
def _is_text(
    component: str, name: str, rules: str, *, described: bool, arranges: bool = False
) -> bool:
    """Return True if the strings of an attribute or key are text."""
    for owner in (component, "*"):
        for own in (name, "*"):
            found = _read_rules(rules).get((owner, own))
            if found is not None:
                return found
    if arranges or (name == "type" and not described):
        return False
    return _NOT_TEXT.fullmatch(name) is None


@lru_cache(maxsize=16)
def _read_rules(rules: str) -> dict[tuple[str, str], bool]:
    """Return, by component and attribute, if the setting `COMPONENT_TEXT` calls it a text."""
    found: dict[tuple[str, str], bool] = {}
    for rule in filter(None, (one.strip() for one in rules.split(","))):
        component, _, name = rule.removeprefix("-").partition(".")
        found[component, name or "*"] = not rule.startswith("-")
    return found


def read_strings(literal: str, rules: str, component: str = "", name: str = "text") -> str | None:
    """Return the texts of an array or object, one per line; None if it is not literal.

    Args:
        literal: The source of a literal, or a JSON document.
        rules: The setting `COMPONENT_TEXT`.
        component: Name of the component that shows the texts.
        name: Its attribute.
    """
    texts = PropTexts(Scanner(literal, mdx=True), {}, {}, rules)
    if not texts._read_literal(component, name, 0, len(literal), 0):  # noqa: SLF001  # of the class above
        return None
    pieces = (piece for _, piece in texts.pieces)
    return "".join(
        piece.separate("\n") + (piece.text or literal[piece.start : piece.end]) for piece in pieces
    ).lstrip("\n")
