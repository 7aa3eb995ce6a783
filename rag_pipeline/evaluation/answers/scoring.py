"""Scores of answers, computed from the golden set and the answers that a reader would see."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from rag_pipeline.answering.quoting.passages import REFERRING_WORDS
from rag_pipeline.evaluation.answers.records import (
    AnswerScores,
    DefinitionScores,
    SelectionScores,
    Spread,
)
from rag_pipeline.evaluation.significance import find_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rag_pipeline.evaluation.answers.records import (
        AnswerResult,
        DefinitionAnswer,
        SelectionAnswer,
    )
    from rag_pipeline.evaluation.records import Interval

DANGLING: Final = re.compile(rf"(?:{REFERRING_WORDS})\b", re.IGNORECASE)
"""Pronouns and connectives that refer to a text before them, which the reader does not see."""

_CITATION: Final = re.compile(r"[ \t]*(?<![\w\])])\[\d{1,3}\]")
_ADDRESS: Final = re.compile(r"\]\([^()\s]*\)")
_MARKUP: Final = re.compile(r"(?:[-*+>]|\d+[.)])[ \t]+|[*_]+(?=\w)")
"""A list mark, a quote mark or emphasis before the first word of an answer."""


def remove_citations(text: str) -> str:
    """Return an answer's text without citations such as `[1]`.

    A bracket directly after a word, such as `values[1]`, is not a citation.
    """
    return _CITATION.sub("", text)


def find_facts(facts: Iterable[str], text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the facts that occur in an answer's text, and those that are missing from it.

    Letter case, citations, the addresses of links and the kind and amount of white space do not
    matter.

    Args:
        facts: Regular expressions.
        text: The text of the answer.
    """
    shown = " ".join(_ADDRESS.sub("]", remove_citations(text)).split())
    found = tuple(fact for fact in facts if re.search(fact, shown, re.IGNORECASE))
    return found, tuple(fact for fact in facts if fact not in found)


def count_words(text: str) -> int:
    """Return the number of words between white space in an answer's text, without citations."""
    return len(remove_citations(text).split())


def begins_dangling(text: str) -> bool:
    """Return True if the first word of an answer's text is one of the words in `DANGLING`.

    List marks, quote marks and emphasis before the first word are skipped. A text that begins with
    a heading, a code block, code or a quotation mark is not dangling.
    """
    start = text.lstrip()
    while markup := _MARKUP.match(start):
        start = start[markup.end() :]
    return DANGLING.match(start) is not None


def score_answers(results: Sequence[AnswerResult]) -> AnswerScores:
    """Compute the measures of a group of answers.

    A failed question counts as one whose facts are missing, and as not refused.
    """
    answers = [result for result in results if result.answered]
    supported = [
        number >= len(answer.unsupported)
        for answer in answers
        for number in range(answer.sentence_count)
    ]
    return AnswerScores(
        question_count=len(results),
        facts=find_interval([not one.facts_missed for one in results if one.has_facts]),
        wrongly_refused=find_interval([one.refused for one in results if one.answerable]),
        rightly_refused=find_interval([one.refused for one in results if not one.answerable]),
        dangling=find_interval([one.dangling for one in answers]),
        supported=find_interval(supported),
        words=find_spread([one.word_count for one in answers]),
        sections=find_spread([len(one.sections) for one in answers]),
    )


def score_by(
    results: Sequence[AnswerResult], name_group: Callable[[AnswerResult], str]
) -> dict[str, AnswerScores]:
    """Compute the measures of each group of answers, by the sorted names of the groups."""
    groups: dict[str, list[AnswerResult]] = {}
    for result in results:
        groups.setdefault(name_group(result), []).append(result)
    return {name: score_answers(groups[name]) for name in sorted(groups)}


def score_selections(selections: Sequence[SelectionAnswer]) -> SelectionScores:
    """Compute the measures of the answers to selected-text cases.

    A failed case counts as neither answered nor refused.
    """
    related = [one for one in selections if one.relation == "related"]
    unrelated = [one for one in selections if one.relation == "unrelated"]
    return SelectionScores(
        case_count=len(selections),
        leak_count=sum(bool(one.leaks) for one in selections),
        failure_count=sum(one.error is not None for one in selections),
        related_answered=find_interval([one.answered for one in related]),
        unrelated_refused=find_interval([one.refused for one in unrelated]),
    )


def score_definitions(terms: Sequence[DefinitionAnswer]) -> DefinitionScores:
    """Compute the measures of the answers about terms. A failed term counts as not defined."""
    return DefinitionScores(
        find_interval([one.defined for one in terms]),
        sum(one.flaw is not None for one in terms),
    )


def score_passages(answers: Sequence[AnswerResult | SelectionAnswer]) -> Interval | None:
    """Compute the share of quoted passages that are whole; None if no answer is extracted.

    An extracted answer without passages counts as one that is not whole.
    """
    extracted = [answer for answer in answers if answer.kind == "extracted"]
    return find_interval(
        [
            number >= len(answer.broken_passages) and answer.passage_count > 0
            for answer in extracted
            for number in range(max(answer.passage_count, 1))
        ]
    )


def score_latency(results: Sequence[AnswerResult]) -> dict[str, Spread]:
    """Compute the spread of the answering times, under `all` and by kind of answer.

    Failed questions are only in `all`, where they count as slower than any other question.
    """
    times: dict[str, list[float]] = {"all": []}
    for result in results:
        times["all"].append(np.inf if result.error is not None else result.latency_ms)
        if result.kind is not None:
            times.setdefault(result.kind, []).append(result.latency_ms)
    spreads = {name: find_spread(values) for name, values in times.items()}
    return {name: spread for name, spread in spreads.items() if spread is not None}


def find_spread(values: Sequence[float]) -> Spread | None:
    """Compute the mean, median and 95th percentile; return None if there are no values.

    Each of the three is None if it is infinite. Both percentiles are values of the sequence.
    """
    if not values:
        return None
    found = [np.mean(values), *np.percentile(values, [50, 95], method="inverted_cdf")]
    mean, p50, p95 = (float(value) if np.isfinite(value) else None for value in found)
    return Spread(mean, p50, p95, len(values))
