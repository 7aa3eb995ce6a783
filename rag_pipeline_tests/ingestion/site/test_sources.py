"""Tests of the sources that are found in the configuration and the folders of a site."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rag_pipeline.ingestion.site.detection import DetectedSite, detect_site

if TYPE_CHECKING:
    from pathlib import Path

API = "plugins: [['content-docs', {id: 'api', path: 'api', routeBasePath: 'api'}]]"


def write(root: Path, options: str, *files: str) -> Path:
    """Write a site with options for the docs and some Markdown files; `versions.json` if named."""
    config = f"export default {{url: 'https://e.org', baseUrl: '/m/', {options}}};"
    (root / "docusaurus.config.js").write_text(config, encoding="utf-8")
    for file in files:
        path = root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("# Title\n\nText.\n", encoding="utf-8")
    return root


def docs(options: str, more: str = "") -> str:
    """Return a configuration with these options of the docs plugin."""
    return f"presets: [['classic', {{docs: {{{options}}}}}]], {more}"


def release(root: Path, *versions: str, prefix: str = "") -> None:
    """Write `versions.json` and a page of each version."""
    (root / f"{prefix}versions.json").write_text(json.dumps(versions), encoding="utf-8")
    for version in versions:
        write_page(root / f"{prefix}versioned_docs" / f"version-{version}" / "a.md")


def write_page(path: Path) -> None:
    """Write a page, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("# Title\n\nText.\n", encoding="utf-8")


def detect(root: Path) -> DetectedSite:
    """Detect a site without Node."""
    return detect_site(root, lambda _: None, run_config=False)


def routes(site: DetectedSite) -> dict[str, str]:
    """Return the route of each source."""
    return {str(source): source.route_base_path for source in site.sources}


def test_a_site_with_one_docs_folder_needs_no_sources(tmp_path: Path) -> None:
    assert detect(write(tmp_path, docs(""), "docs/a.md")).sources == ()


def test_each_docs_folder_is_a_source_and_the_first_one_keeps_its_ids(tmp_path: Path) -> None:
    site = detect(write(tmp_path, docs("", API), "docs/a.md", "api/a.md"))
    assert [(str(one), one.prefix) for one in site.sources] == [("docs", ""), ("api", "api/")]


def test_ids_do_not_collide_with_a_folder_of_the_docs(tmp_path: Path) -> None:
    site = detect(write(tmp_path, docs("", API), "docs/api/a.md", "api/a.md"))
    assert site.sources[1].prefix == "@site/api/"


def test_a_docs_folder_outside_the_site_has_its_name_before_the_ids(tmp_path: Path) -> None:
    root = tmp_path / "website"
    config = docs("", API.replace("path: 'api'", "path: '../reference'"))
    write(tmp_path, "", "reference/a.md")
    root.mkdir()
    assert detect(write(root, config, "docs/a.md")).sources[1].prefix == "api/"
