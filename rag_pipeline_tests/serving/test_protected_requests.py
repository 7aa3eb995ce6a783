"""The checks of every request, in front of a small application on a real server."""

from __future__ import annotations

import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

import httpx
import pytest

from rag_pipeline.serving.access import ProtectedApp, read_access_rules
from rag_pipeline_tests.retrieval.indexed_book import make_settings
from rag_pipeline_tests.serving.running_service import run_app

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from starlette.types import Receive, Scope, Send

KEY = "a-key-for-tests"  # pragma: allowlist secret
ORIGIN = "https://book.example.org"


async def count_body(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request with the number of bytes of its body."""
    assert scope["type"] != "lifespan"  # without these events, the server starts too
    size, more = 0, True
    while more:
        message = await receive()
        size += len(message.get("body", b""))
        more = message.get("more_body", False)
    headers = [(b"content-type", b"text/plain"), (b"x-own", b"1")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": str(size).encode()})


@contextmanager
def run_protected(folder: Path, **overrides: object) -> Iterator[httpx.Client]:
    """Run the application behind the checks and yield a client of it."""
    rules = read_access_rules(make_settings(folder, **overrides), site_path="/book/")
    app = ProtectedApp(count_body, rules, max_body_bytes=1000)
    with run_app(app) as url, httpx.Client(base_url=url, timeout=20) as client:
        yield client


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of an application with one allowed origin and a key."""
    folder = tmp_path_factory.mktemp("protected")
    with run_protected(folder, serve_origins=ORIGIN, serve_api_key=KEY) as client:
        client.headers["Authorization"] = f"Bearer {KEY}"
        yield client


def assert_problem(response: httpx.Response, status: int, code: str) -> None:
    """Check that a response is a problem document with a status and a code."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    record = response.json()
    assert (record["status"], record["code"]) == (status, code)
    assert record["detail"]
    assert response.headers["x-content-type-options"] == "nosniff"


def test_a_request_passes_and_its_response_gets_security_headers(client: httpx.Client) -> None:
    response = client.post("/v1/answers", content=b"x" * 1000)
    assert (response.status_code, response.text) == (200, "1000")
    assert response.headers["x-own"] == "1"
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert response.headers["referrer-policy"] == "strict-origin-when-cross-origin"


def test_pages_of_the_site_may_load_their_own_parts(client: httpx.Client) -> None:
    policy = client.get("/book/docs/page").headers["content-security-policy"]
    assert "default-src" not in policy
    assert "frame-ancestors 'self'" in policy


def test_a_foreign_host_is_refused_except_for_health_checks(client: httpx.Client) -> None:
    headers = {"Host": "evil.example"}
    assert_problem(client.get("/v1/filters", headers=headers), 421, "HOST_NOT_ALLOWED")
    assert_problem(client.get("/book/", headers=headers), 421, "HOST_NOT_ALLOWED")
    assert client.get("/readyz", headers=headers).status_code == 200
    assert client.get("/v1/filters", headers={"Host": "LOCALHOST:1"}).status_code == 200


def test_a_foreign_origin_is_refused(client: httpx.Client) -> None:
    for origin in ("https://evil.example", "null", f"{ORIGIN}.evil.example", f"{ORIGIN}:8443"):
        response = client.post("/v1/answers", headers={"Origin": origin})
        assert_problem(response, 403, "ORIGIN_NOT_ALLOWED")
        assert "access-control-allow-origin" not in response.headers


def test_an_allowed_origin_may_read_the_response(client: httpx.Client) -> None:
    response = client.post("/v1/answers", headers={"Origin": ORIGIN})
    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == ORIGIN
    assert "access-control-allow-credentials" not in response.headers
    assert response.headers["vary"] == "Origin"


def test_pages_of_the_service_itself_may_call_it(client: httpx.Client) -> None:
    own = str(client.base_url).rstrip("/")
    assert client.post("/v1/answers", headers={"Origin": own}).status_code == 200


def test_options_that_are_no_preflight_need_the_key(client: httpx.Client) -> None:
    response = client.options("/v1/answers", headers={"Origin": ORIGIN, "Authorization": ""})
    assert_problem(response, 401, "KEY_INVALID")
    assert client.options("/v1/answers", headers={"Origin": ORIGIN}).status_code == 200


def test_a_preflight_needs_no_key(client: httpx.Client) -> None:
    headers = {"Origin": ORIGIN, "Access-Control-Request-Method": "POST", "Authorization": ""}
    response = client.options("/v1/answers", headers=headers)
    assert (response.status_code, response.content) == (204, b"")
    assert "POST" in response.headers["access-control-allow-methods"]
    assert "authorization" in response.headers["access-control-allow-headers"]
    refused = client.options("/v1/answers", headers=headers | {"Origin": "https://evil.example"})
    assert_problem(refused, 403, "ORIGIN_NOT_ALLOWED")


@pytest.mark.parametrize("sent", ["", KEY, "Basic abc", "Bearer", "Bearer wrong", f"Bearer {KEY}x"])
def test_a_wrong_key_is_refused(client: httpx.Client, sent: str) -> None:
    response = client.get("/v1/filters", headers={"Authorization": sent})
    assert_problem(response, 401, "KEY_INVALID")
    assert response.headers["www-authenticate"].startswith("Bearer")
    assert KEY not in response.text


def test_health_and_the_site_need_no_key(client: httpx.Client) -> None:
    for path in ("/healthz", "/readyz", "/", "/book/"):
        assert client.get(path, headers={"Authorization": ""}).status_code == 200


def test_a_body_that_is_too_large_is_refused(client: httpx.Client) -> None:
    assert_problem(client.post("/v1/answers", content=b"x" * 1001), 413, "BODY_TOO_LARGE")

    def pieces() -> Iterator[bytes]:
        for _ in range(11):
            yield b"x" * 100

    assert_problem(client.post("/v1/answers", content=pieces()), 413, "BODY_TOO_LARGE")
    one_piece = iter([b"x" * 1100])  # its end can arrive together with the byte that is too much
    assert_problem(client.post("/v1/answers", content=one_piece), 413, "BODY_TOO_LARGE")


def test_a_body_in_pieces_arrives_complete(client: httpx.Client) -> None:
    response = client.post("/v1/answers", content=iter([b"x" * 600, b"y" * 400]))
    assert (response.status_code, response.text) == (200, "1000")


def test_a_request_without_a_host_is_refused(client: httpx.Client) -> None:
    host, port = client.base_url.host, client.base_url.port
    assert port is not None
    with socket.create_connection((host, port), timeout=20) as connection:
        connection.sendall(b"GET /v1/filters HTTP/1.0\r\n\r\n")
        received = connection.makefile("rb").read()
    assert received.split(b" ")[1] in {b"400", b"421"}


def test_without_origins_the_service_is_closed_to_other_pages(tmp_path: Path) -> None:
    with run_protected(tmp_path) as client:
        assert client.post("/v1/answers").status_code == 200
        response = client.post("/v1/answers", headers={"Origin": ORIGIN})
        assert_problem(response, 403, "ORIGIN_NOT_ALLOWED")
