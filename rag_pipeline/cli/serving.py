"""The commands `serve` (RoboTutor over HTTP) and `mcp` (the book for one coding agent)."""

# ruff: noqa: PLC0415  # each command imports only what it needs, so that it starts fast

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Final

import typer

from rag_pipeline.cli.loading import load_index
from rag_pipeline.cli.options import BuiltSite, DocsDir
from rag_pipeline.cli.output import write_text
from rag_pipeline.core.errors import MissingDependencyError

commands = typer.Typer()

_PACKAGES: Final = (
    "uvicorn",
    "fastapi",
    "mcp",
    "limits",
    "prometheus_client",
    "sqlalchemy",
    "alembic",
)


@commands.command()
def serve(
    host: Annotated[
        str, typer.Option("--host", help="Address to listen on. 0.0.0.0: all networks.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port to listen on. 0: a free one.")
    ] = 8000,
    site: BuiltSite = None,
    docs_dir: DocsDir = None,
) -> None:
    """Answer questions over HTTP and MCP, and serve the built website, until Ctrl-C."""
    _check_packages()
    settings = load_index(docs_dir)
    from rag_pipeline.serving.server import Place, run_service
    from rag_pipeline.serving.site import find_site

    site_dir = find_site(settings.docs_dir, None if site is None else Path(site))
    place = Place(host, port, site_dir)
    if not run_service(settings, place, lambda line: write_text(f"{line}\n")):
        raise typer.Exit(1)


@commands.command()
def mcp(docs_dir: DocsDir = None) -> None:
    """Serve the book to one coding agent over standard input and output."""
    _check_packages()
    settings = load_index(docs_dir)
    from rag_pipeline.answering.assistant import open_assistant
    from rag_pipeline.serving.mcp.server import run_stdio

    with open_assistant(settings) as assistant:
        run_stdio(assistant)


def _check_packages() -> None:
    """Check that the packages of the extra `serve` are installed.

    Raises:
        MissingDependencyError: One of them is not.
    """
    for package in _PACKAGES:
        if find_spec(package) is None:
            raise MissingDependencyError(package, "serve")
