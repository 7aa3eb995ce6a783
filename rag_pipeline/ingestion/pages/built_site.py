"""Read the pages and sidebars of a built Docusaurus site from the metadata of its build.

Docusaurus writes this metadata into the folder `.docusaurus` next to the build. It contains the
addresses, titles and order of the pages as the site shows them, whatever the site's configuration.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.site.docusaurus import apply_trailing_slash
from rag_pipeline.core.site.files import MAX_BUILD_BYTES, find_root, is_inside, read_site_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_SOURCE_ROOT: Final = "@site/"
_REMEDY: Final = "Build the website with `make site` (or `npm run build` in its folder) first"


@dataclass(frozen=True, slots=True)
class SitePage:
    """A page of the docs: a Markdown file, or the list of a sidebar category's pages.

    Attributes:
        path: Path of the page on its host, with the base URL; not percent-encoded.
        title: Title of the page.
        description: Description of the page; may be empty.
        source: The Markdown file; None for the list of a category.
        is_listed: False for `unlisted: true` in the front matter and for old versions of the docs.
        entries: Label and path of each page in the list of a category.
    """

    path: str
    title: str
    description: str
    source: Path | None = None
    is_listed: bool = True
    entries: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class SiteSection:
    """A top-level group of a sidebar with its pages in the order of the sidebar.

    Attributes:
        label: Label of the sidebar category; empty for pages that are in no category.
        pages: The pages of the group and of the groups inside it. May be empty.
    """

    label: str
    pages: tuple[SitePage, ...]


@dataclass(frozen=True, slots=True)
class BuiltSite:
    """A built Docusaurus site.

    Attributes:
        root: Folder of the site, which contains its configuration.
        build_dir: Folder of the built pages.
        title: Title of the site.
        tagline: Tagline of the site; may be empty.
        base_path: `baseUrl` of the site; begins and ends with a slash.
        markdown_format: `markdown.format` of the site: `mdx`, `md` or `detect`.
        pages: All pages of the docs by path, in the order of their paths.
        sections: The sections of the sidebars of the latest version, in the order of the sidebars.
    """

    root: Path
    build_dir: Path
    title: str
    tagline: str
    base_path: str
    markdown_format: str
    pages: dict[str, SitePage]
    sections: tuple[SiteSection, ...]


def read_built_site(build_dir: Path) -> BuiltSite:
    """Read the pages and sidebars of a built site.

    Raises:
        ConfigurationError: The folder contains no built site, or the metadata of its build is
            missing.
    """
    build_dir = build_dir.resolve()
    if not (build_dir / "404.html").is_file():
        raise ConfigurationError("--site", f"{build_dir} contains no built website", _REMEDY)
    root = build_dir.parent
    generated = root / ".docusaurus"
    config_file = generated / "docusaurus.config.mjs"
    config = _read_json(config_file, root)
    base_path = config.get("baseUrl")
    if not isinstance(base_path, str):
        raise ConfigurationError("--site", f"{config_file} has no `baseUrl`", _REMEDY)
    reader = _Reader(root, build_dir, base_path, config.get("trailingSlash"))
    plugins = generated / "docusaurus-plugin-content-docs"
    pages: dict[str, SitePage] = {}
    sidebars: list[list[dict[str, Any]]] = []
    for plugin in sorted(plugins.glob("*/")):
        latest = ""
        for file in sorted(plugin.glob("p/*.json")):
            version = _read_json(file, root).get("version")
            if isinstance(version, dict) and version.get("isLast"):
                latest = str(version["version"])
                sidebars += version.get("docsSidebars", {}).values()
        for file in sorted(plugin.glob("*.json")):
            page = reader.read_doc(_read_json(file, root), latest)
            if page is not None:
                pages[page.path] = page
    if not pages:
        problem = f"{plugins} contains no page of the website in {build_dir}"
        raise ConfigurationError("--site", problem, _REMEDY)
    for page in reader.read_categories(item for sidebar in sidebars for item in sidebar):
        pages.setdefault(page.path, page)
    return BuiltSite(
        root=root,
        build_dir=build_dir,
        title=str(config.get("title", "")),
        tagline=str(config.get("tagline", "")),
        base_path=reader.base_path,
        markdown_format=str(config.get("markdown", {}).get("format", "mdx")),
        pages=dict(sorted(pages.items())),
        sections=tuple(
            section for sidebar in sidebars for section in reader.read_sections(sidebar, pages)
        ),
    )


def _read_json(path: Path, site_dir: Path) -> dict[str, Any]:
    """Return the object in a file of the build, which may follow `export default`.

    Raises:
        ConfigurationError: The file cannot be read, or it is damaged.
    """
    try:
        text = read_site_file(path, site_dir, MAX_BUILD_BYTES).decode("utf-8")
        text = text.partition("export default ")[2] if path.suffix == ".mjs" else text
        found = json.loads(text.rstrip().rstrip(";"))
    except OSError as error:
        problem = f"{path} cannot be read ({error.strerror}); the build writes this file"
        raise ConfigurationError("--site", problem, _REMEDY) from error
    except ValueError as error:
        problem = f"{path} is damaged, perhaps because the build was stopped"
        raise ConfigurationError("--site", problem, _REMEDY) from error
    return found if isinstance(found, dict) else {}


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reader of the build's metadata for one site."""

    root: Path
    build_dir: Path
    base_path: str
    trailing_slash: bool | None

    def read_doc(self, record: dict[str, Any], latest: str) -> SitePage | None:
        """Return the page of a document's metadata; None if it is other metadata or is outdated.

        Docusaurus leaves the metadata of deleted documents in place.

        Args:
            record: Content of a metadata file.
            latest: Name of the latest version of the docs; pages of others are not listed.
        """
        source, permalink = record.get("source"), record.get("permalink")
        if not isinstance(source, str) or not isinstance(permalink, str):
            return None
        if not source.startswith(_SOURCE_ROOT):
            return None
        file = self.root / source.removeprefix(_SOURCE_ROOT)
        path = self._find_path(permalink)
        is_own = ".." not in file.parts and is_inside(file, find_root(self.root))
        if not is_own or not file.is_file() or not self._is_built(path):
            return None
        title, description = (str(record.get(key) or "") for key in ("title", "description"))
        is_listed = record.get("version") == latest and not record.get("unlisted")
        return SitePage(path, title, description, file, is_listed)

    def read_categories(self, items: Iterable[dict[str, Any]]) -> Iterator[SitePage]:
        """Yield the pages that Docusaurus generates for categories, at any depth.

        A category with a document of its own is yielded too.
        """
        for item in items:
            if item.get("type") != "category":
                continue
            if item.get("href"):
                entries = tuple(
                    (str(inner["label"]), self._find_path(inner["href"]))
                    for inner in item["items"]
                    if _is_listed(inner)
                )
                path = self._find_path(item["href"])
                description = str(item.get("description") or "")
                if self._is_built(path):
                    yield SitePage(path, str(item["label"]), description, entries=entries)
            yield from self.read_categories(item["items"])

    def read_sections(
        self, sidebar: list[dict[str, Any]], pages: dict[str, SitePage]
    ) -> Iterator[SiteSection]:
        """Yield the sections of a sidebar. Consecutive pages outside categories are one section."""
        for is_category, group in groupby(sidebar, lambda item: item.get("type") == "category"):
            items = list(group)
            for label, members in (
                [(str(item["label"]), [item]) for item in items] if is_category else [("", items)]
            ):
                paths = dict.fromkeys(self._list_paths(members))
                yield SiteSection(label, tuple(pages[path] for path in paths if path in pages))

    def _list_paths(self, items: Iterable[dict[str, Any]]) -> Iterator[str]:
        for item in items:
            if _is_listed(item):
                yield self._find_path(item["href"])
            yield from self._list_paths(item.get("items", ()))

    def _find_path(self, permalink: str) -> str:
        path = unquote(permalink)
        return apply_trailing_slash(path, self.base_path, trailing_slash=self.trailing_slash)

    def _is_built(self, path: str) -> bool:
        name = path.removeprefix(self.base_path).strip("/")
        if {".", ".."} & set(name.split("/")) or "//" in name or "\0" in name:
            return False
        files = (self.build_dir / f"{name}.html", self.build_dir / name / "index.html")
        return path.startswith(self.base_path) and any(file.is_file() for file in files)


def _is_listed(item: dict[str, Any]) -> bool:
    """Return True if an entry of a sidebar leads to a page of this site that is not unlisted."""
    href = str(item.get("href") or "")
    is_hidden = item.get("unlisted") or item.get("linkUnlisted")
    return href.startswith("/") and not href.startswith("//") and not is_hidden
