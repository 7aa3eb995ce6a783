"""Find the OpenAPI documents that a site shows with Redocusaurus, and the address of each page."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.site.files import find_root, is_inside
from rag_pipeline.core.sources import Source, SourceKind
from rag_pipeline.ingestion.site.config_values import get_property, take_value
from rag_pipeline.ingestion.site.literals import ObjectLiteral
from rag_pipeline.ingestion.site.sources.plugins import API_PRESET, split_entry

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rag_pipeline.ingestion.site.literals import Literal

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
            notes.append(_describe_left_out("an OpenAPI document", str(error)))
            continue
        if not spec or not route:
            continue  # without a route, the document has no page
        path = Path(os.path.normpath(site_dir / spec))
        if _REMOTE.match(spec) or not path.is_file() or not is_inside(path, root):
            why = "it is not a file of the site"
            notes.append(_describe_left_out(f"the OpenAPI document {spec}", why))
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
        entries = config.get(place)
        for entry in entries if isinstance(entries, list) else ():
            plugin, options = split_entry(entry)
            if plugin in _PLUGINS and isinstance(options, ObjectLiteral):
                yield options
            elif plugin == API_PRESET:
                yield from _read_preset(options, site_dir, notes)


def _read_preset(options: Literal, site_dir: Path, notes: list[str]) -> Iterator[ObjectLiteral]:
    try:
        specs = take_value("specs", get_property(options, "specs"), [])
        folder = take_value("openapi", get_property(options, "openapi"), [])
        entries = specs if isinstance(specs, list) else [specs]
        listed = [entry for entry in entries if isinstance(entry, ObjectLiteral)]
        yield from listed
        if not listed or isinstance(folder, ObjectLiteral):
            yield from _read_folder(folder, site_dir)
    except ValueError as error:
        notes.append(_describe_left_out("OpenAPI documents", str(error)))


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
    found = take_value(name, options.get(name), [])
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


def _describe_left_out(what: str, why: str) -> str:
    return f"Left out: {what}, because {why}. Add it to [[sources]] in rag-pipeline.toml."
