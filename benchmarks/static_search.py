"""Compare the search in the browser with the library, on the questions of the golden set.

Run it on an ingested book, after `npm ci` in `website`:

    .venv/bin/python -m benchmarks.static_search

It prints the share of questions with the same first passage, the same five passages, the same five
in the same order, and the same level, and the times of the search in the browser's engine.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rag_pipeline.answering import apply_grounding_policy
from rag_pipeline.cli.initializing import load_index
from rag_pipeline.evaluation.golden_set import QUESTIONS_PATH, load_golden_set
from rag_pipeline.retrieval import Query, open_retriever
from rag_pipeline.serving.static_search import export_search

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.settings import Settings

SCRIPT: Final = Path(__file__).parents[1] / "website" / "scripts" / "compare-static-search.mjs"


def compare_searches(settings: Settings, questions: Sequence[str]) -> dict[str, Any]:
    """Return the shares of questions for which both searches agree, and the times.

    Args:
        settings: The settings of an ingested book.
        questions: Questions without misspelled words, which only the library corrects.
    """
    with open_retriever(settings) as retriever:
        results = [retriever.retrieve(Query(question)) for question in questions]
    expected = [
        {
            "question": question,
            "hits": [chunk.chunk_id for chunk in result.chunks],
            "level": apply_grounding_policy(result, question).level.value,
        }
        for question, result in zip(questions, results, strict=True)
        if result.search_question is None
    ]
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder)
        (site / "index.html").touch()
        exported = export_search(settings, site)
        (site / "expected.json").write_text(json.dumps(expected))
        command = ["node", str(SCRIPT), str(exported.folder), str(site / "expected.json")]
        ran = subprocess.run(command, check=True, capture_output=True, text=True)
    return {**json.loads(ran.stdout), "index_bytes": exported.index_bytes}


if __name__ == "__main__":
    golden = load_golden_set(QUESTIONS_PATH)
    print(compare_searches(load_index(None), [query.question for query in golden.queries]))
