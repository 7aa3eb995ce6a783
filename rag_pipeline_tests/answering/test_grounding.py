"""Tests of the decision whether passages suffice, and of the sources that a model gets."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.embedders.local import PUBLISHED, TEXTBOOK, LocalEmbedder
from rag_pipeline.answering.confidence import (
    LEXICAL_RULE,
    NO_EVIDENCE,
    choose_level,
    choose_rule,
    measure_signals,
    weigh_question,
)
from rag_pipeline.answering.grounding import (
    RELATED_SECTIONS,
    apply_grounding_policy,
    find_missing_names,
)
from rag_pipeline.answering.models import Level, Reason
from rag_pipeline.answering.voice import Voice
from rag_pipeline.core.models import SiteSettings, TextBlock, TextBlockKind
from rag_pipeline.core.text.terms import extract_words
from rag_pipeline.retrieval import QueryFilters
from rag_pipeline.retrieval.models import RetrievalResult, WordNearness
from rag_pipeline.retrieval.queries import Mode, Query
from rag_pipeline.retrieval.selected_text import retrieve_selected
from rag_pipeline_tests.answering.factories import (
    SENSING,
    WALKING,
    make_chunk,
    make_evidence,
    make_result,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.answering.models import GroundedResponse

QUESTION = "How does a walking robot keep its balance with the capture point?"


def test_passages_that_cover_the_question_suffice() -> None:
    grounded = apply_grounding_policy(make_result(QUESTION, [make_chunk()]), QUESTION)
    assert grounded.sufficient_context
    assert grounded.reason is Reason.SUFFICIENT
    assert grounded.message == ""
    assert grounded.confidence is not None
    assert grounded.confidence > 0.5


def ground(cosine: float, unknown: Sequence[str] = ()) -> GroundedResponse:
    """Return the decision about `QUESTION` and one passage of the given similarity."""
    chunk = make_chunk("It walks and balances.", section="Gait", cosine=cosine)
    result = make_result(QUESTION, [chunk], unknown=unknown)
    return apply_grounding_policy(result, QUESTION)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Where must nobody stand?", "Nobody may stand here; nobody must."),
        ("What does error 409 mean?", "- `409`: Another program holds the arm"),
        ("What is armId for?", "- `armId` (path): Serial number"),
    ],
)
def test_a_passage_with_the_words_of_a_question_is_never_hidden(question: str, text: str) -> None:
    chunk = make_chunk(text, section="Other", cosine=0.1)
    grounded = apply_grounding_policy(make_result(question, [chunk]), question)
    assert grounded.level is Level.CLOSEST_PASSAGES


def test_an_unrelated_passage_with_a_part_of_the_words_of_a_question_is_hidden() -> None:
    question = "How tall is the golden cup of the world champions?"
    text = "Put the tall golden cup where the camera sees the world."
    for cosine, level in ((0.1, Level.NOT_COVERED), (0.34, Level.CLOSEST_PASSAGES)):
        chunk = make_chunk(text, section="Other", cosine=cosine)
        result = make_result(question, [chunk])
        assert apply_grounding_policy(result, question).level is level


def test_the_three_levels_follow_from_the_confidence() -> None:
    grounded = [ground(cosine / 100) for cosine in range(101)]
    assert list(dict.fromkeys(entry.level for entry in grounded)) == [
        Level.NOT_COVERED,
        Level.CLOSEST_PASSAGES,
        Level.ANSWERED,
    ]
    assert all(entry.level is choose_level(entry.confidence or 0.0) for entry in grounded)
    expected = {
        Level.NOT_COVERED: (Reason.NOT_COVERED, "The book does not cover this."),
        Level.CLOSEST_PASSAGES: (
            Reason.UNCERTAIN,
            "The book does not seem to answer this directly. The closest passages are:",
        ),
        Level.ANSWERED: (Reason.SUFFICIENT, ""),
    }
    for entry in grounded:
        assert (entry.reason, entry.message) == expected[entry.level]
        assert entry.sufficient_context == (entry.level is Level.ANSWERED)
        assert entry.sources


def test_a_term_that_passages_only_mention_is_said_to_be_mentioned() -> None:
    chunks = [make_chunk("A robot uses a cane.", cosine=cosine / 100) for cosine in range(101)]
    for question, code in (("what is a cane", "mentioned"), ("why use a cane", "closest")):
        grounded = [
            apply_grounding_policy(make_result(question, [chunk]), question) for chunk in chunks
        ]
        closest = {one.message for one in grounded if one.level is Level.CLOSEST_PASSAGES}
        assert closest == {Voice().say(code)}


@pytest.mark.parametrize(
    ("question", "text", "is_defined"),
    [
        ("what is pnpr", "**pnpr** is a registry server.", True),
        ("what is pnpr", "It is quick. A pnpr (server) means less waiting.", True),
        ("what is pnpr", "Here pnpr is quick.", False),
        ("what is a node", "The node is the second in the list.", False),
        ("how is pnpr started", "pnpr is a registry server.", False),
    ],
)
def test_a_far_passage_that_says_what_the_asked_term_is_answers(
    question: str, text: str, *, is_defined: bool
) -> None:
    result = make_result(question, [make_chunk(text, cosine=0.05)])
    level = apply_grounding_policy(result, question).level
    assert (level is Level.ANSWERED) == is_defined


def test_only_related_sections_are_named_and_each_once() -> None:
    question = "What is the capital of France?"
    cosines = [0.5, 0.5, 0.1, 0.5, 0.5, 0.5, 0.5, 0.1]
    chunks = [
        make_chunk(f"{WALKING} {n}", section=f"Section {n // 2}", cosine=cosine)
        for n, cosine in enumerate(cosines)
    ]
    unknown = ["capital", "France"]
    related = apply_grounding_policy(make_result(question, chunks, unknown=unknown), question)
    assert related.reason is Reason.NOT_COVERED
    assert [entry.section for entry in related.related] == ["Section 0", "Section 1", "Section 2"]
    assert len(related.related) == RELATED_SECTIONS
    one = make_result(question, chunks[:3], unknown=unknown)
    assert len(apply_grounding_policy(one, question).related) == 1


def test_the_words_of_a_refusal_name_no_part_of_the_system() -> None:
    for message in (
        ground(0.01).message,
        ground(0.45, ["walking"]).message,
        Voice().say("closest"),
    ):
        said = {word.lower() for word in extract_words(message)}
        assert not said & {"i", "context", "retrieval", "chunk", "information", "sorry"}


def test_a_question_without_passages_is_refused() -> None:
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


def test_the_context_is_limited_but_has_at_least_one_source() -> None:
    chunks = [make_chunk(f"{WALKING} {n}", section=str(n)) for n in range(9)]
    each = chunks[0].metadata.token_count
    grounded = apply_grounding_policy(
        make_result(QUESTION, chunks), QUESTION, max_context_tokens=2 * each + 1
    )
    assert len(grounded.sources) == 2
    tiny = apply_grounding_policy(make_result(QUESTION, chunks), QUESTION, max_context_tokens=1)
    assert len(tiny.sources) == 1
    assert len(tiny.citations) == 1


def test_the_widened_text_of_a_passage_is_the_source() -> None:
    text = f"Before. {WALKING} Behind."
    blocks = (TextBlock(TextBlockKind.PARAGRAPH, 0, len(text), 1, 1),)
    wide = replace(make_chunk(), expanded_text=text, expanded_blocks=blocks)
    grounded = apply_grounding_policy(make_result(QUESTION, [wide]), QUESTION)
    assert "Before." in grounded.context
    assert grounded.sources[0].text.endswith("Behind.")
    assert grounded.sources[0].blocks == blocks


def confidence(result: RetrievalResult) -> float:
    """Return the confidence of the grounding policy for a result in normal mode."""
    grounded = apply_grounding_policy(result, result.query.question)
    assert grounded.confidence is not None
    return grounded.confidence


def test_confidence_grows_with_nearness_and_with_words_known_to_the_book() -> None:
    low, middle, high = (
        confidence(make_result(QUESTION, [make_chunk(cosine=cosine)])) for cosine in (0.2, 0.4, 0.6)
    )
    assert low < middle < high
    unknown = make_result(QUESTION, [make_chunk(cosine=0.4)], unknown=["walking"])
    assert confidence(unknown) < middle


def with_words(*nearness: float) -> RetrievalResult:
    """Return a result whose evidence has one word of weight 5 for each nearness."""
    result = make_result(QUESTION, [make_chunk(cosine=0.45)])
    assert result.evidence is not None
    words = tuple(WordNearness(f"w{at}", 5.0, near) for at, near in enumerate(nearness))
    return replace(result, evidence=replace(result.evidence, words=words))


def test_many_supported_words_do_not_outweigh_one_unsupported_word() -> None:
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
def test_each_local_model_has_its_own_rule(model: str) -> None:
    assert choose_rule(LocalEmbedder(model).model.fingerprint) is not LEXICAL_RULE


def test_an_unknown_embedding_model_is_judged_only_by_words() -> None:
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


def test_a_result_without_evidence_is_judged_by_its_passages() -> None:
    bare = RetrievalResult((make_chunk(cosine=None),), Query(QUESTION), Mode.NORMAL, 1)
    assert apply_grounding_policy(bare, QUESTION).sufficient_context
    far = "Which glue holds wooden chairs?"
    assert not apply_grounding_policy(bare, far).sufficient_context


@pytest.mark.parametrize("question", ["", "   ", "?!", "what is it", "a", "123", "special@chars!"])
def test_a_question_without_meaningful_words_is_refused(question: str) -> None:
    grounded = apply_grounding_policy(make_result(question, [make_chunk(cosine=0.1)]), question)
    assert not grounded.sufficient_context


def test_rarer_terms_of_the_question_weigh_more() -> None:
    evidence = make_evidence("balance of quadrotors", unknown=["quadrotors"])
    weights = weigh_question(evidence, "balance of quadrotors")
    assert weights["quadrotor"] > weights["balanc"]
    result = make_result("balance of quadrotors", [make_chunk()], unknown=["quadrotors"])
    signals = measure_signals(result, "balance of quadrotors")
    assert signals.cover == pytest.approx(5 / 13)
    assert weigh_question(NO_EVIDENCE, "balance of balance") == {"balanc": 1.0}


@pytest.mark.parametrize(
    ("question", "unknown", "expected"),
    [
        ("How do I use OpenCV with my robot?", ["OpenCV"], ("OpenCV",)),
        ("Does it run on a Unitree robot?", ["Unitree"], ("Unitree",)),
        ("What did Elon Musk say?", ["Elon", "Musk"], ("Elon Musk",)),
        ("Did Elon Musk visit Unitree?", ["Elon", "Musk", "Unitree"], ("Elon Musk", "Unitree")),
        ("Does Elon or Musk walk?", ["Elon", "Musk"], ("Elon", "Musk")),
        ("Set use_magic here", ["use_magic"], ("use_magic",)),
        ("Quokkas balance how?", ["Quokkas"], ()),  # every sentence begins with a capital letter
        ("How do quokkas balance?", ["quokkas"], ()),  # not a name
        ("How does ROS balance?", [], ()),
        ("Who won the cup in 1998?", ["1998"], ()),
    ],
)
def test_names_that_the_book_does_not_mention_are_reported(
    question: str, unknown: list[str], expected: tuple[str, ...]
) -> None:
    assert find_missing_names(make_evidence(question, unknown), question) == expected
    result = make_result(question, [make_chunk(cosine=0.9)], unknown=unknown)
    notices = apply_grounding_policy(result, question).notices
    assert any(notice.code == "names_missing" for notice in notices) == bool(expected)


def test_a_compound_name_is_not_missing_if_its_parts_occur() -> None:
    evidence = make_evidence("Does it run on ROS2?")
    terms = tuple(replace(entry, known=entry.term != "ros2") for entry in evidence.terms)
    assert find_missing_names(replace(evidence, terms=terms), "Does it run on ROS2?") == ()


def test_a_refusal_of_a_filtered_search_mentions_the_filters() -> None:
    query = Query("Which glue holds chairs?", filters=QueryFilters(modules=["module-9"]))
    result = make_result(query.question, [make_chunk(cosine=0.1)], query=query)
    notices = apply_grounding_policy(result, query.question).notices
    assert any(notice.code == "filtered" for notice in notices)
    unfiltered = make_result(query.question, [make_chunk(cosine=0.1)])
    assert not apply_grounding_policy(unfiltered, query.question).notices


def select(question: str, text: str) -> RetrievalResult:
    """Return the result of a question about a selected text."""
    query = Query(question, Mode.SELECTED_TEXT_ONLY, selected_text=text)
    return retrieve_selected(query, 0.34, SiteSettings())


def test_the_context_of_a_selection_is_the_unchanged_selection() -> None:
    grounded = apply_grounding_policy(select("What is the capture point?", WALKING), "x")
    assert grounded.context == WALKING
    assert grounded.sufficient_context
    assert grounded.mode is Mode.SELECTED_TEXT_ONLY
    assert grounded.confidence is None
    assert grounded.system_instruction.startswith(
        "Answer ONLY from the following selected text. Do not use any other knowledge."
    )


def test_a_refusal_for_an_unrelated_selection_offers_selection_and_whole_book() -> None:
    question = "Which glue holds wooden chairs?"
    grounded = apply_grounding_policy(select(question, WALKING), question)
    assert not grounded.sufficient_context
    assert grounded.reason is Reason.UNRELATED_TO_SELECTION
    assert "selection" in grounded.message
    assert "whole book" in grounded.message
    assert grounded.related == ()
    assert grounded.context == WALKING


def test_a_short_selection_suffices_with_a_notice() -> None:
    grounded = apply_grounding_policy(select("What is a ZMP?", "The ZMP."), "What is a ZMP?")
    assert grounded.sufficient_context
    assert len(grounded.notices) == 1


def test_the_instruction_in_normal_mode_begins_with_the_required_words() -> None:
    grounded = apply_grounding_policy(make_result(QUESTION, [make_chunk()]), QUESTION)
    assert grounded.system_instruction.startswith(
        "Answer based on the following textbook excerpts. Cite sources. If insufficient, say so."
    )


FAR_QUESTION = "Wie kann ich einen Kuchen mit Zucker und Butter backen, wenn ich keine Eier habe?"


def test_a_question_in_another_language_than_the_book_gets_the_closest_passages() -> None:
    result = make_result(FAR_QUESTION, [make_chunk(cosine=0.1)], unknown=["Kuchen"])
    grounded = apply_grounding_policy(result, FAR_QUESTION)
    assert grounded.level is Level.CLOSEST_PASSAGES
    assert grounded.reason is Reason.UNCERTAIN
    assert "other_language" in [notice.code for notice in grounded.notices]


def test_without_passages_a_question_in_another_language_is_not_covered() -> None:
    grounded = apply_grounding_policy(make_result(FAR_QUESTION, []), FAR_QUESTION)
    assert grounded.level is Level.NOT_COVERED
