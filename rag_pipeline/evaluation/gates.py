"""Quality gates: their definitions, and whether an evaluation meets them.

Some gates compare a value with a fixed bound, others compare the result with an accepted baseline.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from rag_pipeline.evaluation.measures import Interval, compare_pairs, find_interval, list_measures
from rag_pipeline.evaluation.metrics import DOCUMENT, NDCG, SECTION, SUCCESS
from rag_pipeline.evaluation.records import (
    FOLLOW_UP_DEPTH,
    REPORT_HALF,
    AnswersReport,
    Baseline,
    DefinitionScores,
    EvaluationReport,
    ModelScores,
    PassageScores,
    RefusalScores,
    SelectionScores,
    Summary,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


HALF_FROM: Final = 30
"""Fewest questions for a gate on a half; with fewer, one miss lowers the mean by over 3 points."""

_PAIRS_FROM: Final = 6  # six lost questions have p = 2 / 2**6 = 0.031, five have p = 0.063


_Evidence = TypeVar("_Evidence")


class Searched(NamedTuple):
    """The evaluation of the search, as the gates judge it.

    Attributes:
        report: The evaluation of the questions.
        baseline: The accepted evaluation to compare with; None if none was accepted yet.
        follow_ups: For each follow-up question of the report half, if it finds a right page.
    """

    report: EvaluationReport
    baseline: Baseline | None
    follow_ups: Sequence[bool]


class Verdict(NamedTuple):
    """The verdict of a gate: the value if it was measured, if the gate passes, and a sentence."""

    value: float | None
    passed: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class Gate(Generic[_Evidence]):
    """The declaration of a quality gate.

    Attributes:
        condition: The condition as a sentence.
        bound: The lowest allowed value; the highest one for a time and for a number of cases. A
            loss against the baseline fails its gate if its p-value is below the bound.
        judge: Measures the value in the evidence and judges it by the bound.

    Source:
        The specification's success criteria SC-001 (success_at_5) and SC-006 (latency_p95).
    """

    condition: str
    bound: float
    judge: Callable[[_Evidence, float], Verdict]


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
    report: EvaluationReport,
    baseline: Baseline | None,
    follow_ups: Sequence[bool] = (),
) -> tuple[GateResult, ...]:
    """Check an evaluation of the search; return a result per gate, in the order of `SEARCH_GATES`.

    A gate with too few cases passes and is reported as "not measured", with two exceptions:
    `success_at_5` fails without answerable questions, and `latency_p95` fails if so many retrievals
    failed that there is no percentile.

    Args:
        report: The evaluation to check.
        baseline: The accepted evaluation to compare with; None if none was accepted yet.
        follow_ups: For each follow-up question of the report half, if it finds a right page.
    """
    return _judge(SEARCH_GATES, Searched(report, baseline, follow_ups))


def check_answers(report: AnswersReport) -> tuple[GateResult, ...]:
    """Check an evaluation of answers; return a result per gate, in the order of `ANSWER_GATES`.

    A gate without cases passes and is reported as "not measured". The gate on facts is not measured
    if a model wrote the answers.
    """
    return _judge(ANSWER_GATES, report)


def _judge(gates: dict[str, Gate[_Evidence]], evidence: _Evidence) -> tuple[GateResult, ...]:
    results = []
    for name, gate in gates.items():
        value, passed, sentence = gate.judge(evidence, gate.bound)
        results.append(GateResult(name, value, gate.bound, passed, sentence))
    return tuple(results)


def _judge_share(what: str, share: Interval | None, bound: float) -> Verdict:
    if share is None:
        return Verdict(None, passed=True, sentence=f"there are no cases to measure {what}")
    sentence = (
        f"{what} is {share.mean:.3f} (95% interval {share.low:.3f} to {share.high:.3f}, "
        f"n = {share.count}); the lowest allowed value is {bound:.2f}"
    )
    return Verdict(share.mean, share.mean >= bound, sentence)


def _share(
    bound: float, cases: str, find: Callable[[_Evidence], Interval | None]
) -> Gate[_Evidence]:
    """Declare a gate on the share of some cases, which must be at least the bound."""
    what = f"the share of {cases}"
    return Gate(
        f"The share of {cases} is at least {bound:.2f}.",
        bound,
        lambda evidence, bound: _judge_share(what, find(evidence), bound),
    )


def _list_declared(
    figures: type, find: Callable[[_Evidence], object]
) -> dict[str, Gate[_Evidence]]:
    """Return the gates that a class of figures declares, by name; `find` finds the figures."""

    def read(evidence: _Evidence, name: str) -> Interval | None:
        share: Interval | None = getattr(find(evidence), name)
        return share

    return {
        measure.gate[0]: _share(measure.gate[1], measure.label, partial(read, name=name))
        for name, measure in list_measures(figures).items()
        if measure.gate
    }


def _none(cases: str, find: Callable[[_Evidence], int | None]) -> Gate[_Evidence]:
    """Declare a gate on the number of some cases, which must be 0."""
    what = f"the number of {cases}"

    def judge(evidence: _Evidence, bound: float) -> Verdict:
        number = find(evidence)
        if number is None:
            return Verdict(None, passed=True, sentence=f"there are no cases to measure {what}")
        return Verdict(float(number), number <= bound, f"{what} is {number}; it must be 0")

    return Gate(f"The number of {cases} is 0.", 0.0, judge)


def _success(
    scope: str, lowest_count: int, find: Callable[[EvaluationReport], Summary]
) -> Gate[Searched]:
    what = f"Success@5 (recall@5 of SC-001) at document level over {scope}"

    def judge(evidence: Searched, bound: float) -> Verdict:
        interval = find(evidence.report).get(DOCUMENT, {}).get(SUCCESS)
        found = interval.count if interval else 0
        if found < lowest_count:
            why = f"Success@5 was not measured: {scope} has only {found} answerable questions"
            return Verdict(None, lowest_count > 1, why)
        return _judge_share(what, interval, bound)

    return Gate(f"{what} is at least 0.90.", 0.90, judge)


def _no_loss(level: str, measure: str) -> Gate[Searched]:
    def judge(evidence: Searched, bound: float) -> Verdict:
        baseline = evidence.baseline
        pairs = baseline.pair_with(evidence.report, level, measure) if baseline else []
        if baseline is None or not pairs:
            why = (
                "the accepted baseline has no question in common with this golden set"
                if baseline
                else "no baseline was accepted yet"
            )
            sentence = f"{measure} at {level} level was not compared: {why}"
            return Verdict(None, passed=True, sentence=sentence)
        test = compare_pairs([old for old, _ in pairs], [new for _, new in pairs])
        enough = len(pairs) >= _PAIRS_FROM
        notes = "" if enough else f"; fewer than {_PAIRS_FROM} questions cannot show a loss"
        gone = len(baseline.questions) - len(pairs)
        notes += f"; {gone} questions of the baseline are missing or changed" if gone else ""
        return Verdict(
            test.p_value if enough else None,
            not (test.difference < 0 and test.p_value < bound),
            f"{measure} at {level} level changed by {test.difference:+.3f} against the accepted "
            f"baseline ({test.changed_count} of {test.pair_count} questions differ, "
            f"p = {test.p_value:.3f}); a loss with p < {bound:g} fails{notes}",
        )

    condition = f"{measure} at {level} level is not significantly below the baseline."
    return Gate(condition, 0.05, judge)


def _judge_precision(evidence: Searched, bound: float) -> Verdict:
    refusal = evidence.report.refusal["all"]
    if refusal.precision is None and refusal.recall is not None:
        return Verdict(0.0, passed=False, sentence="no question was refused, but some had to be")
    return _judge_share("the share of refusals that were right", refusal.precision, bound)


def _judge_latency(evidence: Searched, bound: float) -> Verdict:
    p95_ms = evidence.report.latency.p95_ms
    if p95_ms is None:
        why = "over 5% of the questions failed, so that the 95th percentile has no value"
        return Verdict(None, passed=False, sentence=why)
    sentence = f"95% of retrievals took at most {p95_ms:.0f} ms; {bound:.0f} ms are allowed"
    return Verdict(p95_ms, p95_ms <= bound, sentence)


SEARCH_GATES: Final[dict[str, Gate[Searched]]] = {
    "success_at_5": _success("the golden set", 1, lambda report: report.overall),
    "success_at_5_report_half": _success(
        "the report half", HALF_FROM, lambda report: report.halves.get(REPORT_HALF, {})
    ),
    "no_loss_document_success_at_5": _no_loss(DOCUMENT, SUCCESS),
    "no_loss_section_ndcg_at_10": _no_loss(SECTION, NDCG),
    **_list_declared(RefusalScores, lambda searched: searched.report.refusal["all"]),
    # Unlike `answered`, this value also depends on how many unanswerable questions the set has.
    "refusal_precision": Gate(
        "Most refused questions have no answer in the book.", 0.50, _judge_precision
    ),
    "latency_p95": Gate(
        "95% of the retrievals take at most 5 seconds (SC-006).", 5000.0, _judge_latency
    ),
    "follow_ups_found": _share(
        0.90,
        f"follow-ups of the report half that find a right page among {FOLLOW_UP_DEPTH} passages",
        lambda searched: find_interval(searched.follow_ups),
    ),
}
"""The gates on the search by name. The bound of the latency is milliseconds."""


def _count_leaks(answers: AnswersReport) -> int | None:
    selected = answers.selected_text
    return selected.leak_count + selected.failure_count if selected.case_count else None


def _find_facts(answers: AnswersReport) -> Interval | None:
    half = answers.halves.get(REPORT_HALF)
    facts = half.facts if half and answers.model is None else None
    return facts if facts and facts.count >= HALF_FROM else None


ANSWER_GATES: Final[dict[str, Gate[AnswersReport]]] = {
    "answer_leaks": _none(
        "answers about a selection that failed or contain text from outside it (SC-002)",
        _count_leaks,
    ),
    "facts_without_model": _share(
        0.78,
        f"questions of the report half (at least {HALF_FROM} are needed) whose answer without a "
        "model contains all facts",
        _find_facts,
    ),
    "terms_explained": _none(
        "main passages about glossary terms that are a heading, code or a quiz",
        lambda answers: answers.definitions.flawed if answers.definitions.defined else None,
    ),
    **_list_declared(SelectionScores, lambda answers: answers.selected_text),
    **_list_declared(DefinitionScores, lambda answers: answers.definitions),
    **_list_declared(PassageScores, lambda answers: answers.passages),
    **_list_declared(ModelScores, lambda answers: answers.written),
}
"""The gates on answers by name."""

GATES: Final[dict[str, Gate[Any]]] = {**SEARCH_GATES, **ANSWER_GATES}
"""All gates by name, in the order of their results."""
