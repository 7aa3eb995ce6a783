"""The rules of Docusaurus for file names, page addresses and heading ids, as pure functions.

The rules follow the source code of Docusaurus 3.10. Tests compare them with a real build of a site.
"""

from __future__ import annotations

import posixpath
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote, urlsplit, urlunsplit

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
    """Return True if Docusaurus builds a page from a file with this name.

    The name must end with `.md` or `.mdx` and must not start with `_` or `.`.
    """
    return name.endswith(MARKDOWN_SUFFIXES) and not name.startswith(("_", "."))


def strip_number_prefix(name: str) -> str:
    """Remove the leading number that only orders files or folders, as in `01-intro`.

    `01-intro` becomes `intro`. Versions and dates such as `1.1-intro` and `2021-11-02-post` are
    returned unchanged.

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
    """Return the last part of a page's id: `id` in its front matter, or else its file name.

    The file name is returned without its extension and, with `strip_numbers`, without its number
    prefix.
    """
    if front_matter_id:
        return front_matter_id
    stem = posixpath.splitext(posixpath.basename(doc_path))[0]
    return strip_number_prefix(stem) if strip_numbers else stem


def find_page_path(doc_path: str, front_matter_id: str, slug: str, *, strip_numbers: bool) -> str:
    """Return the path of a page of the docs below the site's route.

    Args:
        doc_path: Path of the document below the docs folder.
        front_matter_id: Value of `id` in the front matter; may be empty.
        slug: Value of `slug` in the front matter; may be empty. `/x` is relative to the site's
            route, any other slug is relative to the document's folder.
        strip_numbers: Remove number prefixes from folder and file names.
    """
    folder, stem = posixpath.split(posixpath.splitext(doc_path)[0])
    names = [name for name in folder.split("/") if name]
    route = [strip_number_prefix(name) for name in names] if strip_numbers else names
    folder_slug = "/".join(["", *route, ""])
    is_index = stem.lower() in _INDEX_NAMES or (bool(names) and stem.lower() == names[-1].lower())
    if slug.startswith("/"):
        return slug
    if not slug and is_index:
        return folder_slug
    name = slug or base_id(doc_path, front_matter_id, strip_numbers=strip_numbers)
    path = posixpath.normpath(folder_slug + name).lstrip("/")
    keeps_slash = name.rsplit("/", 1)[-1] in {"", ".", ".."}
    return f"/{path}/" if keeps_slash else f"/{path}"


def join_permalink(site: SiteSettings, path: str) -> str:
    """Return the address of a page, percent-encoded, from its path below the site's route."""
    scheme, host, base_path = _split_base_url(site.base_url)
    permalink = re.sub(r"/{2,}", "/", f"{base_path}/{site.route_base_path}/{path}")
    permalink = apply_trailing_slash(permalink, base_path, trailing_slash=site.trailing_slash)
    return scheme + host + encode_path(permalink or "/")


def apply_trailing_slash(path: str, base_path: str, *, trailing_slash: bool | None) -> str:
    """Return the path of a page as the site's setting `trailingSlash` writes it.

    True adds a slash, False removes it, and None changes nothing. `base_path` itself is unchanged.
    """
    if path == base_path or trailing_slash is None:
        return path
    return path.rstrip("/") + ("/" if trailing_slash else "")


def encode_path(path: str) -> str:
    """Return a path percent-encoded for a link."""
    return quote(path, safe=_SAFE_PATH)


def find_site_path(url: str, site: SiteSettings) -> str | None:
    """Return the decoded path of an address below the base URL, without slashes at its ends.

    Two addresses of the same page have the same path: with or without scheme and host, base URL,
    query and trailing slash.

    Args:
        url: An absolute address, or a path with or without a leading slash.
        site: Base URL of the site. If it has no host, absolute addresses of any host are accepted.

    Returns:
        None if the address is malformed or belongs to another site.
    """
    if url.startswith("//") or "\\" in url or any(not char.isprintable() for char in url):
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    _, host, base_path = _split_base_url(site.base_url)
    is_http = parts.scheme in {"http", "https"} and bool(parts.netloc)
    if (parts.scheme and not is_http) or (
        is_http and host and parts.netloc.lower() != host.lower()
    ):
        return None
    path, base = unquote(parts.path).strip("/"), unquote(base_path).strip("/")
    if base and (path == base or path.startswith(f"{base}/")):
        path = path[len(base) :].strip("/")
    return path


def link_within_site(url: str, site: SiteSettings) -> str | None:
    """Return an address as a link that cannot leave the site, or None for an address outside it.

    An absolute address is returned unchanged if the base URL has its host. If the base URL has no
    host, only the path of the address is returned.

    Args:
        url: An absolute address, or a path with a leading slash. It can have a query and an anchor.
        site: Base URL of the site.
    """
    if find_site_path(url, site) is None:
        return None
    parts = urlsplit(url)
    _, host, base_path = _split_base_url(site.base_url)
    path = unquote(parts.path) or "/"
    is_below = f"{path}/".startswith(unquote(base_path)) and not path.startswith("//")
    if not is_below or "\\" in path or not {".", ".."}.isdisjoint(path.split("/")):
        return None
    if parts.netloc and host:
        return url
    return urlunsplit(("", "", parts.path or "/", parts.query, parts.fragment))


def link_to_anchor(page_url: str, anchor: str | None) -> str:
    """Return a page's address followed by `#` and the percent-encoded anchor.

    If the anchor is None, the address is returned unchanged.
    """
    return page_url if anchor is None else f"{page_url}#{quote(anchor, safe=_SAFE_FRAGMENT)}"


def split_custom_id(heading_text: str) -> tuple[str, str | None]:
    """Split a heading such as `Text {#my-id}` into its text and its custom id, or None.

    Source:
        markdownHeadingIdUtils.js of @docusaurus/utils 3.10.
    """
    match = _CUSTOM_ID.search(heading_text)
    if match is None:
        return heading_text, None
    return heading_text[: match.start()], match.group(1).strip()


class HeadingIds:
    """Generator of the heading ids of one page, which takes the headings in document order.

    If a heading's text repeats that of an earlier heading, its id gets the suffix `-1`, then `-2`
    and so on. Headings of level 1 count as earlier headings, although they have no id on the page.
    Headings with custom ids do not count.
    """

    def __init__(self) -> None:
        self._repeats: dict[str, int] = {}

    def next_id(self, level: int, text: str, custom_id: str | None) -> str | None:
        """Return the id of the next heading on the page; None for level 1 or an empty id.

        Args:
            level: Level of the heading, 1 to 6.
            text: Text of the heading without a custom id.
            custom_id: Id that the heading sets itself; None to derive the id from the text.
        """
        slug = custom_id or make_slug(text)
        if not custom_id:
            first, count = slug, self._repeats.get(slug, 0)
            while slug in self._repeats:
                count += 1
                slug = f"{first}-{count}"
            self._repeats |= {first: count, slug: 0}
        return slug if level > 1 and slug else None


def make_slug(text: str) -> str:
    """Return a heading's text as an id: lower case, spaces as `-`, without punctuation.

    Letters, digits, `_` and `-` are kept.

    Source:
        The npm package github-slugger, used through its Python port of the same name. The result
        is cached for each character, because no character depends on the others.
    """
    return "".join(map(_slug_character, text.lower()))


@lru_cache(maxsize=4096)
def _slug_character(character: str) -> str:
    from github_slugger import slug  # noqa: PLC0415  # compiles a pattern that queries do not need

    return str(slug(character))


def _split_base_url(base_url: str) -> tuple[str, str, str]:
    match = re.fullmatch(r"(https?://)?([^/]*)(/.*)?", base_url, re.DOTALL)
    scheme, host, path = match.groups() if match else (None, "", base_url)
    if scheme is None:
        return "", "", base_url
    return scheme, host, path or "/"
