"""List the sources of a site: each docs folder, version, locale, blog and folder of pages.

They come from the docs, blog and pages plugins of its configuration, and their options.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, field, replace
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.site.addresses import make_patterns, read_sources
from rag_pipeline.core.site.files import find_root, is_inside, read_site_file
from rag_pipeline.core.sources import Source, SourceKind
from rag_pipeline.ingestion.site.literals import (
    Computed,
    ConfigValue,
    FunctionLiteral,
    ObjectLiteral,
    Origin,
    get_property,
    is_text,
    read_value,
    take_value,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rag_pipeline.ingestion.site.literals import Literal


CURRENT: Final = "current"
"""Docusaurus's name of the version in the docs folder itself."""

DEFAULT_ID: Final = "default"
"""Docusaurus's `id` of an instance of a plugin for which the configuration gives none."""


@dataclass(frozen=True, slots=True)
class DocsVersion:
    """A published version of the docs.

    Attributes:
        name: Its name, such as `2.0`, or `current` for the docs folder itself.
        label: Its name for readers.
        path: Its path below the route of the docs, without outer slashes.
        is_last: True if readers get this version unless they choose another.
    """

    name: str
    label: str
    path: str
    is_last: bool


def list_versions(plugin: ContentPlugin) -> list[DocsVersion]:
    """Return the versions that an instance of the docs plugin publishes, the newest first.

    Raises:
        ValueError: They are not known. The message is a clause that says why.
        ConfigurationError: The file that lists them is damaged.
    """
    options = plugin.options
    names: list[str] = []
    is_versioned = plugin.versions_file.is_file()
    if is_versioned and take_value(options, "disableVersioning") is not True:
        names = _read_names(plugin.versions_file)
    if take_value(options, "includeCurrentVersion") is not False and CURRENT not in names:
        names.insert(0, CURRENT)
    only = options.get("onlyIncludeVersions")
    names = [name for name in names if name in only] if isinstance(only, list) else names
    released = next((name for name in names if name != CURRENT), CURRENT)
    last = str(take_value(options, "lastVersion") or released)
    versions = []
    for name in names:
        label = get_property(get_property(take_value(options, "versions"), name), "label")
        path = take_value(options, "versions", name, "path")
        if not isinstance(path, str):
            path = "" if name == last else "next" if name == CURRENT else name
        if not isinstance(label, str):  # a label that is computed changes no address
            label = "Next" if name == CURRENT else name
        versions.append(DocsVersion(name, label, path.strip("/"), name == last))
    return versions


def check_inside(folder: Path, config: Path) -> None:
    """Check that a folder that a site names is inside the root of the site.

    Args:
        folder: The folder.
        config: The configuration of the site.

    Raises:
        ConfigurationError: It is outside, perhaps because of a link.
    """
    root = find_root(config.parent)
    if not is_inside(folder, root):
        problem = f"it names the folder {folder}, which is outside {root}"
        remedy = (
            "Move the folder into the site, or name it yourself in DOCS_DIR or SOURCES. If both "
            "are in one repository, read a clone of it, with its .git folder"
        )
        raise ConfigurationError(str(config), problem, remedy)


def find_version_dir(plugin: ContentPlugin, name: str) -> Path:
    """Return the folder of a version of an instance of the docs plugin.

    Raises:
        ConfigurationError: It is missing, or outside the root of the site.
    """
    folder, config = plugin.dir, plugin.config
    if name != CURRENT:
        versions = config.parent / f"{prefix_of(plugin.plugin_id)}versioned_docs"
        folder = versions / f"version-{name}"
    check_inside(folder, config)
    if folder.is_dir():
        return folder
    if name == CURRENT:
        problem = f"the docs plugin `{plugin.plugin_id}` has the folder {folder}, which is missing"
        raise ConfigurationError(str(config), problem, "Create the folder, or correct `path`")
    problem = f"it lists the version {name}, but its folder {folder} is missing"
    remedy = "Restore the folder, or remove the version from the file"
    raise ConfigurationError(str(plugin.versions_file), problem, remedy)


def prefix_of(plugin_id: str) -> str:
    """Return the start of the names of an instance's folders and files of versions."""
    return "" if plugin_id == DEFAULT_ID else f"{plugin_id}_"


def _read_names(file: Path) -> list[str]:
    """Return the names in `versions.json`.

    Raises:
        ConfigurationError: The file is damaged. Without its names, versions would be left out.
    """
    try:
        names = json.loads(read_site_file(file, find_root(file.parent)))
    except (OSError, ValueError, RecursionError):
        names = None
    if isinstance(names, list) and all(isinstance(name, str) for name in names):
        return names
    problem = 'it is not a list of version names, such as ["2.0", "1.0"]'
    raise ConfigurationError(str(file), problem, "Correct the file, or delete it")


API_PRESET: Final = "redocusaurus"
"""The preset that shows OpenAPI documents; each document is an instance of a plugin."""

LEFT_OUT: Final = "Left out:"

_CLASSIC: Final = {"classic", "@docusaurus/classic", "@docusaurus/preset-classic"}


Options: TypeAlias = ObjectLiteral | Computed | str
"""The options of a plugin, or a clause that says why they are not known."""


@dataclass(frozen=True, slots=True)
class ContentPlugin:
    """An instance of a plugin that builds pages from Markdown files.

    Attributes:
        kind: The plugin.
        plugin_id: Its `id`; `default` if the configuration gives none.
        folder: Its `path`, relative to the folder of the site.
        options: All its options.
        config: The configuration of the site.
    """

    kind: SourceKind
    plugin_id: str
    folder: ConfigValue
    options: ObjectLiteral
    config: Path

    @property
    def dir(self) -> Path:
        """The folder of the instance, which may be missing or outside the site."""
        return Path(os.path.normpath(self.config.parent / str(self.folder.value)))

    @property
    def versions_file(self) -> Path:
        """The file that lists the released versions of an instance of the docs plugin."""
        return self.config.parent / f"{prefix_of(self.plugin_id)}versions.json"

    @property
    def base_route(self) -> ConfigValue:
        """`routeBasePath`, without the path of a version."""
        name, default = "routeBasePath", "/" if self.kind is SourceKind.PAGES else self.kind.value
        return read_value(name, self.options.get(name), is_text, default)

    def read_route(self) -> ConfigValue:
        """Return the route of the docs folder: `routeBasePath`, and the path of its version."""
        base = self.base_route
        try:
            versions = list_versions(self)
        except ValueError as error:
            return ConfigValue(base.names, None, Origin.UNKNOWN, str(error))
        current = next((version for version in versions if version.name == CURRENT), None)
        if current is None:
            problem = "the site publishes only released versions and not the docs folder"
            return ConfigValue(base.names, None, Origin.UNKNOWN, problem)
        if base.value is None:
            return base
        if current.path:
            origin = Origin.READ if base.origin.is_certain else base.origin
            base = replace(base, value=join_route(base, current.path), origin=origin)
        only = self.options.get("onlyIncludeVersions")
        if isinstance(only, Computed):
            problem = f"`onlyIncludeVersions` {only.problem}"
            base = replace(base, origin=Origin.GUESS, problem=problem)
        return base


def join_route(base: ConfigValue, path: str) -> str:
    """Return the path of a version below `routeBasePath`, without outer slashes."""
    return "/".join(part for part in (str(base.value).strip("/"), path.strip("/")) if part)


@dataclass(frozen=True, slots=True)
class PluginList:
    """The instances of a plugin that are known.

    Attributes:
        plugins: The instances with a known folder.
        left_out: A part of the configuration that may declare more, and a clause that says why it
            is left out.
    """

    plugins: list[ContentPlugin]
    left_out: list[tuple[str, str]]

    @property
    def problem(self) -> str:
        """Why there may be more instances, as a clause; empty if all are stated literally."""
        return next((f"{what} is not known, because {why}" for what, why in self.left_out), "")


def list_plugins(config: ObjectLiteral, kind: SourceKind, path: Path) -> PluginList:
    """Return the instances of a plugin with a known folder, and which may be missing.

    Args:
        config: The configuration.
        kind: The plugin.
        path: The file of the configuration.
    """
    found = PluginList([], [])
    default = "src/pages" if kind is SourceKind.PAGES else kind.value
    for what, options in _list_options(config, kind):
        if isinstance(options, str | Computed):
            why = options if isinstance(options, str) else f"it {options.problem}"
            found.left_out.append((what, why))
            continue
        folder = read_value("path", options.get("path"), is_text, default)
        if not folder.origin.is_certain:
            found.left_out.append((f"the folder of {what}", folder.problem))
            continue
        plugin_id = options.get("id")
        name = plugin_id if isinstance(plugin_id, str) else DEFAULT_ID
        found.plugins.append(ContentPlugin(kind, name, folder, options, path))
    return found


def list_other_plugins(config: ObjectLiteral) -> Iterator[str]:
    """Yield each plugin that is not Docusaurus's own and may build pages.

    It is a function in the configuration itself, or it has a route of pages.
    """
    known = {name for kind in SourceKind for name in _list_names(kind)}
    for plugin, options in _list_entries(config, "plugins"):
        if isinstance(plugin, FunctionLiteral):
            yield f"the function in {plugin.place}"
        route = get_property(options, "routeBasePath")
        if isinstance(plugin, str) and plugin not in known and isinstance(route, str):
            yield f"{plugin} with the route {route}"


def read_route(config: ObjectLiteral, path: Path, docs_dir: Path) -> ConfigValue:
    """Return `routeBasePath` of the instance of the docs plugin that builds the docs folder.

    `path` is the file of the configuration.
    """
    found = list_plugins(config, SourceKind.DOCS, path)
    for plugin in found.plugins:
        if plugin.dir.resolve() == docs_dir.resolve():
            return plugin.read_route()
    problem = found.problem or "it has no docs plugin"
    if found.plugins and not found.problem:
        folders = ", ".join(str(plugin.folder.value) for plugin in found.plugins)
        problem = f"its docs plugin builds {folders} and not {docs_dir}"
    return ConfigValue(("routeBasePath",), None, Origin.UNKNOWN, problem)


def _list_names(kind: SourceKind) -> set[str]:
    short = f"content-{kind.value}"
    return {short, f"@docusaurus/{short}", f"@docusaurus/plugin-{short}"}


def _list_options(config: ObjectLiteral, kind: SourceKind) -> Iterator[tuple[str, Options]]:
    """Yield what each instance of a plugin is, and its options or why they are not known."""
    for place, what, wanted in (
        ("presets", "a preset", _CLASSIC),
        ("plugins", "a plugin", _list_names(kind)),
    ):
        if isinstance(entries := config.get(place), Computed):
            yield f"`{place}`", entries
        for plugin, options in _list_entries(config, place):
            # A function is a plugin of the site itself, which is not one of Docusaurus's.
            if isinstance(plugin, FunctionLiteral):
                continue
            if isinstance(plugin, Computed):
                yield what, plugin
            elif plugin in wanted:
                found = get_property(options, kind.value) if place == "presets" else options
                if isinstance(found, ObjectLiteral | Computed):
                    yield f"the {kind} plugin", found
                elif found is not False:
                    yield f"the {kind} plugin", ObjectLiteral()
            elif place == "presets" and plugin and plugin != API_PRESET:
                yield what, f"{plugin} is not Docusaurus's own"


def _list_entries(config: ObjectLiteral, place: str) -> Iterator[tuple[str | Computed, Literal]]:
    """Yield each plugin, and its options; an empty name for an entry that is left out."""
    entries = config.get(place)
    for entry in entries if isinstance(entries, list) else ():
        plugin, options = (*entry, None, None)[:2] if isinstance(entry, list) else (entry, None)
        yield (plugin, options) if isinstance(plugin, str | Computed) else ("", None)


def read_page_options(plugin: ContentPlugin) -> dict[str, Any]:
    """Return the attributes of a source that the options of a plugin for its pages decide.

    An option that is not known has its default value.
    """
    numbers = plugin.options.get("numberPrefixParser")
    patterns = {name: _read_patterns(plugin, name)[0] for name in ("include", "exclude")}
    return {**patterns, "number_prefixes": numbers is not False}


def note_unread_options(plugin: ContentPlugin, name: str) -> Iterable[str]:
    """Yield a note about each option that is not known.

    Args:
        plugin: The plugin.
        name: Name of its source.
    """
    for option in ("include", "exclude"):
        problem = _read_patterns(plugin, option)[1]
        if problem:
            yield (
                f"`{option}` of {name} has its default value, because {problem}. Check the number "
                "of pages, or write it in [[sources]] in rag-pipeline.toml."
            )
    only = plugin.options.get("onlyIncludeVersions")
    if isinstance(only, Computed):
        yield (
            f"All versions of {name} are read, because `onlyIncludeVersions` {only.problem}. "
            "Remove those that the site does not publish from [[sources]] in rag-pipeline.toml."
        )
    if plugin.options.get("numberPrefixParser") not in {None, True, False}:
        yield (
            f"`numberPrefixParser` of {name} is not read, so addresses may differ. Build the site "
            "with docusaurus-theme-robotutor, and set SITE_MANIFEST to its rag-manifest.json."
        )


def _read_patterns(plugin: ContentPlugin, option: str) -> tuple[tuple[str, ...] | None, str]:
    """Return the patterns of an option, or None and a clause that says why they are not known."""
    try:
        found = take_value(plugin.options, option)
        if found is None:
            return None, ""
        if not (isinstance(found, list) and all(isinstance(one, str) for one in found)):
            return None, "it is not a list of texts"
        patterns = tuple(map(str, found))
        make_patterns(patterns, None)
    except ValueError as error:
        return None, str(error)
    return patterns, ""


_PLUGINS: Final = {"docusaurus-plugin-redoc", "redocusaurus/plugin"}
_SPEC_FILE: Final = re.compile(r"(?:.+\.)?openapi\.(?:yaml|json)")
_ROUTE_END: Final = re.compile(r"(?:(?:^|/)index)?\.openapi\.(?:yaml|json)$")
_REMOTE: Final = re.compile(r"https?://")


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
    names, default, path = (
        take_value(config, "i18n", name) for name in ("locales", "defaultLocale", "path")
    )
    default, path = default or "en", path or "i18n"
    listed = names if isinstance(names, list) else []
    texts = [str(name) for name in (default, *listed)]
    locales = []
    for name in dict.fromkeys(texts):
        values = {
            key: take_value(config, "i18n", "localeConfigs", name, key)
            for key in ("path", "url", "baseUrl", "translate")
        }
        folder = site_dir / str(path) / str(values["path"] or name)
        base_url = "" if name == default else f"{name}/"
        if isinstance(values["baseUrl"], str):
            base_url = f"/{values['baseUrl'].strip('/')}/".replace("//", "/")
        if isinstance(values["url"], str):
            site_base = str(take_value(config, "baseUrl") or "/").strip("/")
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

    def has_pages(self, folder: Path | None) -> bool:
        """Return True if a folder exists and contains a file that can become a page."""
        options = read_page_options(self.plugin)
        patterns = make_patterns(options["include"], options["exclude"])
        for parent, folders, files in os.walk(folder or ""):
            place = Path(parent).relative_to(folder or "")
            if any(patterns.builds((place / name).as_posix()) for name in files):
                return True
            folders[:] = [name for name in folders if patterns.reads_folder(name)]
        return False


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
    docs_dir = docs_plugins[0].dir
    found = _SourceList(config, path, docs_dir)
    for plugin in docs_plugins[:1] if only else docs_plugins:
        found.add_docs(plugin)
    if not only:
        found.add_others()
    for part in {part.plugin.folder: part for part in found.parts}.values():
        found.notes += note_unread_options(part.plugin, part.name)
    sources = [
        found.make_source(part, locale) for locale in found.choose_locales() for part in found.parts
    ]
    if not only:
        sources += found.list_api_specs()
    if len(sources) == 1 and sources[0].folder == docs_dir and not sources[0].has_own_rules:
        return (), found.notes
    try:
        return read_sources(sources) or (), found.notes
    except ValueError as error:
        problem, _, remedy = str(error).partition(". ")
        raise ConfigurationError(str(path), problem, remedy) from None


@dataclass(slots=True)
class _SourceList:
    """The parts of a site, while they are listed.

    Attributes:
        config: The configuration.
        path: Its file.
        docs_dir: The docs folder, whose documents have ids without a prefix.
        notes: Sentences about parts of the site that are left out.
        parts: The folders of the default locale.
    """

    config: ObjectLiteral
    path: Path
    docs_dir: Path
    notes: list[str] = field(default_factory=list)
    parts: list[_Part] = field(default_factory=list)

    def leave_out(self, what: str, why: object) -> None:
        """Note that the pages of a part of the site are not indexed."""
        note = f"{LEFT_OUT} {what}, because {why}. Add it to [[sources]] in rag-pipeline.toml."
        self.notes += [] if note in self.notes else [note]

    def add_docs(self, plugin: ContentPlugin) -> None:
        """Add the versions of an instance of the docs plugin."""
        name = "docs" if plugin.plugin_id == DEFAULT_ID else plugin.plugin_id
        base = plugin.base_route
        if base.value is None:
            self.leave_out(name, base.problem)
            return
        try:
            versions = list_versions(plugin)
        except ValueError as error:
            self.leave_out(f"versions of {name}", error)
            versions = [DocsVersion(CURRENT, "", "", is_last=True)]
        is_versioned = [version.name for version in versions] != [CURRENT]
        for version in versions:
            folder, own = find_version_dir(plugin, version.name), version if is_versioned else None
            self.parts.append(_Part(plugin, name, folder, join_route(base, version.path), own))

    def add_others(self) -> None:
        """Add the blogs and folders of pages that contain a Markdown file, and note the rest."""
        lists = {
            kind: list_plugins(self.config, kind, self.path)
            for kind in (SourceKind.DOCS, SourceKind.BLOG, SourceKind.PAGES)
        }
        for kind in (SourceKind.BLOG, SourceKind.PAGES):
            taken = {part.name for part in self.parts}
            for plugin in lists[kind].plugins:
                check_inside(plugin.dir, self.path)
                name = kind.value if plugin.plugin_id == DEFAULT_ID else plugin.plugin_id
                name = f"{kind}-{name}" if name in taken else name
                part = _Part(plugin, name, plugin.dir, join_route(plugin.base_route, ""))
                if plugin.base_route.value is None:
                    self.leave_out(name, plugin.base_route.problem)
                elif part.has_pages(plugin.dir):
                    self.parts.append(part)
        for found in lists.values():
            for what, why in found.left_out:
                self.leave_out(what, why)
        if others := [*list_other_plugins(self.config)]:
            self.notes.append(
                f"Not read: plugins of the site ({', '.join(others)}). If they build pages of "
                "Markdown files, add the folders to [[sources]] in rag-pipeline.toml."
            )

    def choose_locales(self) -> list[Locale]:
        """Return the locales that have translations, the default locale first."""
        site_dir = self.path.parent
        try:
            default, *others = list_locales(self.config, site_dir)
        except ValueError as error:
            self.leave_out("locales", error)
            return [Locale("", None)]
        for locale in (default, *others):
            if locale.folder is not None:
                check_inside(locale.folder, self.path)
        translated = []
        for locale in others:
            if any(part.has_pages(part.find_translations(locale)) for part in self.parts):
                translated.append(locale)
            else:
                self.notes.append(
                    f"The locale {locale.name} has no translated page in "
                    f"{os.path.relpath(locale.folder or 'i18n', site_dir)}, so it is left out. "
                    "Translate a page, or remove it from `i18n.locales`."
                )
        return [default, *translated] if translated else [Locale("", default.folder)]

    def make_source(self, part: _Part, locale: Locale) -> Source:
        """Return the source of a part in a locale.

        Its document ids begin with its path below the site, or with its name if it is elsewhere.
        """
        folder, fallback = part.folder, None
        translations = part.find_translations(locale)
        if translations is not None and (not locale.is_default or translations.is_dir()):
            folder, fallback = translations, part.folder
        version, is_default = part.version, locale.is_default
        place = Path(os.path.relpath(part.folder if is_default else folder, self.path.parent))
        prefix = f"{part.name}/" if place.parts[:1] == ("..",) else f"{place.as_posix()}/"
        is_docs_dir = part.folder == self.docs_dir and is_default
        return Source(
            name=part.name,
            folder=folder,
            prefix="" if is_docs_dir else self.distinguish(prefix),
            kind=part.plugin.kind,
            fallback=fallback,
            route_base_path=part.route,
            base_url=locale.base_url,
            version=version.name if version else None,
            version_label=version.label if version else None,
            is_latest=version is None or version.is_last,
            locale=locale.name or None,
            is_default_locale=is_default,
            **read_page_options(part.plugin),
        )

    def distinguish(self, prefix: str) -> str:
        """Return a start of document ids that differs from those of folders of the docs folder."""
        return f"@site/{prefix}" if (self.docs_dir / prefix).exists() else prefix

    def list_api_specs(self) -> Iterator[Source]:
        """Yield a source for each OpenAPI document with a page.

        Source:
            redocusaurus 2.5: the preset names documents, or a folder with them.
        """
        site_dir = self.path.parent
        taken: set[str] = set()
        for stated in self.list_specs():
            try:
                spec, route = (_read_text(stated, name) for name in ("spec", "route"))
            except ValueError as error:
                self.leave_out("an OpenAPI document", error)
                continue
            if not spec or not route:
                continue  # without a route, the document has no page
            path = Path(os.path.normpath(site_dir / spec))
            is_inner = path.is_file() and is_inside(path, find_root(site_dir))
            if _REMOTE.match(spec) or not is_inner:
                self.leave_out(f"the OpenAPI document {spec}", "it is not a file of the site")
                continue
            stem = re.sub(r"[^\w.-]+", "-", path.stem.removesuffix(".openapi")) or "api"
            names = chain([stem], (f"{stem}-{number}" for number in count(2)))
            name = next(one for one in names if one not in taken)
            taken.add(name)
            yield Source(
                name=name,
                folder=path.parent,
                prefix=self.distinguish(f"{name}/"),
                kind=SourceKind.API,
                route_base_path=route.strip("/"),
                include=(path.name,),
            )

    def list_specs(self) -> Iterator[ObjectLiteral]:
        """Yield the options of each instance of the plugin, which names one document."""
        for place in ("presets", "plugins"):
            for plugin, options in _list_entries(self.config, place):
                if plugin in _PLUGINS and isinstance(options, ObjectLiteral):
                    yield options
                elif plugin == API_PRESET:
                    try:
                        yield from _read_preset(options, self.path.parent)
                    except ValueError as error:
                        self.leave_out("OpenAPI documents", error)


def _read_preset(options: Literal, site_dir: Path) -> Iterator[ObjectLiteral]:
    """Yield the documents that the preset names, or those in the folder that it searches.

    Raises:
        ValueError: They are computed. The message is a clause.
    """
    specs, stated = take_value(options, "specs"), take_value(options, "openapi")
    entries = specs if isinstance(specs, list) else [specs]
    listed = [entry for entry in entries if isinstance(entry, ObjectLiteral)]
    yield from listed
    if listed and not isinstance(stated, ObjectLiteral):
        return
    known = stated if isinstance(stated, ObjectLiteral) else ObjectLiteral()
    folder = site_dir / (_read_text(known, "path") or "openapi")
    route = _read_text(known, "routeBasePath")
    base = ("/api" if route is None else route).rstrip("/")
    for path in sorted(folder.rglob("*openapi.*")):
        place = path.relative_to(folder).as_posix()
        if _SPEC_FILE.fullmatch(path.name) and "node_modules" not in place:
            own = _ROUTE_END.sub("", place)
            yield ObjectLiteral({"spec": str(path), "route": f"{base}/{own}"})


def _read_text(options: ObjectLiteral, name: str) -> str | None:
    """Return an option that is a text; None if it is not given.

    Raises:
        ValueError: The option is computed. The message is a clause.
    """
    found = take_value(options, name)
    return found if isinstance(found, str) else None
