"""Tests that the proof finds each kind of wrong citation, and no fault in a correct build."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

from rag_pipeline_tests.site.built_page import BuiltHeading, read_page
from rag_pipeline_tests.site.proof import BuiltSite, check_links, main, prove_citations

if TYPE_CHECKING:
    from pathlib import Path

HASH = "<a href=#{0} class=hash-link aria-label=Direct>\u200b</a>"
FORMULA = (
    "<span class=katex><span class=katex-mathml><math><mi>x</mi>"
    '<annotation encoding="application/x-tex">x</annotation></math></span>'
    "<span class=katex-html aria-hidden=true><span>x</span></span></span>"
)
# Minified as by Docusaurus: attributes without quotes, and optional end tags left out.
PAGE = f"""<!doctype html><html lang=en><head><meta charset=UTF-8>
<link data-rh=true rel=canonical href=https://example.org/book/docs/a%20b /></head>
<body><div id=__docusaurus><nav><h2 id=menu>Menu</h2></nav><div class=row><article>
<div class="theme-doc-markdown markdown"><header><h1>Springs &amp; legs</h1></header><div>
<p>Intro<h2 class=anchor id=force>Force{HASH.format("force")}</h2><p>Text of six words or so
<ul><li>one<li><h3 class=anchor id=force-1>Force{HASH.format("force-1")}</h3></ul></div>
<h2 class=anchor id=the-x-axis>The {FORMULA} <code>axis</code></h2>
<a class=card href=/book/docs/more><h2 class="cardTitle_x1">More</h2></a>
<section data-footnotes=true class=footnotes><h2 id=footnote-label>Footnotes</h2></section>
</div></article></div><footer><a href=/book/>Home</a><a href=#force-1>Up</a>
<a href=/book/docs/more#own%20id>More</a><img src=/book/img/a.svg><a href=https://other.org/x>O</a>
</footer></div></body></html>
"""
MORE = """<html><head><link rel=canonical href=https://example.org/book/docs/more></head><body>
<div class=theme-doc-markdown><h1>More</h1><a href=../docs/a%20b#force id="own id">a</a></div>
"""
HEADINGS: list[dict[str, Any]] = [
    {"level": 1, "text": "Springs & legs", "anchor": None, "line": 3},
    {"level": 2, "text": "Force", "anchor": "force", "line": 7},
    {"level": 3, "text": "Force", "anchor": "force-1", "line": 12},
    {"level": 2, "text": "The $x$ axis", "anchor": "the-x-axis", "line": 20},
]
URL = "/book/docs/a%20b"
TEXTS = (
    "# Springs & legs\n\nIntro",
    "## Force\n\nText of six words or so",
    "### Force\n\n```mermaid\nflowchart LR\n```\n",
    "## The $x$ `axis`",
)


def chunk_of(place: int, **changes: object) -> dict[str, Any]:
    """Return the record of the chunk below a heading of `HEADINGS`, with changed fields."""
    heading = HEADINGS[place]
    anchor = heading["anchor"]
    return {
        "doc_path": "a b.md",
        "chunk_index": place,
        "title": "Springs",
        "section_heading": heading["text"],
        "heading_level": heading["level"],
        "anchor": anchor,
        "url": f"{URL}#{anchor}" if anchor else URL,
        "start_line": heading["line"],
        "text": TEXTS[place],
        **changes,
    }


def right_record() -> Any:  # noqa: ANN401  # the tests put wrong values into it
    """Return correct records of the document and its four chunks."""
    document = {"doc_path": "a b.md", "title": "Springs", "url": URL, "headings": HEADINGS}
    return copy.deepcopy({"documents": [document], "chunks": [chunk_of(n) for n in range(4)]})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Write a small build with three pages and an image, and return its folder."""
    build = tmp_path / "build"
    files = {
        "index.html": "<a href=docs/more>",
        "docs/a b.html": PAGE,
        "docs/more/index.html": MORE,
        "img/a.svg": "",
    }
    for name, text in files.items():
        path = build / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return build


def prove(folder: Path, record: Any) -> str:  # noqa: ANN401  # records with wrong values of any type
    """Return the faults of the citations in the records, one per line."""
    return "\n".join(prove_citations(BuiltSite(folder, "/book/"), record).faults)


def test_the_headings_and_ids_of_a_page_are_read_as_a_browser_shows_them(folder: Path) -> None:
    page = read_page(folder / "docs/a b.html")
    assert page.canonical == "https://example.org/book/docs/a%20b"
    assert page.headings == (
        BuiltHeading(1, "Springs & legs", None, is_title=True),
        BuiltHeading(2, "Force", "force"),
        BuiltHeading(3, "Force", "force-1"),
        BuiltHeading(2, "The $x$ axis", "the-x-axis"),
    )
    assert page.ids.count("menu") == 1


def test_correct_citations_have_no_faults_and_are_counted(folder: Path) -> None:
    proof = prove_citations(BuiltSite(folder, "/book/"), right_record())
    assert proof.faults == []
    assert (
        str(proof)
        == "proven: pages 1 of 1, headings 4 of 4, chunks 4 of 4, texts 4 of 4, anchors 3 of 3"
    )


def test_a_title_generated_by_docusaurus_is_not_a_heading_of_the_document(folder: Path) -> None:
    record = right_record()
    del record["documents"][0]["headings"][0]
    del record["chunks"][0]
    assert "shows the title 'Springs' as 'Springs & legs'" in prove(folder, record)
    record["documents"][0]["title"] = "Springs & legs"
    assert prove(folder, record) == ""


@pytest.mark.parametrize(
    ("place", "changes", "fault"),
    [
        (
            2,
            {"anchor": "force", "url": f"{URL}#force"},
            "but its section's heading on the page is h3 'Force' with id force-1",
        ),
        (2, {"anchor": "force-2", "url": f"{URL}#force-2"}, "0 elements have the id force-2"),
        (1, {"section_heading": "Forces"}, "cites h2 'Forces' with id force, but its section's"),
        (1, {"start_line": 12}, "cites h2 'Force' with id force, but its section's"),
        (1, {"url": URL}, "does not end in the anchor force"),
        (1, {"url": "/book/docs/more#force"}, "cited as /book/docs/more, but its document as"),
        (0, {"anchor": "force", "url": f"{URL}#force"}, "cites h1 'Springs & legs' with id force"),
        (2, {"text": TEXTS[1]}, "1 of its words are below its own heading, but 7 below force"),
        (0, {"text": "five words of another page"}, "only 0 of its 5 words are below the title"),
        (1, {"start_line": 1}, "is before the first heading, but has the anchor force"),
    ],
)
def test_a_wrong_chunk_is_named(
    place: int, changes: dict[str, object], fault: str, folder: Path
) -> None:
    record = right_record()
    record["chunks"][place] = chunk_of(place, **changes)
    found = prove(folder, record)
    assert f"a b.md chunk {place}: " in found
    assert fault in found


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ("docs/a%20b /", "docs/A%20b /", "canonical link is https://example.org/book/docs/A%20b"),
        ("rel=canonical", "rel=other", "canonical link is missing"),
        ("id=menu", "id=force", "contains the id force 2 times"),
        (
            "<h3 class=anchor id=force-1>",
            "<h4 class=anchor id=force-1>",
            "id force-1, but the page shows h4 'Force'",
        ),
        ("<h2 class=anchor id=the-x", "<h2 class=anchor id=x", "the page shows h2"),
    ],
)
def test_a_wrong_page_is_named(before: str, after: str, fault: str, folder: Path) -> None:
    page = folder / "docs/a b.html"
    text = PAGE.replace(before, after)
    text = text.replace("</h3>", "</h4>") if "<h4" in after else text
    page.write_text(text, encoding="utf-8")
    assert fault in prove(folder, right_record())


def test_a_heading_that_only_the_page_has_does_not_affect_other_citations(folder: Path) -> None:
    text = PAGE.replace("<ul><li>one", "<h2 id=new>New</h2><p>Text")
    (folder / "docs/a b.html").write_text(text, encoding="utf-8")
    fault = "a b.md: only the page has the heading h2 'New' with id new"
    assert prove(folder, right_record()) == fault


def test_a_citation_of_a_heading_that_the_page_lacks_is_not_proven(folder: Path) -> None:
    text = PAGE.replace("<h2 class=anchor id=force>", "<p><b>").replace("</h2><p>Text", "<p>Text")
    (folder / "docs/a b.html").write_text(text, encoding="utf-8")
    proof = prove_citations(BuiltSite(folder, "/book/"), right_record())
    assert (
        str(proof)
        == "proven: pages 1 of 1, headings 3 of 4, chunks 3 of 4, texts 3 of 4, anchors 2 of 3"
    )
    assert "the page shows none" in proof.faults[0]


def test_a_canonical_link_without_percent_encoding_is_accepted(folder: Path) -> None:
    text = PAGE.replace(
        "href=https://example.org/book/docs/a%20b", 'href="https://example.org/book/docs/a b"'
    )
    (folder / "docs/a b.html").write_text(text, encoding="utf-8")
    assert prove(folder, right_record()) == ""


@pytest.mark.parametrize(
    ("url", "file"),
    [
        ("/book/docs/a%20b", "docs/a b.html"),
        ("/book/docs/more", "docs/more/index.html"),
        ("/book/docs/more/", "docs/more/index.html"),
        ("/book", "index.html"),
        ("/book/docs/More", None),
        ("/book/docs/a%20b/", None),
        ("/docs/more", None),
    ],
)
def test_an_address_leads_to_the_file_that_a_static_server_sends(
    url: str, file: str | None, folder: Path
) -> None:
    assert BuiltSite(folder, "/book/").find_file(url) == file


def test_links_to_existing_files_and_ids_have_no_faults(folder: Path) -> None:
    proof = check_links(BuiltSite(folder, "/book/"))
    assert proof.faults == []
    assert proof.seen["links"] == 11


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ("/book/img/a.svg", "/book/img/b.svg", "/book/img/b.svg leads to no built file"),
        ("href=/book/>", "href=/docs/more>", "/docs/more leads to no built file"),
        ("#own%20id", "#own-id", "leads to no id of docs/more/index.html"),
        ("href=#force-1>Up", "href=#force-3>Up", "#force-3 leads to no id of docs/a b.html"),
    ],
)
def test_a_broken_link_is_named(before: str, after: str, fault: str, folder: Path) -> None:
    (folder / "docs/a b.html").write_text(PAGE.replace(before, after), encoding="utf-8")
    (found,) = check_links(BuiltSite(folder, "/book/")).faults
    assert fault in found


def test_the_command_prints_counts_and_exits_with_1_if_there_is_a_fault(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chunks = tmp_path / "chunks.json"
    arguments = [str(folder), str(chunks), "--base-url", "/book/"]
    chunks.write_text(json.dumps(right_record()), encoding="utf-8")
    assert main(arguments) == 0
    assert "chunks 4 of 4" in capsys.readouterr().out
    record = right_record()
    record["chunks"][0]["url"] += "#springs"
    chunks.write_text(json.dumps(record), encoding="utf-8")
    assert main(arguments) == 1
    assert "chunks 3 of 4" in capsys.readouterr().out
