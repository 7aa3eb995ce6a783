"""`.env.example` and docs/reference/settings.md, from the class `Settings`."""

from __future__ import annotations

import json
import re
import textwrap
from enum import Enum
from typing import TYPE_CHECKING, Any, get_args

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


def describe_env() -> str:
    """Return the text of `.env.example`."""
    parts = [_ENV_HEAD]
    for title, fields in _group_fields().items():
        parts.append(f"\n# --- {title} ---\n")
        for name, field in fields.items():
            allowed = _describe_allowed(field)
            meaning = f"{field.description} Allowed: {allowed}." if allowed else field.description
            lines = textwrap.wrap(meaning or "", 108, break_long_words=False)
            lines.append(f"Read by: {_read_extra(field)['read_by']}.")
            parts.append("\n" + "".join(f"# {line}\n" for line in lines))
            parts.append(f"{name.upper()}={_write_default(field)}\n")
    return "".join(parts)


def describe_settings() -> str:
    """Return the text of the settings page."""
    parts = [NOTE, _PAGE_HEAD]
    for title, fields in _group_fields().items():
        parts.append(f"## {title}\n\n")
        for name, field in fields.items():
            default = _write_default(field)
            facts = [f"Default: `{default}`"] if default else []
            if allowed := _describe_allowed(field):
                facts.append(f"Allowed: {allowed}")
            text = " ".join([str(field.description), *(f"{fact}." for fact in facts)])
            parts.append(f"### {name.upper()}\n\n{text}\n\n")
    return "".join(parts).rstrip() + "\n"


def _group_fields() -> dict[str, dict[str, FieldInfo]]:
    groups: dict[str, dict[str, FieldInfo]] = {}
    for name, field in Settings.model_fields.items():
        groups.setdefault(_read_extra(field)["group"], {})[name] = field
    return groups


def _read_extra(field: FieldInfo) -> dict[str, Any]:
    extra = field.json_schema_extra
    return extra if isinstance(extra, dict) else {}


def _describe_allowed(field: FieldInfo) -> str:
    """Return the allowed values in words; empty if any text is allowed."""
    kind = field.annotation
    if isinstance(kind, type) and issubclass(kind, Enum):
        return ", ".join(f"`{entry.value}`" for entry in kind)
    if kind is bool:
        return "`true`, `false`"
    if bool in get_args(kind):
        return "`true`, `false`, `open` or empty"
    low = next(
        (f"at least {_write(entry.ge)}" for entry in field.metadata if isinstance(entry, Ge)), ""
    )
    low = low or next(
        (f"above {_write(entry.gt)}" for entry in field.metadata if isinstance(entry, Gt)), ""
    )
    high = next(
        (f"at most {_write(entry.le)}" for entry in field.metadata if isinstance(entry, Le)), ""
    )
    high = high or next(
        (f"below {_write(entry.lt)}" for entry in field.metadata if isinstance(entry, Lt)), ""
    )
    if low.startswith("at least") and high.startswith("at most"):
        return f"{low.removeprefix('at least ')} to {high.removeprefix('at most ')}"
    return ", ".join(part for part in (low, high) if part)


def _write(number: object) -> str:
    return f"{number:,}"


def _write_default(field: FieldInfo) -> str:
    value = field.get_default(call_default_factory=True)
    if isinstance(value, SecretStr) or value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return json.dumps(value)
    return re.sub(r"\.0$", "", str(value)) if isinstance(value, float) else str(value)
