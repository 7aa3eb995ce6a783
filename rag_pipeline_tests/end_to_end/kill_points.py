"""Kills an ingestion at every moment between two writes, and says what the next one makes of it.

Run as a program of its own: it forks before any store is open, so that each ingestion is a process
that may be ended by `os._exit` without an interpreter's start for each. Prints one JSON document.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sys
import traceback
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_pipeline.core.tokens import count_tokens
from rag_pipeline.ingestion.audit import audit_collection
from rag_pipeline.ingestion.run import scan
from rag_pipeline_tests.book import Book, make_book, make_page, make_paragraph
from rag_pipeline_tests.end_to_end.boundaries import Boundaries, watch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rag_pipeline.core.models import FloatMatrix, FloatVector
    from rag_pipeline.core.ports import StoredPoint

KILLED = 9
"""Exit status of a run that was killed where it should be."""

_DIGITS = 5  # of a vector's components; the engine normalizes once more

EDITED = "module-1/large.md"
ADDED = "module-2/added.md"
MOVED = ("intro.md", "module-2/intro moved.md")


def edit_pages(book: Book) -> None:
    """One page with points to write, to refresh and to delete, one new page, one that moved."""
    sections = [("Two", make_paragraph(4)), ("One", make_paragraph(3, 6)), ("New", "Short text.")]
    book.write(EDITED, make_page("Large", *sections, extra="tags: [ros]\n"))
    book.write(ADDED, make_page("Added", ("A", make_paragraph(70)), ("B", make_paragraph(80))))
    book.move(*MOVED)


def run_forked(action: Callable[[], Any], result: Path) -> int:
    """Run in a child that writes what it returns as JSON; returns its exit status."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)
    try:
        result.write_text(json.dumps(action()))
    except BaseException:  # noqa: BLE001  # the child ends here, whatever happened
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def describe_points(book: Book) -> dict[str, Any]:
    """The collection in use, by point id, without times of ingestion."""
    return _describe(book.read_points())


def _describe(points: Sequence[StoredPoint]) -> dict[str, Any]:
    return {
        str(point.point_id): [
            {name: value for name, value in point.payload.items() if name != "ingested_at"},
            _round(point.vectors.dense),
            _round(point.vectors.windows),
        ]
        for point in points
        if point.vectors is not None
    }


def _round(rows: FloatMatrix | FloatVector) -> list[float]:
    return [round(float(value), _DIGITS) + 0.0 for value in rows.ravel()]


def _kill_at(book: Book, number: int) -> dict[str, Any]:
    boundaries = Boundaries(lambda _: os._exit(KILLED), number)
    book.ingest(environment=watch(book.build_environment(), boundaries))
    return {"names": boundaries.names}


def _ingest_again(book: Book, *, look_before: bool) -> dict[str, Any]:
    found = describe_points(book) if look_before else {}
    report = book.ingest()
    points = book.read_points()
    environment = book.build_environment()
    _, plan, entries = scan(environment)
    audit = audit_collection(
        environment.catalog.current_id() or "",
        points,
        entries,
        environment.artifacts,
        environment.fingerprint,
    )
    return {
        "found": found,
        "points": _describe(points),
        "failures": [failure.message for failure in report.failures],
        "at_rest": plan.is_empty,
        "audit": [f"{finding.kind} {finding.doc_path}" for finding in audit.findings],
    }


def _copy(source: Path, target: Path) -> Book:
    """A book in a state of its own; files keep their times."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, copy_function=_copy_data)
    return Book(target)


def _copy_data(source: str, target: str) -> None:
    """Copy what a file holds and leave its holes: a store reserves 260 MB and fills a few kB."""
    with Path(source).open("rb") as reading, Path(target).open("wb") as writing:
        end = os.fstat(reading.fileno()).st_size
        writing.truncate(end)
        at = 0
        while at < end:
            try:
                at = os.lseek(reading.fileno(), at, os.SEEK_DATA)
            except OSError as error:
                if error.errno != errno.ENXIO:  # which says that only a hole is left
                    raise
                break
            hole = os.lseek(reading.fileno(), at, os.SEEK_HOLE)
            writing.seek(at)
            writing.write(os.pread(reading.fileno(), hole - at, at))
            at = hole
    shutil.copystat(source, target)


def _choose_last_of_each(names: list[str]) -> set[int]:
    """One moment of each kind, the same for every document: the last of it."""
    kinds = {re.sub(r" [\w/-]+(?: \w+)?\.md$", "", name): at for at, name in enumerate(names)}
    return set(kinds.values())


def main(root: Path, *, from_nothing: bool, thorough: bool) -> dict[str, Any]:
    """Go through moments; the book begins indexed, or with nothing indexed at all.

    Args:
        root: An empty folder.
        from_nothing: Begin without a collection.
        thorough: Go through all moments instead of one of each kind.
    """
    count_tokens("")  # loads the tokenizer once for all forks
    result = root / "result.json"
    base = make_book(root / "base")
    if not from_nothing:
        run_forked(lambda: base.ingest().docs_processed, result)
        run_forked(lambda: describe_points(base), result)
    old = {} if from_nothing else json.loads(result.read_text())
    edited = _copy(base.root, root / "edited")
    edit_pages(edited)
    clean = Book(root / "clean")
    shutil.copytree(edited.docs, clean.docs)
    run_forked(lambda: clean.ingest().docs_processed, result)
    run_forked(lambda: describe_points(clean), result)
    new = json.loads(result.read_text())
    counting = _copy(edited.root, root / "counting")
    run_forked(lambda: _kill_at(counting, -1), result)
    names = json.loads(result.read_text())["names"]
    moments = []
    chosen = set(range(len(names))) if thorough else _choose_last_of_each(names)
    for number in sorted(chosen):
        name = names[number]
        killed = _copy(edited.root, root / "killed")
        status = run_forked(partial(_kill_at, killed, number), result)
        moment: dict[str, Any] = {"name": name, "status": status}
        if not from_nothing:
            reverted = _copy(killed.root, root / "reverted")
            shutil.rmtree(reverted.docs)
            shutil.copytree(base.docs, reverted.docs)
            run_forked(partial(_ingest_again, reverted, look_before=False), result)
            moment["reverted"] = json.loads(result.read_text())
        run_forked(partial(_ingest_again, killed, look_before=not from_nothing), result)
        moment["resumed"] = json.loads(result.read_text())
        moments.append(moment)
    return {"old": old, "new": new, "moments": moments}


if __name__ == "__main__":
    nothing, thorough = "nothing" in sys.argv, "thorough" in sys.argv
    print(json.dumps(main(Path(sys.argv[1]), from_nothing=nothing, thorough=thorough)))  # noqa: T201  # its result
