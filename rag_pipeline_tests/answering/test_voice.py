"""Tests of the sentences of the assistant in its languages."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import get_args

import pytest

from rag_pipeline.answering import voice
from rag_pipeline.core.settings import Settings

TEXTS = tomllib.loads(Path(voice.__file__).with_name("sentences.toml").read_text("utf-8"))
LANGUAGES = get_args(Settings.model_fields["assistant_language"].annotation)


@pytest.mark.parametrize("table", TEXTS)
def test_every_text_is_there_in_every_language_of_the_setting(table: str) -> None:
    assert {frozenset(texts) for texts in TEXTS[table].values()} == {frozenset(LANGUAGES)}
    assert len(LANGUAGES) == 4
