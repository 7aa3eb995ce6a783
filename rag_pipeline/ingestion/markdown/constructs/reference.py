"""Link reference definitions, `[label]: target`, and footnotes, `[^1]: text`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from markdown_it.rules_block import reference as read_reference
from mdit_py_plugins.footnote.index import footnote_def as read_footnote

from rag_pipeline.ingestion.markdown.construct import PARAGRAPHS, BlockRule, Construct, begin_of
from rag_pipeline.ingestion.markdown.constructs.marks import clean_away

if TYPE_CHECKING:
    from markdown_it.rules_block import StateBlock

FOOTNOTES: Final = "footnote_names"
"""Key in the parser's environment for the names of the footnotes that a page defines."""

_FOOTNOTE_DEFINITION: Final = re.compile(r"^ {0,3}\[\^([^\]\s]+)\]:", re.MULTILINE)


def find_footnotes(body: str) -> frozenset[str]:
    """Return the names of the footnotes that a page defines, such as `1` for `[^1]: text`."""
    return frozenset(_FOOTNOTE_DEFINITION.findall(body))


def _read(state: StateBlock, start_line: int, end_line: int, silent: bool) -> bool:  # noqa: FBT001  # markdown-it's signature
    """Parse a link reference definition at `start_line`; return True if there is one.

    A footnote definition such as `[^1]: text` is not a link reference definition.
    """
    if state.src.startswith("[^", begin_of(state, start_line)):
        return False
    if not read_reference(state, start_line, end_line, silent):
        return False
    if not silent:
        token = state.push(LINK_REFERENCE.name, "", 0)
        token.map = [start_line, state.line]
    return True


LINK_REFERENCE: Final = Construct(
    "link_reference",
    clean_away,
    rules=(
        BlockRule("reference", _read),
        BlockRule("footnote", read_footnote, before="reference", ends=PARAGRAPHS),
    ),
)
