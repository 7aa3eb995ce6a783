"""Tables, in the syntax of GitHub-flavored Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from markdown_it.rules_block import table as read_table

from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.ingestion.markdown.construct import PARAGRAPHS, BlockRule, Construct
from rag_pipeline.ingestion.markdown.constructs.paragraph import clean_text

if TYPE_CHECKING:
    from rag_pipeline.ingestion.markdown.edits import BlockEdits


def _clean(edits: BlockEdits, start: int, end: int) -> None:
    edits.keeps_escaped_bars = True
    clean_text(edits, start, end)


# markdown-it tries tables before lists, so it would make the mark of `1. a | b` part of a table.
# This rule is therefore tried later.
TABLE: Final = Construct(
    "table",
    _clean,
    TextBlockKind.TABLE,
    tokens=("table_open",),
    rules=(BlockRule("gfm_table", read_table, before="lheading", ends=PARAGRAPHS),),
    is_atomic=True,
)
