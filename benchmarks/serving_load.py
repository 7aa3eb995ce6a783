"""Measure the service on the ingested book, over real connections to `rag-pipeline serve`.

    python benchmarks/serving_load.py [--sections speed memory streams] [--requests 20000]

Run `rag-pipeline ingest` first. The questions are those of the golden set's tune half. The service
runs without rate limits and is ended by its process id. The library's own figures come from the
same run, because only their ratio means something on a busy machine.
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
import time
from contextlib import contextmanager
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from rag_pipeline.answering import answer
from rag_pipeline.retrieval import Query, open_retriever

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractAsyncContextManager

_ROOT = Path(__file__).parents[1]
_GOLDEN = _ROOT / "rag_pipeline" / "evaluation" / "golden" / "questions.json"
_SECTIONS = ("speed", "memory", "streams")
_START_LIMIT_S = 60
_OFF = {
    "SERVE_CLIENT_RATE": "",
    "SERVE_TOTAL_RATE": "",
    "QUESTION_LOG_DAYS": "0",
    "SERVE_API_KEY": "",
}


def main() -> None:
    """Read the options, run the sections and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sections", nargs="+", choices=_SECTIONS, default=list(_SECTIONS))
    parser.add_argument("--requests", type=int, default=20_000, help="requests for memory")
    options = parser.parse_args()
    entries = json.loads(_GOLDEN.read_text("utf-8"))["queries"]
    questions = [entry["question"] for entry in entries if entry["split"] == "tune"]
    if "speed" in options.sections:
        library = _measure_library(questions[:100])
        asyncio.run(_measure_speed(questions, library))
    if "memory" in options.sections:
        asyncio.run(_measure_memory(questions, options.requests))
    if "streams" in options.sections:
        asyncio.run(_measure_streams(questions))
    print(f"load of the machine, 1 minute         {os.getloadavg()[0]:8.1f}")


@contextmanager
def _running_service(**settings: str) -> Iterator[tuple[str, int]]:
    """Start the service and yield its address and process id once a question can be asked."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    service = subprocess.Popen(
        [sys.executable, "-m", "rag_pipeline.cli", "serve", "--port", str(port)],
        env=os.environ | _OFF | settings,
        stdout=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_until_ready(address, service)
        yield address, service.pid
    finally:
        service.terminate()
        service.wait(timeout=20)


def _wait_until_ready(address: str, service: subprocess.Popen[bytes]) -> None:
    end = time.perf_counter() + _START_LIMIT_S
    while time.perf_counter() < end:
        if service.poll() is not None:
            sys.exit(f"the service ended with status {service.returncode}")
        try:
            if httpx.get(f"{address}/readyz", timeout=5).is_success:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    sys.exit("the service did not become ready")


def _measure_library(questions: Sequence[str]) -> float:
    """Return the median milliseconds of an answer in this process; closes the store."""
    with open_retriever() as retriever:
        answer(Query("What is a robot?"), retriever=retriever)
        spent = []
        for question in questions:
            start = time.perf_counter()
            answer(Query(question), retriever=retriever)
            spent.append(_ms(start))
    _print("library, 1 caller", spent)
    return statistics.median(spent)


async def _measure_speed(questions: Sequence[str], library_ms: float) -> None:
    start = time.perf_counter()
    with _running_service() as (address, _):
        await _ask_all(address, questions[:1], callers=1)
        print(f"first answer after the start          {_ms(start):8.0f} ms (goal 3,000)")
        alone, _ = await _ask_all(address, questions[:100], callers=1)
        _print("service, 1 caller", alone)
        ratio = statistics.median(alone) / library_ms
        print(f"service / library, medians            {ratio:8.2f} (goal 1.50)")
        for callers, count in ((10, 600), (50, 600)):
            start = time.perf_counter()
            spent, failed = await _ask_all(
                address, list(islice(cycle(questions), count)), callers=callers
            )
            rate = count / (time.perf_counter() - start)
            _print(f"service, {callers} callers", spent)
            print(f"  {rate:.0f} answers/s, {failed} errors")


async def _measure_memory(questions: Sequence[str], count: int) -> None:
    """Compare resident memory after a tenth of the requests with that after all of them."""
    with _running_service() as (address, process):
        await _ask_all(address, list(islice(cycle(questions), count // 10)), callers=10)
        before = _read_memory_mb(process)
        _, failed = await _ask_all(address, list(islice(cycle(questions), count)), callers=10)
        after = _read_memory_mb(process)
    growth = (after / before - 1) * 100
    print(
        f"memory over {count} requests            {before:.0f} to {after:.0f} MB, {growth:+.1f}%"
        f" (goal 5), {failed} errors"
    )


async def _measure_streams(questions: Sequence[str]) -> None:
    """Stream 50 answers of a slow model at once, then leave one in the middle."""
    script = [sys.executable, str(Path(__file__).parent / "slow_model.py")]
    with subprocess.Popen(  # noqa: ASYNC220  # nothing else runs in the loop yet
        script, stdout=subprocess.PIPE, text=True
    ) as model:
        port = int((model.stdout or sys.stdin).readline())
        url = f"http://127.0.0.1:{port}"
        try:
            with _running_service(
                OPENAI_BASE_URL=f"{url}/v1",
                OPENAI_API_KEY="none",  # pragma: allowlist secret
                EMBEDDING_PROVIDER="local",
                ANSWER_MODEL="slow",
            ) as (address, _):
                await _print_streams(address, url, questions)
        finally:
            model.terminate()


async def _print_streams(address: str, model: str, questions: Sequence[str]) -> None:
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=address, timeout=60, limits=limits) as client:
        chosen = questions[:50]
        firsts = await asyncio.gather(*(_read_stream(client, text) for text in chosen))
        _print("50 streams, first event", firsts)
        async with _open_stream(client, questions[50]) as response:
            async for line in response.aiter_lines():
                if line.startswith("event: delta"):
                    break
        start = time.perf_counter()
        while int((await client.get(f"{model}/open")).text):
            if _ms(start) > 10_000:  # longer than a whole answer
                print("the model's request was not freed")
                return
            await asyncio.sleep(0.01)
        print(f"model freed after a disconnect        {_ms(start):8.0f} ms (goal 500)")


def _open_stream(
    client: httpx.AsyncClient, question: str
) -> AbstractAsyncContextManager[httpx.Response]:
    headers = {"Accept": "text/event-stream"}
    body = {"question": question, "mode": "normal"}
    return client.stream("POST", "/v1/answers", json=body, headers=headers)


async def _read_stream(client: httpx.AsyncClient, question: str) -> float:
    """Return the milliseconds until the first event; reads the stream to its end."""
    start = time.perf_counter()
    first = 0.0
    async with _open_stream(client, question) as response:
        response.raise_for_status()
        async for line in response.aiter_lines():
            if line.startswith("event:") and not first:
                first = _ms(start)
    return first


async def _ask_all(
    address: str, questions: Sequence[str], *, callers: int
) -> tuple[list[float], int]:
    """Return the milliseconds of each answer and the number of failed requests."""
    waiting = iter(questions)
    spent: list[float] = []
    failed = 0

    async def ask_next(client: httpx.AsyncClient) -> None:
        nonlocal failed
        for question in waiting:
            start = time.perf_counter()
            try:
                body = {"question": question, "mode": "normal"}
                response = await client.post("/v1/answers", json=body)
                failed += not response.is_success
            except httpx.TransportError:
                failed += 1
            spent.append(_ms(start))

    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=address, timeout=60, limits=limits) as client:
        await asyncio.gather(*(ask_next(client) for _ in range(callers)))
    return spent, failed


def _read_memory_mb(process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text("utf-8")
    (kilobytes,) = re.findall(r"VmRSS:\s+(\d+) kB", status)
    return int(kilobytes) / 1024


def _print(name: str, spent_ms: Sequence[float]) -> None:
    p95 = statistics.quantiles(spent_ms, n=20)[-1] if len(spent_ms) > 1 else spent_ms[0]
    print(f"{name:37} {statistics.median(spent_ms):8.1f} ms p50 {p95:8.1f} ms p95")


def _ms(start: float) -> float:
    return (time.perf_counter() - start) * 1000


if __name__ == "__main__":
    main()
