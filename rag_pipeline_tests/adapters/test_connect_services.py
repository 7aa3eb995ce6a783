"""Tests of where the services of an ingestion keep their state."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.connect import connect_services
from rag_pipeline.core.errors import (
    CollectionMissingError,
    ConfigurationError,
    MissingDependencyError,
)
from rag_pipeline.core.ids import DocId
from rag_pipeline.core.models import Stage
from rag_pipeline.core.settings import EmbeddingProvider, load_settings
from rag_pipeline_tests.book import make_book

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.core.protocols.services import Services


def build(tmp_path: Path, state_url: str, state_name: str = "book", docs: str = "docs") -> Services:
    """Create the services of a local book whose state is at this URL and has this name."""
    return connect_services(
        load_settings(
            _env_file="",
            docs_dir=tmp_path / docs,
            data_dir=tmp_path / "data",
            embedding_provider="local",
            state_url=state_url,
            state_name=state_name,
        )
    )


@pytest.mark.parametrize("url", ["s3://bucket/prefix", "s3:/b"])
def test_the_package_for_a_state_url_is_named_if_it_is_missing(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(MissingDependencyError, match="pip install s3fs"):
        build(tmp_path, url)


def test_the_error_for_an_unknown_state_url_names_the_setting(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"^STATE_URL: .*nope"):
        build(tmp_path, "nope://x")


@pytest.mark.parametrize("scheme", ["", "file://", "local://"])
def test_state_is_kept_in_a_folder_given_as_path_or_as_url(scheme: str, tmp_path: Path) -> None:
    services = build(tmp_path, f"{scheme}{tmp_path}/shared state")
    artifacts, doc_id = services.open_artifacts("build"), DocId("a.md")
    artifacts.write(Stage.CHUNKS, doc_id, b"kept")
    assert artifacts.read(Stage.CHUNKS, doc_id) == b"kept"
    (folder,) = (tmp_path / "shared state").glob("book/artifacts/build/chunks")
    assert len(list(folder.iterdir())) == 1


def test_two_machines_with_docs_folders_at_different_places_share_the_named_state(
    tmp_path: Path,
) -> None:
    url, doc_id = f"file://{tmp_path}/shared", DocId("a.md")
    build(tmp_path, url).open_artifacts("build").write(Stage.CHUNKS, doc_id, b"kept")
    for name, expected in (("book", b"kept"), ("other", None)):
        services = build(tmp_path / "elsewhere", url, name, docs="checkout/docs")
        assert services.open_artifacts("build").read(Stage.CHUNKS, doc_id) == expected


def test_a_shared_state_without_a_name_is_refused_with_the_name_that_it_had(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"^STATE_NAME: .* has the name docs-[0-9a-f]{8}$"):
        build(tmp_path, f"file://{tmp_path}/shared", "")


@pytest.mark.parametrize("name", ["a/b", "../up", ".hidden", "two words", "x" * 101])
def test_a_name_of_the_state_that_no_storage_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^STATE_NAME: .*letters, digits"):
        build(tmp_path, f"file://{tmp_path}/shared", name)


def test_the_error_about_a_missing_index_names_the_indexes_of_other_docs_folders(
    tmp_path: Path,
) -> None:
    book = make_book(tmp_path)
    settings = book.settings.model_copy(update={"embedding_provider": EmbeddingProvider.LOCAL})
    services = connect_services(settings)
    services.sweep()
    other = settings.model_copy(update={"docs_dir": tmp_path / "missing"})
    with pytest.raises(CollectionMissingError, match="does not exist") as caught:
        connect_services(settings).catalog.open_current()
    assert "contains no other index" in str(caught.value)
    (tmp_path / "missing").mkdir()
    with pytest.raises(CollectionMissingError, match="Set DOCS_DIR") as caught:
        connect_services(other).catalog.open_current()
    assert str(book.docs) in str(caught.value)
