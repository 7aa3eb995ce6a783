"""Selected-text mode: isolation shown, relatedness measured on cases from the book's own pages."""

from __future__ import annotations

import builtins
import io
import json
import os
import socket
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from rag_pipeline.adapters.embedders.bm25 import Bm25Encoder
from rag_pipeline.adapters.embedders.local import LocalEmbedder
from rag_pipeline.core.models import SiteSettings
from rag_pipeline.core.settings import Settings
from rag_pipeline.core.vectors import EmbeddingModel
from rag_pipeline.retrieval import (
    Mode,
    Query,
    QueryEmptyError,
    QueryError,
    Retriever,
    RetrieverOptions,
    SelectionMissingError,
)
from rag_pipeline.retrieval.selected_text import (
    SHORT_NOTICE,
    UNRELATED_NOTICE,
    measure_relatedness,
    retrieve_selected,
)

if TYPE_CHECKING:
    from rag_pipeline.core.protocols.embedding import Embedder

CASES_PATH = Path(__file__).parent / "selected_text_cases.json"
CASES = json.loads(CASES_PATH.read_text("utf-8"))
THRESHOLD = Settings.model_fields["selected_text_threshold"].default
SITE = SiteSettings("/book/")
TEXT = CASES["selections"]["realtime"]["text"]


def ask(question: str, text: str | None = TEXT, **fields: str) -> Query:
    return Query(question, Mode.SELECTED_TEXT_ONLY, text, **fields)  # type: ignore[arg-type]  # texts


class _Untouchable:
    """Fails whenever anything of it is used."""

    model = EmbeddingModel("none", "none", 1, 1)
    is_exclusive = True

    def __getattr__(self, name: str) -> NoReturn:
        pytest.fail(f"selected-text mode touched {name}")


def make_isolated_retriever() -> Retriever:
    untouchable: Any = _Untouchable()
    return Retriever(untouchable, untouchable, untouchable, options=RetrieverOptions(site=SITE))


def test_the_selection_is_the_one_passage_with_score_one() -> None:
    query = ask(
        "Why is jitter worse?",
        source_doc_path="module-1/1.1-x/physical-ai-foundations.md",
        source_section="Principle 2: Real-time Operation",
    )
    result = make_isolated_retriever().retrieve(query)
    (hit,) = result.chunks
    assert (hit.text, hit.score, hit.channels) == (TEXT, 1.0, None)
    assert (result.mode, result.total_candidates, result.query) == (query.mode, 1, query)
    assert result.related
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
        ("https://x.org/docs/own-slug", "Real Time", "https://x.org/docs/own-slug#real-time"),
        ("/docs/own-slug#other", "Real Time", "/docs/own-slug#real-time"),
        ("/docs/own-slug#other", None, "/docs/own-slug#other"),
        ("/docs/own-slug", None, "/docs/own-slug"),
    ],
)
def test_the_callers_address_is_cited_before_that_of_the_path(
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
def test_an_address_that_is_none_is_refused(source_url: str) -> None:
    with pytest.raises(QueryError, match="source_url must begin with"):
        make_isolated_retriever().retrieve(replace(ask("Why jitter?"), source_url=source_url))


def test_without_a_source_the_citation_names_the_selection() -> None:
    citation = make_isolated_retriever().retrieve(ask("Why jitter?")).chunks[0].citation
    assert (citation.title, citation.section, citation.url) == ("Selected text", "", "")


@pytest.mark.parametrize("path", ["../../etc/passwd", "/absolute.md", "a\\b.md", "x\n.md"])
def test_a_source_that_is_no_document_gets_no_address(path: str) -> None:
    hit = make_isolated_retriever().retrieve(ask("Why jitter?", source_doc_path=path)).chunks[0]
    assert hit.citation.url == ""


def test_an_index_page_is_named_by_its_folder() -> None:
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


def test_an_empty_question_is_an_error_here_too() -> None:
    with pytest.raises(QueryEmptyError):
        make_isolated_retriever().retrieve(ask(" "))


def test_a_short_selection_is_answered_with_a_hint() -> None:
    result = make_isolated_retriever().retrieve(
        ask("What is jitter?", "Jitter: spread of latency.")
    )
    assert len(result.chunks) == 1
    assert result.related
    assert result.notice == SHORT_NOTICE


@pytest.mark.parametrize(
    "text", ["机器人用两条腿走路并保持平衡\uff0c而且它还会跑步", "หุ่นยนต์เดินด้วยสองขาและรักษาสมดุล"]
)
def test_a_text_without_spaces_is_not_short_for_its_lack_of_them(text: str) -> None:
    assert make_isolated_retriever().retrieve(ask("Explain", text)).notice is None
    assert make_isolated_retriever().retrieve(ask("Explain", text[:8])).notice == SHORT_NOTICE


def test_an_unrelated_question_is_told_so_and_offered_the_whole_book() -> None:
    result = make_isolated_retriever().retrieve(ask("What is the capital of France?"))
    assert not result.related
    assert result.notice == UNRELATED_NOTICE
    assert "whole book" in UNRELATED_NOTICE
    assert [hit.text for hit in result.chunks] == [TEXT]


@cache
def load_embedder() -> LocalEmbedder:
    return LocalEmbedder()


@pytest.mark.parametrize(
    ("embedder", "most_missed", "most_passed"), [(None, 2, 1), ("local", 0, 1)]
)
def test_relatedness_is_told_on_cases_from_the_book(
    embedder: str | None, most_missed: int, most_passed: int
) -> None:
    chosen: Embedder | None = load_embedder() if embedder else None
    missed, passed = [], []
    for case in CASES["cases"]:
        text = CASES["selections"][case["selection"]]["text"]
        query = ask(case["question"], text)
        result = retrieve_selected(query, THRESHOLD, SITE, chosen)
        assert result.chunks[0].text == text
        if result.related != case["related"]:
            (missed if case["related"] else passed).append(case["id"])
    assert len(CASES["cases"]) >= 40
    assert len(missed) <= most_missed, missed
    assert len(passed) <= most_passed, passed


@pytest.mark.parametrize(
    "question",
    [
        "Explain this code line by line",
        "what does this mean?",
        "Summarize",
        "Can you simplify it please?",
        "TL;DR?",
        "Why?",
        "What does this loop do?",
        "What does this class return?",
        "Which type is this variable?",
        "Is there a bug here?",
    ],
)
def test_a_question_that_only_points_is_about_the_selection(question: str) -> None:
    assert measure_relatedness(question, "Nodes talk over topics.") == 1.0


@pytest.mark.parametrize(
    ("question", "selection", "related"),
    [
        ("凝乳酶是什么", "凝乳酶是一种使牛奶凝固的酶。", True),
        ("飞机怎么起飞", "凝乳酶是一种使牛奶凝固的酶。", False),
        ("レンネットとは何ですか", "レンネットは牛乳を凝固させる酵素です。", True),
        ("پنیر کے لیے کون سا دودھ؟", "گائے اور بھینس کا دودھ پنیر کے لیے مختلف ہیں", True),
        ("جہاز کیسے اڑتا ہے", "گائے اور بھینس کا دودھ پنیر کے لیے مختلف ہیں", False),
        ("اس کی وضاحت کریں", TEXT, True),  # words of two scripts cannot be compared
        ("jitter کیا ہے؟", TEXT, True),
        ("GPS کیا ہے؟", TEXT, False),
        ("How does it fly?", "42", False),
    ],
)
def test_scripts_without_spaces_and_two_scripts_are_judged_by_what_can_be_compared(
    question: str, selection: str, *, related: bool
) -> None:
    result = make_isolated_retriever().retrieve(ask(question, selection))
    assert result.related is related


def test_halves_of_surrogate_pairs_in_a_query_become_question_marks() -> None:
    query = ask(
        "What is \udc80 this?",
        "A gear \ud83d turns.",
        source_doc_path="a\ud800.md",
        source_section="Gears \ud83d",
    )
    on_page = replace(query, source_url="/gears\ud800")
    for asked in (query, on_page):
        result = make_isolated_retriever().retrieve(asked)
        assert result.chunks[0].text == "A gear ? turns."
        assert json.dumps(asdict(result), ensure_ascii=False).encode()


def test_instructions_in_the_selection_stay_part_of_its_text() -> None:
    text = CASES["selections"]["inject"]["text"]
    result = make_isolated_retriever().retrieve(ask("How far apart are nested loops?", text))
    assert result.mode is Mode.SELECTED_TEXT_ONLY
    assert [hit.text for hit in result.chunks] == [text]


def test_ten_queries_touch_no_store_and_no_embedder() -> None:
    retriever = make_isolated_retriever()
    for number in range(10):
        text = f"{TEXT} Number {number}."
        assert retriever.retrieve(ask("Why jitter?", text)).chunks[0].text == text


def test_no_file_is_opened_and_no_socket_made(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_modes_leave_nothing_behind(retriever: Retriever) -> None:
    normal = Query("How can a hand pick up an egg?")
    before = retriever.retrieve(normal)
    selected = retriever.retrieve(ask("Why jitter?"))
    mixed = retriever.retrieve_many([ask("Why jitter?"), normal, ask("Explain.", "One. Two.")])
    assert [hit.text for hit in selected.chunks] == [TEXT]
    assert mixed[0] == selected
    assert mixed[1] == before == retriever.retrieve(normal)
    assert [hit.text for hit in mixed[2].chunks] == ["One. Two."]


def test_an_injected_embedder_counts_meaning_besides_words() -> None:
    question = "Why can no tuning cure a lag that keeps changing?"
    assert measure_relatedness(question, TEXT) < THRESHOLD
    assert measure_relatedness(question, TEXT, load_embedder()) > THRESHOLD


def test_filters_and_counts_are_checked_but_not_applied() -> None:
    query = replace(ask("Why jitter?"), top_k=7)
    assert len(make_isolated_retriever().retrieve(query).chunks) == 1


def test_the_encoder_is_not_needed() -> None:
    untouchable: Any = _Untouchable()
    assert Retriever(untouchable, Bm25Encoder(), untouchable).retrieve(ask("Why jitter?")).chunks
