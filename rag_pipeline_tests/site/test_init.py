"""Tests that sites are detected with the configuration loader of a real Docusaurus."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.ingestion.site.literals import Origin
from rag_pipeline_tests.ingestion.site.test_detection import detect, read, write_site
from rag_pipeline_tests.site.conftest import ROOT, WEBSITE

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.site

COMPUTED = (ROOT / "rag_pipeline_tests/fixtures/computed.config.js").read_text(encoding="utf-8")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site with computed values and two docs folders, and the packages of this repository."""
    root = write_site(tmp_path / "site", COMPUTED, "manual", "api")
    (root / "node_modules").symlink_to(WEBSITE / "node_modules")
    return root


def test_values_that_are_computed_are_read(site: Path) -> None:
    found, told = detect(site, plugin_id="default", run_config=True)
    assert read(found) == {
        "docs_dir": ("manual", Origin.READ),
        "site_base_url": ("https://example.org/manual/", Origin.READ),
        "site_route_base_path": ("docs", Origin.DEFAULT),
        "site_trailing_slash": ("open", Origin.DEFAULT),
        "site_markdown_format": ("detect", Origin.READ),
    }
    assert found.config.functions == ("parseFrontMatter", "preprocessor")
    assert found.reader.startswith("Docusaurus 3.")
    (sentence,) = told
    assert sentence.startswith(f"Running {site / 'docusaurus.config.js'} with Docusaurus 3.")


def test_each_docs_folder_is_found_whatever_form_its_plugin_has(site: Path) -> None:
    found, _ = detect(site, plugin_id="api", run_config=True)
    assert found.docs_dir == site / "api"
    for name in ("news/a.md", "more/a.md", "i18n/fr/docusaurus-plugin-content-docs/current/a.md"):
        path = site / name
        path.parent.mkdir(parents=True)
        path.write_text("# Title\n", encoding="utf-8")
    found, _ = detect(site, run_config=True)
    routes = {str(source): source.route_base_path for source in found.sources}
    names = {"docs": "docs", "api": "api", "blog": "n", "more": ""}
    assert routes == {f"{name}:{code}": names[name] for code in ("en", "fr") for name in names}
    assert [note.partition(" ")[0] for note in found.notes] == ["`numberPrefixParser`"]
    assert any(source.exclude is not None for source in found.sources)


def test_nothing_is_run_without_permission(site: Path) -> None:
    mark = site / "was-run"
    config = site / "docusaurus.config.js"
    write = f"require('fs').writeFileSync({str(mark)!r}, '');\n"
    config.write_text(write + config.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"docusaurus\.config\.js.*--run-config"):
        detect(site)
    assert not mark.exists()
    detect(site, plugin_id="api", run_config=True)
    assert mark.exists()


def test_the_code_of_a_site_sees_no_secrets_and_ends_in_time(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "NODE_AUTH_TOKEN", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "secret-7")
    config = site / "docusaurus.config.js"
    check = "if (JSON.stringify(process.env).includes('secret-7')) throw new Error('a secret');\n"
    config.write_text(check + config.read_text(encoding="utf-8"), encoding="utf-8")
    detect(site, plugin_id="api", run_config=True)
    config.write_text("for (;;) Buffer.alloc(1e8).fill(1) && setTimeout(() => {}, 0);")
    monkeypatch.setattr("rag_pipeline.ingestion.site.docusaurus_config._TIMEOUT_S", 3.0)
    with pytest.raises(ConfigurationError, match=r"did not end within|exit code"):
        detect(site, run_config=True)


FAILING = {
    "throws": ("throw new Error('no key in the vault');", "loaded: no key in the vault"),
    "exits": ("process.exit(3);", "exit code 3"),
    "invalid": ("module.exports = {url: 5};", '"url"'),
    "syntax": ("module.exports = {", "when it is loaded"),
    "no preset": (
        "module.exports = {title: 'x', url: 'https://e.org', baseUrl: '/', presets: ['nowhere']};",
        "nowhere",
    ),
}


@pytest.mark.parametrize(("config", "message"), FAILING.values(), ids=FAILING)
def test_a_configuration_that_cannot_be_loaded_is_an_error_of_one_line(
    site: Path, config: str, message: str
) -> None:
    (site / "docusaurus.config.js").write_text(config, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=message) as raised:
        detect(site, run_config=True)
    assert "--run-config" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "\x1b" not in str(raised.value)


def test_the_site_of_the_textbook_is_read_as_its_settings_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SITE_URL", "https://book.example.org")  # the site's code does not see it
    found, _ = detect(WEBSITE, run_config=True)
    values = {name: value for name, (value, _) in read(found).items()}
    assert values == {
        "docs_dir": "docs",
        "site_base_url": "https://example.github.io/physical-ai-robotics-textbook/",
        "site_route_base_path": "docs",
        "site_trailing_slash": False,
        "site_markdown_format": "mdx",
    }
    assert found.docs_dir == ROOT / "website" / "docs"
