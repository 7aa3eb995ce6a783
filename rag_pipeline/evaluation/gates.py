"""Quality gates: their definitions, and whether an evaluation meets them.

Some gates compare a value with a fixed bound, others compare the result with an accepted baseline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.evaluation.metrics import (
    DOCUMENT,
    NDCG,
    SECTION,
    SUCCESS,
    compare_pairs,
    find_interval,
)
from rag_pipeline.evaluation.records import FOLLOW_UP_DEPTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.evaluation.records import (
        AnswersReport,
        Baseline,
        ConversationResult,
        EvaluationReport,
        Interval,
        Summary,
    )


REPORT_HALF: Final = "report"
HALF_FROM: Final = 30
"""Fewest questions for a gate on a half; with fewer, one miss lowers the mean by over 3 points."""

_PAIRS_FROM: Final = 6  # six lost questions have p = 2 / 2**6 = 0.031, five have p = 0.063
_COMPARED: Final = ((DOCUMENT, SUCCESS), (SECTION, NDCG))

GATES: Final = {
    "success_at_5": "Success@5 of documents over all questions is at least 0.90 (SC-001).",
    "success_at_5_report_half": "Success@5 of documents over the report half is at least 0.90.",
    "no_loss_document_success_at_5": "Document Success@5 is not significantly below the baseline.",
    "no_loss_section_ndcg_at_10": "Section nDCG@10 is not significantly below the baseline.",
    "refusal_recall": "Most questions that the book does not answer are refused.",
    "refusal_precision": "Most refused questions have no answer in the book.",
    "answered": "Most questions that the book answers are not refused.",
    "latency_p95": "95% of the retrievals take at most 5 seconds (SC-006).",
}
"""Name and condition of every gate, in the order of `check_gates`."""


@dataclass(frozen=True, slots=True)
class GateBounds:
    """The bounds of the quality gates.

    Attributes:
        success_at_5: Lowest Success@5 at document level.
        refusal_recall: Lowest share of unanswerable questions that are refused.
        refusal_precision: Lowest share of refused questions that are unanswerable. Unlike
            `answered`, the value also depends on how many unanswerable questions the set has.
        answered: Lowest share of answerable questions that are not refused.
        latency_p95_ms: Highest 95th percentile of the retrieval time, in milliseconds.
        significance: A loss against the baseline fails its gate if its p-value is below this.

    Source:
        The specification's success criteria SC-001 (success_at_5) and SC-006 (latency_p95_ms).
    """

    success_at_5: float = 0.90
    refusal_recall: float = 0.60
    refusal_precision: float = 0.50
    answered: float = 0.90
    latency_p95_ms: float = 5000.0
    significance: float = 0.05


@dataclass(frozen=True, slots=True)
class GateResult:
    """The result of one quality gate.

    Attributes:
        name: The key of the gate in `GATES`.
        value: The measured value; None if there were too few cases to measure it.
        bound: The lowest or highest allowed value; `sentence` says which.
        passed: True if the value is within the bound. A gate may also pass unmeasured.
        sentence: The measured value and the bound as a sentence for people.
    """

    name: str
    value: float | None
    bound: float
    passed: bool
    sentence: str

    @property
    def verdict(self) -> str:
        """The word `passed`, `failed`, or `not measured` if the gate passed without a value."""
        if not self.passed:
            return "failed"
        return "passed" if self.value is not None else "not measured"


def check_gates(
    report: EvaluationReport, baseline: Baseline | None, bounds: GateBounds
) -> tuple[GateResult, ...]:
    """Check a report against all quality gates; return a result per gate, in the order of `GATES`.

    A gate with too few cases passes and is reported as "not measured", with two exceptions:
    `success_at_5` fails without answerable questions, and `latency_p95` fails if so many retrievals
    failed that there is no percentile.

    Args:
        report: The evaluation to check.
        baseline: The accepted evaluation to compare with; None if none was accepted yet.
        bounds: The bounds of the gates.
    """
    refusal = report.refusal["all"]
    half = report.halves.get(REPORT_HALF, {})
    return (
        _check_success("success_at_5", report.overall, bounds, "the golden set", 1),
        _check_success("success_at_5_report_half", half, bounds, "the report half", HALF_FROM),
        *(_check_loss(report, baseline, level, measure, bounds) for level, measure in _COMPARED),
        check_share(
            "refusal_recall",
            refusal.recall,
            bounds.refusal_recall,
            "unanswerable questions that were refused",
        ),
        at_least(
            "refusal_precision",
            refusal.precision,
            bounds.refusal_precision,
            f"the share of refusals that were right is {refusal.precision or 0:.3f}",
            "no question was refused, and none had to be",
        ),
        check_share(
            "answered", refusal.answered, bounds.answered, "answerable questions not refused"
        ),
        _check_latency(report, bounds),
    )


def at_least(
    name: str, value: float | None, bound: float, sentence: str, unmeasured: str
) -> GateResult:
    """Return the result of a gate whose value must be at least `bound`.

    If the value is None, the gate passes as "not measured", and `unmeasured` is the sentence that
    says why.
    """
    if value is None:
        return GateResult(name, None, bound, passed=True, sentence=unmeasured)
    verdict = f"{sentence}; the lowest allowed value is {bound:.2f}"
    return GateResult(name, value, bound, value >= bound, verdict)


def _check_success(
    name: str, summary: Summary, bounds: GateBounds, scope: str, lowest_count: int
) -> GateResult:
    interval = summary.get(DOCUMENT, {}).get(SUCCESS)
    count = interval.count if interval else 0
    if interval is None or count < lowest_count:
        why = f"Success@5 was not measured: {scope} has only {count} answerable questions"
        return GateResult(name, None, bounds.success_at_5, lowest_count > 1, why)
    found = describe_interval(interval)
    sentence = f"Success@5 (recall@5 of SC-001) at document level over {scope} is {found}"
    return at_least(name, interval.mean, bounds.success_at_5, sentence, "")


def check_share(name: str, share: Interval | None, bound: float, what: str) -> GateResult:
    """Return the result of a gate whose share must be at least `bound`; None is not measured.

    Args:
        name: Name of the gate.
        share: The measured share.
        bound: The lowest allowed share.
        what: The cases that the share counts, as in "the share of questions that were refused".
    """
    found = "" if share is None else f"the share of {what} is {describe_interval(share)}"
    value = None if share is None else share.mean
    return at_least(name, value, bound, found, f"there are no cases to measure the share of {what}")


def _check_loss(
    report: EvaluationReport,
    baseline: Baseline | None,
    level: str,
    measure: str,
    bounds: GateBounds,
) -> GateResult:
    name = f"no_loss_{level}_{measure.lower().replace('@', '_at_')}"
    pairs = [] if baseline is None else baseline.pair_with(report, level, measure)
    if not pairs:
        why = (
            "no baseline was accepted yet"
            if baseline is None
            else "the accepted baseline has no question in common with this golden set"
        )
        sentence = f"{measure} at {level} level was not compared: {why}"
        return GateResult(name, None, bounds.significance, passed=True, sentence=sentence)
    test = compare_pairs([old for old, _ in pairs], [new for _, new in pairs])
    enough = len(pairs) >= _PAIRS_FROM
    notes = "" if enough else f"; fewer than {_PAIRS_FROM} questions cannot show a loss"
    gone = len(baseline.questions) - len(pairs) if baseline else 0
    notes += f"; {gone} questions of the baseline are missing or changed" if gone else ""
    return GateResult(
        name,
        test.p_value if enough else None,
        bounds.significance,
        not (test.difference < 0 and test.p_value < bounds.significance),
        f"{measure} at {level} level changed by {test.difference:+.3f} against the accepted "
        f"baseline ({test.changed_count} of {test.pair_count} questions differ, "
        f"p = {test.p_value:.3f}); a loss with p < {bounds.significance:g} fails{notes}",
    )


def _check_latency(report: EvaluationReport, bounds: GateBounds) -> GateResult:
    p95_ms = report.latency.p95_ms
    if p95_ms is None:
        why = "over 5% of the questions failed, so that the 95th percentile has no value"
        return GateResult("latency_p95", None, bounds.latency_p95_ms, passed=False, sentence=why)
    return GateResult(
        "latency_p95",
        p95_ms,
        bounds.latency_p95_ms,
        p95_ms <= bounds.latency_p95_ms,
        f"95% of retrievals took at most {p95_ms:.0f} ms; {bounds.latency_p95_ms:.0f} ms are "
        "allowed",
    )


def describe_interval(interval: Interval) -> str:
    """Format a mean, its 95% interval and the number of questions as text for a sentence."""
    return (
        f"{interval.mean:.3f} (95% interval {interval.low:.3f} to {interval.high:.3f}, "
        f"n = {interval.count})"
    )


CONVERSATION_GATES: Final = {
    "follow_ups_found": "Most follow-up questions find their page, without a model.",
}
"""Name and condition of the gate that `check_conversations` checks."""

MIN_RIGHT_PAGES: Final = 0.90
"""Lowest share of follow-ups of the report half that find a right page among five passages."""


def check_conversations(results: Sequence[ConversationResult]) -> GateResult:
    """Check that enough follow-ups of the report half find a right page; see `CONVERSATION_GATES`.

    The gate passes as "not measured" if there are no results.
    """
    counted = [
        one
        for one in results
        if one.conversation.half == REPORT_HALF and one.conversation.kind == "follow_up"
    ]
    return check_share(
        "follow_ups_found",
        find_interval([one.found for one in counted]),
        MIN_RIGHT_PAGES,
        f"follow-ups of the report half that find a right page among {FOLLOW_UP_DEPTH} passages "
        f"({sum(one.found_alone for one in counted)} of {len(counted)} do as asked)",
    )


ANSWER_GATES: Final = {
    "answer_leaks": "No answer about a selection contains text from outside it (SC-002).",
    "facts_without_model": "Answers without a model contain the facts for most questions.",
    "terms_defined": 'The answer to "What is ...?" defines most terms of the glossary.',
    "terms_explained": "No such answer begins with a heading, code or a quiz.",
    "selections_answered": "Most questions that the selection answers are answered.",
    "selections_refused": "Most questions that the selection does not answer are refused.",
    "passages_whole": "All quoted passages are whole blocks of their document.",
    "model_answers": "The model fails for hardly any question.",
    "model_accepts": "The model declines hardly any question that the passages answer.",
    "sentences_grounded": "Most sentences of the model stand in the sources.",
    "sentences_cited": "The model itself cites most of its sentences.",
}
"""Name and condition of every gate on answers, in the order of `check_answers`."""


@dataclass(frozen=True, slots=True)
class AnswerBounds:
    """The bounds of the quality gates on answers.

    Attributes:
        leaks: Highest number of selected-text cases whose answer leaks or fails.
        facts: Lowest share of questions of the report half whose answer, written without a model,
            contains all facts.
        terms_defined: Lowest share of terms whose main passage defines them.
        terms_flawed: Highest number of main passages that are a heading, code or a quiz.
        selections_answered: Lowest share of related selected-text cases that are answered.
        selections_refused: Lowest share of unrelated selected-text cases that are refused.
        passages_whole: Lowest share of quoted passages that are whole.
        model_answers: Lowest share of the questions that a model was asked and did not fail.
        model_accepts: Lowest share of the answerable ones of these that it did not decline.
        sentences_grounded: Lowest share of its sentences that stand in the sources.
        sentences_cited: Lowest share of its sentences that it cited itself.
    """

    leaks: int = 0
    facts: float = 0.78
    terms_defined: float = 0.95
    terms_flawed: int = 0
    selections_answered: float = 0.93
    selections_refused: float = 0.90
    passages_whole: float = 1.0
    model_answers: float = 0.98
    model_accepts: float = 0.9
    sentences_grounded: float = 0.8
    sentences_cited: float = 0.8


def check_answers(report: AnswersReport, bounds: AnswerBounds) -> tuple[GateResult, ...]:
    """Check an evaluation of answers; return a result per gate, in the order of `ANSWER_GATES`.

    A gate without cases passes and is reported as "not measured". The gates on facts, terms and
    passages are not measured if a model wrote the answers.
    """
    selected, terms = report.selected_text, report.definitions
    half = report.halves.get(REPORT_HALF)
    facts = half.facts if half else None
    quoted = report.model is None
    return (
        _at_most(
            "answer_leaks",
            selected.leak_count + selected.failure_count if selected.case_count else None,
            bounds.leaks,
            f"{selected.leak_count} of {selected.case_count} answers about a selection contain "
            f"text from outside it and {selected.failure_count} failed",
        ),
        check_share(
            "facts_without_model",
            facts if quoted and facts and facts.count >= HALF_FROM else None,
            bounds.facts,
            f"questions of the report half (at least {HALF_FROM} are needed) whose answer without "
            "a model contains all facts",
        ),
        check_share(
            "terms_defined",
            terms.defined if quoted else None,
            bounds.terms_defined,
            "glossary terms that the main passage defines",
        ),
        _at_most(
            "terms_explained",
            terms.flawed if quoted and terms.defined else None,
            bounds.terms_flawed,
            f"{terms.flawed} main passages about glossary terms are a heading, code or a quiz",
        ),
        check_share(
            "selections_answered",
            selected.related_answered,
            bounds.selections_answered,
            "selections answered among those that contain the answer",
        ),
        check_share(
            "selections_refused",
            selected.unrelated_refused,
            bounds.selections_refused,
            "selections refused among those that do not contain the answer",
        ),
        check_share(
            "passages_whole",
            report.whole,
            bounds.passages_whole,
            "quoted passages that are whole blocks of their document",
        ),
        *_check_model(report, bounds),
    )


def _check_model(report: AnswersReport, bounds: AnswerBounds) -> tuple[GateResult, ...]:
    """Check the answers that a model wrote or should have written."""
    asked = [
        one
        for one in report.questions
        if report.model is not None
        and (one.kind in {"generated", None} or not _MODEL_NOTICES.isdisjoint(one.notices))
    ]
    answered = [one for one in asked if one.error is None]
    answerable = [one for one in answered if one.answerable]
    cited = [number < one.cited_count for one in answered for number in range(one.sentence_count)]
    grounded = [
        number >= len(one.unsupported) for one in answered for number in range(one.sentence_count)
    ]
    return (
        check_share(
            "model_answers",
            find_interval([one in answered for one in asked]),
            bounds.model_answers,
            "questions for which the model did not fail",
        ),
        check_share(
            "model_accepts",
            find_interval([_DECLINED.isdisjoint(one.notices) for one in answerable]),
            bounds.model_accepts,
            "answerable questions that the model did not decline",
        ),
        check_share(
            "sentences_grounded",
            find_interval(grounded),
            bounds.sentences_grounded,
            "sentences of the model that stand in the sources",
        ),
        check_share(
            "sentences_cited",
            find_interval(cited),
            bounds.sentences_cited,
            "sentences that the model cited itself",
        ),
    )


_DECLINED: Final = frozenset({"model_declined"})
_MODEL_NOTICES: Final = frozenset({"model_declined", "not_grounded"})
"""Notices of an answer that a model should have written."""


def _at_most(name: str, count: int | None, bound: int, sentence: str) -> GateResult:
    if count is None:
        why = f"there are no cases to measure: {ANSWER_GATES[name]}"
        return at_least(name, None, float(bound), "", why)
    verdict = f"{sentence}; the highest allowed number is {bound}"
    return GateResult(name, float(count), float(bound), count <= bound, verdict)
