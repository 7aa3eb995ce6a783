"""Evaluation measures, their means over questions, and whether two results differ."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from rag_pipeline.core.text.terms import find_token_ends
from rag_pipeline.evaluation.records import Interval, Spread
from rag_pipeline.ingestion.markdown.constructs.heading import HEADING
from rag_pipeline.ingestion.markdown.constructs.html import COMMENT, ESM
from rag_pipeline.ingestion.markdown.constructs.text import FRONT_MATTER, THEMATIC_BREAK

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from rag_pipeline.core.models import Heading, ParsedDoc
    from rag_pipeline.core.payload import ChunkMetadata
    from rag_pipeline.evaluation.golden_set import ExpectedSection, GoldenQuery
    from rag_pipeline.evaluation.records import (
        ExpectedPlace,
        QuestionResult,
        RetrievedChunk,
        Scores,
        Summary,
    )


# ruff: noqa: PLC0415  # scipy takes a second to import


_SEED: Final = 20260214
_RESAMPLES: Final = 5000  # with 100 questions, the ends of an interval then vary by under 0.005
_PERMUTATIONS: Final = 20_000  # up to 14 changed pairs have fewer sign patterns, so all are tried
_BATCH: Final = 500  # number of resamples that are in memory at once


def find_intervals(table: NDArray[np.float64]) -> list[Interval]:
    """Compute the mean and the 95% bootstrap interval (percentile method) of each column.

    Resampling a column of equal values would give an interval of width zero, which claims too much
    certainty. Such a column gets an interval as wide as Wilson's interval for a proportion of zero.
    Its part below the mean is proportional to the mean, and its part above to one minus the mean.

    Args:
        table: Shape (questions, measures), values 0 to 1, with at least one row.
    """
    from scipy import stats

    count = len(table)
    means = table.mean(axis=0)
    margin = stats.binomtest(0, count).proportion_ci(method="wilson").high
    lows, highs = means * (1 - margin), means + (1 - means) * margin
    varied = table.min(axis=0) < table.max(axis=0)
    if varied.any():
        lows[varied], highs[varied] = stats.bootstrap(
            (table[:, varied],),
            np.mean,
            n_resamples=_RESAMPLES,
            batch=_BATCH,
            method="percentile",
            rng=np.random.default_rng(_SEED),
        ).confidence_interval
    ends = np.column_stack([means, np.minimum(lows, means), np.maximum(highs, means)])
    return [Interval(mean, low, high, count) for mean, low, high in ends.tolist()]


def find_interval(values: Sequence[float | bool]) -> Interval | None:
    """Compute the mean and 95% bootstrap interval of the values; return None if there are none."""
    if not values:
        return None
    return find_intervals(np.array(values, dtype=np.float64)[:, np.newaxis])[0]


def find_spread(values: Sequence[float]) -> Spread | None:
    """Compute the mean, median and 95th percentile; return None if there are no values.

    Each of the three is None if it is infinite. Both percentiles are values of the sequence.
    """
    if not values:
        return None
    found = [np.mean(values), *np.percentile(values, [50, 95], method="inverted_cdf")]
    mean, p50, p95 = (float(value) if np.isfinite(value) else None for value in found)
    return Spread(mean, p50, p95, len(values))


def show_interval(interval: Interval | None) -> str:
    """Return the mean, the ends of the interval and the number of questions as a short text."""
    if interval is None:
        return "not measured"
    return f"{interval.mean:.3f} [{interval.low:.3f}, {interval.high:.3f}] n={interval.count}"


@dataclass(frozen=True, slots=True)
class PairedTest:
    """The outcome of a paired randomization test of old against new values.

    Attributes:
        difference: Mean of new minus old over all pairs.
        p_value: Two-sided p-value: the probability of a difference at least as large, in either
            direction, if old and new values were exchangeable.
        pair_count: Number of all pairs, including pairs of equal values.
        changed_count: Number of pairs of different values.
    """

    difference: float
    p_value: float
    pair_count: int
    changed_count: int


def compare_pairs(old: Sequence[float], new: Sequence[float]) -> PairedTest:
    """Test if the mean of paired values changed, with a two-sided paired randomization test.

    The test flips the signs of the pairs' differences. It tries all sign patterns if at most 14
    pairs differ, and draws 20,000 random patterns otherwise. The p-value is 1 if fewer than two
    pairs differ.

    Args:
        old: Old values.
        new: New values; new[i] is paired with old[i].

    Source:
        Smucker, Allan, Carterette: A Comparison of Statistical Significance Tests for Information
        Retrieval Evaluation, CIKM 2007.
    """
    from scipy import stats

    differences = np.subtract(new, old).astype(np.float64)
    changed = differences[differences != 0]
    p_value = 1.0
    if len(changed) > 1:
        p_value = stats.permutation_test(
            (changed,),
            lambda flipped, axis: np.abs(flipped.sum(axis=axis)),
            permutation_type="samples",
            alternative="greater",
            n_resamples=_PERMUTATIONS,
            batch=_BATCH,
            rng=np.random.default_rng(_SEED),
        ).pvalue
    difference = differences.mean() if len(differences) else 0.0
    return PairedTest(float(difference), float(p_value), len(differences), len(changed))


def correct_p_values(p_values: Sequence[float]) -> list[float]:
    """Return the p-values of several tests with Holm's correction, in the given order."""
    order = np.argsort(p_values, kind="stable")
    corrected = np.zeros(len(p_values))
    highest = 0.0
    for position, index in enumerate(order):
        highest = max(highest, min(1.0, p_values[index] * (len(p_values) - position)))
        corrected[index] = highest
    return corrected.tolist()


DOCUMENT: Final = "document"
SECTION: Final = "section"


Place: TypeAlias = "RetrievedChunk | SourcePlace | ChunkMetadata"
"""The location of a chunk in the book: its document, and the title and headings above it."""


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """The place of a source of an answer: its document, and the title and headings above it."""

    doc_path: str
    heading_breadcrumb: tuple[str, ...]

    @property
    def section_heading(self) -> str:
        """The nearest heading above the source."""
        return self.heading_breadcrumb[-1]


def hits_section(place: Place, expected: ExpectedSection | ExpectedPlace) -> bool:
    """Return True if a chunk belongs to an expected section or to one of its subsections.

    If the expected heading is the document's title, only chunks before the first other heading
    match, although the title begins the breadcrumb of every chunk.
    """
    if place.doc_path != expected.doc_path:
        return False
    heading = expected.section_heading
    return heading in (place.section_heading, *place.heading_breadcrumb[1:])


@dataclass(frozen=True, slots=True)
class Ranking:
    """The retrieved chunks of one question, compared with the expected documents or sections.

    An expected document or section is called a unit here.

    Attributes:
        units: Key of each expected unit, without repetition.
        hits: For each retrieved chunk, best first, the keys of the units that it belongs to. The
            unit with the chunk's own heading comes before the units of the sections around it.
        groups: Sets of unit keys. The question succeeds if a unit of each set is found.
    """

    units: tuple[str, ...]
    hits: tuple[tuple[str, ...], ...]
    groups: tuple[frozenset[str], ...]

    def succeeds(self, depth: int) -> bool:
        """Return True if the first `depth` chunks hit at least one unit of each group."""
        found = {unit for hit in self.hits[:depth] for unit in hit}
        return all(group & found for group in self.groups)

    def first_rank(self, unit: str) -> int | None:
        """Return the rank, from 1, of the first chunk that hits a unit; None without a hit."""
        return next((rank for rank, hit in enumerate(self.hits, 1) if unit in hit), None)


def rank_hits(query: GoldenQuery, places: Sequence[Place], level: str) -> Ranking:
    """Compare retrieved chunks with the documents or sections that a question expects.

    Args:
        query: A question with at least one expected section.
        places: Locations of the retrieved chunks, best first.
        level: DOCUMENT to compare only documents, SECTION to compare sections.
    """
    keys = {section: name_unit(section, level) for section in query.expected}
    hits = tuple(
        tuple(
            dict.fromkeys(
                keys[section]
                for section in sorted(
                    query.expected, key=lambda one: one.section_heading != place.section_heading
                )
                if (
                    place.doc_path == section.doc_path
                    if level == DOCUMENT
                    else hits_section(place, section)
                )
            )
        )
        for place in places
    )
    return Ranking(tuple(dict.fromkeys(keys.values())), hits, _group_units(query, keys))


def name_unit(section: ExpectedSection, level: str) -> str:
    """Return the key by which an expected section is counted at a level.

    The key is the document's path at DOCUMENT level, and `path#heading` at SECTION level.
    """
    return f"{section.doc_path}#{section.section_heading}" if level == SECTION else section.doc_path


def _group_units(
    query: GoldenQuery, keys: Mapping[ExpectedSection, str]
) -> tuple[frozenset[str], ...]:
    """Return the groups of expected units; a question succeeds if a unit of each group is found.

    Normally all units form one group. With `all_of`, sections with the same group name form one
    group, and each unit without a group name forms its own group.
    """
    groups: dict[tuple[str | None, str], set[str]] = {}
    for section, key in keys.items():
        name = (section.group, "" if section.group else key) if query.all_of else (None, "")
        groups.setdefault(name, set()).add(key)
    return tuple(frozenset(units) for units in groups.values())


SUCCESS: Final = "Success@5"
RECALL: Final = "recall@5"
NDCG: Final = "nDCG@10"
_MEASURES: Final = (SUCCESS, RECALL, "R@5", "P@5", "RR@10", NDCG)
CONTEXT_BUDGETS_TOKENS: Final = (1000, 2000)
_FLAG_BELOW: Final = 0.5  # for recall@5, as tasks.md T050 asks
_DEEPEST: Final = 6  # level of the deepest headings
_DEPTH: Final = 5  # number of best chunks that most measures look at
_NO_TEXT_KINDS: Final = frozenset(
    construct.name for construct in (HEADING, FRONT_MATTER, ESM, COMMENT, THEMATIC_BREAK)
)


def score_rankings(rankings: Mapping[str, Ranking]) -> dict[str, dict[str, float]]:
    """Compute Success@5 (also named recall@5), R@5, P@5, RR@10 and nDCG@10 of each question.

    Success, P (precision) and RR (reciprocal rank) count chunks: a chunk is relevant if it belongs
    to any expected document or section. For an `all_of` question, Success needs a hit in each
    group. R (recall) and nDCG count expected documents or sections: each counts at the rank of the
    first chunk that finds it, and each chunk counts for at most one. Further chunks of a section
    that was already found add nothing.

    Args:
        rankings: Rankings of answerable questions, by question id.

    Returns:
        Values from 0 to 1, by question id and name of the measure.

    Source:
        The measures are those of ir-measures. The specification's SC-001 calls Success@5 recall@5
        (ADR 9).
    """
    import ir_measures as ir  # only the `pipeline` extra has it

    scores = {
        query_id: dict.fromkeys(_MEASURES, 0.0)
        | dict.fromkeys((SUCCESS, RECALL), float(ranking.succeeds(_DEPTH)))
        for query_id, ranking in rankings.items()
    }
    for list_hits, measures in (
        (_list_chunk_hits, (ir.P @ 5, ir.RR @ 10)),
        (_list_unit_hits, (ir.R @ 5, ir.nDCG @ 10)),
    ):
        qrels, run = [], []
        for query_id, ranking in rankings.items():
            names = list_hits(ranking)
            relevant = {*ranking.units, *(name for name in names if name.startswith("hit "))}
            qrels += [ir.Qrel(query_id, name, 1) for name in relevant]
            run += [ir.ScoredDoc(query_id, name, -rank) for rank, name in enumerate(names)]
        for query_id, measure, value in ir.iter_calc(measures, qrels, run) if qrels else ():
            scores[query_id][str(measure)] = float(value)
    return scores


def _list_chunk_hits(ranking: Ranking) -> list[str]:
    return [f"hit {rank}" if hit else f"miss {rank}" for rank, hit in enumerate(ranking.hits)]


def _list_unit_hits(ranking: Ranking) -> list[str]:
    found: list[str] = []
    for rank, hit in enumerate(ranking.hits):
        found.append(next((unit for unit in hit if unit not in found), f"miss {rank}"))
    return found


def score_budgets(ranking: Ranking, retrieved: Sequence[RetrievedChunk]) -> dict[str, float]:
    """Compute a question's success within the first 1,000 and the first 2,000 tokens of chunks.

    A budget is filled with whole chunks, best first, until the next chunk does not fit. Small and
    large chunks are compared fairly at equal numbers of tokens, not of chunks.

    Returns:
        1.0 for success and 0.0 otherwise, by the name of the measure (`Success@1000tok`).
    """
    sizes = np.cumsum([chunk.token_count for chunk in retrieved])
    return {
        name_budget(budget): float(ranking.succeeds(int((sizes <= budget).sum())))
        for budget in CONTEXT_BUDGETS_TOKENS
    }


def name_budget(tokens: int) -> str:
    """Return the name of the measure of success within a number of tokens: `Success@1000tok`."""
    return f"Success@{tokens}tok"


class TokenMap:
    """The tokens of a document's source, located by byte offset.

    Tokens of headings, front matter, comments and other blocks without text are ignored. A
    chunker is therefore not rewarded or punished for repeating headings.
    """

    def __init__(self, parsed: ParsedDoc) -> None:
        self._parsed = parsed
        self._ends = np.array(find_token_ends(parsed.source), dtype=np.int64)
        self._counts = np.zeros(len(self._ends), dtype=np.bool_)
        for block in parsed.blocks:
            if block.kind not in _NO_TEXT_KINDS:
                self._counts |= self._within(block.start_byte, block.end_byte)

    def find_span(self, start_byte: int, end_byte: int) -> NDArray[np.bool_]:
        """Return a boolean array that marks the counted tokens that end within a span of bytes.

        The array has an item for each token of the document's source.
        """
        return self._counts & self._within(start_byte, end_byte)

    def find_section(self, heading: str) -> NDArray[np.bool_]:
        """Return a boolean array that marks the counted tokens of a section and its subsections.

        If several headings have this text, the sections of all of them are marked. The document's
        title stands for the text before the first other heading, as in `matching.hits_section`.
        No token is marked if the document does not have the heading.
        """
        document, blocks = self._parsed.document, self._parsed.blocks
        starts = [
            (block.start_byte, block.heading) for block in blocks if block.heading is not None
        ]
        places = [(at, document.headings[index]) for at, index in starts]
        flags = np.zeros(len(self._ends), dtype=np.bool_)
        for position, (start, own) in enumerate(places):
            if own.text == heading:
                is_title = own.level == 1 and own.text == document.title
                lowest = _DEEPEST if is_title else own.level
                flags |= self.find_span(start, self._end_of(places[position + 1 :], lowest))
        if heading == document.title:
            flags |= self.find_span(0, self._end_of(places, _DEEPEST))
        return flags

    def _within(self, start_byte: int, end_byte: int) -> NDArray[np.bool_]:
        return (self._ends > start_byte) & (self._ends <= end_byte)

    def _end_of(self, following: Iterable[tuple[int, Heading]], lowest: int) -> int:
        last = int(self._ends[-1]) if len(self._ends) else 0
        return next((start for start, heading in following if heading.level <= lowest), last)


def score_spans(
    expected: Sequence[ExpectedSection],
    retrieved: Sequence[RetrievedChunk],
    maps: Mapping[str, TokenMap],
) -> dict[str, float]:
    """Compute how well the first five chunks cover the text of the expected sections, in tokens.

    A token that two chunks contain counts once as found but twice as returned, so that overlapping
    chunks lower precision. Chunks of documents that `maps` lacks count as returned, never as found.

    Args:
        expected: The expected sections.
        retrieved: Retrieved chunks, best first.
        maps: Token map of each document by path, including every expected document.

    Returns:
        `recall@5`, `precision@5` and `IoU@5` (intersection over union), each 0 to 1.

    Source:
        Token-wise measures: Smith, Troynikov: Evaluating Chunking Strategies for Retrieval, Chroma
        technical report, 2024.
    """
    wanted: dict[str, NDArray[np.bool_]] = {}
    for section in expected:
        flags = maps[section.doc_path].find_section(section.section_heading)
        wanted[section.doc_path] = wanted.get(section.doc_path, np.zeros_like(flags)) | flags
    found = {path: np.zeros_like(flags) for path, flags in wanted.items()}
    returned_count = 0
    for chunk in retrieved[:_DEPTH]:
        token_map = maps.get(chunk.doc_path)
        if token_map is None:
            returned_count += chunk.token_count
            continue
        flags = token_map.find_span(chunk.start_byte, chunk.end_byte)
        returned_count += int(flags.sum())
        if chunk.doc_path in wanted:
            found[chunk.doc_path] |= flags & wanted[chunk.doc_path]
    wanted_count = sum(int(flags.sum()) for flags in wanted.values())
    found_count = sum(int(flags.sum()) for flags in found.values())
    return {
        "recall@5": _divide(found_count, wanted_count),
        "precision@5": _divide(found_count, returned_count),
        "IoU@5": _divide(found_count, wanted_count + returned_count - found_count),
    }


def _divide(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def is_flagged(scores: Scores) -> bool:
    """Return True if a question's recall@5 at document level is below 0.5; reports point it out.

    A question without scores is not flagged.
    """
    return scores.get("document", {}).get(RECALL, 1.0) < _FLAG_BELOW


def summarize(questions: Sequence[QuestionResult]) -> Summary:
    """Compute the mean and 95% interval of every measure over the answerable questions.

    Returns:
        Intervals by level and measure; empty if no question is answerable.
    """
    scored = [question.scores for question in questions if question.scores]
    if not scored:
        return {}
    columns = [(level, measure) for level, values in scored[0].items() for measure in values]
    table = np.array([[scores[level][measure] for level, measure in columns] for scores in scored])
    summary: dict[str, dict[str, Interval]] = defaultdict(dict)
    for (level, measure), interval in zip(columns, find_intervals(table), strict=True):
        summary[level][measure] = interval
    return dict(summary)


def summarize_by(
    questions: Sequence[QuestionResult], names_of: Callable[[QuestionResult], Iterable[str]]
) -> dict[str, Summary]:
    """Compute a summary of every measure for each group of questions.

    Args:
        questions: Results of questions.
        names_of: Returns the names of the groups that a question belongs to.

    Returns:
        Summaries by group name, in alphabetical order. Groups without answerable questions are
        left out.
    """
    groups: dict[str, list[QuestionResult]] = defaultdict(list)
    for question in questions:
        for name in names_of(question):
            groups[name].append(question)
    summaries = {name: summarize(groups[name]) for name in sorted(groups)}
    return {name: summary for name, summary in summaries.items() if summary}
