"""Tests of the OpenAI embedder: the real client against a local server."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from rag_pipeline.adapters.embedders.openai import OPENAI, OpenAIEmbedder
from rag_pipeline.core.errors import (
    ConfigurationError,
    EmbeddingDimensionError,
    EmbeddingError,
    EmbeddingServiceError,
    RagPipelineError,
)
from rag_pipeline_tests.loopback import (
    MALFORMED,
    NESTED,
    LoopbackServer,
    Received,
    Reply,
    serve,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

KEY = "sk-secret-0123456789abcdef"
DIM = 8


def vector_of(text: str, dim: int = DIM) -> list[float]:
    """Return a vector that differs for each text and does not have unit length."""
    seed = sum((place + 1) * ord(char) for place, char in enumerate(text))
    return (np.random.default_rng(seed).normal(size=dim) * 3).tolist()


def embed_all(request: Received) -> dict[str, Any]:
    """Build the body of a correct response to a request."""
    dim = request.body.get("dimensions", DIM)
    data = [
        {"object": "embedding", "index": index, "embedding": vector_of(text, dim)}
        for index, text in enumerate(request.body["input"])
    ]
    usage = {"prompt_tokens": 7 * len(data), "total_tokens": 7 * len(data)}
    return {"object": "list", "model": request.body["model"], "data": data, "usage": usage}


def answer_well(request: Received) -> Reply:
    return Reply(body=embed_all(request))


def change(edit: Callable[[dict[str, Any]], object]) -> Callable[[Received], Reply]:
    """Return a plan with correct responses whose bodies were edited."""

    def answer(request: Received) -> Reply:
        body = embed_all(request)
        edit(body)
        return Reply(body=json.dumps(body).encode())

    return answer


def connect(
    server: LoopbackServer | str, waits: list[float] | None = None, **changes: object
) -> OpenAIEmbedder:
    url = server if isinstance(server, str) else server.url
    values: dict[str, Any] = {
        "model": "custom-model",
        "dim": DIM,
        "api_key": KEY,
        "base_url": f"{url}/v1",
        "batch_size": 3,
        "timeout_s": 5.0,
        "sleep": (waits if waits is not None else []).append,
    }
    return OpenAIEmbedder(**(values | changes))


def expect_unit(texts: Sequence[str], dim: int = DIM) -> np.ndarray:
    """Return the unit rows that the embedder should return for these texts."""
    rows = np.array([vector_of(text, dim) for text in texts])
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_rows_are_unit_vectors_in_the_order_of_the_texts() -> None:
    texts = [f"text {number}" for number in range(20)]
    with serve(answer_well) as server:
        embedder = connect(server)
        rows, usage = embedder.embed_passages(texts)
        rows_of_second_call, _ = embedder.embed_passages(texts)
        sizes = [len(request.body["input"]) for request in server.received]
    assert sizes[0] == 1, "one text until the service has answered"
    assert (sorted(sizes[1:8]), sorted(sizes[8:])) == ([2, 2] + [3] * 5, [2] + [3] * 6)
    assert np.array_equal(rows, rows_of_second_call)
    assert rows.shape == (20, DIM)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, expect_unit(texts), atol=1e-6)
    assert (usage.requests, usage.retries, usage.tokens) == (8, 0, 140)
    assert usage.seconds > 0


def test_no_texts_make_no_request() -> None:
    with serve(answer_well) as server:
        rows, usage = connect(server).embed_passages([])
        assert server.received == []
    assert rows.shape == (0, DIM)
    assert usage.requests == 0


def test_a_request_contains_key_model_and_texts() -> None:
    with serve(answer_well) as server:
        connect(server).embed_passages(["a", "b"])
        request = server.received[0]
    assert request.path == "/v1/embeddings"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body["model"] == "custom-model"
    assert request.body["input"] == ["a", "b"]
    assert "dimensions" not in request.body


def test_the_request_to_a_shortened_model_contains_the_dimension() -> None:
    with serve(answer_well) as server:
        embedder = connect(server, model="text-embedding-3-small", dim=256)
        rows, _ = embedder.embed_passages(["a"])
        assert server.received[0].body["dimensions"] == 256
    assert rows.shape == (1, 256)


def test_a_token_count_sent_as_a_string_is_read() -> None:
    with serve(change(lambda body: body["usage"].update(prompt_tokens="3"))) as server:
        _, usage = connect(server).embed_passages(["a"])
    assert usage.tokens == 3


def pack(body: dict[str, Any]) -> None:
    for entry in body["data"]:
        packed = np.array(entry["embedding"], dtype="<f4").tobytes()
        entry["embedding"] = base64.b64encode(packed).decode()


FORMS: dict[str, Callable[[dict[str, Any]], object]] = {
    "base64": pack,
    "shuffled": lambda body: body["data"].reverse(),
    "without an index": lambda body: [entry.pop("index") for entry in body["data"]],
    "the same index": lambda body: [entry.update(index=0) for entry in body["data"]],
}


@pytest.mark.parametrize("edit", FORMS.values(), ids=FORMS)
def test_vectors_are_read_in_every_form_and_order(edit: Callable[[dict[str, Any]], object]) -> None:
    with serve(change(edit)) as server:
        rows, _ = connect(server).embed_passages(["a", "b", "c"])
    np.testing.assert_allclose(rows, expect_unit(["a", "b", "c"]), atol=1e-6)


def test_at_most_eight_requests_are_open_at_a_time() -> None:
    texts = [f"text {number}" for number in range(40)]
    with serve(answer_well) as server:
        rows, usage = connect(server, batch_size=1).embed_passages(texts)
        assert server.most_in_flight <= 8
    np.testing.assert_allclose(rows, expect_unit(texts), atol=1e-6)
    assert usage.requests == 40


def test_a_request_stays_under_the_token_limit_of_the_service() -> None:
    long_text = "word " * 7000
    with serve(answer_well) as server:
        embedder = connect(server, model="text-embedding-3-small", dim=256, batch_size=2048)
        embedder.embed_passages([long_text] * 60)
        sizes = [len(request.body["input"]) for request in server.received]
    assert sum(sizes) == 60
    assert max(sizes) * embedder.count_tokens([long_text])[0] <= 300_000


def test_a_question_is_cut_to_the_token_limit_of_the_model() -> None:
    with serve(answer_well) as server:
        embedder = connect(server)
        vector = embedder.embed_query("robot arms bend " * 20_000)
        sent = server.received[0].body["input"][0]
    assert vector.shape == (DIM,)
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-5)
    assert 4000 < embedder.count_tokens([sent])[0] <= embedder.model.max_input_tokens


def test_retry_after_is_respected_up_to_a_limit() -> None:
    waits: list[float] = []
    replies = iter(
        [
            Reply(429, {"error": {"message": "slow down"}}, {"Retry-After": "7"}),
            Reply(429, {"error": {"message": "slow down"}}, {"Retry-After": "3600"}),
        ]
    )

    def answer(request: Received) -> Reply:
        return next(replies, None) or answer_well(request)

    with serve(answer) as server:
        connect(server, waits).embed_passages(["a"])
    assert waits == [7.0, 60.0]


def test_waits_for_a_question_are_shorter_than_for_a_document() -> None:
    waits: list[float] = []
    limited = Reply(429, {"error": {"message": "slow down"}}, {"Retry-After": "30"})
    with serve([limited]) as server, pytest.raises(EmbeddingServiceError):
        connect(server, waits).embed_query("a")
    assert waits == [2.0, 2.0]


def test_a_request_without_quota_is_not_retried() -> None:
    refusal = Reply(429, {"error": {"message": "no credit", "code": "insufficient_quota"}})
    with serve([refusal]) as server:
        with pytest.raises(ConfigurationError, match="quota") as caught:
            connect(server).embed_passages(["a"])
        assert len(server.received) == 1
    check_message(caught.value)


def test_the_error_for_an_unknown_model_names_it() -> None:
    refusal = Reply(404, {"error": {"message": "model not found"}})
    with serve([refusal]) as server, pytest.raises(ConfigurationError, match="custom-model"):
        connect(server).embed_passages(["a"])


def test_a_bad_request_is_not_retried() -> None:
    refusal = Reply(400, {"error": {"message": f"bad input,\nkey {KEY}"}})
    with serve([refusal]) as server:
        with pytest.raises(EmbeddingError, match="custom-model") as caught:
            connect(server).embed_passages(["a"])
        assert len(server.received) == 1
    assert not caught.value.transient
    check_message(caught.value)


def put(value: object) -> Callable[[dict[str, Any]], None]:
    """Return a function that replaces the second vector of a response."""
    return lambda body: body["data"][1].update(embedding=value)


UNUSABLE: dict[str, tuple[Callable[[dict[str, Any]], object], type[EmbeddingError]]] = {
    "too few": (lambda body: body["data"].pop(0), EmbeddingDimensionError),
    "empty": (lambda body: body["data"].clear(), EmbeddingDimensionError),
    "short": (put([1.0] * (DIM - 1)), EmbeddingDimensionError),
    "repeated index": (lambda body: body["data"][1].update(index=0), EmbeddingError),
    "nan": (put([float("nan")] * DIM), EmbeddingError),
    "zeros": (put([0.0] * DIM), EmbeddingError),
    "words": (put(["x"] * DIM), EmbeddingError),
    "null": (put(None), EmbeddingError),
    "huge number": (put([10**400] * DIM), EmbeddingError),
    "nested": (put([[1.0], [1.0, 2.0]] * (DIM // 2)), EmbeddingError),
    "tokens": (lambda body: body["usage"].update(prompt_tokens=[1]), EmbeddingError),
    "no data": (lambda body: body.pop("data"), EmbeddingError),
}


@pytest.mark.parametrize(("edit", "kind"), UNUSABLE.values(), ids=UNUSABLE)
def test_an_unusable_response_is_an_error_and_is_not_retried(
    edit: Callable[[dict[str, Any]], object], kind: type[EmbeddingError]
) -> None:
    with serve(change(edit)) as server:
        with pytest.raises(kind) as caught:
            connect(server).embed_passages(["a", "b", "c"])
        assert len(server.received) == 1
    check_message(caught.value)


@pytest.mark.parametrize(
    "reply",
    [
        MALFORMED,
        NESTED,
        Reply(body=b"<html>a login page</html>", headers={"Content-Type": "text/html"}),
        Reply(body=[1, 2]),
    ],
    ids=["cut off", "nested", "HTML", "other JSON"],
)
def test_a_response_of_another_kind_is_an_error(reply: Reply) -> None:
    with serve([reply]) as server, pytest.raises(EmbeddingError, match="would send") as caught:
        connect(server).embed_passages(["a"])
    check_message(caught.value)


def test_one_failing_batch_fails_the_call() -> None:
    def answer(request: Received) -> Reply:
        if "text 4" in request.body["input"]:
            return Reply(500, {"error": {"message": "boom"}})
        return answer_well(request)

    with serve(answer) as server, pytest.raises(EmbeddingServiceError):
        connect(server).embed_passages([f"text {number}" for number in range(9)])


@pytest.mark.parametrize(
    ("model", "dim", "chosen"),
    [
        ("text-embedding-3-small", 0, 1536),
        ("text-embedding-3-large", 0, 3072),
        ("text-embedding-3-large", 1024, 1024),
        ("text-embedding-ada-002", 1536, 1536),
        ("nomic-embed-text", 768, 768),
    ],
)
def test_the_dimension_of_a_model_is_chosen(model: str, dim: int, chosen: int) -> None:
    assert OPENAI.choose_dim(model, dim) == chosen


@pytest.mark.parametrize(
    ("model", "dim"),
    [("text-embedding-ada-002", 512), ("text-embedding-3-small", 3072), ("nomic-embed-text", 0)],
)
def test_the_error_for_an_impossible_dimension_names_the_setting(model: str, dim: int) -> None:
    with pytest.raises(ConfigurationError, match="EMBEDDING_DIM"):
        OPENAI.choose_dim(model, dim)


def check_message(error: RagPipelineError) -> None:
    """Check that the message is one line, and that neither it nor its cause shows the key."""
    assert "\n" not in str(error)
    assert KEY not in str(error)
    assert error.__suppress_context__ or KEY not in repr(error.__cause__)


def refuse_base64(request: Received) -> Reply:
    if request.body["encoding_format"] == "base64":
        return Reply(422, {"detail": "encoding_format must be float"})
    return answer_well(request)


def test_a_server_that_refuses_base64_is_asked_for_numbers_from_then_on() -> None:
    texts = [f"text {number}" for number in range(9)]
    with serve(refuse_base64) as server:
        rows, _ = connect(server).embed_passages(texts)
        formats = [request.body["encoding_format"] for request in server.received]
    assert formats == ["base64", *["float"] * (len(formats) - 1)]
    np.testing.assert_allclose(rows, expect_unit(texts), atol=1e-6)


@pytest.mark.parametrize("status", [400, 413, 500])
def test_a_text_that_the_server_finds_too_long_is_embedded_in_parts(status: int) -> None:
    def refuse_long(request: Received) -> Reply:
        if any(len(text.split()) > 100 for text in request.body["input"]):
            reason = "the input length exceeds the context length"
            return Reply(status, {"error": {"message": reason}})
        return answer_well(request)

    long_text = " ".join(f"word{number}" for number in range(180))
    with serve(refuse_long) as server:
        rows, usage = connect(server).embed_passages(["short", long_text, "other"])
    middle = long_text.index(" ", len(long_text) // 2)
    parts = [long_text[:middle], long_text[middle:]]
    mean = np.average(expect_unit(parts), axis=0, weights=[len(part) for part in parts])
    np.testing.assert_allclose(rows[[0, 2]], expect_unit(["short", "other"]), atol=1e-6)
    np.testing.assert_allclose(rows[1], mean / np.linalg.norm(mean), atol=1e-6)
    assert usage.requests > 3


def test_a_batch_that_is_too_large_is_sent_in_halves() -> None:
    def refuse_batches(request: Received) -> Reply:
        count = len(request.body["input"])
        if count > 2:
            problem = f"batch size {count} > maximum allowed batch size 2"
            return Reply(422, {"error": problem, "error_type": "Validation"})
        return answer_well(request)

    texts = [f"text {number}" for number in range(30)]
    with serve(refuse_batches) as server:
        embedder = connect(server, batch_size=8)
        rows, _ = embedder.embed_passages(texts)
        before = len(server.received)
        embedder.embed_passages(texts)
        sizes = [len(request.body["input"]) for request in server.received[before:]]
    np.testing.assert_allclose(rows, expect_unit(texts), atol=1e-6)
    assert max(sizes) <= 2, "the size that the server takes is remembered"


def test_the_error_for_a_short_text_that_is_refused_quotes_the_server() -> None:
    refusal = Reply(400, {"error": {"message": "this model has a maximum context of 0 tokens"}})
    with serve([refusal]) as server:
        with pytest.raises(EmbeddingError, match="maximum context of 0 tokens"):
            connect(server).embed_passages(["a"])
        assert len(server.received) == 1


def test_questions_and_texts_get_their_prefixes() -> None:
    form = {"max_tokens": 100, "query_prefix": "query: ", "document_prefix": "passage: "}
    with serve(answer_well) as server:
        embedder = connect(server, **form)
        embedder.embed_passages(["one"])
        embedder.embed_query("two")
        inputs = [request.body["input"] for request in server.received]
        names = {request.body["model"] for request in server.received}
    assert inputs == [["passage: one"], ["query: two"]]
    assert names == {"custom-model"}
    assert embedder.model.max_input_tokens < 100
    assert embedder.model != connect(server).model


_WORDS = " ".join(f"word{number}" for number in range(400))


@pytest.mark.parametrize(
    ("path", "stated"),
    [
        ("/info", {"model_id": "m", "max_input_length": 300}),
        ("/props", {"default_generation_settings": {"n_ctx": 300}}),
        ("/v1/models", {"data": [{"id": "custom-model", "max_model_len": 300}]}),
    ],
)
def test_a_server_is_asked_for_its_limit_and_longer_texts_are_sent_in_parts(
    path: str, stated: dict[str, Any]
) -> None:
    def reply(request: Received) -> Reply:
        if request.path == path:
            return Reply(body=stated)
        if not request.path.endswith("/embeddings"):
            return Reply(404, {"error": "not found"})
        return answer_well(request)

    with serve(reply, {path: Reply(body=stated)}) as server:
        embedder = connect(server)
        embedder.embed_passages(["short", _WORDS, "other"])
        embedder.embed_passages([_WORDS])
        asked = [*server.asked, *(request.path for request in server.received)].count(path)
        inputs = [
            text
            for request in server.received
            if request.path.endswith("/embeddings")
            for text in request.body["input"]
        ]
    assert asked == 1
    assert max(embedder.count_tokens(inputs)) <= 298
    assert " ".join(inputs).split().count("word399") == 2


def test_a_limit_that_a_server_names_when_it_refuses_a_text_is_remembered() -> None:
    def refuse_long(request: Received) -> Reply:
        if not request.path.endswith("/embeddings"):
            return Reply(404, {"error": "not found"})
        if max(len(text.split()) for text in request.body["input"]) > 120:
            reason = "This model's maximum context length is 300 tokens, however you requested more"
            return Reply(400, {"error": {"message": reason}})
        return answer_well(request)

    with serve(refuse_long) as server:
        embedder = connect(server)
        embedder.embed_passages([_WORDS])
        before = len(server.received)
        embedder.embed_passages([_WORDS])
        sizes = [len(request.body["input"][0].split()) for request in server.received[before:]]
    assert max(sizes) <= 120


def test_a_limit_that_the_user_set_is_not_asked_for() -> None:
    with serve(answer_well) as server:
        connect(server, max_tokens=8000).embed_passages([_WORDS])
        assert [request.path for request in server.received] == ["/v1/embeddings"]
