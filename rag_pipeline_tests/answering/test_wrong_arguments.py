"""Arguments of a wrong type are refused by every call that asks the book."""

from __future__ import annotations

import asyncio
import json
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import pytest

from rag_pipeline.answering import Assistant, Turn, answer, stream_answer
from rag_pipeline.answering.models import AnswerRecord
from rag_pipeline.core.errors import QueryError
from rag_pipeline.core.settings import Settings
from rag_pipeline.retrieval import (
    Mode,
    Query,
    QueryFilters,
    RetrievalService,
    Retriever,
    open_retriever,
    read_contents,
    read_section,
)
from rag_pipeline.retrieval.models import SearchRecord
from rag_pipeline_tests.class_names import find_class_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

WRONG: tuple[Any, ...] = (None, 5, 2.5, True, b"x", ["x"], {"question": "x"})
VALID = {"top_k": ["5"], "expand_to_section_tokens": ["5"], "exact_words": ["True"]}
SELECTED = Query(
    "What holds a joint?",
    mode=Mode.SELECTED_TEXT_ONLY,
    selected_text="A servo holds a joint at an angle. It needs power for that.",
)


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings without an index, because nothing may be searched."""
    folder: Path = tmp_path_factory.mktemp("wrong")
    return Settings(_env_file=None, data_dir=folder, embedding_provider="local")  # type: ignore[call-arg]  # pydantic takes it


@pytest.fixture(scope="module")
def retriever(settings: Settings) -> Iterator[Retriever]:
    """A retriever without a collection."""
    with open_retriever(settings) as opened:
        yield opened


def list_calls(retriever: Retriever, settings: Settings) -> dict[str, Callable[[Any], object]]:
    """Return the calls that take a query."""
    one = Assistant(retriever)
    return {
        "answer": lambda asked: answer(asked, retriever=retriever, settings=settings),
        "answer alone": lambda asked: answer(asked, settings=settings),
        "stream_answer": lambda asked: stream_answer(asked, retriever=retriever, settings=settings),
        "retrieve": retriever.retrieve,
        "retrieve_many": lambda asked: retriever.retrieve_many([asked]),
        "aretrieve": lambda asked: asyncio.run(retriever.aretrieve(asked)),
        "prepare": one.prepare,
        "stream": one.stream,
        "assistant's answer": one.answer,
        "aprepare": lambda asked: asyncio.run(one.aprepare(asked)),
        "astream": lambda asked: asyncio.run(one.astream(asked)),
        "aanswer": lambda asked: asyncio.run(one.aanswer(asked)),
    }


def refuse(call: Callable[[], object]) -> str:
    """Return the message with which a call is refused."""
    with pytest.raises(QueryError) as caught:
        call()
    assert caught.value.http_status == 400
    return str(caught.value)


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_an_object_that_is_no_query_is_refused(
    retriever: Retriever, settings: Settings, wrong: object
) -> None:
    for name, call in list_calls(retriever, settings).items():
        message = refuse(lambda call=call: call(wrong))  # type: ignore[misc]  # bound at once
        assert f"{wrong!r:.40} is not a Query" in message, name


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        (field.name, wrong)
        for field in fields(Query)
        for wrong in WRONG[1:]
        if repr(wrong) not in VALID.get(field.name, ())
    ],
    ids=repr,
)
def test_a_field_of_a_query_with_a_wrong_type_is_refused(
    retriever: Retriever, name: str, wrong: object
) -> None:
    message = refuse(lambda: replace(SELECTED, **{name: wrong}).check())
    assert name.replace("_", " ").split()[0] in message.replace("_", " ")
    assert not find_class_names(message) or name == "filters"
    refuse(lambda: Assistant(retriever).answer(replace(SELECTED, **{name: wrong})))


@pytest.mark.parametrize("wrong", [5, 2.5, True, b"x", [5], [b"x"], [None]], ids=repr)
@pytest.mark.parametrize("name", [one.name for one in fields(QueryFilters) if one.name != "top_k"])
def test_a_filter_with_a_wrong_type_is_refused(name: str, wrong: object) -> None:
    message = refuse(Query("x", filters=replace(QueryFilters(), **{name: wrong})).check)
    assert f"filter {name} must be a list of strings" in message


def test_histories_questions_and_addresses_of_a_wrong_type_are_refused(
    retriever: Retriever,
) -> None:
    one = Assistant(retriever)
    for history in (None, 5, "x", b"x", [None], [5], [Turn(5)], [Turn("x", None)]):  # type: ignore[arg-type]  # wrong on purpose
        message = refuse(lambda history=history: one.answer(SELECTED, history=history))  # type: ignore[misc]  # bound at once
        assert "history" in message
        assert "NoneType" not in message
    for wrong in (None, 5, b"x"):
        refuse(lambda wrong=wrong: retriever.retrieve_many(wrong))  # type: ignore[misc]  # bound at once
        refuse(lambda wrong=wrong: read_section(retriever, wrong))  # type: ignore[misc]  # bound at once
    for address in (5, b"x"):
        refuse(lambda address=address: read_contents(retriever, url=address))  # type: ignore[misc]  # bound at once


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_the_search_service_refuses_questions_of_a_wrong_type(
    retriever: Retriever, wrong: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RetrievalService, "check_collection", lambda _: None)  # there is none
    service = RetrievalService(retriever=retriever, log_to_files=False)
    assert "question must be a string" in refuse(lambda: service.search(wrong))  # type: ignore[arg-type]  # wrong on purpose
    assert "question must be a string" in refuse(lambda: service.validate_retrieval(wrong))  # type: ignore[arg-type]  # the same
    assert "question must be a string" in refuse(lambda: service.batch_search([wrong]))  # type: ignore[list-item]  # the same
    refuse(lambda: service.search("x", k="many"))  # type: ignore[arg-type]  # the same


def test_answers_and_results_are_written_as_json(retriever: Retriever) -> None:
    result = retriever.retrieve(SELECTED)
    given = answer(SELECTED, retriever=retriever)
    for found, record in ((result, SearchRecord), (given, AnswerRecord)):
        form = found.to_dict()  # type: ignore[attr-defined]  # both have it
        assert json.loads(json.dumps(form)) == form
        assert list(form) == [field.name for field in fields(record)]
    assert given.to_dict()["answer"] == given.text
    assert result.to_dict()["chunks"][0]["text"] == SELECTED.selected_text
    assert result.to_dict()["chunks"][0]["metadata"]["tags"] == []
