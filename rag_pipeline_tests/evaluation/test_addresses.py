"""Cited addresses are checked in the built site's folder or over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_pipeline.evaluation.validation import check_addresses
from rag_pipeline_tests.loopback import HANG, RESET, Reply, find_closed_port, serve

if TYPE_CHECKING:
    from pathlib import Path

PAGE = '<html><h2 class="x" id="swing-phase">S</h2><h3 id=\'caf\u00e9\'>C</h3></html>'


def test_addresses_are_checked_in_the_built_site(tmp_path: Path) -> None:
    (tmp_path / "docs" / "gait").mkdir(parents=True)
    (tmp_path / "docs" / "gait" / "index.html").write_text(PAGE, "utf-8")
    (tmp_path / "docs" / "plain.html").write_text(PAGE, "utf-8")
    (tmp_path / "index.html").write_text(PAGE, "utf-8")
    urls = [
        "/book/",
        "/book/docs/gait#swing-phase",
        "/book/docs/gait/#caf%C3%A9",
        "https://host/book/docs/plain",
        "/book/docs/gait#nowhere",
        "/book/docs/missing",
        "/other/docs/gait",
        "/book/../../etc/passwd",
    ]
    report = check_addresses(urls, str(tmp_path), "https://host/book/")
    assert report.address_count == len(urls)
    assert sorted(report.problems) == sorted(urls[4:])
    assert "nowhere" in report.problems["/book/docs/gait#nowhere"]


def test_addresses_are_checked_over_http_with_one_request_per_page() -> None:
    def reply(request: object) -> Reply:
        path = request.path  # type: ignore[attr-defined]  # a Received
        if path == "/book/docs/gait":
            return Reply(body=PAGE.encode(), headers={"Content-Type": "text/html"})
        return RESET if path.endswith("reset") else Reply(404)

    urls = [
        "/book/docs/gait#swing-phase",
        "/book/docs/gait#nowhere",
        "/book/docs/missing",
        "/book/docs/reset",
    ]
    with serve(reply) as server:
        report = check_addresses(urls, server.url, "/book/")
        assert [request.path for request in server.received].count("/book/docs/gait") == 1
    assert sorted(report.problems) == sorted(urls[1:])
    assert "404" in report.problems["/book/docs/missing"]


def test_a_site_that_is_down_or_silent_is_reported_as_a_problem(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rag_pipeline.evaluation.validation.PAGE_TIMEOUT_S", 0.2)
    closed = f"http://127.0.0.1:{find_closed_port()}"
    assert check_addresses(["/book/x"], closed, "/book/").problems
    assert check_addresses(["file:///etc/passwd"], closed, "/book/").problems
    with serve([HANG]) as server:
        assert check_addresses(["/book/x"], server.url, "/book/").problems


@pytest.mark.parametrize(
    "reply",
    [
        Reply(body=b"no chunk\r\n", headers={"Transfer-Encoding": "chunked"}),
        Reply(headers={"X-Long": "y" * 200_000}),
    ],
    ids=["broken chunks", "long header"],
)
def test_a_broken_http_response_is_reported_as_a_problem(reply: Reply) -> None:
    with serve([reply]) as server:
        problems = check_addresses(["/book/x"], server.url, "/book/").problems
    assert "cannot be read" in problems["/book/x"]


def test_an_invalid_url_is_reported_as_a_problem(tmp_path: Path) -> None:
    broken = "http://[::1"
    for site in (str(tmp_path), "http://127.0.0.1"):
        problems = check_addresses([broken], site, "/book/").problems
        assert "not a valid URL" in problems[broken]
