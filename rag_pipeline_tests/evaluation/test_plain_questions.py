"""The plain questions of benchmarks/plain are balanced and fit the book."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from rag_pipeline.evaluation.golden_set import load_golden_set, validate_against_corpus
from rag_pipeline_tests.evaluation.golden_pages import read_book

FILES = sorted((Path(__file__).parents[2] / "benchmarks" / "plain").glob("*.json"))
KINDS = ("definition", "comparison", "why", "fact", "how-to")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_site_has_as_many_questions_of_each_kind_and_half(path: Path) -> None:
    counts = Counter((query.category, query.half) for query in load_golden_set(path).queries)
    answered = {counts.pop((kind, half)) for kind in KINDS for half in ("tune", "report")}
    assert len(answered) == 1
    assert counts == {("unanswerable-near", "tune"): 30, ("unanswerable-near", "report"): 30}


def test_the_labels_of_the_textbook_are_sections_of_the_book() -> None:
    path = next(path for path in FILES if path.stem == "textbook")
    golden = load_golden_set(path)
    documents = [parsed.document for parsed in read_book().values()]
    assert validate_against_corpus(golden, documents) == golden
