"""The instances of the docs plugin that a site's configuration declares."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rag_pipeline.ingestion.site.config_values import (
    ConfigValue,
    Origin,
    get_property,
    is_text,
    read_value,
)
from rag_pipeline.ingestion.site.js_literals import Computed, ObjectLiteral

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS_PLUGIN: Final = "@docusaurus/plugin-content-docs"

_CLASSIC: Final = {"classic", "@docusaurus/classic", "@docusaurus/preset-classic"}
_SHORT_NAMES: Final = {"content-docs", "@docusaurus/content-docs", DOCS_PLUGIN}


@dataclass(frozen=True, slots=True)
class DocsPlugin:
    """An instance of the docs plugin.

    Attributes:
        plugin_id: Its `id`; `default` if the configuration gives none.
        folder: Its `path`, relative to the folder of the site.
        options: All its options.
    """

    plugin_id: str
    folder: ConfigValue
    options: ObjectLiteral

    def find_docs_dir(self, site_dir: Path) -> Path:
        """Return the docs folder of the instance."""
        return Path(os.path.normpath(site_dir / str(self.folder.value)))

    def read_route(self, site_dir: Path) -> ConfigValue:
        """Return `routeBasePath`, under which the site publishes the docs folder."""
        name = "routeBasePath"
        if problem := self._find_version_problem(site_dir):
            return ConfigValue(name, None, Origin.UNKNOWN, problem)
        return read_value(name, self.options.get(name), is_text, "docs")

    def _find_version_problem(self, site_dir: Path) -> str:
        """Return a clause if the docs folder is not the version at the plugin's own route.

        `versions.json` lists released versions. Docusaurus then gives the docs folder another
        route, unless `lastVersion` is `current`.
        """
        prefix = "" if self.plugin_id == "default" else f"{self.plugin_id}_"
        if not (site_dir / f"{prefix}versions.json").is_file():
            return ""
        options = self.options
        if options.get("lastVersion") == "current" and options.get("versions") is None:
            return ""
        return f"{prefix}versions.json lists other versions, so the docs folder has another route"


def list_docs_plugins(config: ObjectLiteral) -> tuple[list[DocsPlugin], str]:
    """Return the instances of the docs plugin with a known folder, and why there may be more.

    The clause is empty if the configuration states all instances literally.
    """
    plugins, unclear = [], ""
    for options in _list_options(config):
        if isinstance(options, Computed):
            unclear = unclear or f"is computed in line {options.line} (`{options.source}`)"
            continue
        folder = read_value("path", options.get("path"), is_text, "docs")
        if not folder.is_certain:
            unclear = unclear or folder.problem.replace("`path` ", "", 1)
            continue
        plugin_id = options.get("id")
        name = plugin_id if isinstance(plugin_id, str) else "default"
        plugins.append(DocsPlugin(name, folder, options))
    return plugins, unclear


def read_route(config: ObjectLiteral, site_dir: Path, docs_dir: Path) -> ConfigValue:
    """Return `routeBasePath` of the instance of the docs plugin that builds the docs folder."""
    plugins, unclear = list_docs_plugins(config)
    for plugin in plugins:
        if plugin.find_docs_dir(site_dir).resolve() == docs_dir.resolve():
            return plugin.read_route(site_dir)
    if unclear:
        problem = f"the part of the docs plugin that names the docs folder {unclear}"
    elif plugins:
        folders = ", ".join(str(plugin.folder.value) for plugin in plugins)
        problem = f"its docs plugin builds {folders} and not {docs_dir}"
    else:
        problem = "it has no docs plugin"
    return ConfigValue("routeBasePath", None, Origin.UNKNOWN, problem)


def _list_options(config: ObjectLiteral) -> Iterator[ObjectLiteral | Computed]:
    """Yield the options of each instance of the docs plugin, or the part that is not literal."""
    for kind, names in (("presets", _CLASSIC), ("plugins", _SHORT_NAMES)):
        entries = config.get(kind)
        for entry in entries if isinstance(entries, list) else [entries]:
            plugin, options = entry, None
            if isinstance(entry, list):
                plugin, options = (*entry, None, None)[:2]
            if isinstance(plugin, Computed):
                yield plugin
            elif plugin in names:
                found = get_property(options, "docs") if kind == "presets" else options
                if found is not False:
                    yield found if isinstance(found, (ObjectLiteral, Computed)) else ObjectLiteral()
