"""The rules of who may call the service."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from uvicorn.middleware.proxy_headers import _TrustedHosts

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.serving.access import (
    AccessRules,
    read_access_rules,
    read_trusted_proxies,
    strip_port,
)
from rag_pipeline_tests.retrieval.indexed_book import make_settings

if TYPE_CHECKING:
    from pathlib import Path


def test_own_names_and_named_hosts_are_known(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, serve_hosts="Tutor.example.org:443, 10.0.0.5")
    rules = read_access_rules(settings, hosts=["::1", "0.0.0.0"])
    assert rules.hosts == {
        "localhost", "127.0.0.1", "[::1]", "0.0.0.0", "tutor.example.org", "10.0.0.5",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("serve_hosts", "https://tutor.example.org"),
        ("serve_hosts", "*"),
        ("serve_origins", "*"),
        ("serve_origins", "null"),
        ("serve_origins", "https://book.example.org/"),
        ("serve_origins", "https://book.example.org/path"),
        ("serve_origins", "https://user@book.example.org"),
        ("serve_origins", "https://[::1"),
        ("serve_origins", "ftp://book.example.org"),
        ("serve_api_key", "two words"),
        ("serve_api_key", "schlüssel"),
    ],
)
def test_a_value_that_cannot_work_is_refused(tmp_path: Path, setting: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=setting.upper()):
        read_access_rules(make_settings(tmp_path, **{setting: value}))


def test_proxies_are_addresses_or_networks(tmp_path: Path) -> None:
    settings = make_settings(tmp_path, serve_trusted_proxies="10.0.0.5, 192.168.0.0/16,")
    proxies = read_trusted_proxies(settings)
    assert proxies == [
        "10.0.0.5/32", "::ffff:10.0.0.5/128", "192.168.0.0/16", "::ffff:192.168.0.0/112",
    ]  # fmt: skip
    trusted = _TrustedHosts(proxies)
    for address in ("10.0.0.5", "::ffff:10.0.0.5", "192.168.3.4", "::ffff:192.168.3.4"):
        assert address in trusted
    assert "::ffff:10.0.0.6" not in trusted
    for wrong in ("*", "proxy.example.org"):
        with pytest.raises(ConfigurationError, match="SERVE_TRUSTED_PROXIES"):
            read_trusted_proxies(make_settings(tmp_path, serve_trusted_proxies=wrong))


@pytest.mark.parametrize(
    ("header", "host"),
    [
        ("Localhost:8000", "localhost"),
        ("[::1]:8000", "[::1]"),
        ("[::1]", "[::1]"),
        ("book.example.org", "book.example.org"),
        ("", ""),
    ],
)
def test_the_port_of_a_host_is_ignored(header: str, host: str) -> None:
    assert strip_port(header) == host


def test_only_the_api_needs_a_key() -> None:
    rules = AccessRules(
        frozenset({"localhost"}),
        api_key="k",  # pragma: allowlist secret
        site_path="/book/",
    )
    assert rules.needs_key("/v1/answers")
    assert rules.needs_key("/mcp")
    assert rules.needs_key("/metrics")
    assert rules.needs_key("/unknown")
    for open_path in ("/healthz", "/readyz", "/", "/book", "/book/", "/book/docs/page"):
        assert not rules.needs_key(open_path), open_path


def test_a_site_at_the_root_does_not_open_the_api() -> None:
    rules = AccessRules(frozenset(), api_key="k", site_path="/")  # pragma: allowlist secret
    assert rules.needs_key("/v1/answers")
    assert rules.needs_key("/mcp/")
    assert not rules.needs_key("/docs/page")
    assert not rules.needs_key("/v1-notes")
