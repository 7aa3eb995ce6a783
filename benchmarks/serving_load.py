"""Measure the service on the ingested book, over real connections to `rag-pipeline serve`.

    python benchmarks/serving_load.py [--sections speed ingest streams memory] [--requests 20000]

Run `rag-pipeline ingest` first. The questions are those of the golden set's tune half. The service
runs without rate limits and is ended by its process id. The library's own figures come from the
same run, because only their ratio means something on a busy machine. Failed requests are counted,
and are not part of the times.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field
from itertools import cycle, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from service_process import copy_indexed_book, run_service, run_slow_model

from rag_pipeline.answering import answer
from rag_pipeline.retrieval import Query, open_retriever

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from contextlib import AbstractAsyncContextManager

_ROOT = Path(__file__).parents[1]
_GOLDEN = _ROOT / "rag_pipeline" / "evaluation" / "golden" / "questions.json"
_SECTIONS = ("speed", "ingest", "streams", "memory")
_STREAMS = 50
_SLOW_START_S = 2.0  # questions are asked this long before and after the ingestion
_EVENTS = {"Accept": "text/event-stream"}


def main() -> None:
    """Read the options, run the sections and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sections", nargs="+", choices=_SECTIONS, default=list(_SECTIONS))
    parser.add_argument("--requests", type=int, default=20_000, help="requests for memory")
    options = parser.parse_args()
    entries = json.loads(_GOLDEN.read_text("utf-8"))["queries"]
    questions = [entry["question"] for entry in entries if entry["split"] == "tune"]
    for section in _SECTIONS:
        if section not in options.sections:
            continue
        print(f"{section}, machine's load {os.getloadavg()[0]:.1f}")
        if section == "speed":
            _measure_speed(questions)
        elif section == "ingest":
            _measure_ingest(questions)
        elif section == "streams":
            _measure_streams(questions)
        else:
            _measure_memory(questions, options.requests)
    print(f"machine's load at the end {os.getloadavg()[0]:.1f}")


@dataclass
class _Asked:
    """The milliseconds of each answer, and the failures by status or error."""

    spent_ms: list[float] = field(default_factory=list)
    failures: dict[str, int] = field(default_factory=dict)

    def fail(self, reason: str) -> None:
        self.failures[reason] = self.failures.get(reason, 0) + 1

    def print(self, name: str) -> None:
        _print(name, self.spent_ms)
        if self.failures:
            print(f"    failed: {self.failures}")


def _measure_speed(questions: Sequence[str]) -> None:
    library_ms = _measure_library(questions[:100])
    start = time.perf_counter()
    with run_service(awaited="/healthz") as service:
        first = asyncio.run(_ask_all(service.url, questions[:1], callers=1))
        first.print("first answer of the process")
        if not first.spent_ms:
            sys.exit("the service does not answer")
        print(f"  {_ms(start):.0f} ms since the start of the command (goal 3,000)")
        alone = asyncio.run(_ask_all(service.url, questions[:100], callers=1))
        alone.print("service, 1 caller")
        ratio = statistics.median(alone.spent_ms) / library_ms
        print(f"  {ratio:.2f} times the library's median (goal 1.50)")
        for callers, count in ((10, 600), (50, 600)):
            start = time.perf_counter()
            chosen = islice(cycle(questions), count)
            asked = asyncio.run(_ask_all(service.url, chosen, callers=callers))
            rate = len(asked.spent_ms) / (time.perf_counter() - start)
            asked.print(f"service, {callers} callers")
            print(
                f"  {rate:.0f} answers/s" + (" (goals 60/s, p95 300 ms)" if callers == 10 else "")
            )


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


def _measure_ingest(questions: Sequence[str]) -> None:
    """Ask with 10 callers while another process ingests one edited page of a copy of the book."""
    with copy_indexed_book() as changes, run_service(**changes) as service:
        page = max(Path(changes["DOCS_DIR"]).rglob("*.md"), key=lambda path: path.stat().st_size)
        page.write_text(page.read_text("utf-8") + "\n\nThe measured robot waves.\n", "utf-8")
        command = [sys.executable, "-m", "rag_pipeline.cli", "ingest"]
        asked, reported = asyncio.run(
            _ask_during(service.url, questions, command, os.environ | changes)
        )
    asked.print("10 callers during an ingestion")
    print(f"  {reported}")


async def _ask_during(
    url: str, questions: Sequence[str], command: Sequence[str], environment: dict[str, str]
) -> tuple[_Asked, str]:
    """Ask before, during and after a command; return the times and the command's summary."""
    is_over = False

    def choose() -> Iterator[str]:
        for question in cycle(questions):
            if is_over:
                return
            yield question

    asking = asyncio.create_task(_ask_all(url, choose(), callers=10))
    await asyncio.sleep(_SLOW_START_S)
    pipe = subprocess.PIPE
    start = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, stdout=pipe, stderr=pipe
    )
    output, errors = await process.communicate()
    seconds = _ms(start) / 1000
    if process.returncode:
        sys.exit(f"the ingestion failed: {errors.decode()}")
    await asyncio.sleep(_SLOW_START_S)
    is_over = True
    summary = next(line for line in output.decode().splitlines() if "documents" in line)
    return await asking, f"ingestion took {seconds:.1f} s, {' '.join(summary.split())}"


def _measure_streams(questions: Sequence[str]) -> None:
    """Stream 50 answers of a slow model at once, then leave one in the middle."""
    with run_slow_model() as model:
        settings = {
            "OPENAI_BASE_URL": f"{model}/v1",
            "OPENAI_API_KEY": "none",  # pragma: allowlist secret
            "EMBEDDING_PROVIDER": "local",
            "ANSWER_MODEL": "slow",
        }
        with run_service(**settings) as service:
            asyncio.run(_print_streams(service.url, model, questions))


async def _print_streams(url: str, model: str, questions: Sequence[str]) -> None:
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=60, limits=limits) as client:
        written = await _choose_written(client, questions)
        streams = await asyncio.gather(*(_read_stream(client, text) for text in written))
        ended = sum(stream["end"] == "done" for stream in streams)
        print(f"{len(streams)} streams of a 1.5 s model at once, {ended} with the event done")
        _print("  first event (goal 1,000)", [stream["start"] for stream in streams])
        _print("  first text", [stream["delta"] for stream in streams if "delta" in stream])
        async with _open_stream(client, written[0]) as response:
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


async def _choose_written(client: httpx.AsyncClient, questions: Sequence[str]) -> list[str]:
    """Return 50 questions that the model answers; others are refused before it is asked."""
    written: list[str] = []
    for start in range(0, len(questions), _STREAMS):
        group = questions[start : start + _STREAMS]
        bodies = ({"question": text, "mode": "normal"} for text in group)
        replies = await asyncio.gather(*(client.post("/v1/answers", json=body) for body in bodies))
        written += [
            text
            for text, reply in zip(group, replies, strict=True)
            if reply.raise_for_status().json()["kind"] == "generated"
        ]
        if len(written) >= _STREAMS:
            return written[:_STREAMS]
    sys.exit(f"the model answers only {len(written)} of {len(questions)} questions")


def _open_stream(
    client: httpx.AsyncClient, question: str
) -> AbstractAsyncContextManager[httpx.Response]:
    body = {"question": question, "mode": "normal"}
    return client.stream("POST", "/v1/answers", json=body, headers=_EVENTS)


async def _read_stream(client: httpx.AsyncClient, question: str) -> dict[str, Any]:
    """Return the milliseconds until the first event of each name, and the last event's name."""
    start = time.perf_counter()
    found: dict[str, Any] = {}
    async with _open_stream(client, question) as response:
        response.raise_for_status()
        async for line in response.aiter_lines():
            if line.startswith("event: "):
                found.setdefault(line.removeprefix("event: "), _ms(start))
                found["end"] = line.removeprefix("event: ")
    return found


def _measure_memory(questions: Sequence[str], count: int) -> None:
    """Compare resident memory after a tenth of the requests with that after all of them."""

    def ask(number: int) -> _Asked:
        return asyncio.run(_ask_all(service.url, islice(cycle(questions), number), callers=10))

    with run_service() as service:
        if not ask(count // 10).spent_ms:
            sys.exit("the service does not answer")
        before = service.read_memory_mb()
        asked = ask(count)
        after = service.read_memory_mb()
    asked.print(f"{count} requests, 10 callers")
    growth = (after / before - 1) * 100
    print(f"  memory {before:.0f} to {after:.0f} MB, {growth:+.1f}% (goal 5)")


async def _ask_all(url: str, questions: Iterable[str], *, callers: int) -> _Asked:
    """Ask all questions, with several callers at once."""
    waiting = iter(questions)
    asked = _Asked()

    async def ask_next(client: httpx.AsyncClient) -> None:
        for question in waiting:
            start = time.perf_counter()
            body = {"question": question, "mode": "normal"}
            try:
                response = await client.post("/v1/answers", json=body)
            except httpx.TransportError as error:
                asked.fail(type(error).__name__)
                continue
            if response.is_success:
                asked.spent_ms.append(_ms(start))
            else:
                asked.fail(str(response.status_code))

    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=url, timeout=60, limits=limits) as client:
        await asyncio.gather(*(ask_next(client) for _ in range(callers)))
    return asked


def _print(name: str, spent_ms: Sequence[float]) -> None:
    if not spent_ms:
        print(f"{name:37} no answers")
        return
    p95 = statistics.quantiles(spent_ms, n=20)[-1] if len(spent_ms) > 1 else spent_ms[0]
    print(
        f"{name:37} {statistics.median(spent_ms):8.1f} ms p50 {p95:8.1f} ms p95"
        f" {max(spent_ms):8.1f} ms max, {len(spent_ms)} answers"
    )


def _ms(start: float) -> float:
    return (time.perf_counter() - start) * 1000


if __name__ == "__main__":
    main()
