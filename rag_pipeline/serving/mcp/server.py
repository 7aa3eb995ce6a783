"""The MCP server of the book, over standard input and output or over streamable HTTP."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import ToolAnnotations

from rag_pipeline.serving.mcp.tools import TextbookTools
from rag_pipeline.serving.protection.limits import MAX_BODY_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.types import ASGIApp

    from rag_pipeline.answering import Assistant

_OWN_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
_INSTRUCTIONS: Final = (
    "The {source} that this server reads is the source of all its answers. Call search_docs first, "
    "then read_section for the full text. ask_textbook gives a finished answer with sources. "
    "list_contents shows what it covers. Cite the address of the section that you use."
)


def build_mcp_server(assistant: Assistant) -> MCPServer[Any]:
    """Return a server with four tools and two kinds of resources, all of which only read.

    Args:
        assistant: Finds passages and writes answers. The caller closes it.
    """
    voice = assistant.voice
    source = "textbook" if voice.source == "book" else voice.source
    # Lines below WARNING would contain the arguments of failed calls, such as questions.
    server: MCPServer[Any] = MCPServer(
        source,
        title=voice.name,
        instructions=_INSTRUCTIONS.format(source=source),
        version=version("rag-pipeline"),
        log_level="WARNING",
    )
    tools = TextbookTools(assistant)
    for function, title in (
        (tools.search_docs, f"Search the {source}"),
        (tools.read_section, "Read a section"),
        (tools.list_contents, "List the contents"),
        (tools.ask_textbook, f"Ask the {source}"),
    ):
        annotations = ToolAnnotations(
            title=title,
            read_only_hint=True,
            destructive_hint=False,
            idempotent_hint=True,
            open_world_hint=False,
        )
        server.add_tool(function, title=title, annotations=annotations, structured_output=True)
    server.resource("textbook://toc", name="toc", title="Contents", mime_type="text/markdown")(
        tools.read_toc
    )
    server.resource(
        "textbook://page/{+path}", name="page", title="A page", mime_type="text/markdown"
    )(tools.read_page)
    return server


def run_stdio(assistant: Assistant) -> None:
    """Serve one client over standard input and output until the input ends."""
    build_mcp_server(assistant).run("stdio")


def build_http_app(
    assistant: Assistant, allowed_hosts: Sequence[str], allowed_origins: Sequence[str]
) -> tuple[ASGIApp, StreamableHTTPSessionManager]:
    """Return the server as an ASGI application for `/mcp`, and its sessions, which must run.

    A request for another host gets 421, and one from a page of another origin gets 403.

    Args:
        assistant: Finds passages and writes answers.
        allowed_hosts: Host names without a port. This machine's own names are always allowed.
        allowed_origins: Origins of pages, such as `https://book.example.org`. Pages of the allowed
            hosts are always allowed.
    """
    server = build_mcp_server(assistant)
    names = [*_OWN_NAMES, *allowed_hosts]
    own_origins = [f"{scheme}://{name}" for scheme in ("http", "https") for name in names]
    security = TransportSecuritySettings(
        allowed_hosts=[*names, *(f"{name}:*" for name in names)],
        allowed_origins=[*allowed_origins, *own_origins, *(f"{name}:*" for name in own_origins)],
    )
    served = server.streamable_http_app(
        stateless_http=True,
        json_response=True,
        transport_security=security,
        max_request_body_size=MAX_BODY_BYTES,
    )
    return served, server.session_manager
