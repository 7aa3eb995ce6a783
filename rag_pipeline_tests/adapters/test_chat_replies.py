"""Tests that the size of a model's context is asked from the server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from rag_pipeline.adapters import chat_model
from rag_pipeline.adapters.chat_replies import find_context
from rag_pipeline_tests.adapters.test_chat_model import make_model
from rag_pipeline_tests.loopback import HANG, NESTED, RESET, Reply, serve

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _forget_servers() -> Iterator[None]:
    """Forget what the process has learned about servers, because ports are used again."""
    chat_model.HABITS.clear()
    yield
    chat_model.HABITS.clear()


NAME = "m"
TOLD: dict[str, tuple[dict[str, Any], int]] = {
    "llama.cpp": ({"/props": {"default_generation_settings": {"n_ctx": 4096}}}, 4096),
    "llama.cpp, in its list": (
        {"/v1/models": {"data": [{"id": "x", "meta": {"n_ctx": 2048}}]}},
        2048,
    ),
    "vLLM": (
        {
            "/v1/models": {
                "data": [{"id": "o", "max_model_len": 1}, {"id": NAME, "max_model_len": 5000}]
            }
        },
        5000,
    ),
    "OpenRouter": ({"/v1/models": {"data": [{"id": NAME, "context_length": 6000}]}}, 6000),
    "LM Studio": (
        {
            "/api/v0/models": {
                "data": [{"id": NAME, "max_context_length": 9, "loaded_context_length": 4000}]
            }
        },
        4000,
    ),
    "Ollama": (
        {
            "/api/show": {
                "parameters": "stop x\nnum_ctx  3072",
                "model_info": {"llama.context_length": 8000},
            }
        },
        3072,
    ),
    "Ollama without num_ctx": ({"/api/show": {"model_info": {"qwen2.context_length": 8000}}}, 8000),
    "another model": ({"/v1/models": {"data": [{"id": "a"}, {"id": "b", "n_ctx": 900}]}}, 8192),
    "nothing": ({}, 8192),
    "larger than the setting": (
        {"/props": {"default_generation_settings": {"n_ctx": 99_999}}},
        8192,
    ),
    "not a number": ({"/props": {"default_generation_settings": {"n_ctx": "4096"}}}, 8192),
    "too small": ({"/props": {"default_generation_settings": {"n_ctx": 16}}}, 8192),
    "other JSON": ({"/props": [], "/v1/models": {"data": {}}, "/api/show": 7}, 8192),
}


@pytest.mark.parametrize("server", TOLD)
def test_the_size_that_a_server_tells_limits_the_prompt(server: str) -> None:
    bodies, expected = TOLD[server]
    with serve([Reply()], {path: Reply(body=body) for path, body in bodies.items()}) as running:
        model = make_model(running, 5.0)
        asyncio.run(model.prepare())
        assert model.context_tokens == expected
        assert model.prompt_tokens == expected - model.max_tokens
        assert running.received == []


@pytest.mark.parametrize("reply", [RESET, NESTED, Reply(500), Reply(body=b"x"), HANG])
def test_no_failure_of_the_server_is_an_error(
    reply: Reply, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_pipeline.adapters.chat_replies.ASKING_S", 0.3)
    with serve([Reply()], {"/props": reply, "/v1/models": reply}) as running:
        model = make_model(running, 5.0)
        asyncio.run(model.prepare())
        assert model.context_tokens == 8192


def test_no_reply_has_a_size_that_is_no_positive_whole_number() -> None:
    for size in (None, True, -1, 0, 1.5, "4096"):
        assert list(find_context({"data": [{"id": NAME, "n_ctx": size}]}, NAME)) == []
