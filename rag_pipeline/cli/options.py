"""Command line options that several commands share."""

from __future__ import annotations

import inspect
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from rag_pipeline.core.payload import FILTERS

if TYPE_CHECKING:
    from collections.abc import Callable

DocsDir = Annotated[  # a string, because Path("") would be the current folder
    str | None,
    typer.Option(
        "--docs-dir",
        metavar="PATH",
        help="Folder with the Markdown files. Default: the setting DOCS_DIR.",
    ),
]
SiteDir = Annotated[
    str | None,
    typer.Option(
        "--site",
        metavar="PATH",
        help="Folder of a Docusaurus site, whose docs folders and addresses are then detected.",
    ),
]
DocsPlugin = Annotated[
    str | None,
    typer.Option(
        "--docs-plugin",
        metavar="ID",
        help="Index only the docs folder of the docs plugin with this `id`, and its versions.",
    ),
]
BuiltSite = Annotated[
    str | None,
    typer.Option(
        "--site",
        metavar="PATH",
        help="Folder of the built website. Default: `build` next to the docs folder.",
    ),
]
TestSet = Annotated[
    Path | None,
    typer.Option(
        "--test-set",
        help=(
            "JSON file with the golden set. Default: the setting EVALUATION_TEST_SET, or else the "
            "questions about this repository's textbook."
        ),
    ),
]
RunConfig = Annotated[
    bool,
    typer.Option(
        "--run-config",
        help="Run docusaurus.config with Node. Only for a site whose code you trust.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as one JSON document.")]
TopK = Annotated[int, typer.Option("--top-k", "-k", help="Number of passages to return, 1 to 100.")]

FilterValues: TypeAlias = dict[str, list[str] | None]
"""The values of each filter option, by field name of `QueryFilters`; None if it was not given."""


def with_filters(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command one command line option for each filter in `core.payload.FILTERS`.

    The command itself must have a parameter `filters`. The returned function has one parameter per
    filter instead, which Typer turns into an option, and passes all values to the command as one
    `FilterValues` dictionary.
    """
    signature = inspect.signature(command, eval_str=True)
    parameters: list[inspect.Parameter] = []
    for parameter in signature.parameters.values():
        if parameter.name == "filters":
            parameters += [
                parameter.replace(
                    name=field,
                    annotation=Annotated[
                        list[str] | None, typer.Option(*declared.flags, help=declared.help)
                    ],
                    default=None,
                )
                for field, declared in FILTERS.items()
            ]
        else:
            parameters.append(parameter)

    @wraps(command)
    def run(**options: Any) -> None:  # noqa: ANN401  # every option has its own type
        values = {declared.name: options.pop(field) for field, declared in FILTERS.items()}
        command(**options, filters=values)

    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]  # inspect reads it
    return run
