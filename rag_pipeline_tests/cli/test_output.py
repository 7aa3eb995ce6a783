"""Tests of what the command writes to a terminal and to a pipe."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys

import pytest

HOSTILE = "red \x1b[31m, back \x08\x08, bell \x07, csi \x9b2J, reversed \u202etxt.exe\u202c"
SHOWN = r"red \x1b[31m, back \x08\x08, bell \x07, csi \x9b2J, reversed \u202etxt.exe\u202c"


def run_on_terminal(code: str) -> str:
    """Run Python code with a terminal as standard output and error, and return what it shows."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", code], stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # Linux reports the end of a terminal as an error
                break
            if not piece:
                break
            shown += piece
        os.close(ours)
    assert process.returncode == 0, shown
    return shown.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (f"write_text({HOSTILE!r})", SHOWN),
        (f"print_result(None, {HOSTILE!r}, as_json=False)", f"{SHOWN}\n"),
        (f"tell_failure('X', {HOSTILE!r}, 1)", f"rag-pipeline: {SHOWN}\n"),
        ("write_text('naïve 語 😀\\tx\\ny')", "naïve 語 😀\tx\ny"),
    ],
)
def test_a_terminal_gets_no_character_that_commands_it(call: str, expected: str) -> None:
    code = f"from rag_pipeline.cli.output import *; {call}"
    assert run_on_terminal(code).expandtabs() == expected.expandtabs()


def test_json_is_exact_on_a_terminal_too() -> None:
    code = (
        "from rag_pipeline.cli.output import *;"
        f"print_result({{'text': {HOSTILE!r}}}, '', as_json=True)"
    )
    assert json.loads(run_on_terminal(code)) == {"text": HOSTILE}


def test_a_pipe_gets_the_exact_text() -> None:
    code = f"from rag_pipeline.cli.output import *; write_text({HOSTILE!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout.decode() == HOSTILE
