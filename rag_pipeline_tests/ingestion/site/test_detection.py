"""Tests that the settings of a site are found, with their sources, and what stops with an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.ingestion.site.detection import DetectedSite, detect_site
from rag_pipeline.ingestion.site.literals import Origin

if TYPE_CHECKING:
    from pathlib import Path

CLASSIC = """
export default {
  url: 'https://example.org', baseUrl: '/manual/', trailingSlash: true,
  presets: [['classic', {docs: {routeBasePath: '/', path: 'guides'}}]],
};
"""
SEVERAL = """
export default {
  url: 'https://example.org', baseUrl: '/',
  presets: [['classic', {}]],
  plugins: [['content-docs', {id: 'api', path: 'reference', routeBasePath: 'api'}]],
};
"""


def write_site(root: Path, config: str = CLASSIC, *folders: str) -> Path:
    """Write a site with empty docs folders, and return its folder."""
    for folder in folders or ("guides",):
        (root / folder).mkdir(parents=True)
    (root / "docusaurus.config.js").write_text(config, encoding="utf-8")
    return root


def detect(site: Path, **options: object) -> tuple[DetectedSite, list[str]]:
    """Detect a site, and return it with the sentences that the user was told."""
    told: list[str] = []
    return detect_site(site, told.append, **options), told  # type: ignore[arg-type]  # options of many types


def read(site: DetectedSite) -> dict[str, tuple[object, Origin]]:
    """Return value and source of each setting."""
    return {value.setting: (value.value, value.origin) for value in site.values}


def test_each_literal_value_has_its_source(tmp_path: Path) -> None:
    site, told = detect(write_site(tmp_path))
    assert read(site) == {
        "docs_dir": ("guides", Origin.READ),
        "site_base_url": ("https://example.org/manual/", Origin.READ),
        "site_route_base_path": ("/", Origin.READ),
        "site_trailing_slash": (True, Origin.READ),
        "site_markdown_format": ("mdx", Origin.DEFAULT),
    }
    assert site.docs_dir == tmp_path / "guides"
    assert told == []


def test_a_guess_and_an_unknown_value_say_why(tmp_path: Path) -> None:
    config = CLASSIC.replace("'https://example.org'", "process.env.URL || 'https://e.org'")
    config = config.replace("true", "isLive()")
    site, _ = detect(write_site(tmp_path, config))
    values = {value.setting: value for value in site.values}
    assert values["site_base_url"].value == "https://e.org/manual/"
    assert values["site_base_url"].origin is Origin.GUESS
    assert "`url` is computed in line 3" in values["site_base_url"].problem
    assert (values["site_trailing_slash"].value, values["site_trailing_slash"].origin) == (
        None,
        Origin.UNKNOWN,
    )


def test_a_site_that_does_not_set_the_trailing_slash_leaves_it_open(tmp_path: Path) -> None:
    config = CLASSIC.replace("trailingSlash: true,", "")
    site, _ = detect(write_site(tmp_path, config))
    assert read(site)["site_trailing_slash"] == ("open", Origin.DEFAULT)


def test_a_docs_folder_beside_the_site_is_relative_to_it(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / ".git").mkdir()
    config = CLASSIC.replace("'guides'", "'../docs'")
    site, _ = detect(write_site(tmp_path / "website", config))
    assert read(site)["docs_dir"] == ("../docs", Origin.READ)
    assert site.docs_dir == tmp_path / "docs"


def test_of_several_docs_folders_the_one_without_an_id_is_first_and_all_are_sources(
    tmp_path: Path,
) -> None:
    root = write_site(tmp_path, SEVERAL, "docs", "reference")
    site, _ = detect(root)
    assert site.docs_dir == root / "docs"
    found = [(str(one), one.prefix, one.route_base_path) for one in site.sources]
    assert found == [("docs", "", "docs"), ("api", "reference/", "api")]


def test_one_of_several_docs_folders_is_chosen_by_its_id_or_the_folder(tmp_path: Path) -> None:
    root = write_site(tmp_path, SEVERAL, "docs", "reference")
    chosen = [detect(root, plugin_id="api")[0], detect(root, docs_dir=root / "reference")[0]]
    for site in chosen:
        assert read(site)["site_route_base_path"] == ("api", Origin.READ)
        assert site.docs_dir == root / "reference"
        assert site.sources == ()
    with pytest.raises(ConfigurationError, match=r"--docs-plugin: .*Choose one of default"):
        detect(root, plugin_id="blog")


def test_the_file_itself_chooses_one_of_several(tmp_path: Path) -> None:
    root = write_site(tmp_path)
    (root / "docusaurus.config.ts").write_text("broken", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"several configurations: .*config\.ts, .*\.js"):
        detect(root)
    site, _ = detect(root / "docusaurus.config.js")
    assert site.docs_dir == root / "guides"


def test_a_folder_without_a_configuration_names_the_folders_below_that_have_one(
    tmp_path: Path,
) -> None:
    with pytest.raises(ConfigurationError, match=r"contains no docusaurus\.config"):
        detect(tmp_path)
    write_site(tmp_path / "website")
    with pytest.raises(ConfigurationError, match=r"folder of the site: .*website"):
        detect(tmp_path)
    with pytest.raises(ConfigurationError, match="not a folder"):
        detect(tmp_path / "missing")


WRONG = {
    "missing docs folder": (CLASSIC.replace("guides", "texts"), "texts, which is missing"),
    "no docs plugin": (CLASSIC.replace("{routeBasePath: '/', path: 'guides'}", "false"), "no docs"),
    "computed folder": (
        CLASSIC.replace("'guides'", "find()"),
        "folder of the docs plugin is not known, because `path` is computed",
    ),
    "function": ("export default make();", r"no object literal\. .*--run-config"),
    "syntax": ("export default {", r"not valid JavaScript"),
}


@pytest.mark.parametrize(("config", "message"), WRONG.values(), ids=WRONG)
def test_a_site_without_a_known_docs_folder_is_an_error(
    tmp_path: Path, config: str, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message) as raised:
        detect(write_site(tmp_path, config))
    assert "docusaurus.config.js" in str(raised.value)


def write_docusaurus(root: Path, node: str = ">=18.0") -> None:
    """Write the file by which an installed Docusaurus is recognized."""
    core = root / "node_modules" / "@docusaurus" / "core"
    core.mkdir(parents=True)
    package = f'{{"version": "3.1.0", "engines": {{"node": "{node}"}}}}'
    (core / "package.json").write_text(package, encoding="utf-8")


def write_node(folder: Path, version: str) -> None:
    """Write a program `node` that prints a version."""
    folder.mkdir()
    program = folder / "node"
    program.write_text(f"#!/bin/sh\necho {version}\n", encoding="utf-8")
    program.chmod(0o755)


def test_without_node_modules_the_literal_values_are_read(tmp_path: Path) -> None:
    site, told = detect(write_site(tmp_path), run_config=True)
    assert read(site)["site_base_url"] == ("https://example.org/manual/", Origin.READ)
    (sentence,) = told
    assert "node_modules" in sentence
    assert "npm install" in sentence
    assert "not run" in sentence


def test_without_node_the_literal_values_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_docusaurus(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    site, told = detect(write_site(tmp_path), run_config=True)
    assert read(site)["docs_dir"] == ("guides", Origin.READ)
    assert [line for line in told if "Node is not installed" in line] == told


def test_a_node_that_is_too_old_runs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_docusaurus(tmp_path, node=">=18.0")
    write_node(tmp_path / "bin", "v16.20.1")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    _, told = detect(write_site(tmp_path), run_config=True)
    (sentence,) = told
    assert "Node 16.20.1 is too old. Docusaurus 3.1.0 needs Node 18.0 or newer" in sentence


def test_without_permission_node_is_not_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_docusaurus(tmp_path)
    write_node(tmp_path / "bin", "v99.0.0; touch started")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")
    monkeypatch.chdir(tmp_path)
    _, told = detect(write_site(tmp_path))
    assert told == []
    assert not (tmp_path / "started").exists()


def test_without_node_an_unreadable_file_says_how_to_get_it_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"no object literal\. .*node_modules"):
        detect(write_site(tmp_path, "export default make();"), run_config=True)
