"""Parse the source of a page into cleaned blocks and headings; the entry point of this package."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from rag_pipeline.core.models import Block, Container, Figure, Heading
from rag_pipeline.core.site.docusaurus import HeadingIds
from rag_pipeline.ingestion.markdown.blocks import find_chains, read_leaves
from rag_pipeline.ingestion.markdown.construct import Leaf
from rag_pipeline.ingestion.markdown.constructs.heading import HEADING, read_heading
from rag_pipeline.ingestion.markdown.constructs.html import ESM
from rag_pipeline.ingestion.markdown.constructs.text import FRONT_MATTER, THEMATIC_BREAK
from rag_pipeline.ingestion.markdown.edits import BlockEdits, StartEdits
from rag_pipeline.ingestion.markdown.elements import (
    find_around,
    find_elements,
    find_hidden,
    split_at_containers,
)
from rag_pipeline.ingestion.markdown.scope import SCOPE, Scope, read_statements
from rag_pipeline.ingestion.markdown.source import count_bytes
from rag_pipeline.ingestion.markdown.tags import Scanner

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rag_pipeline.ingestion.markdown.scope import Use


@dataclass(frozen=True, slots=True)
class PageContent:
    """The content of one file, without the files that it imports.

    Attributes:
        blocks: The blocks in source order.
        headings: The headings in source order.
        uses: Each place where another file belongs: the index of the block before it, and the file.
        left_out: Number of expressions without a known value, which the text leaves out.
        unread: Marks of directives that only a plugin of the site can read, in order.
        unread_tags: Names of the components with a text that cannot be read, in order.
    """

    blocks: tuple[Block, ...]
    headings: tuple[Heading, ...]
    uses: tuple[tuple[int, Use], ...]
    left_out: int
    unread: tuple[str, ...]
    unread_tags: tuple[str, ...] = ()


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
    hidden = find_hidden(elements)
    chains = find_chains(containers, (leaf.start for leaf in leaves))
    byte_of = count_bytes(source, (offset for span in spans for offset in span))
    references = env.get("references", {})
    scope = env[SCOPE] = Scope(values=dict(values), component_text=component_text)
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
        if scope.uses:
            uses += ((len(blocks), use) for use in scope.uses)
            scope.uses.clear()
        text, runs, holds = edits.apply(start, end)
        for number in inside:
            if number not in tabs:
                label = elements[number].read_label(scanner, scope)
                tabs[number] = Container(len(containers) + number, None, label)
        blocks.append(
            Block(
                kind=construct.name,
                start_line=leaf.start + 1,
                end_line=leaf.end,
                start=start,
                end=end,
                start_byte=byte_of[start],
                end_byte=byte_of[end],
                text=text,
                runs=runs,
                holds=holds,
                text_kind=construct.text_kind,
                containers=(*chain, *map(tabs.__getitem__, inside)),
                is_atomic=construct.is_atomic,
                leads=construct.leads,
                heading=headings if construct is HEADING else None,
                images=_take_images(scope, starts),
            )
        )
        headings += construct is HEADING
    own_headings = _read_headings(leaves, env, mdx=mdx, drops_title=drops_title)
    return PageContent(
        tuple(blocks),
        own_headings,
        tuple(uses),
        scope.left_out,
        tuple(scope.unread),
        tuple(scope.unread_tags),
    )


def _take_images(scope: Scope, starts: Sequence[int]) -> tuple[Figure, ...]:
    """Return the images of the block that was cleaned, in order, and remove them from the scope."""
    if not scope.images:
        return ()
    images = {image.start: image for image in scope.images}  # a tag may be read twice
    scope.images.clear()
    return tuple(
        Figure("image", *images[at][1:], bisect.bisect_right(starts, at)) for at in sorted(images)
    )


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
        text = read_heading(leaf.content, env, mdx=mdx)
        anchor = leaf.raw_id
        is_title = may_be_title and leaf.level == 1
        may_be_title = may_be_title and leaf.is_raw  # a tag is no heading of Markdown
        if not leaf.is_raw and not is_title:
            anchor = ids.next_id(leaf.level, text.slugged, text.custom_id)
        headings.append(Heading(leaf.level, text.shown, anchor, leaf.start + 1))
    return tuple(headings)
