"""The limits of the number of questions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx
import pytest

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.serving.limits import CLIENT_KEY_FILE, RateLimits, limit_rate
from rag_pipeline_tests.loopback import find_closed_port
from rag_pipeline_tests.retrieval.indexed_book import make_settings
from rag_pipeline_tests.serving.running_service import run_app
from rag_pipeline_tests.serving.test_protected_requests import count_body

if TYPE_CHECKING:
    from pathlib import Path


def read(folder: Path, **overrides: object) -> RateLimits:
    """Return the limits of settings."""
    return RateLimits(make_settings(folder, **overrides))


def count(limits: RateLimits, *addresses: str) -> list[bool]:
    """Count one question of each address, and return which were allowed."""

    async def count_all() -> list[bool]:
        return [await limits.count(address) is None for address in addresses]

    return asyncio.run(count_all())


@pytest.mark.parametrize(
    ("client", "total", "addresses", "allowed"),
    [
        ("2/hour", "", ["10.0.0.1"] * 3 + ["10.0.0.2"], [True, True, False, True]),
        ("", "2/hour", ["10.0.0.1", "10.0.0.2", "10.0.0.3"], [True, True, False]),
        ("1/hour", "", ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"], [True, False, True]),
        ("1/hour", "", ["10.0.0.1", "::ffff:10.0.0.1", "::ffff:10.0.0.2"], [True, False, True]),
        ("5/second;2/hour", "", ["unix"] * 3, [True, True, False]),
        ("", " ", ["10.0.0.1"] * 1000, [True] * 1000),
    ],
    ids=["client", "total", "household with IPv6", "IPv4 on an IPv6 socket", "several", "none"],
)
def test_questions_are_counted_per_client_and_in_total(
    tmp_path: Path, client: str, total: str, addresses: list[str], allowed: list[bool]
) -> None:
    limits = read(tmp_path, serve_client_rate=client, serve_total_rate=total)
    assert count(limits, *addresses) == allowed


def test_the_wait_ends_with_the_window(tmp_path: Path) -> None:
    limits = read(tmp_path, serve_client_rate="1/minute", serve_total_rate="")

    async def wait() -> float | None:
        await limits.count("10.0.0.1")
        return await limits.count("10.0.0.1")

    assert 1 <= (asyncio.run(wait()) or 0) <= 61


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("serve_client_rate", "often"),
        ("serve_client_rate", "0/minute"),
        ("serve_total_rate", "5"),
        ("serve_rate_url", "memcached://127.0.0.1"),
        ("serve_rate_url", "redis://127.0.0.1:port"),
    ],
)
def test_a_value_that_cannot_work_is_refused(tmp_path: Path, setting: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=setting.upper()):
        RateLimits(make_settings(tmp_path, **{setting: value}))


def test_addresses_in_redis_are_hashed_with_a_key_that_processes_share(tmp_path: Path) -> None:
    def hash_client(folder: Path) -> str:
        url = f"redis://127.0.0.1:{find_closed_port()}"
        return read(folder, serve_rate_url=url).hash_client("10.0.0.1")  # as stored

    first = hash_client(tmp_path / "a")
    assert hash_client(tmp_path / "a") == first
    assert hash_client(tmp_path / "b") != first
    (key,) = (tmp_path / "a").rglob(f"{CLIENT_KEY_FILE}*")
    assert len(key.read_bytes()) == 32
    assert key.stat().st_mode & 0o077 == 0


def test_broken_redis_does_not_stop_answers(tmp_path: Path) -> None:
    failures: list[None] = []
    settings = make_settings(
        tmp_path,
        serve_client_rate="2/hour",
        serve_rate_url=f"redis://127.0.0.1:{find_closed_port()}",
    )
    limits = RateLimits(settings, lambda: failures.append(None))
    assert count(limits, "10.0.0.1", "10.0.0.1", "10.0.0.1") == [True, True, False]
    assert len(failures) == 1  # Redis is not tried again at once


def test_a_question_over_the_limit_gets_429(tmp_path: Path) -> None:
    refused: list[None] = []
    limits = read(tmp_path, serve_client_rate="1/hour", serve_total_rate="")
    app = limit_rate(count_body, limits, lambda: refused.append(None))
    with run_app(app) as url, httpx.Client(base_url=url, timeout=20) as client:
        assert client.post("/v1/answers").status_code == 200
        for path in ("/v1/search", "/v1/answers/", "/mcp", "/v1/chat/completions"):
            response = client.post(path)
            assert response.status_code == 429
            assert response.json()["code"] == "RATE_LIMITED"
            assert 3000 <= int(response.headers["retry-after"]) <= 3601
        assert client.get("/v1/filters").status_code == 200
    assert len(refused) == 4


def test_ratings_and_deletions_are_limited_apart_from_questions(tmp_path: Path) -> None:
    limits = read(tmp_path, serve_client_rate="3/hour", serve_total_rate="")
    with run_app(limit_rate(count_body, limits)) as url, httpx.Client(base_url=url) as client:
        asked = [client.post("/v1/answers").status_code for _ in range(4)]
        changed = [
            client.post("/v1/feedback").status_code,
            client.delete("/v1/answers/a").status_code,
            client.delete("/v1/conversations/c/").status_code,
            client.post("/v1/feedback").status_code,
        ]
    assert asked == changed == [200, 200, 200, 429]


def test_a_key_is_only_read_after_the_first_start_and_must_not_be_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = make_settings(
        tmp_path,
        serve_client_rate="2/hour",
        serve_rate_url=f"redis://127.0.0.1:{find_closed_port()}",
    )
    RateLimits(settings)
    with monkeypatch.context() as patch:
        patch.delattr("os.open")
        patch.delattr("os.link")
        RateLimits(settings)
    (settings.state_dir / CLIENT_KEY_FILE).write_bytes(b"")
    with pytest.raises(ConfigurationError, match="is empty"):
        RateLimits(settings)
