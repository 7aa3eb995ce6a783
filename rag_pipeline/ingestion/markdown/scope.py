"""The names that one MDX file knows: its imports, its literal exports, and the values of its props.

With them, the parser shows the value of an expression such as `{props.version}`, and finds the
places where the content of another file belongs.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from rag_pipeline.core.models import Figure
from rag_pipeline.core.site.docusaurus import MARKDOWN_SUFFIXES
from rag_pipeline.ingestion.markdown.openapi import API_COMPONENTS, read_props, write_component
from rag_pipeline.ingestion.markdown.tags import (
    Piece,
    PropTexts,
    find_tag_texts,
    is_comment_expression,
    is_component,
    read_attributes,
    read_literal,
    read_strings,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rag_pipeline.ingestion.markdown.tags import Scanner

SCOPE: Final = "scope"
"""Key in the parser's environment for the `Scope` of the file that is being parsed."""

CARD_LIST: Final = "DocCardList"
"""The component that shows the pages of the category to which its page belongs."""

DATA: Final = "data"
"""The component of a `Use` that shows the texts in a JSON file or a literal."""

IMAGE: Final = "image"
"""The component of a `Use` of an image file."""

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
_NAME: Final = re.compile(r"[A-Za-z_$][\w$]*")
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
        component_text: The setting of the same name.
        labels: Label of each tab that a `<Tabs>` tag lists, by the tab's value.
        uses: The uses of other files in the block that is being cleaned.
        left_out: Number of expressions without a known value.
        unread: Directives such as `::include`, which only a plugin of the site can read.
        unread_tags: Names of the components with a text that cannot be read without running code.
        image_files: Target of each import of an image, by its name in the file.
        images: The images in the block that is being cleaned, by their offset in the source.
    """

    files: dict[str, Use] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    literals: dict[str, str] = field(default_factory=dict)
    component_text: str = ""
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
            found = [*_read_choices(scanner.text[start:close])]
            self.labels.update(found)
            if found:
                return []
        if name.endswith("TabItem") and self.labels:
            attributes = read_attributes(scanner, start, close)
            label = self.labels.get(attributes.get("value", ""))
            if label is not None and "label" not in attributes:
                return [Piece(start, close, label)]
        if name and is_component(name):
            return self._read_component(scanner, name, start, close)
        return [Piece(*span) for span in find_tag_texts(scanner, start, close)]

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
        texts = PropTexts(scanner, self.values, self.literals, self.component_text, self.files)
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
        text = read_strings(literal, self.component_text) if literal else None
        self.uses += [Use("", component=DATA, text=text)] if text else []


def read_statements(scope: Scope, text: str) -> None:
    """Add the imports of files and the literal exports of a block of statements to a scope."""
    for name, use in _list_imports(text):
        if use.component == IMAGE:
            scope.image_files[name] = use.target
        else:
            scope.files[name] = use
    for name, value in _read_constants(text):
        scope.values[name] = value
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


def _read_constants(text: str) -> Iterator[tuple[str, str]]:
    for statement in _EXPORT.finditer(text):
        at = statement.end()
        while (constant := _CONSTANT.match(text, at)) is not None:
            yield constant[1], read_literal(constant[2]) or ""
            if not constant[3]:
                break
            at = constant.end() + 1


def _read_choices(tag: str) -> Iterable[tuple[str, str]]:
    for choice in _CHOICE.findall(tag):
        found = {name: text for name, _, text in _CHOSEN.findall(choice)}
        if len(found) == 2:  # a label and a value
            yield found["value"], found["label"]
