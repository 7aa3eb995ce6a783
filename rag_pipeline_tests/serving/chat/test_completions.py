"""The OpenAI-compatible endpoint, asked by the official client over a real socket."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING
from urllib.parse import unquote

import httpx
import openai
import pytest
from fastapi import FastAPI

from rag_pipeline.answering import Assistant, Turn
from rag_pipeline.core.errors import AnswerServiceError
from rag_pipeline.core.site.addresses import encode_target
from rag_pipeline.core.text.terms import count_tokens
from rag_pipeline.retrieval import open_retriever
from rag_pipeline.serving.chat import ChatMessage, read_conversation, router
from rag_pipeline_tests.answering.factories import ScriptedModel
from rag_pipeline_tests.retrieval.indexed_book import make_settings
from rag_pipeline_tests.serving.running_service import run_app

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from openai.types.chat import ChatCompletionChunk

    from rag_pipeline.core.settings import Settings

QUESTION = "How does a node publish messages on a topic?"
FOREIGN = "Who won the football world cup in 1954?"
KEY = "unused"  # pragma: allowlist secret


@pytest.fixture(scope="module")
def assistant(settings: Settings) -> Iterator[Assistant]:
    """An assistant over the tiny book that quotes passages."""
    with Assistant(open_retriever(settings)) as opened:
        yield opened


@pytest.fixture(scope="module")
def app(assistant: Assistant) -> FastAPI:
    """The application with the chat routes; tests replace its assistant."""
    made = FastAPI()
    made.state.service = SimpleNamespace(assistant=assistant)
    made.include_router(router)
    return made


@pytest.fixture(scope="module")
def address(app: FastAPI) -> Iterator[str]:
    """The address of the served application."""
    with run_app(app) as url:
        yield url


@pytest.fixture
def client(address: str) -> Iterator[openai.OpenAI]:
    """The official client, without retries."""
    with openai.OpenAI(base_url=f"{address}/v1", api_key=KEY, max_retries=0) as opened:
        yield opened


@pytest.fixture
def use_model(app: FastAPI, assistant: Assistant) -> Iterator[Assistant]:
    """An assistant of this test alone, whose answering model can be set."""
    app.state.service.assistant = Assistant(assistant.retriever)
    yield app.state.service.assistant
    app.state.service.assistant = assistant


def ask(client: openai.OpenAI, *texts: str) -> openai.types.chat.ChatCompletion:
    """Return the completion for messages of user and assistant in turn."""
    return client.chat.completions.create(model="robotutor", messages=make_messages(texts))


def stream(client: openai.OpenAI, text: str) -> list[ChatCompletionChunk]:
    """Return all chunks of the completion for a question."""
    messages = make_messages([text])
    made = client.chat.completions.create(model="robotutor", messages=messages, stream=True)
    return list(made)


def make_messages(texts: Sequence[str]) -> list[dict[str, str]]:
    """Return messages of user and assistant in turn."""
    roles = ("user", "assistant")
    return [{"role": roles[at % 2], "content": text} for at, text in enumerate(texts)]


def join(chunks: list[ChatCompletionChunk]) -> str:
    """Return the text of all chunks."""
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)


def test_the_model_is_listed(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["robotutor"]


def test_an_answer_quotes_the_book_and_links_to_its_section(
    client: openai.OpenAI, address: str
) -> None:
    choice = ask(client, QUESTION).choices[0]
    assert choice.finish_reason == "stop"
    content = choice.message.content or ""
    assert "A node publishes messages on a topic." in content
    url = f"{address}/book/docs/module-1/1.2-ros2/topics#publishers"
    assert f"]({url})" in content
    assert url in {entry.url_citation.url for entry in choice.message.annotations or []}


def test_annotations_cover_the_link_of_their_source(client: openai.OpenAI) -> None:
    message = ask(client, QUESTION).choices[0].message
    assert message.annotations
    for annotation in message.annotations:
        cited = annotation.url_citation
        covered = (message.content or "")[cited.start_index : cited.end_index]
        assert covered == f"[{cited.title}]({cited.url})"


def test_a_streamed_answer_is_the_same_with_its_annotations(client: openai.OpenAI) -> None:
    chunks = stream(client, QUESTION)
    message = ask(client, QUESTION).choices[0].message
    assert join(chunks) == message.content
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert len({chunk.id for chunk in chunks}) == 1
    found = [chunk.choices[0].delta.model_extra or {} for chunk in chunks]
    annotations = [entry["annotations"] for entry in found if "annotations" in entry]
    assert annotations == [[entry.model_dump() for entry in message.annotations or []]]


def test_citations_of_a_model_are_annotated_in_place(
    client: openai.OpenAI, use_model: Assistant
) -> None:
    use_model.chat_model = ScriptedModel(["A node publishes ", "messages on a topic [1]."])
    message = ask(client, QUESTION).choices[0].message
    content = message.content or ""
    assert content.startswith("A node publishes messages on a topic [1].")
    first = (message.annotations or [])[0].url_citation
    assert content[first.start_index : first.end_index] == "[1]"
    assert first.url.endswith("#publishers")
    assert join(stream(client, QUESTION)) == content


def test_a_refusal_is_plain_text(client: openai.OpenAI) -> None:
    message = ask(client, FOREIGN).choices[0].message
    assert message.content
    assert message.refusal is None
    assert "Where the book says this" not in message.content
    assert join(stream(client, FOREIGN)) == message.content


def test_earlier_messages_are_the_history_without_their_links() -> None:
    texts = ["What is a topic?", "A channel.\n\n**Where the book says this**\n\n1. [T](u)", "Why?"]
    messages = [ChatMessage(role="system", content="Speak like a pirate.")]
    messages += [ChatMessage.model_validate(entry) for entry in make_messages(texts)]
    assert read_conversation(messages) == ("Why?", [Turn("What is a topic?", "A channel.")])


def test_a_message_may_consist_of_parts() -> None:
    parts = [
        {"type": "text", "text": "What is"},
        {"type": "image_url"},
        {"type": "text", "text": "a topic?"},
    ]
    message = ChatMessage.model_validate({"role": "user", "content": parts})
    assert read_conversation([message]) == ("What is\na topic?", [])


def test_links_and_notices_of_earlier_answers_are_not_history(client: openai.OpenAI) -> None:
    for question in (QUESTION, FOREIGN, "Wie sendet ein Node Nachrichten?"):
        content = ask(client, question).choices[0].message.content or ""
        messages = [
            ChatMessage(role="user", content=question),
            ChatMessage(role="assistant", content=content),
            ChatMessage(role="user", content="And why?"),
        ]
        (turn,) = read_conversation(messages)[1]
        assert turn.answer
        assert content.startswith(turn.answer)
        assert "](http" not in turn.answer
        assert "Please note" not in turn.answer


@pytest.mark.parametrize("path", ["a(b)", "a b", "a<b>"])
def test_an_address_with_parentheses_is_one_link(path: str) -> None:
    encoded = encode_target(f"https://book.example.org/{path}")
    assert not set("()<> ") & set(encoded)
    assert unquote(encoded).endswith(path)


@pytest.mark.parametrize(
    ("question", "code"), [(" \n", "QUERY_EMPTY"), ("why? " * 500, "QUERY_TOO_LONG")]
)
def test_an_invalid_question_is_a_bad_request(
    client: openai.OpenAI, question: str, code: str
) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        ask(client, question)
    assert raised.value.code == code
    assert raised.value.type == "invalid_request_error"


@pytest.mark.parametrize(
    ("body", "param"),
    [(b"{", None), (b"{}", "messages"), (b'{"messages": []}', "messages"), (b"[1]", None)],
)
def test_a_malformed_body_names_the_wrong_field(
    address: str, body: bytes, param: str | None
) -> None:
    reply = httpx.post(f"{address}/v1/chat/completions", content=body)
    assert reply.status_code == 400
    error = reply.json()["error"]
    assert error["param"] == param
    assert error["code"] == "REQUEST_INVALID"


def test_a_conversation_without_a_user_message_is_a_bad_request(client: openai.OpenAI) -> None:
    messages = [{"role": "system", "content": "Be brief."}]
    with pytest.raises(openai.BadRequestError, match="question is empty"):
        client.chat.completions.create(model="robotutor", messages=messages)


def test_the_book_is_quoted_after_text_that_breaks_off(
    client: openai.OpenAI, use_model: Assistant
) -> None:
    text = "A node publishes messages on a topic [1]."
    use_model.chat_model = ScriptedModel([f"{text} "], error=AnswerServiceError("broke off"))
    chunks = stream(client, QUESTION)
    shown = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert shown.startswith(f"{text}\n\nThe answer was cut off.")
    assert chunks[-1].choices[0].finish_reason == "length"


def test_a_missing_index_is_an_error_without_a_path(
    client: openai.OpenAI,
    app: FastAPI,
    assistant: Assistant,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("empty")
    with Assistant(open_retriever(make_settings(folder))) as empty:
        app.state.service.assistant = empty
        try:
            with pytest.raises(openai.InternalServerError) as raised:
                ask(client, QUESTION)
        finally:
            app.state.service.assistant = assistant
    assert raised.value.code == "COLLECTION_MISSING"
    assert str(folder) not in str(raised.value)


TASK = (
    '### Task:\nName it.\n### Output:\nJSON format: { "title": "your title" }\n'
    "<chat_history>\nUSER: What is a topic?\nASSISTANT: A channel.\n</chat_history>\n"
)


def test_a_long_task_gets_a_reply_without_a_search_instead_of_a_refusal(
    client: openai.OpenAI, app: FastAPI, assistant: Assistant
) -> None:
    message = TASK + "- Be brief.\n" * 300
    app.state.service.assistant = None
    try:
        completion = ask(client, message)
        chunks = stream(client, message)
    finally:
        app.state.service.assistant = assistant
    assert completion.choices[0].message.content == '{"title": "What is a topic"}'
    assert join(chunks) == completion.choices[0].message.content
    assert chunks[-1].choices[0].finish_reason == "stop"


@pytest.mark.parametrize("question", [QUESTION, TASK])
def test_usage_counts_the_tokens_of_messages_and_reply(
    client: openai.OpenAI, question: str
) -> None:
    completion = ask(client, question)
    usage = completion.usage
    assert usage is not None
    assert usage.prompt_tokens == count_tokens(question)
    assert usage.completion_tokens == count_tokens(completion.choices[0].message.content or "")
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    *chunks, last = client.chat.completions.create(
        model="robotutor",
        messages=make_messages([question]),
        stream=True,
        stream_options={"include_usage": True},
    )
    assert (last.choices, last.usage) == ([], usage)
    assert all(chunk.usage is None for chunk in chunks)
