"""Tests that no model, question or selection keeps the service busy for long."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx
import pytest

from rag_pipeline.serving import limits
from rag_pipeline_tests.answering.factories import ScriptedModel, ScriptedStream
from rag_pipeline_tests.serving.running_service import index_book, run_service

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.protocols import ChatMessage, ChatStream
    from rag_pipeline.core.settings import Settings

QUESTION = "How does a soft gripper hold an egg?"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings of the small book, which is indexed."""
    return index_book(tmp_path_factory.mktemp("book"))


class DrippingStream(ScriptedStream):
    """A stream that goes on with blanks, one from time to time."""

    async def __anext__(self) -> str:
        """Return the next piece."""
        try:
            return await super().__anext__()
        except StopAsyncIteration:
            await asyncio.sleep(0.01)
            return " "


class DrippingModel(ScriptedModel):
    """A `ChatModel` that never ends its answer and never stops writing either."""

    def stream(self, messages: Sequence[ChatMessage], *, stop: Sequence[str] = ()) -> ChatStream:
        """Return a stream without an end."""
        del messages, stop
        return DrippingStream(self)


@pytest.mark.parametrize(
    ("written", "kind", "code"),
    [
        (["A soft gripper closes around an egg [1]. "], "generated", "cut_off"),
        ([], "extracted", "model_unavailable"),
    ],
)
def test_a_model_that_never_ends_is_given_up_and_passages_are_quoted(
    settings: Settings, written: list[str], kind: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "ANSWER_S", 0.5)
    with run_service(settings, DrippingModel(written)) as url:
        found = httpx.post(f"{url}/v1/answers", json={"question": QUESTION}, timeout=30).json()
    assert found["passages"]
    assert (found["kind"], found["notices"][-1]["code"]) == (kind, code)


def test_passages_that_cannot_be_chosen_in_time_are_an_error(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "QUOTE_S", 0.0)
    with run_service(settings) as url:
        found = httpx.post(f"{url}/v1/answers", json={"question": QUESTION}, timeout=30)
    assert (found.status_code, found.json()["code"]) == (504, "ANSWER_TIMEOUT")


@pytest.mark.parametrize(
    ("selection", "status"),
    [
        ("An egg is held by a soft gripper.\n" * 580, 200),
        ("| 0.5 | 1.25 | 3 |\n" * 1000, 200),
        ("***\n" * 5000, 422),
        ("A. " * 6600, 422),
        ("蛋。" * 9000, 422),
    ],
    ids=["sentences", "rows", "rules", "short sentences", "sentences without spaces"],
)
def test_a_selection_has_a_limited_number_of_parts(
    settings: Settings, selection: str, status: int
) -> None:
    body = {"question": QUESTION, "mode": "selected_text_only", "selected_text": selection}
    with run_service(settings) as url:
        found = httpx.post(f"{url}/v1/answers", json=body, timeout=60)
        assert found.status_code == status
        assert status == 200 or found.json()["errors"][0]["field"] == "selected_text"
