"""Compare pages with partials, tabs, code and expressions with a real Docusaurus build.

The site and its recorded pages are in `fixtures`; `site/record_pages.py` says how to record them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.models import ChunkLimits, SiteSettings
from rag_pipeline.ingestion.chunking import chunk_doc
from rag_pipeline.ingestion.discovery import discover_docs
from rag_pipeline.ingestion.markdown.blocks import read_span
from rag_pipeline.ingestion.parsing import parse_doc

if TYPE_CHECKING:
    from rag_pipeline.core.models import ParsedDoc

_FIXTURES = Path(__file__).parents[1] / "fixtures"
_SITE_DIR = _FIXTURES / "docusaurus-mdx-site"
_TRUTH = json.loads((_FIXTURES / "docusaurus-mdx-truth.json").read_text(encoding="utf-8"))
_SITE = SiteSettings("/", "docs", trailing_slash=False)

# Words that only one side shows: the names of admonitions without a title, which the theme writes;
# values that only running code can compute; the text of a diagram, which the browser draws; and the
# name of a directive that nobody uses.
_ONLY_BUILT = {"lists": "tip info note", "expressions": "Atlas 2 v2 Atlas"}
_ONLY_PARSED = {"code": "graph TD A Start B Choice", "directives": "textdirective"}
_WORD = re.compile(r"[^\W_]+")
_FENCE = re.compile(r"^ *(?:`{3,}).*?(?:title=([\"'])(?P<title>.*?)\1.*)?$", re.MULTILINE)
_LIST_NUMBER = re.compile(r"^[ >]*\d+\. ", re.MULTILINE)


@cache
def parse_site() -> dict[str, ParsedDoc]:
    """Return the parsed pages of the site by path without suffix."""
    docs = discover_docs(_SITE_DIR / "docs").docs
    return {doc.doc_id.rsplit(".", 1)[0]: parse_doc(doc, _SITE) for doc in docs}


def count_words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text))


def test_files_whose_names_begin_with_an_underscore_are_not_pages() -> None:
    assert set(parse_site()) == set(_TRUTH)


@pytest.mark.parametrize("name", sorted(_TRUTH))
def test_headings_and_their_ids_match_the_build_in_order(name: str) -> None:
    document = parse_site()[name].document
    built = [tuple(heading) for heading in _TRUTH[name]["headings"]]
    own = [(heading.level, heading.text, heading.anchor) for heading in document.headings]
    if built[0] == (1, document.title, None) and own[:1] != built[:1]:
        built.pop(0)  # Docusaurus writes the title of the front matter as the first heading
    assert own == built


@pytest.mark.parametrize("name", sorted(_TRUTH))
def test_the_chunks_of_a_page_contain_the_words_that_the_build_shows(name: str) -> None:
    parsed = parse_site()[name]
    texts = [chunk.text for chunk in chunk_doc(parsed, ChunkLimits(overlap_tokens=0))]
    text = _LIST_NUMBER.sub("", _FENCE.sub(lambda match: match["title"] or "", "\n".join(texts)))
    own = count_words(text)
    built = count_words(" ".join(_TRUTH[name]["sections"]))
    if not any(heading.level == 1 for heading in parsed.document.headings[:1]):
        built -= count_words(parsed.document.title)
    assert built - own == count_words(_ONLY_BUILT.get(name, ""))
    assert own - built == count_words(_ONLY_PARSED.get(name, ""))


@pytest.mark.parametrize("name", sorted(_TRUTH))
def test_no_chunk_contains_remains_of_jsx(name: str) -> None:
    for chunk in chunk_doc(parse_site()[name], ChunkLimits()):
        prose = re.sub(r"(?s)^ *(`{3,})[^\n]*\n.*?\n *\1", "", chunk.text, flags=re.MULTILINE)
        prose = re.sub(r"`[^`]*`|\$[^$]*\$", "", prose)
        assert not re.search(r"</?[A-Z]|\{(?:props|frontMatter|robot|computed)", prose)


@pytest.mark.parametrize("name", sorted(_TRUTH))
def test_every_block_and_chunk_is_the_text_of_its_own_file(name: str) -> None:
    parsed = parse_site()[name]
    encoded = parsed.source.encode()
    lines = parsed.source.split("\n")
    taken = [
        line for block in parsed.blocks for line in range(block.start_line, block.end_line + 1)
    ]
    assert sorted(set(taken)) == taken
    assert {number for number, line in enumerate(lines, 1) if line.strip()} <= set(taken)
    for block in parsed.blocks:
        written = "\n".join(lines[block.start_line - 1 : block.end_line])
        assert parsed.source[block.start : block.end] == written
    origins = parsed.origins
    starts = [origin.start for origin in origins[1:]]
    for origin, end in zip(origins, [*starts, len(lines) + 1][: len(origins)], strict=True):
        if not origin.path:  # a list of texts, which no file contains
            continue
        own = (_SITE_DIR / origin.path).read_text(encoding="utf-8").split("\n")
        for line in range(origin.start, end):
            if lines[line - 1].strip():
                assert lines[line - 1] == own[origin.file_line + line - origin.start - 1]
    for chunk in chunk_doc(parsed, ChunkLimits(20, 40, 60, 10)):
        start, end = (len(encoded[:at].decode()) for at in (chunk.start_byte, chunk.end_byte))
        assert read_span(parsed, start, end) == chunk.text
