"""Tests that all settings of public sites are found with the loader of a real Docusaurus."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_pipeline_tests.ingestion.site.public_sites import PUBLIC_SITES, PublicSite
from rag_pipeline_tests.ingestion.site.test_detection import detect
from rag_pipeline_tests.ingestion.site.test_public_sites import assert_found
from rag_pipeline_tests.site.conftest import WEBSITE

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.site


@pytest.mark.parametrize("site", PUBLIC_SITES.values(), ids=PUBLIC_SITES)
def test_a_public_site_is_read_by_running_its_configuration(
    tmp_path: Path, site: PublicSite
) -> None:
    root = site.write(tmp_path)
    (root / "node_modules").symlink_to(WEBSITE / "node_modules")
    found, (sentence,) = detect(root, run_config=True)
    assert_found(found, site, site.notes)
    assert all(value.origin.is_certain for value in found.values)
    assert sentence.startswith("Running ")
