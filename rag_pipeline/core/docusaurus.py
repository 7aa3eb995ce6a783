"""Docusaurus rules for file names, page addresses and heading ids, as pure functions.

Belongs here: what depends on names and texts alone. Finding headings in Markdown:
ingestion.parsing. Every rule was read from Docusaurus 3.10 and is held against a real build in the
tests.
"""

from __future__ import annotations

import posixpath
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from rag_pipeline.core.models import SiteSettings

MARKDOWN_SUFFIXES: Final = (".md", ".mdx")

_KEPT_NUMBER: Final = re.compile(r"[0-9]+[-_.][0-9]+")
_NUMBER_PREFIX: Final = re.compile(r"[0-9]+\s*[-_.]+\s*([^-_.\s].*)", re.DOTALL)
_INDEX_NAMES: Final = frozenset({"index", "readme"})
_CUSTOM_ID: Final = re.compile(r"\s*\{#((?:.(?!\{#|\}))*.)\}$")
_SAFE_PATH: Final = "/:!$&'()*+,;=@~"
_SAFE_FRAGMENT: Final = "!$&'()*+,;=@~/?:"


def is_doc_name(name: str) -> bool:
    """Tell whether Docusaurus builds a file of this name: `.md` or `.mdx`, no `_` or `.` first."""
    return name.endswith(MARKDOWN_SUFFIXES) and not name.startswith(("_", "."))


def is_doc_folder_name(name: str) -> bool:
    """Tell whether Docusaurus looks into a folder: a leading `_` or `.` hides it."""
    return not name.startswith(("_", "."))


def strip_number_prefix(name: str) -> str:
    """Remove the number that orders a file or folder: `01-intro` is `intro`, `1.1-intro` stays.

    Source:
        numberPrefix.js of @docusaurus/plugin-content-docs 3.10.
    """
    if _KEPT_NUMBER.match(name):
        return name
    match = _NUMBER_PREFIX.fullmatch(name)
    return match.group(1) if match else name


def base_id(
    doc_path: str, front_matter_id: str | None = None, *, strip_numbers: bool = True
) -> str:
    """Name a page without its folder: the front matter's `id`, else the file name."""
    if front_matter_id:
        return front_matter_id
    stem = posixpath.splitext(posixpath.basename(doc_path))[0]
    return strip_number_prefix(stem) if strip_numbers else stem


def build_permalink(
    doc_path: str,
    site: SiteSettings,
    *,
    front_matter_id: str | None = None,
    slug: str | None = None,
    strip_numbers: bool = True,
) -> str:
    """Build the address of a page as its site serves it, percent-encoded.

    Args:
        doc_path: Path below the docs folder.
        site: Base URL, route and trailing slash.
        front_matter_id: `id` of the front matter.
        slug: `slug` of the front matter; `/x` is absolute under the route.
        strip_numbers: `parse_number_prefixes` of the front matter.

    Returns:
        Base URL, route and slug; with scheme and host where the base URL has them.
    """
    folder, stem = posixpath.split(posixpath.splitext(doc_path)[0])
    names = [name for name in folder.split("/") if name]
    route = [strip_number_prefix(name) for name in names] if strip_numbers else names
    folder_slug = "/".join(["", *route, ""])
    is_index = stem.lower() in _INDEX_NAMES or (bool(names) and stem.lower() == names[-1].lower())
    if slug and slug.startswith("/"):
        path = slug
    elif not slug and is_index:
        path = folder_slug
    else:
        name = slug or base_id(doc_path, front_matter_id, strip_numbers=strip_numbers)
        path = _resolve(name, folder_slug)
    scheme, host, base_path = _split_base_url(site.base_url)
    permalink = re.sub(r"/{2,}", "/", f"{base_path}/{site.route_base_path}/{path}")
    if permalink != base_path and site.trailing_slash is not None:
        permalink = permalink.rstrip("/") + ("/" if site.trailing_slash else "")
    return scheme + host + quote(permalink or "/", safe=_SAFE_PATH)


def link_to_anchor(page_url: str, anchor: str | None) -> str:
    """Add a heading's id to a page's address, percent-encoded; None leaves the page."""
    return page_url if anchor is None else f"{page_url}#{quote(anchor, safe=_SAFE_FRAGMENT)}"


def split_custom_id(heading_text: str) -> tuple[str, str | None]:
    """Split `Text {#my-id}` into text and id; the id is None where there is none.

    Source:
        markdownHeadingIdUtils.js of @docusaurus/utils 3.10.
    """
    match = _CUSTOM_ID.search(heading_text)
    if match is None:
        return heading_text, None
    return heading_text[: match.start()], match.group(1).strip()


class HeadingIds:
    """Gives the headings of one page their ids, in document order.

    A repeated text gets `-1`, `-2`; custom ids are not remembered. A level-1 heading uses up its
    text but is rendered without an id.
    """

    def __init__(self) -> None:
        self._repeats: dict[str, int] = {}

    def next_id(self, level: int, text: str, custom_id: str | None) -> str | None:
        """Return the id of the next heading, None where the page shows none."""
        slug = custom_id or self._remember(make_slug(text))
        return slug if level > 1 and slug else None

    def _remember(self, slug: str) -> str:
        unique, count = slug, self._repeats.get(slug, 0)
        while unique in self._repeats:
            count += 1
            unique = f"{slug}-{count}"
        self._repeats[slug] = count
        self._repeats[unique] = 0
        return unique


def make_slug(text: str) -> str:
    """Lower-case a text, drop what is no letter, digit, `_` or `-`, make each space a `-`.

    Source:
        github-slugger, whose tables the package of the same name holds; it looks at each character
        alone, which the tests confirm, so that its answers can be kept.
    """
    return "".join(map(_slug_character, text.lower()))


@lru_cache(maxsize=4096)
def _slug_character(character: str) -> str:
    from github_slugger import slug  # noqa: PLC0415  # compiles a pattern that a query can do without

    return str(slug(character))


def _resolve(name: str, folder_slug: str) -> str:
    path = posixpath.normpath(folder_slug + name).lstrip("/")
    keeps_slash = name.rsplit("/", 1)[-1] in {"", ".", ".."}
    return f"/{path}/" if keeps_slash else f"/{path}"


def _split_base_url(base_url: str) -> tuple[str, str, str]:
    match = re.fullmatch(r"(https?://)?([^/]*)(/.*)?", base_url, re.DOTALL)
    scheme, host, path = match.groups() if match else (None, "", base_url)
    if scheme is None:
        return "", "", base_url
    return scheme, host, path or "/"
