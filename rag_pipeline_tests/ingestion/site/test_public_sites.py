"""Tests that public sites are read without running their configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline_tests.ingestion.site.public_sites import PUBLIC_SITES, PublicSite
from rag_pipeline_tests.ingestion.site.test_detection import detect

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rag_pipeline.ingestion.site.detection import DetectedSite


def assert_found(found: DetectedSite, site: PublicSite, notes: Sequence[str]) -> None:
    """Check that the settings, sources and notes of a site are the expected ones."""
    assert {value.setting: value.value for value in found.values} == site.values
    routes: Mapping[str, str] = {
        str(source): source.base_url + source.route_base_path for source in found.sources
    }
    assert routes == site.routes
    assert {str(source) for source in found.sources if source.is_latest} == set(site.latest)
    assert len(found.notes) == len(notes)
    for note, text in zip(found.notes, notes, strict=True):
        assert text in note


@pytest.mark.parametrize("site", PUBLIC_SITES.values(), ids=PUBLIC_SITES)
def test_nothing_is_invented_for_a_public_site_that_is_not_run(
    tmp_path: Path, site: PublicSite
) -> None:
    root = site.write(tmp_path)
    if "function createConfig" in next(root.glob("docusaurus.config.*")).read_text(
        encoding="utf-8"
    ):
        with pytest.raises(ConfigurationError, match="--run-config"):
            detect(root)
        return
    found, told = detect(root)
    assert told == []
    for value in found.values:
        assert value.value == site.values[value.setting] or not value.origin.is_certain
    assert found.is_complete is False or {str(source) for source in found.sources} == set(
        site.routes
    )
