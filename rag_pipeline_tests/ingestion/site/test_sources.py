"""Tests of the sources that are found in the configuration and the folders of a site."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.ingestion.site.detection import DetectedSite, detect_site
from rag_pipeline.ingestion.site.literals import Origin

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
    site = detect(write(tmp_path, docs(""), "docs/a.md"))
    assert site.sources == ()
    assert site.is_complete


def test_ids_do_not_collide_with_a_folder_of_the_docs(tmp_path: Path) -> None:
    site = detect(write(tmp_path, docs("", API), "docs/api/a.md", "api/a.md"))
    assert site.sources[1].prefix == "@site/api/"


def test_a_docs_folder_outside_the_site_has_its_name_before_the_ids(tmp_path: Path) -> None:
    root = tmp_path / "website"
    config = docs("", API.replace("path: 'api'", "path: '../reference'"))
    write(tmp_path, "", "reference/a.md")
    (tmp_path / ".git").mkdir()
    root.mkdir()
    assert detect(write(root, config, "docs/a.md")).sources[1].prefix == "api/"


def test_versions_have_the_paths_that_docusaurus_gives_them(tmp_path: Path) -> None:
    root = write(tmp_path, docs(""), "docs/a.md")
    release(root, "2.0", "1.0")
    site = detect(root)
    assert routes(site) == {"docs@current": "docs/next", "docs@2.0": "docs", "docs@1.0": "docs/1.0"}
    current, latest, old = site.sources
    assert (current.prefix, current.version_label, current.is_latest) == ("", "Next", False)
    assert latest.prefix == "versioned_docs/version-2.0/"
    assert (latest.version_label, latest.is_latest, old.is_latest) == ("2.0", True, False)
    assert site.config.site.route_base_path == "docs/next"


VERSIONS = {
    "a last version, a path and labels": (
        "versions: {current: {label: `${x}`, path: 'dev'}}, lastVersion: 'current'",
        {"docs@current": "docs/dev", "docs@2.0": "docs/2.0", "docs@1.0": "docs/1.0"},
    ),
    "only some versions": (
        "onlyIncludeVersions: ['current', '1.0']",
        {"docs@current": "docs/next", "docs@1.0": "docs"},
    ),
    "no current version": (
        "includeCurrentVersion: false",
        {"docs@2.0": "docs", "docs@1.0": "docs/1.0"},
    ),
    "versions turned off": ("disableVersioning: true", {}),
    "docs at the root of the site": (
        "routeBasePath: '/', onlyIncludeVersions: ['2.0', '1.0']",
        {"docs@2.0": "", "docs@1.0": "1.0"},
    ),
}


@pytest.mark.parametrize(("options", "expected"), VERSIONS.values(), ids=VERSIONS)
def test_options_of_the_docs_plugin_choose_versions_and_paths(
    tmp_path: Path, options: str, expected: dict[str, str]
) -> None:
    root = write(tmp_path, docs(options), "docs/a.md")
    release(root, "2.0", "1.0")
    site = detect(root)
    assert routes(site) == expected
    assert all(value.origin.is_certain for value in site.config.values)


def test_a_computed_choice_of_versions_is_taken_for_all_of_them(tmp_path: Path) -> None:
    options = "versions: {[all[0]]: {badge: false}}, onlyIncludeVersions: few ? ['2.0'] : undefined"
    root = write(tmp_path, docs(options), "docs/a.md")
    path = root / "docusaurus.config.js"
    path.write_text(f"import all from './versions.json'; {path.read_text(encoding='utf-8')}")
    release(root, "2.0", "1.0")
    site = detect(root)
    assert routes(site) == {"docs@current": "docs/next", "docs@2.0": "docs", "docs@1.0": "docs/1.0"}
    (route,) = (one for one in site.config.values if one.setting == "site_route_base_path")
    assert (route.value, route.origin) == ("docs/next", Origin.GUESS)
    (note,) = site.notes
    assert note.startswith("All versions of docs are read, because `onlyIncludeVersions` is ")


def test_another_docs_folder_has_versions_of_its_own(tmp_path: Path) -> None:
    root = write(tmp_path, docs("", API), "docs/a.md", "api/a.md")
    release(root, "3", prefix="api_")
    site = detect(root)
    assert routes(site) == {"docs": "docs", "api@current": "api/next", "api@3": "api"}
    assert site.sources[2].prefix == "api_versioned_docs/version-3/"
    assert site.sources[0].version is None


def test_a_version_without_a_folder_is_an_error(tmp_path: Path) -> None:
    root = write(tmp_path, docs(""), "docs/a.md")
    (root / "versions.json").write_text('["2.0"]', encoding="utf-8")
    match = r"versions\.json: it lists the version 2\.0, but its folder .* is missing\. Restore"
    with pytest.raises(ConfigurationError, match=match):
        detect(root)


def test_a_damaged_list_of_versions_leaves_no_version_out(tmp_path: Path) -> None:
    root = write(tmp_path, docs("", API), "docs/a.md", "api/a.md")
    (root / "api_versions.json").write_text('["2.0"', encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"api_versions\.json: it is not a list"):
        detect(root)


@pytest.mark.parametrize(
    ("plugins", "shown"),
    [
        ("function tidy() { return {}; }", "(the function in line 1)"),
        ("[async () => ({}), {a: 1}]", "(the function in line 1)"),
        ("() => null,\n() => null", "(the function in line 1, the function in line 2)"),
        ("['./blog', {routeBasePath: 'news'}]", "(./blog with the route news)"),
    ],
)
def test_plugins_that_may_build_pages_are_named(tmp_path: Path, plugins: str, shown: str) -> None:
    site = detect(write(tmp_path, docs("", f"plugins: [{plugins}]"), "docs/a.md"))
    (note,) = site.notes
    assert note.startswith(f"Not read: plugins of the site {shown}")
    assert "[[sources]]" in note
    assert site.is_complete


def test_versions_that_are_computed_are_left_out_with_a_note(tmp_path: Path) -> None:
    root = write(tmp_path, docs("lastVersion: find()"), "docs/a.md")
    release(root, "2.0")
    site = detect(root)
    assert site.sources == ()
    assert not site.is_complete
    (note,) = site.notes
    assert note.startswith("Left out: versions of docs, because `lastVersion` is computed in line")


def test_options_that_choose_files_and_number_prefixes_are_read(tmp_path: Path) -> None:
    config = docs("include: ['**/*.md'], exclude: ['old/**'], numberPrefixParser: false")
    site = detect(write(tmp_path, config, "docs/a.md"))
    (source,) = site.sources
    assert (source.include, source.exclude) == (("**/*.md",), ("old/**",))
    assert (source.prefix, source.number_prefixes, list(site.notes)) == ("", False, [])


def test_a_function_for_number_prefixes_is_noted(tmp_path: Path) -> None:
    config = docs("numberPrefixParser: (name) => ({filename: name})")
    site = detect(write(tmp_path, config, "docs/a.md"))
    (note,) = site.notes
    assert note.startswith("`numberPrefixParser` of docs is not read")
    assert "SITE_MANIFEST" in note
    assert site.sources == ()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("exclude: find()", "`exclude` is computed in line 1"),
        ("exclude: [find()]", "`exclude` is computed in line 1"),
        ("exclude: process.env.EXCLUDED || ['old/**']", "`exclude` is computed in line 1"),
        ("exclude: 'old/**'", "it is not a list of texts"),
        ("exclude: ['{1..5000}']", "a pattern has more"),
    ],
)
def test_patterns_that_are_not_known_are_noted(options: str, problem: str, tmp_path: Path) -> None:
    site = detect(write(tmp_path, docs(options), "docs/a.md"))
    (note,) = site.notes
    assert note.startswith(f"`exclude` of docs has its default value, because {problem}")
    assert site.sources == ()


TWO_LOCALES = "i18n: {defaultLocale: 'en', locales: ['en', 'fr']}"
FRENCH_DOCS = "i18n/fr/docusaurus-plugin-content-docs"


def test_each_locale_with_a_translation_has_all_sources(tmp_path: Path) -> None:
    root = write(tmp_path, docs("", f"{API}, {TWO_LOCALES}"), "docs/a.md", "api/a.md")
    release(root, "1.0")
    write_page(root / FRENCH_DOCS / "current" / "a.md")
    site = detect(root)
    names = ["docs@current", "docs@1.0", "api"]
    assert list(routes(site)) == [f"{name}:{code}" for code in ("en", "fr") for name in names]
    french = {str(source): source for source in site.sources}
    current, released, api = (french[f"{name}:fr"] for name in names)
    assert current.folder == root / FRENCH_DOCS / "current"
    assert current.prefix == f"{FRENCH_DOCS}/current/"
    assert (current.fallback, current.base_url) == (root / "docs", "fr/")
    assert not current.is_default_locale
    assert released.folder == root / FRENCH_DOCS / "version-1.0"
    assert released.fallback == root / "versioned_docs" / "version-1.0"
    assert api.folder == root / f"{FRENCH_DOCS}-api" / "current"
    assert french["docs@current:en"].is_default_locale


def test_a_locale_without_translations_is_left_out_with_a_note(tmp_path: Path) -> None:
    site = detect(write(tmp_path, docs("", TWO_LOCALES), "docs/a.md"))
    assert site.sources == ()
    (note,) = site.notes
    assert "i18n/fr" in note
    assert "`i18n.locales`" in note


def test_a_locale_can_have_a_folder_and_an_address_of_its_own(tmp_path: Path) -> None:
    locales = (
        "i18n: {defaultLocale: 'en', locales: ['en', 'fr', 'de'], path: 'texts', localeConfigs: "
        "{fr: {path: 'french', baseUrl: '/francais'}, de: {url: 'https://e.de'}}}"
    )
    root = write(tmp_path, docs("", locales), "docs/a.md")
    for folder in ("french", "de"):
        write_page(root / f"texts/{folder}/docusaurus-plugin-content-docs/current/a.md")
    _, french, german = detect(root).sources
    assert french.folder.is_relative_to(root / "texts" / "french")
    assert (french.base_url, german.base_url) == ("/francais/", "https://e.de/m/de/")


def test_texts_of_the_default_locale_can_replace_those_of_the_docs(tmp_path: Path) -> None:
    root = write(tmp_path, docs(""), "docs/a.md")
    write_page(root / "i18n/en/docusaurus-plugin-content-docs/current/a.md")
    (source,) = detect(root).sources
    assert (source.prefix, source.fallback, source.locale) == ("", root / "docs", None)


def test_a_blog_and_pages_are_sources_if_they_have_markdown_files(tmp_path: Path) -> None:
    root = write(tmp_path, docs(""), "docs/a.md", "src/pages/index.js", "blog/_draft.md")
    assert detect(root).sources == ()
    for path in ("src/pages/about.mdx", "blog/2024-01-02-post.md"):
        write_page(root / path)
    site = detect(root)
    assert routes(site) == {"docs": "docs", "blog": "blog", "pages": ""}
    assert [source.prefix for source in site.sources] == ["", "blog/", "src/pages/"]


def test_a_blog_can_be_turned_off_moved_or_repeated(tmp_path: Path) -> None:
    root = write(tmp_path, "presets: [['classic', {blog: false}]]", "docs/a.md", "blog/a.md")
    assert detect(root).sources == ()
    more = "plugins: [['content-blog', {id: 'news', path: 'news', routeBasePath: 'n'}]]"
    write(root, docs("", more).replace("docs: {}", "blog: {routeBasePath: '/'}"), "news/a.md")
    assert routes(detect(root)) == {"docs": "docs", "blog": "", "news": "n"}


def test_two_sources_with_the_same_address_are_an_error_that_names_both(tmp_path: Path) -> None:
    root = write(tmp_path, docs("", API.replace("'api'}", "'docs'}")), "docs/a.md", "api/a.md")
    match = r"sources docs \(.*docs\) and api \(.*api\) have the same address /docs\. Give one"
    with pytest.raises(ConfigurationError, match=match):
        detect(root)
