"""The service over a site with two versions and two languages of the same pages."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from mcp.client.client import Client

from rag_pipeline.core.sources import Edition
from rag_pipeline_tests.retrieval.indexed_book import (
    PAGES,
    build_collection,
    make_points,
    make_settings,
    move_points,
)
from rag_pipeline_tests.serving.running_service import run_service

if TYPE_CHECKING:
    from collections.abc import Iterator

QUESTION = "How does a soft gripper hold an egg?"
OLD_PAGE = "/book/docs/1.0/module-1/1.2-ros2/topics"
EDITIONS = {
    "2.0": Edition("docs", "2.0", "2.0", locale="en"),
    "1.0": Edition("docs", "1.0", "1.0.x", is_latest=False, locale="en"),
    "fr": Edition("docs", "2.0", "2.0", locale="fr", is_default_locale=False),
}
SCOPE_NOTICE = "Only the pages of version 1.0.x were searched, because you asked on one of them."


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the service."""
    rates = {"serve_client_rate": "", "serve_total_rate": ""}
    settings = make_settings(tmp_path_factory.mktemp("site"), store_idle_s=30.0, **rates)
    points = make_points(PAGES)
    moved = [move_points(points, edition, folder) for folder, edition in EDITIONS.items()]
    build_collection(settings, [point for own in moved for point in own])
    with run_service(settings) as url:
        yield url


@pytest.fixture(scope="module")
def client(address: str) -> Iterator[httpx.Client]:
    """A client of the service."""
    with httpx.Client(base_url=address, timeout=30) as opened:
        yield opened


def post(client: httpx.Client, path: str, **body: object) -> dict[str, Any]:
    """Return the JSON of the answer to a question or search."""
    response = client.post(path, json={"question": QUESTION, **body}).raise_for_status()
    found: dict[str, Any] = response.json()
    return found


def use(address: str, tool: str, **arguments: object) -> dict[str, Any]:
    """Return the structured result of an MCP tool."""

    async def run() -> dict[str, Any]:
        async with Client(f"{address}/mcp") as opened:
            result = await opened.call_tool(tool, arguments)
            assert not result.is_error, result.content
            found: dict[str, Any] = result.structured_content
            return found

    return asyncio.run(run())


def test_answers_cite_the_latest_version_without_naming_it(client: httpx.Client) -> None:
    answer = post(client, "/v1/answers")
    source = answer["sources"][0]
    assert source["url"] == "/book/docs/2.0/module-1/1.1-foundations/embodiment#soft-grippers"
    assert (source["version"], source["locale"]) == ("", "")
    assert "scope" not in {notice["code"] for notice in answer["notices"]}


def test_an_answer_for_a_reader_of_an_old_page_says_which_version_it_is_from(
    client: httpx.Client,
) -> None:
    answer = post(client, "/v1/answers", source_url=OLD_PAGE)
    assert {source["version"] for source in answer["sources"]} == {"1.0.x"}
    assert {"code": "scope", "text": SCOPE_NOTICE, "data": {}} in answer["notices"]
    assert "> Soft grippers (version 1.0.x)](/book/docs/1.0/" in answer["text"]


def test_searches_take_filters_by_version_and_language(client: httpx.Client) -> None:
    def search(**body: object) -> set[tuple[str, str]]:
        results = post(client, "/v1/search", **body)["results"]
        return {(hit["version"], hit["locale"]) for hit in results}

    assert search() == {("", "")}
    assert search(filters={"versions": ["1.0"]}) == {("1.0.x", "")}
    assert search(filters={"locales": ["fr"]}) == {("", "fr")}
    assert search(filters={"sources": ["api"]}) == set()
    assert search(source_url=OLD_PAGE) == {("1.0.x", "")}
    assert post(client, "/v1/search", source_url=OLD_PAGE)["notice"] == SCOPE_NOTICE


def test_a_refusal_in_one_version_offers_to_search_without_the_filter(client: httpx.Client) -> None:
    answer = post(client, "/v1/answers", filters={"versions": ["9.9"]})
    assert answer["refusal"]["offers"] == ["drop_filters"]


def test_filters_and_contents_name_versions_and_languages(client: httpx.Client) -> None:
    filters = client.get("/v1/filters").raise_for_status().json()["filters"]
    assert list(filters["versions"]) == ["1.0", "2.0"]
    assert list(filters["locales"]) == ["en", "fr"]
    pages = client.get("/v1/contents").raise_for_status().json()["pages"]
    assert len(pages) == len(PAGES)
    assert pages[0]["edition"]["version"] == "2.0"
    old = client.get("/v1/contents", params={"version": "1.0"}).json()["pages"]
    assert old[0]["edition"] == {
        "source": "docs",
        "version": "1.0",
        "version_label": "1.0.x",
        "is_latest": False,
        "locale": "en",
        "is_default_locale": True,
    }
    (page,) = client.get("/v1/contents", params={"url": OLD_PAGE}).json()["pages"]
    assert page["edition"]["version"] == "1.0"
    section = client.get("/v1/sections", params={"url": f"{OLD_PAGE}#publishers"}).json()
    assert (section["version"], section["locale"]) == ("1.0.x", "")


def test_an_agent_reads_the_latest_version_unless_it_names_another(address: str) -> None:
    (first, *_) = use(address, "search_docs", query=QUESTION)["passages"]
    assert (first["version"], first["locale"]) == ("", "")
    (first, *_) = use(address, "search_docs", query=QUESTION, version="1.0")["passages"]
    assert first["version"] == "1.0.x"
    section = use(address, "read_section", url=first["url"])
    assert section["version"] == "1.0.x"
    (first, *_) = use(address, "search_docs", query=QUESTION, locale="fr")["passages"]
    assert first["locale"] == "fr"
    assert len(use(address, "list_contents")["pages"]) == len(PAGES)
    assert "/1.0/" in use(address, "list_contents", version="1.0")["pages"][0]["url"]
    answer = use(address, "ask_textbook", question=QUESTION, version="1.0")
    assert {source["version"] for source in answer["sources"]} == {"1.0.x"}
