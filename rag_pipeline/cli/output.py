"""Writing to a command's streams, even if they are closed, full or of another encoding."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

INTERRUPTED: Final = 130
"""Exit code of a command that Ctrl-C or SIGTERM ended."""


def print_result(record: object, text: str, *, as_json: bool) -> None:
    """Write a result: with `as_json` the record as one JSON document, otherwise the text."""
    if as_json:
        text = json.dumps(record, ensure_ascii=False, indent=1, default=str)
    write_text(f"{text}\n")


def write_text(text: str) -> None:
    """Write as UTF-8, because the terminal's own encoding could lack a character."""
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.flush()


def tell_failure(code: str, message: str, exit_code: int) -> int:
    """Report a failure in one line, with `--json` also as a document; return the exit code."""
    if "--json" in sys.argv:
        with suppress(OSError):  # the reader is gone, or the disk is full: reported below
            print_result({"error": {"code": code, "message": message}}, "", as_json=True)
    sys.stderr.write(f"rag-pipeline: {message}\n")
    return exit_code


def open_closed_streams() -> None:
    """Replace streams that the caller closed, for which Python has None, by /dev/null."""
    nowhere = os.devnull
    sys.stdout = sys.stdout or Path(nowhere).open("w")  # noqa: SIM115  # stays open
    sys.stderr = sys.stderr or Path(nowhere).open("w")  # noqa: SIM115  # the same


def end_output() -> None:
    """Flush standard output here; at exit the interpreter would print its own error."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
