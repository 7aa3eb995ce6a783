"""Tests of `rag-pipeline serve --workers 2`: what several processes share, and their end.

The address of Qdrant reaches no server. Selections are answered without it.
"""

from __future__ import annotations

import os
import re
import select
import signal
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from rag_pipeline_tests.end_to_end.command import Command, embed, make_command
from rag_pipeline_tests.end_to_end.test_command_serve import serving, stop
from rag_pipeline_tests.loopback import find_closed_port, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow

SELECTION = "A servo holds its joint at an angle. It needs power for that."


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """The command with a service that embeds, and without an index."""
    with serve(embed) as server:
        yield make_command(tmp_path_factory.mktemp("workers"), server.url)


@contextmanager
def running(command: Command, **changes: str) -> Iterator[tuple[Any, str]]:
    """Run two processes, without rate limits."""
    settings = {
        "QDRANT_URL": f"http://127.0.0.1:{find_closed_port()}",
        "OPENAI_API_KEY": "",  # no model writes: the answers are quoted
        "SERVE_CLIENT_RATE": "",
        "SERVE_TOTAL_RATE": "",
    }
    with serving(command, "--workers", "2", **(settings | changes)) as (process, url):
        yield process, url


def ask(url: str, question: str, **fields: str) -> httpx.Response:
    """Ask about the selection over a new connection, which any of the processes may accept."""
    body = {"question": question, "mode": "selected_text_only", "selected_text": SELECTION}
    return httpx.post(f"{url}/v1/answers", json=body | fields, timeout=60)


def find_workers(parent: int) -> list[int]:
    """Return the ids of a process's children that serve requests."""
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    found = []
    for pid in children:
        try:
            if "spawn_main" in Path(f"/proc/{pid}/cmdline").read_text():
                found.append(int(pid))
        except OSError:  # the child ended meanwhile
            continue
    return found


def count_answers(url: str) -> float:
    """Return the number of answers in the metrics."""
    text = httpx.get(f"{url}/metrics", timeout=60).text
    found = re.findall(r'robotutor_http_requests_total\{.*route="/v1/answers".*\} (\S+)', text)
    return sum(float(number) for number in found)


def test_conversations_and_metrics_are_shared(command: Command) -> None:
    with running(command) as (process, url):
        first = ask(url, "What does a servo hold?").raise_for_status().json()
        for _ in range(6):
            fields = {"conversation_id": first["conversation_id"]}
            answer = ask(url, "And why?", **fields).raise_for_status().json()
            assert "What does a servo hold?" in answer["search_question"]
        assert count_answers(url) == 7
        assert httpx.get(f"{url}/readyz", timeout=60).status_code == 503
        assert stop(process, signal.SIGTERM).code == 0


def test_rate_limits_are_shared(command: Command) -> None:
    with running(command, SERVE_CLIENT_RATE="4/hour") as (process, url):
        statuses = [ask(url, "What does a servo hold?").status_code for _ in range(8)]
        assert statuses == [200] * 4 + [429] * 4
        assert stop(process, signal.SIGTERM).code == 0


def test_a_process_that_dies_is_replaced(command: Command) -> None:
    with running(command) as (process, url):
        before = find_workers(process.pid)
        assert len(before) == 2
        os.kill(before[0], signal.SIGKILL)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            alive = find_workers(process.pid)
            if len(alive) == 2 and before[0] not in alive:
                break
        else:
            pytest.fail("the process was not replaced")
        assert ask(url, "What does a servo hold?").status_code == 200
        outcome = stop(process, signal.SIGTERM)
    assert outcome.code == 0
    assert "Traceback" not in outcome.err, outcome.err[-1500:]


def test_workers_end_after_the_first_process_was_killed(command: Command) -> None:
    with running(command) as (process, _):
        workers = find_workers(process.pid)
        assert len(workers) == 2
        ends = [os.pidfd_open(pid) for pid in workers]
        process.kill()
        for end in ends:
            assert select.select([end], [], [], 60)[0], "a worker outlived the first process"
            os.close(end)


def test_wrong_settings_end_all_processes(command: Command) -> None:
    settings = {"QDRANT_URL": "http://127.0.0.1:1", "SERVE_CLIENT_RATE": "often"}
    outcome = command.run("serve", "--port", "0", "--workers", "2", **settings)
    assert outcome.code == 2
    assert "SERVE_CLIENT_RATE" in outcome.err
