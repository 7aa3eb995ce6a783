"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

DocsDir = Annotated[  # as text, for a Path would take '' as the current folder
    str | None,
    typer.Option("--docs-dir", metavar="PATH", help="Folder of the Markdown files [DOCS_DIR]."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
TopK = Annotated[int, typer.Option("--top-k", "-k", help="Number of passages, 1 to 100.")]
Modules = Annotated[list[str] | None, typer.Option("--module", help="Only this module.")]
Chapters = Annotated[list[str] | None, typer.Option("--chapter", help="Only this chapter.")]
Types = Annotated[
    list[str] | None,
    typer.Option("--type", help="Only prose, code, table, lab, quiz or assessment."),
]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="Only documents with this tag.")]
