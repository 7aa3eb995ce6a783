"""Sources as entries of a settings file or of the environment variable SOURCES."""

from __future__ import annotations

import json
import os
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rag_pipeline.core.site.page_patterns import make_patterns
from rag_pipeline.core.sources import Source, SourceKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rag_pipeline.core.models import SiteSettings

_FIELDS: Final = {field.name: field for field in fields(Source)}
_NEEDED: Final = {
    name for name, field in _FIELDS.items() if field.default is MISSING and name != "prefix"
}
_PATTERNS: Final = ("include", "exclude")
_FOLDERS: Final = ("folder", "fallback")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_flag(value: object) -> bool:
    return isinstance(value, bool)


def _is_text_list(value: object) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_text, value))


_FORMS: Final = (
    dict.fromkeys(_FIELDS, ("a text", _is_text))
    | dict.fromkeys(
        ("is_latest", "is_default_locale", "number_prefixes"), ("true or false", _is_flag)
    )
    | dict.fromkeys(_PATTERNS, ("a list of texts", _is_text_list))
)
"""The form of each value of an entry: its name in messages, and a check."""


@dataclass(frozen=True, slots=True)
class RecordedSite:
    """The site for which the links of all indexed documents were built.

    Attributes:
        site: The settings of the site.
        sources: The sources of the book, with folders relative to the docs folder. Empty if there
            is only the docs folder, and None if an earlier release wrote the record.
    """

    site: SiteSettings
    sources: tuple[Source, ...] | None = None


def read_sources(value: object) -> tuple[Source, ...] | None:
    """Return the sources that a setting states: as JSON, or as a list of mappings or sources.

    Relative folders are relative to the working directory.

    Returns:
        None if the setting is not set. An empty list says that there is only the docs folder.

    Raises:
        ValueError: The value is invalid. The message is a clause that says why.
    """
    if value is None or value == "":
        return None
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError as error:
            problem = f"it is not valid JSON ({error})"
            raise ValueError(problem) from None
    if not isinstance(value, list | tuple):
        problem = "it is not a list of sources"
        raise ValueError(problem)  # noqa: TRY004  # pydantic reports only a ValueError
    sources = tuple(
        entry if isinstance(entry, Source) else _read_entry(entry, number)
        for number, entry in enumerate(value, start=1)
    )
    _check_collisions(sources)
    return sources


def relate_sources(sources: Iterable[Source], base: Path) -> tuple[Source, ...]:
    """Return sources whose folders are relative to a folder, so that both can be moved."""

    def relate(folder: Path) -> Path:
        return Path(os.path.relpath(folder, base))

    return tuple(
        replace(
            source,
            folder=relate(source.folder),
            fallback=relate(source.fallback) if source.fallback else None,
        )
        for source in sources
    )


def dump_sources(sources: Iterable[Source]) -> list[dict[str, str | bool | list[str]]]:
    """Return sources as a list for JSON that `read_sources` accepts."""
    return [
        {
            name: _write_value(value)
            for name in _FIELDS
            if (value := getattr(source, name)) is not None
        }
        for source in sources
    ]


def place_entries(entries: object, folder: Path) -> object:
    """Return the entries of a settings file with their folders joined to the file's folder.

    The ids of documents then still begin with the folder as the file writes it.
    """
    if not isinstance(entries, list):
        return entries
    return [_place_entry(entry, folder) for entry in entries]


def describe_source(source: Source, base: Path) -> dict[str, str | bool | list[str]]:
    """Return a source as an entry of a settings file in `base`, without its default values."""
    entry: dict[str, str | bool | list[str]] = {}
    for name, field in _FIELDS.items():
        value = getattr(source, name)
        if name in _FOLDERS and value is not None:
            value = Path(os.path.relpath(value, base)).as_posix()
        if value != field.default:
            entry[name] = _write_value(value)
    if source.prefix == _choose_prefix(str(entry["folder"])):
        del entry["prefix"]
    return entry


def _write_value(value: object) -> str | bool | list[str]:
    """Return a value of a source as JSON and TOML can hold it."""
    if isinstance(value, tuple):
        return list(value)
    return value if isinstance(value, bool) else str(value)


def _choose_prefix(folder: str) -> str | None:
    """Return the start of document ids for a folder: its path, if it lies below the site."""
    path = Path(os.path.normpath(folder))
    if path.is_absolute() or path.parts[:1] in {("..",), ()}:
        return None
    return path.as_posix() + "/"


def _place_entry(entry: object, folder: Path) -> object:
    if not isinstance(entry, dict):
        return entry
    placed = dict(entry)
    own = placed.get("folder")
    if isinstance(own, str) and "prefix" not in placed and _choose_prefix(own):
        placed["prefix"] = _choose_prefix(own)
    for name in _FOLDERS:
        if isinstance(placed.get(name), str):
            placed[name] = str(folder / os.path.expanduser(placed[name]))  # noqa: PTH111  # never fails
    return placed


def _read_entry(entry: object, number: int) -> Source:
    """Return the source of one entry.

    Raises:
        ValueError: The entry is invalid.
    """
    shown = entry.get("name") if isinstance(entry, dict) else None
    place = f"the source {shown}" if isinstance(shown, str) else f"source {number}"
    problem = "is not a mapping"
    if isinstance(entry, dict):
        problem = next(_find_problems(entry), "")
    if problem or not isinstance(entry, dict):
        message = f"{place} {problem}"
        raise ValueError(message)
    values: dict[str, Any] = dict(entry)
    values.setdefault("prefix", _choose_prefix(values["folder"]))
    values["route_base_path"] = values.get("route_base_path", "").strip("/")
    values["kind"] = SourceKind(values.get("kind", SourceKind.DOCS))
    for name in _FOLDERS:
        if values.get(name) is not None:
            values[name] = Path(os.path.normpath(values[name]))
    for name in _PATTERNS:
        if values.get(name) is not None:
            values[name] = tuple(values[name])
    try:
        make_patterns(values.get("include"), values.get("exclude"))
    except ValueError as error:
        message = f"{place}: in `include` or `exclude`, {error}"
        raise ValueError(message) from None
    return Source(**values)


def _find_problems(entry: dict[str, object]) -> Iterator[str]:
    """Yield a clause for each part of an entry that is wrong, the most basic one first."""
    for name in sorted(entry.keys() - _FIELDS):
        yield f"has the unknown key `{name}`. The keys are {', '.join(_FIELDS)}"
    for name in sorted(_NEEDED):
        if not entry.get(name):
            yield f"lacks `{name}`"
    for name, value in entry.items():
        wanted, is_right = _FORMS[name]
        if not is_right(value):
            yield f"has the value {value!r:.40} for `{name}`, which is not {wanted}"
    if entry.get("kind", "docs") not in set(SourceKind):
        yield f"has the kind {entry['kind']!r:.40}. It is {', '.join(SourceKind)}"
    prefix = entry.get("prefix", _choose_prefix(str(entry["folder"])))
    if prefix is None:
        yield (
            f"has the folder {entry['folder']}, which is outside the site. Give it a `prefix` for "
            f'the ids of its documents, such as prefix = "{entry["name"]}/"'
        )
    elif prefix and not str(prefix).endswith("/"):
        yield f'has a prefix without a slash at its end. Write prefix = "{prefix}/"'


def _check_collisions(sources: Iterable[Source]) -> None:
    """Check that no two sources have the same name, document ids or addresses.

    Raises:
        ValueError: Two have.
    """
    known: dict[tuple[object, ...], Source] = {}
    for source in sources:
        address = (source.base_url, source.route_base_path)
        checks: list[tuple[tuple[object, ...], str, str]] = [
            (("name", str(source)), "the same name", "Give one of them another `name`"),
            (("ids", source.prefix), "the same `prefix`", "Give one of them another `prefix`"),
        ]
        if source.kind is SourceKind.DOCS:
            remedy = "Give one of them another `routeBasePath` or version path on the site"
            checks.append((("address", *address), f"the same address /{''.join(address)}", remedy))
        for key, what, remedy in checks:
            other = known.setdefault(key, source)
            if other is not source:
                problem = f"the sources {other} ({other.folder}) and {source} ({source.folder}) "
                raise ValueError(f"{problem}have {what}. {remedy}")
