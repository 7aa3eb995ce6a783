"""Tests of answers that a model writes, that are extracted from the book, or that are refusals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import Event, Thread
from typing import TYPE_CHECKING

import hypothesis
import pytest
from hypothesis import strategies as st

from rag_pipeline.answering import (
    Answer,
    AnswerKind,
    Level,
    Reason,
    answer,
    apply_grounding_policy,
    stream_answer,
)
from rag_pipeline.answering.grounding import MAX_CONTEXT_TOKENS
from rag_pipeline.answering.preparing import CONTEXT_DEPTH, FORM_DEPTH
from rag_pipeline.answering.voice import Voice
from rag_pipeline.answering.writing.declining import DECLINED
from rag_pipeline.core.errors import AnswerError, QueryError
from rag_pipeline.core.settings import Settings
from rag_pipeline.core.text.terms import count_tokens
from rag_pipeline.retrieval.evidence import EVIDENCE_DEPTH
from rag_pipeline.retrieval.queries import Mode, Query
from rag_pipeline_tests.adapters.test_chat_model import KEY, stream_reply
from rag_pipeline_tests.answering.factories import (
    SENSING,
    WALKING,
    FixedRetriever,
    ScriptedModel,
    make_chunk,
    make_result,
)
from rag_pipeline_tests.loopback import Reply, serve

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.retrieval.models import RetrievalResult

QUESTION = "How does a walking robot keep its balance with the capture point?"
PLACED = "It places its foot on the capture point [1]."
FAR = "Which glue holds wooden chairs?"
CHUNKS = (make_chunk(), make_chunk(SENSING, title="Sensors", section="IMU"))


def make_settings(**values: object) -> Settings:
    return Settings(_env_file=None, **values)  # type: ignore[arg-type, call-arg]  # pydantic checks them


def ask(model: ScriptedModel | None, question: str = QUESTION) -> Answer:
    """Return the answer to a question from two fixed passages."""
    retriever = FixedRetriever(CHUNKS, unknown=FAR.rstrip("?").split())
    return answer(question, retriever=retriever, chat_model=model, settings=make_settings())  # type: ignore[arg-type]  # a retriever by its shape


def test_a_model_answers_with_checked_citations() -> None:
    model = ScriptedModel(
        ["It places its foot on the ", "capture point [1", "][9]. Its gyroscope drifts. [2]"]
    )
    given = ask(model)
    assert given.kind is AnswerKind.GENERATED
    assert given.text == "It places its foot on the capture point [1]. Its gyroscope drifts. [2]"
    assert given.dropped_numbers == (9,)
    assert given.cited_numbers == (1, 2)
    assert [entry.section for entry in given.citations] == ["Capture point", "IMU"]
    assert given.model == "scripted"
    assert model.closed


def test_a_question_that_the_book_does_not_cover_is_refused_without_a_model() -> None:
    model = ScriptedModel(["Glue it."])
    chunks = (make_chunk(cosine=0.45), make_chunk(SENSING, section="IMU", cosine=0.1))
    retriever = FixedRetriever(chunks, unknown=("glue", "wooden", "chairs"))
    given = answer(FAR, retriever=retriever, chat_model=model)  # type: ignore[arg-type]  # a retriever by its shape
    assert given.kind is AnswerKind.REFUSED
    assert given.grounding.reason is Reason.NOT_COVERED
    assert model.told == []
    assert given.text == (
        "The book does not cover this.\n\nRelated sections:\n"
        "- Balance > Capture point (/docs/Capture point)"
    )
    assert [entry.section for entry in given.citations] == ["Capture point"]


def test_a_far_question_names_no_section() -> None:
    chunks = (make_chunk(cosine=0.1), make_chunk(SENSING, section="IMU", cosine=0.1))
    retriever = FixedRetriever(chunks, unknown=("glue", "wooden", "chairs"))
    given = answer(FAR, retriever=retriever, settings=make_settings())  # type: ignore[arg-type]  # a retriever by its shape
    assert (given.text, given.citations) == ("The book does not cover this.", ())


def find_uncertain() -> FixedRetriever:
    """Return a retriever whose passages may contain the answer to `QUESTION`, or may not."""
    for cosine in range(60, 0, -1):
        chunks = tuple(make_chunk(text, cosine=cosine / 100) for text in (WALKING, SENSING))
        grounded = apply_grounding_policy(make_result(QUESTION, chunks), QUESTION)
        if grounded.level is Level.CLOSEST_PASSAGES:
            return FixedRetriever(chunks)
    message = "no cosine gives the level between answered and not covered"
    raise AssertionError(message)


def test_without_a_model_a_sentence_precedes_the_closest_passages() -> None:
    with stream_answer(QUESTION, retriever=find_uncertain(), settings=make_settings()) as stream:  # type: ignore[arg-type]  # a retriever by its shape
        pieces = list(stream)
        given = stream.answer
    assert "".join(pieces) == given.text
    assert given.text.startswith(f"{Voice().say('closest')}\n\n")
    assert WALKING.split(".")[0] in given.text
    assert (given.kind, given.grounding.reason) == (AnswerKind.EXTRACTED, Reason.UNCERTAIN)
    assert not given.grounding.sufficient_context
    assert given.cited_numbers


def test_a_model_judges_the_closest_passages() -> None:
    model = ScriptedModel([PLACED])
    given = answer(QUESTION, retriever=find_uncertain(), chat_model=model)  # type: ignore[arg-type]  # a retriever by its shape
    assert (given.kind, given.text) == (
        AnswerKind.GENERATED,
        "It places its foot on the capture point [1].",
    )
    assert given.grounding.level is Level.CLOSEST_PASSAGES
    assert len(model.told) == 1


def test_a_model_gets_more_passages_joined_by_section_up_to_the_limit() -> None:
    chunks = []
    for n in range(CONTEXT_DEPTH):
        chunk = make_chunk(f"{n}: {WALKING} {n}. " + "The gait is stable. " * 60)
        metadata = replace(
            chunk.metadata,
            section_heading=f"Part {n // 2}",
            anchor=f"part-{n // 2}",
            chunk_index=n,
            token_count=count_tokens(chunk.text),
            start_byte=n * 10_000,
            end_byte=n * 10_000 + len(chunk.text),
        )
        chunks.append(replace(chunk, metadata=metadata))
    retriever, model = (
        FixedRetriever(chunks),
        ScriptedModel([PLACED]),
    )
    given = answer(Query(QUESTION, top_k=2), retriever=retriever, chat_model=model)  # type: ignore[arg-type]  # a retriever by its shape
    assert retriever.asked[0].result_count == CONTEXT_DEPTH
    sources = given.grounding.sources
    texts = [source.text for source in sources]
    assert all(text.count("A walking robot") == 2 for text in texts[:-1])
    tokens = sum(map(count_tokens, texts))
    assert MAX_CONTEXT_TOKENS * 0.8 < tokens <= MAX_CONTEXT_TOKENS


@pytest.mark.parametrize(
    "words", [DECLINED, f"  {DECLINED}\n", f"{DECLINED}.", f"{DECLINED} [1][2]"]
)
def test_a_model_that_declines_uncertain_passages_makes_the_answer_a_refusal(words: str) -> None:
    model = ScriptedModel([words])
    given = answer(QUESTION, retriever=find_uncertain(), chat_model=model)  # type: ignore[arg-type]  # a retriever by its shape
    assert given.kind is AnswerKind.REFUSED
    assert given.grounding.reason is Reason.MODEL_DECLINED
    assert not given.grounding.sufficient_context
    assert given.citations == given.grounding.related
    assert given.text.startswith("The book does not seem to answer this directly.")


def test_a_model_that_declines_does_not_overrule_the_book() -> None:
    given = ask(ScriptedModel([DECLINED]))
    assert (given.kind, given.grounding.level) == (AnswerKind.EXTRACTED, Level.ANSWERED)
    assert given.notices[-1].code == "model_declined"
    assert given.passages


def test_a_refusal_for_a_selection_names_no_related_sections() -> None:
    query = Query(FAR, Mode.SELECTED_TEXT_ONLY, selected_text=WALKING)
    model = ScriptedModel([DECLINED])
    given = answer(query, chat_model=model, settings=make_settings(), even_if_unrelated=True)
    assert given.kind is AnswerKind.REFUSED
    assert given.text.startswith("Your selection does not answer this.")
    assert "Related sections" not in given.text
    assert [entry.title for entry in given.citations] == ["Selected text"]


def test_without_a_model_the_answer_consists_of_passages_of_the_book() -> None:
    given = ask(None)
    assert given.kind is AnswerKind.EXTRACTED
    assert given.model is None
    assert given.notices[-1].code == "no_model"
    texts = {1: WALKING, 2: SENSING}
    assert all(passage.text in texts[passage.number] for passage in given.passages)
    assert given.sentences
    for sentence in given.sentences:
        assert sentence.text in texts[sentence.cited[0]]
    assert given.citations[0].section == "Capture point"


def test_the_pieces_of_a_stream_are_the_text_of_its_answer() -> None:
    retriever = FixedRetriever(CHUNKS)
    model = ScriptedModel(["It ", "places its foot on the capture point", " [8] [", "1].", "\n"])
    with stream_answer(QUESTION, retriever=retriever, chat_model=model) as stream:  # type: ignore[arg-type]  # a retriever by its shape
        assert stream.grounding.sufficient_context
        assert model.told == []
        assert "".join(stream) == stream.answer.text == PLACED


@hypothesis.given(
    st.lists(st.sampled_from([" ", "\n\n", "It", " steps", "[1", "]", "[8]", ".", "```", DECLINED]))
)
def test_the_pieces_of_any_stream_are_the_text_of_its_answer(pieces: list[str]) -> None:
    retriever, model = FixedRetriever(CHUNKS), ScriptedModel(pieces)
    with stream_answer(QUESTION, retriever=retriever, chat_model=model) as stream:  # type: ignore[arg-type]  # a retriever by its shape
        shown = list(stream)
    assert all(shown)
    assert "".join(shown) == stream.answer.text == stream.answer.text.strip()


def test_a_closed_stream_closes_the_model_and_has_no_answer() -> None:
    model = ScriptedModel(["It places its foot on the capture point [1]. ", "Two [1]. "])
    stream = stream_answer(QUESTION, retriever=FixedRetriever(CHUNKS), chat_model=model)  # type: ignore[arg-type]  # a retriever by its shape
    next(stream)
    stream.close()
    stream.close()
    assert model.closed
    with pytest.raises(AnswerError, match="ended before"):
        _ = stream.answer


def test_an_invalid_query_is_an_error_before_any_search() -> None:
    retriever = FixedRetriever(CHUNKS)
    with pytest.raises(QueryError):
        answer("  ", retriever=retriever)  # type: ignore[arg-type]  # a retriever by its shape
    assert retriever.asked == []


def test_the_settings_name_the_model_and_its_service() -> None:
    with serve([stream_reply(PLACED)]) as server:
        settings = make_settings(openai_api_key=KEY, openai_base_url=f"{server.url}/v1")
        given = answer(QUESTION, retriever=FixedRetriever(CHUNKS), settings=settings)  # type: ignore[arg-type]  # a retriever by its shape
    assert given.text == PLACED
    assert given.model == "gpt-4o-mini"
    assert WALKING in server.received[0].body["messages"][1]["content"]


def test_the_error_of_a_failing_service_does_not_contain_the_key() -> None:
    with serve([Reply(400, {"error": {"message": f"bad key {KEY}"}})]) as server:
        settings = make_settings(openai_api_key=KEY, openai_base_url=f"{server.url}/v1")
        given = answer(QUESTION, retriever=FixedRetriever(CHUNKS), settings=settings)  # type: ignore[arg-type]  # a retriever by its shape
    assert KEY not in str(given)
    assert given.notices[-1].code == "model_unavailable"


def test_leaving_a_stream_closes_the_connection_to_the_service() -> None:
    reply = stream_reply(
        "It places its foot on the capture point [1]. ", "More", finish=None, fault="stall"
    )
    with serve([reply]) as server:
        settings = make_settings(openai_api_key=KEY, openai_base_url=f"{server.url}/v1")
        retriever = FixedRetriever(CHUNKS)
        with stream_answer(QUESTION, retriever=retriever, settings=settings) as stream:  # type: ignore[arg-type]  # a retriever by its shape
            assert next(stream).startswith("It places")
        assert server.hung_up.wait(5)


def test_another_thread_can_close_a_stream_that_waits_for_its_next_piece() -> None:
    reply = stream_reply(
        "It places its foot on the capture point [1]. ", "More", finish=None, fault="stall"
    )
    begun, ended = Event(), []

    def read() -> None:
        for _ in stream:
            begun.set()
        with pytest.raises(AnswerError, match="ended before"):
            _ = stream.answer
        ended.append(True)

    with serve([reply]) as server:
        settings = make_settings(openai_api_key=KEY, openai_base_url=f"{server.url}/v1")
        stream = stream_answer(QUESTION, retriever=FixedRetriever(CHUNKS), settings=settings)  # type: ignore[arg-type]  # a retriever by its shape
        reader = Thread(target=read)
        reader.start()
        assert begun.wait(5)
        stream.close()
        assert server.hung_up.wait(5)
        reader.join(5)
    assert ended


def test_a_missing_collection_is_an_error_that_names_the_command_to_run(tmp_path: Path) -> None:
    settings = make_settings(data_dir=tmp_path, docs_dir=tmp_path / "docs")
    with pytest.raises(Exception, match="rag-pipeline ingest"):
        answer(QUESTION, settings=settings)


def test_a_question_unrelated_to_the_selection_can_be_answered_on_request() -> None:
    query = Query(FAR, Mode.SELECTED_TEXT_ONLY, selected_text=WALKING)
    settings = make_settings()
    refused = answer(query, settings=settings)
    assert refused.kind is AnswerKind.REFUSED
    assert refused.grounding.reason is Reason.UNRELATED_TO_SELECTION
    given = answer(query, settings=settings, even_if_unrelated=True)
    assert given.kind is AnswerKind.EXTRACTED
    assert given.sentences[0].text in WALKING


def test_at_least_five_passages_are_read_for_an_answer() -> None:
    retriever = FixedRetriever(CHUNKS)
    for top_k in (1, 9):
        answer(Query(QUESTION, top_k=top_k), retriever=retriever, settings=make_settings())  # type: ignore[arg-type]  # a retriever by its shape
    assert [query.result_count for query in retriever.asked] == [5, 9]


def test_a_corrected_question_is_answered_and_shown() -> None:
    @dataclass
    class Correcting(FixedRetriever):
        def retrieve(self, query: Query) -> RetrievalResult:
            found = super().retrieve(replace(query, question=QUESTION))
            return replace(found, query=query, search_question=QUESTION)

    asked = QUESTION.replace("balance", "blaance")
    model = ScriptedModel([PLACED])
    given = answer(asked, retriever=Correcting(CHUNKS), chat_model=model)  # type: ignore[arg-type]  # a retriever by its shape
    assert given.question == asked
    assert given.notices[0].data == {"question": QUESTION}
    assert asked in model.told[0][-1].content  # a model understands slips


def test_a_question_in_another_language_has_a_hint_instead_of_missing_names() -> None:
    asked = "Wie hält ein Roboter sein Gleichgewicht mit dem Capture Point?"
    retriever = FixedRetriever(CHUNKS, unknown=asked.rstrip("?").split())
    given = answer(asked, retriever=retriever, settings=make_settings())  # type: ignore[arg-type]  # a retriever by its shape
    assert given.notices[0].data == {"asked": "German", "written": "English"}
    assert not [entry for entry in given.notices if entry.code == "names_missing"]
    assert [query.question for query in retriever.asked] == [
        asked,
        "h\u00e4lt Roboter sein Gleichgewicht Capture Point",
    ]
    assert given.question == asked


@pytest.mark.parametrize(
    ("question", "depth"),
    [
        ("What is a gait?", FORM_DEPTH),
        ("Trot vs amble", FORM_DEPTH),
        ("Why is a gait stable?", EVIDENCE_DEPTH),
    ],
)
def test_without_a_model_a_question_for_a_meaning_reads_more_passages(
    question: str, depth: int
) -> None:
    retriever = FixedRetriever([make_chunk(WALKING)])
    answer(Query(question, top_k=2), retriever=retriever)  # type: ignore[arg-type]  # a retriever by its shape
    assert retriever.asked[0].result_count == depth
