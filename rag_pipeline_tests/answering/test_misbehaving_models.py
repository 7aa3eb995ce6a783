"""Answers of models and servers that misbehave, over a real HTTP connection.

A scripted server on 127.0.0.1 stands in for a model. Each case is one kind of misbehaviour. A
reader must see either the grounded sentences with right citations, or the passages of the book.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rag_pipeline.adapters import chat_model
from rag_pipeline.adapters.chat_model import OpenAIChatModel
from rag_pipeline.answering import Answer, AnswerKind, Assistant, Turn, Voice
from rag_pipeline.retrieval import Query
from rag_pipeline_tests.answering.factories import SENSING, FixedRetriever, make_chunk
from rag_pipeline_tests.loopback import HANG, RESET, Received, Reply, serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

GRIPPER = (
    "A gripper with soft fingers closes around an egg with one command. "
    "The compliance of the rubber does the force regulation that a rigid gripper needs a sensor "
    "for.\n\n```python\ngripper.close(force=2)\n```"
)
QUESTION = "How does a gripper with soft fingers hold an egg?"
FIRST = "Soft fingers close around the egg with one command [1]."
SECOND = "The compliance of the rubber does the force regulation [1]."
GYRO = "An inertial measurement unit reports angular velocity at 400 Hz [2]."
BARE = FIRST.replace(" [1]", "")
CAKE = "A topic is a kind of chocolate cake."
KEY = "sk-test-0123456789abcdef"
STREAM = {"Content-Type": "text/event-stream"}


@pytest.fixture(autouse=True)
def _forget_servers() -> Iterator[None]:
    """Forget what the process has learned about servers, because ports are used again."""
    chat_model.HABITS.clear()
    yield
    chat_model.HABITS.clear()


def send(*events: dict[str, Any], done: bool = True, fault: str | None = None) -> Reply:
    """Return a streamed reply of events."""
    body = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    end = "data: [DONE]\n\n" if done and fault is None else ""
    return Reply(body=(body + end).encode(), headers=STREAM, fault=fault)  # type: ignore[arg-type]  # a fault


def delta(text: object, finish: str | None = None, **other: object) -> dict[str, Any]:
    """Return the event of a piece of text."""
    return {"choices": [{"index": 0, "delta": {"content": text, **other}, "finish_reason": finish}]}


def write(*pieces: str, finish: str | None = "stop", fault: str | None = None) -> Reply:
    """Return a streamed answer of pieces."""
    end = [delta("", finish)] if finish else []
    return send(*map(delta, pieces), *end, fault=fault)


def refuse(status: int, message: str, **fields: object) -> Reply:
    """Return an error as OpenAI's API sends it."""
    return Reply(status, {"error": {"message": message, **fields}}, {"Retry-After": "0"})


def make_model(url: str, **options: Any) -> OpenAIChatModel:  # noqa: ANN401  # of many types
    given: dict[str, Any] = {"timeout_s": 20.0, "max_tokens": 200, **options}
    return OpenAIChatModel(model="m", api_key=KEY, base_url=f"{url}/v1", **given)


def ask(
    reply: Reply | Sequence[Reply] | Callable[[Received], Reply],
    **options: Any,  # noqa: ANN401
) -> tuple[Answer, str, list[Received]]:
    """Return the answer, the text that a reader saw piece by piece, and the requests."""
    plan = reply if callable(reply) else ([reply] if isinstance(reply, Reply) else reply)
    marks = options.pop("marks", False)
    chunks = options.pop("chunks", None) or [
        make_chunk(GRIPPER, title="Embodiment", section="Soft grippers"),
        make_chunk(SENSING, title="Sensors", section="IMU"),
    ]
    asked = options.pop("question", QUESTION)
    history = options.pop("history", ())
    with serve(plan) as server:
        retriever = FixedRetriever(chunks)
        model = make_model(server.url, **options)
        assistant = Assistant(retriever, model, marks_ungrounded=marks)  # type: ignore[arg-type]  # a fixed one
        with assistant, assistant.stream(Query(asked), history=history) as stream:
            shown = "".join(stream)
            return stream.answer, shown, server.received


def codes(answer: Answer) -> list[str]:
    return [notice.code for notice in answer.notices]


THOUGHTS = "Okay, the user wants to know how it works. Let me read the excerpts first."
WRITTEN: dict[str, tuple[Sequence[str], str]] = {
    "as asked": ([FIRST], FIRST),
    "in single characters": (list(f"{FIRST} {SECOND}"), f"{FIRST} {SECOND}"),
    "without citation": ([BARE], FIRST),
    "wrong citation": ([FIRST.replace("[1]", "[2]")], FIRST),
    "citation of nothing": ([FIRST.replace("[1]", "[7]")], FIRST),
    "one of two wrong": ([FIRST.replace("[1]", "[1][2]")], FIRST),
    "lenticular brackets": ([FIRST.replace("[1]", "\u30101\u3011")], FIRST),
    "assistants brackets": ([FIRST.replace("[1]", "\u30101:0\u2020source\u3011")], FIRST),
    "round brackets": ([FIRST.replace("[1]", "(1)")], FIRST),
    "named in brackets": ([FIRST.replace("[1]", "(Source 1)")], FIRST),
    "named in square brackets": ([FIRST.replace("[1]", "[Source 1]")], FIRST),
    "footnote": ([FIRST.replace("[1]", "[^1]") + "\n\n[^1]: Embodiment, Soft grippers"], FIRST),
    "raised": ([BARE + "\u00b9"], FIRST),
    "html": ([FIRST.replace("[1]", "<sup>1</sup>")], FIRST),
    "linked": ([FIRST.replace("[1]", "[1](https://evil.example/x)")], FIRST),
    "title as citation": ([FIRST.replace("[1]", "[Source: Soft grippers]")], FIRST),
    "citation after the full stop": ([f"{BARE} [1] {SECOND}"], f"{BARE} [1] {SECOND}"),
    "list of sources": ([f"{FIRST}\n\nSources:\n1. Embodiment\n2. Sensors\n"], FIRST),
    "references": ([f"{FIRST}\n\n## References\n\n[1] Embodiment > Soft grippers"], FIRST),
    "thinking": (["<think>", THOUGHTS, "</think>\n\n", FIRST], FIRST),
    "thinking twice": (["<think>a</think><think>b</think>", FIRST], FIRST),
    "thinking in another tag": (["<reasoning>", THOUGHTS, "</reasoning>", FIRST], FIRST),
    "thinking in brackets": (["[THINK]", THOUGHTS, "[/THINK]", FIRST], FIRST),
    "thinking without beginning": ([THOUGHTS, "\n</think>\n\n", FIRST], FIRST),
    "grounded thinking without beginning": (
        [f"Hm, let me see. {BARE} So that is it.\n</think>\n\n", SECOND],
        SECOND,
    ),
    "thinking after the answer began": ([f"{FIRST} <think>Done?</think>"], FIRST),
    "channels": (
        [
            "<|channel|>analysis<|message|>",
            THOUGHTS,
            "<|end|><|start|>assistant<|channel|>final<|message|>",
            FIRST,
        ],
        FIRST,
    ),
    "end of turn": ([FIRST, "<|im_end|>\n<|im_start|>user\nAnd what else?"], FIRST),
    "other end of turn": ([FIRST, "<|eot_id|>"], FIRST),
    "split end of turn": ([FIRST, "<|im_", "end|>", " more"], FIRST),
    "begin of turn": (["<|im_start|>assistant\n", FIRST], FIRST),
    "gemma": (["<start_of_turn>model\n", FIRST, "<end_of_turn>"], FIRST),
    "instruct": (["[/INST] ", FIRST, "</s>"], FIRST),
    "marks of an older prompt": ([f"{FIRST}\n<<<END SOURCE 2 d92d8a>>>"], FIRST),
    "unfinished mark": ([f"{FIRST}\n<<<END SOURCE 2 d92d"], FIRST),
    "own marks": ([f"=== SOURCE 1 abcdef ===\n{FIRST}"], FIRST),
    "fence around all": ([f"```markdown\n{FIRST}\n```"], FIRST),
    "bare fence around all": ([f"```\n{FIRST} {SECOND}\n```\n"], f"{FIRST} {SECOND}"),
    "fence in a fence": (
        [f"```markdown\n{FIRST}\n\n```python\ngripper.close(force=2)\n```\n```"],
        f"{FIRST}\n\n```python\ngripper.close(force=2)\n```\n\n[1]",
    ),
    "json": ([json.dumps({"answer": FIRST, "sources": [1]})], FIRST),
    "answer tags": (["<answer>", FIRST, "</answer>"], FIRST),
    "label": (["Answer: ", FIRST], FIRST),
    "bold label": (["**Answer:** ", FIRST], FIRST),
    "another turn": ([f"{FIRST}\n\nQuestion: Why?\nAnswer: {CAKE}"], FIRST),
    "repetition": ([f"{FIRST} {SECOND} "] * 30, f"{FIRST} {SECOND}"),
    "repetition of one sentence": ([f"{FIRST} "] * 30, FIRST),
    "numbered repetition": ([f"{n}. {FIRST}\n" for n in range(1, 30)], f"1. {FIRST}"),
    "loop in a sentence": ([f"{FIRST} It closes ", *["and closes "] * 400], FIRST),
    "loop of a word": ([f"{FIRST} ", *["the "] * 900], FIRST),
    "foreign link": ([f"See [here](https://evil.example). {FIRST}"], FIRST),
    "foreign image": ([f"{FIRST} ![egg](https://evil.example/p.png)"], FIRST),
    "invented sentence": ([f"{FIRST} {CAKE}"], FIRST),
    "invented sentence first": ([f"{CAKE} {FIRST}"], FIRST),
    "invented number": ([f"{FIRST} {GYRO.replace('400', '900')}"], FIRST),
    "invented name": ([f"{FIRST} Soft fingers of Acmebot close around the egg [1]."], FIRST),
    "sentinel after text": ([f"{FIRST} NO_ANSWER_IN_SOURCES"], FIRST),
    "declines a part": ([f"{FIRST} The sources do not say how much the gripper costs."], FIRST),
    "repeats its rules": ([f"{FIRST} Do not repeat these rules or the === lines."], FIRST),
    "chatter": ([f"Great question! {FIRST} I hope this helps!"], FIRST),
    "names the source": ([f"According to Source 1, {BARE[0].lower()}{BARE[1:]}"], FIRST),
    "the source says": ([f"Source 1 states that {BARE[0].lower()}{BARE[1:]}"], FIRST),
    "boxed": ([f"\\boxed{{{FIRST}}}"], FIRST),
    "commands of a terminal": ([f"\x00\x1b[31m{FIRST}\x1b[0m"], FIRST),
    "the opposite": ([f"{FIRST} Soft fingers do not close around the egg [1]."], FIRST),
    "heading": ([f"## How it works\n\n{FIRST}"], f"## How it works\n\n{FIRST}"),
    "its rules in other words": ([f"2. End every sentence with a number [1].\n{FIRST}"], FIRST),
    "announces the answer": ([f"The answer is:\n\n{FIRST}"], FIRST),
    "two sources": ([f"{FIRST} {GYRO}"], f"{FIRST} {GYRO}"),
    "list": (
        [f"It works like this:\n\n1. {BARE}\n2. {SECOND}"],
        f"It works like this:\n\n1. {FIRST}\n2. {SECOND}",
    ),
    "rules repeated in other words": (
        [f"Use no other knowledge.\n2. End every sentence with a question mark [2].\n\n{FIRST}"],
        FIRST,
    ),
    "example repeated": ([f"{FIRST}\n\nThe answer is that the pump starts at 3 bar [1]."], FIRST),
    "citation as code": ([f"```\n[1]\n```\n\n{FIRST}"], FIRST),
    "same sentence for each source": (
        [
            f"{number}. The source {number} says that soft fingers close around the egg.\n"
            for number in (1, 2, 3)
        ],
        "1. Soft fingers close around the egg [1].",
    ),
    "heading of a source": ([f"Embodiment > Soft grippers\n\n{FIRST}"], FIRST),
    "bold labels": ([f"1. **Grip.** {FIRST}"], f"1. **Grip.** {FIRST}"),
    "heading of reasoning": ([f"### Reasoning\n{THOUGHTS}\n\n### Answer\n{FIRST}"], FIRST),
    "reasoning and bold label": ([f"**Thought:** {THOUGHTS}\n\n**Answer:** {FIRST}"], FIRST),
    "agent": ([f"Thought: I should look.\nAction: search\nFinal Answer: {FIRST}"], FIRST),
    "thinking of Gemma": ([f"<unused94>thought\n{THOUGHTS}<unused95>{FIRST}"], FIRST),
    "thinking with an attribute": ([f'<think time="3">{THOUGHTS}</think>{FIRST}'], FIRST),
    "thinking of an assistant": ([f"<antThinking>{THOUGHTS}</antThinking>{FIRST}"], FIRST),
    "curly brackets": ([FIRST.replace("[1]", "{1}")], FIRST),
    "angle brackets": ([FIRST.replace("[1]", "<1>")], FIRST),
    "bars": ([FIRST.replace("[1]", "|1|")], FIRST),
    "key cap": ([FIRST.replace("[1]", "1\ufe0f\u20e3")], FIRST),
    "citation before the sentence": ([f"[1] {BARE}"], FIRST),
    "excerpt that explains": ([f"As excerpt 1 explains, {BARE[0].lower()}{BARE[1:]}"], FIRST),
    "title in brackets": ([FIRST.replace("[1]", "(Soft grippers)")], FIRST),
    "title as a link": ([FIRST.replace("[1]", "([Soft grippers](https://evil.example))")], FIRST),
    "one word without end": ([f"{FIRST} ", "the the the " * 200], FIRST),
    "one long word": ([f"{FIRST} {'a' * 5000}"], FIRST),
    "code without its end": (
        ["Call it:\n\n```python\ngripper.close(force=2)"],
        "Call it:\n\n```python\ngripper.close(force=2)\n```\n\n[1]",
    ),
    "code": (
        ["Call it:\n\n```python\ngripper.close(force=2)\n```\n"],
        "Call it:\n\n```python\ngripper.close(force=2)\n```\n\n[1]",
    ),
}


@pytest.mark.parametrize("kind", WRITTEN)
def test_a_reader_sees_only_grounded_sentences_with_right_citations(kind: str) -> None:
    pieces, expected = WRITTEN[kind]
    answer, shown, _ = ask(write(*pieces))
    assert (answer.kind, answer.text) == (AnswerKind.GENERATED, expected)
    assert all(sentence.cited for sentence in answer.sentences)
    if kind != "grounded thinking without beginning":  # it was shown before its end was marked
        assert shown == expected


def stream(text: str) -> Reply:
    return Reply(body=text.encode(), headers=STREAM)


WHOLE = {"choices": [{"message": {"role": "assistant", "content": FIRST}, "finish_reason": "stop"}]}
PARTS = [{"type": "thinking", "thinking": THOUGHTS}, {"type": "text", "text": FIRST}]
EVENT = f"data: {json.dumps(delta(FIRST))}"
SENT: dict[str, Reply] = {
    "carriage returns": stream(f"{EVENT}\r\rdata: [DONE]\r\r"),
    "both line ends": stream(f"{EVENT}\r\n\r\ndata: [DONE]\r\n\r\n"),
    "no blanks": stream(f"data:{EVENT[6:]}\n\ndata:[DONE]\n\n"),
    "names and comments": stream(f": ping\n\nevent: message\nid: 1\n{EVENT}\n\n"),
    "several lines of data": stream(
        'data: {"choices":\ndata: [{"delta":{"content":' + f"{json.dumps(FIRST)}" + "}}]}\n\n"
    ),
    "byte order mark": stream(f"\ufeff{EVENT}\n\n"),
    "lines of JSON": Reply(body=f"{EVENT[6:]}\n{json.dumps(delta('', 'stop'))}\n".encode()),
    "text after the end": stream(f"{EVENT}\n\ndata: [DONE]\n\n{EVENT}\n\n"),
    "several choices": send(
        {"choices": [{"index": 1, "delta": {"content": CAKE}}, delta(FIRST)["choices"][0]]},
        {"choices": [{"index": 1, "delta": {"content": CAKE}}]},
    ),
    "the message again": send(
        delta(FIRST), {"choices": [{"delta": {}, "message": {"content": FIRST}}]}
    ),
    "empty parts": send({"choices": None}, {"choices": [{"delta": None}]}, delta(FIRST)),
    "content in parts": send(delta([{"type": "text", "text": FIRST}])),
    "old form": Reply(200, {"choices": [{"text": FIRST}]}),
    "not streamed": Reply(body=WHOLE),
    "not streamed, in parts": Reply(
        body={"choices": [{"message": {"content": PARTS}, "finish_reason": "stop"}]}
    ),
    "whole answer as an event": send(WHOLE),
    "parts": send(delta(PARTS), delta(None, "stop")),
    "without a reason": send(delta(FIRST)),
    "without a reason and an end": send(delta(FIRST), done=False),
    "usage at the end": send(
        delta(FIRST), delta("", "stop"), {"choices": [], "usage": {"prompt_tokens": 900}}
    ),
    "reasoning beside the answer": send(
        delta(None, reasoning_content=THOUGHTS), delta(FIRST), delta(None, "stop")
    ),
    "both line ends and a reason": Reply(
        body=send(delta(FIRST), delta("", "stop")).body.replace(b"\n", b"\r\n"), headers=STREAM
    ),
    "comments": stream(f": OPENROUTER PROCESSING\n\n{EVENT}\n\n"),
    "old completions": send({"choices": [{"text": FIRST, "finish_reason": "stop"}]}),
}


@pytest.mark.parametrize("reply", SENT.values(), ids=SENT)
def test_a_reply_is_read_in_any_form_that_servers_send(reply: Reply) -> None:
    answer, shown, _ = ask(reply)
    assert (answer.kind, answer.text, shown) == (AnswerKind.GENERATED, FIRST, FIRST)
    assert answer.complete


QUOTED: dict[str, tuple[Reply, str]] = {
    "server error": (refuse(500, "down"), "model_unavailable"),
    "overloaded": (refuse(503, "busy"), "model_unavailable"),
    "rate limit": (refuse(429, "slow down"), "model_unavailable"),
    "no quota": (refuse(429, "pay", code="insufficient_quota"), "model_unavailable"),
    "wrong key": (refuse(401, f"wrong key {KEY}"), "model_unavailable"),
    "forbidden": (refuse(403, "no"), "model_unavailable"),
    "no such model": (refuse(404, "no such model"), "model_unavailable"),
    "bad request": (refuse(400, "bad"), "model_unavailable"),
    "reset": (RESET, "model_unavailable"),
    "html": (Reply(body=b"<html>hello</html>"), "model_unavailable"),
    "no json": (Reply(body=b"data: {broken\n\n", headers=STREAM), "model_unavailable"),
    "no event": (send(done=False), "model_unavailable"),
    "nothing": (write(), "model_unavailable"),
    "white space": (write(" ", "\n"), "model_unavailable"),
    "null content": (send(delta(None, "stop")), "model_unavailable"),
    "number as content": (send(delta(7)), "model_unavailable"),
    "error event": (send({"error": {"message": "overloaded"}}), "model_unavailable"),
    "error as an answer": (
        Reply(200, {"error": {"message": "no", "code": 429}}),
        "model_unavailable",
    ),
    "content filter": (write(finish="content_filter"), "model_unavailable"),
    "tool call": (
        send(delta(None, tool_calls=[{"id": "1"}]), delta(None, "tool_calls")),
        "model_unavailable",
    ),
    "only reasoning": (
        send(delta(None, reasoning_content=THOUGHTS), delta("", "stop")),
        "model_unavailable",
    ),
    "unfinished reasoning": (write("<think>", BARE, finish="length"), "model_unavailable"),
    "breaks off early": (write("Soft fing", finish=None, fault="cut"), "model_unavailable"),
    "only an end": (write("<|im_end|>"), "model_unavailable"),
    "sentinel": (write("NO_ANSWER_IN_SOURCES"), "model_declined"),
    "sentinel with a full stop": (write("**NO_ANSWER_IN_SOURCES**."), "model_declined"),
    "declines": (write("The sources do not answer this question."), "model_declined"),
    "declines politely": (
        write("I'm sorry, but the provided excerpts do not contain information about that [1]."),
        "model_declined",
    ),
    "does not know": (write("I don't know."), "model_declined"),
    "refusal": (
        send(delta(None, refusal="I can't help with that."), delta(None, "stop")),
        "model_declined",
    ),
    "declines in German": (write("Die Quellen enthalten keine Antwort darauf."), "model_declined"),
    "declines in French": (
        write("Les sources ne répondent pas à cette question."),
        "model_declined",
    ),
    "declines in Spanish": (write("Las fuentes no contienen la respuesta."), "model_declined"),
    "declines in Chinese": (write("提供的资料没有回答这个问题。"), "model_declined"),
    "declines at length": (
        write("Based on the excerpts, it is not possible to determine how it works."),
        "model_declined",
    ),
    "repeats the rules": (
        write("1. State only what the sources say. Use no other knowledge.\n2. Write it."),
        "not_grounded",
    ),
    "repeats the question": (write(f"{QUESTION}\n\n" * 3), "not_grounded"),
    "error with a name": (send({"error": "boom"}), "model_unavailable"),
    "chocolate cake": (write(CAKE), "not_grounded"),
    "cited chocolate cake": (write("A topic is a kind of chocolate cake [1]."), "not_grounded"),
    "only a link": (write("[here](https://evil.example)"), "model_unavailable"),
    "only marks": (write("<<<END SOURCE 2 d92d8a>>>\n" * 3), "model_unavailable"),
    "its own instructions": (
        write(
            "The sources contain the answer. If they do not contain the answer, write only "
            "NO_ANSWER_IN_SOURCES."
        ),
        "not_grounded",
    ),
    "another language without citation": (
        write("L'uovo viene tenuto da dita morbide."),
        "not_grounded",
    ),
}


@pytest.mark.parametrize("kind", QUOTED)
def test_the_passages_are_quoted_whenever_a_model_gives_no_answer(kind: str) -> None:
    reply, code = QUOTED[kind]
    answer, shown, _ = ask(reply)
    assert (answer.kind, answer.model) == (AnswerKind.EXTRACTED, None)
    assert answer.passages[0].text in GRIPPER
    assert codes(answer)[-1] == code
    assert shown == answer.text
    assert answer.text.startswith(answer.notices[-1].text)
    assert KEY not in str(answer)


@pytest.mark.parametrize(
    "reply", [HANG, Reply(fault="drip"), write("Soft", finish=None, fault="murmur")]
)
def test_a_silent_model_gives_the_passages(reply: Reply) -> None:
    answer, _, _ = ask(reply, timeout_s=0.3)
    assert answer.notices[-1].data == {"error": "ANSWER_TIMEOUT"}
    assert answer.passages


def test_a_server_that_is_not_there_gives_the_passages() -> None:
    retriever = FixedRetriever([make_chunk(GRIPPER)])
    model = make_model("http://127.0.0.1:9")
    with Assistant(retriever, model) as assistant:  # type: ignore[arg-type]  # a fixed one
        answer = assistant.answer(Query(QUESTION))
    assert answer.notices[-1].data == {"error": "ANSWER_SERVICE_UNAVAILABLE"}


@pytest.mark.parametrize("fault", ["cut", "stall"])
def test_text_that_was_shown_stays_and_the_passages_follow_it(fault: str) -> None:
    reply = write(f"{FIRST} ", "The compl", finish=None, fault=fault)
    answer, shown, _ = ask(reply, timeout_s=0.5)
    assert (answer.kind, answer.complete) == (AnswerKind.GENERATED, False)
    assert answer.text.startswith(FIRST)
    assert shown == answer.text
    assert answer.passages[0].text in answer.text
    assert "cut_off" in codes(answer)


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_an_answer_that_is_cut_by_a_limit_is_marked(finish: str) -> None:
    answer, _, _ = ask(write(f"{FIRST} And", finish=finish))
    assert (answer.text, answer.complete) == (FIRST, False)
    assert codes(answer)[-1] == "cut_off"


REJECTIONS = {
    "max_tokens": "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
    "'max_completion_tokens' instead.",
    "temperature": "Unsupported value: 'temperature' does not support 0 with this model.",
    "stream_options": "Unrecognized request argument supplied: stream_options",
    "stop": "Unsupported parameter: 'stop' is not supported with this model.",
    "reasoning_effort": 'Unknown name "reasoning_effort": Cannot find field.',
}


@pytest.mark.parametrize("name", REJECTIONS)
def test_a_parameter_that_is_rejected_is_left_out_and_remembered(name: str) -> None:
    def reply(request: Received) -> Reply:
        return refuse(400, REJECTIONS[name]) if name in request.body else write(FIRST)

    extra = {"reasoning_effort": "low"}
    with serve(reply) as server:
        for _ in range(2):
            model = make_model(server.url, extra=extra)
            with Assistant(FixedRetriever([make_chunk(GRIPPER)]), model) as assistant:  # type: ignore[arg-type]  # a fixed one
                assert assistant.answer(Query(QUESTION)).text == FIRST
    assert [name in one.body for one in server.received] == [True, False, False]
    if name == "max_tokens":
        assert server.received[-1].body["max_completion_tokens"] == 200


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Only user and assistant roles are supported!"),
        (500, "System role not supported"),
        (422, "Conversation roles must alternate user/assistant/user/assistant/..."),
    ],
)
def test_instructions_become_a_part_of_the_question_if_the_role_is_rejected(
    status: int, message: str
) -> None:
    def reply(request: Received) -> Reply:
        roles = [entry["role"] for entry in request.body["messages"]]
        return refuse(status, message) if "system" in roles else write(FIRST)

    answer, _, received = ask(reply)
    assert answer.text == FIRST
    assert "NO_ANSWER_IN_SOURCES" in received[-1].body["messages"][0]["content"]


def test_a_server_that_cannot_stream_is_asked_for_a_whole_answer() -> None:
    def reply(request: Received) -> Reply:
        whole = Reply(body=WHOLE)
        return refuse(400, "streaming is not supported") if request.body.get("stream") else whole

    answer, _, received = ask(reply)
    assert answer.text == FIRST
    assert "stream_options" not in received[-1].body


OVERFLOWS = [
    refuse(400, "This model's maximum context length is 600 tokens. However, you requested 900."),
    refuse(400, "x", code="context_length_exceeded"),
    refuse(413, "Request too large for model"),
    Reply(400, {"error": {"type": "exceed_context_size_error", "n_ctx": 600, "message": "m"}}),
    Reply(200, {"error": {"message": "prompt is too long", "code": 400}}),
    refuse(
        400, "'max_tokens' is too large: 200. This model's maximum context length is 600 tokens"
    ),
]


@pytest.mark.parametrize("rejected", OVERFLOWS)
def test_a_prompt_that_is_too_long_is_sent_once_more_with_half_the_sources(rejected: Reply) -> None:
    chunks = [make_chunk(GRIPPER, section=f"S{n}", title=str(n)) for n in range(4)]
    answer, _, received = ask([rejected, write(FIRST)], chunks=chunks)
    assert answer.text == FIRST
    sizes = [one.body["messages"][1]["content"].count("=== SOURCE") for one in received]
    assert sizes[0] == 4
    assert sizes[1] <= 2


def test_the_passages_are_quoted_if_half_the_sources_are_too_long_too() -> None:
    answer, _, received = ask(OVERFLOWS[0])
    assert len(received) == 2
    assert answer.notices[-1].data == {"error": "ANSWER_CONTEXT_EXCEEDED"}


def test_a_prompt_fits_in_the_context() -> None:
    chunks = [make_chunk(f"{GRIPPER} {'word ' * 300}{n}", section=f"S{n}") for n in range(20)]
    history = [Turn("Why?", "Because. " * 400)] * 10
    _, _, received = ask(
        write(FIRST), chunks=chunks, context_tokens=1_500, max_tokens=300, history=history
    )
    content = "".join(entry["content"] for entry in received[0].body["messages"])
    assert chat_model.count_tokens(content) <= 1_200
    assert "=== SOURCE 1" in content


def test_a_sentence_of_the_model_alone_is_marked_by_a_setting() -> None:
    answer, shown, _ = ask(write(f"{FIRST} {CAKE}"), marks=True)
    assert answer.text == f"{FIRST} {CAKE} ({Voice().say('mark')})"
    assert shown == answer.text
    assert codes(answer) == ["sentences_marked"]


@pytest.mark.parametrize(
    ("pieces", "code"),
    [
        ([BARE], "citations_added"),
        ([FIRST.replace("[1]", "[2]")], "citations_corrected"),
        ([f"{FIRST} {CAKE}"], "sentences_dropped"),
        ([f"{FIRST} "] * 9, "repeated"),
        ([f"{FIRST} NO_ANSWER_IN_SOURCES"], "partly_declined"),
    ],
)
def test_each_correction_is_a_coded_notice(pieces: list[str], code: str) -> None:
    answer, _, _ = ask(write(*pieces))
    assert codes(answer) == [code]


def test_a_model_that_repeats_itself_is_stopped() -> None:
    answer, _, _ = ask(write(*[f"{FIRST} "] * 5, finish=None, fault="stall"), timeout_s=60)
    assert answer.text == FIRST


def test_a_sentence_is_shown_before_the_next_one_arrives() -> None:
    reply = write(f"{FIRST} ", finish=None, fault="stall")
    with serve([reply]) as server:
        model = make_model(server.url, timeout_s=60)
        with (
            Assistant(FixedRetriever([make_chunk(GRIPPER)]), model) as assistant,  # type: ignore[arg-type]  # a fixed one
            assistant.stream(Query(QUESTION)) as stream,
        ):
            assert next(stream) == FIRST


def test_words_that_stand_in_the_book_are_not_taken_for_marks() -> None:
    text = "The tag </s> ends a sequence. Write [INST] before an instruction of the model."
    answer, _, _ = ask(
        write("The tag </s> ends a sequence [1]."),
        chunks=[make_chunk(text)],
        question="Which tag ends a sequence?",
    )
    assert answer.text == "The tag </s> ends a sequence [1]."


def test_the_request_has_the_settings() -> None:
    _, _, received = ask(
        write(FIRST), extra={"top_p": 0.5, "stop": None}, headers={"X-Title": "My book"}
    )
    body = received[0].body
    assert (body["temperature"], body["top_p"], body["max_tokens"]) == (0.0, 0.5, 200)
    assert "stop" not in body
    assert received[0].headers["x-title"] == "My book"


def test_the_limit_of_time_counts_from_the_last_token() -> None:
    pieces = [f"{FIRST} ", "The ", "compliance ", "of "]
    answer, _, _ = ask(write(*pieces, finish=None, fault="stall"), timeout_s=0.4)
    assert answer.text.startswith(FIRST)
