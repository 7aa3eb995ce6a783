"""Tests of where the services of an ingestion keep their state."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.connect import connect_services
from rag_pipeline.core.errors import CollectionMissingError
from rag_pipeline.core.settings import EmbeddingProvider
from rag_pipeline_tests.book import make_book

if TYPE_CHECKING:
    from pathlib import Path


def test_the_error_about_a_missing_index_names_the_indexes_of_other_docs_folders(
    tmp_path: Path,
) -> None:
    book = make_book(tmp_path)
    settings = book.settings.model_copy(update={"embedding_provider": EmbeddingProvider.LOCAL})
    services = connect_services(settings)
    with services.lock():
        pass
    other = settings.model_copy(update={"docs_dir": tmp_path / "missing"})
    with pytest.raises(CollectionMissingError, match="does not exist") as caught:
        connect_services(settings).catalog.open_current()
    assert "contains no other index" in str(caught.value)
    (tmp_path / "missing").mkdir()
    with pytest.raises(CollectionMissingError, match="Set DOCS_DIR") as caught:
        connect_services(other).catalog.open_current()
    assert str(book.docs) in str(caught.value)
