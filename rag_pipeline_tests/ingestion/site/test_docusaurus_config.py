"""Tests that docusaurus.config is read literally, and that nothing is invented."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.models import MarkdownFormat, SiteSettings
from rag_pipeline.core.settings import load_settings
from rag_pipeline.core.settings.rules import OWN_DOCS_DIR, OWN_SITE
from rag_pipeline.ingestion.site.detection import settle_site
from rag_pipeline.ingestion.site.docusaurus_config import find_config, read_config
from rag_pipeline.ingestion.site.literals import Origin

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.core.settings import Settings

CLASSIC = """
export default {
  url: 'https://example.org', baseUrl: '/manual/',
  presets: [['classic', {docs: {routeBasePath: '/'}}]],
};
"""


def write_site(root: Path, config: str, name: str = "docusaurus.config.js") -> Path:
    """Write a site with an empty docs folder, and return the docs folder."""
    docs = root / "docs"
    docs.mkdir()
    (root / name).write_text(config, encoding="utf-8")
    return docs


def load(docs: Path, **changes: object) -> Settings:
    """Load the settings for a docs folder, without the environment's `.env`."""
    return load_settings(_env_file="", docs_dir=docs, **changes)


def settle(root: Path, config: str, name: str = "docusaurus.config.js") -> SiteSettings:
    """Return the site settings of a site with this configuration."""
    return settle_site(load(write_site(root, config, name))).site


READABLE = {
    "default export": CLASSIC,
    "module exports": CLASSIC.replace("export default", "module.exports ="),
    "constants, templates and comments": """
        // @ts-check
        const base = 'manual', url = `https://example.org`;
        /** @type {import('@docusaurus/types').Config} */
        const docs = {"routeBasePath": '/' /* the root */};
        const preset = [require.resolve('@docusaurus/preset-classic'), {docs, blog: false}];
        const config = {url, baseUrl: `/${base}/`, presets: [preset], ...{title: 'x'}};
        module.exports = config;""",
    "plugin": """
        export default {
          url: "https://example.org", baseUrl: "/manual", trailingSlash: undefined,
          presets: [['classic', {docs: false}]],
          plugins: [() => ({name: 'own'}), ['@docusaurus/plugin-content-docs', {id: 'api',
            path: 'api', routeBasePath: 'api'}], ['content-docs', {path: './docs/',
            routeBasePath: ''}]],
        };""",
}


@pytest.mark.parametrize("config", READABLE.values(), ids=READABLE)
def test_a_literal_configuration_is_read(tmp_path: Path, config: str) -> None:
    expected = SiteSettings("https://example.org/manual/", "", trailing_slash=None)
    assert settle(tmp_path, config) == expected


def test_typescript_and_every_value_are_read(tmp_path: Path) -> None:
    config = """
        import type {Config} from '@docusaurus/types';
        const config: Config = {
          url: 'https://example.org/', baseUrl: '/', trailingSlash: true,
          markdown: {format: 'detect'},
          presets: [['classic', {docs: {}} satisfies object]],
        };
        export default config;"""
    expected = SiteSettings(
        "https://example.org/", "docs", trailing_slash=True, markdown_format=MarkdownFormat.DETECT
    )
    assert settle(tmp_path, config, "docusaurus.config.ts") == expected


@pytest.mark.parametrize(("text", "slash"), [("true", True), ("false", False)])
def test_docusaurus_reads_a_text_as_a_trailing_slash(
    tmp_path: Path, text: str, *, slash: bool
) -> None:
    config = CLASSIC.replace("presets", f"trailingSlash: '{text}', presets")
    assert settle(tmp_path, config).trailing_slash is slash


UNREADABLE = {
    "computed url": (
        CLASSIC.replace("'https://example.org'", "process.env.URL || 'https://example.org'"),
        "SITE_BASE_URL: ",
        "`url` is computed in line 3",
    ),
    "computed slash": (
        CLASSIC.replace("presets", "trailingSlash: isProduction(), presets"),
        "SITE_TRAILING_SLASH: ",
        "`trailingSlash` is computed in line 4",
    ),
    "unknown spread": (
        CLASSIC.replace("};", "...shared };"),
        "SITE_BASE_URL, SITE_ROUTE_BASE_PATH",
        "(`...shared`)",
    ),
    "changed afterwards": (
        CLASSIC.replace("export default", "const config =")
        + "config.baseUrl = read();\nexport default config;",
        "SITE_BASE_URL: ",
        "`baseUrl` is computed in line 6",
    ),
    "variable": (
        CLASSIC.replace("export default", "let config =")
        + "config = change(config);\nexport default config;",
        "SITE_BASE_URL, SITE_ROUTE_BASE_PATH",
        "it exports no object literal",
    ),
    "function": (
        "export default async function create() { if (await ask()) return {}; return {}; }",
        "SITE_BASE_URL",
        "it exports no object literal",
    ),
    "syntax error": ("export default {url: ;", "SITE_BASE_URL", "line 1 is not valid JavaScript"),
    "no export": ("const config = {};", "SITE_BASE_URL", "neither `export default` nor"),
    "other folder": (
        CLASSIC.replace("routeBasePath", "path: 'guides', routeBasePath"),
        "SITE_ROUTE_BASE_PATH: ",
        "its docs plugin builds guides",
    ),
    "no docs": (CLASSIC.replace("{routeBasePath: '/'}", "false"), "SITE_ROUTE", "no docs plugin"),
    "wrong type": (CLASSIC.replace("'/manual/'", "5"), "SITE_BASE_URL: ", "unexpected value 5"),
}


@pytest.mark.parametrize(("config", "settings", "problem"), UNREADABLE.values(), ids=UNREADABLE)
def test_a_value_that_is_not_literal_stops_with_its_place(
    tmp_path: Path, config: str, settings: str, problem: str
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        settle(tmp_path, config)
    message = str(raised.value)
    assert message.startswith(settings)
    assert problem in message
    assert "docusaurus.config.js" in message


@pytest.mark.parametrize(
    ("options", "route"),
    [
        ("", "next"),
        ("routeBasePath: 'guide'", "guide/next"),
        ("lastVersion: 'current'", ""),
        ("lastVersion: '1.0'", "next"),
        ("versions: {current: {path: 'main'}}", "main"),
        ("versions: {current: {path: 'main'}}, lastVersion: 'current'", "main"),
        ("versions: {current: {label: 'Main'}}", "next"),
        ("onlyIncludeVersions: ['current']", ""),
        ("onlyIncludeVersions: ['current', '1.0']", "next"),
        ("disableVersioning: true", ""),
    ],
)
def test_a_site_with_versions_has_the_docs_folder_at_its_own_route(
    tmp_path: Path, options: str, route: str
) -> None:
    (tmp_path / "versions.json").write_text('["2.0", "1.0"]', encoding="utf-8")
    config = CLASSIC.replace("'/'}", f"'/', {options}}}")
    assert settle(tmp_path, config).route_base_path == route


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("includeCurrentVersion: false", "publishes only released versions"),
        ("onlyIncludeVersions: ['2.0']", "publishes only released versions"),
        ("lastVersion: read()", r"`lastVersion` is computed in line 4 \(`read\(\)`\)"),
        ("versions: {current: {path: read()}}", r"`versions\.current\.path` is computed"),
        ("versions: {...shared}", r"`versions\.current\.path` is computed"),
    ],
)
def test_a_site_whose_versions_are_not_known_is_not_guessed(
    tmp_path: Path, options: str, problem: str
) -> None:
    (tmp_path / "versions.json").write_text('["2.0", "1.0"]', encoding="utf-8")
    with pytest.raises(ConfigurationError, match=problem):
        settle(tmp_path, CLASSIC.replace("'/'}", f"'/', {options}}}"))


@pytest.mark.parametrize("text", ["", "{", '{"1.0": true}', '"1.0"', "[1.0]"])
def test_a_damaged_list_of_versions_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "versions.json").write_text(text, encoding="utf-8")
    match = r"versions\.json: it is not a list of version names.* Correct the file"
    with pytest.raises(ConfigurationError, match=match):
        settle(tmp_path, CLASSIC)


def test_settings_always_win_and_replace_unreadable_values(tmp_path: Path) -> None:
    docs = write_site(tmp_path, CLASSIC.replace("'https://example.org'", "process.env.URL"))
    settled = settle_site(load(docs, site_base_url="/mine/", site_trailing_slash=True))
    assert settled.site == SiteSettings("/mine/", "", trailing_slash=True)


def test_without_a_configuration_the_address_must_be_set(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.md").write_text("# A\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"no docusaurus\.config file near"):
        settle_site(load(docs))
    assert settle_site(load(docs, site_base_url="/x")).site == SiteSettings("/x/")


def test_a_site_beside_the_docs_folder_is_found(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (tmp_path / "website").mkdir()
    path = tmp_path / "website" / "docusaurus.config.mjs"
    path.write_text(CLASSIC.replace("routeBasePath", "path: '../docs', routeBasePath"))
    assert find_config(docs) == path
    assert settle_site(load(docs)).site.base_url == "https://example.org/manual/"


def test_an_address_of_this_machine_is_no_guess_for_the_site(tmp_path: Path) -> None:
    computed = "process.env.URL ?? 'http://localhost:3000'"
    docs = write_site(tmp_path, CLASSIC.replace("'https://example.org'", computed))
    config = read_config(tmp_path / "docusaurus.config.js", docs)
    assert config.values[0].origin is Origin.UNKNOWN


def test_the_textbook_of_this_repository_needs_no_settings() -> None:
    assert settle_site(load(OWN_DOCS_DIR)).site == OWN_SITE
    config = read_config(OWN_DOCS_DIR.parent / "docusaurus.config.ts", OWN_DOCS_DIR)
    assert urlsplit(config.site.base_url).path == OWN_SITE.base_url
    assert config.site.route_base_path == OWN_SITE.route_base_path
    assert config.site.trailing_slash == OWN_SITE.trailing_slash
    assert config.site.markdown_format == OWN_SITE.markdown_format
