"""Parse the source of a page into cleaned blocks and headings; the entry point of this package.

An element such as a tab or `<head>`, which contains other blocks or hides them, reaches from an
opening tag to its closing tag, over any number of blocks.
"""

from __future__ import annotations

import bisect
import html
import re
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from rag_pipeline.core.models import Block, Container, Heading
from rag_pipeline.core.site.docusaurus import HeadingIds
from rag_pipeline.ingestion.markdown.blocks import find_chains, read_leaves
from rag_pipeline.ingestion.markdown.construct import Leaf
from rag_pipeline.ingestion.markdown.constructs.heading import HEADING, read_heading
from rag_pipeline.ingestion.markdown.constructs.html import ESM, HTML, JSX
from rag_pipeline.ingestion.markdown.constructs.text import FRONT_MATTER, PARAGRAPH, THEMATIC_BREAK
from rag_pipeline.ingestion.markdown.edits import BlockEdits, StartEdits
from rag_pipeline.ingestion.markdown.scope import SCOPE, Scope, Use, read_statements
from rag_pipeline.ingestion.markdown.tags import Scanner, read_attributes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


_RAW: Final = ("script", "style")
HIDDEN: Final = (*_RAW, "head", "Head", "noscript", "template", "title", "desc", "metadata")
"""Elements whose content a page never shows. The last three are parts of `<head>` and `<svg>`."""

_TABS: Final = ("TabItem", "Tab")
_BOXES: Final = (
    *("details", "Details", "blockquote", "dialog", "aside", "Admonition"),
    *("Accordion", "AccordionItem", "Collapsible", "Expandable", "BrowserWindow"),
)
"""Elements that end the sections which begin inside them, in addition to tabs."""

_CONTAINERS: Final = frozenset((*_TABS, *_BOXES))
_MARK: Final = re.compile(
    rf"(?P<ticks>`+)|<!--|<(?P<closes>/?)(?P<name>{'|'.join((*HIDDEN, *_TABS, *_BOXES))})(?=[\s/>])"
)
_ANY: Final = re.compile(rf"<(?:{'|'.join((*HIDDEN, *_TABS, *_BOXES))})[\s/>]")
_LINE_START: Final = re.compile(r"[ \t>]*")
_MOST_OPEN: Final = 200  # elements; more deeply nested ones are not followed


@dataclass(frozen=True, slots=True)
class Element:
    """A paired tag with its content. All positions are offsets in the source of the page.

    Attributes:
        name: Name of the tag.
        start: First character of the opening tag.
        inner_start: First character after the opening tag.
        inner_end: First character of the closing tag.
        end: Character after the closing tag.
    """

    name: str
    start: int
    inner_start: int
    inner_end: int
    end: int

    def read_label(self, scanner: Scanner, scope: Scope) -> str:
        """Return the label of a tab, as its tag or the tag of its tabs names it; else empty."""
        if self.name not in _TABS:
            return ""
        found = read_attributes(scanner, self.start, self.inner_start, scope.find_value)
        value = found.get("value", "")
        label = found.get("label") or found.get("title") or scope.labels.get(value) or value
        return " ".join(html.unescape(label).split())


def find_elements(scanner: Scanner, leaves: Sequence[Leaf], starts: Sequence[int]) -> list[Element]:
    """Return the containers and hidden elements of a page, ordered by their start.

    Tags in code and comments do not count. An opening tag that is never closed counts only for
    `<script>` and `<style>`, whose content then reaches to the end of the block.

    Args:
        scanner: Scanner of the whole source.
        leaves: The blocks of the page that contain no other block.
        starts: Offset of the first character of each line of the source.
    """
    if _ANY.search(scanner.text) is None:
        return []
    found: list[Element] = []
    opened: list[tuple[str, int, int]] = []
    unclosed: set[str] = set()
    at = 0  # after the last element whose content is not Markdown
    for leaf in leaves:
        if leaf.construct not in {PARAGRAPH, HTML, JSX, HEADING}:
            continue
        start, end = starts[leaf.start], starts[leaf.end] - 1
        for name, first, after, closes in _read_tags(scanner, max(at, start), end):
            if closes:  # tags after its opening tag stay unclosed
                while any(name == other for other, _, _ in opened):
                    other, opening, inner = opened.pop()
                    if other == name:
                        found.append(Element(name, opening, inner, first, after))
                        break
            elif name in _RAW:
                mark = f"</{name}>"
                close = -1 if name in unclosed else scanner.text.find(mark, after)
                unclosed |= {name} if close < 0 else set()
                inner, at = (end, end) if close < 0 else (close, close + len(mark))
                found.append(Element(name, first, after, inner, at))
            elif len(opened) < _MOST_OPEN:
                opened.append((name, first, after))
    return sorted(found, key=lambda element: element.start)


def _read_tags(scanner: Scanner, at: int, end: int) -> Iterator[tuple[str, int, int, bool]]:
    """Yield name, start and end of each listed tag in a block, and if it is a closing tag."""
    text = scanner.text
    unclosed: set[str] = set()
    while (mark := _MARK.search(text, at, end)) is not None:
        at = mark.end()
        if ticks := mark["ticks"]:
            if ticks not in unclosed:
                close = re.compile(f"(?<!`){ticks}(?!`)").search(text, at, end)
                at = at if close is None else close.end()
                if close is None:
                    unclosed.add(ticks)
        elif not mark["name"]:
            close_at = text.find("-->", at, end)
            if close_at < 0:
                return
            at = close_at
        else:
            after = text.find(">", at, end) + 1 if mark["closes"] else None
            after = after or scanner.find_tag_end(mark.start(), end)
            if after is None or text.startswith("/>", after - 2):
                continue
            yield mark["name"], mark.start(), after, bool(mark["closes"])
            at = after
            if mark["name"] in _RAW and not mark["closes"]:
                close_at = text.find(f"</{mark['name']}>", at, end)
                at = end if close_at < 0 else close_at


def split_at_containers(
    leaves: Sequence[Leaf], starts: Sequence[int], elements: Sequence[Element], source: str
) -> list[Leaf]:
    """Split blocks of text at lines that begin or end a container, such as a tab on one line.

    Args:
        leaves: The blocks of the page that contain no other block.
        starts: Offset of the first character of each line of the source.
        elements: The elements of the page.
        source: The text of the page.
    """
    cuts: set[int] = set()
    for element in elements:
        if element.name in _CONTAINERS:
            line = bisect.bisect_right(starts, element.start) - 1
            mark = _LINE_START.match(source, starts[line])
            if mark is not None and mark.end() == element.start:
                cuts.add(line)
            last = bisect.bisect_right(starts, element.end - 1) - 1
            if not source[element.end : starts[last + 1]].strip():
                cuts.add(last + 1)
    split: list[Leaf] = []
    for leaf in leaves:
        at = leaf.start
        if leaf.construct is PARAGRAPH or leaf.construct is HTML:
            for line in range(leaf.start + 1, leaf.end):
                if line in cuts:
                    split.append(Leaf(leaf.construct, at, line))
                    at = line
        split.append(leaf if at == leaf.start else Leaf(leaf.construct, at, leaf.end))
    return split


def find_around(
    elements: Sequence[Element],
    leaves: Sequence[Leaf],
    spans: Sequence[tuple[int, int]],
    source: str,
) -> list[tuple[int, ...]]:
    """Return for each block the numbers of the containers around it, the outermost first.

    A block belongs to the containers that are open after it. A block with text also belongs to a
    container that ends with it.

    Args:
        elements: The elements of the page, ordered by their start.
        leaves: The blocks of the page that contain no other block.
        spans: Start and end offset of each of these blocks.
        source: The text of the page.
    """
    around: list[tuple[int, ...]] = []
    opened: list[int] = []
    following = 0
    for leaf, (start, end) in zip(leaves, spans, strict=True):
        while following < len(elements) and elements[following].start < end:
            if elements[following].name in _CONTAINERS:
                opened.append(following)
            following += 1
        shown = [
            number
            for number in opened
            if elements[number].end > end
            or (leaf.construct is not JSX and _fills(elements[number], start, end, source))
        ]
        around.append(tuple(shown))
        opened = [number for number in opened if elements[number].end > end]
    return around


def _fills(element: Element, start: int, end: int, source: str) -> bool:
    """Return True if an element that ends inside a block contains all text of the block."""
    first = max(start, element.inner_start)
    before = source[start : max(start, element.start)]
    return (
        not before.strip(" \t>-*+")
        and bool(source[first : element.inner_end].strip())
        and not source[element.end : end].strip()
    )


@dataclass(frozen=True, slots=True)
class PageContent:
    """The content of one file, without the files that it imports.

    Attributes:
        blocks: The blocks in source order.
        headings: The headings in source order.
        uses: Each place where another file belongs: the index of the block before it, and the file.
        scope: The names that the file knows, and what could not be read of it.
    """

    blocks: tuple[Block, ...]
    headings: tuple[Heading, ...]
    uses: tuple[tuple[int, Use], ...]
    scope: Scope


def read_content(
    source: str,
    body_start: int,
    values: Mapping[str, str],
    *,
    mdx: bool,
    start_edits: StartEdits = BlockEdits,
    drops_title: bool = False,
    component_text: str = "",
) -> PageContent:
    """Parse the source of a file into cleaned blocks and headings.

    Args:
        source: The whole file, as `normalize_source` returns it.
        body_start: Offset of the first character after the front matter; 0 without front matter.
        values: Known values of expressions, such as the props of a partial.
        mdx: True if the file is MDX; False if it is CommonMark with HTML.
        start_edits: Creates the edits of one block, which decide what cleaning removes.
        drops_title: True if Docusaurus shows the title elsewhere, as for a blog post. The id of
            the heading of level 1 with which the page begins then stays free.
        component_text: The attributes of components that are text, or are none, as in the setting
            of the same name.

    Returns:
        The blocks in source order, with the front matter as the first block if there is one, and
        the headings in source order.
    """
    lines = source.split("\n")
    body_line = source.count("\n", 0, body_start)
    if body_start and not source.endswith("\n", 0, body_start):
        body_line = len(lines)
    leaves, containers, env = read_leaves(lines, body_line, mdx=mdx)
    if body_line:
        leaves.insert(0, Leaf(FRONT_MATTER, 0, body_line))
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    scanner = Scanner(source, mdx=mdx)
    elements = find_elements(scanner, leaves, starts)
    leaves = split_at_containers(leaves, starts, elements, source)
    spans = [(starts[leaf.start], starts[leaf.end] - 1) for leaf in leaves]
    around = find_around(elements, leaves, spans, source)
    hidden: list[tuple[int, int]] = []  # the elements that are not inside another one
    for element in elements:
        if element.name not in _CONTAINERS and (not hidden or element.start >= hidden[-1][1]):
            hidden.append((element.start, element.end))
    chains = find_chains(containers, (leaf.start for leaf in leaves))
    references = env.get("references", {})
    scope = env[SCOPE] = Scope(values=dict(values), rules=component_text)
    for leaf, (start, end) in zip(leaves, spans, strict=True):
        if leaf.construct is ESM:
            read_statements(scope, source[start:end])
    blocks: list[Block] = []
    uses: list[tuple[int, Use]] = []
    headings = 0
    tabs: dict[int, Container] = {}
    for leaf, chain, inside, (start, end) in zip(leaves, chains, around, spans, strict=True):
        construct = leaf.construct
        edits = start_edits(scanner, references, mdx=mdx)
        edits.scope, edits.hidden = scope, hidden
        construct.clean(edits, start, end)
        uses += ((len(blocks), use) for use in scope.uses[len(uses) :])
        text, runs, holds = edits.apply(start, end)
        for number in inside:
            if number not in tabs:
                label = elements[number].read_label(scanner, scope)
                tabs[number] = Container(len(containers) + number, None, label)
        images = tuple(
            replace(image, line=bisect.bisect_right(starts, at))
            for at, image in sorted(scope.images.items())
        )
        scope.images.clear()
        blocks.append(
            Block(
                kind=construct.name,
                start_line=leaf.start + 1,
                end_line=leaf.end,
                start=start,
                end=end,
                text=text,
                runs=runs,
                holds=holds,
                text_kind=construct.text_kind,
                containers=(*chain, *map(tabs.__getitem__, inside)),
                is_atomic=construct.is_atomic,
                leads=construct.leads,
                heading=headings if construct is HEADING else None,
                images=images,
            )
        )
        headings += construct is HEADING
    own_headings = _read_headings(leaves, env, mdx=mdx, drops_title=drops_title)
    return PageContent(tuple(blocks), own_headings, tuple(uses), scope)


def _read_headings(
    leaves: Sequence[Leaf], env: dict[str, Any], *, mdx: bool, drops_title: bool
) -> tuple[Heading, ...]:
    ids = HeadingIds()
    headings: list[Heading] = []
    may_be_title = drops_title
    for leaf in leaves:
        may_be_title = may_be_title and leaf.construct is not THEMATIC_BREAK
        if leaf.construct is not HEADING:
            continue
        slugged, shown, custom_id = read_heading(leaf.content, env, mdx=mdx)
        anchor = leaf.raw_id
        is_title = may_be_title and leaf.level == 1
        may_be_title = may_be_title and leaf.is_raw  # a tag is no heading of Markdown
        if not leaf.is_raw and not is_title:
            anchor = ids.next_id(leaf.level, slugged, custom_id)
        headings.append(Heading(leaf.level, shown, anchor, leaf.start + 1))
    return tuple(headings)
