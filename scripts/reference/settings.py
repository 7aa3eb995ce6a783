"""`.env.example` and docs/reference/settings.md, from the class `Settings`."""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, get_args

from annotated_types import Ge, Gt, Le, Lt
from pydantic import SecretStr

from rag_pipeline.core.settings import Settings
from reference.docstrings import NOTE

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

_ENV_HEAD = """\
# Every setting with its default. Copy the lines that you change to `.env`, or set environment
# variables, which win over `.env`. Both win over `rag-pipeline.toml`. The script
# `scripts/write_reference.py` writes this file from rag_pipeline/core/settings/fields.py.
"""

_PAGE_HEAD = """\
# Settings

A setting is an environment variable. The program reads the environment first, then the file `.env`
in the current folder, then `rag-pipeline.toml`, then the defaults below. `.env.example` in the
repository lists all settings in a form to copy, and which part of the program reads each. A setting
without a default below is empty by default.

[`rag-pipeline init`](commands.md#init) writes `rag-pipeline.toml` for a Docusaurus site. Its keys
are the names of the settings in lower case, such as `data_dir`. Relative paths in it are relative
to its folder. The file in the current folder is read. If `DOCS_DIR` or `--docs-dir` names a docs
folder, the file of the site of that folder is read instead. An unknown key is an error.

"""


_GROUP = re.compile(r"# --- (?P<title>.+) ---(?: Read by: (?P<read_by>.+)\.)?$")


class _Setting(NamedTuple):
    name: str
    meaning: str
    read_by: str

    @property
    def field(self) -> FieldInfo:
        return Settings.model_fields[self.name]


_BOUNDS = ((Ge, "ge", "at least"), (Gt, "gt", "above"), (Le, "le", "at most"), (Lt, "lt", "below"))


def describe_env() -> str:
    """Return the text of `.env.example`."""
    parts = [_ENV_HEAD]
    for title, settings in _read_groups().items():
        parts.append(f"\n# --- {title} ---\n")
        for one in settings:
            allowed = _describe_allowed(one.field)
            meaning = f"{one.meaning} Allowed: {allowed}." if allowed else one.meaning
            lines = textwrap.wrap(meaning, 108, break_long_words=False)
            lines.append(f"Read by: {one.read_by}.")
            parts.append("\n" + "".join(f"# {line}\n" for line in lines))
            parts.append(f"{one.name.upper()}={_write_default(one.field)}\n")
    return "".join(parts)


def describe_settings() -> str:
    """Return the text of the settings page."""
    parts = [NOTE, _PAGE_HEAD]
    for title, settings in _read_groups().items():
        parts.append(f"## {title}\n\n")
        for one in settings:
            default = _write_default(one.field)
            facts = [f"Default: `{default}`"] if default else []
            if allowed := _describe_allowed(one.field):
                facts.append(f"Allowed: {allowed}")
            text = " ".join([one.meaning, *(f"{fact}." for fact in facts)])
            parts.append(f"### {one.name.upper()}\n\n{text}\n\n")
    return "".join(parts).rstrip() + "\n"


def _read_groups() -> dict[str, list[_Setting]]:
    """Return the settings by the heading of their group, from the source of the class."""
    source = inspect.getsource(Settings)
    lines = source.splitlines()
    (declared,) = ast.parse(source).body
    groups: dict[str, list[_Setting]] = {}
    for field, text in pairwise(getattr(declared, "body", [])):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(name), lineno=line),
                ast.Expr(ast.Constant(str(words))),
            ):
                found = filter(None, (_GROUP.search(one) for one in reversed(lines[:line])))
                group = next(found)
                meaning, _, read_by = " ".join(words.split()).partition(" Read by: ")
                readers = read_by.removesuffix(".") or group["read_by"]
                groups.setdefault(group["title"], []).append(_Setting(name, meaning, readers))
    return groups


def _describe_allowed(field: FieldInfo) -> str:
    """Return the allowed values in words; empty if any text is allowed."""
    kind = field.annotation
    if isinstance(kind, type) and issubclass(kind, Enum):
        return ", ".join(f"`{entry.value}`" for entry in kind)
    if kind is bool:
        return "`true`, `false`"
    if bool in get_args(kind):
        return "`true`, `false`, `open` or empty"
    bounds = [
        f"{words} {getattr(entry, name):,}"
        for declared, name, words in _BOUNDS
        for entry in field.metadata
        if isinstance(entry, declared)
    ]
    return re.sub(r"^at least (.+), at most ", r"\1 to ", ", ".join(bounds))


def _write_default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    if isinstance(value, SecretStr) or value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return json.dumps(value)
    return re.sub(r"\.0$", "", str(value)) if isinstance(value, float) else str(value)
