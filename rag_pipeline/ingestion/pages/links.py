"""Turn the targets of a page's links and images into addresses that work outside the page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urljoin

from rag_pipeline.core.site.docusaurus import MARKDOWN_SUFFIXES, encode_path
from rag_pipeline.core.site.markdown_links import encode_target

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.ingestion.pages.built_site import BuiltSite, SitePage

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_OUTSIDE_PAGES: Final = "pathname://"
_SITE_FOLDER: Final = "@site/"


@dataclass(frozen=True, slots=True)
class SiteLinks:
    """The addresses of a site's pages and files.

    Attributes:
        site: The built site.
        host: Scheme and host before each path, such as `https://example.org`; empty for paths.
        page_of: Path of each page by its Markdown file.
    """

    site: BuiltSite
    host: str
    page_of: dict[Path, str]

    def link(self, path: str) -> str:
        """Return the address of a page or file from its path, which has the base URL."""
        return self.host + encode_target(encode_path(path))

    def resolve(self, page: SitePage, target: str, *, is_image: bool) -> str | None:
        """Return the address of a link's target as it is written in the source of a page.

        Targets that Docusaurus accepts are supported: Markdown files, paths with and without the
        base URL, paths relative to the page, `@site/` and `pathname://`.

        Returns:
            None if readers cannot open the target: a file that the build stores under another
            name, such as an image next to the page, or a Markdown file that is not a page.
        """
        if target.startswith(_OUTSIDE_PAGES):
            return self.host + target.removeprefix(_OUTSIDE_PAGES)
        if _SCHEME.match(target):
            return target
        at = min((found for found in map(target.find, "#?") if found >= 0), default=len(target))
        path, rest = unquote(target[:at]), target[at:]
        if not path:
            return self.link(page.path) + rest if rest else None
        found = self._find_path(page, path, is_image=is_image)
        return self.link(found) + rest if found is not None else None

    def _find_path(self, page: SitePage, path: str, *, is_image: bool) -> str | None:
        if path.startswith(_SITE_FOLDER) or path.endswith(MARKDOWN_SUFFIXES):
            return self._find_page(page, path)
        if path.startswith("/"):
            base = self.site.base_path
            return path if f"{path}/".startswith(base) else base + path[1:]
        is_file = page.source is not None and _is_file(page.source.parent / path)
        return None if is_image or is_file else urljoin(page.path, path)

    def _find_page(self, page: SitePage, path: str) -> str | None:
        """Return the path of the page that is built from a Markdown file.

        As in Docusaurus, the file is looked up from the folder of the linking file, then from the
        folder of the docs and from the folder of the site. Here every folder between them counts.
        """
        if page.source is None:
            return None
        folders = [page.source.parent, *page.source.parent.parents]
        folders = folders[: folders.index(self.site.root) + 1]
        if path.startswith(_SITE_FOLDER):
            folders = [self.site.root]
        relative = path.removeprefix(_SITE_FOLDER).lstrip("/")
        for folder in folders:
            file = folder / relative
            found = self.page_of.get(file.resolve()) if _is_file(file) else None
            if found is not None:
                return found
        return None


def _is_file(path: Path) -> bool:
    """Return True if a path is a file; False also if no file can have this name."""
    try:
        return path.is_file()
    except (OSError, ValueError):  # such as a name of more than 255 characters
        return False
