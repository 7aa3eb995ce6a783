"""Measure the sources that are found on RetrievalCI bench-v0, with several relevance cutoffs.

    python -m benchmarks.retrievalci FOLDER

FOLDER is a local copy of `examples/rag_eval/bench_v0` of https://github.com/colon-md/retrievalci,
with `questions.jsonl` and `corpus/`. It is not part of this repository. Index its corpus first:

    SITE_BASE_URL=/ DOCS_DIR=FOLDER/corpus DATA_DIR=OTHER_FOLDER rag-pipeline ingest

and use the same settings here. A cutoff drops passages whose score is below that share of the
best score. The score is 100 (0.7 recall + 0.3 precision) of the documents of five passages, over
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rag_pipeline.retrieval import Query, open_retriever

if TYPE_CHECKING:
    from rag_pipeline.retrieval import Retriever

CUTOFFS: Final = (0.0, 0.5, 0.6, 0.7, 0.75, 0.8)


def read_questions(folder: Path) -> list[tuple[str, frozenset[str]]]:
    """Return each question with the names of the documents that answer it."""
    lines = (folder / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    questions: list[dict[str, Any]] = [json.loads(line) for line in lines if line.strip()]
    return [
        (
            entry["question"],
            frozenset(Path(place).name for place in entry.get("ground_truth_citations") or ()),
        )
        for entry in questions
    ]


def measure(
    retriever: Retriever, questions: list[tuple[str, frozenset[str]]], cutoff: float
) -> tuple[float, float]:
    """Return mean recall and precision of the found documents over the answerable questions."""
    recalls, precisions = [], []
    for question, wanted in questions:
        if wanted:
            result = retriever.retrieve(Query(question, min_relative_score=cutoff))
            found = {Path(chunk.metadata.doc_path).name for chunk in result.chunks}
            recalls.append(len(found & wanted) / len(wanted))
            precisions.append(len(found & wanted) / len(found) if found else 0.0)
    return sum(recalls) / len(recalls), sum(precisions) / len(precisions)


def main() -> None:
    """Read the folder, search for all questions, and print one row for each cutoff."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", type=Path, help="copy of examples/rag_eval/bench_v0")
    questions = read_questions(parser.parse_args().folder)
    print(f"{len(questions)} questions, {sum(bool(wanted) for _, wanted in questions)} answerable")
    print("cutoff  recall  precision  score")
    with open_retriever() as retriever:
        for cutoff in CUTOFFS:
            recall, precision = measure(retriever, questions, cutoff)
            score = 100 * (0.7 * recall + 0.3 * precision)
            print(f"{cutoff:6.2f}  {recall:6.3f}  {precision:9.3f}  {score:5.1f}")


if __name__ == "__main__":
    main()
