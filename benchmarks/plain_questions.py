"""Measure answers to plain questions, as students type them, on the textbook or another site.

    python -m benchmarks.plain_questions [--site jest --docs-dir D --data-dir X] [--half tune]

Ingest the site's docs folder first. The questions are in benchmarks/plain, and its README says how
to get the sites. No model writes the answers. The columns are: the number of questions, a right
section among the first 1, 5 and 10 chunks, a first passage from a right section, all facts in the
answer, and the answers of each level. The last rows are the questions that the site does not
answer, for which only the levels count. `--list` prints each question with its answer's place.
"""

from __future__ import annotations

import argparse
import os
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering import open_assistant
from rag_pipeline.core.settings import load_settings
from rag_pipeline.evaluation.answers import find_facts
from rag_pipeline.evaluation.golden_set import load_golden_set
from rag_pipeline.evaluation.measures import find_interval, show
from rag_pipeline.evaluation.metrics import SECTION, rank_hits
from rag_pipeline.evaluation.records import SourcePlace, hits_section
from rag_pipeline.retrieval import Query

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.answering.assistant import Assistant
    from rag_pipeline.evaluation.golden_set import GoldenQuery

SITES: Final = {path.stem: path for path in Path(__file__).parent.glob("plain/*.json")}
DEPTHS: Final = (1, 5, 10)
LEVELS: Final = ("answered", "closest_passages", "not_covered")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer to a question, compared with what the question expects."""

    query: GoldenQuery
    found: tuple[bool, ...]
    passage: bool
    facts: bool
    level: str
    confidence: float
    place: str


def ask(assistant: Assistant, query: GoldenQuery) -> Outcome:
    """Search and answer one question."""
    hits = assistant.retriever.retrieve(Query(query.question, top_k=max(DEPTHS))).chunks
    ranking = rank_hits(query, [hit.metadata for hit in hits], SECTION) if query.expected else None
    answer = assistant.answer(Query(query.question))
    grounding, first = answer.grounding, answer.passages[0] if answer.passages else None
    source = next((one for one in grounding.sources if first and one.number == first.number), None)
    place = SourcePlace(source.doc_path, source.headings) if source else None
    return Outcome(
        query,
        tuple(ranking is not None and ranking.succeeds(depth) for depth in DEPTHS),
        place is not None and any(hits_section(place, one) for one in query.expected),
        not find_facts(query.facts, answer.text)[1],
        grounding.level.value,
        grounding.confidence or 0.0,
        f"{place.doc_path} > {place.section_heading}" if place else "",
    )


def print_row(name: str, outcomes: Sequence[Outcome]) -> None:
    """Print the shares of a group of outcomes."""
    count = len(outcomes)
    measured = [
        *([one.found[at] for one in outcomes] for at in range(len(DEPTHS))),
        [one.passage for one in outcomes],
        [one.facts for one in outcomes],
    ]
    shares = [f"{sum(found) / count:7.2f}" for found in measured]
    if not outcomes[0].query.expected:
        shares = [" " * 7] * len(shares)
    levels = [sum(one.level == level for one in outcomes) / count for level in LEVELS]
    print(f"{name:20}{count:5}" + "".join(shares) + "".join(f"{share:9.2f}" for share in levels))


def main() -> None:
    """Ask the questions of a site and print the shares for each kind of question and together."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--site", default="textbook", choices=sorted(SITES))
    parser.add_argument("--docs-dir", help="docs folder of the site")
    parser.add_argument("--data-dir", help="data folder with the ingested site")
    parser.add_argument("--half", choices=["tune", "report"], help="only this half")
    parser.add_argument("--list", action="store_true", help="print each question too")
    options = parser.parse_args()
    golden = load_golden_set(SITES[options.site])
    queries = [one for one in golden.queries if options.half in (None, one.half)]
    settings = load_settings(docs_dir=options.docs_dir, data_dir=options.data_dir)
    assistant = open_assistant(settings)
    started = os.times()
    outcomes = [ask(assistant, query) for query in queries]
    ended = os.times()
    assistant.close()
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for one in outcomes:
        groups[one.query.category].append(one)
    heads = [f"in {depth}" for depth in DEPTHS] + ["first", "facts"]
    print(f"{options.site:20}    n" + "".join(f"{head:>7}" for head in heads), end="")
    print("".join(f"{level.split('_')[0]:>9}" for level in LEVELS))
    for name in sorted(groups):
        print_row(name, groups[name])
    right = [one for one in outcomes if one.query.expected]
    print_row("all answerable", right)
    print("first:", show(find_interval([one.passage for one in right])))
    print("facts:", show(find_interval([one.facts for one in right])))
    spent = ended.user + ended.system - started.user - started.system
    print(f"CPU for each question: {1000 * spent / len(outcomes):.0f} ms")
    for one in outcomes if options.list else ():
        marks = "".join("-+"[mark] for mark in (*one.found, one.passage, one.facts))
        print(f"{marks} {one.level:16} {one.confidence:.2f} {one.query.question} | {one.place}")


if __name__ == "__main__":
    main()
