"""The instances of the docs plugin that a site's configuration declares."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
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

    from rag_pipeline.ingestion.site.js_literals import Literal

DOCS_PLUGIN: Final = "@docusaurus/plugin-content-docs"

_CURRENT: Final = "current"
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
        """Return the route of the docs folder: `routeBasePath`, and the path of its version."""
        name = "routeBasePath"
        base = read_value(name, self.options.get(name), is_text, "docs")
        try:
            version = self._find_version_path(site_dir)
        except ValueError as error:
            return ConfigValue(name, None, Origin.UNKNOWN, str(error))
        if not version or base.value is None:
            return base
        route = "/".join(part for part in (str(base.value).strip("/"), version.strip("/")) if part)
        origin = Origin.READ if base.is_certain else base.origin
        return replace(base, value=route, origin=origin)

    def _find_version_path(self, site_dir: Path) -> str:
        """Return the path of the version in the docs folder, below the plugin's own route.

        Docusaurus calls this version `current`. It is at the plugin's own route if the site has no
        released versions or if it is the last version, otherwise at `next`, unless the options give
        it another path.

        Raises:
            ValueError: The path is not known; the message is a clause that says why.
        """
        names = self._list_versions(site_dir)
        if _CURRENT not in names:
            problem = "the site publishes only released versions and not the docs folder"
            raise ValueError(problem)
        given = get_property(self._read("versions"), _CURRENT)
        path = _require_literal("versions.current.path", get_property(given, "path"))
        if isinstance(path, str):
            return path
        last = self._read("lastVersion") or next((one for one in names if one != _CURRENT), None)
        return "" if last in {None, _CURRENT} else "next"

    def _list_versions(self, site_dir: Path) -> list[object]:
        """Return the names of the published versions. The docs folder is the version `current`.

        Raises:
            ValueError: They are not known.
        """
        prefix = "" if self.plugin_id == "default" else f"{self.plugin_id}_"
        file = site_dir / f"{prefix}versions.json"
        names: list[object] = []
        if file.is_file() and self._read("disableVersioning") is not True:
            try:
                names = [*json.loads(file.read_bytes())]
            except (OSError, ValueError, TypeError):
                problem = f"{file.name} is not a list of versions"
                raise ValueError(problem) from None
        if self._read("includeCurrentVersion") is not False and _CURRENT not in names:
            names.insert(0, _CURRENT)
        only = self._read("onlyIncludeVersions")
        return [name for name in names if name in only] if isinstance(only, list) else names

    def _read(self, name: str) -> Literal:
        return _require_literal(name, self.options.get(name))


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


def _require_literal(name: str, found: Literal) -> Literal:
    """Return a value of the configuration.

    Raises:
        ValueError: The value is computed.
    """
    if isinstance(found, Computed):
        problem = f"`{name}` is computed in line {found.line} (`{found.source}`)"
        raise ValueError(problem)  # noqa: TRY004  # the type of the literal is not wrong
    return found


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
