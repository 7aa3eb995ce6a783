"""Tests of `rag-pipeline serve` behind a real nginx with the configuration of `deploy`."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
from mcp.client.client import Client

from rag_pipeline.serving.limits import MAX_BODY_BYTES
from rag_pipeline_tests.end_to_end.command import Command, SlowModel, make_command, serving
from rag_pipeline_tests.loopback import find_closed_port, serve

if TYPE_CHECKING:
    from collections.abc import Iterator

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
CONFIGURATION = Path(__file__).parents[2] / "deploy" / "nginx.conf"
LIMIT = 6  # an agent sends a few requests for one question
HOST = {"Host": "tutor.example.org"}
ASKED = {"question": "What holds a servo at an angle?"}
SELECTED = {
    "question": "What holds a servo?",
    "mode": "selected_text_only",
    "selected_text": "A servo holds its joint at an angle.",
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(NGINX is None, reason="nginx is not installed"),
]


@pytest.fixture(scope="module")
def model() -> SlowModel:
    """A model that writes an answer when it is released."""
    return SlowModel()


@pytest.fixture(scope="module")
def direct(tmp_path_factory: pytest.TempPathFactory, model: SlowModel) -> Iterator[str]:
    """The address of the service itself, over an indexed book."""
    with serve(model) as server:
        command: Command = make_command(tmp_path_factory.mktemp("indexed"), server.url)
        assert command.run("ingest").code == 0
        settings = {
            "OPENAI_BASE_URL": f"{server.url}/v1",
            "ANSWER_MODEL": "m",
            "SERVE_HOSTS": "tutor.example.org",
            "SERVE_TRUSTED_PROXIES": "127.0.0.1",
            "SERVE_CLIENT_RATE": f"{LIMIT}/hour",
        }
        with serving(command, **settings) as (_, url):
            yield url


@pytest.fixture(scope="module")
def proxied(direct: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of nginx in front of the service."""
    with _run_nginx(tmp_path_factory.mktemp("nginx"), direct) as url:
        yield url


@contextmanager
def _run_nginx(folder: Path, service: str) -> Iterator[str]:
    """Run nginx in front of the service with files only in the folder, and yield its address."""
    port = find_closed_port()
    site = CONFIGURATION.read_text(encoding="utf-8")
    changes = {
        "listen 80;": f"listen 127.0.0.1:{port};",
        "server 127.0.0.1:8000;": f"server {service.removeprefix('http://')};",
    }
    for old, new in changes.items():
        assert site.count(old) == 1
        site = site.replace(old, new)
    (folder / "site.conf").write_text(site, encoding="utf-8")
    places = " ".join(
        f"{name}_temp_path {folder}/{name};"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        # One process without a master keeps the user of the test, who may read the folder.
        f"daemon off; master_process off; pid {folder}/pid; error_log stderr; events {{}} "
        f"http {{ access_log off; {places} include {folder}/site.conf; }}",
        encoding="utf-8",
    )
    command = [str(NGINX), "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "stderr"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        _wait_until_open(process, port)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.communicate(timeout=20)


def _wait_until_open(process: subprocess.Popen[str], port: int) -> None:
    """Connect again and again until a process accepts a connection."""
    while process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
        except ConnectionRefusedError:
            continue
        return
    raise AssertionError(process.communicate())


def open_client(address: str, source: str, **headers: str) -> httpx.Client:
    """Return a client that connects from its own address of this machine."""
    transport = httpx.HTTPTransport(local_address=source)
    return httpx.Client(base_url=address, headers=HOST | headers, transport=transport, timeout=60)


def test_each_event_of_a_stream_arrives_when_it_is_sent(proxied: str, model: SlowModel) -> None:
    with (
        open_client(proxied, "127.0.0.2", Accept="text/event-stream") as client,
        client.stream("POST", "/v1/answers", json=SELECTED) as response,
    ):
        assert response.headers["content-type"].startswith("text/event-stream")
        lines = response.iter_lines()
        assert next(lines) == "event: start"
        assert model.asked.wait(30)
        model.released.set()
        assert "event: done" in list(lines)


def test_an_agent_uses_the_tools(proxied: str, model: SlowModel) -> None:
    model.released.set()

    async def run() -> None:
        async with Client(f"{proxied}/mcp") as client:
            found = await client.call_tool("search_docs", {"query": "What holds a servo?"})
            assert found.structured_content["passages"]

    asyncio.run(run())


def test_a_body_over_the_limit_gets_the_same_answer_as_from_the_service(
    proxied: str, direct: str
) -> None:
    answers = []
    for address in (proxied, direct):
        with open_client(address, "127.0.0.3") as client:
            body = b"x" * (MAX_BODY_BYTES + 1)
            response = client.post("/v1/answers", content=body)
            answers.append((response.headers["content-type"], response.json()))
            assert response.status_code == 413
    assert answers[0] == answers[1]
    assert answers[0][0] == "application/problem+json"


def test_a_body_of_the_largest_size_reaches_the_service(proxied: str) -> None:
    with open_client(proxied, "127.0.0.4") as client:
        response = client.post("/v1/answers", content=b"x" * MAX_BODY_BYTES)
        assert (response.status_code, response.json()["code"]) == (415, "MEDIA_TYPE_UNSUPPORTED")


def test_the_rate_limit_counts_each_client_whatever_it_claims_to_be(
    proxied: str, model: SlowModel
) -> None:
    model.released.set()
    with open_client(proxied, "127.0.0.5") as one, open_client(proxied, "127.0.0.6") as other:
        statuses = [
            one.post(
                "/v1/search", json=ASKED, headers={"X-Forwarded-For": f"10.0.0.{number}"}
            ).status_code
            for number in range(LIMIT + 1)
        ]
        assert statuses == [200] * LIMIT + [429]
        assert other.post("/v1/search", json=ASKED).status_code == 200


def test_the_metrics_are_hidden_and_a_foreign_host_is_refused(proxied: str) -> None:
    with open_client(proxied, "127.0.0.7") as client:
        assert client.get("/metrics").status_code == 404
        assert client.get("/v1/filters").status_code == 200
        foreign = client.get("/v1/filters", headers={"Host": "evil.example.com"})
        assert foreign.status_code == 421
