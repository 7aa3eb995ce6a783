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
    from collections.abc import Iterator, Sequence

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


@dataclass(frozen=True, slots=True)
class Gate:
    """The declaration of a quality gate.

    Attributes:
        condition: The condition as a sentence.
        bound: The lowest allowed value; the highest one for a time and for a number of cases. A
            loss against the baseline fails its gate if its p-value is below the bound.
        cases: For a gate on a share: the cases that count, as in "questions that were refused".

    Source:
        The specification's success criteria SC-001 (success_at_5) and SC-006 (latency_p95).
    """

    condition: str
    bound: float
    cases: str = ""


GATES: Final = {
    "success_at_5": Gate(
        "Success@5 of documents over all questions is at least 0.90 (SC-001).", 0.90
    ),
    "success_at_5_report_half": Gate(
        "Success@5 of documents over the report half is at least 0.90.", 0.90
    ),
    "no_loss_document_success_at_5": Gate(
        "Document Success@5 is not significantly below the baseline.", 0.05
    ),
    "no_loss_section_ndcg_at_10": Gate(
        "Section nDCG@10 is not significantly below the baseline.", 0.05
    ),
    "refusal_recall": Gate(
        "Most questions that the book does not answer are refused.",
        0.60,
        "unanswerable questions that were refused",
    ),
    # Unlike `answered`, this value also depends on how many unanswerable questions the set has.
    "refusal_precision": Gate("Most refused questions have no answer in the book.", 0.50),
    "answered": Gate(
        "Most questions that the book answers are not refused.",
        0.90,
        "answerable questions not refused",
    ),
    "latency_p95": Gate("95% of the retrievals take at most 5 seconds (SC-006).", 5000.0),
}
"""The gates of `check_gates` by name, in their order. The bound of the latency is milliseconds."""

CONVERSATION_GATES: Final = {
    "follow_ups_found": Gate(
        "Most follow-up questions find their page, without a model.",
        0.90,
        f"follow-ups of the report half that find a right page among {FOLLOW_UP_DEPTH} passages",
    ),
}
"""The gate of `check_conversations` by name."""

ANSWER_GATES: Final = {
    "answer_leaks": Gate("No answer about a selection contains text from outside it (SC-002).", 0),
    "facts_without_model": Gate(
        "Answers without a model contain the facts for most questions.",
        0.78,
        f"questions of the report half (at least {HALF_FROM} are needed) whose answer without a "
        "model contains all facts",
    ),
    "terms_defined": Gate(
        'The answer to "What is ...?" defines most terms of the glossary.',
        0.95,
        "glossary terms that the main passage defines",
    ),
    "terms_explained": Gate("No such answer begins with a heading, code or a quiz.", 0),
    "selections_answered": Gate(
        "Most questions that the selection answers are answered.",
        0.93,
        "selections answered among those that contain the answer",
    ),
    "selections_refused": Gate(
        "Most questions that the selection does not answer are refused.",
        0.90,
        "selections refused among those that do not contain the answer",
    ),
    "passages_whole": Gate(
        "All quoted passages are whole blocks of their document.",
        1.0,
        "quoted passages that are whole blocks of their document",
    ),
    "model_answers": Gate(
        "The model fails for hardly any question.",
        0.98,
        "questions for which the model did not fail",
    ),
    "model_accepts": Gate(
        "The model declines hardly any question that the passages answer.",
        0.9,
        "answerable questions that the model did not decline",
    ),
    "sentences_grounded": Gate(
        "Most sentences of the model stand in the sources.",
        0.8,
        "sentences of the model that stand in the sources",
    ),
    "sentences_cited": Gate(
        "The model itself cites most of its sentences.",
        0.8,
        "sentences that the model cited itself",
    ),
}
"""The gates of `check_answers` by name, in their order."""

ALL_GATES: Final = GATES | ANSWER_GATES | CONVERSATION_GATES


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


def check_gates(report: EvaluationReport, baseline: Baseline | None) -> tuple[GateResult, ...]:
    """Check a report against all quality gates; return a result per gate, in the order of `GATES`.

    A gate with too few cases passes and is reported as "not measured", with two exceptions:
    `success_at_5` fails without answerable questions, and `latency_p95` fails if so many retrievals
    failed that there is no percentile.

    Args:
        report: The evaluation to check.
        baseline: The accepted evaluation to compare with; None if none was accepted yet.
    """
    refusal = report.refusal["all"]
    half = report.halves.get(REPORT_HALF, {})
    return (
        _check_success("success_at_5", report.overall, "the golden set", 1),
        _check_success("success_at_5_report_half", half, "the report half", HALF_FROM),
        *(_check_loss(report, baseline, level, measure) for level, measure in _COMPARED),
        _check_share("refusal_recall", refusal.recall),
        _at_least(
            "refusal_precision",
            refusal.precision,
            f"the share of refusals that were right is {refusal.precision or 0:.3f}",
            "no question was refused, and none had to be",
        ),
        _check_share("answered", refusal.answered),
        _check_latency(report),
    )


def _at_least(name: str, value: float | None, sentence: str, unmeasured: str) -> GateResult:
    """Return the result of a gate whose value must be at least its bound.

    If the value is None, the gate passes as "not measured", and `unmeasured` is the sentence that
    says why.
    """
    bound = ALL_GATES[name].bound
    if value is None:
        return GateResult(name, None, bound, passed=True, sentence=unmeasured)
    verdict = f"{sentence}; the lowest allowed value is {bound:.2f}"
    return GateResult(name, value, bound, value >= bound, verdict)


def _at_most(name: str, count: int | None, sentence: str) -> GateResult:
    """Return the result of a gate with a highest allowed number; None is not measured."""
    gate = ALL_GATES[name]
    if count is None:
        return _at_least(name, None, "", f"there are no cases to measure: {gate.condition}")
    verdict = f"{sentence}; the highest allowed number is {gate.bound}"
    return GateResult(name, float(count), float(gate.bound), count <= gate.bound, verdict)


def _check_share(name: str, share: Interval | None, detail: str = "") -> GateResult:
    """Return the result of a gate whose share must be at least its bound; None is not measured."""
    what = f"the share of {ALL_GATES[name].cases}{detail}"
    if share is None:
        return _at_least(name, None, "", f"there are no cases to measure {what}")
    return _at_least(name, share.mean, f"{what} is {_describe_interval(share)}", "")


def _check_success(name: str, summary: Summary, scope: str, lowest_count: int) -> GateResult:
    interval = summary.get(DOCUMENT, {}).get(SUCCESS)
    count = interval.count if interval else 0
    if interval is None or count < lowest_count:
        why = f"Success@5 was not measured: {scope} has only {count} answerable questions"
        return GateResult(name, None, GATES[name].bound, lowest_count > 1, why)
    found = _describe_interval(interval)
    sentence = f"Success@5 (recall@5 of SC-001) at document level over {scope} is {found}"
    return _at_least(name, interval.mean, sentence, "")


def _check_loss(
    report: EvaluationReport, baseline: Baseline | None, level: str, measure: str
) -> GateResult:
    name = f"no_loss_{level}_{measure.lower().replace('@', '_at_')}"
    bound = GATES[name].bound
    pairs = [] if baseline is None else baseline.pair_with(report, level, measure)
    if not pairs:
        why = (
            "no baseline was accepted yet"
            if baseline is None
            else "the accepted baseline has no question in common with this golden set"
        )
        sentence = f"{measure} at {level} level was not compared: {why}"
        return GateResult(name, None, bound, passed=True, sentence=sentence)
    test = compare_pairs([old for old, _ in pairs], [new for _, new in pairs])
    enough = len(pairs) >= _PAIRS_FROM
    notes = "" if enough else f"; fewer than {_PAIRS_FROM} questions cannot show a loss"
    gone = len(baseline.questions) - len(pairs) if baseline else 0
    notes += f"; {gone} questions of the baseline are missing or changed" if gone else ""
    return GateResult(
        name,
        test.p_value if enough else None,
        bound,
        not (test.difference < 0 and test.p_value < bound),
        f"{measure} at {level} level changed by {test.difference:+.3f} against the accepted "
        f"baseline ({test.changed_count} of {test.pair_count} questions differ, "
        f"p = {test.p_value:.3f}); a loss with p < {bound:g} fails{notes}",
    )


def _check_latency(report: EvaluationReport) -> GateResult:
    name, p95_ms = "latency_p95", report.latency.p95_ms
    bound = GATES[name].bound
    if p95_ms is None:
        why = "over 5% of the questions failed, so that the 95th percentile has no value"
        return GateResult(name, None, bound, passed=False, sentence=why)
    sentence = f"95% of retrievals took at most {p95_ms:.0f} ms; {bound:.0f} ms are allowed"
    return GateResult(name, p95_ms, bound, p95_ms <= bound, sentence)


def _describe_interval(interval: Interval) -> str:
    """Format a mean, its 95% interval and the number of questions as text for a sentence."""
    return (
        f"{interval.mean:.3f} (95% interval {interval.low:.3f} to {interval.high:.3f}, "
        f"n = {interval.count})"
    )


def check_conversations(results: Sequence[ConversationResult]) -> GateResult:
    """Check that enough follow-ups of the report half find a right page; see `CONVERSATION_GATES`.

    The gate passes as "not measured" if there are no results.
    """
    counted = [
        one
        for one in results
        if one.conversation.half == REPORT_HALF and one.conversation.kind == "follow_up"
    ]
    alone = sum(one.found_alone for one in counted)
    found = find_interval([one.found for one in counted])
    return _check_share("follow_ups_found", found, f" ({alone} of {len(counted)} do as asked)")


def check_answers(report: AnswersReport) -> tuple[GateResult, ...]:
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
            f"{selected.leak_count} of {selected.case_count} answers about a selection contain "
            f"text from outside it and {selected.failure_count} failed",
        ),
        _check_share(
            "facts_without_model", facts if quoted and facts and facts.count >= HALF_FROM else None
        ),
        _check_share("terms_defined", terms.defined if quoted else None),
        _at_most(
            "terms_explained",
            terms.flawed if quoted and terms.defined else None,
            f"{terms.flawed} main passages about glossary terms are a heading, code or a quiz",
        ),
        _check_share("selections_answered", selected.related_answered),
        _check_share("selections_refused", selected.unrelated_refused),
        _check_share("passages_whole", report.whole),
        *_check_model(report),
    )


_DECLINED: Final = frozenset({"model_declined"})
_MODEL_NOTICES: Final = frozenset({"model_declined", "not_grounded"})
"""Notices of an answer that a model should have written."""


def _check_model(report: AnswersReport) -> Iterator[GateResult]:
    """Check the answers that a model wrote or should have written."""
    asked = [
        one
        for one in report.questions
        if report.model is not None
        and (one.kind in {"generated", None} or not _MODEL_NOTICES.isdisjoint(one.notices))
    ]
    answered = [one for one in asked if one.error is None]
    sentences = [(number, one) for one in answered for number in range(one.sentence_count)]
    cases = {
        "model_answers": [one.error is None for one in asked],
        "model_accepts": [_DECLINED.isdisjoint(one.notices) for one in answered if one.answerable],
        "sentences_grounded": [number >= len(one.unsupported) for number, one in sentences],
        "sentences_cited": [number < one.cited_count for number, one in sentences],
    }
    for name, found in cases.items():
        yield _check_share(name, find_interval(found))
