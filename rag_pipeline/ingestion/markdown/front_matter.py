"""Front matter: the YAML head of a Markdown file, read with the line of every field.

Values are those of YAML 1.2, as in Docusaurus: `yes` is a text and a date is a text.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias, cast

import frontmatter
import yaml
from frontmatter.default_handlers import YAMLHandler

from rag_pipeline.core.errors import FrontMatterError

Scalar: TypeAlias = str | int | float | bool | None

_FENCED: Final = re.compile(r"---[ \t]*\n(.*?)(?:^---[ \t]*(?:\n|\Z))", re.DOTALL | re.MULTILINE)
_REMEMBERED_HEADS: Final = 20_000  # a few hundred bytes each
_FOREIGN: Final = frozenset(
    {"module", "chapter", "content_type", "learning-objectives", "learning_objectives"}
)
# js-yaml takes a tab as a blank, and these as characters of a line, where YAML 1.1 does not
_UNREAD_BLANK: Final = re.compile(r"(?<=:)[ \t]*\t[ \t]*|[\x85\u2028\u2029]")
_INT: Final = re.compile(r"[-+]?[0-9]{1,300}")
_BASED_INT: Final = re.compile(r"[-+]?0(?:b[01]{1,300}|o[0-7]{1,300}|x[0-9a-fA-F]{1,200})")
_LONGEST_WHOLE: Final = 1e21  # from here on JavaScript writes an exponent
_FLOAT: Final = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_WORDS: Final = {"true": True, "false": False, "null": None, "~": None, "": None}


@dataclass(frozen=True, slots=True)
class FrontMatter:
    """The fields of a file's head.

    Attributes:
        doc_id: Of the document, for messages.
        nodes: YAML node of each top-level field; the last one counts if a name is repeated.
        end: First character of the body in the source; 0 if there is no front matter.
    """

    doc_id: str
    nodes: dict[str, yaml.Node]
    end: int

    def text(self, *names: str) -> str:
        """Return the first of these fields that is set, as one text; empty if none is.

        Raises:
            FrontMatterError: The value is a list or a mapping, in a field that Docusaurus knows.
        """
        value = self.scalar(*names)
        return "" if value is None else _to_text(value)

    def scalar(self, *names: str) -> Scalar:
        """Return the first of these fields that is set; None if none is.

        Raises:
            FrontMatterError: The value is a list or a mapping, in a field that Docusaurus knows.
        """
        for name in names:
            node = self.nodes.get(name)
            if node is None:
                continue
            if not isinstance(node, yaml.ScalarNode):
                if name in _FOREIGN:
                    continue
                raise self._wrong_type(name, node, "a text or number")
            value = _read_scalar(node)
            if value is not None:
                return value
        return None

    def texts(self, *names: str, split: bool = False) -> tuple[str, ...]:
        """Return the values of the first of these fields that is present, without repeats.

        Args:
            names: Fields with a list, one text, or nothing. Of a mapping in a list its `label`
                counts.
            split: Whether a text with commas is a list.

        Raises:
            FrontMatterError: The value is a mapping, or the list contains a list, in a field that
                Docusaurus knows.
        """
        for name in names:
            node = self.nodes.get(name)
            if node is None:
                continue
            if isinstance(node, yaml.MappingNode):
                if name in _FOREIGN:
                    continue
                raise self._wrong_type(name, node, "a list of texts")
            entries = node.value if isinstance(node, yaml.SequenceNode) else [node]
            values = [self._read_entry(name, entry) for entry in entries]
            if split and isinstance(node, yaml.ScalarNode):
                values = [part.strip() for part in values[0].split(",")]
            return tuple(dict.fromkeys(value for value in values if value))
        return ()

    def number(self, name: str) -> float | None:
        """Return a field as a finite number; None if it is not set.

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
            raise self._wrong_type(name, self.nodes[name], "a number")
        return number

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a field that is true or false; the default for anything else."""
        node = self.nodes.get(name)
        value = _read_scalar(node) if isinstance(node, yaml.ScalarNode) else None
        text = str(value).strip().lower()
        return text == "true" if text in {"true", "false"} else default

    def section(self, name: str) -> FrontMatter:
        """Return the fields of a mapping; no fields if the value is not a mapping."""
        node = self.nodes.get(name)
        fields = _read_mapping(node) if isinstance(node, yaml.MappingNode) else {}
        return FrontMatter(self.doc_id, fields, self.end)

    def _read_entry(self, name: str, node: yaml.Node) -> str:
        if isinstance(node, yaml.MappingNode):
            fields = _read_mapping(node)
            node = fields.get("label") or fields.get("name") or node
        if not isinstance(node, yaml.ScalarNode):
            if name in _FOREIGN:
                return ""
            raise self._wrong_type(name, node, "a list of texts")
        value = _read_scalar(node)
        return "" if value is None else _to_text(value)

    def _wrong_type(self, name: str, node: yaml.Node, wanted: str) -> FrontMatterError:
        line = node.start_mark.line + 2
        return FrontMatterError(self.doc_id, f"{name} must be {wanted}", line)


class _FieldsHandler(YAMLHandler):
    """Reads the head as YAML nodes, which know their lines; YAML 1.1 values would lose both."""

    def split(self, text: str) -> tuple[str, str]:
        """Split at the fence lines that Docusaurus accepts.

        Raises:
            ValueError: The text has no front matter.
        """
        match = _FENCED.match(text)
        if match is None:
            raise ValueError("no front matter")
        return match.group(1), text[match.end() :]

    def load(self, fm: str, **_options: object) -> dict[str, object]:
        """Return the YAML node of each top-level field.

        Raises:
            yaml.YAMLError: The YAML is broken or not a mapping.
        """
        node = _compose(fm)
        if node is None:
            return {}
        if not isinstance(node, yaml.MappingNode):
            problem = "must be `name: value` lines"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
        _refuse_repeated_keys(node)
        return {**_read_mapping(node)}


_HANDLER: Final = _FieldsHandler()


def read_front_matter(doc_id: str, source: str) -> FrontMatter:
    """Read the head between `---` lines at the very start of a normalized source.

    A source without a head has no fields, nor has one that begins with a `---` rule, a blank line
    and prose.

    Raises:
        FrontMatterError: The YAML is broken or not a mapping; the message names the line of the
            file.
    """
    match = _FENCED.match(source)
    if match is None:
        return FrontMatter(doc_id, {}, 0)
    try:
        nodes, _ = frontmatter.parse(match.group(), handler=_HANDLER)
    except yaml.YAMLError as error:
        if match.group(1).startswith("\n"):
            return FrontMatter(doc_id, {}, 0)
        raise FrontMatterError(doc_id, *_describe(error)) from error
    except RecursionError as error:
        raise FrontMatterError(doc_id, "nested too deeply", 1) from error
    return FrontMatter(doc_id, cast("dict[str, yaml.Node]", nodes), match.end())


def is_draft(source: str) -> bool:
    """Tell whether the head says `draft: true`; a page with a broken head is not a draft."""
    match = _FENCED.match(source)
    return match is not None and "draft" in match.group(1) and _says_draft(match.group())


@lru_cache(maxsize=_REMEMBERED_HEADS)
def _says_draft(head: str) -> bool:
    """Parse a head once: a sensor looks at the same drafts at each tick."""
    try:
        return read_front_matter("", head).flag("draft")
    except FrontMatterError:
        return False


def _compose(head: str) -> yaml.Node | None:
    try:
        return yaml.compose(head, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return yaml.compose(_UNREAD_BLANK.sub(" ", head), Loader=yaml.SafeLoader)


def _refuse_repeated_keys(head: yaml.Node) -> None:
    """Raise an error for a key that a mapping has twice, because Docusaurus builds no such page.

    Aliases share nodes, so each node is visited once.

    Raises:
        yaml.MarkedYAMLError: A key is repeated.
    """
    pending, visited = [head], set[int]()
    while pending:
        node = pending.pop()
        if id(node) in visited or isinstance(node, yaml.ScalarNode):
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
                problem = f"the field {key.value!r:.60} stands twice. Remove one"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            known.add(key.value)


def _describe(error: yaml.YAMLError) -> tuple[str, int]:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "broken YAML"
    return str(problem), mark.line + 2 if mark is not None else 1


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
