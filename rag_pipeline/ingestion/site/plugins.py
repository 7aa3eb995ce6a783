"""The docs, blog and pages plugins of a site's configuration, with their options and versions."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.site.addresses import PagePatterns, make_patterns
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
    from collections.abc import Iterable, Iterator

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


def list_versions(plugin_id: str, options: ObjectLiteral, site_dir: Path) -> list[DocsVersion]:
    """Return the versions that an instance of the docs plugin publishes, the newest first.

    Args:
        plugin_id: The `id` of the instance.
        options: Its options.
        site_dir: The folder of the site.

    Raises:
        ValueError: They are not known. The message is a clause that says why.
        ConfigurationError: The file that lists them is damaged.
    """
    names = _list_version_names(plugin_id, options, site_dir)
    released = next((name for name in names if name != CURRENT), CURRENT)
    last = str(take_value("lastVersion", options.get("lastVersion")) or released)
    given = take_value("versions", options.get("versions"))
    versions = []
    for name in names:
        own = get_property(given, name)
        label, path = get_property(own, "label"), get_property(own, "path")
        path = take_value(f"versions.{name}.path", path)
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


def find_version_dir(plugin_id: str, name: str, docs_dir: Path, config: Path) -> Path:
    """Return the folder of a version; `config` is the configuration of the site.

    Raises:
        ConfigurationError: It is missing, or outside the root of the site.
    """
    folder, site_dir = docs_dir, config.parent
    if name != CURRENT:
        folder = site_dir / f"{prefix_of(plugin_id)}versioned_docs" / f"version-{name}"
    check_inside(folder, config)
    if folder.is_dir():
        return folder
    if name == CURRENT:
        problem = f"the docs plugin `{plugin_id}` has the folder {folder}, which is missing"
        raise ConfigurationError(str(config), problem, "Create the folder, or correct `path`")
    file = _find_versions_file(plugin_id, site_dir)
    problem = f"it lists the version {name}, but its folder {folder} is missing"
    remedy = "Restore the folder, or remove the version from the file"
    raise ConfigurationError(str(file), problem, remedy)


def _find_versions_file(plugin_id: str, site_dir: Path) -> Path:
    return site_dir / f"{prefix_of(plugin_id)}versions.json"


def prefix_of(plugin_id: str) -> str:
    """Return the start of the names of an instance's folders and files of versions."""
    return "" if plugin_id == DEFAULT_ID else f"{plugin_id}_"


def _list_version_names(plugin_id: str, options: ObjectLiteral, site_dir: Path) -> list[str]:
    """Return the names of the published versions.

    Raises:
        ConfigurationError: The file that lists them is damaged.
    """

    def take(name: str) -> Literal:
        return take_value(name, options.get(name))

    file = _find_versions_file(plugin_id, site_dir)
    names: list[str] = []
    if file.is_file() and take("disableVersioning") is not True:
        names = _read_names(file)
    if take("includeCurrentVersion") is not False and CURRENT not in names:
        names.insert(0, CURRENT)
    only = options.get("onlyIncludeVersions")
    return [name for name in names if name in only] if isinstance(only, list) else names


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


_PRESET: Final = "a preset"
API_PRESET: Final = "redocusaurus"
"""The preset that shows OpenAPI documents; each document is an instance of a plugin."""

LEFT_OUT: Final = "Left out:"

_CLASSIC: Final = {"classic", "@docusaurus/classic", "@docusaurus/preset-classic"}


Options: TypeAlias = ObjectLiteral | Computed | str
"""The options of a plugin, or a clause that says why they are not known."""


class _Defaults(NamedTuple):
    """The name of a plugin, and its default options."""

    plugin: str
    path: str
    route_base_path: str


_DEFAULTS: Final = {
    SourceKind.DOCS: _Defaults("content-docs", "docs", "docs"),
    SourceKind.BLOG: _Defaults("content-blog", "blog", "blog"),
    SourceKind.PAGES: _Defaults("content-pages", "src/pages", "/"),
}


@dataclass(frozen=True, slots=True)
class ContentPlugin:
    """An instance of a plugin that builds pages from Markdown files.

    Attributes:
        kind: The plugin.
        plugin_id: Its `id`; `default` if the configuration gives none.
        folder: Its `path`, relative to the folder of the site.
        options: All its options.
    """

    kind: SourceKind
    plugin_id: str
    folder: ConfigValue
    options: ObjectLiteral

    def find_dir(self, site_dir: Path) -> Path:
        """Return the folder of the instance, which may be missing or outside the site."""
        return Path(os.path.normpath(site_dir / str(self.folder.value)))

    @property
    def base_route(self) -> ConfigValue:
        """`routeBasePath`, without the path of a version."""
        name = "routeBasePath"
        default = _DEFAULTS[self.kind].route_base_path
        return read_value(name, self.options.get(name), is_text, default)

    def read_route(self, site_dir: Path) -> ConfigValue:
        """Return the route of the docs folder: `routeBasePath`, and the path of its version."""
        base = self.base_route
        try:
            versions = list_versions(self.plugin_id, self.options, site_dir)
        except ValueError as error:
            return ConfigValue(base.name, None, Origin.UNKNOWN, str(error))
        current = next((version for version in versions if version.name == CURRENT), None)
        if current is None:
            problem = "the site publishes only released versions and not the docs folder"
            return ConfigValue(base.name, None, Origin.UNKNOWN, problem)
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


def list_plugins(config: ObjectLiteral, kind: SourceKind) -> PluginList:
    """Return the instances of a plugin with a known folder, and which may be missing."""
    found = PluginList([], [])
    for what, options in _list_options(config, kind):
        if isinstance(options, str | Computed):
            why = options if isinstance(options, str) else f"it {options.problem}"
            found.left_out.append((what, why))
            continue
        folder = read_value("path", options.get("path"), is_text, _DEFAULTS[kind].path)
        if not folder.origin.is_certain:
            found.left_out.append((f"the folder of {what}", folder.problem))
            continue
        plugin_id = options.get("id")
        name = plugin_id if isinstance(plugin_id, str) else DEFAULT_ID
        found.plugins.append(ContentPlugin(kind, name, folder, options))
    return found


def list_other_plugins(config: ObjectLiteral) -> Iterator[str]:
    """Yield each plugin that is not Docusaurus's own and may build pages.

    It is a function in the configuration itself, or it has a route of pages.
    """
    known = {name for kind in _DEFAULTS for name in _list_names(kind)}
    for entry in _list_entries(config, "plugins"):
        head = _find_head(entry)
        if isinstance(head, FunctionLiteral):
            yield f"the function in {head.place}"
        plugin, options = split_entry(entry)
        route = get_property(options, "routeBasePath")
        if isinstance(plugin, str) and plugin not in known and isinstance(route, str):
            yield f"{plugin} with the route {route}"


def read_route(config: ObjectLiteral, site_dir: Path, docs_dir: Path) -> ConfigValue:
    """Return `routeBasePath` of the instance of the docs plugin that builds the docs folder."""
    found = list_plugins(config, SourceKind.DOCS)
    for plugin in found.plugins:
        if plugin.find_dir(site_dir).resolve() == docs_dir.resolve():
            return plugin.read_route(site_dir)
    if found.problem:
        problem = found.problem
    elif found.plugins:
        folders = ", ".join(str(plugin.folder.value) for plugin in found.plugins)
        problem = f"its docs plugin builds {folders} and not {docs_dir}"
    else:
        problem = "it has no docs plugin"
    return ConfigValue("routeBasePath", None, Origin.UNKNOWN, problem)


def _list_names(kind: SourceKind) -> set[str]:
    short = _DEFAULTS[kind].plugin
    return {short, f"@docusaurus/{short}", f"@docusaurus/plugin-{short}"}


def _list_options(config: ObjectLiteral, kind: SourceKind) -> Iterator[tuple[str, Options]]:
    """Yield what each instance of a plugin is, and its options or why they are not known."""
    for place, what, wanted in (
        ("presets", _PRESET, _CLASSIC),
        ("plugins", "a plugin", _list_names(kind)),
    ):
        if isinstance(entries := config.get(place), Computed):
            yield f"`{place}`", entries
        for entry in _list_entries(config, place):
            # A function is a plugin of the site itself, which is not one of Docusaurus's.
            if isinstance(_find_head(entry), FunctionLiteral):
                continue
            plugin, options = split_entry(entry)
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


def _list_entries(config: ObjectLiteral, place: str) -> list[Literal]:
    entries = config.get(place)
    return entries if isinstance(entries, list) else []


def _find_head(entry: Literal) -> Literal:
    """Return the plugin of an entry, which may be a list of the plugin and its options."""
    return entry[0] if isinstance(entry, list) and entry else entry


def split_entry(entry: Literal) -> tuple[str | Computed, Literal]:
    """Return the plugin of an entry, and its options; an empty name if the entry is left out."""
    plugin, options = (*entry, None, None)[:2] if isinstance(entry, list) else (entry, None)
    return (plugin, options) if isinstance(plugin, str | Computed) else ("", None)


class PageOptions(NamedTuple):
    """The options of a plugin for its pages.

    Attributes:
        include: Patterns of the files that become pages; None for Docusaurus's default.
        exclude: Patterns of files and folders that do not; None for Docusaurus's default.
        number_prefixes: True if numbers that only order files are no part of addresses.
    """

    include: tuple[str, ...] | None
    exclude: tuple[str, ...] | None
    number_prefixes: bool

    @property
    def patterns(self) -> PagePatterns:
        """The files that become pages."""
        return make_patterns(self.include, self.exclude)


def read_page_options(plugin: ContentPlugin) -> PageOptions:
    """Return the options of a plugin. An option that is not known has its default value."""
    numbers = plugin.options.get("numberPrefixParser")
    include, exclude = (_read_patterns(plugin, name)[0] for name in ("include", "exclude"))
    return PageOptions(include, exclude, number_prefixes=numbers is not False)


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
        found = take_value(option, plugin.options.get(option))
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
_DEFAULT_FOLDER: Final = "openapi"
_DEFAULT_ROUTE: Final = "/api"


def list_api_specs(
    config: ObjectLiteral, site_dir: Path, docs_dir: Path, notes: list[str]
) -> Iterator[Source]:
    """Yield a source for each OpenAPI document with a page.

    Args:
        config: The configuration of the site.
        site_dir: Folder of the site.
        docs_dir: The docs folder of the site.
        notes: Receives a sentence about each document that is left out.

    Source:
        redocusaurus 2.5: the preset names documents, or a folder with them.
    """
    root = find_root(site_dir)
    taken: set[str] = set()
    for stated in _list_specs(config, site_dir, notes):
        try:
            spec, route = (_read_text(stated, name) for name in ("spec", "route"))
        except ValueError as error:
            notes.append(describe_left_out("an OpenAPI document", str(error)))
            continue
        if not spec or not route:
            continue  # without a route, the document has no page
        path = Path(os.path.normpath(site_dir / spec))
        if _REMOTE.match(spec) or not path.is_file() or not is_inside(path, root):
            why = "it is not a file of the site"
            notes.append(describe_left_out(f"the OpenAPI document {spec}", why))
            continue
        name = _name_source(path.stem, taken)
        yield Source(
            name=name,
            folder=path.parent,
            prefix=f"@site/{name}/" if (docs_dir / name).exists() else f"{name}/",
            kind=SourceKind.API,
            route_base_path=route.strip("/"),
            include=(path.name,),
        )


def _list_specs(config: ObjectLiteral, site_dir: Path, notes: list[str]) -> Iterator[ObjectLiteral]:
    """Yield the options of each instance of the plugin."""
    for place in ("presets", "plugins"):
        for entry in _list_entries(config, place):
            plugin, options = split_entry(entry)
            if plugin in _PLUGINS and isinstance(options, ObjectLiteral):
                yield options
            elif plugin == API_PRESET:
                yield from _read_preset(options, site_dir, notes)


def _read_preset(options: Literal, site_dir: Path, notes: list[str]) -> Iterator[ObjectLiteral]:
    try:
        specs = take_value("specs", get_property(options, "specs"))
        folder = take_value("openapi", get_property(options, "openapi"))
        entries = specs if isinstance(specs, list) else [specs]
        listed = [entry for entry in entries if isinstance(entry, ObjectLiteral)]
        yield from listed
        if not listed or isinstance(folder, ObjectLiteral):
            yield from _read_folder(folder, site_dir)
    except ValueError as error:
        notes.append(describe_left_out("OpenAPI documents", str(error)))


def _read_folder(options: Literal, site_dir: Path) -> Iterator[ObjectLiteral]:
    """Yield the options of the documents in the folder that the preset searches."""
    known = options if isinstance(options, ObjectLiteral) else ObjectLiteral()
    folder = site_dir / (_read_text(known, "path") or _DEFAULT_FOLDER)
    route = _read_text(known, "routeBasePath")
    base = (_DEFAULT_ROUTE if route is None else route).rstrip("/")
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
    found = take_value(name, options.get(name))
    return found if isinstance(found, str) else None


def _name_source(stem: str, taken: set[str]) -> str:
    """Return a name for a document that no other document has."""
    first = re.sub(r"[^\w.-]+", "-", stem.removesuffix(".openapi")) or "api"
    name, number = first, 1
    while name in taken:
        number += 1
        name = f"{first}-{number}"
    taken.add(name)
    return name


def describe_left_out(what: str, why: str) -> str:
    """Return a note about a part of the site whose pages are not indexed."""
    return f"{LEFT_OUT} {what}, because {why}. Add it to [[sources]] in rag-pipeline.toml."
