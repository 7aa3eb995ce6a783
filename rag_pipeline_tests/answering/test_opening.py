"""Tests of assistants that open the collection when a question needs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_pipeline.answering import AnswerKind, answer, open_assistant
from rag_pipeline.core.errors import CollectionMissingError, ConfigurationError
from rag_pipeline.retrieval.queries import Mode, Query
from rag_pipeline_tests.answering.factories import WALKING
from rag_pipeline_tests.retrieval.indexed_book import (
    PAGES,
    build_collection,
    make_points,
    make_settings,
)

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.retrieval.logs import Operation

QUESTION = Query("How does a soft gripper hold an egg?")
SELECTED = Query(
    "What does ankle torque correct?", mode=Mode.SELECTED_TEXT_ONLY, selected_text=WALKING
)


def test_greetings_and_selected_texts_need_neither_a_collection_nor_a_key(tmp_path: Path) -> None:
    settings = make_settings(tmp_path).model_copy(update={"embedding_provider": "openai"})
    with open_assistant(settings) as assistant:
        assert assistant.answer(Query("Hello")).kind is AnswerKind.REPLY
        assert "small errors" in assistant.answer(SELECTED).text
        with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
            assistant.answer(QUESTION)
    assert not list(tmp_path.iterdir())


def test_a_collection_that_is_built_later_is_found_without_a_new_assistant(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    seen: list[tuple[str, str]] = []

    def observe(operation: Operation, error: Exception | None) -> None:
        seen.append((operation.name, type(error).__name__))

    with open_assistant(settings, observe=observe) as assistant:
        first = assistant.answer(SELECTED)
        with pytest.raises(CollectionMissingError):
            assistant.answer(QUESTION)
        build_collection(settings, make_points(PAGES))
        assert "egg" in assistant.answer(QUESTION).text
        assert assistant.answer(SELECTED) == first
        assert assistant.retriever is assistant.retriever
        assert assistant.retriever.protection is assistant.protection
        assistant.close()
        assert "egg" in assistant.answer(QUESTION).text
    assert seen == [
        ("retrieve", "NoneType"),
        ("answer", "NoneType"),
        ("retrieve", "CollectionMissingError"),
        ("answer", "CollectionMissingError"),
        *[("retrieve", "NoneType"), ("answer", "NoneType")] * 3,
    ]


def test_opening_keeps_the_circuit_breakers_and_sets_the_time_limits(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, store_lock_timeout_s=60.0)
    with open_assistant(settings) as assistant:
        breaker = assistant.protection.chat_model
        assert assistant.retriever.protection.chat_model is breaker
        assert assistant.protection.limits.query_s > 60


def test_settings_that_are_not_given_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # without an `.env` file
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    assert answer("Hello").kind is AnswerKind.REPLY
    assert open_assistant().answer(Query("Hello")).kind is AnswerKind.REPLY
