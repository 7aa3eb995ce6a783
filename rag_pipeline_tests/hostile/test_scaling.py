"""Tests that time grows in proportion to what a page or a client can send, for hostile texts too.

Processor time is measured, the best of three rounds, so a busy machine changes nothing.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import pytest

from rag_pipeline.answering.models import Source
from rag_pipeline.answering.quoting.choosing import choose_passages
from rag_pipeline.answering.selected_blocks import find_selected_blocks
from rag_pipeline.answering.units import split_units
from rag_pipeline.core.models import ChunkLimits, DiscoveredDoc, SiteSettings
from rag_pipeline.ingestion.chunking import chunk_doc
from rag_pipeline.ingestion.parsing import parse_doc
from rag_pipeline.retrieval.models import Citation
from rag_pipeline.serving.protection.requests import read_headers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_SIZE: Final = 5_000  # characters; a selection may have 20,000
_PER_DOUBLING: Final = 2.6
_FLOOR_S: Final = 0.02  # shorter times are not told apart from noise
_ROUNDS: Final = 3

TEXTS: Final = {
    "one word": "word",
    "words": "word ",
    "words of one letter": "a ",
    "open brackets": "[",
    "closed brackets": "]",
    "links": "[a](b",
    "images": "![a](",
    "references": "[a]: b\n",
    "footnotes": "[^a]",
    "parentheses": "(",
    "braces": "{",
    "tags": "<a",
    "closed tags": "<a>",
    "comments": "<!--",
    "stars": "*a",
    "two stars": "**a",
    "rules": "***\n",
    "underlines": "_a_",
    "tildes": "~~a",
    "back ticks": "` ``",
    "fences": "```\n",
    "dollars": "$a",
    "pipes": "|",
    "rows": "| a | b |\n",
    "table": "a|b\n-|-\n",
    "list": "- a\n",
    "nested list": "- - ",
    "numbered list": "1. a\n",
    "quotes": "> ",
    "headings": "# a\n",
    "underlined headings": "a\n=\n",
    "directives": ":::a\n",
    "empty lines": "\n",
    "white space": " \t",
    "sentences": "A. ",
    "abbreviations": "e.g. ",
    "no spaces": "a.b,c;",
    "combining characters": "a\u0301\u0316\u0302",
    "only combining characters": "\u0301",
    "wide characters": "語",
    "emoji": "\U0001f469\u200d",
    "backslashes": "\\",
    "entities": "&amp;",
    "addresses": "https://a.b/ ",
    "imports": "import A from './a';\n",
    "front matter": "---\n",
    "carriage returns": "\r",
    "zeros": "\0",
}


def parse(text: str, folder: Path) -> object:
    """Read and cut a page."""
    doc = DiscoveredDoc("page.md", folder / "page.md", "0" * 64, len(text), 0)  # type: ignore[arg-type]  # an id
    parsed = parse_doc(doc, SiteSettings(), text.encode("utf-8", "replace"), {})
    return chunk_doc(parsed, ChunkLimits())


def quote(text: str, _: Path) -> object:
    """Choose passages of a selection, as an answer without a model does."""
    blocks = find_selected_blocks(text)
    split_units(text, blocks)
    source = Source(1, "1", text, Citation("t", "s", "", "m", "c"), blocks)
    weights = dict.fromkeys(("word", "a", "b"), 1.0)
    return choose_passages("What is a word of a b?", [source], weights)


STEPS: Final = {"reading": parse, "quoting": quote}


def measure(work: Callable[[], object]) -> float:
    """Return the processor time of the fastest round."""
    spent = []
    for _ in range(_ROUNDS):
        started = time.process_time()
        work()
        spent.append(time.process_time() - started)
        if spent[-1] < _FLOOR_S:
            break
    return max(min(spent), _FLOOR_S)


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("pattern", TEXTS.values(), ids=TEXTS)
def test_time_grows_in_proportion_to_the_text(step: str, pattern: str, tmp_path: Path) -> None:
    def run(size: int) -> Callable[[], object]:
        text = "# Title\n\n" + (pattern * size)[:size]
        return lambda: STEPS[step](text, tmp_path)

    run(_SIZE)()  # the first call also loads modules
    one, two, four = (measure(run(_SIZE * times)) for times in (1, 2, 4))
    shown = f"{one:.3f} s, {two:.3f} s, {four:.3f} s"
    assert four <= _PER_DOUBLING**2 * one, shown


def test_repeated_headers_take_linear_time() -> None:
    def run(count: int) -> Callable[[], object]:
        headers = [(b"x", b"a" * 50)] * count
        return lambda: read_headers({"headers": headers})

    one, four = measure(run(50_000)), measure(run(200_000))
    assert four <= _PER_DOUBLING**2 * one
