"""Searches, the contents of the book, ratings and deletion."""

from __future__ import annotations

import asyncio
from threading import Event
from typing import TYPE_CHECKING

import httpx
import pytest

from rag_pipeline.adapters.database.questions import open_question_log
from rag_pipeline.core.errors import QuestionLogError
from rag_pipeline.serving.log_writer import LogWriter
from rag_pipeline_tests.retrieval.indexed_book import build_collection, make_points, make_settings
from rag_pipeline_tests.serving.running_service import run_service

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rag_pipeline.adapters.database.questions import SqlQuestionLog
    from rag_pipeline.core.protocols import LoggedAnswer, Rating
    from rag_pipeline.core.settings import Settings

QUESTION = "How does a soft gripper hold an egg?"
TOPICS = "/book/docs/module-1/1.2-ros2/topics"


class BrokenLog:
    """A log that cannot be written."""

    def record(self, answer: LoggedAnswer) -> None:
        """Store nothing."""

    def rate(self, rating: Rating) -> bool:
        """Fail."""
        del rating
        raise QuestionLogError("the question log is busy. Try again in some seconds")

    def delete(self, *, answer_id: str | None = None, conversation_id: str | None = None) -> int:
        """Fail."""
        del answer_id, conversation_id
        raise QuestionLogError("the question log is busy. Try again in some seconds")


class StuckLog(BrokenLog):
    """A log whose database answers nobody until it is released."""

    def __init__(self) -> None:
        self.is_busy = Event()
        self.released = Event()

    def rate(self, rating: Rating) -> bool:
        """Wait, and then store nothing."""
        del rating
        self.is_busy.set()
        return not self.released.wait(30)


@pytest.fixture
def log(settings: Settings, tmp_path: Path) -> Iterator[SqlQuestionLog]:
    """An empty question log in an SQLite file."""
    place = settings.model_copy(update={"question_log_url": f"sqlite:///{tmp_path / 'log.db'}"})
    opened = open_question_log(place)
    assert opened is not None
    yield opened
    opened.close()


@pytest.fixture
def logged(settings: Settings, log: SqlQuestionLog) -> Iterator[httpx.Client]:
    """A client of a service that writes the log."""
    failures: list[Exception] = []
    with (
        LogWriter(log, failures.append) as writer,
        run_service(settings, log=writer) as url,
        httpx.Client(base_url=url, timeout=30) as client,
    ):
        yield client
    assert failures == []


def ask(client: httpx.Client, question: str = QUESTION, **more: str) -> dict[str, str]:
    """Return the answer to a question."""
    body = {"question": question, **more}
    answer: dict[str, str] = client.post("/v1/answers", json=body).raise_for_status().json()
    return answer


def read_code(response: httpx.Response, status: int) -> str:
    """Return the code of a problem, which must have the status."""
    assert response.status_code == status, response.text
    return str(response.json()["code"])


def test_a_search_returns_the_passages_of_the_filter(client: httpx.Client) -> None:
    body = {"question": "robots", "filters": {"modules": ["module-2"]}, "top_k": 2}
    found = client.post("/v1/search", json=body).raise_for_status().json()
    assert found["index_id"]
    assert [hit["module"] for hit in found["results"]] == ["module-2"] * 2
    assert found["results"][0]["url"].startswith("/book/docs/module-2/")


def test_a_search_can_be_limited_to_one_page(client: httpx.Client) -> None:
    body = {"question": "robots", "filters": {"doc_paths": ["module-1/1.2-ros2/topics.md"]}}
    found = client.post("/v1/search", json=body).raise_for_status().json()
    assert {hit["title"] for hit in found["results"]} == {"Topics and Services"}


def test_the_values_of_the_filters_have_counts(client: httpx.Client) -> None:
    filters = client.get("/v1/filters").raise_for_status().json()["filters"]
    assert set(filters["modules"]) == {"module-1", "module-2"}
    assert filters["tags"]["ros2"] > 0


def test_the_service_tells_how_the_assistant_is_called(client: httpx.Client) -> None:
    told = client.get("/v1/about").raise_for_status().json()
    assert told == {"name": "RoboTutor", "source": "book", "language": "en"}


def test_the_contents_lead_to_the_text_of_sections(client: httpx.Client) -> None:
    pages = client.get("/v1/contents").raise_for_status().json()["pages"]
    assert len(pages) == 6
    only = client.get("/v1/contents", params={"module": "module-1"}).json()["pages"]
    assert [page["title"] for page in only] == ["Embodiment", "Topics and Services"]
    (page,) = client.get("/v1/contents", params={"url": TOPICS}).json()["pages"]
    assert page["title"] == "Topics and Services"
    section = client.get("/v1/sections", params={"url": f"{TOPICS}#publishers"}).json()
    assert "create_publisher" in section["text"]
    assert "Simulated time" not in section["text"]


@pytest.mark.parametrize(
    "url", ["/book/docs/nowhere", f"{TOPICS}#nowhere", "javascript:alert(1)", "//host/x", "\x00"]
)
def test_an_unknown_section_is_a_problem(client: httpx.Client, url: str) -> None:
    assert read_code(client.get("/v1/sections", params={"url": url}), 404) == "SECTION_MISSING"


@pytest.mark.parametrize("tells", [True, False])
def test_a_section_of_a_quiz_has_its_solution_only_if_it_may_be_told(
    tmp_path: Path, *, tells: bool
) -> None:
    settings = make_settings(tmp_path, assistant_tells_solutions=tells)
    quiz = "# Quiz: Balance\n\n## Falling\n\nWhy does it fall?\n\nAnswer\n\nIt leans too far.\n"
    build_collection(settings, make_points({"quiz.md": quiz}))
    with run_service(settings) as url:
        section = httpx.get(f"{url}/v1/sections", params={"url": "/book/docs/quiz#falling"}).json()
    assert "Why does it fall?" in section["text"]
    assert ("It leans too far." in section["text"]) == tells


def test_sections_need_an_address(client: httpx.Client) -> None:
    problem = client.get("/v1/sections")
    assert read_code(problem, 422) == "REQUEST_INVALID"
    assert problem.json()["errors"][0]["field"] == "url"


def test_a_rating_replaces_the_one_before(logged: httpx.Client, log: SqlQuestionLog) -> None:
    answer_id = ask(logged)["answer_id"]
    bodies: list[dict[str, object]] = [
        {"thumb": "down", "tags": ["wrong_section"], "note": "It is about eggs."},
        {"rating": 4},
    ]
    for body in bodies:
        response = logged.post("/v1/feedback", json={"answer_id": answer_id, **body})
        assert response.status_code == 204
        assert response.content == b""
    (rating,) = log.read_ratings()
    assert (rating.answer_id, rating.rating, rating.tags) == (answer_id, 4, ())


def test_a_rating_of_an_unknown_answer_is_a_problem(
    logged: httpx.Client, client: httpx.Client
) -> None:
    body = {"answer_id": "unknown", "rating": 5}
    assert read_code(logged.post("/v1/feedback", json=body), 404) == "ANSWER_UNKNOWN"
    assert read_code(client.post("/v1/feedback", json=body), 404) == "QUESTION_LOG_OFF"


def test_answers_are_logged_without_the_question(logged: httpx.Client, log: SqlQuestionLog) -> None:
    answer = ask(logged)
    logged.post("/v1/feedback", json={"answer_id": answer["answer_id"], "rating": 5})
    (entry,) = log.read_answers()
    assert entry.answer_id == answer["answer_id"]
    assert entry.question is None
    assert entry.kind == "extracted"
    assert entry.sources
    assert entry.index_id == answer["index_id"]
    assert entry.latency_ms > 0


def test_a_deleted_answer_is_forgotten(logged: httpx.Client, log: SqlQuestionLog) -> None:
    first = ask(logged, "What is simulated time in ROS?")
    assert logged.delete(f"/v1/answers/{first['answer_id']}").status_code == 204
    assert log.read_answers() == []
    gone = logged.delete(f"/v1/answers/{first['answer_id']}")
    assert read_code(gone, 404) == "ANSWER_UNKNOWN"


def test_a_deleted_conversation_is_forgotten(logged: httpx.Client) -> None:
    path = f"/v1/conversations/{ask(logged)['conversation_id']}"
    assert logged.delete(path).status_code == 204
    assert read_code(logged.delete(path), 404) == "CONVERSATION_UNKNOWN"


def test_the_history_travels_in_the_body(client: httpx.Client) -> None:
    first = ask(client, "What is simulated time in ROS?")
    turn = {"question": "What is simulated time in ROS?", "answer": first["text"]}
    body = {"question": "And how do I set it?", "conversation_id": first["conversation_id"]}
    assert client.post("/v1/answers", json=body).json()["search_question"] is None
    later = client.post("/v1/answers", json=body | {"history": [turn]}).json()
    assert later["search_question"].startswith(turn["question"])
    assert later["conversation_id"] == first["conversation_id"]


def test_a_broken_log_fails_ratings_but_no_answer(settings: Settings) -> None:
    with run_service(settings, log=BrokenLog()) as url, httpx.Client(base_url=url) as client:
        answer_id = ask(client)["answer_id"]
        response = client.post("/v1/feedback", json={"answer_id": answer_id, "rating": 5})
        assert read_code(response, 503) == "QUESTION_LOG_FAILED"
        assert response.headers["retry-after"] == "1"


def test_a_log_that_is_stuck_does_not_stop_the_website(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("<title>Book</title>")
    log, rating = StuckLog(), {"answer_id": "a", "rating": 5}

    async def rate_often(url: str) -> tuple[int, set[int]]:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(base_url=url, limits=limits, timeout=30) as client:
            asked = [asyncio.ensure_future(client.post("/v1/feedback", json=rating))]
            await asyncio.to_thread(log.is_busy.wait, 30)
            asked += [
                asyncio.ensure_future(client.post("/v1/feedback", json=rating)) for _ in range(60)
            ]
            page = await client.get("/book/", timeout=10)
            log.released.set()
            rated = await asyncio.gather(*asked)
        return page.status_code, {response.status_code for response in rated}

    with run_service(settings, log=log, site_dir=tmp_path) as url:
        try:
            assert asyncio.run(rate_often(url)) == (200, {404})
        finally:
            log.released.set()


def test_long_responses_are_compressed_and_streams_are_not(client: httpx.Client) -> None:
    contents = client.get("/v1/contents")
    assert contents.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in client.get("/healthz").headers
    headers = {"Accept": "text/event-stream"}
    body = {"question": "What holds a servo at an angle?"}
    with client.stream("POST", "/v1/answers", json=body, headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert "content-encoding" not in answer.headers


def test_exact_words_are_searched_as_written(client: httpx.Client) -> None:
    body = {"question": "Does a gripepr need power?"}
    for path in ("/v1/search", "/v1/answers"):
        corrected = client.post(path, json=body).raise_for_status().json()
        assert corrected["search_question"] == "Does a gripper need power?"
        exact = client.post(path, json=body | {"exact_words": True}).raise_for_status().json()
        assert exact["search_question"] is None


def test_a_book_without_a_glossary_has_no_entries(client: httpx.Client) -> None:
    found = client.post("/v1/glossary", json={"text": "A robot with a lidar."})
    assert found.raise_for_status().json() == {"entries": []}
    assert client.post("/v1/glossary", json={"text": "x" * 20_001}).status_code in {400, 422}


def test_a_search_names_filter_values_that_no_page_has(client: httpx.Client) -> None:
    body = {"question": "grippers", "filters": {"modules": ["modul-1", "module-1"]}}
    assert client.post("/v1/search", json=body).raise_for_status().json()["notice"] is None
    body["filters"] = {"modules": ["modul-1"], "tags": ["\U0001f916"]}
    found = client.post("/v1/search", json=body).raise_for_status().json()
    assert found["results"] == []
    assert found["notice"] == (
        "modules modul-1: no page has this value. Did you mean module-1? "
        "tags \U0001f916: no page has this value."
    )
