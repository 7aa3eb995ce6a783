"""Writing to standard output and standard error, even if they are closed, full or not UTF-8."""

from __future__ import annotations

import json
import os
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final, TextIO

INTERRUPTED: Final = 130
"""Exit code of a command that was ended by Ctrl-C or SIGTERM."""

_COMMANDS_TERMINAL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
"""Control characters except tab and line feed, and characters that change the writing direction."""


def print_result(record: object, text: str, *, as_json: bool) -> None:
    """Write a result to standard output: the record as JSON if `as_json`, otherwise the text."""
    if as_json:
        _write_exactly(json.dumps(record, ensure_ascii=False, indent=1, default=str) + "\n")
    else:
        write_text(f"{text}\n")


def write_text(text: str) -> None:
    """Write the text to standard output as UTF-8 and flush it.

    UTF-8 is used regardless of the terminal's encoding, which could lack a character. On a
    terminal, characters that could command it are shown as escapes.
    """
    _write_exactly(show_safely(text, sys.stdout))


def _write_exactly(text: str) -> None:
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.flush()


def show_safely(text: str, stream: TextIO) -> str:
    r"""Return the text for a stream; for a terminal with escapes such as `\x1b` in it.

    Pages and models may contain sequences that recolour, overwrite or reverse what a terminal
    shows.
    """
    if not stream.isatty():
        return text
    return _COMMANDS_TERMINAL.sub(lambda found: ascii(found.group())[1:-1], text)


def tell(text: str) -> None:
    """Write a text and a line break to standard error, and flush it."""
    sys.stderr.write(f"{show_safely(text, sys.stderr)}\n")
    sys.stderr.flush()


def tell_failure(code: str, message: str, exit_code: int) -> int:
    """Write the message as one line to standard error and return `exit_code`.

    If the command line contains `--json`, also write a JSON document with the error code `code` and
    the message to standard output.
    """
    if "--json" in sys.argv:
        with suppress(OSError):  # a closed pipe or a full disk; the line below is still written
            print_result({"error": {"code": code, "message": message}}, "", as_json=True)
    tell(f"rag-pipeline: {message}")
    return exit_code


def open_closed_streams() -> None:
    """Replace standard output or standard error with /dev/null if the calling process closed it.

    Python sets a closed `sys.stdout` or `sys.stderr` to None, and writing to it would fail.
    """
    nowhere = os.devnull
    sys.stdout = sys.stdout or Path(nowhere).open("w")  # noqa: SIM115  # stays open
    sys.stderr = sys.stderr or Path(nowhere).open("w")  # noqa: SIM115  # stays open


def end_output() -> None:
    """Flush standard output; if that fails, discard the output that is not yet written.

    Otherwise Python would try again when the process ends, and print its own error message.
    """
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
