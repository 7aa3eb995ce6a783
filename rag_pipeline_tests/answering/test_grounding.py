"""Whether passages suffice, and what a model is given of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_pipeline.adapters.embedders.local import PUBLISHED, TEXTBOOK, LocalEmbedder
from rag_pipeline.answering.grounding import (
    LEXICAL_RULE,
    RELATED_SECTIONS,
    apply_grounding_policy,
    choose_rule,
    find_missing_names,
    measure_signals,
    weigh_question,
)
from rag_pipeline.answering.models import Reason
from rag_pipeline.core.models import SiteSettings, TextBlock, TextBlockKind
from rag_pipeline.retrieval import QueryFilters
from rag_pipeline.retrieval.models import (
    Mode,
    Query,
    RetrievalResult,
    WordNearness,
)
from rag_pipeline.retrieval.selected_text import retrieve_selected
from rag_pipeline_tests.answering.factories import (
    SENSING,
    WALKING,
    make_chunk,
    make_evidence,
    make_result,
)

QUESTION = "How does a walking robot keep its balance with the capture point?"


def test_passages_that_cover_the_question_suffice() -> None:
    grounded = apply_grounding_policy(make_result(QUESTION, [make_chunk()]), QUESTION)
    assert grounded.sufficient_context
    assert grounded.reason is Reason.SUFFICIENT
    assert grounded.message == ""
    assert grounded.related == ()
    assert grounded.confidence is not None
    assert grounded.confidence > 0.5


def test_far_passages_are_refused_with_three_different_sections() -> None:
    question = "What is the capital of France?"
    chunks = [
        make_chunk(f"{WALKING} {n}", section=f"Section {n // 2}", cosine=0.15) for n in range(8)
    ]
    unknown = ["capital", "France"]
    grounded = apply_grounding_policy(make_result(question, chunks, unknown=unknown), question)
    assert not grounded.sufficient_context
    assert grounded.reason is Reason.NOT_COVERED
    assert "enough information" in grounded.message
    assert [entry.section for entry in grounded.related] == ["Section 0", "Section 1", "Section 2"]
    assert len(grounded.related) == RELATED_SECTIONS


def test_no_passage_is_refused() -> None:
    grounded = apply_grounding_policy(make_result(QUESTION, []), QUESTION)
    assert not grounded.sufficient_context
    assert grounded.reason is Reason.NO_PASSAGES
    assert (grounded.context, grounded.citations, grounded.related) == ("", (), ())


def test_sources_are_numbered_and_cited_in_their_order() -> None:
    chunks = [make_chunk(), make_chunk(SENSING, title="Sensors", section="IMU")]
    grounded = apply_grounding_policy(make_result(QUESTION, chunks), QUESTION)
    assert [source.number for source in grounded.sources] == [1, 2]
    assert [entry.section for entry in grounded.citations] == ["Capture point", "IMU"]
    first, second = grounded.context.index(WALKING), grounded.context.index(SENSING)
    assert first < second
    assert grounded.context.index("SOURCE 2") < second


def test_the_context_is_bounded_but_never_empty() -> None:
    chunks = [make_chunk(f"{WALKING} {n}") for n in range(9)]
    each = chunks[0].metadata.token_count
    grounded = apply_grounding_policy(
        make_result(QUESTION, chunks), QUESTION, max_context_tokens=2 * each + 1
    )
    assert len(grounded.sources) == 2
    tiny = apply_grounding_policy(make_result(QUESTION, chunks), QUESTION, max_context_tokens=1)
    assert len(tiny.sources) == 1
    assert len(tiny.citations) == 1


def test_a_widened_passage_is_given_widened() -> None:
    text = f"Before. {WALKING} Behind."
    blocks = (TextBlock(TextBlockKind.PARAGRAPH, 0, len(text)),)
    wide = replace(make_chunk(), expanded_text=text, expanded_blocks=blocks)
    grounded = apply_grounding_policy(make_result(QUESTION, [wide]), QUESTION)
    assert "Before." in grounded.context
    assert grounded.sources[0].text.endswith("Behind.")
    assert grounded.sources[0].blocks == blocks


def confidence(result: RetrievalResult) -> float:
    grounded = apply_grounding_policy(result, result.query.question)
    assert grounded.confidence is not None
    return grounded.confidence


def test_confidence_grows_with_nearness_and_with_what_the_book_knows() -> None:
    low, middle, high = (
        confidence(make_result(QUESTION, [make_chunk(cosine=cosine)])) for cosine in (0.2, 0.4, 0.6)
    )
    assert low < middle < high
    unknown = make_result(QUESTION, [make_chunk(cosine=0.4)], unknown=["walking"])
    assert confidence(unknown) < middle


def with_words(*nearness: float) -> RetrievalResult:
    """A result whose question has a word for each nearness."""
    result = make_result(QUESTION, [make_chunk(cosine=0.45)])
    assert result.evidence is not None
    words = tuple(WordNearness(f"w{at}", 5.0, near) for at, near in enumerate(nearness))
    return replace(result, evidence=replace(result.evidence, words=words))


def test_one_word_without_support_is_not_made_good_by_many_with_it() -> None:
    signals = [
        measure_signals(with_words(*nearness), QUESTION).support
        for nearness in ((0.5, 0.5, 0.5, 0.5), (0.8, 0.8, 0.8, 0.1), (0.1, 0.1, 0.1, 0.1))
    ]
    assert signals[0] == pytest.approx(0.5)
    assert signals[2] == pytest.approx(0.1)
    assert signals[2] < signals[1] < signals[0]
    assert confidence(with_words(0.7, 0.7, 0.7, 0.0)) < 0.5 < confidence(with_words(0.5, 0.5, 0.5))


def test_a_heavy_word_counts_more_than_a_light_one() -> None:
    result = with_words(0.6, 0.2)
    assert result.evidence is not None
    rare, common = result.evidence.words
    heavier = replace(result.evidence, words=(rare, replace(common, weight=9.0)))
    lighter = replace(result.evidence, words=(rare, replace(common, weight=1.0)))
    assert confidence(replace(result, evidence=heavier)) < confidence(
        replace(result, evidence=lighter)
    )


@pytest.mark.parametrize("model", [PUBLISHED, TEXTBOOK])
def test_each_local_model_has_a_rule_of_its_own(model: str) -> None:
    assert choose_rule(LocalEmbedder(model).model.fingerprint) is not LEXICAL_RULE


def test_an_unknown_embedding_model_is_judged_by_words_alone() -> None:
    assert choose_rule("openai/text-embedding-3-small/1536/8191/0") is LEXICAL_RULE
    assert choose_rule("") is LEXICAL_RULE
    for cosine in (0.05, 0.95):
        chunk = make_chunk(cosine=cosine)
        near = make_result(QUESTION, [chunk], model="openai/x/1/1/0")
        assert apply_grounding_policy(near, QUESTION).sufficient_context
        unknown = ["glue", "wooden", "chairs"]
        far = make_result(
            "Which glue holds wooden chairs?", [chunk], unknown=unknown, model="openai/x/1/1/0"
        )
        assert not apply_grounding_policy(far, far.query.question).sufficient_context


def test_a_result_made_by_hand_is_judged_by_its_passages() -> None:
    bare = RetrievalResult((make_chunk(cosine=None),), Query(QUESTION), Mode.NORMAL, 1)
    assert apply_grounding_policy(bare, QUESTION).sufficient_context
    far = "Which glue holds wooden chairs?"
    assert not apply_grounding_policy(bare, far).sufficient_context


@pytest.mark.parametrize("question", ["", "   ", "?!", "what is it", "a", "123", "special@chars!"])
def test_a_question_without_content_is_decided_all_the_same(question: str) -> None:
    grounded = apply_grounding_policy(make_result(question, [make_chunk(cosine=0.1)]), question)
    assert not grounded.sufficient_context


def test_rarer_terms_weigh_more_and_unasked_ones_nothing() -> None:
    evidence = make_evidence("balance of quadrotors", unknown=["quadrotors"])
    weights = weigh_question(evidence, "balance of quadrotors")
    assert weights["quadrotor"] > weights["balanc"]
    result = make_result("balance of quadrotors", [make_chunk()], unknown=["quadrotors"])
    signals = measure_signals(result, "balance of quadrotors")
    assert signals.cover == pytest.approx(5 / 13)
    assert weigh_question(None, "balance of balance") == {"balanc": 1.0}


@pytest.mark.parametrize(
    ("question", "unknown", "expected"),
    [
        ("How do I use OpenCV with my robot?", ["OpenCV"], ("OpenCV",)),
        ("Does it run on a Unitree robot?", ["Unitree"], ("Unitree",)),
        ("Set use_magic here", ["use_magic"], ("use_magic",)),
        ("Quokkas balance how?", ["Quokkas"], ()),  # a capital begins any sentence
        ("How do quokkas balance?", ["quokkas"], ()),  # no name
        ("How does ROS balance?", [], ()),
    ],
)
def test_names_that_the_book_never_mentions_are_told(
    question: str, unknown: list[str], expected: tuple[str, ...]
) -> None:
    assert find_missing_names(make_evidence(question, unknown), question) == expected
    result = make_result(question, [make_chunk(cosine=0.9)], unknown=unknown)
    notices = apply_grounding_policy(result, question).notices
    assert any("does not mention" in notice for notice in notices) == bool(expected)


def test_a_compound_name_is_not_missing_where_its_parts_stand() -> None:
    evidence = make_evidence("Does it run on ROS2?")
    terms = tuple(replace(entry, known=entry.term != "ros2") for entry in evidence.terms)
    assert find_missing_names(replace(evidence, terms=terms), "Does it run on ROS2?") == ()


def test_a_refusal_within_filters_says_that_they_were_set() -> None:
    query = Query("Which glue holds chairs?", filters=QueryFilters(modules=["module-9"]))
    result = make_result(query.question, [make_chunk(cosine=0.1)], query=query)
    notices = apply_grounding_policy(result, query.question).notices
    assert any("filters" in notice for notice in notices)
    unfiltered = make_result(query.question, [make_chunk(cosine=0.1)])
    assert not apply_grounding_policy(unfiltered, query.question).notices


def select(question: str, text: str) -> RetrievalResult:
    query = Query(question, Mode.SELECTED_TEXT_ONLY, selected_text=text)
    return retrieve_selected(query, 0.34, SiteSettings())


def test_a_selection_is_the_context_as_it_is() -> None:
    grounded = apply_grounding_policy(select("What is the capture point?", WALKING), "x")
    assert grounded.context == WALKING
    assert grounded.sufficient_context
    assert grounded.mode is Mode.SELECTED_TEXT_ONLY
    assert grounded.confidence is None
    assert grounded.system_instruction.startswith(
        "Answer ONLY from the following selected text. Do not use any other knowledge."
    )


def test_a_question_beside_the_selection_is_told_so_with_both_ways_on() -> None:
    question = "Which glue holds wooden chairs?"
    grounded = apply_grounding_policy(select(question, WALKING), question)
    assert not grounded.sufficient_context
    assert grounded.reason is Reason.UNRELATED_TO_SELECTION
    assert "selection" in grounded.message
    assert "whole book" in grounded.message
    assert grounded.related == ()
    assert grounded.context == WALKING


def test_a_short_selection_suffices_with_a_hint() -> None:
    grounded = apply_grounding_policy(select("What is a ZMP?", "The ZMP."), "What is a ZMP?")
    assert grounded.sufficient_context
    assert len(grounded.notices) == 1


def test_the_normal_instruction_keeps_the_contract_words() -> None:
    grounded = apply_grounding_policy(make_result(QUESTION, [make_chunk()]), QUESTION)
    assert grounded.system_instruction.startswith(
        "Answer based on the following textbook excerpts. Cite sources. If insufficient, say so."
    )
