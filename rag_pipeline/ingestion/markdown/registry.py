"""The table of Markdown constructs, and the block parser that is built from it.

A construct is one kind of Markdown block with its parsing rules and its cleaning.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from markdown_it import MarkdownIt

from rag_pipeline.ingestion.markdown.constructs.code import CODE, MDX_CODE_FENCE
from rag_pipeline.ingestion.markdown.constructs.code_tag import CODE_TAG
from rag_pipeline.ingestion.markdown.constructs.directive import DIRECTIVE
from rag_pipeline.ingestion.markdown.constructs.heading import HEADING
from rag_pipeline.ingestion.markdown.constructs.html import COMMENT, ESM, HTML
from rag_pipeline.ingestion.markdown.constructs.jsx import EXPRESSION, JSX
from rag_pipeline.ingestion.markdown.constructs.math import MATH
from rag_pipeline.ingestion.markdown.constructs.text import (
    FRONT_MATTER,
    LINK_REFERENCE,
    MARKER,
    PARAGRAPH,
    TABLE,
    THEMATIC_BREAK,
)

_MAX_NESTING: Final = 40  # levels; deeper content becomes plain paragraphs

CONSTRUCTS: Final = (
    DIRECTIVE,
    MATH,
    ESM,
    COMMENT,
    CODE_TAG,
    JSX,
    EXPRESSION,
    CODE,
    MDX_CODE_FENCE,
    THEMATIC_BREAK,
    LINK_REFERENCE,
    HTML,
    HEADING,
    TABLE,
    PARAGRAPH,
    MARKER,
    FRONT_MATTER,
)
"""All constructs, in the order in which the parser tries their rules."""

CONSTRUCT_OF_TOKEN: Final = {
    token: construct for construct in CONSTRUCTS for token in (construct.name, *construct.tokens)
}


@lru_cache(maxsize=2)
def build_parser(*, mdx: bool) -> MarkdownIt:
    """Build the Markdown parser that splits a text into blocks.

    The parser leaves inline Markdown, such as links, unparsed. It is cached and shared by callers.

    Args:
        mdx: True to parse MDX; False to parse CommonMark with HTML.
    """
    md = MarkdownIt("commonmark", {"maxNesting": _MAX_NESTING})
    md.disable(["inline", "text_join"])
    for construct in CONSTRUCTS:
        for rule in construct.rules:
            if rule.only_mdx and not mdx:
                continue
            if rule.before:
                md.block.ruler.before(rule.before, rule.name, rule.read, {"alt": [*rule.ends]})
            else:
                md.block.ruler.at(rule.name, rule.read, {"alt": [*rule.ends]})
        if mdx:
            md.disable([*construct.off_in_mdx])
    return md
