"""The API pages: a table of the public names, then mkdocstrings' directives for each name."""

from __future__ import annotations

import inspect
from importlib import import_module

from reference.docstrings import NOTE, read_summary, read_text, write_table

_USES = {
    "rag_pipeline.retrieval": "[In a backend](../how-to/backend.md) shows how to use it.",
    "rag_pipeline.answering": "[In a backend](../how-to/backend.md) shows how to use it.",
}


def describe_package(package: str) -> str:
    """Return the API page of a package: every name in its `__all__`."""
    module = import_module(package)
    names = sorted(module.__all__, key=lambda name: (_rank(getattr(module, name)), name))
    rows = [
        (f"[`{name}`](#{package}.{name})", read_summary(getattr(module, name)))
        for name in names
        if _rank(getattr(module, name)) < 2  # errors.md lists the errors
    ]
    parts = [
        NOTE,
        f"# {package}\n\n{read_text(module)}\n\n{_USES[package]}\n\n",
        f"```python\nfrom {package} import {', '.join(names[:3])}\n```\n\n",
        write_table(("Name", "Summary"), rows),
    ]
    for title, rank in (("Functions", 0), ("Classes", 1), ("Errors", 2)):
        chosen = [name for name in names if _rank(getattr(module, name)) == rank]
        if chosen:
            parts.append(f"## {title}\n\n")
            parts.append("[Errors](errors.md) has their codes and remedies.\n\n" * (rank == 2))
            parts += [f"::: {package}.{name}\n\n" for name in chosen]
    return "".join(parts).rstrip() + "\n"


def _rank(thing: object) -> int:
    if not inspect.isclass(thing):
        return 0
    return 2 if issubclass(thing, Exception) else 1
