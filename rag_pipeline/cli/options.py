"""Options that several commands share."""

from __future__ import annotations

import inspect
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from rag_pipeline.core.payload import FILTERS

if TYPE_CHECKING:
    from collections.abc import Callable

DocsDir = Annotated[  # as text, for a Path would take '' as the current folder
    str | None,
    typer.Option("--docs-dir", metavar="PATH", help="Folder of the Markdown files [DOCS_DIR]."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
TopK = Annotated[int, typer.Option("--top-k", "-k", help="Number of passages, 1 to 100.")]
AskedMode = Annotated[
    Literal["normal", "selected_text_only"] | None,
    typer.Option("--mode", help="Where to search: in the book, or in --selected-text only."),
]

FilterValues: TypeAlias = dict[str, list[str] | None]
"""The values of each filter by its name in `QueryFilters`; None if the option was not given."""


def with_filters(command: Callable[..., None]) -> Callable[..., None]:
    """Replace a command's parameter `filters` by one option for each declared filter."""
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
