"""Write the Markdown file of each page into a built site, and `llms.txt` and `llms-full.txt`.

The pages come from the metadata that Docusaurus writes into the folder `.docusaurus`: their
addresses, titles and order as the site shows them. The format of `llms.txt` is described at
https://llmstxt.org.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import unquote, urljoin

from rag_pipeline.core.errors import ConfigurationError, DocumentError
from rag_pipeline.core.models import (
    SITE_FILES,
    DocFailure,
    MarkdownFormat,
    SiteSettings,
    TextBlockKind,
)
from rag_pipeline.core.site.addresses import encode_target, escape_label
from rag_pipeline.core.site.docusaurus import MARKDOWN_SUFFIXES, apply_trailing_slash, encode_path
from rag_pipeline.core.site.files import (
    MAX_BUILD_BYTES,
    find_root,
    is_inside,
    read_site_file,
    write_site_file,
)
from rag_pipeline.ingestion.markdown.constructs.html import JSX
from rag_pipeline.ingestion.markdown.constructs.text import (
    DIRECTIVE,
    MARKER,
    PARAGRAPH,
    THEMATIC_BREAK,
)
from rag_pipeline.ingestion.markdown.edits import PageEdits, ResolveLink
from rag_pipeline.ingestion.markdown.page import read_content
from rag_pipeline.ingestion.markdown.source import (
    is_mdx,
    normalize_source,
    read_file,
    read_front_matter,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rag_pipeline.core.models import Block, Heading, JsonValue


_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_OUTSIDE_PAGES: Final = "pathname://"
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


SiteSection: TypeAlias = tuple[str, list[SitePage]]
"""A group of a sidebar: label and pages, in the order of the sidebar.

The label is empty for pages that are in no category. The pages of the groups inside it belong to
it too.
"""


@dataclass(frozen=True, slots=True)
class BuiltSite:
    """A built Docusaurus site.

    Attributes:
        root: Folder of the site, which contains its configuration.
        build_dir: Folder of the built pages.
        title: Title of the site.
        tagline: Tagline of the site; may be empty.
        base_path: `baseUrl` of the site; begins and ends with a slash.
        trailing_slash: `trailingSlash` of the site.
        markdown_format: `markdown.format` of the site: `mdx`, `md` or `detect`.
        pages: All pages of the docs by path, in the order of their paths.
        sections: The sections of the sidebars of the latest version, in the order of the sidebars.
        host: Scheme and host before each path, such as `https://example.org`; empty for paths.
        page_of: Path of each page by its Markdown file.
    """

    root: Path
    build_dir: Path
    title: str
    tagline: str
    base_path: str
    trailing_slash: bool | None
    markdown_format: str
    pages: dict[str, SitePage] = field(default_factory=dict)
    sections: tuple[SiteSection, ...] = ()
    host: str = ""
    page_of: dict[Path, str] = field(default_factory=dict)

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
        if not source.startswith(SITE_FILES):
            return None
        file = self.root / source.removeprefix(SITE_FILES)
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
                path = self._find_path(item["href"])
                entries = tuple(
                    (str(inner["label"]), self._find_path(inner["href"]))
                    for inner in item["items"]
                    if _is_listed(inner)
                )
                if self._is_built(path):
                    description = str(item.get("description") or "")
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
                yield label, [pages[path] for path in paths if path in pages]

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

    def link(self, path: str) -> str:
        """Return the address of a page or file from its path, which has the base URL."""
        return self.host + encode_target(encode_path(path))

    def resolve(self, page: SitePage, target: str, is_image: bool) -> str | None:  # noqa: FBT001  # signature of ResolveLink
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
        found: str | None
        if not path:
            found = page.path if rest else None
        elif path.startswith(SITE_FILES) or path.endswith(MARKDOWN_SUFFIXES):
            found = self._find_page(page, path)
        elif path.startswith("/"):
            base = self.base_path
            found = path if f"{path}/".startswith(base) else base + path[1:]
        elif is_image or (page.source is not None and _is_file(page.source.parent / path)):
            found = None
        else:
            found = urljoin(page.path, path)
        return self.link(found) + rest if found is not None else None

    def _find_page(self, page: SitePage, path: str) -> str | None:
        """Return the path of the page that is built from a Markdown file.

        As in Docusaurus, the file is looked up from the folder of the linking file, then from the
        folder of the docs and from the folder of the site. Here every folder between them counts.
        """
        if page.source is None:
            return None
        folders = [page.source.parent, *page.source.parent.parents]
        folders = folders[: folders.index(self.root) + 1]
        if path.startswith(SITE_FILES):
            folders = [self.root]
        relative = path.removeprefix(SITE_FILES).lstrip("/")
        for folder in folders:
            file = folder / relative
            found = self.page_of.get(file.resolve()) if _is_file(file) else None
            if found is not None:
                return found
        return None


def read_built_site(build_dir: Path, host: str) -> BuiltSite:
    """Read the pages and sidebars of a built site, whose links begin with `host`.

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
    site = BuiltSite(
        root=root,
        build_dir=build_dir,
        title=str(config.get("title", "")),
        tagline=str(config.get("tagline", "")),
        base_path=base_path,
        trailing_slash=config.get("trailingSlash"),
        markdown_format=str(config.get("markdown", {}).get("format", "mdx")),
        host=host,
    )
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
            page = site.read_doc(_read_json(file, root), latest)
            if page is not None:
                pages[page.path] = page
    if not pages:
        problem = f"{plugins} contains no page of the website in {build_dir}"
        raise ConfigurationError("--site", problem, _REMEDY)
    for page in site.read_categories(item for sidebar in sidebars for item in sidebar):
        pages.setdefault(page.path, page)
    pages = dict(sorted(pages.items()))
    sections = (one for sidebar in sidebars for one in site.read_sections(sidebar, pages))
    page_of = {page.source.resolve(): path for path, page in pages.items() if page.source}
    return replace(site, pages=pages, sections=tuple(sections), page_of=page_of)


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


def _is_listed(item: dict[str, Any]) -> bool:
    """Return True if an entry of a sidebar leads to a page of this site that is not unlisted."""
    href = str(item.get("href") or "")
    is_hidden = item.get("unlisted") or item.get("linkUnlisted")
    return href.startswith("/") and not href.startswith("//") and not is_hidden


def _is_file(path: Path) -> bool:
    """Return True if a path is a file; False also if no file can have this name."""
    try:
        return path.is_file()
    except (OSError, ValueError):  # such as a name of more than 255 characters
        return False


_NAME: Final = re.compile(r"[\s>]*:{2,}([A-Za-z][\w-]*)")
_TITLED: Final = re.compile(r"<(?:Tabs|TabItem|Admonition)\b")
_SUMMARY: Final = re.compile(r"<(/?)summary\b")
_MARGIN: Final = re.compile(r"[ \t>]*")
_UNDERLINED: Final = re.compile(r"(.+)\n {0,3}=+\s*", re.DOTALL)


def render_page(
    doc_path: str, file: Path, root: Path, site: SiteSettings, title: str, resolve: ResolveLink
) -> str:
    """Render a page as Markdown.

    Code, tables, formulas, lists and emphasis stay as written. The titles of admonitions, the
    labels of tabs and the summaries of details become bold lines.

    Args:
        doc_path: Path of the document, for error messages.
        file: The Markdown file.
        root: The folder in which the file must be.
        site: Settings of the site; only the Markdown format is used.
        title: Title of the page. It becomes the first line, unless the page begins with a heading
            of level 1.
        resolve: Function that returns the address of a link's target.

    Returns:
        The text, which ends with a line end.

    Raises:
        DocumentReadError: The file cannot be read.
        FrontMatterError: The front matter is not valid.
    """
    source = normalize_source(read_file(doc_path, file, root))
    front_matter = read_front_matter(doc_path, source)
    start_edits = partial(PageEdits, resolve=resolve)
    mdx = is_mdx(doc_path, front_matter, site)
    content = read_content(source, front_matter.end, {}, mdx=mdx, start_edits=start_edits)
    blocks, headings = content.blocks, content.headings
    objectives = front_matter.texts("learning-objectives", "learning_objectives")
    listed = "".join(f"\n- {objective}" for objective in objectives)
    goals = [f"After this page you can:\n{listed}"] if objectives else []
    first = next((at for at, block in enumerate(blocks) if block.text.strip()), None)
    heading = None if first is None else blocks[first].heading
    if first is None or heading is None or headings[heading].level > 1:
        parts = [f"# {title}", *goals, _join_blocks(source, blocks, headings, mdx=mdx)]
    else:
        own_title = _join_blocks(source, blocks[: first + 1], headings, mdx=mdx)
        if found := _UNDERLINED.fullmatch(own_title):
            own_title = "# " + " ".join(found[1].split())  # the first line is then the title
        parts = [own_title, *goals, _join_blocks(source, blocks[first + 1 :], headings, mdx=mdx)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _join_blocks(
    source: str, blocks: Sequence[Block], headings: Sequence[Heading], *, mdx: bool
) -> str:
    """Return the text of blocks, with the blank lines between them as in the source."""
    margins = _find_margins(source, blocks) if mdx else [0] * len(blocks)
    text, last_line, was_alone, in_summary = "", 0, False, False
    for block, margin in zip(blocks, margins, strict=True):
        part, is_alone = _render_block(source, block, headings)
        if in_summary and block.kind == PARAGRAPH.name:
            part, is_alone = _embolden(" ".join(part.split()), ""), True
        if block.kind == JSX.name and (tags := _SUMMARY.findall(source, block.start, block.end)):
            in_summary = not tags[-1]
        part = _cut_margin(part, margin).strip("\n")
        if not part.strip():
            continue
        is_next = block.start_line == last_line + 1 and not is_alone and not was_alone
        text += ("\n" if is_next else "\n\n") * bool(text) + part
        last_line, was_alone = block.end_line, is_alone
    return text.rstrip()


def _render_block(source: str, block: Block, headings: Sequence[Heading]) -> tuple[str, bool]:
    """Return the Markdown of one block, and if blank lines must surround it."""
    written = source[block.start : block.end]
    margin = _MARGIN.match(written)
    indent = margin.group() if margin is not None else ""
    text = block.text.strip()
    if block.kind == THEMATIC_BREAK.name:
        return written, True
    if block.kind == MARKER.name:
        in_quote = any(one.kind is TextBlockKind.QUOTE for one in block.containers)
        return (written.rstrip() if in_quote else ""), False
    if block.kind == DIRECTIVE.name:
        name = _NAME.match(written)
        if name is not None and not text:
            text = name.group(1).replace("-", " ").capitalize()
        return _embolden(text, indent), True
    if block.kind == JSX.name:
        is_titled = _TITLED.search(written) is not None
        return _embolden(text, indent) if is_titled else indent + text if text else "", True
    if block.heading is not None and written.lstrip(" \t>").startswith("<"):
        return f"{indent}{'#' * headings[block.heading].level} {' '.join(text.split())}", True
    return block.text, False


def _embolden(text: str, indent: str) -> str:
    """Return each line of a text in bold, after the given indentation."""
    lines = (line.strip() for line in text.split("\n") if line.strip())
    return "\n\n".join(indent + (line if "**" in line else f"**{line}**") for line in lines)


def _find_margins(source: str, blocks: Sequence[Block]) -> list[int]:
    """Return the number of columns by which each block can move to the left.

    MDX allows any indentation inside tags, which would be code in plain Markdown. The blocks of a
    list move together, by the indentation of its first block.
    """
    margins: list[int] = []
    margin_of: dict[int, int] = {}
    for block in blocks:
        written = source[block.start : block.end]
        margin = len(written) - len(written.lstrip(" "))
        around = [
            one.number
            for one in block.containers
            if one.kind not in {None, TextBlockKind.ADMONITION}
        ]
        margins.append(margin_of.setdefault(around[0], margin) if around else margin)
    return margins


def _cut_margin(text: str, margin: int) -> str:
    """Remove up to `margin` leading spaces from each line."""
    if not margin:
        return text
    return "\n".join(
        line[min(margin, len(line) - len(line.lstrip(" "))) :] for line in text.split("\n")
    )


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
    site = read_built_site(build_dir, host)
    texts: dict[str, str] = {}
    failures: list[DocFailure] = []
    for path, page in site.pages.items():
        try:
            texts[path] = _write_page_text(site, page)
        except DocumentError as error:
            failures.append(DocFailure(error.doc_id, _STAGE, error.code, str(error)))
    names = _name_files(site)
    files = {names[path][0]: text for path, text in texts.items()}
    for path, text in texts.items():
        for second in names[path][1:]:
            files.setdefault(second, text)
    sections = _choose_sections(site, texts)
    head = [f"# {site.title}", *([f"> {site.tagline}"] if site.tagline else [])]
    files[INDEX_FILE] = "\n\n".join([*head, *_list_index(site, names, sections)]) + "\n"
    files[FULL_FILE] = "\n\n".join([*head, *_list_texts(site, sections, texts)]) + "\n"
    for path in site.pages.keys() - texts.keys():
        for name in names[path]:
            if name not in files:
                (site.build_dir / name).unlink(missing_ok=True)
    for name, text in files.items():
        write_site_file(site.build_dir, name, text)
    replaced = tuple(name for name in files if (site.root / _STATIC / name).is_file())
    return Publication(site.build_dir, tuple(files), len(texts), tuple(failures), replaced)


def _write_page_text(site: BuiltSite, page: SitePage) -> str:
    if page.source is None:
        entries = "\n".join(
            f"- [{escape_label(label)}]({site.link(path)})" for label, path in page.entries
        )
        parts = (f"# {page.title}", page.description, entries)
        return "\n\n".join(part for part in parts if part) + "\n"
    settings = SiteSettings(markdown_format=MarkdownFormat(site.markdown_format))
    doc_path = page.source.relative_to(site.root).as_posix()
    resolve = partial(site.resolve, page)
    return render_page(doc_path, page.source, find_root(site.root), settings, page.title, resolve)


def _name_files(site: BuiltSite) -> dict[str, list[str]]:
    """Return the names of each page's Markdown files below the folder of the build, by path.

    A page whose address ends with a slash has a second file. If the site has the pages `/part` and
    `/part/`, the only file of the second one is `part/index.md`.
    """
    names: dict[str, list[str]] = {}
    for path in sorted(site.pages, key=lambda path: path.endswith("/")):
        place = path.removeprefix(site.base_path)
        name, second = place.strip("/"), f"{place}index.md".lstrip("/")
        is_taken = path.rstrip("/") in names
        files = [f"{name}.md"] if name and not is_taken else []
        names[path] = [*files, second] if path.endswith("/") or not files else files
    return names


def _choose_sections(site: BuiltSite, texts: dict[str, str]) -> list[SiteSection]:
    """Return label and pages of each section of `llms.txt`, without pages that have no text.

    Each page is in its first section only. Pages outside of categories come last,
    except those before the first category, and so do pages that are in no sidebar.
    """
    seen: set[str] = set()
    sections: list[SiteSection] = []
    loose: list[SitePage] = []
    has_categories = any(label for label, _ in site.sections)
    for label, members in site.sections:
        pages = [page for page in members if page.path in texts and page.path not in seen]
        seen.update(page.path for page in pages)
        if label or not sections:
            first = _FIRST_PAGES if has_categories else _ALL_PAGES
            sections += [(label or first, pages)] if pages else []
        else:
            loose += pages
    loose += [
        page
        for path, page in site.pages.items()
        if page.is_listed and path in texts and path not in seen
    ]
    return [*sections, (_OTHER_PAGES, loose)] if loose else sections


def _list_index(
    site: BuiltSite, names: Mapping[str, list[str]], sections: Iterable[SiteSection]
) -> Iterator[str]:
    """Yield the sections of `llms.txt`: the pages with their descriptions."""
    for label, pages in sections:
        lines = [f"## {label}\n"]
        for page in pages:
            name = site.base_path + names[page.path][0]
            description = " ".join(page.description.split())
            title = escape_label(page.title)
            lines.append(f"- [{title}]({site.link(name)})" + (description and f": {description}"))
        yield "\n".join(lines)


def _list_texts(
    site: BuiltSite, sections: Iterable[SiteSection], texts: dict[str, str]
) -> Iterator[str]:
    """Yield the parts of `llms-full.txt`: the texts of all pages of the index, in its order."""
    for _, pages in sections:
        for page in pages:
            title, _, rest = texts[page.path].partition("\n")
            yield f"{title}\n\nSource: {site.link(page.path)}\n\n{rest.strip()}"
