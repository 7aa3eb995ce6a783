"""List the sources of a site: each docs folder, version, locale, blog and folder of pages."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.site.addresses import PagePatterns, read_sources
from rag_pipeline.core.sources import Source, SourceKind
from rag_pipeline.ingestion.site.literals import ObjectLiteral, get_property, take_value
from rag_pipeline.ingestion.site.plugins import (
    CURRENT,
    DEFAULT_ID,
    DocsVersion,
    check_inside,
    describe_left_out,
    find_version_dir,
    join_route,
    list_api_specs,
    list_other_plugins,
    list_plugins,
    list_versions,
    note_unread_options,
    read_page_options,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rag_pipeline.ingestion.site.plugins import ContentPlugin


@dataclass(frozen=True, slots=True)
class Locale:
    """A locale of a site.

    Attributes:
        name: Its name, such as `fr`; empty if the site has only one locale.
        folder: Folder of its translations; None if they are turned off.
        base_url: Its base URL, relative to that of the site.
        is_default: True for the default locale.
    """

    name: str
    folder: Path | None
    base_url: str = ""
    is_default: bool = True


def list_locales(config: ObjectLiteral, site_dir: Path) -> list[Locale]:
    """Return the locales of a site, the default one first.

    Raises:
        ValueError: They are not known. The message is a clause that says why.
    """
    i18n = take_value("i18n", config.get("i18n"))
    names, default, configs, path = (
        take_value(f"i18n.{name}", get_property(i18n, name))
        for name in ("locales", "defaultLocale", "localeConfigs", "path")
    )
    default, path = default or "en", path or "i18n"
    listed = names if isinstance(names, list) else []
    texts = [str(name) for name in (default, *listed)]
    locales = []
    for name in dict.fromkeys(texts):
        own = get_property(configs, name)
        values = {
            key: take_value(f"i18n.localeConfigs.{name}.{key}", get_property(own, key))
            for key in ("path", "url", "baseUrl", "translate")
        }
        folder = site_dir / str(path) / str(values["path"] or name)
        base_url = "" if name == default else f"{name}/"
        if isinstance(values["baseUrl"], str):
            base_url = f"/{values['baseUrl'].strip('/')}/".replace("//", "/")
        if isinstance(values["url"], str):
            site_base = str(take_value("baseUrl", config.get("baseUrl")) or "/").strip("/")
            inner = base_url if base_url.startswith("/") else f"{site_base}/{base_url}"
            base_url = f"{values['url'].rstrip('/')}/{inner.lstrip('/')}"
        translated = None if values["translate"] is False else folder
        locales.append(Locale(name, translated, base_url, name == default))
    return locales


@dataclass(frozen=True, slots=True)
class _Part:
    """A folder of the site in its default locale: one version of the docs, a blog or the pages."""

    plugin: ContentPlugin
    name: str
    folder: Path
    route: str
    version: DocsVersion | None = None

    def find_translations(self, locale: Locale) -> Path | None:
        """Return the folder of the translations of the part's files, whether it exists or not."""
        if locale.folder is None:
            return None
        own = "" if self.plugin.plugin_id == DEFAULT_ID else f"-{self.plugin.plugin_id}"
        folder = locale.folder / f"docusaurus-plugin-content-{self.plugin.kind}{own}"
        if self.plugin.kind is not SourceKind.DOCS:
            return folder
        version = self.version.name if self.version else CURRENT
        return folder / (CURRENT if version == CURRENT else f"version-{version}")


def list_sources(
    config: ObjectLiteral, path: Path, docs_plugins: Sequence[ContentPlugin], *, only: bool
) -> tuple[tuple[Source, ...], list[str]]:
    """Return the sources of a site, and sentences about parts of the site that are left out.

    The sources of the default locale come first. There are none if the site has only a docs folder.

    Args:
        config: The configuration.
        path: Its file.
        docs_plugins: The instances of the docs plugin. The docs folder of the first one gives its
            documents ids without a prefix.
        only: Leave out everything except the first instance of the docs plugin.

    Raises:
        ConfigurationError: A folder is missing, or two sources collide.
    """
    notes, site_dir = list[str](), path.parent
    parts: list[_Part] = []
    for plugin in docs_plugins[:1] if only else docs_plugins:
        parts += _list_docs(plugin, path, notes)
    if not only:
        for kind in (SourceKind.BLOG, SourceKind.PAGES):
            parts += _list_others(config, kind, path, parts, notes)
        notes += _note_other_plugins(config)
    for plugin, name in {part.plugin.folder: (part.plugin, part.name) for part in parts}.values():
        notes += note_unread_options(plugin, name)
    docs_dir = docs_plugins[0].find_dir(site_dir)
    sources = [
        _make_source(part, locale, docs_dir, site_dir)
        for locale in _choose_locales(config, path, parts, notes)
        for part in parts
    ]
    if not only:
        sources += list_api_specs(config, site_dir, docs_dir, notes)
    if len(sources) == 1 and sources[0].folder == docs_dir and not sources[0].has_own_rules:
        return (), notes
    try:
        return read_sources(sources) or (), notes
    except ValueError as error:
        problem, _, remedy = str(error).partition(". ")
        raise ConfigurationError(str(path), problem, remedy) from None


def _list_docs(plugin: ContentPlugin, path: Path, notes: list[str]) -> list[_Part]:
    """Return the versions of an instance of the docs plugin."""
    name = "docs" if plugin.plugin_id == DEFAULT_ID else plugin.plugin_id
    if plugin.base_route.value is None:
        notes.append(describe_left_out(name, plugin.base_route.problem))
        return []
    docs_dir = plugin.find_dir(path.parent)
    try:
        versions = list_versions(plugin.plugin_id, plugin.options, path.parent)
    except ValueError as error:
        notes.append(describe_left_out(f"versions of {name}", str(error)))
        versions = [DocsVersion(CURRENT, "", "", is_last=True)]
    is_versioned = [version.name for version in versions] != [CURRENT]
    return [
        _Part(
            plugin,
            name,
            find_version_dir(plugin.plugin_id, version.name, docs_dir, path),
            join_route(plugin.base_route, version.path),
            version if is_versioned else None,
        )
        for version in versions
    ]


def _list_others(
    config: ObjectLiteral,
    kind: SourceKind,
    config_file: Path,
    parts: Iterable[_Part],
    notes: list[str],
) -> list[_Part]:
    """Return the blogs, or the folders of pages, that contain a Markdown file."""
    taken, found, site_dir = {part.name for part in parts}, [], config_file.parent
    for plugin in list_plugins(config, kind).plugins:
        folder, name = plugin.find_dir(site_dir), plugin.plugin_id
        check_inside(folder, config_file)
        if name == DEFAULT_ID:
            name = kind.value
        if name in taken:
            name = f"{kind}-{name}"
        if plugin.base_route.value is None:
            notes.append(describe_left_out(name, plugin.base_route.problem))
        elif _has_pages(folder, read_page_options(plugin).patterns):
            found.append(_Part(plugin, name, folder, join_route(plugin.base_route, "")))
    return found


def _choose_locales(
    config: ObjectLiteral, config_file: Path, parts: Sequence[_Part], notes: list[str]
) -> list[Locale]:
    """Return the locales that have translations, the default locale first."""
    site_dir = config_file.parent
    try:
        default, *others = list_locales(config, site_dir)
    except ValueError as error:
        notes.append(describe_left_out("locales", str(error)))
        return [Locale("", None)]
    for locale in (default, *others):
        if locale.folder is not None:
            check_inside(locale.folder, config_file)
    translated = []
    for locale in others:
        if any(
            _has_pages(part.find_translations(locale), read_page_options(part.plugin).patterns)
            for part in parts
        ):
            translated.append(locale)
        else:
            notes.append(
                f"The locale {locale.name} has no translated page in "
                f"{os.path.relpath(locale.folder or 'i18n', site_dir)}, so it is left out. "
                "Translate a page, or remove it from `i18n.locales`."
            )
    if not translated:
        default = Locale("", default.folder)
    return [default, *translated]


def _make_source(part: _Part, locale: Locale, docs_dir: Path, site_dir: Path) -> Source:
    folder, fallback = part.folder, None
    translations = part.find_translations(locale)
    if translations is not None and (not locale.is_default or translations.is_dir()):
        folder, fallback = translations, part.folder
    version = part.version
    is_docs_dir = part.folder == docs_dir and locale.is_default
    own_folder = part.folder if locale.is_default else folder
    return Source(
        name=part.name,
        folder=folder,
        prefix="" if is_docs_dir else _choose_prefix(part.name, own_folder, docs_dir, site_dir),
        kind=part.plugin.kind,
        fallback=fallback,
        route_base_path=part.route,
        base_url=locale.base_url,
        version=version.name if version else None,
        version_label=version.label if version else None,
        is_latest=version is None or version.is_last,
        locale=locale.name or None,
        is_default_locale=locale.is_default,
        **read_page_options(part.plugin)._asdict(),
    )


def _choose_prefix(name: str, folder: Path, docs_dir: Path, site_dir: Path) -> str:
    """Return the start of document ids: the path below the site, or the name for other folders.

    If the docs folder has a folder with this path too, its documents would have the same ids.
    """
    place = Path(os.path.relpath(folder, site_dir))
    prefix = f"{name}/" if place.parts[:1] == ("..",) else f"{place.as_posix()}/"
    return f"@site/{prefix}" if (docs_dir / prefix).exists() else prefix


def _has_pages(folder: Path | None, patterns: PagePatterns) -> bool:
    """Return True if a folder exists and contains a file that can become a page."""
    for parent, folders, files in os.walk(folder or ""):
        place = Path(parent).relative_to(folder or "")
        if any(patterns.builds((place / name).as_posix()) for name in files):
            return True
        folders[:] = [name for name in folders if patterns.reads_folder(name)]
    return False


def _note_other_plugins(config: ObjectLiteral) -> Iterator[str]:
    """Yield a note about each plugin that is not known, and one about those that are not read."""
    lists = [list_plugins(config, kind) for kind in SourceKind if kind is not SourceKind.API]
    yield from dict.fromkeys(describe_left_out(*one) for found in lists for one in found.left_out)
    others = [*list_other_plugins(config)]
    if others:
        yield (
            f"Not read: plugins of the site ({', '.join(others)}). If they build pages of Markdown "
            "files, add the folders to [[sources]] in rag-pipeline.toml."
        )
