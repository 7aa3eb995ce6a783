"""The errors of the package, as MCP clients see them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from mcp.server.mcpserver.exceptions import ResourceError, ToolError

from rag_pipeline.core.errors import RagPipelineError

if TYPE_CHECKING:
    from collections.abc import Iterator


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
