"""`rag-pipeline query` with a model on 127.0.0.1, from a selected text: nothing is indexed."""

from __future__ import annotations

import io
import os
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.answering.prompts import DECLINED
from rag_pipeline.core.payload import FILTERS
from rag_pipeline_tests.adapters.test_chat_model import stream_reply
from rag_pipeline_tests.end_to_end.command import Command, Outcome, assert_one_line, embed
from rag_pipeline_tests.loopback import HANG, Received, Reply, serve

if TYPE_CHECKING:
    from collections.abc import Callable

SELECTION = "A servo holds its joint at an angle."
ASKED = ("query", "What holds a servo?", "--selected-text", SELECTION)
BESIDE = ("query", "Which glue holds wooden chairs?", "--selected-text", SELECTION)


def model_at(url: str) -> dict[str, str]:
    """Settings that name a model."""
    return {"OPENAI_BASE_URL": f"{url}/v1", "ANSWER_MODEL": "m"}


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_an_answer_is_written_whatever_the_terminal_knows(
    call: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    with serve([stream_reply("An angle \u2192 a joint \ud83d", "\ude00 [1].")]) as server:
        assert call(*ASKED, **model_at(server.url)).code == 0
    assert (
        written.getvalue().decode().startswith("An angle \u2192 a joint \U0001f600 [1].\nSources:")
    )


def test_an_error_that_breaks_off_is_one_document(call: Callable[..., Outcome]) -> None:
    with serve([Reply(401, fault="cut")]) as server:
        told = call(*ASKED, "--json", **model_at(server.url), ANSWER_TIMEOUT_S="1")
    assert (told.code, told.json["error"]["code"]) == (1, "ANSWER_SERVICE_UNAVAILABLE")


def test_a_question_beside_the_selection_is_answered_on_demand(
    call: Callable[..., Outcome],
) -> None:
    with serve([stream_reply("None is named [1].")]) as server:
        refused = call(*BESIDE, "--json", **model_at(server.url))
        assert refused.json["reason"] == "unrelated_to_selection"
        given = call(*BESIDE, "--even-if-unrelated", "--json", **model_at(server.url))
    assert (given.json["kind"], given.json["answer"]) == ("generated", "None is named [1].")


def test_that_needs_a_selection(call: Callable[..., Outcome]) -> None:
    told = call("query", "What holds a servo?", "--even-if-unrelated")
    assert_one_line(told, 2, "--even-if-unrelated", "--selected-text")


def test_the_mode_follows_from_the_selection_or_is_named(call: Callable[..., Outcome]) -> None:
    with serve([stream_reply("An angle [1].")]) as server:
        given = call(*ASKED, "--mode", "selected_text_only", "--json", **model_at(server.url))
    assert (given.code, given.json["mode"]) == (0, "selected_text_only")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("query", "Why?", "--mode", "selected_text_only"), ("--mode", "Add --selected-text")),
        ((*ASKED, "--mode", "normal"), ("--mode normal", "Remove one")),
        (("search", "Why?", "--mode", "selected_text_only"), ("query --selected-text",)),
        (("query", "Why?", "--mode", "all"), ("--mode", "normal", "selected_text_only")),
        (("search", "Why?", "--content-type", "essay"), ("content type 'essay'", "quiz")),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    call: Callable[..., Outcome], arguments: tuple[str, ...], told: tuple[str, ...]
) -> None:
    assert_one_line(call(*arguments), 2, *told)


def test_every_filter_has_options_of_the_command(
    call: Callable[..., Outcome], command: Command
) -> None:
    page = "---\ntitle: Walking\ntags: [ros]\n---\n\n# Walking\n\nThe robot moves by rule 9.\n"
    path = "module-2/2.1-walking/lab.md"
    command.book.write(path, page)
    values = {
        "--module": "module-2", "--chapter": "2.1-walking", "--type": "lab",
        "--content-type": "lab", "--tag": "ros",
    }  # fmt: skip
    assert set(values) == {flag for declared in FILTERS.values() for flag in declared.flags}
    assert call("ingest").code == 0
    asked = ("search", "robot moves by rule", "--mode", "normal", "--json")
    for flag, value in values.items():
        hits = call(*asked, flag, value).json["chunks"]
        assert [hit["metadata"]["doc_path"] for hit in hits] == [path], flag
        assert isinstance(hits[0]["metadata"]["blocks"], list)
    several = call(*asked, "--module", "module-1", "--module", "module-2").json["chunks"]
    assert {hit["metadata"]["module"] for hit in several} == {"module-1", "module-2"}


def test_a_refusal_by_the_model_names_sections_to_try(call: Callable[..., Outcome]) -> None:
    def answer(request: Received) -> Reply:
        return embed(request) if "embeddings" in request.path else stream_reply(DECLINED)

    assert call("ingest").code == 0
    with serve(answer) as server:
        told = call("query", "Which joint of the robot moves by rule 7?", **model_at(server.url))
    assert told.out.startswith(f"{DECLINED}\n\nRelated sections to try:\n- ")


def test_a_command_that_ingests_nothing_is_told_to_stop_without_a_word_of_it(
    call: Callable[..., Outcome],
) -> None:
    def stop(_: Received) -> Reply:
        os.kill(os.getpid(), signal.SIGINT)
        return HANG

    with serve(stop) as server:
        told = call(*ASKED, "--json", **model_at(server.url))
    assert (told.code, told.json["error"]["message"]) == (130, "stopped")
