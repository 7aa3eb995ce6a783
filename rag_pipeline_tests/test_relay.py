"""Tests of the relay whose connections a test can cut or hold."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx
import pytest

from rag_pipeline_tests.loopback import HANG, Reply, find_closed_port, serve
from rag_pipeline_tests.relay import Relay

if TYPE_CHECKING:
    from collections.abc import Iterator

_LONGEST_S = 20.0


@pytest.fixture
def relay() -> Iterator[Relay]:
    """A relay to a server that answers each request with 3."""
    with serve([Reply(body=3)]) as server, Relay(server.url) as relay:
        yield relay


def ask(client: httpx.Client) -> int:
    """Send a request and return the answer's number."""
    return int(client.get("/").raise_for_status().json())


def open_client(relay: Relay) -> httpx.Client:
    return httpx.Client(base_url=relay.url, timeout=_LONGEST_S)


def test_requests_of_several_connections_are_forwarded(relay: Relay) -> None:
    with open_client(relay) as one, open_client(relay) as other:
        assert [ask(one), ask(other), ask(one)] == [3, 3, 3]


def test_the_url_differs_only_in_the_address() -> None:
    url = "postgresql://tutor:word@127.0.0.1:5432/book?a=b"  # pragma: allowlist secret
    with Relay(url) as relay:
        port = urlsplit(relay.url).port
        assert port != 5432
        assert relay.url.replace(f":{port}/", ":5432/") == url


def test_a_cut_ends_open_connections_and_refuses_new_ones_until_it_is_restored(
    relay: Relay,
) -> None:
    with open_client(relay) as client, open_client(relay) as new:
        assert ask(client) == 3
        relay.cut()
        for refused in (client, new):
            with pytest.raises(httpx.TransportError):
                ask(refused)
        relay.restore()
        assert ask(client) == 3


def test_a_cut_ends_a_request_that_waits_for_its_answer() -> None:
    with serve([HANG]) as server, Relay(server.url) as relay, open_client(relay) as client:
        cutting = threading.Thread(target=_cut_after_request, args=(server.received, relay))
        cutting.start()
        with pytest.raises(httpx.RemoteProtocolError):
            ask(client)
        cutting.join(_LONGEST_S)


def _cut_after_request(received: list[object], relay: Relay) -> None:
    while not received:
        threading.Event().wait(0.01)
    relay.cut()


def test_held_connections_stay_open_and_go_on_after_they_are_restored(relay: Relay) -> None:
    with open_client(relay) as client, open_client(relay) as new:
        assert ask(client) == 3
        relay.hold()
        for waiting in (client, new):
            with pytest.raises(httpx.ReadTimeout):
                waiting.get("/", timeout=0.2)
        with socket.create_connection(_find_address(relay)) as kept:
            kept.settimeout(_LONGEST_S)
            kept.sendall(b"GET / HTTP/1.0\r\n\r\n")
            relay.restore()
            assert kept.recv(100).startswith(b"HTTP/1.1 200")


def test_a_relay_ends_while_its_connections_are_held() -> None:
    with serve([Reply(body=3)]) as server, Relay(server.url) as relay:
        relay.hold()
        kept = socket.create_connection(_find_address(relay))
    with kept:
        kept.settimeout(_LONGEST_S)
        assert _read_end(kept) == b""


def test_a_connection_ends_if_the_server_cannot_be_reached() -> None:
    with (
        Relay(f"http://127.0.0.1:{find_closed_port()}") as relay,
        open_client(relay) as client,
        pytest.raises(httpx.TransportError),
    ):
        ask(client)


def test_the_port_is_free_after_the_end(relay: Relay) -> None:
    with Relay(relay.url) as second:
        address = _find_address(second)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address)


def _find_address(relay: Relay) -> tuple[str, int]:
    parts = urlsplit(relay.url)
    assert parts.hostname
    assert parts.port
    return parts.hostname, parts.port


def _read_end(connection: socket.socket) -> bytes:
    try:
        return connection.recv(100)
    except ConnectionResetError:
        return b""
