"""The answers of a running service."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_pipeline_tests.serving.event_decoder import EventDecoder

if TYPE_CHECKING:
    import httpx

QUESTION = "How does a soft gripper hold an egg?"


def _stream(client: httpx.Client, **body: object) -> list[tuple[str, dict[str, object]]]:
    headers = {"Accept": "text/event-stream"}
    response = client.post("/v1/answers", json=body, headers=headers)
    assert response.headers["content-type"].startswith("text/event-stream")
    return list(EventDecoder().feed(response.content))


def test_an_answer_is_one_json_document_with_sources(client: httpx.Client) -> None:
    answer = client.post("/v1/answers", json={"question": QUESTION}).raise_for_status().json()
    assert answer["kind"] == "extracted"
    assert "egg" in answer["text"]
    assert answer["sources"][0]["url"].startswith("/book/")


def test_a_stream_has_the_same_answer_and_one_end(client: httpx.Client) -> None:
    events = _stream(client, question=QUESTION)
    names = [name for name, _ in events]
    assert names[:2] == ["start", "sources"]
    assert names[-1] == "done"
    assert names.count("done") + names.count("error") == 1
    text = "".join(str(data["text"]) for name, data in events if name == "delta")
    assert text == events[-1][1]["text"]


def test_a_refusal_is_never_sent_as_text(client: httpx.Client) -> None:
    events = _stream(
        client,
        question="What is the capital of France?",
        mode="selected_text_only",
        selected_text="Store a lithium battery half charged in a cool, dry place.",
    )
    assert [name for name, _ in events] == ["start", "sources", "refusal", "done"]
    assert events[1][1]["sources"] == []
    assert events[2][1]["offers"] == ["whole_book", "answer_anyway"]
    assert events[3][1]["text"]


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"question": " "}, 400, "QUERY_EMPTY"),
        ({"question": "a" * 2_001}, 422, "REQUEST_INVALID"),
        ({"question": "a", "filters": {"tags": ["x"] * 51}}, 422, "REQUEST_INVALID"),
    ],
)
def test_an_invalid_question_has_its_status_in_streams_too(
    client: httpx.Client, body: dict[str, object], status: int, code: str
) -> None:
    for accepted in ("application/json", "text/event-stream"):
        response = client.post("/v1/answers", json=body, headers={"Accept": accepted})
        assert response.status_code == status
        assert response.headers["content-type"] == "application/problem+json"
        assert response.json()["code"] == code


def test_an_offer_to_answer_anyway_is_kept(client: httpx.Client) -> None:
    body = {
        "question": "What is the capital of France?",
        "mode": "selected_text_only",
        "selected_text": "Store a lithium battery half charged in a cool, dry place.",
        "even_if_unrelated": True,
    }
    answer = client.post("/v1/answers", json=body).raise_for_status().json()
    assert answer["refusal"] is None
    assert "lithium battery" in answer["text"]


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ({"question": QUESTION}, {"no_model"}),
        ({"question": "How does Wagner hold an egg with a gripper?"}, {"names_missing"}),
        ({"question": "Wie hält ein weicher Greifer ein Ei?"}, {"other_language"}),
        ({"question": "Who won in 1954?", "filters": {"modules": ["module-1"]}}, {"filtered"}),
        ({"question": QUESTION, "filters": {"modules": ["modul-1"]}}, {"filter_unknown"}),
        (
            {
                "question": "How do the fingers grip?",
                "mode": "selected_text_only",
                "selected_text": "Soft fingers grip.",
            },
            {"selection_short"},
        ),
    ],
)
def test_notices_have_codes(client: httpx.Client, body: dict[str, object], codes: set[str]) -> None:
    notices = client.post("/v1/answers", json=body).raise_for_status().json()["notices"]
    assert codes <= {notice["code"] for notice in notices}
    assert all("OPENAI" not in notice["text"] for notice in notices)


def test_a_selection_in_another_language_is_not_called_the_book(client: httpx.Client) -> None:
    body = {
        "question": "What is the gripper used for?",
        "mode": "selected_text_only",
        "selected_text": "Der Greifer ist weich und hält ein Ei. Er wird von einem Motor bewegt.",
    }
    notices = client.post("/v1/answers", json=body).raise_for_status().json()["notices"]
    told = next(one["text"] for one in notices if one["code"] == "other_language")
    assert "your selection is in German" in told


def test_a_changed_search_is_part_of_the_answer(client: httpx.Client) -> None:
    history = [{"question": "What does a soft gripper do?", "answer": "It holds an egg."}]
    body = {"question": "And why does it need no sensor?", "history": history}
    answer = client.post("/v1/answers", json=body).raise_for_status().json()
    assert "soft gripper" in answer["search_question"]
    assert "search_changed" in [notice["code"] for notice in answer["notices"]]


def test_a_greeting_has_a_reply_and_no_sources(client: httpx.Client) -> None:
    events = _stream(client, question="hello")
    assert [name for name, _ in events] == ["start", "sources", "delta", "done"]
    assert events[-1][1]["kind"] == "reply"
    assert events[1][1]["sources"] == []


def test_a_client_cannot_choose_the_id_of_a_conversation(client: httpx.Client) -> None:
    body = {"question": QUESTION, "conversation_id": "c1"}
    first = client.post("/v1/answers", json=body).raise_for_status().json()
    assert first["conversation_id"] != "c1"
    body["conversation_id"] = first["conversation_id"]
    events = _stream(client, **body)
    assert events[0][1]["conversation_id"] == first["conversation_id"]
