"""Tests of the proxies and certificates that HTTP clients take from the environment."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.chat_model import OpenAIChatModel
from rag_pipeline.adapters.embedders.openai import OpenAIEmbedder
from rag_pipeline.adapters.http import describe_broken
from rag_pipeline.adapters.stores.qdrant_connection import connect_server
from rag_pipeline.core.errors import AnswerServiceError, ConfigurationError
from rag_pipeline.core.protocols import ChatMessage
from rag_pipeline_tests.loopback import Reply, find_closed_port, serve

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MESSAGES = [ChatMessage("user", "Why?")]
FAR_AWAY = "http://book.invalid/v1"  # only a proxy could reach it


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "SSL_CERT_FILE"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    return


def ask(url: str) -> str:
    """Return the answer of the chat service at a URL."""

    async def skip_wait(_: float) -> None:
        """Try again at once."""

    async def collect() -> str:
        model = OpenAIChatModel(
            model="m", api_key="", base_url=url, timeout_s=20, max_tokens=50, sleep=skip_wait
        )
        async with aclosing(model.stream(MESSAGES)) as stream:
            return "".join([piece async for piece in stream])

    return asyncio.run(collect())


def embed(url: str) -> object:
    """Embed a text with the embedding service at a URL."""
    embedder = OpenAIEmbedder(
        model="m", dim=2, api_key="k", base_url=url, batch_size=1, timeout_s=20
    )
    return embedder.embed_query("Why?")


def connect_store(url: str) -> object:
    """Create the client of a vector store."""
    return connect_server(url, api_key="", timeout_s=20)


@pytest.mark.parametrize("use", [ask, embed, connect_store])
@pytest.mark.parametrize(
    ("variable", "value", "problem"),
    [
        ("ALL_PROXY", "socks5://user:secret@127.0.0.1:1", "needs the package socksio"),
        ("http_proxy", "ftp://user:secret@127.0.0.1:1", "the proxy is not valid"),
        ("SSL_CERT_FILE", "nowhere.pem", "nowhere.pem cannot be read"),
    ],
)
def test_an_unusable_environment_is_an_error_that_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, use: object, variable: str, value: str, problem: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError, match=problem) as caught:
        use(FAR_AWAY)  # type: ignore[operator]  # one of the functions above
    assert caught.value.setting == variable.upper()
    assert "secret" not in str(caught.value)


def test_a_file_without_certificates_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "certificates.pem"
    path.write_text("nothing", "utf-8")
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    with pytest.raises(ConfigurationError, match=r"certificates\.pem .* \(no certificate in it\)"):
        ask(FAR_AWAY)


def test_a_failure_names_the_proxy_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://user:secret@127.0.0.1:{find_closed_port()}")
    with pytest.raises(AnswerServiceError, match=r"a proxy \(HTTP_PROXY\): check it") as caught:
        ask(FAR_AWAY)
    assert "secret" not in str(caught.value)


def test_a_failure_without_the_proxy_does_not_mention_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{find_closed_port()}")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with pytest.raises(AnswerServiceError) as caught:
        ask(f"http://127.0.0.1:{find_closed_port()}/v1")
    assert "proxy" not in str(caught.value)


def test_https_for_a_server_without_tls_is_explained() -> None:
    with (
        serve([Reply()] * 3) as server,
        pytest.raises(AnswerServiceError, match="does not speak TLS"),
    ):
        ask(server.url.replace("http:", "https:"))


def test_an_untrusted_certificate_is_explained() -> None:
    refused = ssl.SSLCertVerificationError()
    refused.verify_message = "self-signed certificate"
    outer = OSError("connect")
    outer.__cause__ = refused
    assert "self-signed certificate; SSL_CERT_FILE" in describe_broken(outer)
