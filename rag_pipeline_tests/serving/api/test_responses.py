"""The notices of the library, as the service passes them on."""

from __future__ import annotations

import pytest

from rag_pipeline.answering.quoting.extracted import NO_MODEL_NOTICE
from rag_pipeline.answering.ready import UNAVAILABLE_NOTICE
from rag_pipeline.answering.writing.generated import CUT_NOTICE, UNCITED_NOTICE
from rag_pipeline.retrieval.selected_text import POSSIBLE_NOTICE, UNRELATED_NOTICE
from rag_pipeline.serving.api.responses import describe_notice


@pytest.mark.parametrize(
    ("notice", "code"),
    [
        (NO_MODEL_NOTICE, "no_model"),
        (f"{UNAVAILABLE_NOTICE} Error X: down", "model_unavailable"),
        (CUT_NOTICE, "cut_off"),
        (UNCITED_NOTICE, "uncited_sentences"),
        ("The cited sources do not contain: 400 Hz.", "unsupported"),
        ("Source 2 has no word in common with the sentence: It walks.", "unsupported"),
        (UNRELATED_NOTICE, "selection_unrelated"),
        (POSSIBLE_NOTICE, "selection_uncertain"),
        ("A new notice.", "hint"),
    ],
)
def test_each_notice_has_a_code(notice: str, code: str) -> None:
    assert describe_notice(notice)["code"] == code


def test_notices_about_settings_are_put_in_words_for_readers() -> None:
    unavailable = f"{UNAVAILABLE_NOTICE} Check ANSWER_MODEL"
    for notice in (NO_MODEL_NOTICE, CUT_NOTICE, unavailable):
        assert "ANSWER_M" not in describe_notice(notice)["text"]
    assert describe_notice(UNCITED_NOTICE)["text"] == UNCITED_NOTICE
