"""The MCP server of the book, over standard input and output or over streamable HTTP."""

from __future__ import annotations

import re
from importlib.metadata import version
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, Final

from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import Tool, ToolAnnotations

from rag_pipeline.core.errors import RagPipelineError
from rag_pipeline.retrieval import ContentsPage, read_contents
from rag_pipeline.serving.limits import MAX_BODY_BYTES
from rag_pipeline.serving.mcp.tools import TextbookTools

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.types import ASGIApp

    from rag_pipeline.answering import Assistant

_OWN_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
_MAX_COVERAGE_CHARS: Final = 600
_INSTRUCTIONS: Final = (
    "{source} that this server reads is the source of all its answers. Call search_docs first, "
    "then read_section for the full text. {ask} gives a finished answer with sources. "
    "list_contents shows what it covers. Cite the address of the section that you use."
)


def build_mcp_server(assistant: Assistant) -> MCPServer[Any]:
    """Return a server with four tools and two kinds of resources, all of which only read.

    Their names and descriptions say which book it is. The list of tools also says what the indexed
    pages are about, so that an agent with several servers chooses the right one.

    Args:
        assistant: Finds passages and writes answers. The caller closes it.
    """
    voice = assistant.voice
    source = "textbook" if voice.source == "book" else voice.source
    named = f"the {source}" if voice.language == "en" else voice.named_source
    slug = re.sub(r"[^a-z0-9]+", "_", source.lower()).strip("_") or "book"
    scheme = re.sub(r"^[0-9]*", "", slug.replace("_", "-")).strip("-") or "book"
    ask = f"ask_{slug}"[:64]
    # Lines below WARNING would contain the arguments of failed calls, such as questions.
    server = _BookServer(
        source,
        title=voice.name,
        instructions=_INSTRUCTIONS.format(source=named[0].upper() + named[1:], ask=ask),
        version=version("rag-pipeline"),
        log_level="WARNING",
    )
    server.assistant = assistant
    server.described = ("search_docs", ask)
    tools = TextbookTools(assistant, scheme)
    for function, name, title in (
        (tools.search_docs, "search_docs", f"Search {named}"),
        (tools.read_section, "read_section", f"Read a section of {named}"),
        (tools.list_contents, "list_contents", f"List the contents of {named}"),
        (tools.ask_textbook, ask, f"Ask {named}"),
    ):
        annotations = ToolAnnotations(
            title=title,
            read_only_hint=True,
            destructive_hint=False,
            idempotent_hint=True,
            open_world_hint=False,
        )
        described = (function.__doc__ or "").replace("ask_textbook", ask)
        server.add_tool(
            function,
            name=name,
            title=title,
            description=cleandoc(described).replace("the textbook", named),
            annotations=annotations,
            structured_output=True,
        )
    shown = f"of {named}, as Markdown."
    server.resource(
        f"{scheme}://toc",
        name="toc",
        title=f"Contents of {named}",
        description=f"The table of contents {shown}",
        mime_type="text/markdown",
    )(tools.read_toc)
    server.resource(
        f"{scheme}://page/{{+path}}",
        name="page",
        title=f"A page of {named}",
        description=f"The text of a page {shown}",
        mime_type="text/markdown",
    )(tools.read_page)
    return server


class _BookServer(MCPServer[Any]):
    """A server whose list of tools is made anew for each client."""

    assistant: Assistant
    described: tuple[str, ...]

    async def list_tools(self) -> list[Tool]:
        """Return the tools. Those that search say which subjects the index contains now."""
        assistant = self.assistant
        try:
            pages = await assistant.arun(lambda: read_contents(assistant.retriever))
        except RagPipelineError:  # a search says what is wrong
            pages = ()
        covered = describe_coverage(pages)
        return [
            tool.model_copy(update={"description": f"{tool.description}\n\n{covered}".strip()})
            if tool.name in self.described
            else tool
            for tool in await super().list_tools()
        ]


def describe_coverage(pages: Sequence[ContentsPage]) -> str:
    """Return a sentence with the subjects of a book, of at most about 600 characters.

    A subject is the title of the first page of a module. In a book without modules it is the title
    of the first page of a chapter, and in a book without chapters the title of a page.

    Args:
        pages: The pages of the book in their order.
    """
    firsts: dict[str, ContentsPage] = {}
    for group in ("module", "chapter", "url"):
        firsts = {}
        for page in pages:
            firsts.setdefault(getattr(page, group), page)
        firsts.pop("", None)
        if len(firsts) > 1:
            break
    titles = list(dict.fromkeys(page.title for page in firsts.values()))
    shown: list[str] = []
    for title in titles:
        if sum(map(len, shown)) + len(title) > _MAX_COVERAGE_CHARS:
            break
        shown.append(title)
    if not shown:
        return ""
    left = len(titles) - len(shown)
    more = f"; and {left} more" if left else ""
    return f"It covers: {'; '.join(shown)}{more}."


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
