"""Print what retrieval finds on a book, and what each confidence threshold would refuse.

Use it to choose the thresholds in `answering.confidence`. Run it on the ingested book:

    .venv/bin/python -m benchmarks.grounding_curve

or on another ingested book with its own questions: a test set in the format of the golden set, such
as benchmarks/sites/mastra.json, or a list in `calibration_questions.toml` of the tests:

    .venv/bin/python -m benchmarks.grounding_curve --docs-dir D --data-dir X --questions mastra

The field `docs` of a test set names the package whose pages it belongs to. The results are recorded
in docs/adr/0028-sections-of-every-level-and-100-candidates.md.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.confidence import (
    LEXICAL_RULE,
    GroundingRule,
    choose_rule,
    measure_signals,
)
from rag_pipeline.core.settings import load_settings
from rag_pipeline.evaluation.golden_set import QUESTIONS_PATH, load_golden_set
from rag_pipeline.evaluation.metrics import DOCUMENT, SECTION, rank_hits
from rag_pipeline.retrieval import Query, Retriever, open_retriever
from rag_pipeline_tests.answering.questions import load_questions

if TYPE_CHECKING:
    from rag_pipeline.evaluation.golden_set import GoldenQuery

SITES: Final = {path.stem: path for path in Path(__file__).parent.glob("sites/*.json")}
LEVELS: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
EXTRA: Final[dict[str, list[str]]] = load_questions("calibration")
FOREIGN: Final = ("rust-book", "embedded-book", "nomicon")


def read_questions(name: str) -> tuple[dict[str, list[str]], dict[str, list[GoldenQuery]]]:
    """Return the questions of a set by group, and the answerable ones with their sections.

    The groups are `answerable`, `near` (unanswerable, but about a similar subject) and `far`
    (unanswerable, about another subject). A test set has one of each for each half, and the groups
    of its answerable questions also name their wording: `plain` or `reworded`.

    Args:
        name: `golden` for the golden set, the name of a file in benchmarks/sites, or a name in
            `FOREIGN` for another book. The second result is empty for the last kind.
    """
    if name in FOREIGN:
        key = name.replace("-", "_")
        near = EXTRA[f"{key}_near"]
        return {"answerable": EXTRA[key], "near": near, "far": EXTRA["far"]}, {}
    groups: dict[str, list[str]] = defaultdict(list)
    expected: dict[str, list[GoldenQuery]] = defaultdict(list)
    for query in load_golden_set(SITES.get(name, QUESTIONS_PATH)).queries:
        if not query.expected:
            kind = query.category.removeprefix("unanswerable-")
            groups[f"{kind} {query.half}"].append(query.question)
            continue
        wording = query.category if name in SITES else "plain"
        expected[f"answerable {query.half} {wording}"].append(query)
        if query.paraphrase:
            hard = replace(query, question=query.paraphrase)
            expected[f"answerable {query.half} reworded"].append(hard)
    groups |= {group: [query.question for query in own] for group, own in expected.items()}
    groups["far extra"] = EXTRA["far"]
    if name not in SITES:
        groups["near extra"] = EXTRA["near"]
    return groups, expected


def measure_success(retriever: Retriever, queries: list[GoldenQuery], level: str) -> float:
    """Return the share of questions with a right document or section among the first five hits."""
    found = [
        rank_hits(query, [hit.metadata for hit in result.chunks], level).succeeds(5)
        for query in queries
        for result in [retriever.retrieve(Query(query.question))]
    ]
    return sum(found) / len(found)


def measure(retriever: Retriever, questions: list[str], rule: GroundingRule | None) -> list[float]:
    """Return the confidence (0 to 1) of the grounding rule for each question, in order.

    A question without any result has confidence 0.

    Args:
        retriever: Retriever of the ingested book.
        questions: The questions to ask.
        rule: Rule that computes the confidence; None for the rule of the embedding model.
    """
    results = [retriever.retrieve(Query(question)) for question in questions]
    return [
        (rule or choose_rule(result.evidence.model if result.evidence else "")).confidence(
            measure_signals(result, question)
        )
        if result.chunks
        else 0.0
        for result, question in zip(results, questions, strict=True)
    ]


def rank_apart(answerable: list[float], other: list[float]) -> float:
    """Return the AUROC of the confidence.

    It is the chance that an answerable question has a higher confidence than one of `other`.
    """
    wins = sum((a > b) + (a == b) / 2 for a in answerable for b in other)
    return wins / (len(answerable) * len(other))


def main() -> None:
    """Print the refused share of each group per threshold, and the AUROC of unanswerable groups."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs-dir", help="docs folder of the book")
    parser.add_argument("--data-dir", help="data folder with the ingested book")
    parser.add_argument("--questions", default="golden", choices=["golden", *SITES, *FOREIGN])
    parser.add_argument("--rule", default="default", choices=["default", "lexical"])
    options = parser.parse_args()
    rule = LEXICAL_RULE if options.rule == "lexical" else None
    settings = load_settings(docs_dir=options.docs_dir, data_dir=options.data_dir)
    groups, expected = read_questions(options.questions)
    with open_retriever(settings) as retriever:
        for group, queries in sorted(expected.items()):
            shares = [measure_success(retriever, queries, level) for level in (DOCUMENT, SECTION)]
            print(
                f"{group:28} {len(queries):4} questions, Success@5 of documents / sections ", end=""
            )
            print("{:.3f} / {:.3f}".format(*shares))
        measured = {
            group: measure(retriever, questions, rule)
            for group, questions in sorted(groups.items())
        }
    answerable = [value for name, found in measured.items() if "answ" in name for value in found]
    print(f"{'refused below':28}" + "".join(f"{level:7.1f}" for level in LEVELS) + "  AUROC")
    for group, found in measured.items():
        shares = [sum(value < level for value in found) / len(found) for level in LEVELS]
        apart = "" if "answ" in group else f"{rank_apart(answerable, found):7.3f}"
        print(f"{group:28}" + "".join(f"{share:7.1%}" for share in shares) + apart)


if __name__ == "__main__":
    main()
