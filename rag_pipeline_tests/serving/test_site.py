"""The website on the port of the service."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest
from starlette.applications import Starlette

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.serving.site import find_site, find_site_path, mount_site
from rag_pipeline_tests.serving.running_service import run_app

if TYPE_CHECKING:
    from collections.abc import Iterator

FILES = {
    "index.html": "home",
    "404.html": "missing",
    "docs/page.html": "page",
    "docs/page.md": "# Köln",
    "docs/part/index.html": "part",
    "assets/js/main.1234.js": "code",
    "img/logo.svg": "<svg/>",
    "llms.txt": "text",
    "robotutor-search/manifest.json": '{"index": "index.bin", "format": 2}',
}


def build_site(folder: Path) -> Path:
    """Write a small built website into a folder, with a secret file next to it."""
    site = folder / "build"
    for name, text in FILES.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text, encoding="utf-8")
    (folder / "secret.txt").write_text("secret")
    (site / "link.txt").symlink_to(folder / "secret.txt")
    return site


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a website below `/book/`."""
    app = Starlette()
    mount_site(app, build_site(tmp_path_factory.mktemp("site")), "/book/")
    with run_app(app) as url, httpx.Client(base_url=url, timeout=20) as client:
        yield client


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/book/", "home"),
        ("/book/docs/page", "page"),
        ("/book/docs/page/", "page"),
        ("/book/docs/page.html", "page"),
        ("/book/docs/part", "part"),
        ("/book/docs/part/", "part"),
        ("/book/llms.txt", "text"),
    ],
)
def test_a_page_has_several_addresses(client: httpx.Client, path: str, text: str) -> None:
    response = client.get(path)
    assert (response.status_code, response.text) == (200, text)


def test_the_service_answers_although_the_site_has_an_index(client: httpx.Client) -> None:
    assert client.get("/book/robotutor-search/manifest.json").json() == {"index": None}


@pytest.mark.parametrize("path", ["/", "/book"])
def test_the_start_leads_to_the_book(client: httpx.Client, path: str) -> None:
    response = client.get(path)
    assert (response.status_code, response.headers["location"]) == (307, "/book/")


@pytest.mark.parametrize(
    ("path", "kind", "caching"),
    [
        ("/book/assets/js/main.1234.js", "text/javascript", "immutable"),
        ("/book/img/logo.svg", "image/svg+xml", "no-cache"),
        ("/book/docs/page", "text/html", "no-cache"),
        ("/book/docs/page.md", "text/markdown; charset=utf-8", "no-cache"),
        ("/book/llms.txt", "text/plain; charset=utf-8", "no-cache"),
    ],
)
def test_types_and_caching(client: httpx.Client, path: str, kind: str, caching: str) -> None:
    response = client.get(path)
    assert response.headers["content-type"].startswith(kind)
    assert caching in response.headers["cache-control"]


def test_a_markdown_file_is_sent_as_it_is(client: httpx.Client) -> None:
    assert client.get("/book/docs/page.md").text == "# Köln"


def test_an_unchanged_page_is_not_sent_again(client: httpx.Client) -> None:
    tag = client.get("/book/docs/page").headers["etag"]
    again = client.get("/book/docs/page", headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/book/docs/nothing",
        "/book/assets",
        "/book/%00",
        "/book/" + "x" * 300,
        "/book/..%2fsecret.txt",
        "/book/%2e%2e/secret.txt",
        "/book/docs/..%2f..%2fsecret.txt",
        "/book//etc/passwd",
        "/book/link.txt",
    ],
)
def test_a_missing_page_or_a_file_outside_is_not_found(client: httpx.Client, path: str) -> None:
    response = client.get(path)
    assert (response.status_code, response.text) == (404, "missing")
    assert response.headers["content-type"].startswith("text/html")


def test_dots_in_the_path_do_not_leave_the_folder(client: httpx.Client) -> None:
    host, port = client.base_url.host, client.base_url.port
    assert port is not None
    with socket.create_connection((host, port), timeout=20) as connection:
        request = "GET /book/../../secret.txt HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
        connection.sendall(f"{request}\r\n".encode())
        received = connection.makefile("rb").read()
    assert received.split(b" ")[1] == b"404"
    assert b"secret" not in received


def test_only_reading_is_allowed(client: httpx.Client) -> None:
    assert client.post("/book/docs/page").status_code == 405
    assert client.head("/book/docs/page").status_code == 200


def test_a_site_at_the_root(tmp_path: Path) -> None:
    app = Starlette()
    mount_site(app, build_site(tmp_path), find_site_path("https://book.example.org"))
    with run_app(app) as url, httpx.Client(base_url=url, timeout=20) as client:
        assert client.get("/").text == "home"
        assert client.get("/docs/page").text == "page"


def test_the_usual_folder_is_found_next_to_the_documents(tmp_path: Path) -> None:
    assert find_site(tmp_path / "docs", None) is None
    site = build_site(tmp_path)
    assert find_site(tmp_path / "docs", None) == site
    assert find_site(Path("elsewhere/docs"), site) == site
    with pytest.raises(ConfigurationError, match="--site"):
        find_site(tmp_path / "docs", tmp_path)


@pytest.mark.parametrize(
    ("setting", "path"),
    [("/", "/"), ("/book/", "/book/"), ("https://e.org", "/"), ("https://e.org/book", "/book/")],
)
def test_the_path_of_the_base_url(setting: str, path: str) -> None:
    assert find_site_path(setting) == path
