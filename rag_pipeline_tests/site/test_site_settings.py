"""Tests that the pipeline's site settings are equal to those of `docusaurus.config.ts`."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from rag_pipeline_tests.site.conftest import ROOT, WEBSITE

if TYPE_CHECKING:
    from rag_pipeline.core.settings import Settings
    from rag_pipeline_tests.site.proof import BuiltSite

GENERATED = WEBSITE / ".docusaurus"
DOCUSAURUS_DEFAULTS: dict[str, object] = {
    "baseUrl": "/",
    "routeBasePath": "docs",
    "trailingSlash": None,
    "format": "mdx",
}


def settings_record(settings: Settings) -> dict[str, object]:
    """Return the site settings by Docusaurus's names."""
    return {
        "baseUrl": settings.site_base_url,
        "routeBasePath": settings.site_route_base_path,
        "trailingSlash": settings.site_trailing_slash,
        "format": settings.site_markdown_format.value,
    }


def test_the_settings_are_equal_to_the_config_file(default_settings: Settings) -> None:
    text = (WEBSITE / "docusaurus.config.ts").read_text(encoding="utf-8")
    code = re.sub(r"(?m)^\s*//.*$", "", text)
    written = {
        name: re.findall(rf"\b{name}:\s*('[^']*'|true|false)", code) for name in DOCUSAURUS_DEFAULTS
    }
    assert all(len(values) <= 1 for values in written.values()), written
    values = DOCUSAURUS_DEFAULTS | {
        name: json.loads(found[0].replace("'", '"')) for name, found in written.items() if found
    }
    values["routeBasePath"] = str(values["routeBasePath"]).strip("/")
    assert values == settings_record(default_settings)


@pytest.mark.site
@pytest.mark.usefixtures("built_site")
def test_docusaurus_read_the_same_settings(default_settings: Settings) -> None:
    text = (GENERATED / "docusaurus.config.mjs").read_text(encoding="utf-8")
    config = json.loads(text.partition("export default ")[2].rstrip().rstrip(";"))
    plugin = GENERATED / "docusaurus-plugin-content-docs/default/__mdx-loader-dependency.json"
    docs = json.loads(plugin.read_text(encoding="utf-8"))["options"]
    values = {
        "baseUrl": config["baseUrl"],
        "routeBasePath": docs["routeBasePath"].strip("/"),
        "trailingSlash": config.get("trailingSlash"),
        "format": config["markdown"]["format"],
    }
    assert values == settings_record(default_settings)
    assert (WEBSITE / docs["path"]).resolve() == (ROOT / default_settings.docs_dir).resolve()


@pytest.mark.site
def test_the_site_is_built_under_its_base_url(built_site: BuiltSite) -> None:
    home = built_site.page("index.html")
    assert home.canonical.endswith(built_site.base_path)
    assert any(link.startswith(built_site.base_path + "assets/") for link in home.links)
