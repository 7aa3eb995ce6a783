"""Measure the latency of queries on the ingested book: single, filtered, in batches, concurrent.

    python benchmarks/query_latency.py [--questions 200]

Run `rag-pipeline ingest` first. The questions are those of the golden set; they differ, so no cache
answers them. Each query includes embedding the question. The load of the machine is printed too,
because the figures mean little on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rag_pipeline.adapters.connect import connect_embedder
from rag_pipeline.adapters.embedders.bm25 import Bm25Encoder
from rag_pipeline.core.settings import load_settings
from rag_pipeline.retrieval import Query, QueryFilters, Retriever, open_retriever
from rag_pipeline.retrieval.search import prepare_searches

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_GOLDEN = Path(__file__).parent.parent / "rag_pipeline" / "evaluation" / "golden" / "questions.json"
_BATCH = 10
_CALLERS = 10
_Item = TypeVar("_Item")


def main() -> None:
    """Read the options, run the measurements and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=200, help="number of queries")
    count = parser.parse_args().questions
    golden = json.loads(_GOLDEN.read_text("utf-8"))["queries"]
    questions = list(islice(cycle(entry["question"] for entry in golden), count))
    with open_retriever() as retriever:
        start = time.perf_counter()
        hits = retriever.retrieve(Query(questions[0], top_k=50)).chunks
        module = next((hit.metadata.module for hit in hits if hit.metadata.module), "")
        print(f"first query, opens model and store    {_ms(start):8.1f} ms")
        filters = QueryFilters(modules=[module])
        plain = _time_each(questions, lambda text: retriever.retrieve(Query(text)))
        filtered = _time_each(
            questions, lambda text: retriever.retrieve(Query(text, filters=filters))
        )
        _print("single query", plain)
        _print(f"filtered by module ({module})", filtered)
        ratio = statistics.median(filtered) / statistics.median(plain)
        print(f"filtered / plain, medians             {ratio:8.2f}")
        embedder, encoder = connect_embedder(load_settings()), Bm25Encoder()
        _print(
            "embedding only",
            _time_each(questions, lambda text: prepare_searches(embedder, encoder, [Query(text)])),
        )
        batches = [questions[at : at + _BATCH] for at in range(0, len(questions), _BATCH)]
        _print(
            f"batch of {_BATCH}",
            _time_each(batches, lambda texts: retriever.retrieve_many([Query(t) for t in texts])),
        )
        _print_callers(retriever, questions)
    # ru_maxrss is in bytes on macOS and in KiB elsewhere.
    unit = 1 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6
    print(f"peak resident memory                  {peak:8.0f} MB")
    print(f"load of the machine, 1 minute         {os.getloadavg()[0]:8.1f}")


def _time_each(items: Sequence[_Item], action: Callable[[_Item], object]) -> list[float]:
    spent = []
    for item in items:
        start = time.perf_counter()
        action(item)
        spent.append(_ms(start))
    return spent


def _print_callers(retriever: Retriever, questions: Sequence[str]) -> None:
    def ask(text: str) -> float:
        start = time.perf_counter()
        retriever.retrieve(Query(text))
        return _ms(start)

    start = time.perf_counter()
    with ThreadPoolExecutor(_CALLERS) as callers:
        spent = list(callers.map(ask, questions))
    _print(f"{_CALLERS} callers at once, each", spent)
    rate = len(questions) / (_ms(start) / 1000)
    print(f"{_CALLERS} callers at once, in total         {rate:8.0f} queries/s")


def _print(name: str, spent_ms: Sequence[float]) -> None:
    p95 = statistics.quantiles(spent_ms, n=20)[-1] if len(spent_ms) > 1 else spent_ms[0]
    print(f"{name:37} {statistics.median(spent_ms):8.1f} ms p50 {p95:8.1f} ms p95")


def _ms(start: float) -> float:
    return (time.perf_counter() - start) * 1000


if __name__ == "__main__":
    main()
