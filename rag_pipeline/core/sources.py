"""The sources of a book, and the edition of a page: its version and its language.

A site with one docs folder needs none. A site with several docs folders, versions, locales, a blog
or Markdown pages has one source for each of them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum
from pathlib import Path  # noqa: TC003  # pydantic evaluates the types of settings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True)
class Edition:
    """The source, version and language that a page belongs to.

    A site with one docs folder, no versions and one language has only the default edition. A field
    with its default value is stored nowhere.

    Attributes:
        source: Name of the docs folder, such as `docs` or `api`, or `blog` or `pages`.
        version: Docusaurus' name of the version, such as `current` or `2.0`.
        version_label: The name of the version that the site shows, such as `Next` or `2.0.x`.
        is_latest: False if readers get another version of the source by default.
        locale: Name of the language, such as `en` or `fr`.
        is_default_locale: False if readers get another language by default.
        common_path: Path of the page in its folder, the same in all versions and languages. None if
            the source has only one of each.
        is_post: True for a page of a blog.
    """

    source: str | None = None
    version: str | None = None
    version_label: str | None = None
    is_latest: bool = True
    locale: str | None = None
    is_default_locale: bool = True
    common_path: str | None = None
    is_post: bool = False


DEFAULT_EDITION = Edition()
"""The edition of all pages of a site with one docs folder, no versions and one language."""


class SourceKind(StrEnum):
    """The part of Docusaurus that builds the pages of a source, and thus their addresses.

    `API` is Redocusaurus, which shows one OpenAPI document as one page.
    """

    DOCS = "docs"
    BLOG = "blog"
    PAGES = "pages"
    API = "api"


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A folder of a site whose Markdown files become pages.

    Attributes:
        name: Name of the part of the site, such as `docs`, `api` or `blog`, in all its editions.
        folder: The folder.
        prefix: Start of the ids of its documents: empty, or a path that ends with `/`.
        kind: The rules for the addresses of its pages.
        fallback: Folder of the same part in the default locale. It decides which pages exist, and
            its file is used if `folder` has no file with the same path.
        route_base_path: Path of its pages below the base URL, with that of the version.
        base_url: Base URL of its locale, relative to that of the site, such as `fr/`.
        version: Name of the docs version, such as `2.0` or `current`; None without versions.
        version_label: Name of the version for readers.
        is_latest: True if readers get this version unless they choose another.
        locale: The locale, such as `fr`; None if the site has only one.
        is_default_locale: True if readers get this locale unless they choose another.
        include: Patterns of the files that become pages; None for all Markdown files.
        exclude: Patterns of those that do not; None for names that start with `_`.
        number_prefixes: True if addresses lack numbers that only order files, as in `01-a.md`.
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
    include: tuple[str, ...] | None = None
    exclude: tuple[str, ...] | None = None
    number_prefixes: bool = True

    def __str__(self) -> str:
        """Return the name with version and locale, such as `docs@2.0:fr`."""
        version = f"@{self.version}" if self.version else ""
        return self.name + version + (f":{self.locale}" if self.locale else "")

    @property
    def meaning(self) -> tuple[object, ...]:
        """The values that change addresses or payloads of documents.

        Folders and patterns do not: they decide which documents there are.
        """
        left_out = {"folder", "fallback", "prefix", "include", "exclude"}
        return tuple(
            getattr(self, field.name) for field in fields(self) if field.name not in left_out
        )

    @property
    def has_own_rules(self) -> bool:
        """True if options of the site's plugin choose its pages, or keep numbers in addresses."""
        return (self.include, self.exclude, self.number_prefixes) != (None, None, True)


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
        source.kind is SourceKind.BLOG,
    )
