"""The MCP server, with the tools and resources with which an agent reads the book.

All of them only read. The docstrings of the tools are what an agent reads to choose one. The server
runs over standard input and output, or over streamable HTTP.
"""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from inspect import cleandoc
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, TypeVar

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolResult,
    GetPromptResult,
    InputRequiredResult,
    Tool,
    ToolAnnotations,
)
from pydantic import BaseModel, Field, ValidationError

from rag_pipeline.answering.models import AnswerKind, Level
from rag_pipeline.core.errors import RagPipelineError
from rag_pipeline.core.models import SITE_FILES
from rag_pipeline.core.text.terms import count_tokens
from rag_pipeline.retrieval.contents import read_contents, read_section, retrieve_explained
from rag_pipeline.retrieval.queries import ANY_VALUE, Query, QueryFilters
from rag_pipeline.serving import MAX_QUESTION_CHARS
from rag_pipeline.serving.replies import word_invalid

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from mcp.server.mcpserver import Context
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from starlette.types import ASGIApp

    from rag_pipeline.answering import Assistant
    from rag_pipeline.retrieval import Citation, ContentsPage, Retriever, SectionText


MAX_RESULT_TOKENS: Final = 10_000
"""cl100k_base tokens of the texts in a result.

A result is sent twice, as JSON and as structured data. Agents cut off more than 25,000 tokens.
"""


class BookPlace(BaseModel):
    """A section or page of the book."""

    title: str = Field(description="Title of the page.")
    section: str = Field(description="Heading of the section.")
    url: str = Field(description="Address of the section. Pass it to read_section to read it all.")
    version: str = Field("", description="Version of the docs; empty for the latest.")
    locale: str = Field("", description="Language; empty for the default language.")


def describe_place(place: Citation | SectionText) -> dict[str, Any]:
    """Return the values of the fields of `BookPlace`."""
    return {name: getattr(place, name) for name in BookPlace.model_fields}


class FoundPassage(BookPlace):
    """An excerpt of a section that was found."""

    module: str
    content_type: str = Field(description="prose, code, table, lab, quiz, assessment or api.")
    score: float = Field(description="Similarity to the query, 0 to 1.")
    excerpt: str = Field(description="The beginning of the passage, as Markdown.")
    truncated: bool = Field(description="True if the passage is longer than the excerpt.")


class SearchResults(BaseModel):
    """The passages that were found for a query, best first."""

    passages: list[FoundPassage]
    note: str = Field("", description="What to do next; empty if there is nothing to say.")


class SectionContent(BookPlace):
    """The text of a section or of a whole page."""

    module: str
    text: str = Field(description="Markdown, exactly as in the book.")
    next_start: int | None = Field(description="Value of `start` for the rest; null at the end.")
    note: str = Field("", description="How to read on; empty at the end.")


class ContentsEntry(BaseModel):
    """A page of the table of contents."""

    title: str
    url: str
    module: str
    chapter: str
    resource: str = Field(description="URI of the page as a resource.")
    sections: list[str] = Field(description="Headings of the page. Empty without `module`.")


class Contents(BaseModel):
    """The table of contents, in the order of the book."""

    modules: list[str]
    pages: list[ContentsEntry]
    note: str = Field("", description="What is left out; empty if nothing is.")


class CitedSource(BookPlace):
    """A section that an answer cites."""

    number: int = Field(description="The number of the source in the text, such as [1].")


class ShownFigure(BaseModel):
    """An image or diagram beside a quoted passage."""

    text: str = Field(description="Caption or alternative text, or the source of a diagram.")
    url: str = Field(description="Address of the image, or of the section that shows it.")


class TextbookAnswer(BaseModel):
    """An answer from the book, or a refusal."""

    text: str
    kind: str = Field(description=", ".join(AnswerKind))
    level: str = Field(description=", ".join(Level))
    sources: list[CitedSource] = Field(description="Cited sections; of a refusal, related ones.")
    notices: list[str]
    figures: list[ShownFigure] = Field(description="Figures beside the quoted passages.")


def cut_text(text: str, max_chars: int, max_tokens: int = MAX_RESULT_TOKENS) -> str:
    """Return the longest beginning of a Markdown text within limits that ends between blocks.

    It does not end with a heading. If the first block after the headings is longer than the limits,
    the text ends between lines or words. A fenced code block is not cut unless it is that block.

    Args:
        text: Markdown text.
        max_chars: The highest number of characters, at least 1.
        max_tokens: The highest number of cl100k_base tokens of the text as JSON.
    """
    limit = min(len(text), max_chars)
    # Tokens are counted in the beginning only: a token rarely has more than eight characters.
    limit = min(limit, max_tokens * 8)
    while limit > 1 and (tokens := count_json_tokens(text[:limit])) > max_tokens:
        limit = max(1, int(limit * max_tokens / tokens * 0.95))
    if limit == len(text):
        return text
    start, ends = _find_blocks(text, limit)
    line, word = (text.rfind(mark, start, limit) + 1 for mark in "\n ")
    return text[: ends[-1] if ends else line or word or limit]


def count_json_tokens(text: str) -> int:
    """Return the number of cl100k_base tokens of a text that is written as a JSON string."""
    return count_tokens(json.dumps(text, ensure_ascii=False))


def _find_blocks(text: str, limit: int) -> tuple[int, list[int]]:
    """Return where the first block below the headings starts, and where blocks up to the limit end.

    A block ends after its blank lines. Headings belong to the blocks below them.
    """
    ends: list[int] = []
    at, fence, has_text, start = 0, "", False, limit
    for line in text[:limit].splitlines(keepends=True):
        stripped = line.strip()
        if fence:
            fence = "" if stripped.startswith(fence) and not stripped.strip(fence[0]) else fence
        elif stripped.startswith(("```", "~~~")):
            fence = stripped[: len(stripped) - len(stripped.lstrip(stripped[0]))]
        elif stripped:
            has_text = not stripped.startswith("#")
        elif has_text:
            ends.append(at + len(line))
        has_text = has_text or bool(fence)
        start = min(start, at) if has_text else start
        at += len(line)
    return start, ends


_MAX_COVERAGE_CHARS: Final = 600
_INSTRUCTIONS: Final = (
    "{source} that this server reads is the source of all its answers. Call search_docs first, "
    "then read_section for the full text. {ask} gives a finished answer with sources. "
    "list_contents shows what it covers. Cite the address of the section that you use."
)
MAX_PAGE_TOKENS: Final = 20_000
_Result = TypeVar("_Result")
_Version: TypeAlias = Annotated[
    str | None, Field(description="Version of the docs, such as 2.0; without it, the latest.")
]
_Locale: TypeAlias = Annotated[
    str | None, Field(description="Language, such as fr; without it, the default language.")
]


class BookServer(MCPServer[Any]):
    """A server with four tools and two kinds of resources, all of which only read.

    Their names and descriptions say which book it is. The list of tools also says what the indexed
    pages are about, so that an agent with several servers chooses the right one. The functions
    raise ToolError or ResourceError, whose messages contain no path of the machine.

    Args:
        assistant: Finds passages and writes answers. The caller closes it.
    """

    def __init__(self, assistant: Assistant) -> None:
        voice = assistant.voice
        source = "textbook" if voice.source == "book" else voice.source
        named = f"the {source}" if voice.language == "en" else voice.named_source
        slug = re.sub(r"[^a-z0-9]+", "_", source.lower()).strip("_") or "book"
        ask = f"ask_{slug}"[:64]
        # Lines below WARNING would contain the arguments of failed calls, such as questions.
        super().__init__(
            source,
            title=voice.name,
            instructions=_INSTRUCTIONS.format(source=named[0].upper() + named[1:], ask=ask),
            version=version("rag-pipeline"),
            log_level="WARNING",
        )
        self._assistant = assistant
        self._scheme = re.sub(r"^[0-9]*", "", slug.replace("_", "-")).strip("-") or "book"
        self._described = ("search_docs", ask)
        for function, name, title in (
            (self.search_docs, "search_docs", f"Search {named}"),
            (self.read_section, "read_section", f"Read a section of {named}"),
            (self.list_contents, "list_contents", f"List the contents of {named}"),
            (self.ask_textbook, ask, f"Ask {named}"),
        ):
            annotations = ToolAnnotations(
                title=title,
                read_only_hint=True,
                destructive_hint=False,
                idempotent_hint=True,
                open_world_hint=False,
            )
            described = (function.__doc__ or "").replace("ask_textbook", ask)
            self.add_tool(
                function,
                name=name,
                title=title,
                description=cleandoc(described).replace("the textbook", named),
                annotations=annotations,
                structured_output=True,
            )
        shown = f"of {named}, as Markdown."
        for show, place, name, title, described in (
            (self.read_toc, "toc", "toc", f"Contents of {named}", "The table of contents"),
            (self.read_page, "page/{+path}", "page", f"A page of {named}", "The text of a page"),
        ):
            self.resource(
                f"{self._scheme}://{place}",
                name=name,
                title=title,
                description=f"{described} {shown}",
                mime_type="text/markdown",
            )(show)

    async def search_docs(  # noqa: PLR0913, PLR0917  # one argument for each field of the tool
        self,
        query: Annotated[
            str, Field(max_length=MAX_QUESTION_CHARS, description="A question or keywords.")
        ],
        modules: Annotated[
            list[str] | None, Field(description="Search only these modules, such as module-1.")
        ] = None,
        content_types: Annotated[
            list[str] | None,
            Field(description="Only these kinds: prose, code, table, lab, quiz, assessment, api."),
        ] = None,
        version: _Version = None,
        locale: _Locale = None,
        limit: Annotated[int, Field(ge=1, le=20, description="Number of passages.")] = 5,
        min_relative_score: Annotated[
            float,
            Field(ge=0, le=1, description="Leave out passages below this share of the best score."),
        ] = 0.7,
        max_chars: Annotated[
            int, Field(ge=50, le=5_000, description="Length of each excerpt in characters.")
        ] = 600,
    ) -> SearchResults:
        """Search the textbook and return short excerpts with the addresses of their sections.

        Start here for facts, code or definitions. Then call read_section with the address of a
        promising passage to read its full text. Use ask_textbook instead for a finished answer.
        """
        filters = QueryFilters(
            modules=modules,
            content_types=content_types,
            versions=_list(version),
            locales=_list(locale),
        )
        wanted = Query(query, filters=filters, top_k=limit, min_relative_score=min_relative_score)
        result, told = await self._read(lambda retriever: retrieve_explained(retriever, wanted))
        passages: list[FoundPassage] = []
        left = MAX_RESULT_TOKENS
        for chunk in result.chunks:
            excerpt = cut_text(chunk.text, max_chars)
            passage = FoundPassage(
                **describe_place(chunk.citation),
                module=chunk.citation.module,
                content_type=chunk.metadata.content_type,
                score=round(chunk.score, 3),
                excerpt=excerpt,
                truncated=len(excerpt) < len(chunk.text),
            )
            left -= _count([passage])
            if left < 0:
                break
            passages.append(passage)
        note = ""
        if not result.chunks:
            advice = "Check the filters: list_contents names the modules."
            note = " ".join(["Nothing was found.", *(told or [advice])])
        elif len(passages) < len(result.chunks):
            omitted = len(result.chunks) - len(passages)
            note = f"{omitted} passages were left out. Lower max_chars to see them."
        return SearchResults(passages=passages, note=note)

    async def read_section(
        self,
        url: Annotated[
            str, Field(description="Address from another tool. Without #anchor: the whole page.")
        ],
        max_chars: Annotated[
            int, Field(ge=200, le=60_000, description="Most characters to return.")
        ] = 20_000,
        start: Annotated[
            int, Field(ge=0, description="Character to start at: next_start of the last call.")
        ] = 0,
    ) -> SectionContent:
        """Read the full text of a section or page of the textbook by its address.

        Use it after search_docs or list_contents, which give the addresses. A long text ends
        between two paragraphs; call again with start=next_start to read on.
        """
        found = await self._read(lambda retriever: read_section(retriever, url))
        if start and start >= len(found.text):
            raise ToolError(f"start must be below {len(found.text)}, the length of the text")
        text = cut_text(found.text[start:], max_chars)
        end = start + len(text)
        rest = len(found.text) - end
        note = f"{rest} more characters. Call again with start={end}." if rest else ""
        return SectionContent(
            **describe_place(found),
            module=found.module,
            text=text,
            next_start=end if rest else None,
            note=note,
        )

    async def list_contents(
        self,
        module: Annotated[
            str | None, Field(description="Only this module, with the headings of its pages.")
        ] = None,
        version: _Version = None,
        locale: _Locale = None,
    ) -> Contents:
        """List the pages of the textbook in order, with their addresses.

        Use it to learn what the book covers, or to find a page whose subject you know. For a
        question, search_docs is faster.
        """
        pages = await self._read(
            lambda retriever: read_contents(retriever, version=version, locale=locale)
        )
        modules = list(dict.fromkeys(page.module for page in pages))
        if module is not None and module not in modules:
            named = ", ".join(filter(None, modules))
            raise ToolError(f"there is no module {module!r:.60}. Use one of {named}")
        chosen = [page for page in pages if module in {None, page.module}]
        entries = [
            ContentsEntry(
                title=page.title,
                url=page.url,
                module=page.module,
                chapter=page.chapter,
                resource=self._name_resource(page),
                sections=[] if module is None else [one.heading for one in page.sections],
            )
            for page in chosen
        ]
        note = ""
        if _count(entries) > MAX_RESULT_TOKENS and module is not None:
            entries = [entry.model_copy(update={"sections": []}) for entry in entries]
            note = "The headings were left out. read_section shows a page."
        while _count(entries) > MAX_RESULT_TOKENS:
            entries = entries[: len(entries) * 3 // 4]
            note = f"Only {len(entries)} of {len(chosen)} pages are listed. Name a module."
        return Contents(modules=modules, pages=entries, note=note)

    async def ask_textbook(
        self,
        question: Annotated[
            str, Field(max_length=MAX_QUESTION_CHARS, description="One question in full words.")
        ],
        version: _Version = None,
        locale: _Locale = None,
    ) -> TextbookAnswer:
        """Answer a question from the textbook only, with numbered sources.

        Use it for a finished, cited answer. It says so when the book does not cover the question.
        Use search_docs instead to compare several passages or to read code.
        """
        filters = QueryFilters(versions=_list(version), locales=_list(locale))
        answer = await _wait(self._assistant.aanswer(Query(question, filters=filters)), ToolError)
        text = cut_text(answer.text, len(answer.text))
        if len(text) < len(answer.text):
            text += "\n\n(The rest was left out. read_section shows the sources.)"
        return TextbookAnswer(
            text=text,
            kind=answer.kind.value,
            level=answer.grounding.level.value,
            sources=[
                CitedSource(number=number, **describe_place(citation))
                for number, citation in answer.numbered_citations.items()
            ],
            notices=[notice.text for notice in answer.notices],
            figures=[
                ShownFigure(
                    text=figure.caption or figure.text,
                    url=passage.citation.url
                    if not figure.address or figure.address.startswith(SITE_FILES)
                    else figure.address,
                )
                for passage in answer.passages
                for figure in passage.figures
            ],
        )

    async def read_toc(self) -> str:
        """Return the table of contents, as Markdown."""
        pages = await self._read(read_contents, ResourceError)
        lines: list[str] = []
        module = None
        for page in pages:
            if page.module != module:
                module = page.module
                lines.append(f"\n## {module or 'Other pages'}\n")
            lines.append(f"- [{page.title}]({self._name_resource(page)}): {page.url}")
        text = "\n".join(["# Contents", *lines])
        return _cut_resource(text, "list_contents with a module shows the rest.")

    async def read_page(self, path: str) -> str:
        """Return the text of a page, as Markdown."""
        pages = await self._read(
            lambda retriever: read_contents(retriever, version=ANY_VALUE, locale=ANY_VALUE),
            ResourceError,
        )
        named = ((page, page.doc_path) for page in pages)
        wanted = next((page for page, own in named if path in {own, own.rpartition(".")[0]}), None)
        if wanted is None:
            raise ResourceNotFoundError(
                f"there is no page {path!r:.100}. Read {self._scheme}://toc"
            )
        found = await self._read(
            lambda retriever: read_section(retriever, wanted.url), ResourceError
        )
        return _cut_resource(found.text, f"read_section shows the rest of {wanted.url}.")

    async def _read(
        self, work: Callable[[Retriever], _Result], kind: type[Exception] = ToolError
    ) -> _Result:
        """Read the book in a thread, and raise errors as those of a tool or of a resource."""
        return await _wait(self._assistant.arun(lambda: work(self._assistant.retriever)), kind)

    def _name_resource(self, page: ContentsPage) -> str:
        return f"{self._scheme}://page/{page.doc_path}"

    async def list_tools(self) -> list[Tool]:
        """Return the tools. Those that search say which subjects the index contains now."""
        try:
            pages = await self._read(read_contents)
        except ToolError:  # a search says what is wrong
            pages = ()
        covered = describe_coverage(pages)
        return [
            tool.model_copy(update={"description": f"{tool.description}\n\n{covered}".strip()})
            if tool.name in self._described
            else tool
            for tool in await super().list_tools()
        ]

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool. An unknown argument is refused, because the SDK would ignore it.

        Raises:
            ToolError: The tool or an argument is unknown or not valid, or the tool fails.
        """
        schemas = {tool.name: tool.input_schema for tool in await super().list_tools()}
        known = schemas.get(name, {}).get("properties", arguments)
        unknown = [given for given in arguments if given not in known]
        if unknown:
            raise ToolError(
                f"{name} has no argument {unknown[0]!r:.60}. Use only {', '.join(known)}"
            )
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise
            first = error.__cause__.errors(include_url=False, include_input=False)[0]
            place = ".".join(map(str, first["loc"]))
            raise ToolError(f"{name}: {place} is not valid: {word_invalid(first)}") from error

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,  # noqa: ARG002  # the signature of the SDK
        context: Context[Any, Any] | None = None,  # noqa: ARG002
    ) -> GetPromptResult | InputRequiredResult:
        """Refuse a request for a prompt, because the server has none.

        Raises:
            MCPError: Always.
        """
        raise MCPError(INVALID_PARAMS, f"there is no prompt {name!r:.60}. This server has none")


async def _wait(work: Awaitable[_Result], kind: type[Exception]) -> _Result:
    """Return the result of some work, and raise errors of the package as another kind of error."""
    try:
        return await work
    except RagPipelineError as error:
        raise kind(f"{error.code}: {error.public_message}") from error


def _list(value: str | None) -> list[str] | None:
    return None if value is None else [value]


def _cut_resource(text: str, advice: str) -> str:
    part = cut_text(text, len(text), MAX_PAGE_TOKENS)
    return part if len(part) == len(text) else f"{part}\n\n(The page is longer. {advice})\n"


def _count(entries: Sequence[BaseModel]) -> int:
    """Return the number of tokens of entries in the JSON that is sent."""
    return sum(count_json_tokens(entry.model_dump_json(indent=2)) for entry in entries)


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
    BookServer(assistant).run("stdio")


def build_http_app(assistant: Assistant) -> tuple[ASGIApp, StreamableHTTPSessionManager]:
    """Return the server as an ASGI application for `/mcp`, and its sessions, which must run.

    The application checks no host, origin or size: `ProtectedApp` does that for the whole service.
    """
    server = BookServer(assistant)
    served = server.streamable_http_app(
        stateless_http=True,
        json_response=True,
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    return served, server.session_manager
