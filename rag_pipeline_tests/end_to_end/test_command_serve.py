"""Tests of `rag-pipeline serve` and `rag-pipeline mcp` as processes."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx
import pytest

from rag_pipeline_tests.end_to_end.command import (
    Command,
    Outcome,
    SlowModel,
    assert_one_line,
    embed,
    finish,
    make_command,
    serving,
)
from rag_pipeline_tests.loopback import serve

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.slow

ASKED = {"question": "What holds a servo at an angle?"}
SELECTED = {
    "question": "What holds a servo?",
    "mode": "selected_text_only",
    "selected_text": "A servo holds its joint at an angle.",
}
STREAM = {"Accept": "text/event-stream"}


def stop(process: subprocess.Popen[str], number: signal.Signals) -> Outcome:
    """Send a signal to a process and wait for its end."""
    process.send_signal(number)
    return finish(process)


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """The command with an indexed book of three pages."""
    with serve(embed) as server:
        command = make_command(tmp_path_factory.mktemp("indexed"), server.url)
        assert command.run("ingest").code == 0
        yield command


def test_the_service_answers_until_a_signal_ends_it_and_then_still_knows_the_answer(
    indexed: Command,
) -> None:
    with serving(indexed, LOG_QUESTIONS="false") as (process, url):
        answer = httpx.post(f"{url}/v1/answers", json=ASKED, timeout=30).raise_for_status().json()
        assert answer["index_id"]
        assert httpx.get(f"{url}/readyz", timeout=30).status_code == 200
        assert "RoboTutor is running" in httpx.get(url, timeout=30).text
        outcome = stop(process, signal.SIGINT)
    assert (outcome.code, outcome.err) == (0, "Ready for questions.\n")
    with serving(indexed) as (process, url):
        body = {"answer_id": answer["answer_id"], "thumb": "up"}
        assert httpx.post(f"{url}/v1/feedback", json=body, timeout=30).status_code == 204
        assert stop(process, signal.SIGTERM).code == 0


@contextmanager
def streaming(
    indexed: Command,
) -> Iterator[tuple[subprocess.Popen[str], str, SlowModel, Iterator[str]]]:
    """Run the service, and yield it while it streams an answer of a slow model."""
    model = SlowModel()
    with serve(model) as server:
        settings = {"OPENAI_BASE_URL": f"{server.url}/v1", "ANSWER_MODEL": "m"}
        with (
            serving(indexed, **settings) as (process, url),
            httpx.stream(
                "POST", f"{url}/v1/answers", json=SELECTED, headers=STREAM, timeout=60
            ) as response,
        ):
            lines = response.iter_lines()
            assert next(lines) == "event: start"
            assert model.asked.wait(30)
            yield process, url, model, lines


def test_an_open_stream_ends_before_the_service_does(indexed: Command) -> None:
    with streaming(indexed) as (process, url, model, lines):
        assert httpx.get(f"{url}/readyz", timeout=30).status_code == 200
        process.send_signal(signal.SIGTERM)
        _wait_until_closed(url)
        model.released.set()
        received = list(lines)
        outcome = finish(process)
    assert "event: done" in received, received
    assert "event: error" not in received
    assert (outcome.code, outcome.err) == (0, "Ready for questions.\n")


def test_a_second_ctrl_c_does_not_wait_for_open_streams(indexed: Command) -> None:
    with streaming(indexed) as (process, url, model, _):
        process.send_signal(signal.SIGINT)
        _wait_until_closed(url)
        outcome = stop(process, signal.SIGINT)
        model.released.set()
    assert outcome.code == 0
    assert "Traceback" not in outcome.err, outcome.err[-1500:]


def test_a_stream_that_does_not_end_is_cut_off_at_the_end(indexed: Command) -> None:
    with streaming(indexed) as (process, _, model, _):
        outcome = stop(process, signal.SIGTERM)
        model.released.set()
    assert outcome.code == 0
    assert "Traceback" not in outcome.err, outcome.err[-1500:]


def _wait_until_closed(url: str) -> None:
    """Connect again and again until the service accepts no connection any more."""
    port = httpx.URL(url).port
    assert port is not None
    for _ in range(1_000_000):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except OSError:
            return
    raise AssertionError


def test_a_service_without_an_index_becomes_ready_after_an_ingest(
    command: Command, call: Callable[..., Outcome]
) -> None:
    with serving(command) as (process, url):
        assert process.stderr is not None
        line = next(process.stderr)
        assert line.startswith("Not ready yet: ")
        assert "ingest" in line
        missing = httpx.post(f"{url}/v1/answers", json=ASKED, timeout=30)
        assert (missing.status_code, missing.json()["code"]) == (503, "COLLECTION_MISSING")
        assert call("ingest").code == 0
        assert httpx.post(f"{url}/v1/answers", json=ASKED, timeout=30).status_code == 200
        assert call("ingest", "--rebuild").code == 0
        assert httpx.post(f"{url}/v1/answers", json=ASKED, timeout=30).status_code == 200
        assert stop(process, signal.SIGTERM).code == 0


def test_the_website_is_served_next_to_the_answers(indexed: Command) -> None:
    site = indexed.root / "build"
    site.mkdir()
    (site / "index.html").write_text("the book")
    try:
        with serving(indexed) as (process, url):
            start = httpx.get(url, follow_redirects=True, timeout=30)
            assert (start.text, start.url.path) == ("the book", "/physical-ai-robotics-textbook/")
            assert httpx.post(f"{url}/v1/answers", json=ASKED, timeout=30).status_code == 200
            assert stop(process, signal.SIGTERM).code == 0
    finally:
        (site / "index.html").unlink()
        site.rmdir()


def test_a_port_in_use_is_an_error_in_one_line(call: Callable[..., Outcome]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        assert_one_line(call("serve", "--port", port), 2, "--port", f"port {port}", "in use")


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        (("--site", "nowhere"), ("--site", "index.html")),
        (("--host", "192.0.2.1", "--port", "0"), ("--host", "0.0.0.0")),
        (("--port", "65536"), ("--port",)),
    ],
)
def test_wrong_options_are_errors_in_one_line(
    call: Callable[..., Outcome], arguments: tuple[str, ...], texts: tuple[str, ...]
) -> None:
    assert_one_line(call("serve", *arguments), 2, *texts)


def test_wrong_settings_are_errors_in_one_line(call: Callable[..., Outcome]) -> None:
    for name in ("SERVE_ORIGINS", "SERVE_HOSTS", "SERVE_TRUSTED_PROXIES"):
        assert_one_line(call("serve", "--port", "0", **{name: "*"}), 2, name)
    assert_one_line(call("serve", "--port", "0", SERVE_CLIENT_RATE="often"), 2, "SERVE_CLIENT_RATE")


def test_a_missing_package_names_the_extra(
    call: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rag_pipeline.core.errors.find_spec", lambda _: None)
    for name in ("serve", "mcp"):
        assert_one_line(call(name), 2, "uvicorn", "rag-pipeline[serve]")


def test_mcp_writes_only_the_protocol(indexed: Command) -> None:
    started = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    process = indexed.start("mcp", stdin=subprocess.PIPE)
    out, _ = process.communicate(json.dumps(started) + "\n", timeout=60)
    replies = [json.loads(line) for line in out.splitlines()]
    assert replies[0]["result"]["serverInfo"]["title"] == "RoboTutor"
    assert process.returncode == 0


def test_ctrl_c_ends_mcp(indexed: Command) -> None:
    process = indexed.start("mcp", stdin=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
    process.stdin.flush()
    assert process.stdout.readline()
    assert stop(process, signal.SIGINT).code in {0, 130}
