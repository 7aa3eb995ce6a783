"""Reading summaries and attribute descriptions from Google-style docstrings."""

from __future__ import annotations

import inspect
import re

NOTE = "<!-- Written by scripts/write_reference.py. Do not edit. -->\n\n"
"""The first line of each generated page."""

_SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Yields):$", re.MULTILINE)


def read_text(thing: object) -> str:
    """Return the docstring of a class or function without its sections, one line per paragraph."""
    text = _SECTION.split(inspect.getdoc(thing) or "", maxsplit=1)[0].strip()
    return "\n\n".join(" ".join(part.split()) for part in re.split(r"\n\s*\n", text))


def read_summary(thing: object) -> str:
    """Return the first paragraph of a docstring as one line."""
    return read_text(thing).split("\n\n", maxsplit=1)[0]


def read_attributes(thing: type) -> dict[str, str]:
    """Return the descriptions of a class's attributes, those of its base classes included."""
    found: dict[str, str] = {}
    for base in reversed(thing.__mro__[:-1]):
        parts = _SECTION.split(inspect.cleandoc(base.__doc__ or ""))
        sections = dict(zip(parts[1::2], parts[2::2], strict=True))
        entries = re.split(r"^ {4}(?=\w+: )", sections.get("Attributes", ""), flags=re.MULTILINE)
        for entry in entries[1:]:
            name, _, text = entry.partition(":")
            found[name] = " ".join(text.split())
    return found


def write_cell(text: str) -> str:
    """Return a text that fits into one cell of a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ").strip()


def write_table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a Markdown table with a blank line after it."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(map(write_cell, cells))} |\n" for cells in lines) + "\n"
