"""The sources of a book: the folders of a site whose Markdown files become pages.

A site with one docs folder needs none. A site with several docs folders, versions, locales, a blog
or Markdown pages has one source for each of them.
"""

from __future__ import annotations

import json
import os
from dataclasses import MISSING, dataclass, fields
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rag_pipeline.core.editions import DEFAULT_EDITION, Edition

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


class SourceKind(StrEnum):
    """The part of Docusaurus that builds the pages of a source, and thus their addresses."""

    DOCS = "docs"
    BLOG = "blog"
    PAGES = "pages"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A folder of a site whose Markdown files become pages.

    Attributes:
        name: Name of the part of the site, such as `docs`, `api` or `blog`. All versions and
            locales of one part have the same name.
        folder: The folder.
        prefix: Start of the ids of its documents: empty, or a path that ends with `/`.
        kind: The rules for the addresses of its pages.
        fallback: Folder of the same part in the default locale. It decides which pages exist, and
            its file is used if `folder` has no file with the same path.
        route_base_path: Path of its pages below the base URL, with the path of the version and
            without outer slashes.
        base_url: Base URL of its locale, relative to that of the site, such as `fr/`.
        version: Name of the docs version, such as `2.0` or `current`; None without versions.
        version_label: Name of the version for readers.
        is_latest: True if readers get this version unless they choose another.
        locale: The locale, such as `fr`; None if the site has only one.
        is_default_locale: True if readers get this locale unless they choose another.
    """

    name: str
    folder: Path
    prefix: str
    kind: SourceKind = SourceKind.DOCS
    fallback: Path | None = None
    route_base_path: str = ""
    base_url: str = ""
    version: str | None = None
    version_label: str | None = None
    is_latest: bool = True
    locale: str | None = None
    is_default_locale: bool = True

    def __str__(self) -> str:
        """Return the name with version and locale, such as `docs@2.0:fr`."""
        version = f"@{self.version}" if self.version else ""
        return self.name + version + (f":{self.locale}" if self.locale else "")

    @property
    def meaning(self) -> tuple[object, ...]:
        """The values that change addresses or payloads of documents. Paths of folders do not."""
        left_out = {"folder", "fallback", "prefix"}
        return tuple(
            getattr(self, field.name) for field in fields(self) if field.name not in left_out
        )


_FIELDS: Final = {field.name: field for field in fields(Source)}
_NEEDED: Final = {
    name for name, field in _FIELDS.items() if field.default is MISSING and name != "prefix"
}
_FLAGS: Final = {"is_latest", "is_default_locale"}
_FOLDERS: Final = ("folder", "fallback")


def find_source(sources: Sequence[Source], doc_id: str) -> Source | None:
    """Return the source of a document; None if no source has such documents.

    Of several sources, it is the one with the longest prefix.
    """
    found = [source for source in sources if doc_id.startswith(source.prefix)]
    return max(found, key=lambda source: len(source.prefix), default=None)


def find_place(source: Source | None, doc_id: str) -> str:
    """Return the path of a document below the folder of its source, or below the docs folder."""
    return doc_id.removeprefix(source.prefix) if source else doc_id


def find_edition(source: Source | None, doc_id: str) -> Edition:
    """Return the edition of a document: the source, version and locale that readers know."""
    if source is None:
        return DEFAULT_EDITION
    has_others = source.version is not None or source.locale is not None
    return Edition(
        source.name,
        source.version,
        source.version_label,
        source.is_latest,
        source.locale,
        source.is_default_locale,
        find_place(source, doc_id) if has_others else None,
    )


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


def place_entries(entries: object, folder: Path) -> object:
    """Return the entries of a settings file with their folders joined to the file's folder.

    The ids of documents then still begin with the folder as the file writes it.
    """
    if not isinstance(entries, list):
        return entries
    return [_place_entry(entry, folder) for entry in entries]


def describe_source(source: Source, base: Path) -> dict[str, str | bool]:
    """Return a source as an entry of a settings file in `base`, without its default values."""
    entry: dict[str, str | bool] = {}
    for name, field in _FIELDS.items():
        value = getattr(source, name)
        if name in _FOLDERS and value is not None:
            value = Path(os.path.relpath(value, base)).as_posix()
        if value != field.default:
            entry[name] = value if isinstance(value, bool) else str(value)
    if source.prefix == _choose_prefix(str(entry["folder"])):
        del entry["prefix"]
    return entry


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
    return Source(**values)


def _find_problems(entry: dict[str, object]) -> Iterator[str]:
    """Yield a clause for each part of an entry that is wrong, the most basic one first."""
    for name in sorted(entry.keys() - _FIELDS):
        yield f"has the unknown key `{name}`. The keys are {', '.join(_FIELDS)}"
    for name in sorted(_NEEDED):
        if not entry.get(name):
            yield f"lacks `{name}`"
    for name, value in entry.items():
        if not isinstance(value, bool if name in _FLAGS else str):
            wanted = "true or false" if name in _FLAGS else "a text"
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
