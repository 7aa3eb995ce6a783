"""The rules of Docusaurus for page addresses: of docs, blog posts and pages, and of links.

The rules follow the source code of Docusaurus 3.10.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urljoin

from rag_pipeline.core.site.docusaurus import (
    MARKDOWN_SUFFIXES,
    find_page_path,
    find_site_path,
    is_doc_name,
    join_permalink,
)
from rag_pipeline.core.sources import Source, SourceKind, find_place

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from wcmatch.glob import WcMatcher

    from rag_pipeline.core.models import SiteSettings


_BRACKET: Final = re.compile(r"([\[\]\\])")
_UNSAFE: Final = re.compile(r"[()<>\s\\\x00-\x1f\x7f]")


def escape_label(text: str) -> str:
    """Return a plain text as the label of a link: its brackets and backslashes are escaped."""
    return _BRACKET.sub(r"\\\1", text)


def encode_target(address: str) -> str:
    r"""Return an address as the target of a link.

    White space and the characters `()<>\` would end the link, so they are percent-encoded. The
    other characters stay, so an encoded address is not changed again.
    """
    return _UNSAFE.sub(lambda found: quote(found[0], safe=""), address)


_INCLUDE: Final = ("**/*.{md,mdx}",)
_EXCLUDE: Final = ("**/_*.{md,mdx}", "**/_*/**", "**/__tests__/**")
"""The defaults of Docusaurus 3.10, as far as they concern Markdown files."""

_MAGIC: Final = re.compile(r"[*?\[\](){}!+@]")
_JOINED_STARS: Final = re.compile(r"\*\*(?=[^*/(])")


class PagePatterns:
    """The files of a folder that become pages.

    Patterns are those of fast-glob, which Docusaurus uses. They concern paths below the folder.
    Files and folders whose names start with `.` never become pages.

    Args:
        include: Patterns of files that become pages; None for all Markdown files.
        exclude: Patterns of files and folders that do not; None for those whose names start with
            `_`. Patterns replace this default.

    Raises:
        ValueError: A pattern has more than 1,000 alternatives. The message is a clause.
    """

    def __init__(
        self, include: Sequence[str] | None = None, exclude: Sequence[str] | None = None
    ) -> None:
        self._has_default_exclude = exclude is None
        self._has_defaults = include is None and exclude is None
        if self._has_defaults:
            return
        included = _INCLUDE if include is None else include
        wanted = [_normalize(one) for one in included if not one.startswith("!")]
        left_out = [_normalize(one[1:]) for one in included if one.startswith("!")]
        for pattern in _EXCLUDE if exclude is None else exclude:
            is_group = pattern.startswith("!(")
            left_out.append(_normalize(pattern if is_group else pattern.removeprefix("!")))
        self._exact = frozenset(wanted)
        below = [f"{one}/**" for one in wanted if not _MAGIC.search(one)]
        left_out = _expand(left_out)
        self._include = _compile(_expand((*wanted, *below)), dots=False)
        self._exclude = _compile(left_out, dots=True)
        self._left_out_folders = _compile(filter(_can_be_folder, left_out), dots=True)

    def reads_folder(self, name: str) -> bool:
        """Return True if a folder with this name can contain pages."""
        return not name.startswith(("_", ".") if self._has_default_exclude else ".")

    def builds(self, place: str) -> bool:
        """Return True if a file becomes a page.

        Args:
            place: Path below the folder, with `/` between its parts.
        """
        name = place.rpartition("/")[2]
        if self._has_defaults:
            return is_doc_name(name)
        if not name.endswith(MARKDOWN_SUFFIXES) or name.startswith("."):
            return False
        if not (place in self._exact or _matches(self._include, place)):
            return False
        ends = (at for at, character in enumerate(place) if character == "/")
        return not _matches(self._exclude, place) and not any(
            _matches(self._left_out_folders, place[:end]) for end in ends
        )


@lru_cache(maxsize=64)
def make_patterns(include: tuple[str, ...] | None, exclude: tuple[str, ...] | None) -> PagePatterns:
    """Return the patterns of a source. They are compiled once."""
    return PagePatterns(include, exclude)


def _normalize(pattern: str) -> str:
    """Return a pattern as fast-glob reads it: `**.md` also finds files in folders."""
    while pattern.startswith("./"):
        pattern = pattern[2:]
    return f"**/{pattern[1:]}" if _JOINED_STARS.match(pattern) else pattern


def _expand(patterns: Sequence[str]) -> list[str]:
    """Return all alternatives of patterns such as `{a,b}.md`."""
    from bracex import ExpansionLimitException, expand  # noqa: PLC0415  # few sites have patterns

    try:
        return [one for pattern in patterns for one in expand(pattern, keep_escapes=True)]
    except ExpansionLimitException:
        raise ValueError("a pattern has more than 1,000 alternatives") from None


def _can_be_folder(pattern: str) -> bool:
    """Return True if the pattern of a folder leaves out all files in it: its name has no `*`."""
    return not _MAGIC.search(pattern.rpartition("/")[2])


def _compile(patterns: Iterable[str], *, dots: bool) -> WcMatcher[str] | None:
    from wcmatch import glob  # noqa: PLC0415  # few sites have patterns

    flags = glob.GLOBSTAR | glob.EXTGLOB | glob.FORCEUNIX | (glob.DOTGLOB if dots else 0)
    kept = list(patterns)
    return glob.compile(kept, flags=flags, limit=0) if kept else None


def _matches(matcher: WcMatcher[str] | None, path: str) -> bool:
    return matcher is not None and bool(matcher.match(path))


_FIELDS: Final = {field.name: field for field in fields(Source)}
_PATTERNS: Final = ("include", "exclude")
_FOLDERS: Final = ("folder", "fallback")


def _name_form(name: str, value: object) -> str:
    """Return the form that a value of an entry must have; empty if it has this form."""
    if isinstance(_FIELDS[name].default, bool):
        return "" if isinstance(value, bool) else "true or false"
    if name not in _PATTERNS:
        return "" if isinstance(value, str) else "a text"
    is_list = isinstance(value, list | tuple) and all(isinstance(one, str) for one in value)
    return "" if is_list else "a list of texts"


@dataclass(frozen=True, slots=True)
class RecordedSite:
    """The site for which the links of all indexed documents were built.

    Attributes:
        site: The settings of the site.
        sources: The sources of the book, with folders relative to the docs folder. Empty if there
            is only the docs folder.
    """

    site: SiteSettings
    sources: tuple[Source, ...] = ()


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
            raise ValueError(f"it is not valid JSON ({error})") from None
    if not isinstance(value, list | tuple):
        raise ValueError("it is not a list of sources")  # noqa: TRY004  # pydantic reports only a ValueError
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


def place_entries(entries: object, folder: Path) -> object:
    """Return the entries of a settings file with their folders joined to the file's folder.

    The ids of documents then still begin with the folder as the file writes it.
    """
    if not isinstance(entries, list):
        return entries
    return [_place_entry(entry, folder) for entry in entries]


def describe_source(source: Source, base: Path | str) -> dict[str, str | bool | list[str]]:
    """Return a source as an entry that `read_sources` accepts, without its default values.

    Its folders are relative to the folder `base`.
    """
    entry: dict[str, str | bool | list[str]] = {}
    for name, field in _FIELDS.items():
        value = getattr(source, name)
        if name in _FOLDERS and value is not None:
            value = Path(os.path.relpath(value, base)).as_posix()
        if value != field.default:
            plain = value if isinstance(value, bool) else str(value)
            entry[name] = [*value] if isinstance(value, tuple) else plain
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
        raise ValueError(f"{place} {problem}")
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
        raise ValueError(f"{place}: in `include` or `exclude`, {error}") from None
    return Source(**values)


def _find_problems(entry: dict[str, object]) -> Iterator[str]:
    """Yield a clause for each part of an entry that is wrong, the most basic one first."""
    for name in sorted(entry.keys() - _FIELDS):
        yield f"has the unknown key `{name}`. The keys are {', '.join(_FIELDS)}"
    for name in ("folder", "name"):
        if not entry.get(name):
            yield f"lacks `{name}`"
    for name, value in entry.items():
        wanted = _name_form(name, value)
        if wanted:
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


_DATED: Final = re.compile(
    r"(?P<folder>.*)(?P<date>[0-9]{4}[-/][0-9]{1,2}[-/][0-9]{1,2})[-/]?(?P<text>.*?)"
    r"(?:/index)?.mdx?"
)
_POST_END: Final = re.compile(r"(?:/index)?\.mdx?$")
_INDEX_PAGE: Final = re.compile(r"(^|.*/)index\.mdx?", re.IGNORECASE)
_PAGE_END: Final = re.compile(r"\.mdx?$")


def locate_source(site: SiteSettings, source: Source | None) -> SiteSettings:
    """Return the settings for the addresses of a source's pages from those of the site."""
    if source is None:
        return site
    base_url = urljoin(site.base_url, source.base_url)
    return replace(site, base_url=base_url, route_base_path=source.route_base_path)


def find_source_at(sources: Iterable[Source], url: str, site: SiteSettings) -> Source | None:
    """Return the source of the page at an address: the one with the longest route above the page.

    Args:
        sources: The sources of the site.
        url: The address. It can have a query and an anchor.
        site: Base URL of the site.
    """
    path = find_site_path(url.partition("#")[0].partition("?")[0], site)
    if path is None:
        return None
    routes: dict[Source, str] = {}
    for source in sources:
        located = locate_source(site, source)
        route = find_site_path(join_permalink(located, ""), site)
        if route is not None and f"{path}/".startswith(f"{route}/" if route else ""):
            routes[source] = route
    return max(routes, key=lambda source: len(routes[source]), default=None)


def build_doc_permalink(
    doc_id: str,
    site: SiteSettings,
    source: Source | None,
    *,
    front_matter_id: str = "",
    slug: str = "",
    strip_numbers: bool = True,
) -> str:
    """Return the address of a document of any source, percent-encoded.

    Args:
        doc_id: Id of the document.
        site: Settings of the site.
        source: The document's source, if the site has several.
        front_matter_id: Value of `id` in the front matter; may be empty.
        slug: Value of `slug` in the front matter; may be empty.
        strip_numbers: Value of `parse_number_prefixes` in the front matter. A source can keep
            numbers in all its addresses.

    Source:
        blogUtils.js of @docusaurus/plugin-content-blog, and urlUtils.js of @docusaurus/utils.
    """
    place, located = find_place(source, doc_id), locate_source(site, source)
    if source is None or source.kind is SourceKind.DOCS:
        strip_numbers = strip_numbers and (source is None or source.number_prefixes)
        slug = find_page_path(place, front_matter_id, slug, strip_numbers=strip_numbers)
    elif source.kind is SourceKind.API:  # its only page is at its route
        slug = ""
    elif not slug:
        index = _INDEX_PAGE.fullmatch(place)
        slug = index[1] if index else _PAGE_END.sub("", place)
        if source.kind is SourceKind.BLOG:
            dated = _DATED.fullmatch(place)
            slug = _POST_END.sub("", place)
            if dated is not None:
                slug = f"{dated['date'].replace('-', '/')}/{dated['folder']}{dated['text']}"
    return join_permalink(located, slug)


def name_post(place: str) -> str:
    """Return the name of a blog post's file, without date and extension: its title if it has none.

    For a post without a date, the name includes its folders.
    """
    dated = _DATED.fullmatch(place)
    return dated["text"] if dated else _POST_END.sub("", place)
