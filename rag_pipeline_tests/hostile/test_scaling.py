"""Tests that time grows in proportion to what a page, a client or a model can send.

Processor time is measured, and the best of several rounds counts, so a busy machine changes little.
"""

from __future__ import annotations

import gc
import time
from itertools import pairwise
from math import prod
from statistics import median
from typing import TYPE_CHECKING, Final

import pytest

from rag_pipeline.answering import Voice
from rag_pipeline.answering.models import GroundedResponse, Level, Reason, Source
from rag_pipeline.answering.quoting.choosing import choose_passages
from rag_pipeline.answering.selected_blocks import find_selected_blocks
from rag_pipeline.answering.tables import find_blocks, split_units
from rag_pipeline.answering.writing.generated import AnswerWriter
from rag_pipeline.core.models import ChunkLimits, DiscoveredDoc, SiteSettings
from rag_pipeline.ingestion.chunking import chunk_doc
from rag_pipeline.ingestion.parsing import parse_doc
from rag_pipeline.retrieval.models import Citation
from rag_pipeline.retrieval.queries import Mode
from rag_pipeline.serving.access import read_headers

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_SIZE: Final = 5_000  # characters; a selection may have 20,000
_LARGEST: Final = 40_000  # to which the size is raised, so that the time is long enough to measure
_PER_DOUBLING: Final = 2.6
_FLOOR_S: Final = 0.01  # shorter times are not told apart from noise
_ROUNDS: Final = 20  # only a failing case needs them all

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
    "cells": "<td>a </td> ",
    "open cells": "</tr> <td",
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


def read(text: str, folder: Path) -> object:
    """Read and cut a page."""
    doc = DiscoveredDoc("page.md", folder / "page.md", "0" * 64, len(text), 0)  # type: ignore[arg-type]  # an id
    parsed = parse_doc(doc, SiteSettings(), text.encode("utf-8", "replace"), {})
    return chunk_doc(parsed, ChunkLimits())


def select(text: str, _: Path) -> object:
    """Find the parts of a selected text."""
    return split_units(text, find_selected_blocks(text))


def make_source(text: str, number: int = 1) -> Source:
    """Return a source with a text."""
    return Source(number, str(number), text, Citation("t", "s", "", "m", "c"), find_blocks(text))


def quote(text: str, _: Path) -> object:
    """Choose passages of a selection, as an answer without a model does."""
    weights = dict.fromkeys(("word", "a", "b"), 1.0)
    return choose_passages("What is a word of a b?", [make_source(text)], weights)


def write(text: str, source: str) -> str:
    """Clean and check the text of a model."""
    sources = (make_source(source), make_source("A pump starts at 3 bar.", 2))
    grounded = GroundedResponse("", "", (), Mode.NORMAL, Level.ANSWERED, Reason.SUFFICIENT, sources)
    writer = AnswerWriter(grounded, "What is a word?", Voice())
    for at in range(0, len(text), 7):
        writer.feed(text[at : at + 7])
    writer.finish(complete=True)
    return writer.shown


def clean(text: str, _: Path) -> object:
    """Clean and check a text of a model that is in no source."""
    return write(text, "The words of a source.")


def check(text: str, _: Path) -> object:
    """Check the answer of a model against a long source."""
    return write("The words of a b are the source [1]. A word starts at 3 bar [2].", text)


STEPS: Final = {
    "reading": read,
    "selecting": select,
    "quoting": quote,
    "cleaning": clean,
    "checking": check,
}


def measure(work: Callable[[], object]) -> float:
    """Return the processor time of one call, without that of collecting garbage."""
    gc.disable()
    started = time.process_time()
    try:
        work()
        return max(time.process_time() - started, _FLOOR_S)
    finally:
        gc.enable()


def find_growth(run: Callable[[int], Callable[[], object]], size: int) -> list[float]:
    """Return how many times longer twice the size takes, and four times the size than twice."""
    taken_once = measure(run(size))  # the first call also loads modules
    while taken_once <= _FLOOR_S and size < _LARGEST:
        size *= 2
        taken_once = measure(run(size))
    works = [run(size * times) for times in (1, 2, 4)]
    # A slow measurement of the smallest text could hide growth, so the fastest of two counts.
    taken = [[taken_once], [], []]
    for _ in range(_ROUNDS):
        for times, work in zip(taken, works, strict=True):
            times.append(measure(work))
        growth = [min(after) / min(before) for before, after in pairwise(taken)]
        if grows_in_proportion(growth):
            return growth
    # On a busy machine, a short measurement is sometimes undisturbed, and a long one never.
    return [median(after) / median(before) for before, after in pairwise(taken)]


def grows_in_proportion(growth: list[float]) -> bool:
    """Return True unless a doubling of the text takes too long.

    One slow measurement is allowed if four times the text takes about four times as long.
    """
    return max(growth) <= _PER_DOUBLING or prod(growth) <= 2 * _PER_DOUBLING


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("pattern", TEXTS.values(), ids=TEXTS)
def test_time_grows_in_proportion_to_the_text(step: str, pattern: str, tmp_path: Path) -> None:
    def run(size: int) -> Callable[[], object]:
        text = "# Title\n\n" + (pattern * size)[:size]
        return lambda: STEPS[step](text, tmp_path)

    growth = find_growth(run, _SIZE)
    assert grows_in_proportion(growth), growth


def test_nested_directives_take_about_as_long_as_directives_beside_each_other(
    tmp_path: Path,
) -> None:
    def run(pattern: str) -> float:
        return min(measure(lambda: read(pattern * 1_000, tmp_path)) for _ in range(3))

    assert run(":::a\n:::a\n") < 4 * run(":::a\n:::\n")


def test_repeated_headers_take_linear_time() -> None:
    def run(count: int) -> Callable[[], object]:
        headers = [(b"x", b"a" * 50)] * count
        return lambda: read_headers({"headers": headers})

    growth = find_growth(run, _LARGEST)
    assert grows_in_proportion(growth), growth
