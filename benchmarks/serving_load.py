"""Measure the service on the ingested book, over real connections to `rag-pipeline serve`.

    python benchmarks/serving_load.py [--requests 20000]

Run `rag-pipeline ingest` first. The questions are those of the golden set's tune half. The service
runs without rate limits and without a model, and is ended by its process id. The library's own
figures come from the same run, because only their ratio means something on a busy machine. Failed
requests are counted, and are not part of the times.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import httpx

from rag_pipeline.answering import answer
from rag_pipeline.retrieval import Query, open_retriever

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_ROOT: Final = Path(__file__).parents[1]
_GOLDEN: Final = _ROOT / "rag_pipeline" / "evaluation" / "golden" / "questions.json"
_START_LIMIT_S: Final = 60
_PLAIN: Final = dict.fromkeys(
    ("SERVE_CLIENT_RATE", "SERVE_TOTAL_RATE", "SERVE_API_KEY", "ANSWER_MODEL"), ""
)


def main() -> None:
    """Read the options, measure and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=20_000, help="requests for memory")
    count = parser.parse_args().requests
    entries = json.loads(_GOLDEN.read_text("utf-8"))["queries"]
    questions = [entry["question"] for entry in entries if entry["split"] == "tune"]
    print(f"machine's load {os.getloadavg()[0]:.1f}")
    library_ms = _measure_library(questions[:100])
    start = time.perf_counter()
    with run_service() as (url, process_id):
        asyncio.run(_ask_all("first answer of the process", url, questions[:1], callers=1))
        print(f"  {_ms(start):.0f} ms since the start of the command (goal 3,000)")
        alone_ms = asyncio.run(_ask_all("service, 1 caller", url, questions[:100], callers=1))
        print(f"  {alone_ms / library_ms:.2f} times the library's median (goal 1.50)")
        for callers, goal in ((10, " (goals 60/s, p95 300 ms)"), (50, "")):
            start = time.perf_counter()
            chosen = islice(cycle(questions), 600)
            asyncio.run(_ask_all(f"service, {callers} callers", url, chosen, callers=callers))
            print(f"  {600_000 / _ms(start):.0f} requests/s{goal}")
        memory_mb = []
        for number in (count // 10, count):
            chosen = islice(cycle(questions), number)
            asyncio.run(_ask_all(f"{number} requests, 10 callers", url, chosen, callers=10))
            status = Path(f"/proc/{process_id}/status").read_text("utf-8")
            memory_mb += [int(size) / 1024 for size in re.findall(r"VmRSS:\s+(\d+) kB", status)]
    growth = (memory_mb[1] / memory_mb[0] - 1) * 100
    print(f"memory {memory_mb[0]:.0f} to {memory_mb[1]:.0f} MB, {growth:+.1f}% (goal 5)")
    print(f"machine's load at the end {os.getloadavg()[0]:.1f}")


@contextmanager
def run_service() -> Iterator[tuple[str, int]]:
    """Start the service, yield its address and process id, and end it. Its log is temporary."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        settings = _PLAIN | {"QUESTION_LOG_URL": f"sqlite:///{folder}/log.sqlite"}
        process = subprocess.Popen(
            [sys.executable, "-m", "rag_pipeline.cli", "serve", "--port", str(port)],
            env=os.environ | settings,
            stdout=subprocess.DEVNULL,
        )
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_until(f"{url}/healthz", process)
            yield url, process.pid
        finally:
            process.terminate()
            process.wait(timeout=20)


def _wait_until(url: str, process: subprocess.Popen[bytes]) -> None:
    end = time.perf_counter() + _START_LIMIT_S
    while time.perf_counter() < end:
        if process.poll() is not None:
            sys.exit(f"the service ended with status {process.returncode}")
        try:
            if httpx.get(url, timeout=5).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    sys.exit(f"{url} did not answer within {_START_LIMIT_S} s")


def _measure_library(questions: Sequence[str]) -> float:
    """Return the median milliseconds of an answer in this process."""
    with open_retriever() as retriever:
        answer(Query("What is a robot?"), retriever=retriever)
        spent = []
        for question in questions:
            start = time.perf_counter()
            answer(Query(question), retriever=retriever)
            spent.append(_ms(start))
    _print("library, 1 caller", spent)
    return statistics.median(spent)


async def _ask_all(name: str, url: str, questions: Iterable[str], *, callers: int) -> float:
    """Ask all questions, with several callers at once; print the times and return their median."""
    waiting = iter(questions)
    spent_ms: list[float] = []
    failures: Counter[str] = Counter()

    async def ask_next(client: httpx.AsyncClient) -> None:
        for question in waiting:
            start = time.perf_counter()
            body = {"question": question, "mode": "normal"}
            try:
                (await client.post("/v1/answers", json=body)).raise_for_status()
                spent_ms.append(_ms(start))
            except httpx.HTTPError as error:
                failures[str(error)] += 1

    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=60, limits=limits) as client:
        await asyncio.gather(*(ask_next(client) for _ in range(callers)))
    if failures:
        print(f"    failed: {dict(failures)}")
    if not spent_ms:
        sys.exit("the service does not answer")
    _print(name, spent_ms)
    return statistics.median(spent_ms)


def _print(name: str, spent_ms: Sequence[float]) -> None:
    p95 = statistics.quantiles(spent_ms, n=20)[-1] if len(spent_ms) > 1 else spent_ms[0]
    print(
        f"{name:37} {statistics.median(spent_ms):8.1f} ms p50 {p95:8.1f} ms p95"
        f" {max(spent_ms):8.1f} ms max, {len(spent_ms)} answers"
    )


def _ms(start: float) -> float:
    return (time.perf_counter() - start) * 1000


if __name__ == "__main__":
    main()
