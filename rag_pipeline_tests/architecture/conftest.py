"""The book of the quick start, ingested by the real command."""

from __future__ import annotations

import pytest

from rag_pipeline_tests.architecture.guides import GuideBook, make_guide_book


@pytest.fixture(scope="session")
def guide_book(tmp_path_factory: pytest.TempPathFactory) -> GuideBook:
    """The book of the quick start after `rag-pipeline ingest`. Tests must not change its pages."""
    book = make_guide_book(tmp_path_factory.mktemp("guide"))
    done = book.run("rag-pipeline", "ingest", "--json")
    assert done.returncode == 0, done.stderr
    (book.folder / "ingest.json").write_text(done.stdout, encoding="utf-8")
    return book
