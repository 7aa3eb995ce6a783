"""Read a file as the text whose lines and bytes all stages count, and choose its syntax."""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import DocumentReadError
from rag_pipeline.core.models import MarkdownFormat
from rag_pipeline.core.site.files import find_page_root, read_site_file
from rag_pipeline.core.sources import find_place

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rag_pipeline.core.models import DiscoveredDoc, SiteSettings
    from rag_pipeline.ingestion.markdown.front_matter import FrontMatter

_OPEN_HEAD: Final = re.compile(
    r"---[ \t]*\n[A-Za-z_][\w-]*:(?=\s)(?!.*^---[ \t]*$)", re.DOTALL | re.MULTILINE
)
"""A line `---` and a line `name: value`, but no second line `---`."""


def read_doc(doc: DiscoveredDoc) -> bytes:
    """Return the content of a document: its file, or the text that the site generates.

    Raises:
        DocumentReadError: The file cannot be read, or it is outside the root of its site.
    """
    root = find_page_root(find_place(doc.source, doc.doc_id), doc.path)
    return doc.written or read_file(doc.doc_id, doc.path, root)


def read_file(doc_id: str, path: Path, root: Path) -> bytes:
    """Return the content of a document's file.

    Raises:
        DocumentReadError: The file cannot be read, or it is outside the root of its site.
    """
    try:
        return read_site_file(path, root)
    except OSError as error:
        reason = error.strerror or error
        problem = f"it cannot be read ({reason}). Check the file and its permissions"
        raise DocumentReadError(doc_id, problem) from error


def normalize_source(content: bytes) -> str:
    r"""Decode the bytes of a file as UTF-8 text with `\n` line ends, as Docusaurus does.

    A byte order mark is removed. Invalid bytes and NUL characters become U+FFFD. Lines keep their
    numbers.
    """
    text = content.decode("utf-8-sig", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\ufffd")


def find_invalid_line(content: bytes) -> int | None:
    """Return the number, from 1, of the first line with bytes that are not UTF-8; None without."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return normalize_source(content[: error.start]).count("\n") + 1
    return None


def has_open_front_matter(source: str) -> bool:
    """Return True if a normalized source begins with front matter that no line `---` ends.

    Its lines are then a part of the text.
    """
    return _OPEN_HEAD.match(source) is not None


def count_bytes(source: str, offsets: Iterable[int]) -> dict[int, int]:
    """Map character offsets in a text to byte offsets in its UTF-8 encoding.

    Args:
        source: The text.
        offsets: Character offsets, in any order.

    Returns:
        The byte offset for each of the character offsets.
    """
    found: dict[int, int] = {}
    at = size = 0
    ascii_only = source.isascii()
    for offset in sorted(set(offsets)):
        size += offset - at if ascii_only else len(source[at:offset].encode())
        found[offset] = size
        at = offset
    return found


def is_mdx(doc_id: str, front_matter: FrontMatter, site: SiteSettings) -> bool:
    """Return True if a file is parsed as MDX, False if it is parsed as CommonMark with HTML.

    The field `mdx: {format: ...}` in the front matter takes precedence over the site's setting.
    """
    given = front_matter.section("mdx").text("format")
    chosen = given if given in set(MarkdownFormat) else site.markdown_format.value
    if chosen == MarkdownFormat.DETECT:
        return posixpath.splitext(doc_id)[1] != ".md"
    return chosen == MarkdownFormat.MDX
