"""The MCP server, used by the official client over standard input and output and over HTTP."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from fastapi import FastAPI
from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError
from starlette.middleware.base import BaseHTTPMiddleware

from rag_pipeline.answering import Assistant
from rag_pipeline.answering.voice import Voice
from rag_pipeline.core.text.terms import count_tokens
from rag_pipeline.retrieval import Query, open_retriever
from rag_pipeline.retrieval.open_index import ContentsPage
from rag_pipeline.retrieval.retriever import Retriever
from rag_pipeline.serving.access import ProtectedApp, read_access_rules
from rag_pipeline.serving.app import mount_mcp
from rag_pipeline.serving.mcp import BookServer, cut_text, describe_coverage
from rag_pipeline_tests.retrieval.indexed_book import (
    PAGES,
    MemoryCache,
    build_collection,
    make_points,
    make_settings,
)
from rag_pipeline_tests.serving.running_service import run_app

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence
    from pathlib import Path

    from fastapi import Request, Response
    from mcp.types import CallToolResult
    from starlette.middleware.base import RequestResponseEndpoint

    from rag_pipeline.core.vectors import ChunkVectors

LONG_PAGE = "module-3/3.1-long/long.md"
LONG = "---\ntitle: Gears\n---\n\n# Gears\n\n## Ratios\n\n" + "\n\n".join(
    f"Gear number {number} has {number} teeth and turns the next gear by its ratio of {number}."
    for number in range(3_000)
)
TOPICS = "/book/docs/module-1/1.2-ros2/topics"
TOOLS = ["search_docs", "read_section", "list_contents", "ask_textbook"]
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
ACCEPT = {"Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the tiny book and of one long page, which are indexed."""
    made = tmp_path_factory.mktemp("book")
    points = make_points(PAGES)
    vectors = points[0].vectors
    build_collection(make_settings(made), points + make_points({LONG_PAGE: LONG}, _Known(vectors)))
    return made


class _Known(MemoryCache):
    """The same vectors for each text, because the embedding of the long page takes long."""

    def __init__(self, vectors: ChunkVectors) -> None:
        self._vectors = vectors

    def get_many(self, fingerprint: str, text_hashes: Sequence[str]) -> dict[str, ChunkVectors]:
        """Return the vectors."""
        del fingerprint
        return dict.fromkeys(text_hashes, self._vectors)


@pytest.fixture(scope="module")
def assistant(folder: Path) -> Iterator[Assistant]:
    """An assistant over the book that quotes passages."""
    with Assistant(open_retriever(make_settings(folder, store_idle_s=30.0))) as opened:
        yield opened


@pytest.fixture(scope="module")
def address(assistant: Assistant, folder: Path) -> Iterator[str]:
    """The address of a server with MCP at `/mcp`."""
    app = FastAPI()
    mount_mcp(app, assistant)
    names = {"serve_hosts": "tutor.example.org", "serve_origins": "https://book.example.org"}
    app.add_middleware(ProtectedApp, rules=read_access_rules(make_settings(folder, **names)))
    with run_app(app) as url:
        yield f"{url}/mcp"


def run(assistant: Assistant, action: Callable[[Client], Awaitable[Any]]) -> Any:  # noqa: ANN401  # any result
    """Return the result of what a client in this process does with a server."""

    async def use() -> Any:  # noqa: ANN401  # as above
        async with Client(BookServer(assistant)) as client:
            return await action(client)

    return asyncio.run(use())


def call(assistant: Assistant, tool: str, **arguments: object) -> CallToolResult:
    """Return the result of a tool."""
    result: CallToolResult = run(assistant, lambda client: client.call_tool(tool, arguments))
    return result


def use(assistant: Assistant, tool: str, **arguments: object) -> dict[str, Any]:
    """Return the structured result of a tool, which must succeed."""
    result = call(assistant, tool, **arguments)
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


def fail(assistant: Assistant, tool: str, **arguments: object) -> str:
    """Return the message of a tool, which must fail."""
    result = call(assistant, tool, **arguments)
    assert result.is_error
    return str(result.content[0].text)


def read(assistant: Assistant, uri: str) -> str:
    """Return the text of a resource."""
    return str(run(assistant, lambda client: client.read_resource(uri)).contents[0].text)


async def use_all_tools(client: Client) -> None:
    """Use each tool and resource once, as an agent does."""
    assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
    found = await client.call_tool("search_docs", {"query": "publish messages on a topic"})
    url = found.structured_content["passages"][0]["url"]
    assert url == f"{TOPICS}#publishers"
    section = await client.call_tool("read_section", {"url": url})
    assert "create_publisher(JointState" in section.structured_content["text"]
    contents = await client.call_tool("list_contents", {})
    resource = contents.structured_content["pages"][1]["resource"]
    page = await client.read_resource(resource)
    assert "## Services" in page.contents[0].text
    answer = await client.call_tool("ask_textbook", {"question": "How does a node publish?"})
    assert answer.structured_content["sources"]


async def connect(server: object) -> None:
    """Use all tools of a server."""
    async with Client(server) as client:
        await use_all_tools(client)


def test_an_agent_uses_all_tools_over_http(address: str) -> None:
    asyncio.run(connect(address))


def test_an_agent_uses_all_tools_over_standard_input(folder: Path) -> None:
    code = f"""
from pathlib import Path
from rag_pipeline.answering import open_assistant
from rag_pipeline.serving.mcp import run_stdio
from rag_pipeline_tests.retrieval.indexed_book import make_settings
with open_assistant(make_settings(Path({str(folder)!r}))) as assistant:
    run_stdio(assistant)
"""
    server = StdioServerParameters(command=sys.executable, args=["-c", code])
    asyncio.run(connect(stdio_client(server)))


def test_a_page_may_send_every_header_of_the_protocol(assistant: Assistant, folder: Path) -> None:
    origin = "https://agent.example.org"
    sent: set[str] = set()

    async def record(request: Request, respond: RequestResponseEndpoint) -> Response:
        sent.update(request.headers)
        return await respond(request)

    app = FastAPI()
    mount_mcp(app, assistant)
    rules = read_access_rules(make_settings(folder, serve_origins=origin))
    app.add_middleware(ProtectedApp, rules=rules)
    app.add_middleware(BaseHTTPMiddleware, dispatch=record)

    with run_app(app) as url:
        headers = {"Origin": origin, "Access-Control-Request-Method": "POST"}
        preflight = httpx.options(f"{url}/mcp", headers=headers)
        sent.clear()
        asyncio.run(connect(f"{url}/mcp"))
    allowed = preflight.headers["access-control-allow-headers"].split(", ")
    set_by_browsers = {"accept", "accept-encoding", "connection", "content-length", "host"}
    assert {"mcp-method", "mcp-name", "mcp-protocol-version"} <= sent
    assert sent - set_by_browsers - {"user-agent"} <= set(allowed)


def test_names_and_descriptions_say_which_book_it_is_and_what_it_covers(folder: Path) -> None:
    voice = Voice(source="2nd Rover Handbook", name="Rover")

    async def describe(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        resources = [resource.uri for resource in (await client.list_resources()).resources]
        contents = await client.call_tool("list_contents", {})
        page = await client.read_resource(contents.structured_content["pages"][0]["resource"])
        assert tools.keys() == {*TOOLS[:3], "ask_2nd_rover_handbook"}
        assert [str(uri) for uri in resources] == ["nd-rover-handbook://toc"]
        assert page.contents[0].text
        for tool in tools.values():
            assert "textbook" not in f"{tool.title} {tool.description}"
        for name in ("search_docs", "ask_2nd_rover_handbook"):
            assert "the 2nd Rover Handbook" in tools[name].description
            assert "Embodiment; Lab: measuring a wall; Gears" in tools[name].description

    with Assistant(open_retriever(make_settings(folder)), voice=voice) as opened:
        run(opened, describe)


def test_the_tools_are_listed_without_an_index(tmp_path: Path) -> None:
    with Assistant(open_retriever(make_settings(tmp_path))) as empty:
        listed = run(empty, lambda client: client.list_tools())
    assert [tool.name for tool in listed.tools] == TOOLS


@pytest.mark.parametrize("chapters", [("",), ("one", "two")])
def test_a_book_without_modules_covers_its_chapters_or_pages(chapters: tuple[str, ...]) -> None:
    pages = [
        ContentsPage(f"Page {at} {'x' * 100}", f"/p{at}", f"p{at}.md", "", chapters[at % 2 - 1], ())
        for at in range(20)
    ]
    covered = describe_coverage(pages[:: len(chapters)] if len(chapters) == 1 else pages)
    assert covered.startswith("It covers: Page 0 ")
    assert ("and 15 more" in covered) == (len(chapters) == 1)
    assert ("Page 2 " in covered) == (len(chapters) == 1)
    assert not describe_coverage([])


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_there_is_no_stream_to_wait_for(address: str, method: str) -> None:
    headers = {"Accept": "text/event-stream"}
    response = httpx.request(method, address, headers=headers, timeout=5)
    assert (response.status_code, response.headers["allow"]) == (405, "POST")


def test_tools_are_read_only_and_describe_their_results(assistant: Assistant) -> None:
    for tool in run(assistant, lambda client: client.list_tools()).tools:
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint
        assert tool.output_schema
        assert "Use" in (tool.description or "")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example.com"}, 421),
        ({"Origin": "https://evil.example.com"}, 403),
        ({"Host": "tutor.example.org"}, 200),
        ({"Origin": "https://book.example.org"}, 200),
    ],
)
def test_foreign_hosts_and_origins_are_refused(
    address: str, headers: dict[str, str], status: int
) -> None:
    response = httpx.post(address, json=INITIALIZE, headers=ACCEPT | headers)
    assert response.status_code == status


def test_excerpts_are_short_and_filters_apply(assistant: Assistant) -> None:
    found = use(
        assistant, "search_docs", query="robots", modules=["module-2"], limit=3, max_chars=80
    )
    assert 0 < len(found["passages"]) <= 3
    for passage in found["passages"]:
        assert passage["module"] == "module-2"
        assert len(passage["excerpt"]) <= 80


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# A\n\nOne two three four.", "# A\n\nOne two "),
        ("# A\n\n## B\n\n- One\n- Two three\n", "# A\n\n## B\n\n- One\n"),
        ("# A\n\nOne.\n\n## B\n\nTwo three.", "# A\n\nOne.\n\n"),
        ("One.\n\n```\n# two\n\nthree\n```\n", "One.\n\n"),
        ("# Aaaaaaaaaaaaaaaaaaaaaa\n\nOne.", "# Aaaaaaaaaaaaaaaa"),
    ],
)
def test_a_shortened_text_is_more_than_headings(text: str, expected: str) -> None:
    assert cut_text(text, 18) == expected


def test_a_search_with_long_titles_stays_within_the_limit(
    assistant: Assistant, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = assistant.retriever.retrieve(Query("robots", top_k=1))
    named = replace(found.chunks[0].citation, title="Sensors " * 2_000)
    many = replace(found, chunks=[replace(found.chunks[0], citation=named)] * 20)
    monkeypatch.setattr(Retriever, "retrieve", lambda *_: many)
    result = call(assistant, "search_docs", query="robots", limit=20)
    assert count_tokens(result.model_dump_json()) < 25_000
    assert result.structured_content is not None
    assert result.structured_content["passages"]
    assert "left out" in result.structured_content["note"]


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("search_docs", {"query": " "}, "question is empty"),
        ("search_docs", {"query": "robots", "limit": 500}, "less than or equal to 20"),
        ("search_docs", {"query": "robots", "content_types": ["poem"]}, "Use one of prose"),
        ("search_docs", {"query": "why? " * 500}, "at most 2000 characters"),
        ("ask_textbook", {"question": ""}, "question is empty"),
        ("read_section", {"url": "/book/docs/nowhere"}, "SECTION_MISSING"),
        ("read_section", {"url": f"{TOPICS}#nowhere"}, "SECTION_MISSING"),
        ("read_section", {"url": "javascript:alert(1)"}, "SECTION_MISSING"),
        ("read_section", {"url": TOPICS, "start": 90_000}, "start must be below"),
        ("list_contents", {"module": "module-9"}, "Use one of module-1, module-2"),
        ("search_docs", {}, "search_docs: query is not valid: this field is required"),
        ("search_docs", {"query": "robots", "module": "x"}, "no argument 'module'. Use only query"),
        ("write_book", {}, "Unknown tool: write_book"),
    ],
)
def test_errors_say_what_to_do(
    assistant: Assistant, tool: str, arguments: dict[str, Any], message: str
) -> None:
    assert message in fail(assistant, tool, **arguments)


def test_a_filter_value_that_no_page_has_is_named(assistant: Assistant) -> None:
    note = use(assistant, "search_docs", query="robots", modules=["modul-1"])["note"]
    assert "modules modul-1: no page has this value. Did you mean module-1?" in note


def test_an_error_contains_no_link_to_pydantic(assistant: Assistant) -> None:
    assert "pydantic" not in fail(assistant, "search_docs", query=5)


def test_a_prompt_is_refused_without_a_traceback(
    assistant: Assistant, caplog: pytest.LogCaptureFixture
) -> None:
    async def get_prompt(client: Client) -> None:
        with pytest.raises(MCPError, match="there is no prompt 'summary'"):
            await client.get_prompt("summary")

    run(assistant, get_prompt)
    assert not [record for record in caplog.records if record.exc_info]


def test_a_missing_index_is_a_tool_error_without_a_path(tmp_path: Path) -> None:
    with Assistant(open_retriever(make_settings(tmp_path))) as empty:
        message = fail(empty, "search_docs", query="robots")
    assert "COLLECTION_MISSING" in message
    assert str(tmp_path) not in message


def test_a_long_section_is_read_in_parts_that_end_between_paragraphs(assistant: Assistant) -> None:
    url = "/book/docs/module-3/3.1-long/long#ratios"
    parts: list[str] = []
    start: int | None = 0
    while start is not None:
        result = call(assistant, "read_section", url=url, start=start, max_chars=60_000)
        assert count_tokens(result.model_dump_json()) < 25_000
        assert result.structured_content is not None
        parts.append(result.structured_content["text"])
        start = result.structured_content["next_start"]
    assert len(parts) > 2
    assert all(part.endswith("\n\n") for part in parts[:-1])
    text = "".join(parts)
    assert text.count("Gear number") == 3_000
    assert "Gear number 2999 has 2999 teeth" in text


def test_a_long_page_resource_is_cut_with_advice(assistant: Assistant) -> None:
    text = read(assistant, f"textbook://page/{LONG_PAGE}")
    assert count_tokens(text) < 25_000
    assert "read_section shows the rest" in text


def test_the_contents_name_all_pages_and_one_module_its_headings(assistant: Assistant) -> None:
    contents = use(assistant, "list_contents")
    assert contents["modules"] == ["module-1", "module-2", "module-3"]
    assert len(contents["pages"]) == 7
    pages = use(assistant, "list_contents", module="module-1")["pages"]
    assert [page["title"] for page in pages] == ["Embodiment", "Topics and Services"]
    assert "Simulated time" in pages[1]["sections"]
    assert "[Laser Scanners](textbook://page/module-2/2.1-sensors/lidar.md)" in read(
        assistant, "textbook://toc"
    )


@pytest.mark.parametrize("path", ["nowhere", "../../etc/passwd", "%2Fetc%2Fpasswd"])
def test_an_unknown_page_resource_is_an_error(assistant: Assistant, path: str) -> None:
    async def read_unknown(client: Client) -> None:
        with pytest.raises(MCPError):
            await client.read_resource(f"textbook://page/{path}")

    run(assistant, read_unknown)


def test_a_question_that_the_book_does_not_cover_is_refused(assistant: Assistant) -> None:
    answer = use(assistant, "ask_textbook", question="Who won the football world cup in 1954?")
    assert answer["kind"] == "refused"
    assert answer["text"]


def test_requests_that_arrive_together_at_the_start_are_all_served(assistant: Assistant) -> None:
    async def ask_together(url: str) -> list[int]:
        async with httpx.AsyncClient(headers=ACCEPT, timeout=60) as client:
            replies = await asyncio.gather(
                *(client.post(f"{url}/mcp", json=INITIALIZE) for _ in range(5))
            )
        return [reply.status_code for reply in replies]

    app = FastAPI()
    mount_mcp(app, assistant)
    with run_app(app) as url:
        assert asyncio.run(ask_together(url)) == [200] * 5


def test_the_service_does_not_load_the_library_before_it_is_needed() -> None:
    code = "import rag_pipeline.serving.app, sys; sys.exit('mcp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
