"""Write the Markdown file of each page into a built site, and `llms.txt` and `llms-full.txt`.

The format of `llms.txt` is described at https://llmstxt.org.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import DocumentError
from rag_pipeline.core.models import DocFailure, MarkdownFormat, SiteSettings
from rag_pipeline.core.site.addresses import escape_label
from rag_pipeline.core.site.files import find_root, write_site_file
from rag_pipeline.ingestion.pages.built_site import read_built_site
from rag_pipeline.ingestion.pages.page_markdown import SiteLinks, render_page

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from rag_pipeline.core.models import JsonValue
    from rag_pipeline.ingestion.pages.built_site import BuiltSite, SitePage

INDEX_FILE: Final = "llms.txt"
FULL_FILE: Final = "llms-full.txt"

_STATIC: Final = "static"
_STAGE: Final = "export"
_FIRST_PAGES: Final = "Start here"
_OTHER_PAGES: Final = "More pages"
_ALL_PAGES: Final = "Pages"


@dataclass(frozen=True, slots=True)
class Publication:
    """The result of writing the Markdown files of a site.

    Attributes:
        build_dir: Folder of the built site.
        files: Paths of the written files below `build_dir`, in order.
        pages: Number of pages with a Markdown file.
        failures: Pages that could not be rendered. They have no Markdown file.
        replaced: Written files that the site has in its folder `static` too, such as its own
            `llms.txt`. In the built site, the written file replaces the site's own.
    """

    build_dir: Path
    files: tuple[str, ...]
    pages: int
    failures: tuple[DocFailure, ...]
    replaced: tuple[str, ...] = ()

    def to_json(self) -> dict[str, JsonValue]:
        """Return the result as a JSON object."""
        return {
            "site": str(self.build_dir),
            "pages": self.pages,
            "files": list(self.files),
            "replaced": list(self.replaced),
            "failures": [
                {"doc_path": failure.doc_path, "error": failure.error, "message": failure.message}
                for failure in self.failures
            ],
        }


def publish_site(build_dir: Path, host: str = "") -> Publication:
    """Write the Markdown files of a built site next to its pages.

    The page `/docs/robots` gets `docs/robots.md`. If the site's addresses end with a slash, the
    same text is also in `docs/robots/index.md`. The page of the root gets `index.md`. Files of an
    earlier call are overwritten.

    Args:
        build_dir: Folder of the built site.
        host: Scheme and host for links, such as `https://example.org`. If it is empty, links are
            paths that begin with the site's base URL.

    Returns:
        What was written. A page that cannot be rendered is a failure and does not stop the others.

    Raises:
        ConfigurationError: The folder contains no built site, or the metadata of its build is
            missing.
    """
    site = read_built_site(build_dir)
    page_of = {
        page.source.resolve(): path for path, page in site.pages.items() if page.source is not None
    }
    links = SiteLinks(site, host, page_of)
    texts: dict[str, str] = {}
    failures: list[DocFailure] = []
    for path, page in site.pages.items():
        try:
            texts[path] = _write_page_text(site, links, page)
        except DocumentError as error:
            failures.append(DocFailure(error.doc_id, _STAGE, error.code, str(error)))
    names = _name_files(site)
    files = {names[path]: text for path, text in texts.items()}
    for path, text in texts.items():
        if path.endswith("/"):
            files.setdefault(_name_index_file(path, site.base_path), text)
    sections = _choose_sections(site, texts)
    files[INDEX_FILE] = _write_index(site, links, names, sections)
    files[FULL_FILE] = _write_full(site, links, sections, texts)
    for path in site.pages.keys() - texts.keys():
        (site.build_dir / names[path]).unlink(missing_ok=True)
        if path.endswith("/") and _name_index_file(path, site.base_path) not in files:
            (site.build_dir / _name_index_file(path, site.base_path)).unlink(missing_ok=True)
    for name, text in files.items():
        write_site_file(site.build_dir, name, text)
    replaced = tuple(name for name in files if (site.root / _STATIC / name).is_file())
    return Publication(site.build_dir, tuple(files), len(texts), tuple(failures), replaced)


def _write_page_text(site: BuiltSite, links: SiteLinks, page: SitePage) -> str:
    if page.source is None:
        entries = "\n".join(
            f"- [{escape_label(label)}]({links.link(path)})" for label, path in page.entries
        )
        parts = (f"# {page.title}", page.description, entries)
        return "\n\n".join(part for part in parts if part) + "\n"
    settings = SiteSettings(markdown_format=MarkdownFormat(site.markdown_format))
    doc_path = page.source.relative_to(site.root).as_posix()

    def resolve(target: str, is_image: bool) -> str | None:  # noqa: FBT001  # signature of ResolveLink
        return links.resolve(page, target, is_image=is_image)

    return render_page(doc_path, page.source, find_root(site.root), settings, page.title, resolve)


def _name_files(site: BuiltSite) -> dict[str, str]:
    """Return the name of each page's Markdown file below the folder of the build, by path.

    If the site has the pages `/part` and `/part/`, the second one is `part/index.md`.
    """
    names: dict[str, str] = {}
    for path in sorted(site.pages, key=lambda path: path.endswith("/")):
        name = path.removeprefix(site.base_path).strip("/")
        is_taken = path.rstrip("/") in names
        index_name = _name_index_file(path, site.base_path)
        names[path] = f"{name}.md" if name and not is_taken else index_name
    return names


def _name_index_file(path: str, base_path: str) -> str:
    """Return the name of the second Markdown file of a page whose address ends with a slash."""
    return f"{path.removeprefix(base_path)}index.md".lstrip("/")


def _choose_sections(site: BuiltSite, texts: dict[str, str]) -> list[tuple[str, list[SitePage]]]:
    """Return label and pages of each section of `llms.txt`, without pages that have no text.

    Each page is in its first section only. Pages outside of categories come last,
    except those before the first category, and so do pages that are in no sidebar.
    """
    seen: set[str] = set()
    sections: list[tuple[str, list[SitePage]]] = []
    loose: list[SitePage] = []
    has_categories = any(section.label for section in site.sections)
    for section in site.sections:
        pages = [page for page in section.pages if page.path in texts and page.path not in seen]
        seen.update(page.path for page in pages)
        if section.label or not sections:
            first = _FIRST_PAGES if has_categories else _ALL_PAGES
            sections += [(section.label or first, pages)] if pages else []
        else:
            loose += pages
    loose += [
        page
        for path, page in site.pages.items()
        if page.is_listed and path in texts and path not in seen
    ]
    return [*sections, (_OTHER_PAGES, loose)] if loose else sections


def _write_index(
    site: BuiltSite,
    links: SiteLinks,
    names: Mapping[str, str],
    sections: Iterable[tuple[str, list[SitePage]]],
) -> str:
    """Return the text of `llms.txt`: the site, and its pages with their descriptions."""
    parts = _write_head(site)
    for label, pages in sections:
        lines = []
        for page in pages:
            name = site.base_path + names[page.path]
            description = " ".join(page.description.split())
            title = escape_label(page.title)
            lines.append(f"- [{title}]({links.link(name)})" + (description and f": {description}"))
        parts.append(f"## {label}\n\n" + "\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _write_full(
    site: BuiltSite,
    links: SiteLinks,
    sections: Iterable[tuple[str, list[SitePage]]],
    texts: dict[str, str],
) -> str:
    """Return the text of `llms-full.txt`: the texts of all pages of the index, in its order."""
    parts = _write_head(site)
    for _, pages in sections:
        for page in pages:
            title, _, rest = texts[page.path].partition("\n")
            parts.append(f"{title}\n\nSource: {links.link(page.path)}\n\n{rest.strip()}")
    return "\n\n".join(parts) + "\n"


def _write_head(site: BuiltSite) -> list[str]:
    head = f"# {site.title}"
    return [head, f"> {site.tagline}"] if site.tagline else [head]
