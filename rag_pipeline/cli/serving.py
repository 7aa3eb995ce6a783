"""The commands that bring the book to readers: a service, an agent's tools, or files of a site."""

# ruff: noqa: PLC0415  # each command imports only what it needs, so that it starts fast

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

import typer

from rag_pipeline.cli.initializing import load_book, load_index
from rag_pipeline.cli.options import AsJson, BuiltSite, DocsDir
from rag_pipeline.cli.output import print_result, write_text
from rag_pipeline.core.errors import require_packages

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
    require_packages("serve", *_PACKAGES)
    settings = load_index(docs_dir)
    from rag_pipeline.serving.app import Place, run_service
    from rag_pipeline.serving.site import find_site

    site_dir = find_site(settings.docs_dir, None if site is None else Path(site))
    place = Place(host, port, site_dir)
    if not run_service(settings, place, lambda line: write_text(f"{line}\n")):
        raise typer.Exit(1)


@commands.command()
def mcp(docs_dir: DocsDir = None) -> None:
    """Serve the book to one coding agent over standard input and output."""
    require_packages("serve", *_PACKAGES)
    settings = load_index(docs_dir)
    from rag_pipeline.answering.assistant import open_assistant
    from rag_pipeline.serving.mcp import run_stdio

    with open_assistant(settings) as assistant:
        run_stdio(assistant)


@commands.command("export-pages")
def export_pages(
    site: BuiltSite = None,
    docs_dir: DocsDir = None,
    as_json: AsJson = False,
) -> None:
    """Write each page of the built website as Markdown, and llms.txt and llms-full.txt.

    The files are written into the folder of the website. Exits with code 1 if a page failed.
    """
    from rag_pipeline.ingestion.publishing import publish_site

    settings = load_book(docs_dir)
    address = urlsplit(settings.site.base_url)
    host = f"{address.scheme}://{address.netloc}" if address.netloc else ""
    build_dir = settings.docs_dir.parent / "build" if site is None else Path(site)
    result = publish_site(build_dir, host)
    lines = [f"FAILED {failure.message}" for failure in result.failures]
    lines += [
        f"REPLACED {name}, which the site has in its static folder too" for name in result.replaced
    ]
    count = f"{result.pages} page" if result.pages == 1 else f"{result.pages} pages"
    lines.append(f"{count} written as Markdown, llms.txt and llms-full.txt in {build_dir}")
    print_result(result.to_json(), "\n".join(lines), as_json=as_json)
    if result.failures:
        raise typer.Exit(1)


@commands.command("export-search")
def export_search(
    site: Annotated[
        str | None,
        typer.Argument(
            help="Folder of the built website. Default: `build` next to the docs folder."
        ),
    ] = None,
    docs_dir: DocsDir = None,
    as_json: AsJson = False,
) -> None:
    """Write a search index into the built website, so that the panel works without a service.

    The panel then searches in the browser, with the same model and rules. The book must be indexed
    with the local model.
    """
    from rag_pipeline.serving.static_search import export_search as export

    settings = load_index(docs_dir)
    result = export(settings, Path(site) if site else settings.docs_dir.parent / "build")
    record = {**result._asdict(), "folder": str(result.folder)}
    sizes = f"index {result.index_bytes / 1e6:.1f} MB, model {result.model_bytes / 1e6:.1f} MB"
    text = f"{result.passages} passages written to {result.folder}: {sizes}"
    print_result(record, text, as_json=as_json)
