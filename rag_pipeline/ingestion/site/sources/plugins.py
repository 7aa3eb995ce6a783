"""The instances of the docs, blog and pages plugins that a site's configuration declares."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from rag_pipeline.core.sources import SourceKind
from rag_pipeline.ingestion.site.config_values import (
    ConfigValue,
    Origin,
    get_property,
    is_text,
    read_value,
)
from rag_pipeline.ingestion.site.js_literals import Computed, ObjectLiteral
from rag_pipeline.ingestion.site.sources.versions import CURRENT, list_versions

if TYPE_CHECKING:
    from collections.abc import Iterator

DEFAULT_ID: Final = "default"

_CLASSIC: Final = {"classic", "@docusaurus/classic", "@docusaurus/preset-classic"}


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
        """Return the folder of the instance."""
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
        if not current.path or base.value is None:
            return base
        origin = Origin.READ if base.is_certain else base.origin
        return replace(base, value=join_route(base, current.path), origin=origin)


def join_route(base: ConfigValue, path: str) -> str:
    """Return the path of a version below `routeBasePath`, without outer slashes."""
    return "/".join(part for part in (str(base.value).strip("/"), path.strip("/")) if part)


def list_plugins(config: ObjectLiteral, kind: SourceKind) -> tuple[list[ContentPlugin], str]:
    """Return the instances of a plugin with a known folder, and why there may be more.

    The clause is empty if the configuration states all instances literally.
    """
    plugins, unclear = [], ""
    for options in _list_options(config, kind):
        if isinstance(options, Computed):
            unclear = unclear or f"is computed in line {options.line} (`{options.source}`)"
            continue
        folder = read_value("path", options.get("path"), is_text, _DEFAULTS[kind].path)
        if not folder.is_certain:
            unclear = unclear or folder.problem.replace("`path` ", "", 1)
            continue
        plugin_id = options.get("id")
        name = plugin_id if isinstance(plugin_id, str) else DEFAULT_ID
        plugins.append(ContentPlugin(kind, name, folder, options))
    return plugins, unclear


def read_route(config: ObjectLiteral, site_dir: Path, docs_dir: Path) -> ConfigValue:
    """Return `routeBasePath` of the instance of the docs plugin that builds the docs folder."""
    plugins, unclear = list_plugins(config, SourceKind.DOCS)
    for plugin in plugins:
        if plugin.find_dir(site_dir).resolve() == docs_dir.resolve():
            return plugin.read_route(site_dir)
    if unclear:
        problem = f"the part of the docs plugin that names the docs folder {unclear}"
    elif plugins:
        folders = ", ".join(str(plugin.folder.value) for plugin in plugins)
        problem = f"its docs plugin builds {folders} and not {docs_dir}"
    else:
        problem = "it has no docs plugin"
    return ConfigValue("routeBasePath", None, Origin.UNKNOWN, problem)


def _list_options(config: ObjectLiteral, kind: SourceKind) -> Iterator[ObjectLiteral | Computed]:
    """Yield the options of each instance of a plugin, or the part that is not literal."""
    short = _DEFAULTS[kind].plugin
    names = {short, f"@docusaurus/{short}", f"@docusaurus/plugin-{short}"}
    for place, wanted in (("presets", _CLASSIC), ("plugins", names)):
        entries = config.get(place)
        for entry in entries if isinstance(entries, list) else [entries]:
            plugin, options = entry, None
            if isinstance(entry, list):
                plugin, options = (*entry, None, None)[:2]
            if isinstance(plugin, Computed):
                yield plugin
            elif plugin in wanted:
                found = get_property(options, kind.value) if place == "presets" else options
                if found is not False:
                    yield found if isinstance(found, (ObjectLiteral, Computed)) else ObjectLiteral()
