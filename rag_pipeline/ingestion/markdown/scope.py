"""The texts that tags and expressions of one MDX file show, with the names that the file knows.

These are its imports, its literal exports and the values of its props. With them, the parser shows
the value of an expression such as `{props.version}`, and finds the places where the content of
another file belongs.

Components show texts in their attributes, such as `<Card title="Calibrate">`. A string counts as
text unless the name of its attribute says otherwise. Strings in arrays, objects and JSX count too.
A value that needs code to run is reported as unread.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from rag_pipeline.core.models import Figure
from rag_pipeline.core.site.docusaurus import MARKDOWN_SUFFIXES
from rag_pipeline.ingestion.markdown.openapi import API_COMPONENTS, read_props, write_component
from rag_pipeline.ingestion.markdown.tags import (
    OPENING,
    Piece,
    Scanner,
    is_comment_expression,
    list_attributes,
    read_attributes,
    read_literal,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SCOPE: Final = "scope"
"""Key in the parser's environment for the `Scope` of the file that is being parsed."""

CARD_LIST: Final = "DocCardList"
"""The component that shows the pages of the category to which its page belongs."""

DATA: Final = "data"
"""The component of a `Use` that shows the texts in a JSON file or a literal."""

IMAGE: Final = "image"
"""The component of a `Use` of an image file."""

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


_SHOWN: Final = frozenset({"label", "title", "alt", "summary", "value"})
_OWN_ITEMS: Final = re.compile(r"\sitems=\{(?!\s*useCurrentSidebar)")
_MAPPED: Final = re.compile(
    r"(?:Object\.(?:entries|values|keys)\(\s*)?(?P<name>[A-Za-z_$][\w$]*)[^<{]*?\.map\("
)
_API_DATA: Final = ("responses", "parameters", "body", "response", "schema", "param")
_LONG_TEXT: Final = 500  # characters; a longer text of an exported literal must be cut in chunks

_IMPORT: Final = re.compile(
    r"""(?:^|;[ \t]*)import\s+(?:(?P<name>[\w$]+)\s*(?:,[^'";]*?)?"""
    r"""|\{[^'";}]*?\bdefault\s+as\s+(?P<alias>[\w$]+)[^'";}]*\})"""
    r"""\s*from\s*(?P<target>"[^"\n]+"|'[^'\n]+')""",
    re.MULTILINE,
)
_RAW: Final = re.compile(r"!*(?:raw-loader)!(?P<path>[^!?]+)(?:\?.*)?")
_EXPORT: Final = re.compile(r"^export\s+(?:const|let|var)(?=\s)", re.MULTILINE)
_CONSTANT: Final = re.compile(
    r"""\s+([A-Za-z_$][\w$]*)(?:\s*:\s*\w+)?\s*=\s*"""
    r"""("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\$]|\\.)*`|-?\d+(?:\.\d+)?)"""
    r"""[ \t]*(?=(,)|;|\n|\Z)"""
)
_EXPORTED: Final = re.compile(
    r"^export\s+(?:const|let|var)\s+(?P<name>[A-Za-z_$][\w$]*)[^=;{}\n]*=\s*(?=[\[{])", re.MULTILINE
)
_NEXT: Final = re.compile(r"\n(?=export\b|import\b|[ \t]*\n)")
_PLACEHOLDER: Final = re.compile(r"(?<!\\)\$\{([^{}`]*)\}")
_IMAGE_NAME: Final = re.compile(r"\.(?:png|jpe?g|gif|svg|webp|avif)(?:\?.*)?$", re.IGNORECASE)
_IMAGE_FILE: Final = re.compile(
    r"""["'(]([^"'()\s{}<>]+\.(?:png|jpe?g|gif|svg|webp|avif)(?:[?#][^"'()\s]*)?)["')]""",
    re.IGNORECASE,
)
_LINKS: Final = frozenset({"a", "Link"})
_USED_NAME: Final = re.compile(r"=\s*\{\s*([A-Za-z_$][\w$]*)\s*\}")
_CAPTION: Final = re.compile(
    r"(?:(?!<img\b|</figure>|<figcaption)[\s\S])*<figcaption[^>]*>([\s\S]*?)</figcaption>"
)
_ANY_TAG: Final = re.compile(r"<[^>]*>")
_LONG_TAG: Final = 2_000  # characters; a longer tag is not searched for an image
_REQUIRED: Final = re.compile(
    r"""\{\s*\.\.\.\s*require\(\s*["'](?P<target>[^"'\n]+\.json)["']\s*\)"""
)
_SPECIAL: Final = re.compile(r"[`\\$]")
_TAG_NAME: Final = re.compile(r"<([A-Za-z][\w.]*)")
_CHILDREN: Final = frozenset({"props.children", "children"})
_SHOWS_NOTHING: Final = frozenset({"true", "false", "null", "undefined", ""})
# An object, such as {label: "Linux", value: "linux", attributes: {className: "tux"}}.
_CHOICE: Final = re.compile(r"\{(?=\s*\w+\s*:)[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")
_CHOSEN: Final = re.compile(r"""\b(label|value)\s*:\s*(["'`])((?:(?!\2)[^\n])*)\2""")


@dataclass(frozen=True, slots=True)
class Use:
    """A place where a page shows the content of another file.

    Attributes:
        target: The file, as the `import` statement names it.
        is_raw: True if the file is shown as code; False if it is a Markdown file.
        values: The props of the tag by expression, such as `props.version`.
        info: The text after the opening fence of a code block.
        component: Name of the component that shows the file or `props`; empty for a file that is
            shown itself.
        props: The attributes of the component by name.
        text: Markdown that is shown in place of a file.
    """

    target: str
    is_raw: bool = False
    values: Mapping[str, str] = field(default_factory=dict)
    info: str = ""
    component: str = ""
    props: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""


@dataclass(slots=True)
class Scope:
    """The imports, literal values and tab labels of one file, and what cleaning the file has found.

    Attributes:
        files: The use of each imported file that has text, by its name in the file: Markdown, JSON,
            or a file that is imported as text.
        values: Value of each expression that is known without running code.
        literals: Source of each array and object that the file exports, by its name.
        rules: The setting `COMPONENT_TEXT`.
        labels: Label of each tab that a `<Tabs>` tag lists, by the tab's value.
        uses: The uses of other files in the blocks that were cleaned, in order.
        left_out: Number of expressions without a known value.
        unread: Directives such as `::include`, which only a plugin of the site can read.
        unread_tags: Names of the components with a text that cannot be read without running code.
        image_files: Target of each import of an image, by its name in the file.
        images: The images in the block that is being cleaned, by their offset in the source.
    """

    files: dict[str, Use] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    literals: dict[str, str] = field(default_factory=dict)
    rules: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    uses: list[Use] = field(default_factory=list)
    left_out: int = 0
    unread: list[str] = field(default_factory=list)
    unread_tags: list[str] = field(default_factory=list)
    image_files: dict[str, str] = field(default_factory=dict)
    images: dict[int, Figure] = field(default_factory=dict)

    def add_image(self, start: int, target: str, alt: str, caption: str) -> None:
        """Remember an image of the block that is being cleaned."""
        shown, told = " ".join(alt.split()), " ".join(caption.split())
        self.images[start] = Figure("image", target, shown, told, line=0)

    def find_value(self, expression: str) -> str | None:
        """Return the text that an expression shows, without its braces; None if it is not known."""
        text = expression.strip()
        if text in _SHOWS_NOTHING or text in _CHILDREN:
            return ""
        literal = read_literal(text)
        return self.values.get(text) if literal is None else literal

    def resolve(self, expression: str, info: str = "") -> str:
        """Return the text that an expression shows.

        The text is empty for an expression without a known value, which is counted. It is also
        empty for the name of a file that is imported as text, which counts as a use of the file.

        Args:
            expression: The expression without its braces.
            info: Language and title of the code block, if the expression is its content.
        """
        name = expression.strip()
        if name.startswith("#"):  # the id of a heading
            return ""
        if name.startswith("@"):
            self.unread.append(f"{{{name}}}")
            return ""
        if name in self.files and self.files[name].is_raw:
            self.uses.append(replace(self.files[name], info=info))
            return ""
        value = self.find_value(expression)
        if value is None and name.startswith("`") and name.endswith("`"):
            # A template shows its text, also without the values that are not known.
            filled = _PLACEHOLDER.sub(self._fill, name)
            value = read_literal(filled)
        if value is None and not is_comment_expression(f"{{{expression}}}"):
            self.left_out += 1
            self._use_data(name)
        return value or ""

    def _fill(self, placeholder: re.Match[str]) -> str:
        return _SPECIAL.sub(r"\\\g<0>", self.resolve(placeholder[1]))

    def read_tag(self, scanner: Scanner, start: int, close: int) -> list[Piece]:
        """Return the texts that a tag shows, and remember the tag if another file belongs there.

        Args:
            scanner: Scanner of the whole source.
            start: Offset of the tag's first character.
            close: Offset after the tag's last character.
        """
        match = _TAG_NAME.match(scanner.text, start, close)
        name = match[1] if match is not None else ""
        self._find_image(scanner, name, start, close)
        if self._find_use(scanner, name, start, close):
            return []
        if name.endswith("Tabs"):
            objects = _CHOICE.findall(scanner.text[start:close])
            choices = [{name: text for name, _, text in _CHOSEN.findall(one)} for one in objects]
            found = {one["value"]: one["label"] for one in choices if len(one) == 2}
            self.labels.update(found)
            if found:
                return []
        if name.endswith("TabItem") and self.labels:
            attributes = read_attributes(scanner, start, close)
            label = self.labels.get(attributes.get("value", ""))
            if label is not None and "label" not in attributes:
                return [Piece(start, close, label)]
        if (name[:1].isupper() or "." in name) and _THEME.fullmatch(name) is None:
            return self._read_component(scanner, name, start, close)
        return _read_shown(scanner, start, close)

    def _find_image(self, scanner: Scanner, name: str, start: int, close: int) -> None:
        """Remember a tag that shows an image file."""
        target = self.image_files.get(name, "")
        tag = scanner.text[start:close] if close - start < _LONG_TAG else ""
        if name in _LINKS:
            return
        if not target and (file := _IMAGE_FILE.search(tag)) is not None:
            # No build moves it beside the page, and components put the site's base URL before it.
            is_bare = file[1][0].isalnum() and ":" not in file[1]
            target = "/" + file[1] if is_bare else file[1]
        for used in _USED_NAME.findall(tag) if not target and self.image_files else ():
            target = target or self.image_files.get(used, "")
        if target:
            attributes = read_attributes(scanner, start, close, self.find_value)
            caption = attributes.get("caption") or attributes.get("title") or ""
            if not caption:
                found = _CAPTION.match(scanner.text, close, close + _LONG_TAG)
                caption = _ANY_TAG.sub("", found[1]) if found else ""
            alt = html.unescape(attributes.get("alt", ""))
            self.add_image(start, target, alt, html.unescape(caption))

    def _find_use(self, scanner: Scanner, name: str, start: int, close: int) -> bool:
        """Remember a tag that shows another file or a generated text; return True if it does."""
        if name in self.files:
            props = read_attributes(scanner, start, close, self.find_value)
            values = {f"props.{name}": value for name, value in props.items()}
            self.uses.append(replace(self.files[name], values=values))
        elif name == CARD_LIST and not _OWN_ITEMS.search(scanner.text, start, close):
            self.uses.append(Use("", component=CARD_LIST))
        elif API_COMPONENTS.fullmatch(name):
            self._use_api_part(scanner, name, start, close)
        else:
            return False
        return True

    def _use_api_part(self, scanner: Scanner, name: str, start: int, close: int) -> None:
        required = _REQUIRED.search(scanner.text, start, min(close, start + 1000))
        target = required["target"] if required is not None else ""
        given = read_attributes(scanner, start, close, lambda written: written)
        props = read_props(given)
        unread = {name for name in given.keys() - props.keys() if given[name] != "undefined"}
        unread |= {name for name in _API_DATA if isinstance(props.get(name), str)}
        text = write_component(name, props)
        if text or target:
            self.uses.append(Use(target, component=name, props=props, text=text))
        elif unread or not given:
            self.unread_tags.append(name)

    def _read_component(self, scanner: Scanner, name: str, start: int, close: int) -> list[Piece]:
        texts = _PropTexts(scanner, self)
        texts.read_tag(start, close)
        self.uses += (self.files[one] for one in dict.fromkeys(texts.used))
        is_empty = not (texts.pieces or texts.used) and scanner.text.startswith("/>", close - 2)
        if texts.is_unread or is_empty:
            self.unread_tags.append(name)
        shown = []
        for piece in texts.join():
            if piece.text is not None and len(piece.text) > _LONG_TEXT:
                self.uses.append(Use("", component=name, text=piece.text))
            else:
                shown.append(piece)
        return shown

    def _use_data(self, expression: str) -> None:
        """Remember the data of an expression such as `{steps.map((step) => ...)}`.

        The data is a literal, the name of an exported literal, or that of a JSON file.
        """
        mapped = _MAPPED.match(expression)
        name = mapped["name"] if mapped is not None else ""
        if name in self.files:
            self.uses.append(self.files[name])
            return
        literal = self.literals.get(name, "")
        if expression.startswith("["):
            literal = expression.partition("].map(")[0] + "]"
        text = read_strings(literal, self.rules) if literal else None
        self.uses += [Use("", component=DATA, text=text)] if text else []


def read_statements(scope: Scope, text: str) -> None:
    """Add the imports of files and the literal exports of a block of statements to a scope."""
    for name, use in _list_imports(text):
        if use.component == IMAGE:
            scope.image_files[name] = use.target
        else:
            scope.files[name] = use
    for statement in _EXPORT.finditer(text):
        at = statement.end()
        while (constant := _CONSTANT.match(text, at)) is not None:
            scope.values[constant[1]] = read_literal(constant[2]) or ""
            if not constant[3]:
                break
            at = constant.end() + 1
    for match in _EXPORTED.finditer(text):
        scope.literals[match["name"]] = _NEXT.split(text[match.end() :], 1)[0].rstrip().rstrip(";")


def find_imports(text: str) -> Iterator[str]:
    """Yield the files that a Markdown source may show: Markdown, JSON, and files read as text.

    The statements are found without parsing the source, so code that looks like one counts too.
    """
    yield from (use.target for _, use in _list_imports(text) if use.component != IMAGE)
    for match in _REQUIRED.finditer(text):
        yield match["target"]


def _list_imports(text: str) -> Iterator[tuple[str, Use]]:
    """Yield name and use of each import of Markdown, JSON, an image or a file read as text."""
    for match in _IMPORT.finditer(text):
        name, target = match["name"] or match["alias"], read_literal(match["target"]) or ""
        raw = _RAW.fullmatch(target)
        if target.endswith(MARKDOWN_SUFFIXES) and "!" not in target:
            yield name, Use(target)
        elif raw is not None:
            yield name, Use(raw["path"], is_raw=True)
        elif _IMAGE_NAME.search(target):
            yield name, Use(target, component=IMAGE)
        elif target.endswith(".json"):
            yield name, Use(target, component=DATA)


@dataclass(slots=True)
class _PropTexts:
    """The texts of a tag, while they are read.

    Attributes:
        scanner: Scanner of the whole source.
        scope: The names that the page knows.
        used: The names of imported files that the tag passes on, in order.
        pieces: The texts with the name of their attribute or key, in order.
        is_unread: True if a value cannot be read without running code, or is too long.
    """

    scanner: Scanner
    scope: Scope
    used: list[str] = field(default_factory=list)
    pieces: list[tuple[str, Piece]] = field(default_factory=list)
    is_unread: bool = False
    _length: int = 0

    def read_tag(self, start: int, close: int, depth: int = 0) -> None:
        """Add the texts of the opening tag between two offsets."""
        text = self.scanner.text
        opening = OPENING.match(text, start, close)
        if opening is None:
            return
        component = opening[1]
        if component in self.scope.files:
            self.used.append(component)
            return
        # If the tag has a name, its `type` is the type of what it describes.
        described = _NAMED.search(text, start, min(close, start + _MOST_TEXT)) is not None
        has_content = not text.startswith("/>", close - 2)
        for name, first, last, is_expression in list_attributes(self.scanner, start, close):
            # A number in a tag around other content, such as `cols={2}`, arranges the content.
            is_number = is_expression and _NUMBER.fullmatch(text, first, last) is not None
            facts = {"described": described, "arranges": has_content and is_number}
            if not _is_text(component, name, self.scope.rules, **facts):
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
        if inner in self.scope.values:
            self._add(name, start, end, self.scope.values[inner])
        elif inner in self.scope.literals:
            shown = read_strings(self.scope.literals[inner], self.scope.rules, component, name)
            self._add(name, start, end, shown)
            self.is_unread |= shown is None
        elif not self.read_literal(component, name, start + 1, end - 1, depth):
            del self.pieces[before:]
            self.is_unread = True

    def read_literal(self, component: str, name: str, at: int, end: int, depth: int) -> bool:
        """Add the texts of a literal; return False if it is not a literal."""
        text, key = self.scanner.text, name
        around = [(name, "")]  # arrays and objects: name, empty without text, and bracket
        in_row = False  # True after a text of an array that is inside an array
        while at < end and around:
            token = _TOKEN.match(text, at, end)
            if token is None:
                return False
            kind, at = str(token.lastgroup), token.end()
            is_text = bool(around[-1][0]) and _is_text(
                component, key, self.scope.rules, described=True
            )
            if kind == "tag":
                after = self._read_jsx(token.start(), end, key, depth, is_text=is_text)
                if after is None:
                    return False
                at = after
            elif kind == "mark":
                key = _follow(token["mark"], around, key if is_text else "")
                in_row = False
            elif kind != "blank":
                colon = _COLON.match(text, at, end)
                if colon is not None:
                    key, at = token[kind], colon.end()
                elif not self._read_scalar(key, token, is_text=is_text, in_row=in_row):
                    return False
                else:
                    key = around[-1][0]
                    in_row = [mark for _, mark in around[-2:]] == ["[", "["]
        return len(around) == 1

    def _read_scalar(self, key: str, token: re.Match[str], *, is_text: bool, in_row: bool) -> bool:
        """Add a string or number; return False for a name, whose value is not known.

        The strings of an array inside an array form a row.
        """
        kind = str(token.lastgroup)
        shown = token[kind]
        if kind == "word":
            if shown in _CONSTANTS:
                return True
            if shown in self.scope.files:
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


def _follow(mark: str, around: list[tuple[str, str]], name: str) -> str:
    """Enter or leave an array or object called `name`; return the name of what follows."""
    if mark in "[{":
        around.append((name, mark))
    elif mark in "]}":
        around.pop()
    return around[-1][0] if around else ""


def _read_shown(scanner: Scanner, start: int, close: int) -> list[Piece]:
    """Return the attribute values that readers see of a tag that is no component of the site.

    These are the values of `label`, `title`, `alt` and `summary`. If a `TabItem` tag has none of
    them, its `value` is returned. Empty values are left out.
    """
    opening = OPENING.match(scanner.text, start, close)
    is_tab = opening is not None and opening[1].endswith("TabItem")
    shown: dict[bool, list[Piece]] = {True: [], False: []}
    for name, first, last, is_expression in list_attributes(scanner, start, close):
        piece, written = Piece(first, last), scanner.text[first:last]
        if is_expression:
            written = read_literal(written.strip()) or ""
            piece = Piece(first - 1, last + 1, written)
        if name in _SHOWN and written.strip():
            shown[name == "value"].append(piece)
    return shown[False] or (shown[True] if is_tab else [])


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
    texts = _PropTexts(Scanner(literal, mdx=True), Scope(rules=rules))
    if not texts.read_literal(component, name, 0, len(literal), 0):
        return None
    pieces = (piece for _, piece in texts.pieces)
    return "".join(
        piece.separate("\n") + (piece.text or literal[piece.start : piece.end]) for piece in pieces
    ).lstrip("\n")
