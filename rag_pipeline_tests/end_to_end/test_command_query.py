"""Tests of `rag-pipeline query` with a model on 127.0.0.1, mostly about a selected text."""

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
QUOTES = "Put an argument with spaces in quotes"
HIDDEN = "sk-secret-0123456789abcdef"
UNRELATED = ("query", "Which glue holds wooden chairs?", "--selected-text", SELECTION)


def model_at(url: str) -> dict[str, str]:
    """Return settings for an answer model at a URL."""
    return {"OPENAI_BASE_URL": f"{url}/v1", "ANSWER_MODEL": "m"}


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_an_answer_is_printed_in_utf8_whatever_the_encoding_of_the_terminal(
    call: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    with serve([stream_reply("An angle \u2192 a joint \ud83d", "\ude00 [1].")]) as server:
        assert call(*ASKED, **model_at(server.url)).code == 0
    assert (
        written.getvalue().decode().startswith("An angle \u2192 a joint \U0001f600 [1].\nSources:")
    )


def test_a_question_is_answered_from_the_book_if_the_model_cannot_be_reached(
    call: Callable[..., Outcome],
) -> None:
    with serve([Reply(401, fault="cut")]) as server:
        told = call(*ASKED, "--json", **model_at(server.url), ANSWER_TIMEOUT_S="1")
    assert (told.code, told.json["kind"], told.json["model"]) == (0, "extracted", None)
    assert told.json["passages"]
    notice = told.json["notices"][-1]
    assert (notice["code"], notice["data"]) == (
        "model_unavailable",
        {"error": "ANSWER_SERVICE_UNAVAILABLE"},
    )


def test_a_rejected_key_gives_quotes_and_one_line_that_names_its_setting(command: Command) -> None:
    settings = {"OPENAI_API_KEY": HIDDEN, "ANSWER_MODEL": "m"}
    with serve([Reply(401, {"error": {"message": f"wrong key {HIDDEN}"}})]) as server:
        told = command.run(*ASKED, "--json", **settings, OPENAI_BASE_URL=f"{server.url}/v1")
    notice = told.json["notices"][-1]
    assert (told.code, notice["code"]) == (0, "model_unavailable")
    assert notice["data"] == {"error": "CONFIGURATION_ERROR"}
    assert told.json["passages"]
    [line] = told.err.splitlines()
    assert line.startswith("rag-pipeline: ")
    assert "OPENAI_API_KEY: " in line
    assert HIDDEN not in told.out + told.err


def test_a_question_unrelated_to_the_selection_is_answered_only_on_request(
    call: Callable[..., Outcome],
) -> None:
    with serve([stream_reply("A servo holds its joint [1].")]) as server:
        refused = call(*UNRELATED, "--json", **model_at(server.url))
        assert refused.json["reason"] == "unrelated_to_selection"
        given = call(*UNRELATED, "--even-if-unrelated", "--json", **model_at(server.url))
    assert (given.json["kind"], given.json["answer"]) == (
        "generated",
        "A servo holds its joint [1].",
    )


@pytest.mark.parametrize("asked", ["search", "query"])
def test_a_filter_value_that_no_page_has_is_named_with_the_nearest(
    call: Callable[..., Outcome], asked: str
) -> None:
    call("ingest")
    filters = ("--doc-path", "./intro.mdx", "--module", "modul-1", "--module", "module-1")
    told = call(asked, "robots", *filters)
    assert told.code == 0
    assert told.err.splitlines() == [
        "rag-pipeline: --doc-path ./intro.mdx: no page has this value. Did you mean intro.md?",
        "rag-pipeline: --module modul-1: no page has this value. Did you mean module-1?",
    ]


@pytest.mark.parametrize(
    ("arguments", "message", "helped"),
    [
        (["query", "How", "tall"], f"Got unexpected extra argument (tall). {QUOTES}.", " query"),
        (["ingest", "--quickly"], "No such option: --quickly.", " ingest"),
        (["serach"], "No such command 'serach'. Did you mean 'search'?", ""),
    ],
)
def test_wrong_usage_names_the_help_of_the_command(
    call: Callable[..., Outcome], arguments: list[str], message: str, helped: str
) -> None:
    told = call(*arguments)
    line = f"rag-pipeline: {message} See `rag-pipeline{helped} --help`\n"
    assert (told.code, told.err) == (2, line)


def test_the_option_even_if_unrelated_needs_a_selection(call: Callable[..., Outcome]) -> None:
    told = call("query", "What holds a servo?", "--even-if-unrelated")
    assert_one_line(told, 2, "--even-if-unrelated", "--selected-text")


def test_the_mode_of_a_selection_may_also_be_named(call: Callable[..., Outcome]) -> None:
    with serve([stream_reply("An angle [1].")]) as server:
        given = call(*ASKED, "--mode", "selected_text_only", "--json", **model_at(server.url))
    assert (given.code, given.json["mode"]) == (0, "selected_text_only")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("query", "Why?", "--mode", "selected_text_only"), ("--mode", "Add --selected-text")),
        ((*ASKED, "--mode", "normal"), ("--mode normal", "Remove one")),
        (("query", "Why?", "--mode", "all"), ("--mode", "normal", "selected_text_only")),
        (("search", "Why?", "--content-type", "essay"), ("content type 'essay'", "quiz")),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    call: Callable[..., Outcome], arguments: tuple[str, ...], told: tuple[str, ...]
) -> None:
    assert_one_line(call(*arguments), 2, *told)


def test_every_filter_has_options_on_the_command_line(
    call: Callable[..., Outcome], command: Command
) -> None:
    page = "---\ntitle: Walking\ntags: [ros]\n---\n\n# Walking\n\nThe robot moves by rule 9.\n"
    path = "module-2/2.1-walking/lab.md"
    command.book.write(path, page)
    values = {
        "--module": "module-2", "--chapter": "2.1-walking", "--type": "lab",
        "--content-type": "lab", "--tag": "ros", "--doc-path": path,
    }  # fmt: skip
    of_other_sites = {"--source", "--version", "--locale"}
    flags = {flag for declared in FILTERS.values() for flag in declared.flags}
    assert {*values, *of_other_sites} == flags
    assert call("ingest").code == 0
    asked = ("search", "robot moves by rule", "--json")
    for flag, value in values.items():
        hits = call(*asked, flag, value).json["chunks"]
        assert [hit["metadata"]["doc_path"] for hit in hits] == [path], flag
        assert isinstance(hits[0]["metadata"]["blocks"], list)
    for flag in sorted(of_other_sites):
        assert call(*asked, flag, "none").json["chunks"] == [], flag
        assert call(*asked, flag, "*").json["chunks"], flag
    several = call(*asked, "--module", "module-1", "--module", "module-2").json["chunks"]
    assert {hit["metadata"]["module"] for hit in several} == {"module-1", "module-2"}


def test_the_passages_are_quoted_if_the_model_declines(call: Callable[..., Outcome]) -> None:
    asked = ("query", "Which joint of the robot moves by rule 7?")
    assert call("ingest").code == 0
    with serve(embed_or_write(DECLINED)) as server:
        told = call(*asked, **model_at(server.url))
        record = call(*asked, "--json", **model_at(server.url)).json
    assert (record["kind"], record["level"]) == ("extracted", "answered")
    [notice] = record["notices"]
    assert notice["code"] == "model_declined"
    assert told.out.startswith(f"{notice['text']}\n\n")
    assert "The joint of robot 63 moves by rule 45." in told.out
    assert "The joint of robot 63 moves by rule 45." in record["passages"][0]["text"]


def test_what_a_model_invents_is_left_out_and_noted_below_its_answer(
    call: Callable[..., Outcome],
) -> None:
    written = "The joint of robot 63 moves by rule 45 [1]. Rule 4711 is in OpenJoint [1][99]."
    asked = ("query", "Which joint of the robot moves by rule 7?")
    assert call("ingest").code == 0
    with serve(embed_or_write(written)) as server:
        told = call(*asked, **model_at(server.url))
        record = call(*asked, "--json", **model_at(server.url)).json
    assert told.out.startswith("The joint of robot 63 moves by rule 45 [1].\nSources:\n")
    assert "4711" not in told.out
    dropped = {notice["code"]: notice for notice in record["notices"]}["sentences_dropped"]
    assert dropped["data"]["count"] == 1
    assert "4711" in dropped["data"]["sentences"][0]
    assert f"Note: {dropped['text']}" in told.out
    assert (record["kind"], record["level"]) == ("generated", "answered")
    assert 0.5 <= record["explanation"]["confidence"] <= 1
    assert [source["number"] for source in record["sources"]][:1] == [1]
    sections = [
        (source["citation"]["title"], source["citation"]["section"]) for source in record["sources"]
    ]
    assert len(set(sections)) == len(sections)


def test_a_model_that_writes_the_same_for_every_question_is_not_recommended(
    call: Callable[..., Outcome],
) -> None:
    assert call("ingest").code == 0
    with serve(embed_or_write("Rule 4711 is in OpenJoint [1].")) as server:
        told = call("check-model", **model_at(server.url))
        record = call("check-model", "--json", **model_at(server.url))
    assert (told.code, record.code) == (1, 1)
    assert record.json["is_useful"] is False


def embed_or_write(text: str) -> Callable[[Received], Reply]:
    """Return the plan of a server that embeds texts, and whose chat model writes `text`."""
    return lambda request: embed(request) if "embeddings" in request.path else stream_reply(text)


def test_a_greeting_gets_a_reply_without_a_book_or_a_service(call: Callable[..., Outcome]) -> None:
    told = call("query", "Hello!", OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    assert (told.code, told.out) == (
        0,
        "Hello. Ask me anything about this book, or select a passage and ask about it.\n",
    )
    record = call("query", "thanks", "--json").json
    assert (record["kind"], record["reason"], record["level"]) == (
        "reply",
        "small_talk",
        "no_question",
    )
    assert (record["chunks"], record["explanation"]["confidence"]) == ([], None)
    assert record["explanation"]["signals"] is None


def test_a_misspelled_question_is_searched_by_its_correction(call: Callable[..., Outcome]) -> None:
    assert call("ingest").code == 0
    asked = "What is the jiont of the robto?"
    corrected = "What is the joint of the robot?"
    found = call("search", asked)
    assert f'Note: Showing results for "{corrected}".' in found.out
    assert call("search", asked, "--json").json["search_question"] == corrected

    def answer(request: Received) -> Reply:
        return embed(request) if "embeddings" in request.path else stream_reply("A joint [1].")

    with serve(answer) as server:
        record = call("query", asked, "--json", **model_at(server.url)).json
        explained = call("query", asked, "--explain", **model_at(server.url)).out
    found = record["explanation"]
    assert (record["question"], found["search_question"]) == (asked, corrected)
    notice = record["notices"][0]
    assert (notice["code"], notice["data"]) == ("search_changed", {"question": corrected})
    assert notice["text"] == f'Showing results for "{corrected}".'
    assert found["question_kind"] == "other"
    assert found["signals"]["known"] == 1.0
    assert 0 < found["confidence"] <= 1
    assert "Why this answer:\nquestion kind" in explained
    assert f"searched for   {corrected}\n" in explained
    assert "confidence" in explained
    assert "Passages that were read:\n  1. " in explained


def test_an_answer_from_a_selection_is_explained_without_scores(
    call: Callable[..., Outcome],
) -> None:
    asked = ("query", "What is a servo?", *ASKED[2:], "--explain")
    with serve([stream_reply("An angle [1].")]) as server:
        explained = call(*asked, **model_at(server.url)).out
    assert "question kind  definition: servo\n" in explained
    assert "confidence" not in explained


def test_an_interrupted_query_reports_only_that_it_stopped(
    call: Callable[..., Outcome],
) -> None:
    def stop(_: Received) -> Reply:
        os.kill(os.getpid(), signal.SIGINT)
        return HANG

    with serve(stop) as server:
        told = call(*ASKED, "--json", **model_at(server.url))
    assert (told.code, told.json["error"]["message"]) == (130, "stopped")
