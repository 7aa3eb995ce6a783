"""Render the source of a page as Markdown with links that work outside the site."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urljoin

from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.core.site.addresses import encode_target
from rag_pipeline.core.site.docusaurus import MARKDOWN_SUFFIXES, encode_path
from rag_pipeline.ingestion.markdown.constructs.directive import DIRECTIVE
from rag_pipeline.ingestion.markdown.constructs.jsx import JSX
from rag_pipeline.ingestion.markdown.constructs.text import MARKER, PARAGRAPH, THEMATIC_BREAK
from rag_pipeline.ingestion.markdown.edits import PageEdits
from rag_pipeline.ingestion.markdown.front_matter import read_front_matter
from rag_pipeline.ingestion.markdown.page import read_content
from rag_pipeline.ingestion.markdown.source import is_mdx, normalize_source, read_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rag_pipeline.core.models import Block, Heading, SiteSettings
    from rag_pipeline.ingestion.markdown.edits import ResolveLink
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


_NAME: Final = re.compile(r"[\s>]*:{2,}([A-Za-z][\w-]*)")
_TITLED: Final = re.compile(r"<(?:Tabs|TabItem|Admonition)\b")
_SUMMARY: Final = re.compile(r"<(/?)summary\b")
_MARGIN: Final = re.compile(r"[ \t>]*")
_UNDERLINED: Final = re.compile(r"(.+)\n {0,3}=+\s*", re.DOTALL)


def render_page(
    doc_path: str,
    file: Path,
    root: Path,
    site: SiteSettings,
    title: str,
    resolve: ResolveLink,
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
