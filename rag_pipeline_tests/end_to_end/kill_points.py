"""Program that kills an ingestion, rebuild or repair at each write and describes the next run.

It is a program because it forks before any store is open. Each ingestion is then a process that
`os._exit` can end, without the start of a new interpreter. It prints one JSON document.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sys
import traceback
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from rag_pipeline.core.errors import RebuildIncompleteError
from rag_pipeline.core.ids import PointId
from rag_pipeline.core.protocols import PointFilter
from rag_pipeline.core.text.terms import count_tokens
from rag_pipeline.core.vectors import ChunkVectors, Point, SparseVector
from rag_pipeline.ingestion.audit import audit_collection, audit_index, repair_index
from rag_pipeline.ingestion.context import IngestionRequest
from rag_pipeline.ingestion.planning import scan_docs
from rag_pipeline_tests.book import (
    Book,
    make_book,
    make_page,
    make_paragraph,
    replace_services,
)
from rag_pipeline_tests.end_to_end.boundaries import Boundaries, watch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rag_pipeline.core.protocols import StoredPoint
    from rag_pipeline.core.vectors import FloatMatrix, FloatVector
    from rag_pipeline.ingestion.context import IngestionContext

KILLED = 9
"""Exit status of a run that was killed at the chosen moment."""

_SUBJECT = re.compile(r" [\w/-]+(?: \w+)?\.md$|(?:(?<=upsert)|(?<=announce)) of \d+$")
_BLOCK_BYTES = 65_536
_LATE_MODULES = ("github_slugger", "rag_pipeline.adapters.database.postgres")
"""The modules that an ingestion imports only when it needs them."""

_DIGITS = 5  # decimals of vector components; the store normalizes again, which changes the last

EDITED = "module-1/large.md"
ADDED = "module-2/added.md"
MOVED = ("intro.md", "module-2/intro moved.md")
BROKEN = "module-2/broken.md"
UNKNOWN = "module-1/small page.md"
"""The page whose ledger entry is deleted before a repair."""


def edit_pages(book: Book) -> None:
    """Edit one page so that points are written, updated and deleted; add a page; move a page."""
    sections = [("Two", make_paragraph(4)), ("One", make_paragraph(3, 6)), ("New", "Short text.")]
    book.write(EDITED, make_page("Large", *sections, extra="tags: [ros]\n"))
    book.write(ADDED, make_page("Added", ("A", make_paragraph(70)), ("B", make_paragraph(80))))
    book.move(*MOVED)


def edit_and_break_pages(book: Book) -> None:
    """Make the edits of `edit_pages`, and add a page with broken front matter."""
    edit_pages(book)
    book.write(BROKEN, "---\ntitle: [\n---\n")


def damage(book: Book) -> None:
    """Delete, change and add points in the store, and delete a ledger entry."""
    store = book.build_context().services.catalog.open_current()
    first, second, third, *_ = store.scroll(
        PointFilter.any_of(doc_path=(EDITED,)), with_vectors=True
    )
    assert third.vectors is not None
    wrong = ChunkVectors(third.vectors.windows[0], -third.vectors.windows)
    terms = SparseVector((1,), (1.0,))
    store.delete([first.point_id])
    store.set_payloads({second.point_id: second.payload | {"module": "altered"}})
    store.upsert(
        [
            Point(third.point_id, wrong, terms, third.payload),
            Point(PointId(7), wrong, terms, third.payload | {"doc_path": "ghost.md"}),
        ]
    )
    ledger = book.open_ledger(store.collection_id)
    store.close()
    unknown = next(entry for doc_id, entry in ledger.entries().items() if doc_id == UNKNOWN)
    ledger.forget(unknown.doc_id, unknown.version)


def run_forked(action: Callable[[], Any], result: Path) -> int:
    """Run an action in a forked process that writes the result as JSON; return the exit status."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return os.waitstatus_to_exitcode(status)
    try:
        result.write_text(json.dumps(action()))
    except BaseException:  # noqa: BLE001  # the child process must end here
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def describe(points: Sequence[StoredPoint]) -> dict[str, Any]:
    """Return payload and rounded vectors by point id, without the times of ingestion."""
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


def _ingest(book: Book, context: IngestionContext | None = None) -> None:
    book.ingest(context=context)


def _rebuild(book: Book, context: IngestionContext | None = None) -> None:
    with suppress(RebuildIncompleteError):
        book.ingest(IngestionRequest(rebuild=True), context)


def _repair(book: Book, context: IngestionContext | None = None) -> None:
    used = context or book.build_context()
    repair_index(used, audit_index(used), lambda asked: book.ingest(asked, used))


def _revert(book: Book) -> None:
    """Restore the pages that were indexed before the edits, and ingest."""
    shutil.rmtree(book.docs)
    shutil.copytree(book.root.parent / "base" / "docs", book.docs)
    book.ingest()


def _delete_broken_page(book: Book) -> None:
    """Delete the page that fails, and ingest."""
    (book.docs / BROKEN).unlink()
    book.ingest()


@dataclass(frozen=True)
class Scenario:
    """An action that is killed at each moment, and the actions that follow.

    Attributes:
        prepare: Changes the book before the action.
        act: The action that is killed.
        ways: The actions that follow, by name. Each starts from the state that the kill left.
        begun: True if the book is indexed before `prepare`; False if nothing is indexed.
        alternating: Follow each kill with only one of the ways, in turn, unless the run is
            thorough.
        kinds: Beginnings of the names of the moments to test; empty for all moments.
    """

    prepare: Callable[[Book], None]
    act: Callable[[Book, IngestionContext | None], None]
    ways: Mapping[str, Callable[[Book], None]]
    begun: bool = True
    alternating: bool = False
    kinds: tuple[str, ...] = ()


SCENARIOS = {
    "edits": Scenario(edit_pages, _ingest, {"resumed": _ingest, "reverted": _revert}),
    "nothing": Scenario(edit_pages, _ingest, {"resumed": _ingest}, begun=False),
    "rebuild": Scenario(
        edit_pages,
        _rebuild,
        {"resumed": _ingest, "reverted": _revert, "rebuilt": _rebuild},
        alternating=True,
    ),
    "broken": Scenario(
        edit_and_break_pages,
        _rebuild,
        {"resumed": _delete_broken_page},
        kinds=("after ledger.record_failure", "after catalog.discard"),
    ),
    "repair": Scenario(damage, _repair, {"resumed": _repair}),
}


def _kill_at(scenario: Scenario, book: Book, number: int) -> list[str]:
    """Run the action and kill it at a moment; return all moments if it was not killed."""
    boundaries = Boundaries(lambda _: os._exit(KILLED), number)
    scenario.act(book, watch(book.build_context(), boundaries))
    return boundaries.names


def _look(book: Book) -> dict[str, Any]:
    """Describe the current collection. It is opened only once, because opening it is slow."""
    context = book.build_context()
    scan = scan_docs(context)
    with closing(context.services.catalog.open_current()) as store:
        points = store.scroll(with_vectors=True)
        opened: Any = SimpleNamespace(
            scroll=store.scroll,
            scroll_fields=store.scroll_fields,
            fetch=store.fetch,
            count=store.count,
            close=lambda: None,
        )
        catalog = SimpleNamespace(open=lambda _: opened, is_wanted=lambda: False)
        looked_at = replace_services(context, catalog=catalog)
        audit = audit_collection(looked_at, scan)
    return {
        "points": describe(points),
        "is_up_to_date": scan.is_up_to_date,
        "audit": [f"{finding.kind} {finding.doc_path}" for finding in audit.findings],
        "leftovers": book.find_leftovers(),
    }


def _go_on(book: Book, way: Callable[[Book], None]) -> dict[str, Any]:
    """Run the action that follows a kill, and describe the collection after it."""
    way(book)
    return _look(book)


def copy_book(source: Path, target: Path) -> Book:
    """Copy a book with its state to an empty folder; files keep their times."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, copy_function=_copy_data)
    return Book(target)


def _copy_data(source: str, target: str) -> None:
    """Copy a file without its zeros. A store reserves 260 MB and uses a few kB of them."""
    with Path(source).open("rb") as reading, Path(target).open("wb") as writing:
        end = os.fstat(reading.fileno()).st_size
        writing.truncate(end)
        at = 0
        while at < end:
            try:
                at = os.lseek(reading.fileno(), at, os.SEEK_DATA)
            except OSError as error:
                if error.errno != errno.ENXIO:  # this error means that only a hole is left
                    raise
                break
            hole = os.lseek(reading.fileno(), at, os.SEEK_HOLE)
            for start in range(at, hole, _BLOCK_BYTES):
                data = os.pread(reading.fileno(), min(_BLOCK_BYTES, hole - start), start)
                if data.count(0) < len(data):
                    os.pwrite(writing.fileno(), data, start)
            at = hole
    shutil.copystat(source, target)


def choose_last_of_each(names: list[str]) -> list[int]:
    """Return the last moment of each kind. Moments of different documents are of one kind."""
    kinds = {_SUBJECT.sub("", name): at for at, name in enumerate(names)}
    return sorted(kinds.values())


def main(root: Path, scenario: Scenario, *, thorough: bool) -> dict[str, Any]:
    """Run a scenario and describe the collection after each kill and after each following action.

    Args:
        root: An empty folder.
        scenario: The action to kill, and the actions that follow.
        thorough: Kill at every moment instead of at one moment of each kind.
    """
    count_tokens("")  # loads the tokenizer once for all forks
    result = root / "result.json"

    def run(action: Callable[[], Any]) -> Any:  # noqa: ANN401  # JSON
        status = run_forked(action, result)
        return json.loads(result.read_text()) if status == 0 else status

    def build(book: Book) -> dict[str, Any]:
        run(lambda: _ingest(book))
        return dict(run(lambda: describe(book.read_points())))

    for name in _LATE_MODULES:
        import_module(name)  # once for all forks; it takes most of the time of an ingestion
    base = make_book(root / "base")
    old = build(base) if scenario.begun else {}
    prepared = copy_book(base.root, root / "prepared")
    run(lambda: scenario.prepare(prepared))
    clean = Book(root / "clean")
    shutil.copytree(prepared.docs, clean.docs)
    new = build(clean)
    names = run(lambda: _kill_at(scenario, copy_book(prepared.root, root / "counting"), -1))
    moments = []
    for number in range(len(names)) if thorough else choose_last_of_each(names):
        if scenario.kinds and not names[number].startswith(scenario.kinds):
            continue
        killed = copy_book(prepared.root, root / "killed")
        moment = {
            "name": names[number],
            "status": run(partial(_kill_at, scenario, killed, number)),
            "found": run(partial(_look, killed)) if scenario.begun else {},
        }
        ways = list(scenario.ways.items())
        if not thorough and scenario.alternating:
            ways = [ways[len(moments) % len(ways)]]
        for place, (name, way) in enumerate(ways, 1):
            after = killed if place == len(ways) else copy_book(killed.root, root / "after")
            moment[name] = run(partial(_go_on, after, way))
        moments.append(moment)
    return {"old": old, "new": new, "moments": moments}


if __name__ == "__main__":
    outcome = main(Path(sys.argv[1]), SCENARIOS[sys.argv[2]], thorough="thorough" in sys.argv)
    print(json.dumps(outcome))  # noqa: T201  # the result of the program
