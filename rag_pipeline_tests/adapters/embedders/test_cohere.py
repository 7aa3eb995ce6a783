"""Tests of the Cohere embedder: the real client against a local server."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rag_pipeline.core.errors import (
    ConfigurationError,
    EmbeddingDimensionError,
    EmbeddingError,
)
from rag_pipeline_tests.adapters.embedders.test_openai import KEY, check_message, vector_of
from rag_pipeline_tests.loopback import (
    MALFORMED,
    NESTED,
    LoopbackServer,
    Received,
    Reply,
    serve,
)

pytest.importorskip("cohere", reason="the cohere extra is not installed")

from rag_pipeline.adapters.embedders.cohere import CohereEmbedder

DIM = 1024


def answer_well(request: Received) -> Reply:
    texts = request.body["texts"]
    return Reply(
        body={
            "id": "1",
            "response_type": "embeddings_by_type",
            "embeddings": {"float": [vector_of(text, DIM) for text in texts]},
            "texts": texts,
            "meta": {"billed_units": {"input_tokens": 5 * len(texts)}},
        }
    )


def connect(
    server: LoopbackServer | str, waits: list[float] | None = None, **changes: object
) -> CohereEmbedder:
    values: dict[str, Any] = {
        "model": "",
        "dim": 0,
        "api_key": KEY,
        "base_url": server if isinstance(server, str) else server.url,
        "batch_size": 100,
        "timeout_s": 5.0,
        "sleep": (waits if waits is not None else []).append,
    }
    return CohereEmbedder(**(values | changes))


def test_documents_are_sent_in_batches_of_at_most_96_and_keep_their_order() -> None:
    texts = [f"text {number}" for number in range(200)]
    with serve(answer_well) as server:
        rows, usage = connect(server).embed_passages(texts)
        sizes = [len(request.body["texts"]) for request in server.received]
        kinds = {request.body["input_type"] for request in server.received}
    assert (sizes[0], sorted(sizes[1:])) == (1, [8, 95, 96])  # the first text is sent alone
    assert kinds == {"search_document"}
    assert rows.shape == (200, DIM)
    expected = np.array([vector_of(text, DIM) for text in texts])
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(rows, expected, atol=1e-6)
    assert (usage.requests, usage.retries, usage.tokens) == (4, 0, 1000)


def test_a_question_is_sent_with_the_input_type_search_query() -> None:
    with serve(answer_well) as server:
        vector = connect(server).embed_query("What is a robot?")
        request = server.received[0]
    assert request.body["input_type"] == "search_query"
    assert request.body["model"] == "embed-english-v3.0"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert vector.shape == (DIM,)
    assert np.linalg.norm(vector) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(
    ("status", "kind"), [(404, ConfigurationError), (400, EmbeddingError), (422, EmbeddingError)]
)
def test_a_rejected_request_is_not_retried(status: int, kind: type[Exception]) -> None:
    with serve([Reply(status, {"message": "no"})]) as server:
        with pytest.raises(kind, match=r"embed-english-v3\.0") as caught:
            connect(server).embed_passages(["a"])
        assert len(server.received) == 1
    check_message(caught.value)  # type: ignore[arg-type]  # both are errors of this package


@pytest.mark.parametrize(
    "reply",
    [
        MALFORMED,
        Reply(body={"id": "1"}),
        Reply(body={"id": "1", "embeddings": {}}),
        Reply(body={"id": "1", "embeddings": {"float": 5}}),
        Reply(body=[]),
        NESTED,
        Reply(307, headers={"Location": "/v2/embed"}),
        Reply(
            body=b'{"id": "1", "embeddings": {"float": []},'
            b' "meta": {"billed_units": {"input_tokens": 1e400}}}'
        ),
    ],
    ids=[
        "cut off",
        "no embeddings",
        "no floats",
        "a number",
        "other JSON",
        "nested",
        "redirects for ever",
        "endless tokens",
    ],
)
def test_a_response_of_another_kind_is_an_error(reply: Reply) -> None:
    with serve([reply]) as server, pytest.raises(EmbeddingError, match="would send") as caught:
        connect(server).embed_passages(["a"])
    check_message(caught.value)


@pytest.mark.parametrize("rows", [[[1.0] * DIM], [[1.0] * DIM, [1.0] * 8]], ids=["count", "length"])
def test_missing_or_short_vectors_are_an_error(rows: list[list[float]]) -> None:
    reply = Reply(body={"id": "1", "embeddings": {"float": rows}})
    with serve([reply]) as server, pytest.raises(EmbeddingDimensionError):
        connect(server).embed_passages(["a", "b"])


def test_numbers_too_large_for_a_float_are_an_error() -> None:
    reply = Reply(body={"id": "1", "embeddings": {"float": [[10**400] * DIM]}})
    with serve([reply]) as server, pytest.raises(EmbeddingError) as caught:
        connect(server).embed_passages(["a"])
    check_message(caught.value)


def test_the_error_for_an_impossible_dimension_names_the_setting() -> None:
    with pytest.raises(ConfigurationError, match="EMBEDDING_DIM"):
        connect("http://127.0.0.1:1", dim=512)
    with pytest.raises(ConfigurationError, match="EMBEDDING_DIM"):
        connect("http://127.0.0.1:1", model="embed-of-tomorrow")
