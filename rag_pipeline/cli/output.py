"""Writing to a command's streams, whatever the caller made of them.

Belongs here: encoding, streams that are closed or full, how a failure is told. Does not belong
here: what is said (terminal, cli).
"""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path


def print_result(record: object, text: str, *, as_json: bool) -> None:
    """Write a result: the record as one JSON document, or its text for people."""
    if as_json:
        text = json.dumps(record, ensure_ascii=False, indent=1, default=str)
    write_text(f"{text}\n")


def write_text(text: str) -> None:
    """Write as UTF-8, whatever the terminal's encoding: one that lacks a character would end it."""
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.flush()


def tell_failure(code: str, message: str, exit_code: int) -> int:
    """Tell a failure in one line, with `--json` as a document too; returns the exit code."""
    if "--json" in sys.argv:
        with suppress(OSError):  # nobody reads on, or the disk is full: told below
            print_result({"error": {"code": code, "message": message}}, "", as_json=True)
    sys.stderr.write(f"rag-pipeline: {message}\n")
    return exit_code


def open_closed_streams() -> None:
    """Let what is written to a stream that the caller closed go nowhere; Python has None there."""
    nowhere = os.devnull
    sys.stdout = sys.stdout or Path(nowhere).open("w")  # noqa: SIM115  # open to the end
    sys.stderr = sys.stderr or Path(nowhere).open("w")  # noqa: SIM115  # the same


def end_output() -> None:
    """Leave nothing to write to Python, which tells of what fails then in words of its own."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
