"""Tasks of chat programs about a conversation, in the forms in which the programs send them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rag_pipeline.serving.chat import answer_task

HISTORY = (
    "USER: How does a node publish messages on a topic?\nASSISTANT: With a publisher [1].\n"
    "USER: And why?"
)
TITLE = "How does a node publish messages"


def ask(message: str, response_format: dict[str, Any] | None = None) -> str | None:
    """Return the reply to a message that is not streamed."""
    return answer_task(message, response_format, is_streamed=False)


@pytest.mark.parametrize(
    ("task", "example", "expected"),
    [
        ("Generate a concise title.", '{ "title": "your concise title here" }', {"title": TITLE}),
        ("Generate 1-3 broad tags.", '{ "tags": ["tag1", "tag2", "tag3"] }', {"tags": []}),
        ("Suggest 3-5 follow-ups.", '{ "follow_ups": ["One?", "Two?"] }', {"follow_ups": []}),
        ("Decide on searches.", '{\n  "queries": ["query1", "query2"]\n}', {"queries": []}),
        ("Continue the text.", '{ "text": "<your_completion>" }', {"text": ""}),
        (
            "Describe.",
            '{"chat_title": "x", "score": 1, "of": {"n": [1]}}',
            {"chat_title": TITLE, "score": 1, "of": {"n": []}},
        ),
    ],
)
@pytest.mark.parametrize("is_streamed", [True, False])
def test_a_task_that_shows_json_gets_json_of_the_same_form(
    task: str, example: str, expected: object, *, is_streamed: bool
) -> None:
    message = (
        f"### Task:\n{task}\n### Guidelines:\n- Be brief {{not JSON}}.\n### Output:\n"
        f"JSON format: {example}\n### Chat History:\n<chat_history>\n{HISTORY}\n</chat_history>"
    )
    reply = answer_task(message, None, is_streamed=is_streamed)
    assert json.loads(reply or "") == expected


def test_the_first_question_of_a_conversation_is_enough() -> None:
    message = 'Search? {"queries": []}\n<messages>\nUSER: What is a topic?\n</messages>'
    assert ask(message) == '{"queries": []}'
    assert ask("<history>USER: What is a topic?</history> Name it.") == "What is a topic"


def test_a_conversation_may_be_json() -> None:
    turns = [
        {"role": "user", "content": "What is **slip**?"},
        {"role": "assistant", "content": "A"},
    ]
    assert ask(f"Name this:\n<chat>{json.dumps(turns)}</chat>") == "What is slip"
    assert ask("Name this:\n<chat>[1, 2]</chat>") is None


def test_a_title_without_json_is_plain_text() -> None:
    message = "Provide a concise title.\n\nConversation:\nUser: What is slip?\nAI: It is motion."
    assert ask(message) == "What is slip"
    assert answer_task(message, None, is_streamed=True) is None
    marked = 'Write a title.\n\n||>User:\n"What is slip?"\n||>Response:\n"It is motion."'
    assert ask(marked) == "What is slip"


def test_a_custom_task_without_a_conversation_is_known_by_its_sections() -> None:
    message = '### Task:\nName the chat.\n### Output:\n{ "title": "A" }\nWhat is a topic?'
    assert ask(message) == '{"title": ""}'


def test_a_request_for_json_about_a_conversation_gets_what_its_schema_describes() -> None:
    schema = {
        "type": "object",
        "properties": {
            "language": {"type": "string", "enum": ["English", "German"]},
            "title": {"type": "string"},
            "tags": {"type": "array"},
            "sure": {"type": "boolean"},
            "more": {"type": "object", "properties": {"note": {"type": "string"}, "bad": 1}},
        },
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    expected = {"language": "English", "title": TITLE, "tags": [], "sure": False}
    assert json.loads(ask(HISTORY, wanted) or "") == {**expected, "more": {"note": ""}}
    assert ask(HISTORY, {"type": "json_object"}) == "{}"
    assert ask(HISTORY, {"type": "json_schema", "json_schema": 1}) is not None


@pytest.mark.parametrize(
    "question",
    [
        "How does a node publish messages on a topic?",
        'What does { "title": "x" } mean in a launch file?',
        "# Task:\nWhat is a topic?\n# Question:\nSay it briefly.",
        "What is <b>torque</b>? Answer in two lines.",
        "What does the user: field of a launch file mean?",
        "Assistant: who are you?",
        "User: what is a topic?",
        'Explain { "',
        '[{"role": "user", "content": "x"}]',
        "",
    ],
)
def test_a_question_of_a_reader_is_not_a_task(question: str) -> None:
    assert ask(question) is None
