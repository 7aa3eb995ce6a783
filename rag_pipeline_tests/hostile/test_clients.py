"""Tests that no client can take the service away from the others, over real sockets."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

import httpx
import pytest

from rag_pipeline.serving import limits
from rag_pipeline.serving.access import ProtectedApp, read_access_rules
from rag_pipeline.serving.limits import RateLimits, Turns, limit_rate
from rag_pipeline_tests.retrieval.indexed_book import make_settings
from rag_pipeline_tests.serving.running_service import run_app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from starlette.types import Receive, Scope, Send

KEY = "a-key-for-tests"  # pragma: allowlist secret


async def greet(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer each request with its path, and `/large` with 20 MB."""
    assert scope["type"] != "lifespan"  # without these events, the server starts too
    if scope["type"] == "http" and scope["method"] == "POST":
        while (await receive()).get("more_body"):
            pass
    body = b"x" * 20_000_000 if scope["path"] == "/large" else scope["path"].encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a protected application without a key."""
    folder = tmp_path_factory.mktemp("service")
    rules = read_access_rules(make_settings(folder))
    with run_app(ProtectedApp(greet, rules)) as address:
        yield address


@contextmanager
def connect(url: str) -> Iterator[socket.socket]:
    """Open a connection."""
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        yield connection


def receive_all(connection: socket.socket) -> bytes:
    """Return everything that the service sends until it closes the connection."""
    received = b""
    try:
        while piece := connection.recv(65536):
            received += piece
    except ConnectionError:
        pass
    return received


def send(connection: socket.socket, data: bytes) -> None:
    """Send as much as the service accepts."""
    with suppress(OSError):
        connection.sendall(data)


def measure(url: str) -> float:
    """Return the seconds that another client waits for a response."""
    started = time.monotonic()
    assert httpx.get(f"{url}/healthz", timeout=30).status_code == 200
    return time.monotonic() - started


LARGE = {
    "repeated header": b"X: a\r\n" * 200_000,
    "many headers": b"".join(b"X-%d: a\r\n" % number for number in range(200)),
    "long value": b"X: " + b"a" * 40_000 + b"\r\n",
    "value without an end": b"X: " + b"a" * 20_000_000,
    "name without an end": b"X" * 20_000_000,
    "continued lines": b"X: a\r\n" + b" a\r\n" * 5_000_000,
}


@pytest.mark.parametrize("headers", LARGE.values(), ids=LARGE)
def test_headers_beyond_the_limits_are_refused_and_delay_nobody(url: str, headers: bytes) -> None:
    with connect(url) as connection:
        send(connection, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + headers)
        assert measure(url) < 3
        received = receive_all(connection)
    assert not received or received.split(b" ", 2)[1] in {b"431", b"400"}


def test_a_long_address_is_refused(url: str) -> None:
    with connect(url) as connection:
        send(connection, b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b" 431 " in receive_all(connection)


def test_headers_within_the_limits_are_accepted(url: str) -> None:
    headers = {f"X-{number}": "a" * 200 for number in range(80)}
    assert httpx.get(f"{url}/healthz", headers=headers).status_code == 200


@pytest.mark.parametrize("length", ["0" * 4400 + "2", "9" * 30, "-1", "1e3", "٣", "5, 5", "x"])
def test_a_length_that_is_no_number_of_bytes_is_a_client_error(url: str, length: str) -> None:
    with connect(url) as connection:
        head = f"POST /v1/answers HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n"
        send(connection, f"{head}Connection: close\r\n\r\n12".encode())
        assert receive_all(connection).split(b" ", 2)[1] in {b"400", b"413"}


STALLED = {
    "nothing": b"",
    "half a line": b"GET /hea",
    "half of the headers": b"GET /healthz HTTP/1.1\r\nHost: local",
    "half of the body": b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n1",
}


@pytest.mark.parametrize("data", STALLED.values(), ids=STALLED)
def test_a_request_that_does_not_arrive_in_time_is_given_up(
    url: str, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FIRST_BYTE_S", "HEAD_S", "BODY_S"):
        monkeypatch.setattr(limits, name, 0.2)
    with connect(url) as connection:
        send(connection, data)
        received = receive_all(connection)
    assert not received or b" 408 " in received


def test_a_client_that_reads_nothing_is_given_up(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WRITE_S", 0.2)
    with connect(url) as connection:
        send(connection, b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        time.sleep(1.0)  # longer than the limit; nothing tells this client that it was given up
        assert len(receive_all(connection)) < 20_000_000


def test_a_client_that_reads_slowly_gets_everything(url: str) -> None:
    with connect(url) as connection:
        send(connection, b"GET /large HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert len(receive_all(connection)) > 20_000_000


@pytest.mark.parametrize("data", [b"", b"GET /healthz HTTP/1.1\r\n"], ids=["idle", "half-sent"])
def test_a_thousand_connections_without_a_request_lock_nobody_out(url: str, data: bytes) -> None:
    with ExitStack() as opened:
        for _ in range(1000):
            try:
                connection = opened.enter_context(connect(url))
            except OSError:
                break
            send(connection, data)
        assert measure(url) < 3


def test_pipelined_requests_are_all_answered(url: str) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
    last = request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    with connect(url) as connection:
        send(connection, request * 20 + last)
        assert receive_all(connection).count(b" 200 ") == 21


def test_a_web_socket_is_not_opened(url: str) -> None:
    with connect(url) as connection:
        head = b"GET /v1/answers HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
        more = (
            b"Connection: Upgrade, close\r\nSec-WebSocket-Key: a\r\nSec-WebSocket-Version: 13\r\n"
        )
        send(connection, head + more + b"\r\n")
        connection.settimeout(2)
        assert b" 101 " not in connection.recv(4096)


def test_guessing_a_key_is_limited_also_for_the_right_key(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, serve_api_key=KEY)
    rules = read_access_rules(settings)
    app = ProtectedApp(greet, rules, rates=RateLimits(settings))
    with run_app(app) as address, httpx.Client(base_url=address) as client:
        found = [
            client.get("/v1/filters", headers={"Authorization": f"Bearer {number}"}).status_code
            for number in range(25)
        ]
        assert found == [401] * 20 + [429] * 5
        right = client.get("/v1/filters", headers={"Authorization": f"Bearer {KEY}"})
        assert right.status_code == 429
        assert int(right.headers["retry-after"]) > 0
        assert client.get("/healthz").status_code == 200


def test_reading_is_limited_apart_from_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "rag_pipeline.serving.limits._OWN_RATES",
        {"read": RateLimits(make_settings(tmp_path, serve_client_rate="3/minute"))._client},  # noqa: SLF001  # a parsed rate
    )
    app = limit_rate(greet, RateLimits(make_settings(tmp_path)))
    with run_app(app) as address, httpx.Client(base_url=address) as client:
        found = [client.get("/v1/sections/a").status_code for _ in range(4)]
        assert found == [200, 200, 200, 429]
        assert client.post("/v1/answers").status_code == 200
        assert client.get("/book/page").status_code == 200


def test_one_client_has_a_limited_number_of_turns_and_others_do_not_wait() -> None:
    async def run() -> tuple[list[bool], list[bool]]:
        turns, gate = Turns(running=2, waiting=3), asyncio.Event()
        running: list[bool] = []

        async def ask(client: str) -> bool:
            async with turns.take(client) as has_turn:
                running.append(has_turn)
                if has_turn and client == "greedy":
                    await gate.wait()
                return has_turn

        greedy = [asyncio.create_task(ask("greedy")) for _ in range(8)]
        await asyncio.sleep(0)
        others = [await ask("other") for _ in range(3)]
        assert running.count(True) == 2 + len(others)
        gate.set()
        return [await task for task in greedy], others

    answered, others = asyncio.run(run())
    assert others == [True, True, True]
    assert answered.count(True) == 5
    assert answered.count(False) == 3
