"""A report as a tree of sections, tables and lists, and its forms: Markdown, HTML and plain text.

All texts in the tree are plain. Each form escapes them, because readers or pages may have written
them.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_STYLE: Final = Path(__file__).with_name("pages.css")
_AUTOLINK: Final = re.compile(r"(?i)(https?(?=:)|www(?=\.)|(?<!\w)@|@(?=[a-z]))")
_MARKDOWN: Final = re.compile(r"([\\`*_\[\]|~#!$])")


Form: TypeAlias = Literal["strong", "code", "badge", "good", "near", "bad", "quote"]


@dataclass(frozen=True, slots=True)
class Mark:
    """A part of a line with its own form.

    Attributes:
        text: The text.
        form: `strong` or `code`. Only HTML shows `badge`, the colors of `good`, `near` and `bad`,
            and the line breaks of a `quote`.
    """

    text: str
    form: Form


Line: TypeAlias = "str | Mark | tuple[str | Mark, ...]"
"""A paragraph, a list item or the cell of a table."""


@dataclass(frozen=True, slots=True)
class Items:
    """A list."""

    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table. The first cell of a row names the row."""

    heads: tuple[str, ...]
    rows: tuple[tuple[Line, ...], ...]


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands below it. In HTML, a box can surround both, or it is folded."""

    title: str
    blocks: tuple[Block, ...]
    form: Literal["section", "article", "details"] = "section"


Block: TypeAlias = "Line | Items | Table | Section"


def to_markdown(blocks: Iterable[Block], level: int = 3) -> str:
    """Return blocks as GitHub Markdown.

    Args:
        blocks: The blocks.
        level: Level of the headings of sections, 1 to 6.
    """
    return "\n\n".join(_write_markdown(block, level) for block in blocks)


def _write_markdown(block: Block, level: int) -> str:
    match block:
        case Section():
            title = f"{'#' * level} {_escape_markdown(block.title)}"
            return f"{title}\n\n{to_markdown(block.blocks, level + 1)}"
        case Items():
            return "\n".join(f"- {_mark_line(line)}" for line in block.lines)
        case Table():
            cells = [map(_mark_line, row) for row in block.rows]
            rows = [map(_escape_markdown, block.heads), ["---"] * len(block.heads), *cells]
            return "\n".join(f"| {' | '.join(row)} |" for row in rows)
        case _:
            return _mark_line(block)


def _mark_line(line: Line) -> str:
    match line:
        case Mark(text=text, form="code"):  # which has no escapes
            code = " ".join(text.split()).replace("`", "%60").replace("|", "%7C")
            return f"`{code}`"
        case Mark(text=text, form="strong"):
            return f"**{_escape_markdown(text)}**"
        case Mark(text=text) | str(text):
            return _escape_markdown(text)
        case _:
            return "".join(map(_mark_line, line))


def _escape_markdown(text: str) -> str:
    """Return a text without line breaks, of which Markdown interprets nothing."""
    edges = (" " if text[:1] == " " else "", " " if text[-1:] == " " else "")
    line = " ".join(text.split()).join(edges)
    line = _AUTOLINK.sub("\\1\u2060", line)  # a word joiner, or it would become a link
    return _MARKDOWN.sub(r"\\\1", html.escape(line, quote=False))


def to_html(blocks: Iterable[Block], level: int = 2) -> str:
    """Return blocks as HTML, in which the headings of sections have a level from 1 to 6."""
    return "\n".join(_write_html(block, level) for block in blocks)


def _write_html(block: Block, level: int) -> str:
    match block:
        case Section():
            heading = "summary" if block.form == "details" else f"h{level}"
            title = f"<{heading}>{html.escape(block.title)}</{heading}>"
            return f"<{block.form}>{title}\n{to_html(block.blocks, level + 1)}</{block.form}>"
        case Items():
            return f"<ul>{''.join(f'<li>{_write_line(line)}</li>' for line in block.lines)}</ul>"
        case Table():
            heads = "".join(f'<th scope="col">{html.escape(head)}</th>' for head in block.heads)
            rows = "\n".join(_write_row(block.heads, row) for row in block.rows)
            return f"<table><thead><tr>{heads}</tr></thead>\n<tbody>{rows}</tbody></table>"
        case _:
            return f"<p>{_write_line(block)}</p>"


def _write_row(heads: Sequence[str], cells: Sequence[Line]) -> str:
    named = zip(heads[1:], map(_write_line, cells[1:]), strict=True)
    shown = "".join(f'<td data-label="{html.escape(head)}">{cell}</td>' for head, cell in named)
    return f'<tr><th scope="row">{_write_line(cells[0])}</th>{shown}</tr>'


def _write_line(line: Line) -> str:
    match line:
        case str():
            return html.escape(line)
        case Mark(text=text, form="strong" | "code" as tag):
            return f"<{tag}>{html.escape(text)}</{tag}>"
        case Mark(text=text, form=form):
            return f'<span class="{form}">{html.escape(text)}</span>'
        case _:
            return "".join(_write_line(part) for part in line)


def to_page(title: str, blocks: Iterable[Block]) -> str:
    """Return blocks as a complete HTML page without scripts or requests."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">\n"
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="robots" content="noindex">\n'
        f"<title>{html.escape(title)}</title>\n"
        f"<style>{_STYLE.read_text(encoding='utf-8')}</style>\n</head>\n"
        f"<body><main>\n<h1>{html.escape(title)}</h1>\n{to_html(blocks)}\n</main></body>\n</html>\n"
    )


def to_text(blocks: Iterable[Block]) -> str:
    """Return blocks as text for a terminal, with aligned columns and indented sections."""
    return "\n".join(line.rstrip() for block in blocks for line in _list_lines(block))


def _list_lines(block: Block) -> list[str]:
    match block:
        case Section():
            below = [line for part in block.blocks for line in _list_lines(part)]
            return [f"{block.title}:", *(f"  {line}" for line in below)]
        case Items():
            return [_write_text(line) for line in block.lines]
        case Table():
            rows = [list(block.heads), *([_write_text(cell) for cell in row] for row in block.rows)]
            widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
            return [
                "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
                for row in rows
            ]
        case _:
            return [_write_text(block)]


def _write_text(line: Line) -> str:
    match line:
        case Mark(text=text) | str(text):
            return " ".join(text.split())
        case _:
            return "".join(part if isinstance(part, str) else part.text for part in line)


def shorten(text: str, most_chars: int) -> str:
    """Return a text on one line; an ellipsis marks where a longer one is cut."""
    line = " ".join(text.split())
    return line if len(line) <= most_chars else line[: most_chars - 1] + "…"
