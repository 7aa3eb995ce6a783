"""Selected-text mode: its isolation, its citation and its notices."""

from __future__ import annotations

import builtins
import io
import json
import os
import socket
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from rag_pipeline.adapters.embedders.bm25 import Bm25Encoder
from rag_pipeline.core.models import SiteSettings
from rag_pipeline.core.sources import Source
from rag_pipeline.core.vectors import EmbeddingModel
from rag_pipeline.retrieval import (
    Mode,
    Query,
    QueryEmptyError,
    QueryError,
    Retriever,
    RetrieverOptions,
    SelectionMissingError,
    SelectionVerdict,
)
from rag_pipeline.retrieval.selected_text import (
    POSSIBLE_NOTICE,
    SHORT_NOTICE,
    UNRELATED_NOTICE,
    retrieve_selected,
)

CASES_PATH = Path(__file__).parent / "selected_text_cases.json"
CASES = json.loads(CASES_PATH.read_text("utf-8"))
SITE = SiteSettings("/book/")
TEXT = CASES["selections"]["realtime"]["text"]


def ask(question: str, text: str | None = TEXT, **fields: str) -> Query:
    """Return a query in selected-text mode about `text`."""
    return Query(question, Mode.SELECTED_TEXT_ONLY, text, **fields)  # type: ignore[arg-type]  # the fields are strings


class _Untouchable:
    """An object that fails the test if one of its attributes is used."""

    model = EmbeddingModel("none", "none", 1, 1)
    is_exclusive = True

    def __getattr__(self, name: str) -> NoReturn:
        pytest.fail(f"selected-text mode touched {name}")


def make_isolated_retriever() -> Retriever:
    """Return a retriever whose embedder, encoder and store fail the test if they are used."""
    untouchable: Any = _Untouchable()
    return Retriever(untouchable, untouchable, untouchable, options=RetrieverOptions(site=SITE))


def test_the_selection_is_the_only_passage_and_has_score_1() -> None:
    query = ask(
        "Why is jitter worse?",
        source_doc_path="module-1/1.1-x/physical-ai-foundations.md",
        source_section="Principle 2: Real-time Operation",
    )
    result = make_isolated_retriever().retrieve(query)
    (hit,) = result.chunks
    assert (hit.text, hit.score, hit.channels) == (TEXT, 1.0, None)
    assert (result.mode, result.total_candidates, result.query) == (query.mode, 1, query)
    assert result.verdict is SelectionVerdict.ANSWERS
    assert result.notice is None
    assert hit.citation.title == "Physical ai foundations"
    assert hit.citation.section == "Principle 2: Real-time Operation"
    assert hit.citation.url == (
        "/book/docs/module-1/1.1-x/physical-ai-foundations#principle-2-real-time-operation"
    )
    assert (hit.citation.module, hit.citation.chapter) == ("module-1", "1.1-x")


@pytest.mark.parametrize(
    ("source_url", "section", "url"),
    [
        ("https://x.org/book/own-slug", "Real Time", "/book/own-slug#real-time"),
        ("/book/own-slug", "Real Time", "/book/own-slug#real-time"),
        ("/book/own-slug#", "Real Time", "/book/own-slug#real-time"),
        ("/book/own-slug#real-time-1", "Real Time", "/book/own-slug#real-time-1"),
        ("/book/own-slug#other", None, "/book/own-slug#other"),
        ("/book/own-slug", None, "/book/own-slug"),
    ],
)
def test_the_source_url_takes_precedence_over_the_url_of_the_document_path(
    source_url: str, section: str | None, url: str
) -> None:
    query = replace(
        ask("Why jitter?"),
        source_doc_path="module-1/page.md",
        source_section=section,
        source_url=source_url,
    )
    assert make_isolated_retriever().retrieve(query).chunks[0].citation.url == url


@pytest.mark.parametrize("source_url", ["javascript:alert(1)", "docs/page", "", 7])
def test_an_invalid_source_url_is_refused(source_url: str) -> None:
    with pytest.raises(QueryError, match="source_url must begin with"):
        make_isolated_retriever().retrieve(replace(ask("Why jitter?"), source_url=source_url))


@pytest.mark.parametrize("source_url", ["//evil.org/book/a", "https://evil.org/a", "/other/a"])
@pytest.mark.parametrize("mode", list(Mode))
def test_a_source_url_outside_the_site_is_refused_before_anything_is_searched(
    source_url: str, mode: Mode
) -> None:
    outside = replace(ask("Why jitter?"), source_url=source_url, mode=mode)
    with pytest.raises(QueryError, match="query 2: source_url must be an address below /book/"):
        make_isolated_retriever().retrieve_many([ask("Why jitter?"), outside])


def test_without_a_source_the_citation_has_the_title_selected_text() -> None:
    citation = make_isolated_retriever().retrieve(ask("Why jitter?")).chunks[0].citation
    assert (citation.title, citation.section, citation.url) == ("Selected text", "", "")


@pytest.mark.parametrize("path", ["../../etc/passwd", "/absolute.md", "a\\b.md", "x\n.md"])
def test_an_invalid_document_path_gives_an_empty_url(path: str) -> None:
    hit = make_isolated_retriever().retrieve(ask("Why jitter?", source_doc_path=path)).chunks[0]
    assert hit.citation.url == ""


def test_an_index_page_has_its_folder_name_as_title() -> None:
    query = ask("Why jitter?", source_doc_path="module-1/1.1-physical-ai/index.md")
    citation = make_isolated_retriever().retrieve(query).chunks[0].citation
    assert citation.title == "1.1 physical ai"
    assert citation.url == "/book/docs/module-1/1.1-physical-ai/"


@pytest.mark.parametrize("text", [None, "", " \n "])
def test_a_missing_selection_is_a_value_error(text: str | None) -> None:
    with pytest.raises(SelectionMissingError) as caught:
        make_isolated_retriever().retrieve(ask("What is this?", text))
    assert isinstance(caught.value, ValueError)
    assert caught.value.http_status == 400


def test_a_question_with_one_common_word_has_a_notice_that_offers_the_whole_book() -> None:
    result = make_isolated_retriever().retrieve(ask("Which controller steers a bicycle downhill?"))
    assert result.verdict is SelectionVerdict.MAY_NOT_ANSWER
    assert result.notice == POSSIBLE_NOTICE
    assert "whole book" in POSSIBLE_NOTICE


@pytest.mark.parametrize(
    ("selection", "passage"),
    [
        ("\n  Jitter is bad.  \n", "Jitter is bad."),
        ("\n    a = 1\n    b = 2\n", "    a = 1\n    b = 2"),
        ("        a = 1\n    b = 2", "a = 1\n    b = 2"),
        ("\ta = 1\n\tb = 2", "\ta = 1\n\tb = 2"),
    ],
)
def test_a_passage_keeps_the_indentation_that_its_lines_share(selection: str, passage: str) -> None:
    assert make_isolated_retriever().retrieve(ask("Why?", selection)).chunks[0].text == passage


def test_an_empty_question_is_an_error_in_selected_text_mode() -> None:
    with pytest.raises(QueryEmptyError):
        make_isolated_retriever().retrieve(ask(" "))


def test_a_short_selection_has_a_notice() -> None:
    result = make_isolated_retriever().retrieve(
        ask("What is jitter?", "Jitter: spread of latency.")
    )
    assert len(result.chunks) == 1
    assert result.verdict is SelectionVerdict.ANSWERS
    assert result.notice == SHORT_NOTICE


@pytest.mark.parametrize(
    "text", ["机器人用两条腿走路并保持平衡\uff0c而且它还会跑步", "หุ่นยนต์เดินด้วยสองขาและรักษาสมดุล"]
)
def test_a_long_text_in_a_script_without_spaces_does_not_count_as_short(text: str) -> None:
    assert make_isolated_retriever().retrieve(ask("Explain", text)).notice is None
    assert make_isolated_retriever().retrieve(ask("Explain", text[:8])).notice == SHORT_NOTICE


def test_an_unrelated_question_has_a_notice_to_ask_the_whole_book() -> None:
    result = make_isolated_retriever().retrieve(ask("What is the capital of France?"))
    assert result.verdict is SelectionVerdict.UNRELATED
    assert result.notice == UNRELATED_NOTICE
    assert "whole book" in UNRELATED_NOTICE
    assert [hit.text for hit in result.chunks] == [TEXT]


def test_full_width_letters_of_a_question_become_plain_ones() -> None:
    query = Query("Ｗｈａｔ is ＲＯＳ２？", selected_text="Ｒ")  # noqa: RUF001
    assert (query.question, query.selected_text) == ("What is ROS2？", "Ｒ")  # noqa: RUF001


def test_invisible_characters_of_a_question_do_not_count() -> None:
    question = "\ufeffwhat\x00is\x1f a ge\u00adar\u200b\u202c?\n"
    assert Query(question).question == "what is  a gear?\n"
    assert Query("a\u200cb\u200d").question == "a\u200cb\u200d"


def test_unpaired_surrogates_in_a_query_become_question_marks() -> None:
    query = ask(
        "What is \udc80 this?",
        "A gear \ud83d turns.",
        source_doc_path="a\ud800.md",
        source_section="Gears \ud83d",
    )
    on_page = replace(query, source_url="/book/gears\ud800")
    for asked in (query, on_page):
        result = make_isolated_retriever().retrieve(asked)
        assert result.chunks[0].text == "A gear ? turns."
        assert json.dumps(asdict(result), ensure_ascii=False).encode()


def test_instructions_in_the_selection_stay_part_of_its_text() -> None:
    text = CASES["selections"]["inject"]["text"]
    result = make_isolated_retriever().retrieve(ask("How far apart are nested loops?", text))
    assert result.mode is Mode.SELECTED_TEXT_ONLY
    assert [hit.text for hit in result.chunks] == [text]


def test_ten_queries_use_no_store_and_no_embedder() -> None:
    retriever = make_isolated_retriever()
    for number in range(10):
        text = f"{TEXT} Number {number}."
        assert retriever.retrieve(ask("Why jitter?", text)).chunks[0].text == text


def test_no_file_is_opened_and_no_socket_is_created(monkeypatch: pytest.MonkeyPatch) -> None:
    retriever = make_isolated_retriever()

    def deny(*arguments: object, **named: object) -> NoReturn:
        pytest.fail(f"opened {arguments} {named}")

    with monkeypatch.context() as patched:
        for owner, name in (
            (builtins, "open"),
            (io, "open"),
            (os, "open"),
            (socket, "socket"),
            (socket, "create_connection"),
            (socket, "getaddrinfo"),
        ):
            patched.setattr(owner, name, deny)
        result = retriever.retrieve(
            ask("Why jitter?", source_doc_path="module-1/a.md", source_section="Real time")
        )
    assert result.chunks[0].text == TEXT


def test_queries_in_one_mode_do_not_affect_the_other_mode(retriever: Retriever) -> None:
    normal = Query("How can a hand pick up an egg?")
    before = retriever.retrieve(normal)
    selected = retriever.retrieve(ask("Why jitter?"))
    mixed = retriever.retrieve_many([ask("Why jitter?"), normal, ask("Explain.", "One. Two.")])
    assert [hit.text for hit in selected.chunks] == [TEXT]
    assert mixed[0] == selected
    assert mixed[1] == before == retriever.retrieve(normal)
    assert [hit.text for hit in mixed[2].chunks] == ["One. Two."]


def test_top_k_has_no_effect_in_selected_text_mode() -> None:
    query = replace(ask("Why jitter?"), top_k=7)
    assert len(make_isolated_retriever().retrieve(query).chunks) == 1


def test_default_options_are_enough_for_selected_text_mode() -> None:
    untouchable: Any = _Untouchable()
    assert Retriever(untouchable, Bm25Encoder(), untouchable).retrieve(ask("Why jitter?")).chunks


DOCS = Source(name="docs", folder=Path("docs"), prefix="", route_base_path="docs")
CURRENT = replace(DOCS, route_base_path="docs/next", version="current", version_label="Next")
RELEASED = replace(DOCS, prefix="versioned_docs/version-2.0/", version="2.0")
SOURCES = (
    replace(CURRENT, is_latest=False),
    RELEASED,
    replace(RELEASED, prefix="i18n/fr/docs/", base_url="fr/", locale="fr", is_default_locale=False),
    replace(DOCS, name="api", prefix="api/", route_base_path="reference", number_prefixes=False),
)


@pytest.mark.parametrize(
    ("fields", "version", "locale", "url"),
    [
        ({"source_url": "/book/docs/next/a"}, "Next", "", "/book/docs/next/a"),
        ({"source_url": "/book/docs/a#b"}, "", "", "/book/docs/a#b"),
        ({"source_url": "/book/fr/docs/a"}, "", "fr", "/book/fr/docs/a"),
        ({"source_url": "/book/other"}, "", "", "/book/other"),
        ({"source_doc_path": "a/01-b.md"}, "Next", "", "/book/docs/next/a/b"),
        ({"source_doc_path": "versioned_docs/version-2.0/a.md"}, "", "", "/book/docs/a"),
        ({"source_doc_path": "i18n/fr/docs/a.md"}, "", "fr", "/book/fr/docs/a"),
        ({"source_doc_path": "api/01-a.md"}, "", "", "/book/reference/01-a"),
    ],
)
def test_the_citation_names_version_and_language_of_the_page(
    fields: dict[str, str], version: str, locale: str, url: str
) -> None:
    (hit,) = retrieve_selected(ask("Where?", **fields), 0.3, SITE, sources=SOURCES).chunks
    found = hit.citation
    assert (found.version, found.locale, found.url) == (version, locale, url)
    assert (hit.metadata.is_latest, hit.metadata.is_default_locale) == (not version, not locale)
