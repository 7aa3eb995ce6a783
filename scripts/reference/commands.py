"""docs/reference/commands.md, from the commands that typer has."""

from __future__ import annotations

import inspect
import types
import typing
from pathlib import Path
from typing import Any, Literal

import typer.main

from rag_pipeline.cli.app import app
from rag_pipeline.core.payload import FILTERS
from reference.docstrings import NOTE, write_table

_HEAD = """\
# Commands

Every command of `rag-pipeline`, with its arguments and options. `rag-pipeline COMMAND --help`
prints the same, and `rag-pipeline --version` prints the version.

Two options are not repeated below, because nearly every command has them:

- `--docs-dir PATH`: the folder with the Markdown files, instead of the setting `DOCS_DIR`.
- `--json`: print one JSON document on standard output. Progress and messages always go to standard
  error. If the command fails, the document is `{"error": {"code": ..., "message": ...}}`;
  [Errors](errors.md) lists the codes. `serve` and `mcp` do not have this option.

| Exit code | Meaning |
|---|---|
| 0 | The command did its work. |
| 1 | A document, a gate or a check failed, or a service cannot be reached. |
| 2 | Wrong usage or configuration. |
| 130 | Stopped by Ctrl-C or SIGTERM. |

"""

_COMMON = frozenset({"docs_dir", "as_json"})
"""Options that the head of the page describes for all commands."""

_FILTERS_HEAD = """\
## Filters

The options by which `query` and `search` narrow a search. Each may be repeated, and a passage must
match one value of each option.

"""

_NAMES = {str: "text", int: "number", Path: "path"}


def describe_commands() -> str:
    """Return the text of the page: one table of options per command, the filters only once."""
    group: Any = typer.main.get_command(app)
    commands = sorted(group.commands.items())
    parts = [NOTE, _HEAD]
    for name, command in commands:
        arguments = [item for item in command.params if item.param_type_name == "argument"]
        options = [item for item in command.params if item.param_type_name == "option"]
        usage = " ".join(["rag-pipeline", name, *map(_name_argument, arguments), "[OPTIONS]"])
        parts.append(f"## {name}\n\n`{usage}`\n\n{' '.join(command.help.split())}\n\n")
        parts += [f"- `{_name_argument(item)}`: {item.help}\n" for item in arguments]
        parts.append("\n" if arguments else "")
        if any(item.name in FILTERS for item in options):
            parts.append("It also has the options under [Filters](#filters).\n\n")
        shown = [item for item in options if item.name not in {*FILTERS, *_COMMON}]
        if shown:
            parts.append(write_table(("Option", "Default", "Meaning"), _list_rows(command, shown)))
    searches = dict(commands)["search"]
    filters = [item for item in searches.params if item.name in FILTERS]
    rows = [(option, meaning) for option, _, meaning in _list_rows(searches, filters)]
    parts += [_FILTERS_HEAD, write_table(("Option", "Meaning"), rows)]
    return "".join(parts).rstrip() + "\n"


def _list_rows(command: Any, options: list[Any]) -> list[tuple[str, ...]]:  # noqa: ANN401  # typer's own classes
    # Options of filters are made from the payload fields, so the function has no hint for them.
    hints = typing.get_type_hints(inspect.unwrap(command.callback))
    return [
        (_name_option(item, hints.get(item.name, str)), _write_default(item), item.help or "")
        for item in options
    ]


def _name_argument(item: Any) -> str:  # noqa: ANN401  # typer's own class
    name = item.name.upper()
    return f"{name}..." if item.nargs == -1 else name


def _name_option(item: Any, hint: Any) -> str:  # noqa: ANN401  # typer's own class, any type
    names = ", ".join(f"`{name}`" for name in item.opts)
    is_union = typing.get_origin(hint) in {typing.Union, types.UnionType}
    kind = typing.get_args(hint)[0] if is_union else hint
    repeated = "..." if item.multiple else ""
    if typing.get_origin(kind) is Literal:
        value = " or ".join(f"`{choice}`" for choice in typing.get_args(kind))
    elif item.is_flag:
        value = ""
    else:
        value = item.metavar.lower() if item.metavar else _NAMES.get(kind, "text")
    return f"{names} {value}".strip() + repeated


def _write_default(item: Any) -> str:  # noqa: ANN401  # typer's own class
    if item.is_flag or item.default in (None, ""):
        return ""
    return f"`{item.default}`"
