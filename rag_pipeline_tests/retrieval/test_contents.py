"""The table of contents, the texts of sections, and the values of filters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_pipeline.retrieval import (
    CollectionMissingError,
    Query,
    RagPipelineError,
    count_filter_values,
    find_entries,
    open_retriever,
    read_contents,
    read_section,
)
from rag_pipeline_tests.retrieval.indexed_book import (
    PAGES,
    build_collection,
    make_settings,
    open_book,
)

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.core.vectors import Point
    from rag_pipeline.retrieval import Retriever

LIDAR = "/book/docs/module-2/2.1-sensors/lidar"
PAGE = "---\nsidebar_position: {}\n---\n\n# Page\n\nA page of the book with a few words.\n"
PLAIN = "# Page\n\nA page of the book with a few words.\n"


def test_the_contents_list_each_page_with_its_sections(retriever: Retriever) -> None:
    pages = {page.doc_path: page for page in read_contents(retriever)}

    assert pages.keys() == PAGES.keys()
    topics = pages["module-1/1.2-ros2/topics.md"]
    assert (topics.title, topics.module, topics.chapter) == (
        "Topics and Services",
        "module-1",
        "1.2-ros2",
    )
    assert topics.url == "/book/docs/module-1/1.2-ros2/topics"
    assert [section.heading for section in topics.sections] == [
        "Publishers",
        "Services",
        "Simulated time",
    ]
    assert topics.sections[2].url == f"{topics.url}#simulated-time"
    assert topics.sections[2].level == 2


def test_the_contents_of_one_module_leave_out_the_others(retriever: Retriever) -> None:
    assert {page.module for page in read_contents(retriever, "module-1")} == {"module-1"}
    assert read_contents(retriever, "module-9") == ()


@pytest.mark.parametrize(
    "url",
    [
        "/book/docs/module-1/1.2-ros2/topics",
        "https://example.org/book/docs/module-1/1.2-ros2/topics/#publishers",
        "module-1/1.2-ros2/topics.md",
        "https://example.org/book/docs/module-1/1.2-ros2/topics.md",
        "/book/docs/module-1/1.2-ros2/topics/index.md#publishers",
    ],
)
def test_the_contents_of_one_address_are_its_page(retriever: Retriever, url: str) -> None:
    (page,) = read_contents(retriever, url=url)
    assert page.doc_path == "module-1/1.2-ros2/topics.md"
    assert read_contents(retriever, "module-2", url) == ()


@pytest.mark.parametrize("url", ["", "/book/docs/nowhere", "javascript:alert(1)", "\ud800"])
def test_an_unknown_address_has_no_contents(retriever: Retriever, url: str) -> None:
    assert read_contents(retriever, url=url) == ()


def test_pages_are_in_the_order_of_the_sidebar_and_numbers_count_by_value(tmp_path: Path) -> None:
    order = {
        "intro.md": PAGE.format(1),
        "glossary.md": PAGE.format(8),
        "module-9/index.md": PLAIN,
        "module-9/9.2-b/second.md": PAGE.format(1),
        "module-9/9.2-b/first.md": PAGE.format(2),
        "module-9/9.10-a/page.md": PLAIN,
        "module-9/arms/Arms.md": PLAIN,
        "module-9/arms/a.md": PLAIN,
        "module-9/exam.md": PAGE.format(99),
        "module-10/page-9.md": PLAIN,
        "module-10/page-10.md": PLAIN,
    }
    with open_book(tmp_path, dict(sorted(order.items()))) as retriever:
        assert [page.doc_path for page in read_contents(retriever)] == list(order)


@pytest.mark.parametrize(
    "url",
    [
        f"{LIDAR}#time-of-flight",
        f"{LIDAR}/#time-of-flight",
        f"https://book.example.org{LIDAR}?x=1#time-of-flight",
        "/docs/module-2/2.1-sensors/lidar#time-of-flight",
        "module-2/2.1-sensors/lidar.md#time%2Dof%2Dflight",
    ],
)
def test_a_section_is_read_whole_and_without_the_overlap_of_its_chunks(
    retriever: Retriever, url: str
) -> None:
    section = read_section(retriever, url)

    source = PAGES["module-2/2.1-sensors/lidar.md"]
    start, end = source.index("## Time of flight"), source.index("## Rain and glass")
    assert section.text == source[start:end].strip()
    assert (section.title, section.section) == ("Laser Scanners", "Time of flight")
    assert section.url == f"{LIDAR}#time-of-flight"
    assert section.doc_path == "module-2/2.1-sensors/lidar.md"


@pytest.mark.parametrize("doc_path", PAGES)
def test_a_page_is_read_as_it_is_in_its_source(retriever: Retriever, doc_path: str) -> None:
    page = read_section(retriever, doc_path)

    assert page.text == PAGES[doc_path].split("---\n", 2)[2].strip()
    assert page.section == page.title
    assert "#" not in page.url


def test_a_section_contains_its_subsections_only(tmp_path: Path) -> None:
    text = "# P\n\n## A\n\nIn A.\n\n### A1\n\nIn A1.\n\n## B\n\nIn B.\n"
    with open_book(tmp_path, {"p.md": text}) as retriever:
        assert read_section(retriever, "/book/docs/p#a").text == (
            "## A\n\nIn A.\n\n### A1\n\nIn A1."
        )


@pytest.mark.parametrize(
    "url",
    ["", "/book/docs/none", f"{LIDAR}#none", "javascript:alert(1)", f"//host{LIDAR}", "\ud800"],
)
def test_an_unknown_address_is_an_error_with_advice(retriever: Retriever, url: str) -> None:
    with pytest.raises(RagPipelineError, match="table of contents") as raised:
        read_section(retriever, url)

    assert (raised.value.code, raised.value.http_status) == ("SECTION_MISSING", 404)


def test_filter_values_are_counted_by_chunk(retriever: Retriever, book_points: list[Point]) -> None:
    counts = count_filter_values(retriever)

    assert list(counts["modules"]) == ["module-1", "module-2"]
    assert sum(counts["modules"].values()) == len(book_points)
    assert counts["tags"]["lidar"] == sum(
        "lidar" in str(point.payload["tags"]) for point in book_points
    )


def test_a_rebuilt_collection_has_its_new_contents(
    tmp_path: Path, book_points: list[Point]
) -> None:
    settings = make_settings(tmp_path, store_idle_s=30.0)
    build_collection(settings, book_points)
    with open_retriever(settings) as retriever:
        assert len(read_contents(retriever)) == len(PAGES)
        some = [point for point in book_points if point.payload["module"] == "module-1"]
        rebuilt = build_collection(settings, some)

        assert len(read_contents(retriever)) == 2
        assert retriever.retrieve(Query("What is a publisher?")).index_id == rebuilt


GLOSSARY = """# Glossary

## Walking

### Zero moment point (ZMP)

The point on the ground where the moment has no horizontal component.

### Center of mass

The mean place of the mass. Its height is $z_c$.

### Point

A place without a size.
"""


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("Compute the zero moment point.", ["Zero moment point (ZMP)", "Point"]),
        ("The ZMPs of two robots", ["Zero moment point (ZMP)"]),
        ("$p=x-\\frac{z_c}{g}$ and $z_c$", ["Center of mass"]),
        ("The centers of mass", ["Center of mass"]),
        ("The mass of the center, pointing up", []),
        ("Nothing is known here", []),
    ],
)
def test_a_text_has_the_entries_of_its_terms_and_symbols(
    tmp_path: Path, text: str, entries: list[str]
) -> None:
    pages = {"glossary.md": GLOSSARY, "walking.md": "# Walking\n\n## Gait\n\nA zero moment point."}
    with open_book(tmp_path, pages) as retriever:
        found = find_entries(retriever, text)

    assert [entry.section for entry in found] == entries
    assert all(entry.url.startswith("/book/docs/glossary#") for entry in found)


def test_a_missing_collection_is_an_error(tmp_path: Path) -> None:
    with (
        open_retriever(make_settings(tmp_path)) as retriever,
        pytest.raises(CollectionMissingError),
    ):
        read_contents(retriever)
