"""The versions of the docs that an instance of the docs plugin publishes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.site.files import find_root, is_inside, read_site_file
from rag_pipeline.ingestion.site.literals import get_property, take_value

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.ingestion.site.literals import Literal, ObjectLiteral

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


def list_versions(
    plugin_id: str, options: ObjectLiteral, site_dir: Path, guesses: list[str]
) -> list[DocsVersion]:
    """Return the versions that an instance of the docs plugin publishes, the newest first.

    Args:
        plugin_id: The `id` of the instance.
        options: Its options.
        site_dir: The folder of the site.
        guesses: Receives a clause for each option that is a guess.

    Raises:
        ValueError: They are not known. The message is a clause that says why.
        ConfigurationError: The file that lists them is damaged.
    """
    names = _list_names(plugin_id, options, site_dir, guesses)
    released = next((name for name in names if name != CURRENT), CURRENT)
    last = str(take_value("lastVersion", options.get("lastVersion"), guesses) or released)
    given = take_value("versions", options.get("versions"), guesses)
    versions = []
    for name in names:
        own = get_property(given, name)
        label, path = get_property(own, "label"), get_property(own, "path")
        path = take_value(f"versions.{name}.path", path, guesses)
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
        remedy = "Move the folder into the site, or name it yourself in DOCS_DIR or SOURCES"
        raise ConfigurationError(str(config), problem, remedy)


def find_version_dir(plugin_id: str, name: str, docs_dir: Path, config: Path) -> Path:
    """Return the folder of a version; `config` is the configuration of the site.

    Raises:
        ConfigurationError: It is missing, or outside the root of the site.
    """
    folder, site_dir = docs_dir, config.parent
    if name != CURRENT:
        folder = site_dir / f"{_prefix(plugin_id)}versioned_docs" / f"version-{name}"
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
    return site_dir / f"{_prefix(plugin_id)}versions.json"


def _prefix(plugin_id: str) -> str:
    return "" if plugin_id == DEFAULT_ID else f"{plugin_id}_"


def _list_names(
    plugin_id: str, options: ObjectLiteral, site_dir: Path, guesses: list[str]
) -> list[str]:
    """Return the names of the published versions.

    Raises:
        ConfigurationError: The file that lists them is damaged.
    """

    def take(name: str) -> Literal:
        return take_value(name, options.get(name), guesses)

    file = _find_versions_file(plugin_id, site_dir)
    names: list[str] = []
    if file.is_file() and take("disableVersioning") is not True:
        names = _read_names(file)
    if take("includeCurrentVersion") is not False and CURRENT not in names:
        names.insert(0, CURRENT)
    only = take("onlyIncludeVersions")
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
