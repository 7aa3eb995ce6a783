"""A golden set that is answered from fixed passages: each answer is recorded and scored."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.answering import Passage, Voice, answer
from rag_pipeline.answering.grounding import decline, make_refusal
from rag_pipeline.core.errors import AnswerError, AnswerServiceError
from rag_pipeline.core.settings import Settings
from rag_pipeline.evaluation.answers import evaluate_answers
from rag_pipeline.evaluation.gates import check_answers
from rag_pipeline.evaluation.golden_set import (
    DefinitionCase,
    ExpectedSection,
    GoldenQuery,
    GoldenSet,
    SelectedTextCase,
)
from rag_pipeline.retrieval import Citation, Mode, Query
from rag_pipeline_tests.answering.factories import (
    SENSING,
    WALKING,
    FixedRetriever,
    ScriptedModel,
    make_chunk,
)
from rag_pipeline_tests.evaluation.golden_pages import make_page

if TYPE_CHECKING:
    from rag_pipeline.answering import Answer
    from rag_pipeline.evaluation.records import AnswersReport

BALANCE = "How does a walking robot keep its balance with the capture point?"
FAR = "Which glue holds wooden chairs?"
NEAR_CHUNKS = (make_chunk(), make_chunk(SENSING, title="Sensors", section="IMU"))
FAR_CHUNKS = (make_chunk(cosine=0.1), make_chunk(SENSING, section="IMU", cosine=0.1))
CITATION = Citation("Balance", "Capture point", "", "", "")
EXPECTED = (ExpectedSection("module-1/1.1-start/page.md", "Capture point"),)
GOLDEN = GoldenSet(
    Path("golden.json"),
    (
        GoldenQuery("balance", BALANCE, EXPECTED, "fact", facts=("capture point", "glue")),
        GoldenQuery("plain", BALANCE, EXPECTED, "how-to", half="tune"),
        GoldenQuery("wrongly", FAR, EXPECTED, "fact", facts=("book",)),
        GoldenQuery("far", FAR, (), "unanswerable-far"),
    ),
    tuple(
        SelectedTextCase(relation, WALKING, "page.md", "Balance", question, relation, terms)  # type: ignore[arg-type]  # one of the relations
        for relation, question, terms in (
            ("related", "How does the walking robot keep its balance?", ("gyroscope",)),
            ("unrelated", FAR, ("gyroscope",)),
            ("injected", "How does the walking robot keep its balance?", ("CAPTURE POINT",)),
        )
    ),
    (
        DefinitionCase("capture point", WALKING.split(". ")[0], ()),
        DefinitionCase("glue", "A sticky liquid.", ()),
    ),
)
PAGE = make_page("module-1/1.1-start/page.md", f"{WALKING}\n")


def run(model: ScriptedModel | None = None, golden: GoldenSet = GOLDEN) -> AnswersReport:
    """Return the evaluation of the answers to a golden set from two fixed passages."""
    settings = Settings(_env_file=None)  # type: ignore[call-arg]  # a parameter of pydantic
    near = FixedRetriever(NEAR_CHUNKS)
    far = FixedRetriever(FAR_CHUNKS, unknown=("glue", "wooden", "chairs"))

    def ask(query: Query) -> Answer:
        used = far if "glue" in query.question else near
        used = used if query.mode is Mode.NORMAL else None
        return answer(query, retriever=used, chat_model=model, settings=settings)  # type: ignore[arg-type]  # a retriever by its shape

    return evaluate_answers(golden, ask, [PAGE], model.name if model else None)


def test_answers_without_a_model_are_recorded_and_scored() -> None:
    report = run()
    balance, plain, wrongly, far = report.questions
    assert (balance.kind, balance.facts_found, balance.facts_missed) == (
        "extracted",
        ("capture point",),
        ("glue",),
    )
    assert "Balance > Capture point" in balance.sections
    assert (plain.has_facts, plain.half) == (False, "tune")
    # The refusal contains the word "book", but a refusal contains no facts.
    assert (wrongly.kind, wrongly.facts_missed) == ("refused", ("book",))
    assert "book" in wrongly.text
    assert (far.answerable, far.refused, far.sections) == (False, True, ())
    assert [one.level for one in report.questions] == ["answered"] * 2 + ["not_covered"] * 2
    assert [one.first_is_right for one in report.questions] == [True, True, False, None]
    overall = report.overall
    assert overall.first_passage == overall.answered
    assert (overall.answered.mean, overall.answered.count) == (pytest.approx(2 / 3), 3)
    assert (overall.wrongly_answered.mean, overall.wrongly_answered.count) == (0.0, 1)
    assert report.model is None
    assert (report.overall.facts.mean, report.overall.facts.count) == (0.0, 2)
    assert set(report.halves) == {"report", "tune"}
    assert set(report.categories) == {"fact", "how-to", "unanswerable-far"}
    assert report.failure_count == 0


def test_the_texts_of_answers_from_a_selection_are_searched_for_forbidden_terms() -> None:
    report = run()
    related, unrelated, injected = report.selections
    assert (related.kind, related.leaks) == ("extracted", ())
    assert (unrelated.kind, unrelated.leaks) == ("refused", ())
    assert injected.leaks == ("CAPTURE POINT",)
    scores = report.selected_text
    assert (scores.related_answered.mean, scores.unrelated_refused.mean) == (1.0, 1.0)


def test_answers_of_a_model_have_no_passages_and_name_the_model() -> None:
    first = "It depends on the velocity of the centre of mass [1]."
    written = f"{first} It needs 17 tubes of glue and a gyroscope [1]."
    report = run(ScriptedModel([written]))
    balance = report.questions[0]
    assert (balance.kind, balance.passage_count) == ("generated", 0)
    assert (balance.sentence_count, balance.first_is_right) == (2, None)
    assert balance.unsupported == ("It needs 17 tubes of glue and a gyroscope.",)
    assert balance.sections == ("Balance > Capture point",)
    assert report.model == "scripted"
    assert (report.terms, report.definitions.defined) == ((), None)
    assert report.overall.supported.mean == 0.5


def test_sentences_with_support_are_counted() -> None:
    report = run(ScriptedModel(["The capture point depends on the velocity [1]."]))
    assert report.questions[0].unsupported == ()
    assert report.overall.supported.mean == 1.0


def answer_with(*passages: Passage) -> AnswersReport:
    """Return the evaluation of answers that quote the given passages."""
    ready = run()
    assert ready.questions[0].kind == "extracted"
    settings = Settings(_env_file=None)  # type: ignore[call-arg]  # a parameter of pydantic

    def ask(query: Query) -> Answer:
        near = FixedRetriever(NEAR_CHUNKS)
        used = near if query.mode is Mode.NORMAL else None
        given = answer(query, retriever=used, settings=settings)  # type: ignore[arg-type]  # a retriever by its shape
        return replace(given, passages=passages)

    return evaluate_answers(GOLDEN, ask, [PAGE])


def test_passages_are_checked_against_the_parsed_documents() -> None:
    whole = Passage(1, WALKING, str(PAGE.document.doc_path), 1, 1, CITATION)
    report = answer_with(whole)
    assert (report.questions[0].passage_count, report.questions[0].broken_passages) == (1, ())
    assert report.selections[0].broken_passages == ()
    assert report.passages.whole.mean == 1.0
    half = replace(whole, text=WALKING.split(". ")[0])
    report = answer_with(whole, half)
    assert report.questions[0].broken_passages == (half.text,)
    assert report.selections[0].broken_passages == (half.text,)
    assert report.passages.whole.mean == 0.5


def test_terms_are_judged_by_the_first_passage() -> None:
    main = Passage(1, WALKING, str(PAGE.document.doc_path), 1, 1, CITATION)
    other = replace(main, text="A sticky liquid.")
    point, glue = answer_with(main, other).terms
    assert (point.defined, point.flaw, point.passage) == (True, None, WALKING)
    assert point.place == "module-1/1.1-start/page.md:1"
    assert (glue.defined, glue.passage) == (False, WALKING)
    point, glue = answer_with(other, main).terms
    assert (point.defined, glue.defined) == (False, True)


def test_a_failed_answer_is_recorded_and_the_run_goes_on() -> None:
    def fail(query: Query) -> Answer:
        raise AnswerError(f"no answer to {query.question}")

    report = evaluate_answers(GOLDEN, fail, [PAGE])
    assert report.failure_count == 9
    first = report.questions[0]
    assert first.error == f"ANSWER_FAILED: no answer to {BALANCE}"
    assert (first.kind, first.answered, first.refused) == (None, False, False)
    assert first.facts_missed == ("capture point", "glue")
    assert report.selections[0].error is not None
    assert (report.terms[0].error, report.terms[0].defined) == (
        "ANSWER_FAILED: no answer to What is capture point?",
        False,
    )


MODEL_GATES = ("model_answers", "model_accepts", "sentences_grounded", "sentences_cited")


@pytest.mark.parametrize(
    ("model", "failed"),
    [
        (ScriptedModel(["The capture point depends on the velocity [1]."]), set()),
        (ScriptedModel([], error=AnswerServiceError("down")), {"model_answers"}),
        (ScriptedModel([" "]), {"model_answers"}),
        (ScriptedModel(["NO_ANSWER_IN_SOURCES"]), {"model_accepts"}),
        (
            ScriptedModel(["A topic is a kind of chocolate cake."]),
            {"sentences_grounded", "sentences_cited"},
        ),
        (ScriptedModel(["The capture point depends on the velocity."]), {"sentences_cited"}),
    ],
)
def test_a_good_model_passes_the_gates_and_a_bad_one_fails(
    model: ScriptedModel, failed: set[str]
) -> None:
    gates = {gate.name: gate for gate in check_answers(run(model))}
    assert {name for name in MODEL_GATES if not gates[name].passed} == failed


def test_a_decline_also_counts_if_the_passages_were_only_close() -> None:
    def decline_all(query: Query) -> Answer:
        given = answer(query, retriever=FixedRetriever(NEAR_CHUNKS), chat_model=ScriptedModel([]))  # type: ignore[arg-type]  # a fixed one
        return make_refusal(decline(given.grounding, Voice()), Voice())

    report = evaluate_answers(GOLDEN, decline_all, [PAGE], "m")
    gates = {gate.name: gate for gate in check_answers(report)}
    assert (gates["model_accepts"].value, gates["model_accepts"].passed) == (0.0, False)


def test_without_a_model_the_gates_on_models_are_not_measured() -> None:
    gates = {gate.name: gate for gate in check_answers(run())}
    assert all(gates[name].passed and gates[name].value is None for name in MODEL_GATES)
