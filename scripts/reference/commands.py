"""docs/reference/commands.md, from the commands that typer has."""

from __future__ import annotations

import inspect
import types
import typing
from pathlib import Path
from typing import Any, Literal

import typer.main

from rag_pipeline.cli.app import app
from reference.docstrings import NOTE, write_table

_HEAD = """\
# Commands

Every command of `rag-pipeline`, with its arguments and options. `rag-pipeline COMMAND --help`
prints the same, and `rag-pipeline --version` prints the version.

With `--json` a command prints one JSON document on standard output. Progress and messages always go
to standard error. If a command fails, the document is `{"error": {"code": ..., "message": ...}}`;
[Errors](errors.md) lists the codes.

| Exit code | Meaning |
|---|---|
| 0 | The command did its work. |
| 1 | A document, a gate or a check failed, or a service cannot be reached. |
| 2 | Wrong usage or configuration. |
| 130 | Stopped by Ctrl-C or SIGTERM. |

"""

_NAMES = {str: "text", int: "number", Path: "path"}


def describe_commands() -> str:
    """Return the text of the page."""
    group: Any = typer.main.get_command(app)
    parts = [NOTE, _HEAD]
    for name, command in sorted(group.commands.items()):
        arguments = [item for item in command.params if item.param_type_name == "argument"]
        options = [item for item in command.params if item.param_type_name == "option"]
        usage = " ".join(["rag-pipeline", name, "[OPTIONS]", *map(_name_argument, arguments)])
        parts.append(f"## {name}\n\n{' '.join(command.help.split())}\n\n```text\n{usage}\n```\n\n")
        if arguments:
            rows = [(f"`{item.name.upper()}`", item.help or "") for item in arguments]
            parts.append(write_table(("Argument", "Meaning"), rows))
        # Options of filters are made from the payload fields, so the function has no hint for them.
        hints = typing.get_type_hints(inspect.unwrap(command.callback))
        rows = [
            (_name_option(item, hints.get(item.name, str)), _write_default(item), item.help or "")
            for item in options
        ]
        parts.append(write_table(("Option", "Default", "Meaning"), rows))
    return "".join(parts).rstrip() + "\n"


def _name_argument(item: Any) -> str:  # noqa: ANN401  # typer's own class
    name = item.name.upper()
    return f"{name}..." if item.nargs == -1 else name


def _name_option(item: Any, hint: Any) -> str:  # noqa: ANN401  # typer's own class, any type
    names = ", ".join(f"`{name}`" for name in item.opts)
    is_union = typing.get_origin(hint) in {typing.Union, types.UnionType}
    kind = typing.get_args(hint)[0] if is_union else hint
    repeated = " (may be repeated)" if item.multiple else ""
    if typing.get_origin(kind) is Literal:
        value = " or ".join(f"`{choice}`" for choice in typing.get_args(kind))
    elif item.is_flag:
        value = ""
    else:
        value = item.metavar.lower() if item.metavar else _NAMES.get(kind, "text")
    return f"{names} {value}{repeated}".strip()


def _write_default(item: Any) -> str:  # noqa: ANN401  # typer's own class
    if item.is_flag or item.default in (None, ""):
        return ""
    return f"`{item.default}`"
