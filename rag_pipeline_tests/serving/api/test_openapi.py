"""The OpenAPI document, and generated requests whose responses must conform to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings

from rag_pipeline.serving.api.bodies import EVENTS
from rag_pipeline_tests.serving.event_decoder import EventDecoder

if TYPE_CHECKING:
    import httpx
    import schemathesis

CONFORMANCE = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
]
OPERATIONS = [
    "post /v1/answers",
    "delete /v1/answers/{answer_id}",
    "delete /v1/conversations/{conversation_id}",
    "post /v1/search",
    "get /v1/about",
    "get /v1/filters",
    "get /v1/contents",
    "get /v1/sections",
    "post /v1/glossary",
    "post /v1/feedback",
]
QUESTION = "How does a soft gripper hold an egg?"


@pytest.fixture(scope="module")
def document(client: httpx.Client) -> dict[str, Any]:
    """The OpenAPI document."""
    loaded: dict[str, Any] = client.get("/openapi.json").raise_for_status().json()
    return loaded


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["positive", "negative"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_responses_to_generated_requests_conform(
    document: dict[str, Any], client: httpx.Client, operation: str, mode: str
) -> None:
    import schemathesis  # noqa: PLC0415  # other test processes save half a second
    from schemathesis import checks as known  # noqa: PLC0415  # as above

    if operation in {"get /v1/about", "get /v1/filters"} and mode == "negative":
        return  # they have no part that could be invalid
    method, path = operation.split()
    described = schemathesis.openapi.from_dict(document)[path][method]

    @given(case=described.as_strategy(generation_mode=schemathesis.GenerationMode(mode)))
    @settings(max_examples=20, derandomize=True, deadline=None, database=None)
    def check(case: schemathesis.Case) -> None:
        response = case.call(base_url=str(client.base_url))
        checks = set(CONFORMANCE)
        if response.status_code in {413, 431}:  # refusals too, but the check does not know them
            checks.discard("negative_data_rejection")
        case.validate_response(response, checks=[getattr(known, name) for name in checks])

    check()


def test_requests_are_generated_for_each_route(document: dict[str, Any]) -> None:
    found = {
        f"{method} {path}" for path, methods in document["paths"].items() for method in methods
    }
    others = ("/v1/chat", "/v1/models")
    assert {
        entry for entry in found if " /v1/" in entry and not entry.split()[1].startswith(others)
    } == set(OPERATIONS)


def test_each_route_documents_its_answer_and_its_errors(document: dict[str, Any]) -> None:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if not path.startswith("/v1/") or path.startswith(("/v1/chat", "/v1/models")):
                continue
            responses = operation["responses"]
            found = responses.get("200", responses.get("204"))
            assert found.get("content") or method in {"delete", "post"}, path
            for status, response in responses.items():
                if not status.startswith("2"):
                    assert list(response["content"]) == ["application/problem+json"], path


def test_the_events_of_a_stream_have_their_documented_types(client: httpx.Client) -> None:
    seen = set()
    for body in (
        {"question": QUESTION},
        {"question": "Who won the football world cup in 1954?"},
        {"question": "hello"},
        {"question": QUESTION, "mode": "selected_text_only", "selected_text": "Rubber bends."},
    ):
        headers = {"Accept": "text/event-stream"}
        response = client.post("/v1/answers", json=body, headers=headers)
        for name, data in EventDecoder().feed(response.content):
            checked = EVENTS[name].validate_python(data, strict=False)
            assert checked.keys() == data.keys()
            seen.add(name)
    assert seen == {"start", "sources", "delta", "refusal", "done"}
