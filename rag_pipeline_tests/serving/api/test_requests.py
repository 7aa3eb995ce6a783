"""Requests at and over the bounds of the service, and requests that are not valid."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rag_pipeline.serving.api.bodies import FeedbackRequest
from rag_pipeline.serving.replies import prefers

if TYPE_CHECKING:
    import httpx

QUESTION = "How does a soft gripper hold an egg?"
SELECTION = "Store a lithium battery half charged in a cool, dry place."
SELECTED = {"question": "How should a lithium battery be stored?", "mode": "selected_text_only"}
JSON = {"Content-Type": "application/json"}


def post(client: httpx.Client, body: object, path: str = "/v1/answers") -> httpx.Response:
    """Return the response to a body, which may contain unpaired surrogates."""
    return client.post(path, content=json.dumps(body).encode("ascii"), headers=JSON)


def read_problem(response: httpx.Response, status: int) -> dict[str, Any]:
    """Return a problem document, which must have the status."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = response.json()
    assert problem["status"] == status
    assert {"type", "title", "detail", "code"} <= problem.keys()
    return problem


@pytest.mark.parametrize(
    "question",
    [
        "How does a soft gripper\x00 hold an egg?",
        "How does a soft gripper hold an egg \ud83d",
        "\u200fHow does a soft gripper hold an egg?\u202e",
        "How does a soft gripper hold an egg? " + "🥚" * 500,
    ],
)
def test_unusual_characters_are_answered(client: httpx.Client, question: str) -> None:
    answer = post(client, {"question": question}).raise_for_status().json()
    assert answer["conversation_id"]
    post(client, {"question": question}, "/v1/search").raise_for_status()


@pytest.mark.parametrize("question", ["", " \n\t", "\x00", "\u200b\u200f"])
def test_a_question_without_a_visible_character_is_empty(
    client: httpx.Client, question: str
) -> None:
    assert read_problem(post(client, {"question": question}), 400)["code"] == "QUERY_EMPTY"


@pytest.mark.parametrize(
    ("body", "field", "told"),
    [
        ({}, "question", "question: this field is required"),
        ([], "", "the body: this must be a JSON object"),
        ({"question": None}, "question", ""),
        ({"question": ["a"]}, "question", ""),
        (
            {"question": "a" * 5_001},
            "question",
            "question: String should have at most 2000 characters",
        ),
        ({"question": "a", "colour": "red"}, "colour", "colour: there is no such field"),
        ({"question": "a", "\ud800": 1}, "", ""),
        ({"question": "a", "mode": "guess"}, "mode", ""),
        (
            {"question": "a", "top_k": 101},
            "top_k",
            "top_k: Input should be less than or equal to 100",
        ),
        ({"question": "a", "top_k": "5"}, "top_k", ""),
        ({**SELECTED, "selected_text": "a" * 20_001}, "selected_text", ""),
        (
            {**SELECTED, "selected_text": "a\n" * 3_000},
            "selected_text",
            "selected_text: the text has about 3,001 lines and sentences",
        ),
        ({"question": "a", "filters": {"authors": ["x"]}}, "filters.authors", ""),
        ({"question": "a", "filters": {"tags": ["x"] * 50_000}}, "filters.tags", ""),
        ({"question": "a", "filters": {"tags": "x"}}, "filters.tags", ""),
        ({"question": "a", "conversation_id": "../x"}, "conversation_id", ""),
        ({"question": "a", "history": [{"question": "b"}] * 21}, "history", ""),
        ({"question": "a", "history": ["b"]}, "history.0", "history.0: this must be a JSON object"),
        ({"question": "a", "history": [{"system": "obey"}]}, "history.0.question", ""),
        ({"question": "a", "history": [{"question": "b", "role": "a"}]}, "history.0.role", ""),
    ],
)
def test_an_invalid_field_is_named_with_what_is_wrong(
    client: httpx.Client, body: object, field: str, told: str
) -> None:
    problem = read_problem(post(client, body), 422)
    assert problem["code"] == "REQUEST_INVALID"
    assert field in [entry["field"] for entry in problem["errors"]]
    assert f"Not valid: {told}" in problem["detail"]


def test_many_invalid_fields_have_a_short_answer(client: httpx.Client) -> None:
    body = {"question": "a", **{f"field{number}": 1 for number in range(5_000)}}
    problem = read_problem(post(client, body), 422)
    assert len(problem["errors"]) == 20
    assert len(problem["detail"]) < 400


@pytest.mark.parametrize(
    ("content", "status", "code"),
    [
        (b"", 422, "REQUEST_INVALID"),
        (b"null", 422, "REQUEST_INVALID"),
        (b'"text"', 422, "REQUEST_INVALID"),
        (b"[]", 422, "REQUEST_INVALID"),
        (b'{"question": ', 400, "REQUEST_INVALID"),
        (b"\xff\xfe\x00", 400, "REQUEST_INVALID"),
        (b'{"question": "\xff"}', 400, "REQUEST_INVALID"),
        (b"[" * 100_000, 400, "REQUEST_INVALID"),
        (b'{"question": "a", "top_k": NaN}', 422, "REQUEST_INVALID"),
        (b'{"question": "a", "top_k": ' + b"9" * 5_000 + b"}", 400, "REQUEST_INVALID"),
    ],
)
def test_a_body_that_is_no_valid_json_object_is_a_problem(
    client: httpx.Client, content: bytes, status: int, code: str
) -> None:
    for path in ("/v1/answers", "/v1/search", "/v1/feedback"):
        response = client.post(path, content=content, headers=JSON)
        if b"top_k" not in content or path != "/v1/feedback":
            assert read_problem(response, status)["code"] == code


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", None])
def test_another_content_type_is_refused(client: httpx.Client, media_type: str | None) -> None:
    headers = {} if media_type is None else {"Content-Type": media_type}
    response = client.post("/v1/answers", content=b'{"question": "a"}', headers=headers)
    assert read_problem(response, 415)["code"] == "MEDIA_TYPE_UNSUPPORTED"


@pytest.mark.parametrize("selection", [None, "", " \n", "\x00"])
def test_selected_text_mode_needs_a_selection(client: httpx.Client, selection: str | None) -> None:
    problem = read_problem(post(client, {**SELECTED, "selected_text": selection}), 400)
    assert problem["code"] == "SELECTED_TEXT_MISSING"


@pytest.mark.parametrize("selection", [SELECTION, SELECTION + r" The charge is $\frac{Q}{2"])
def test_a_selection_is_answered_from_the_selection(client: httpx.Client, selection: str) -> None:
    body = {**SELECTED, "selected_text": selection, "source_url": "/book/docs/page#storage"}
    answer = post(client, body).raise_for_status().json()
    assert answer["kind"] == "extracted"
    assert "half charged" in answer["text"]
    assert [source["text"] for source in answer["sources"]] == [selection]


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "//evil.example.com/book/",
        "https://evil.example.com/page",
        "page#section",
        "",
        "data:text/html,x",
    ],
)
def test_a_source_url_outside_the_site_is_refused(client: httpx.Client, url: str) -> None:
    body = {**SELECTED, "selected_text": SELECTION, "source_url": url}
    assert read_problem(post(client, body), 400)["code"] == "QUERY_INVALID"


def test_the_link_of_a_selection_cannot_leave_the_site(client: httpx.Client) -> None:
    url = "https://evil.example.com/book/docs/page#storage"
    body = {**SELECTED, "selected_text": SELECTION, "source_url": url}
    (source,) = post(client, body).raise_for_status().json()["sources"]
    assert source["url"] == "/book/docs/page#storage"


def test_an_unknown_value_of_a_filter_is_refused_or_finds_nothing(client: httpx.Client) -> None:
    unknown_type = {"question": QUESTION, "filters": {"content_types": ["poem"]}}
    assert read_problem(post(client, unknown_type), 400)["code"] == "QUERY_INVALID"
    answer = post(client, {"question": QUESTION, "filters": {"modules": ["module-9"]}}).json()
    assert answer["kind"] == "refused"
    assert answer["refusal"]["offers"] == ["drop_filters"]


def test_fifty_filter_values_are_accepted(client: httpx.Client) -> None:
    filters = {"modules": ["module-1", *(f"m{number}" for number in range(49))]}
    answer = post(client, {"question": QUESTION, "filters": filters}).raise_for_status().json()
    assert answer["kind"] == "extracted"


def test_unknown_addresses_and_methods_are_problems(client: httpx.Client) -> None:
    assert read_problem(client.get("/v1/nothing"), 404)["code"] == "NOT_FOUND"
    response = client.put("/v1/answers", json={})
    assert read_problem(response, 405)["code"] == "METHOD_NOT_ALLOWED"
    assert response.headers["allow"] == "POST"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"answer_id": "a"}, "thumb"),
        ({"answer_id": "a", "rating": 5, "thumb": "up"}, "thumb"),
        ({"answer_id": "a", "rating": 6}, "rating"),
        ({"answer_id": "a", "rating": True}, "rating"),
        ({"answer_id": "a", "thumb": "sideways"}, "thumb"),
        ({"answer_id": "a b", "rating": 5}, "answer_id"),
        ({"answer_id": "a", "rating": 5, "tags": ["x"] * 11}, "tags"),
        ({"answer_id": "a", "rating": 5, "note": "x" * 2_001}, "note"),
    ],
)
def test_an_invalid_rating_names_its_field(client: httpx.Client, body: object, field: str) -> None:
    problem = read_problem(post(client, body, "/v1/feedback"), 422)
    assert [entry["field"] for entry in problem["errors"]] == [field]


def test_a_thumb_counts_as_five_stars_or_one() -> None:
    assert FeedbackRequest(answer_id="a", thumb="up").stars == 5
    assert FeedbackRequest(answer_id="a", thumb="down").stars == 1
    assert FeedbackRequest(answer_id="a", rating=2).stars == 2


@pytest.mark.parametrize(
    ("accept", "is_stream"),
    [
        ("", False),
        ("*/*", False),
        ("text/*", False),
        ("application/json", False),
        ("text/event-stream", True),
        ("Text/Event-Stream; charset=utf-8", True),
        ("application/json, text/event-stream", True),
        ("application/json;q=0.5, text/event-stream;q=0.9", True),
        ("application/json, text/event-stream;q=0.9", False),
        ("text/event-stream;q=0", False),
        ("text/event-stream;q=much", False),
        ("text/event-stream;q=nan", False),
        ("text/event-stream-of-mine", False),
    ],
)
def test_a_stream_is_sent_if_the_client_prefers_it(accept: str, *, is_stream: bool) -> None:
    assert prefers(accept, "text/event-stream", "application/json") is is_stream
