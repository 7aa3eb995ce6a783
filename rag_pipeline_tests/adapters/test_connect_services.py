"""Tests of where the services of an ingestion keep their state."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.connect import connect_services
from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.ids import DocId
from rag_pipeline.core.models import Stage
from rag_pipeline.core.settings import load_settings

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.core.protocols.services import Services


def build(tmp_path: Path, state_url: str) -> Services:
    """Create the services of a local book whose state is at this URL."""
    return connect_services(
        load_settings(
            _env_file="",
            docs_dir=tmp_path / "docs",
            data_dir=tmp_path / "data",
            embedding_provider="local",
            state_url=state_url,
        )
    )


@pytest.mark.parametrize(
    ("url", "problem"), [("s3://bucket/prefix", "s3fs"), ("s3:/b", "s3fs"), ("nope://x", "nope")]
)
def test_the_error_for_an_unusable_state_url_names_the_cause(
    url: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(ConfigurationError, match=f"^STATE_URL: .*{problem}"):
        build(tmp_path, url)


@pytest.mark.parametrize("scheme", ["", "file://", "local://"])
def test_state_is_kept_in_a_folder_given_as_path_or_as_url(scheme: str, tmp_path: Path) -> None:
    services = build(tmp_path, f"{scheme}{tmp_path}/shared state")
    artifacts, doc_id = services.open_artifacts("build"), DocId("a.md")
    artifacts.write(Stage.CHUNKS, doc_id, b"kept")
    assert artifacts.read(Stage.CHUNKS, doc_id) == b"kept"
    (folder,) = (tmp_path / "shared state").glob("docs-*/artifacts/build/chunks")
    assert len(list(folder.iterdir())) == 1
