"""Read a file as the text whose lines and bytes all stages count, with its front matter and syntax.

Front matter is the YAML at its start. Values follow YAML 1.2, as in Docusaurus: `yes` and dates are
read as text.
"""

from __future__ import annotations

import codecs
import math
import posixpath
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias, cast

import frontmatter
import yaml
from frontmatter.default_handlers import YAMLHandler

from rag_pipeline.core.errors import DocumentReadError, FrontMatterError
from rag_pipeline.core.models import DiscoveredDoc, MarkdownFormat, SiteSettings
from rag_pipeline.core.site.files import find_page_root, read_site_file
from rag_pipeline.core.sources import find_place

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


Scalar: TypeAlias = str | int | float | bool | None

_FENCED: Final = re.compile(r"---[ \t]*\n(.*?)(?:^---[ \t]*(?:\n|\Z))", re.DOTALL | re.MULTILINE)
_REMEMBERED_HEADS: Final = 20_000  # cache entries of a few hundred bytes each
_FOREIGN: Final = frozenset(
    {"module", "chapter", "content_type", "learning-objectives", "learning_objectives"}
)
# js-yaml, which Docusaurus uses, reads a tab as white space and accepts the other characters within
# a line. PyYAML does neither.
_UNREAD_BLANK: Final = re.compile(r"(?<=:)[ \t]*\t[ \t]*|[\x85\u2028\u2029]")
_INT: Final = re.compile(r"[-+]?[0-9]{1,300}")
_BASED_INT: Final = re.compile(r"[-+]?0(?:b[01]{1,300}|o[0-7]{1,300}|x[0-9a-fA-F]{1,200})")
_LONGEST_WHOLE: Final = 1e21  # JavaScript writes larger numbers with an exponent
_FLOAT: Final = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_WORDS: Final = {"true": True, "false": False, "null": None, "~": None, "": None}


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The fields in the front matter of one document.

    Attributes:
        doc_id: Path of the document below the docs folder, for error messages.
        nodes: YAML node of each top-level field, by field name.
        end: Offset of the body's first character in the source; 0 if there is no front matter.
    """

    doc_id: str
    nodes: dict[str, yaml.Node]
    end: int

    def text(self, name: str) -> str:
        """Return the value of a field as text; empty if it is not set.

        Raises:
            FrontMatterError: A field that Docusaurus defines is a list or a mapping. Any other such
                field counts as not set.
        """
        value = self.scalar(name)
        return "" if value is None else _to_text(value)

    def scalar(self, name: str) -> Scalar:
        """Return the value of a field; None if it is not set.

        Raises:
            FrontMatterError: As for `text`.
        """
        node = self.nodes.get(name)
        if isinstance(node, yaml.ScalarNode):
            return _read_scalar(node)
        if node is not None and name not in _FOREIGN:
            raise self._wrong_type(name, node, "one text or number, not a list or a mapping")
        return None

    def texts(self, *names: str, split: bool = False) -> tuple[str, ...]:
        """Return the values of the first of the named fields that is present, without repeats.

        Args:
            names: Names of fields whose value is a list, one text or empty. If a list contains a
                mapping, its `label` or `name` is returned.
            split: True to split one text at its commas into several values.

        Raises:
            FrontMatterError: A field that Docusaurus defines is a mapping, or a list that contains
                a list.
        """
        for name in names:
            node = self.nodes.get(name)
            if node is None:
                continue
            if isinstance(node, yaml.MappingNode):
                if name in _FOREIGN:
                    continue
                raise self._wrong_type(name, node, "a list of texts, such as [robots, sensors]")
            entries = node.value if isinstance(node, yaml.SequenceNode) else [node]
            values = [self._read_entry(name, entry) for entry in entries]
            if split and isinstance(node, yaml.ScalarNode):
                values = [part.strip() for part in values[0].split(",")]
            return tuple(dict.fromkeys(value for value in values if value))
        return ()

    def number(self, name: str) -> float | None:
        """Return the value of a field as a finite number; None if the field is not set.

        Raises:
            FrontMatterError: The value is not a finite number.
        """
        value = self.scalar(name)
        if value is None:
            return None
        try:
            number = math.nan if isinstance(value, bool) else float(value)
        except (ValueError, OverflowError):
            number = math.nan
        if not math.isfinite(number):
            raise self._wrong_type(name, self.nodes[name], "a finite number, such as 2")
        return number

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return the value of a field that is true or false; `default` for any other value."""
        node = self.nodes.get(name)
        value = _read_scalar(node) if isinstance(node, yaml.ScalarNode) else None
        text = str(value).strip().lower()
        return text == "true" if text in {"true", "false"} else default

    def _read_entry(self, name: str, node: yaml.Node) -> str:
        if isinstance(node, yaml.MappingNode):
            fields = _read_mapping(node)
            node = fields.get("label") or fields.get("name") or node
        if not isinstance(node, yaml.ScalarNode):
            if name in _FOREIGN:
                return ""
            raise self._wrong_type(name, node, "a list of texts, such as [robots, sensors]")
        value = _read_scalar(node)
        return "" if value is None else _to_text(value)

    def _wrong_type(self, name: str, node: yaml.Node, wanted: str) -> FrontMatterError:
        line = node.start_mark.line + 1
        return FrontMatterError(self.doc_id, f"{name} must be {wanted}", line)


class _FieldsHandler(YAMLHandler):
    """A python-frontmatter handler that returns YAML nodes instead of YAML 1.1 values.

    A node keeps its line number and its original text.
    """

    FM_BOUNDARY = re.compile(r"^---[ \t]*$", re.MULTILINE)  # not in `----`, as in Docusaurus

    def load(self, fm: str, **_options: object) -> dict[str, object]:
        """Parse the YAML of a front matter, and return the node of each top-level field.

        Raises:
            yaml.YAMLError: The YAML is invalid, is not a mapping, or repeats a field.
        """
        try:
            node = yaml.compose(fm, Loader=yaml.SafeLoader)
        except yaml.YAMLError:
            node = yaml.compose(_UNREAD_BLANK.sub(" ", fm), Loader=yaml.SafeLoader)
        if node is None:
            return {}
        if not isinstance(node, yaml.MappingNode):
            problem = "the content is not a mapping. Write `name: value` lines"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        _refuse_repeated_keys(node)
        return {**_read_mapping(node)}


_HANDLER: Final = _FieldsHandler()


def read_front_matter(doc_id: str, source: str) -> FrontMatter:
    """Read the front matter of a document: the YAML between `---` lines at its very start.

    The result has no fields if the document has no front matter, or if it begins with a horizontal
    rule `---`, a blank line and text that is not YAML.

    Args:
        doc_id: Path of the document below the docs folder, for error messages.
        source: Normalized text of the document.

    Raises:
        FrontMatterError: The YAML is invalid, is not a mapping, or repeats a field. The message
            names the line of the file.
    """
    match = _FENCED.match(source)
    if match is None:
        return FrontMatter(doc_id, {}, 0)
    try:
        nodes, _ = frontmatter.parse(match.group(), handler=_HANDLER)
    except yaml.YAMLError as error:
        if match.group(1).startswith("\n"):
            return FrontMatter(doc_id, {}, 0)
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None)
        line = 1 if mark is None else mark.line + 1
        problem = f"the YAML is not valid here: {problem or 'syntax error'}"
        raise FrontMatterError(doc_id, problem, line) from error
    except RecursionError as error:
        raise FrontMatterError(doc_id, "it is nested too deeply. Use fewer levels", 1) from error
    return FrontMatter(doc_id, cast("dict[str, yaml.Node]", nodes), match.end())


class Visibility(StrEnum):
    """The readers of a page: all, those who have its address, or nobody."""

    LISTED = "listed"
    UNLISTED = "unlisted"
    DRAFT = "draft"


def find_visibility(source: str) -> Visibility:
    """Return what `draft` and `unlisted` in the front matter say; LISTED if it is invalid."""
    match = _FENCED.match(source)
    if match is None or not ("draft" in match.group(1) or "unlisted" in match.group(1)):
        return Visibility.LISTED
    return _read_visibility(match.group())


@lru_cache(maxsize=_REMEMBERED_HEADS)
def _read_visibility(head: str) -> Visibility:
    """Parse a front matter, and return what its fields `draft` and `unlisted` say.

    The result is cached because a sensor checks the same drafts at each tick.
    """
    try:
        fields = read_front_matter("", head)
    except FrontMatterError:
        return Visibility.LISTED
    if fields.flag("draft"):
        return Visibility.DRAFT
    return Visibility.UNLISTED if fields.flag("unlisted") else Visibility.LISTED


def _refuse_repeated_keys(head: yaml.Node) -> None:
    """Check that no mapping in the YAML has the same key twice, which Docusaurus rejects too.

    Raises:
        yaml.MarkedYAMLError: A key is repeated. The error names the key and its line.
    """
    pending, visited = [head], set[int]()
    while pending:
        node = pending.pop()
        if id(node) in visited or isinstance(node, yaml.ScalarNode):  # YAML aliases share nodes
            continue
        visited.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            pending += node.value
            continue
        known = set[str]()
        for key, value in node.value:
            pending.append(value)
            if not isinstance(key, yaml.ScalarNode):
                continue
            if key.value in known:
                problem = f"the field {key.value!r:.60} appears twice. Remove one of them"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            known.add(key.value)


def _read_mapping(node: yaml.MappingNode) -> dict[str, yaml.Node]:
    return {key.value: value for key, value in node.value if isinstance(key, yaml.ScalarNode)}


def _read_scalar(node: yaml.ScalarNode) -> Scalar:
    text: str = node.value
    if node.style is not None:
        return text
    lowered = text.lower()
    if lowered in _WORDS and (text.islower() or text.istitle() or text.isupper() or not text):
        return _WORDS[lowered]
    if text == "~":
        return None
    if _INT.fullmatch(text):
        return int(text)
    if _BASED_INT.fullmatch(text):
        return int(text, 0)
    return float(text) if _FLOAT.fullmatch(text) else text


def _to_text(value: str | float | bool) -> str:  # noqa: FBT001  # a YAML value, not an option
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < _LONGEST_WHOLE:
        return str(int(value))
    return str(value).strip()


_OPEN_HEAD: Final = re.compile(
    r"---[ \t]*\n[A-Za-z_][\w-]*:(?=\s)(?!.*^---[ \t]*$)", re.DOTALL | re.MULTILINE
)
"""A line `---` and a line `name: value`, but no second line `---`."""


def read_doc(doc: DiscoveredDoc) -> bytes:
    """Return the content of a document: its file, or the text that the site generates.

    Raises:
        DocumentReadError: The file cannot be read, or it is outside the root of its site.
    """
    root = find_page_root(find_place(doc.source, doc.doc_id), doc.path)
    return doc.written or read_file(doc.doc_id, doc.path, root)


def read_file(doc_id: str, path: Path, root: Path) -> bytes:
    """Return the content of a document's file.

    Raises:
        DocumentReadError: The file cannot be read, is outside the root of its site, or is UTF-16.
    """
    try:
        content = read_site_file(path, root)
    except FileNotFoundError as error:
        problem = "it was deleted or renamed during this run. Run the command again"
        raise DocumentReadError(doc_id, problem) from error
    except OSError as error:
        reason = error.strerror or error
        problem = f"it cannot be read ({reason}). Check the file and its permissions"
        raise DocumentReadError(doc_id, problem) from error
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        problem = "it is UTF-16, which Docusaurus cannot read. Save the file as UTF-8"
        raise DocumentReadError(doc_id, problem)
    return content


def normalize_source(content: bytes) -> str:
    r"""Decode the bytes of a file as UTF-8 text with `\n` line ends, as Docusaurus does.

    A byte order mark is removed. Invalid bytes and NUL characters become U+FFFD. Lines keep their
    numbers.
    """
    text = content.decode("utf-8-sig", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


def find_invalid_line(content: bytes) -> int | None:
    """Return the number, from 1, of the first line with bytes that are not UTF-8; None without."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return normalize_source(content[: error.start]).count("\n") + 1
    return None


def has_open_front_matter(source: str) -> bool:
    """Return True if a normalized source begins with front matter that no line `---` ends.

    Its lines are then a part of the text.
    """
    return _OPEN_HEAD.match(source) is not None


def count_bytes(source: str, offsets: Iterable[int]) -> dict[int, int]:
    """Map character offsets in a text to byte offsets in its UTF-8 encoding.

    Args:
        source: The text.
        offsets: Character offsets, in any order.

    Returns:
        The byte offset for each of the character offsets.
    """
    found: dict[int, int] = {}
    at = size = 0
    ascii_only = source.isascii()
    for offset in sorted(set(offsets)):
        size += offset - at if ascii_only else len(source[at:offset].encode())
        found[offset] = size
        at = offset
    return found


def is_mdx(doc_id: str, front_matter: FrontMatter, site: SiteSettings) -> bool:
    """Return True if a file is parsed as MDX, False if it is parsed as CommonMark with HTML.

    The field `mdx: {format: ...}` in the front matter takes precedence over the site's setting.
    """
    node = front_matter.nodes.get("mdx")
    fields = _read_mapping(node) if isinstance(node, yaml.MappingNode) else {}
    given = FrontMatter(doc_id, fields, 0).text("format")
    chosen = given if given in set(MarkdownFormat) else site.markdown_format.value
    if chosen == MarkdownFormat.DETECT:
        return posixpath.splitext(doc_id)[1] != ".md"
    return chosen == MarkdownFormat.MDX
