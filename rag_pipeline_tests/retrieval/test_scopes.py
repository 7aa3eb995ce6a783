"""Searches in a site with three versions and two languages of the same pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.sources import Edition
from rag_pipeline.retrieval import (
    Query,
    QueryFilters,
    count_filter_values,
    open_retriever,
    read_contents,
)
from rag_pipeline_tests.retrieval.indexed_book import build_collection, make_settings, move_points

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rag_pipeline.core.vectors import Point
    from rag_pipeline.retrieval import RetrievalResult, Retriever

QUESTIONS = (
    "How does a gripper hold an egg?",
    "How are ranges measured, and what is a service?",
    "How do I store a battery?",
    "scanner glass rain",
    "What is a publsher?",
)
OLD_PAGE = "/book/docs/2.0/module-2/2.1-sensors/lidar"
FRENCH_PAGE = "https://example.org/book/docs/fr/module-1/1.2-ros2/topics#services"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, book_points: list[Point]) -> Iterator[Retriever]:
    """A retriever over the pages of the tiny book in several versions and languages."""
    editions = {
        "3.0": Edition("docs", "3.0", "3.0", locale="en"),
        "2.0": Edition("docs", "2.0", "2.0.x", is_latest=False, locale="en"),
        "1.0": Edition("docs", "1.0", "1.0.x", is_latest=False, locale="en"),
        "fr": Edition("docs", "3.0", "3.0", locale="fr", is_default_locale=False),
    }
    settings = make_settings(tmp_path_factory.mktemp("site"), store_idle_s=30.0)
    moved = [move_points(book_points, edition, folder) for folder, edition in editions.items()]
    build_collection(settings, [point for points in moved for point in points])
    with open_retriever(settings) as opened:
        yield opened


def list_places(result: RetrievalResult) -> list[tuple[str, int]]:
    """Return the page in its folder, and the position, of each hit."""
    return [(chunk.metadata.doc_path[-25:], chunk.metadata.chunk_index) for chunk in result.chunks]


def list_folders(result: RetrievalResult) -> set[str]:
    return {chunk.metadata.doc_path.partition("/")[0] for chunk in result.chunks}


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_latest_version_in_the_default_language_gives_the_hits_of_a_site_with_only_this(
    site: Retriever, retriever: Retriever, question: str
) -> None:
    found, alone = site.retrieve(Query(question)), retriever.retrieve(Query(question))
    assert list_folders(found) == {"3.0"}
    assert list_places(found) == list_places(alone)
    assert [hit.score for hit in found.chunks] == pytest.approx([h.score for h in alone.chunks])
    assert found.search_question == alone.search_question
    assert found.notice is None
    assert found.evidence is not None
    assert alone.evidence is not None
    assert found.evidence.chunk_count == alone.evidence.chunk_count
    assert [term.weight for term in found.evidence.terms] == pytest.approx(
        [term.weight for term in alone.evidence.terms], rel=1e-5
    )


@pytest.mark.parametrize(
    ("filters", "folders"),
    [
        (QueryFilters(versions=["2.0"]), {"2.0"}),
        (QueryFilters(versions=["1.0"], modules=["module-2"]), {"1.0"}),
        (QueryFilters(versions=["9.9"]), set()),
        (QueryFilters(locales=["fr"]), {"fr"}),
        (QueryFilters(versions=["2.0"], locales=["fr"]), set()),
        (QueryFilters(sources=["docs"]), {"3.0"}),
        (QueryFilters(doc_paths=["1.0/module-2/2.1-sensors/lidar.md"]), {"1.0"}),
    ],
)
def test_filters_choose_the_versions_and_languages(
    site: Retriever, filters: QueryFilters, folders: set[str]
) -> None:
    assert list_folders(site.retrieve(Query(QUESTIONS[1], filters=filters))) == folders


def test_a_search_in_all_versions_shows_each_section_once_and_in_its_latest_version(
    site: Retriever,
) -> None:
    everything = QueryFilters(versions=["*"], locales=["*"])
    result = site.retrieve(Query(QUESTIONS[0], filters=everything))
    sections = [
        (hit.metadata.doc_path.partition("/")[2], hit.metadata.anchor) for hit in result.chunks
    ]
    assert len(set(sections)) == len(sections) == 5
    assert list_folders(result) == {"3.0"}


def test_a_question_asked_on_an_old_page_searches_the_version_of_the_page(site: Retriever) -> None:
    result = site.retrieve(Query(QUESTIONS[1], source_url=OLD_PAGE))
    assert list_folders(result) == {"2.0"}
    assert "version 2.0.x" in str(result.notice)


def test_a_question_asked_on_a_translated_page_searches_its_language(site: Retriever) -> None:
    result = site.retrieve(Query(QUESTIONS[1], source_url=FRENCH_PAGE))
    assert list_folders(result) == {"fr"}
    assert " fr " in str(result.notice)


@pytest.mark.parametrize(
    ("url", "folders"),
    [
        ("/book/docs/2.0/category/sensors", {"2.0"}),
        ("/book/docs/1.0/", {"1.0"}),
        ("/book/docs/fr", {"fr"}),
        ("/book/docs/3.0/category/sensors", {"3.0"}),
        ("/book/docs/category/sensors", {"3.0"}),
        ("/book/", {"3.0"}),
        ("/book/docs/2.0/module-2/2.1-sensors/lidar/?x=1#rain", {"2.0"}),
    ],
)
def test_a_page_that_is_not_indexed_has_the_version_of_the_pages_around_it(
    site: Retriever, url: str, folders: set[str]
) -> None:
    assert list_folders(site.retrieve(Query(QUESTIONS[1], source_url=url))) == folders


def test_filters_decide_before_the_page_of_the_question(site: Retriever) -> None:
    filters = QueryFilters(versions=["1.0"])
    result = site.retrieve(Query(QUESTIONS[1], filters=filters, source_url=OLD_PAGE))
    assert list_folders(result) == {"1.0"}
    assert result.notice is None


def test_the_contents_are_those_of_the_latest_version_unless_another_one_is_asked_for(
    site: Retriever,
) -> None:
    def list_pages(**asked: str) -> set[str]:
        return {page.doc_path.partition("/")[0] for page in read_contents(site, **asked)}

    assert list_pages() == {"3.0"}
    assert list_pages(version="2.0") == {"2.0"}
    assert list_pages(version="*") == {"1.0", "2.0", "3.0"}
    assert list_pages(locale="fr") == {"fr"}
    assert list_pages(version="*", locale="*") == {"1.0", "2.0", "3.0", "fr"}
    assert list_pages(module="module-1", version="1.0") == {"1.0"}
    assert list_pages(url=OLD_PAGE) == {"2.0"}


def test_versions_and_languages_are_counted_and_other_values_only_in_what_is_shown_by_default(
    site: Retriever, retriever: Retriever
) -> None:
    counts, alone = count_filter_values(site), count_filter_values(retriever)
    size = sum(alone["modules"].values())
    assert counts["versions"] == {"1.0": size, "2.0": size, "3.0": 2 * size}
    assert counts["locales"] == {"en": 3 * size, "fr": size}
    assert counts["sources"] == {"docs": 4 * size}
    assert counts["modules"] == alone["modules"]
    assert counts["tags"] == alone["tags"]
    assert len(counts["doc_paths"]) == 4 * len(alone["doc_paths"])
    assert alone.keys().isdisjoint({"sources", "versions", "locales"})


def test_the_page_of_a_question_changes_nothing_in_a_site_with_one_version(
    retriever: Retriever,
) -> None:
    page = "/book/docs/module-2/2.1-sensors/lidar"
    found = retriever.retrieve(Query(QUESTIONS[1], source_url=page))
    assert found.chunks == retriever.retrieve(Query(QUESTIONS[1])).chunks
    assert found.notice is None
