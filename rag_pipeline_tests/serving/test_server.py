"""Where the service listens, and what it says about that."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.serving.app import Place, describe_addresses, listen
from rag_pipeline_tests.retrieval.indexed_book import make_settings

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("host", ["", "  ", "[]"])
def test_an_empty_host_is_refused(host: str) -> None:
    with pytest.raises(ConfigurationError, match="the host is empty"):
        listen(host, 0)


@pytest.mark.parametrize("host", ["::", "[::]"])
def test_all_networks_with_ipv6_include_ipv4(host: str) -> None:
    if not socket.has_dualstack_ipv6():
        pytest.skip("this machine has no IPv6")
    with listen(host, 0) as listener:
        port = listener.getsockname()[1]
        for address in ("127.0.0.1", "::1"):
            with socket.create_connection((address, port), timeout=5):
                pass


@pytest.mark.parametrize(
    ("host", "base"),
    [
        ("::1", "http://[::1]:8000"),
        ("[::1]", "http://[::1]:8000"),
        ("0.0.0.0", "http://127.0.0.1:8000"),  # only its description is tested
        ("tutor.example.org", "http://tutor.example.org:8000"),
    ],
)
def test_the_printed_addresses_can_be_opened(tmp_path: Path, host: str, base: str) -> None:
    lines = describe_addresses(8000, make_settings(tmp_path), Place(host, 8000))
    assert f"  Questions:  {base}/v1/answers (POST)" in lines
