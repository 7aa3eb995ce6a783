"""Judges an evaluation: good enough to release, and no worse than the accepted baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.evaluation.matching import DOCUMENT, SECTION
from rag_pipeline.evaluation.metrics import NDCG, SUCCESS
from rag_pipeline.evaluation.significance import compare_pairs

if TYPE_CHECKING:
    from rag_pipeline.evaluation.records import Baseline, EvaluationReport, Interval, Summary

REPORT_HALF: Final = "report"
_HALF_FROM: Final = 30  # questions; one miss in a smaller half moves it by over 3 points
_PAIRS_FROM: Final = 6  # questions all lost have p = 2 / 2**6 = 0.031, five have 0.063
_COMPARED: Final = ((DOCUMENT, SUCCESS), (SECTION, NDCG))

GATES: Final = {
    "success_at_5": "Success@5 of documents over all questions is at least 0.90 (SC-001).",
    "success_at_5_report_half": "The same over the questions kept from tuning.",
    "no_loss_document_success_at_5": "No significant loss of Success@5 of documents.",
    "no_loss_section_ndcg_at_10": "No significant loss of nDCG@10 of sections.",
    "refusal_recall": "Questions the book does not answer are refused.",
    "refusal_precision": "What is refused is mostly what the book does not answer.",
    "answered": "Questions the book answers are not refused.",
    "selected_text_leaks": "Answers from a selection hold nothing from outside it.",
    "selected_text_judged": "What a selection answers is answered from it, all else refused.",
    "latency_p95": "Retrieval is fast enough.",
}
"""Every gate in the order of `check_gates`, and what it asks for."""


@dataclass(frozen=True, slots=True)
class GateBounds:
    """Bounds that an evaluation must reach.

    Attributes:
        success_at_5: Lowest Success@5 at document level.
        refusal_recall: Lowest share of unanswerable questions refused.
        refusal_precision: Lowest share of refusals that are right. Unlike `answered`, it falls
            with the share of unanswerable questions in the set.
        answered: Lowest share of answerable questions that are not refused.
        leak_count: Highest number of selected-text cases that leak or fail.
        selected_text_judged: Lowest share of selected-text cases rightly answered or refused. It
            is needed because a mode that returns nothing leaks nothing.
        latency_p95_ms: Highest 95th percentile of retrieval time.
        significance: A loss with a p-value below it is not taken for chance.

    Source:
        success_at_5: SC-001; leak_count: SC-002; latency_p95_ms: SC-006.
    """

    success_at_5: float = 0.90
    refusal_recall: float = 0.60
    refusal_precision: float = 0.50
    answered: float = 0.90
    leak_count: int = 0
    selected_text_judged: float = 0.80
    latency_p95_ms: float = 5000.0
    significance: float = 0.05


@dataclass(frozen=True, slots=True)
class GateResult:
    """Verdict of one gate.

    Attributes:
        value: The measured value; None if the golden set contains nothing to measure it by.
        bound: Lowest or highest allowed value, as the sentence says.
        sentence: The verdict for people.
    """

    name: str
    value: float | None
    bound: float
    passed: bool
    sentence: str

    @property
    def verdict(self) -> str:
        """`passed`, `failed`, or `not measured` if the gate passed without a value."""
        if not self.passed:
            return "failed"
        return "passed" if self.value is not None else "not measured"


def check_gates(
    report: EvaluationReport, baseline: Baseline | None, bounds: GateBounds
) -> tuple[GateResult, ...]:
    """Judge a report: one result per gate, always the same gates in the same order.

    A gate that has no cases passes and is reported as "not measured"; `success_at_5` fails instead.
    Success@5 is judged over all questions and over the half that was not used for tuning. A loss is
    judged by Success@5 of documents and by nDCG@10 of sections.
    """
    refusal, judged = report.refusal["all"], report.selected_text.judged_right
    half = report.halves.get(REPORT_HALF, {})
    return (
        _check_success("success_at_5", report.overall, bounds, "all questions", 1),
        _check_success(
            "success_at_5_report_half", half, bounds, "the questions kept from tuning", _HALF_FROM
        ),
        *(_check_loss(report, baseline, level, measure, bounds) for level, measure in _COMPARED),
        _check_share(
            "refusal_recall",
            refusal.recall,
            bounds.refusal_recall,
            "unanswerable questions that were refused",
        ),
        _at_least(
            "refusal_precision",
            refusal.precision,
            bounds.refusal_precision,
            f"{refusal.precision or 0:.3f} of the refusals were right",
            "nothing was refused and nothing had to be",
        ),
        _check_share(
            "answered", refusal.answered, bounds.answered, "answerable questions not refused"
        ),
        _check_leaks(report, bounds),
        _check_share(
            "selected_text_judged",
            judged,
            bounds.selected_text_judged,
            "selections rightly taken for an answer or for none",
        ),
        _check_latency(report, bounds),
    )


def _at_least(
    name: str, value: float | None, bound: float, sentence: str, unmeasured: str
) -> GateResult:
    """Judge a value by its lowest allowed one, in a sentence that says what was found."""
    if value is None:
        return GateResult(name, None, bound, passed=True, sentence=unmeasured)
    verdict = f"{sentence}, at least {bound:.2f} is asked for"
    return GateResult(name, value, bound, value >= bound, verdict)


def _check_success(
    name: str, summary: Summary, bounds: GateBounds, scope: str, lowest_count: int
) -> GateResult:
    interval = summary.get(DOCUMENT, {}).get(SUCCESS)
    count = interval.count if interval else 0
    if interval is None or count < lowest_count:
        why = f"Success@5: {count} answerable questions in {scope}, too few to judge"
        return GateResult(name, None, bounds.success_at_5, lowest_count > 1, why)
    found = describe_interval(interval)
    sentence = f"Success@5 (recall@5 of SC-001) at document level over {scope} is {found}"
    return _at_least(name, interval.mean, bounds.success_at_5, sentence, "")


def _check_share(name: str, share: Interval | None, bound: float, what: str) -> GateResult:
    found = "" if share is None else f"{describe_interval(share)} is the share of {what}"
    value = None if share is None else share.mean
    return _at_least(name, value, bound, found, f"no case to measure by: {what}")


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
        sentence = f"{measure} at {level} level was compared with nothing: {why}"
        return GateResult(name, None, bounds.significance, passed=True, sentence=sentence)
    test = compare_pairs([old for old, _ in pairs], [new for _, new in pairs])
    enough = len(pairs) >= _PAIRS_FROM
    notes = "" if enough else f"; fewer than {_PAIRS_FROM} questions cannot show one"
    gone = len(baseline.questions) - len(pairs) if baseline else 0
    notes += f"; {gone} accepted questions are not in this golden set any more" if gone else ""
    return GateResult(
        name,
        test.p_value if enough else None,
        bounds.significance,
        not (test.difference < 0 and test.p_value < bounds.significance),
        f"{measure} at {level} level changed by {test.difference:+.3f} against the accepted "
        f"baseline ({test.changed_count} of {test.pair_count} questions differ, "
        f"p = {test.p_value:.3f}); a loss with p < {bounds.significance:g} fails{notes}",
    )


def _check_leaks(report: EvaluationReport, bounds: GateBounds) -> GateResult:
    scores = report.selected_text
    value = scores.leak_count + scores.failure_count
    return GateResult(
        "selected_text_leaks",
        float(value) if scores.case_count else None,
        float(bounds.leak_count),
        value <= bounds.leak_count,
        f"{scores.leak_count} of {scores.case_count} selected-text cases returned text from "
        f"outside the selection and {scores.failure_count} failed, at most {bounds.leak_count} "
        "may",
    )


def _check_latency(report: EvaluationReport, bounds: GateBounds) -> GateResult:
    p95_ms = report.latency.p95_ms
    if p95_ms is None:
        why = "over 5% of the questions failed, so that no time holds for 95% of them"
        return GateResult("latency_p95", None, bounds.latency_p95_ms, passed=False, sentence=why)
    return GateResult(
        "latency_p95",
        p95_ms,
        bounds.latency_p95_ms,
        p95_ms <= bounds.latency_p95_ms,
        f"95% of retrievals took at most {p95_ms:.0f} ms, {bounds.latency_p95_ms:.0f} ms are "
        "allowed",
    )


def describe_interval(interval: Interval) -> str:
    """Write a mean with its 95% interval and count."""
    return (
        f"{interval.mean:.3f} (95% interval {interval.low:.3f} to {interval.high:.3f}, "
        f"n = {interval.count})"
    )
