"""Time limits, circuit breakers and log lines, which searches and answers share."""

from __future__ import annotations

import json
import os
import time
from contextlib import contextmanager
from threading import BoundedSemaphore, Event
from typing import TYPE_CHECKING, Any

import pytest

from rag_pipeline.adapters.embedders.bm25 import Bm25Encoder
from rag_pipeline.adapters.embedders.local import LocalEmbedder
from rag_pipeline.answering import Answer, AnswerKind, answer, stream_answer
from rag_pipeline.core.errors import (
    AnswerServiceError,
    AnswerTimeoutError,
    EmbeddingTimeoutError,
    QueryEmptyError,
    StoreTimeoutError,
    StoreUnavailableError,
)
from rag_pipeline.retrieval import (
    Query,
    RetrievalService,
    Retriever,
    ServiceLimits,
    limits,
    open_retriever,
)
from rag_pipeline.retrieval.limits import Protection, run_within
from rag_pipeline.retrieval.queries import Mode
from rag_pipeline_tests.answering.factories import ScriptedModel
from rag_pipeline_tests.retrieval.disturbances import FlakySession, watch_lines
from rag_pipeline_tests.retrieval.indexed_book import build_collection, make_settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rag_pipeline.core.settings import Settings
    from rag_pipeline.core.vectors import Point

QUESTION = "How does a soft gripper pick up an egg?"
SHORT = ServiceLimits(query_s=3.0, breaker_failures=2, breaker_reset_s=60.0)


def protect(session: object, limits: ServiceLimits = SHORT, **parts: Any) -> Retriever:  # noqa: ANN401  # arguments of Retriever
    """Return a retriever over the session with the given limits."""
    store: Any = session
    embedder = parts.pop("embedder", None) or LocalEmbedder()
    return Retriever(embedder, Bm25Encoder(), store, protection=Protection(limits), **parts)


def ask(retriever: Retriever, settings: Settings, model: ScriptedModel | None = None) -> Answer:
    """Return the answer to `QUESTION`, written by the chat model if one is given."""
    return answer(QUESTION, retriever=retriever, settings=settings, chat_model=model)


def warm(retriever: Retriever) -> None:
    """Run one query without a short limit, so that the model is loaded and the store is open."""
    retriever.protected_by(Protection()).retrieve(Query(QUESTION))


@contextmanager
def given_up_in_time() -> Iterator[None]:
    """Check that the block takes less than 25 s, which is shorter than the hang."""
    start = time.perf_counter()
    yield
    assert time.perf_counter() - start < 25.0


def serve(retriever: Retriever, settings: Settings) -> RetrievalService:
    """Return a search service over the retriever, with limits of its own."""
    return RetrievalService(settings, retriever=retriever, limits=SHORT, log_to_files=False)


@pytest.mark.slow
def test_answers_and_searches_time_out_when_the_store_hangs(
    book_settings: Settings, flaky: FlakySession
) -> None:
    retriever = protect(flaky)
    warm(retriever)
    service = serve(retriever, book_settings)
    flaky.hang = Event()
    for call in (lambda: ask(retriever, book_settings), lambda: service.search(QUESTION)):
        with given_up_in_time(), pytest.raises(StoreTimeoutError) as caught:
            call()
        assert (caught.value.code, caught.value.http_status) == ("QDRANT_TIMEOUT", 504)
    flaky.hang.set()


@pytest.mark.slow
def test_answers_and_searches_time_out_when_the_embedding_service_hangs(
    book_settings: Settings, retriever: Retriever
) -> None:
    let_go = Event()

    class Hung(LocalEmbedder):
        def embed_question(self, text: str) -> Any:  # noqa: ANN401  # never returns in time
            let_go.wait(30)
            return super().embed_question(text)

    hung = protect(retriever.session, embedder=Hung())
    service = serve(hung, book_settings)
    for call in (lambda: ask(hung, book_settings), lambda: service.search(QUESTION)):
        with given_up_in_time(), pytest.raises(EmbeddingTimeoutError) as caught:
            call()
        assert (caught.value.code, caught.value.http_status) == ("EMBEDDING_FAILED", 500)
    let_go.set()


@pytest.mark.slow
def test_an_answer_times_out_when_the_comparison_with_a_selection_hangs(
    retriever: Retriever,
) -> None:
    let_go = Event()

    class Hung(LocalEmbedder):
        def embed_passages(self, *_: Any, **__: Any) -> Any:  # noqa: ANN401  # never returns in time
            let_go.wait(30)

    hung = protect(retriever.session, selection_embedder=Hung())
    query = Query(QUESTION, Mode.SELECTED_TEXT_ONLY, selected_text="An egg is round.")
    with given_up_in_time(), pytest.raises(EmbeddingTimeoutError):
        answer(query, retriever=hung)
    let_go.set()


def test_searches_and_answers_share_a_breaker(book_settings: Settings, flaky: FlakySession) -> None:
    service = RetrievalService(
        book_settings,
        retriever=protect(flaky),
        limits=ServiceLimits(query_s=8.0, breaker_failures=2, breaker_reset_s=60.0),
        log_to_files=False,
    )
    flaky.failing = True
    with pytest.raises(StoreUnavailableError, match="gone"):
        service.search(QUESTION)
    with pytest.raises(StoreUnavailableError, match="gone"):
        ask(service.retriever, book_settings)
    uses = flaky.uses
    for refused in (
        lambda: ask(service.retriever, book_settings),
        lambda: service.search(QUESTION),
        lambda: service.retriever.retrieve(Query(QUESTION)),
        service.retriever.probe,
    ):
        with pytest.raises(StoreUnavailableError, match="calls are paused") as caught:
            refused()
        assert caught.value.retry_after_s is not None
    assert flaky.uses == uses


@pytest.mark.parametrize("error", [AnswerServiceError("down"), AnswerTimeoutError("late")])
def test_calls_of_a_failing_answer_service_are_paused(
    book_settings: Settings, retriever: Retriever, error: Exception
) -> None:
    protected = protect(retriever.session, ServiceLimits(breaker_failures=2))
    model = ScriptedModel([], error=error)
    for _ in range(3):
        given = ask(protected, book_settings, model)
        assert (given.kind, given.notices[-1].code) == (AnswerKind.EXTRACTED, "model_unavailable")
    assert len(model.told) == 2
    assert protected.retrieve(Query(QUESTION)).chunks  # searches still work
    breaker = protected.protection.chat_model
    breaker._clock = lambda: time.monotonic() + 60.0  # noqa: SLF001  # moves the clock instead of waiting
    model.error, model.pieces = None, ["It closes around an egg [1]."]
    assert ask(protected, book_settings, model).kind is AnswerKind.GENERATED
    assert breaker.state == "closed"


def test_an_answer_has_a_log_line_without_the_question(
    book_settings: Settings, retriever: Retriever
) -> None:
    model = ScriptedModel(["It closes around an egg [1]."])
    with watch_lines() as lines:
        ask(retriever, book_settings, model)
    assert [line["operation"] for line in lines] == ["retrieve", "answer"]
    line = lines[1]
    assert (line["status"], line["kind"], line["model"]) == ("success", "generated", "scripted")
    assert line["total_ms"] >= line["retrieve_ms"] > 0
    assert line["question_chars"] == len(QUESTION)
    assert "egg" not in json.dumps(lines)


def test_failed_and_aborted_answers_have_a_log_line(
    book_settings: Settings, retriever: Retriever
) -> None:
    with watch_lines() as lines:
        with pytest.raises(QueryEmptyError):
            answer(" ", retriever=retriever)
        ask(retriever, book_settings, ScriptedModel([], error=AnswerServiceError("down")))
        model = ScriptedModel(["It closes around an egg [1]. ", "Two [1]."])
        with stream_answer(QUESTION, retriever=retriever, chat_model=model) as stream:
            next(stream)
    answers = [line for line in lines if line["operation"] == "answer"]
    codes = [line.get("error_code") or line.get("model_error") for line in answers]
    assert [line["status"] for line in answers] == ["error", "success", "aborted"]
    assert codes == ["QUERY_EMPTY", "ANSWER_SERVICE_UNAVAILABLE", None]


def test_no_log_line_contains_a_question_whatever_the_settings_say(book_settings: Settings) -> None:
    settings = book_settings.model_copy(update={"log_questions": True})
    with watch_lines() as lines:
        answer(QUESTION, settings=settings)
        answer(Query(QUESTION, Mode.SELECTED_TEXT_ONLY, selected_text="An egg."), settings=settings)
    assert [line["operation"] for line in lines] == ["retrieve", "answer", "retrieve", "answer"]
    assert QUESTION not in str(lines)


def test_the_library_writes_no_log_file_by_default(
    tmp_path: Path, book_points: list[Point]
) -> None:
    settings = make_settings(tmp_path)
    build_collection(settings, book_points)
    with open_retriever(settings) as opened:
        opened.retrieve(Query(QUESTION))
    answer(QUESTION, settings=settings)
    assert not list(tmp_path.rglob("*.log"))


def test_the_query_limit_is_longer_than_the_timeouts_in_the_settings(tmp_path: Path) -> None:
    def limit_s(**settings: object) -> float:
        return open_retriever(make_settings(tmp_path, **settings)).protection.limits.query_s

    assert limit_s(store_lock_timeout_s=1.0) == 10.0
    assert limit_s(store_lock_timeout_s=20.0) == 22.0
    service = make_settings(tmp_path).model_copy(
        update={"qdrant_url": "http://127.0.0.1:1", "qdrant_timeout_s": 15.0}
    )
    assert open_retriever(service).protection.limits.query_s == 17.0
    own = ServiceLimits(query_s=1.0)
    assert open_retriever(service, limits=own).protection.limits == own


def test_many_questions_have_more_time_than_one_question() -> None:
    protection = Protection(ServiceLimits(query_s=1.0, batch_s=3.0))
    times = []
    for count in (1, 2, 100, 250):
        with protection.watch("retrieve", ["x"] * count) as operation:
            times.append(operation.limit_s)
    assert times == [1.0, 3.0, 3.0, 7.5]


def test_the_wait_for_a_free_thread_counts_towards_the_time_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "_running", BoundedSemaphore(1))
    let_go = Event()
    late = StoreTimeoutError("late")
    with pytest.raises(StoreTimeoutError):  # takes the only slot and keeps it
        run_within(0.01, lambda: time.sleep(2.0), late)
    start = time.monotonic()
    with pytest.raises(StoreTimeoutError, match="late"):
        run_within(2.2, lambda: let_go.wait(30), late)
    took_s = time.monotonic() - start
    let_go.set()
    assert 2.2 <= took_s < 4.1  # with a separate limit for each wait it takes 4.2 s


def test_running_calls_of_the_parent_do_not_count_in_a_forked_process() -> None:
    let_go = Event()
    with pytest.raises(StoreTimeoutError):
        run_within(0.01, lambda: let_go.wait(30), StoreTimeoutError("late"))
    child = os.fork()
    if child == 0:
        try:
            os._exit(limits._running._value != limits._MAX_RUNNING)  # noqa: SLF001  # the counter is private
        finally:
            os._exit(2)  # after an error, the child must not continue with the tests
    let_go.set()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
