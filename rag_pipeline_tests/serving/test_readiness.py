"""When a service says that it can answer questions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx

from rag_pipeline.answering.assistant import Assistant
from rag_pipeline.core.errors import CollectionMissingError
from rag_pipeline.retrieval import open_retriever
from rag_pipeline.retrieval.retriever import Retriever
from rag_pipeline.serving.api.service import Readiness
from rag_pipeline_tests.retrieval.indexed_book import (
    PAGES,
    build_collection,
    make_points,
    make_settings,
)
from rag_pipeline_tests.serving.running_service import run_service

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

TOPICS = "module-1/1.2-ros2/topics.md"
ASKED = {"question": "Who receives the messages of a topic?"}


def test_a_service_starts_without_an_index_and_notices_the_first_and_the_next(
    tmp_path: Path,
) -> None:
    settings = make_settings(tmp_path)
    with run_service(settings) as url, httpx.Client(base_url=url, timeout=30) as client:
        assert client.get("/healthz").json() == {"status": "ok"}
        missing = client.get("/readyz")
        assert (missing.status_code, missing.json()["code"]) == (503, "COLLECTION_MISSING")
        assert missing.headers["content-type"] == "application/problem+json"
        assert str(tmp_path) not in missing.text
        for refused in (client.post("/v1/answers", json=ASKED), client.get("/v1/filters")):
            assert (refused.status_code, refused.json()["code"]) == (503, "COLLECTION_MISSING")
            assert str(tmp_path) not in refused.text

        points = make_points({TOPICS: PAGES[TOPICS]})
        build_collection(settings, points)
        _wait_for(client, 200)
        first = client.post("/v1/answers", json=ASKED).raise_for_status().json()

        build_collection(settings, points)
        assert client.get("/readyz").status_code == 200
        second = client.post("/v1/answers", json=ASKED).raise_for_status().json()
        assert first["text"] == second["text"]
        assert first["index_id"] != second["index_id"]


def _wait_for(client: httpx.Client, status: int) -> httpx.Response:
    """Ask again until a fresh check has a status. A check is made once per second."""
    for _ in range(10_000):
        response = client.get("/readyz")
        if response.status_code == status:
            return response
    raise AssertionError


def test_a_result_is_fresh_for_one_second(tmp_path: Path) -> None:
    settings, now = make_settings(tmp_path), [0.0]
    assistant = Assistant(open_retriever(settings))

    async def check_often() -> list[object]:
        readiness = Readiness(assistant, clock=lambda: now[0])
        found: list[object] = [await readiness.check()]
        build_collection(settings, make_points({TOPICS: PAGES[TOPICS]}))
        now[0] = 0.9
        found.append(await readiness.check())
        now[0] = 1.0
        found.append(await readiness.check())
        return found

    with assistant:
        before, soon, later = asyncio.run(check_often())
    assert isinstance(before, CollectionMissingError)
    assert soon is before
    assert later is None


def test_a_check_that_fails_unexpectedly_is_not_ready_and_recovers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = make_settings(tmp_path)
    build_collection(settings, make_points({TOPICS: PAGES[TOPICS]}))

    def fail(_: object) -> None:
        raise ZeroDivisionError(str(tmp_path))

    with run_service(settings) as url, httpx.Client(base_url=url, timeout=30) as client:
        with monkeypatch.context() as broken:
            broken.setattr(Retriever, "probe", fail)
            refused = _wait_for(client, 503)
        assert refused.json()["code"] == "INTERNAL_ERROR"
        assert "zero division error" in refused.json()["detail"]
        assert str(tmp_path) not in refused.text
        assert _wait_for(client, 200).json() == {"status": "ready"}
