"""Shows the trade-off of grounding: how often each confidence refuses rightly and wrongly.

It helps to choose where the rule of answering.grounding refuses. Run it over the ingested book:

    .venv/bin/python -m benchmarks.grounding_curve

or over another book with its own questions, see calibration_questions:

    .venv/bin/python -m benchmarks.grounding_curve --docs-dir D --data-dir X --questions rust-book

Recorded in docs/adr/0016-refusing-by-the-weakest-words.md.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from typing import Final

from rag_pipeline.answering.grounding import (
    LEXICAL_RULE,
    GroundingRule,
    choose_rule,
    measure_signals,
)
from rag_pipeline.core.settings import load_settings
from rag_pipeline.evaluation.golden_set import load_golden_set
from rag_pipeline.retrieval import Query, Retriever, open_retriever
from rag_pipeline_tests.answering import calibration_questions as extra

LEVELS: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
FOREIGN: Final = {
    "rust-book": (extra.RUST_BOOK, extra.RUST_BOOK_NEAR),
    "embedded-book": (extra.EMBEDDED_BOOK, extra.EMBEDDED_BOOK_NEAR),
    "nomicon": (extra.NOMICON, extra.NOMICON_NEAR),
}


def read_questions(name: str) -> dict[str, list[str]]:
    """Return questions by group: `answerable`, `near` and `far`; the golden set's by split too."""
    if name in FOREIGN:
        answerable, near = FOREIGN[name]
        return {"answerable": list(answerable), "near": list(near), "far": list(extra.FAR)}
    groups: dict[str, list[str]] = defaultdict(list)
    for query in load_golden_set().queries:
        kind = "answerable" if query.expected else query.category.removeprefix("unanswerable-")
        groups[f"{kind} {query.half}"].append(query.question)
    return {**groups, "near extra": list(extra.NEAR), "far extra": list(extra.FAR)}


def measure(retriever: Retriever, questions: list[str], rule: GroundingRule | None) -> list[float]:
    """Return the confidence for each question, by the embedding model's own rule by default."""
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
    """Return the chance that an answerable question has more confidence than another (AUROC)."""
    wins = sum((a > b) + (a == b) / 2 for a in answerable for b in other)
    return wins / (len(answerable) * len(other))


def main() -> None:
    """Print the refused shares by confidence, and how well the groups are told apart."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--docs-dir")
    parser.add_argument("--data-dir")
    parser.add_argument("--questions", default="golden", choices=["golden", *FOREIGN])
    parser.add_argument("--rule", default="default", choices=["default", "lexical"])
    options = parser.parse_args()
    rule = LEXICAL_RULE if options.rule == "lexical" else None
    settings = load_settings(docs_dir=options.docs_dir, data_dir=options.data_dir)
    with open_retriever(settings) as retriever:
        measured = {
            group: measure(retriever, questions, rule)
            for group, questions in read_questions(options.questions).items()
        }
    answerable = [value for name, found in measured.items() if "answ" in name for value in found]
    print(f"{'refused below':18}" + "".join(f"{level:7.1f}" for level in LEVELS) + "  AUROC")
    for group, found in measured.items():
        shares = [sum(value < level for value in found) / len(found) for level in LEVELS]
        apart = "" if "answ" in group else f"{rank_apart(answerable, found):7.3f}"
        print(f"{group:18}" + "".join(f"{share:7.1%}" for share in shares) + apart)


if __name__ == "__main__":
    main()
