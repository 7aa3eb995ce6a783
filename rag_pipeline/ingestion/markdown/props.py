"""Read the texts that a component shows from its attributes, such as `<Card title="Calibrate">`.

A string counts as text unless the name of its attribute says otherwise. Strings in arrays, objects
and JSX count too. A value that needs code to run is reported as unread.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from rag_pipeline.ingestion.markdown.tags import Scanner, is_comment_expression, read_literal

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


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

_ATTRIBUTE: Final = re.compile(
    r"""\s+(?:(?P<name>[A-Za-z_][\w.:-]*)(?:\s*=\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?=\{)))?"""
    r"""|(?=\{))"""
)
_OPENING: Final = re.compile(r"<([A-Za-z][\w.:-]*)")
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
_CONSTANTS: Final = frozenset({"true", "false", "null", "undefined"})
_COLOUR: Final = re.compile(r"#[0-9a-fA-F]{3,8}")
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
        name = _OPENING.match(text, start, close)
        if name is None:
            return
        component, at = name[1], name.end()
        if component in self.files:
            self.used.append(component)
            return
        described = _describes(text[start : min(close, start + _MOST_TEXT)])
        while (attribute := _ATTRIBUTE.match(text, at, close)) is not None:
            at = attribute.end()
            own = attribute["name"] or ""
            is_text = _is_text(component, own, self.rules, described=described)
            if text[at : at + 1] == "{":
                end = self.scanner.find_brace_end(at, close) or close
                if is_text:
                    self._read_value(component, own, at, end, depth)
                at = end
                continue
            group = "double" if attribute["double"] is not None else "single"
            if is_text and attribute[group]:
                value = attribute[group]
                shown = html.unescape(value) if "&" in value else None
                self._add(own, *attribute.span(group), shown)

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
        """Return the texts as pieces; short `name: value` pairs of one tag form one row."""
        pairs = [name for name, _ in self.pieces if _BARE.fullmatch(name) is None]
        is_row = len({name for name, _ in self.pieces}) > 1 and len(pairs) == len(set(pairs))
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


def _describes(tag: str) -> bool:
    """Return True if a tag has a name, so that its `type` is the type of what it describes."""
    return re.search(r"\s(?:name|param|prop|property|field|parameter)\s*=", tag) is not None


def is_component(name: str) -> bool:
    """Return True if the attributes of a tag are read by the rule for components."""
    return (name[:1].isupper() or "." in name) and _THEME.fullmatch(name) is None


@lru_cache(maxsize=4096)
def _is_text(component: str, name: str, rules: str, *, described: bool) -> bool:
    """Return True if the strings of an attribute or key are text."""
    for owner in (component, "*"):
        for own in (name, "*"):
            found = _read_rules(rules).get((owner, own))
            if found is not None:
                return found
    if name == "type" and not described:
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
