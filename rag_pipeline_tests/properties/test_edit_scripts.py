"""After random edits, faults and kills, ingestion ends in the same state as a clean build."""

from __future__ import annotations

import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from rag_pipeline.core.errors import RagPipelineError
from rag_pipeline_tests.book import Book, assert_same_state, make_book, make_page, make_paragraph
from rag_pipeline_tests.end_to_end.boundaries import Boundaries, watch
from rag_pipeline_tests.end_to_end.test_faults import FAULTS

if TYPE_CHECKING:
    from collections.abc import Callable

SCRIPTS = 200 if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else 15
NAMES = ("a.md", "b.mdx", "m/c d.md", "m/n/index.md", "größe.md")
HEADINGS = ("One", "Two", "Drei", "O n e")

names = st.sampled_from(NAMES)
sections = st.lists(
    st.tuples(
        st.sampled_from(HEADINGS), st.builds(make_paragraph, st.integers(0, 5), st.integers(1, 7))
    ),
    max_size=4,
)
extras = st.sampled_from(["", "tags: [ros]\n", "sidebar_position: 2\n", "draft: true\n"])


moments = st.integers(0, 60) | st.sampled_from(
    [
        "after cache.put_many",
        "after ledger.record_begun",
        "during store.upsert",
        "after store.upsert",
        "after store.set_payloads",
        "during store.delete",
        "after store.delete",
        "after ledger.record ",
    ]
)


class Killed(BaseException):
    """Exception that simulates the end of the process. No code of the package catches it."""


class EditScript(RuleBasedStateMachine):
    """A state machine that edits a docs folder and ingests it, with and without faults."""

    book: Book

    @initialize()
    def begin(self) -> None:
        """Start with one page and an empty index."""
        self.root = Path(tempfile.mkdtemp())
        self.book = make_book(self.root / "book", {}, memory=True)
        self.clock = 1_000_000_000
        self.saved: dict[str, tuple[str, int]] = {}
        self.write("always.md", make_page("Always", ("Here", make_paragraph(9))))

    def write(self, name: str, text: str) -> None:
        """Write a page with a modification time that is later than that of all earlier writes."""
        self.clock += 1_000_000_000
        os.utime(self.book.write(name, text), ns=(self.clock, self.clock))

    def pages(self) -> list[str]:
        """Return the names of the existing pages, except the page that is never edited."""
        return [name for name in NAMES if (self.book.docs / name).exists()]

    @rule(name=names, body=sections, extra=extras)
    def add_or_rewrite(self, name: str, body: list[tuple[str, str]], extra: str) -> None:
        """Write a page, which may replace an existing one."""
        self.write(name, make_page(f"Page {name}", *body, extra=extra))

    @rule(name=names, old=st.sampled_from(["joint", "robot", "rule"]))
    def change_words(self, name: str, old: str) -> None:
        """Replace up to two occurrences of a word in a page."""
        if name in self.pages():
            self.write(name, (self.book.docs / name).read_text("utf-8").replace(old, "wheel", 2))

    @rule(name=names, heading=st.sampled_from(HEADINGS))
    def rename_heading(self, name: str, heading: str) -> None:
        """Rename one heading of a page."""
        if name in self.pages():
            text = (self.book.docs / name).read_text("utf-8")
            self.write(name, text.replace(f"## {heading}\n", "## Renamed\n", 1))

    @rule(name=names)
    def insert_at_the_top(self, name: str) -> None:
        """Insert a paragraph at the start of a page."""
        if name in self.pages():
            text = (self.book.docs / name).read_text("utf-8")
            self.write(name, text.replace("\n---\n", f"\n---\n\n{make_paragraph(8)}\n", 1))

    @rule(name=names)
    def break_front_matter(self, name: str) -> None:
        """Write a page whose front matter cannot be parsed."""
        self.write(name, "---\ntitle: [\n---\n\nText.\n")

    @rule(name=names, place=names)
    def move(self, name: str, place: str) -> None:
        """Move a page to another name, which may replace an existing page."""
        if name in self.pages() and name != place:
            self.book.move(name, place)

    @rule(name=names)
    def delete(self, name: str) -> None:
        """Delete a page."""
        (self.book.docs / name).unlink(missing_ok=True)

    @rule()
    def save(self) -> None:
        """Remember the text and modification time of every page."""
        paths = {name: self.book.docs / name for name in self.pages()}
        self.saved = {
            name: (path.read_text("utf-8"), path.stat().st_mtime_ns) for name, path in paths.items()
        }

    @precondition(lambda self: self.saved)
    @rule()
    def revert(self) -> None:
        """Restore the remembered pages with their modification times."""
        for name in NAMES:
            (self.book.docs / name).unlink(missing_ok=True)
        for name, (text, mtime_ns) in self.saved.items():
            os.utime(self.book.write(name, text), ns=(mtime_ns, mtime_ns))

    @rule()
    def ingest(self) -> None:
        """Ingest the folder and check that exactly the broken pages fail."""
        report = self.book.ingest()
        broken = {name for name in self.pages() if self.is_broken(name)}
        assert {failure.doc_path for failure in report.failures} == broken

    @rule(at=moments, lasting=st.booleans())
    def ingest_with_a_fault(self, at: int | str, *, lasting: bool) -> None:
        """Ingest while a service fails, once or from then on."""

        def fail(service: str) -> None:
            raise FAULTS[service]

        self.ingest_disturbed(fail, at, lasting=lasting)

    @rule(at=moments)
    def ingest_and_be_killed(self, at: int | str) -> None:
        """Ingest and end the process before the ingestion is complete."""

        def kill(_: str) -> None:
            raise Killed

        self.ingest_disturbed(kill, at, lasting=False)

    @rule(name=names, edit=st.sampled_from(["insert_at_the_top", "delete", "add"]), at=moments)
    def be_killed_amid_an_edit_that_is_undone(self, name: str, edit: str, at: int | str) -> None:
        """Edit an indexed page, end the process while it is ingested, and undo the edit."""
        self.book.ingest()
        self.save()
        if edit == "add":
            self.write(name, make_page("Added", ("One", make_paragraph(4, 9))))
        else:
            getattr(self, edit)(name)
        self.ingest_and_be_killed(at)
        self.revert()

    def ingest_disturbed(self, act: Callable[[str], None], at: int | str, *, lasting: bool) -> None:
        """Ingest and call `act` with the name of a service at a given moment.

        Args:
            act: Function that raises an error.
            at: Number of the write, or the start of its name.
            lasting: Call `act` at every later write of the same service too.
        """
        boundaries = Boundaries(act, at, lasting=lasting)
        context = watch(self.book.build_context(), boundaries)
        with suppress(RagPipelineError, OSError, Killed):
            self.book.ingest(context=context)

    def is_broken(self, name: str) -> bool:
        """Return True if the page was written with broken front matter."""
        return "title: [\n" in (self.book.docs / name).read_text("utf-8")

    @invariant()
    def every_point_has_the_payload_of_its_own_chunk(self) -> None:
        """Check that the chunk id in each payload belongs to the point."""
        if self.book.build_context().services.catalog.current_id():
            for chunk_id, payload in self.book.read_payloads().items():
                assert payload["chunk_id"] == chunk_id

    def teardown(self) -> None:
        """Repair broken pages, ingest once, and compare the index with a clean build."""
        if not hasattr(self, "root"):
            return
        try:
            for name in self.pages():
                if self.is_broken(name):
                    self.write(name, make_page("Repaired", ("One", make_paragraph(3))))
            report = self.book.ingest()
            assert report.failures == []
            clean = self.book.build_clean(self.root / "clean")
            assert_same_state(self.book.read_state(), clean.read_state())
            again = self.book.ingest()
            assert (again.docs_processed, again.docs_deleted, again.texts_embedded) == (0, 0, 0)
        finally:
            shutil.rmtree(self.root)


def test_any_edits_faults_and_kills_end_in_the_state_of_a_clean_build() -> None:
    run_state_machine_as_test(
        EditScript, settings=settings(max_examples=SCRIPTS, stateful_step_count=14)
    )
