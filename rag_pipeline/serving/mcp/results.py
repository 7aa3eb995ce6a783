"""The structured results and errors of the MCP tools, and the limits on their length."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from mcp.server.mcpserver.exceptions import ResourceError, ToolError
from pydantic import BaseModel, Field

from rag_pipeline.answering.models import AnswerKind, Level
from rag_pipeline.core.errors import RagPipelineError
from rag_pipeline.core.text.terms import count_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rag_pipeline.retrieval import Citation
    from rag_pipeline.retrieval.contents import SectionText


@contextmanager
def tool_errors() -> Iterator[None]:
    """Raise errors of the package as errors of a tool.

    Raises:
        ToolError: The block raised an error of the package.
    """
    try:
        yield
    except RagPipelineError as error:
        raise ToolError(_describe(error)) from error


@contextmanager
def resource_errors() -> Iterator[None]:
    """Raise errors of the package as errors of a resource.

    Raises:
        ResourceError: The block raised an error of the package.
    """
    try:
        yield
    except RagPipelineError as error:
        raise ResourceError(_describe(error)) from error


def _describe(error: RagPipelineError) -> str:
    return f"{error.code}: {error.public_message}"


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
