"""Measure the time and memory of ingesting, auditing and searching one huge page.

    python benchmarks/huge_page.py [--megabytes 10] [--shapes prose,table] [--model]

Each shape is a page that could take much memory: prose, one table, one code block, lists, or
headings. Each command runs in its own process. Two figures are printed: the largest memory of the
process itself, and the largest resident memory. The latter includes the parts of the store's files
that are mapped into memory, which the system takes back when memory is short. Without `--model`,
the local model is replaced by random vectors, because its inferences take minutes and little
memory; everything else is real.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_MEMORY_LIMIT_MB: Final = 700
_WITHOUT_MODEL: Final = """
import sys
import numpy as np
import rag_pipeline.adapters.embedders.local as local

def infer(model, text):
    encoding = local._load_tokenizer_once().encode(text)
    rows = np.random.default_rng(len(text)).normal(size=(len(encoding.ids), 384))
    starts, ends = np.array(encoding.offsets).T
    return rows, starts, ends

local._load_tokenizer_once = local.lru_cache(local._load_tokenizer)
local._get_model = lambda name: None
local._infer = infer
from rag_pipeline.cli import main
main()
"""


def _write_prose() -> Iterator[str]:
    yield "# Prose\n"
    for n in count():
        words = "A robot arm moves its joint slowly while the sensor reads the angle of step"
        yield " ".join(f"{words} {n} and {part}." for part in range(6)) + "\n"
        if n % 20 == 0:
            yield f"## Section {n}\n"


def _write_table() -> Iterator[str]:
    yield "# Table\n\n| part | name | value | note |\n|---|---|---|---|"
    for n in count():
        yield f"| p{n} | servo number {n} | {n * 7 % 1001} N m | joint {n % 97} of arm {n % 13} |"


def _write_code() -> Iterator[str]:
    yield "# Code\n\n```python"
    for n in count():
        yield f"value_{n} = joint.turn(angle + {n})  # turn by {n} degrees"


def _write_lists() -> Iterator[str]:
    yield "# Lists"
    for n in count():
        yield f"\nGroup {n} has these parts:\n"
        for part in range(5):
            yield f"- part {n}-{part} turns joint {part} by {n} degrees\n  - and a part below it"


def _write_headings() -> Iterator[str]:
    yield "# Headings\n"
    for n in count():
        yield f"{'#' * (2 + n % 4)} Joint {n} of arm {n % 13}\n\nIt turns by {n} degrees.\n"


SHAPES: Final[dict[str, Callable[[], Iterator[str]]]] = {
    "prose": _write_prose,
    "table": _write_table,
    "code": _write_code,
    "lists": _write_lists,
    "headings": _write_headings,
}


def make_page(shape: str, size: int) -> str:
    """Return a page of about `size` bytes."""
    lines: list[str] = []
    written = 0
    for line in SHAPES[shape]():
        lines.append(line)
        written += len(line) + 1
        if written >= size:
            break
    return "\n".join([*lines, "```\n" if shape == "code" else ""])


def main() -> None:
    """Read the options, and print one line for each shape and command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else "")
    parser.add_argument("--megabytes", type=float, default=10, help="size of the page")
    parser.add_argument("--shapes", default=",".join(SHAPES), help="shapes, joined by commas")
    parser.add_argument("--model", action="store_true", help="use the local model")
    options = parser.parse_args()
    for shape in options.shapes.split(","):
        with tempfile.TemporaryDirectory() as folder:
            docs = Path(folder) / "docs"
            docs.mkdir()
            text = make_page(shape, int(options.megabytes * 1_000_000))
            (docs / "page.md").write_text(text, encoding="utf-8")
            changes = {
                "DOCS_DIR": str(docs),
                "DATA_DIR": f"{folder}/data",
                "SITE_BASE_URL": "/",
                "INGEST_LOCK_TIMEOUT_S": "1",
            }
            for command in (["ingest"], ["audit"], ["search", "joint"]):
                _measure(shape, command, changes, with_model=options.model)


def _measure(shape: str, command: list[str], changes: dict[str, str], *, with_model: bool) -> None:
    """Run a command of the program in its own process, and print its time and memory."""
    program = ["-m", "rag_pipeline.cli"] if with_model else ["-c", _WITHOUT_MODEL]
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *program, *command],
        env=os.environ | changes,
        stdout=subprocess.PIPE,
        stderr=sys.stderr,
        text=True,
    )
    assert process.stdout is not None  # noqa: S101  # a pipe was asked for
    own: list[float] = [0.0]
    watch = threading.Thread(target=_watch_own_memory, args=(process.pid, own), daemon=True)
    watch.start()
    said = next((line.strip() for line in process.stdout.readlines()[:3] if ":" in line), "")
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    watch.join()
    verdict = "" if max(own) <= _MEMORY_LIMIT_MB else f"  over {_MEMORY_LIMIT_MB} MB"
    code = os.waitstatus_to_exitcode(status)
    print(
        f"{shape:<9} {command[0]:<7} exit {code}  {seconds:6.1f} s  own memory {max(own):4.0f} MB"
        f"{verdict}, resident {usage.ru_maxrss / 1000:4.0f} MB  {said[:70]}",
        flush=True,
    )


def _watch_own_memory(process_id: int, megabytes: list[float]) -> None:
    """Append the memory of a process, without mapped files, five times a second until it ends."""
    status = Path(f"/proc/{process_id}/status")
    with suppress(OSError):  # the process has ended
        while found := re.search(r"^RssAnon:\s+(\d+) kB", status.read_text("utf-8"), re.MULTILINE):
            megabytes.append(int(found[1]) / 1000)
            time.sleep(0.2)


if __name__ == "__main__":
    main()
