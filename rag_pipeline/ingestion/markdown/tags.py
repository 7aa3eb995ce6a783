"""Read the names and attributes of tags, in HTML and in JSX."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from rag_pipeline.ingestion.markdown.mdx_syntax import read_literal

if TYPE_CHECKING:
    from rag_pipeline.ingestion.markdown.mdx_syntax import Scanner

FindValue: TypeAlias = Callable[[str], "str | None"]

_OPENING: Final = re.compile(r"<([A-Za-z][\w.:-]*)")
_ATTRIBUTE: Final = re.compile(
    r"""\s+([A-Za-z_][\w.:-]*)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|(?=\{)))?"""
)
_LINKS: Final = frozenset({"a", "Link"})


def read_attributes(
    scanner: Scanner, start: int, close: int, find_value: FindValue = read_literal
) -> dict[str, str]:
    """Return the attributes of a tag whose values are known, such as `"x"` and `{'x'}`.

    Args:
        scanner: Scanner of the whole source.
        start: Offset of the tag's first character.
        close: Offset after the tag's last character.
        find_value: Function that returns the text of an expression; None if it is not known.

    Returns:
        The values by name. An attribute with another expression is left out, and so is everything
        after a part of the tag that cannot be read.
    """
    source, found = scanner.text, dict[str, str]()
    name = _OPENING.match(source, start, close)
    at = close if name is None else name.end()
    while (attribute := _ATTRIBUTE.match(source, at, close)) is not None:
        at = attribute.end()
        if source[at : at + 1] == "{":
            end = scanner.find_brace_end(at, close) or close
            value = find_value(source[at + 1 : end - 1].strip())
            if value is not None:
                found[attribute[1]] = value
            at = end
        else:
            found[attribute[1]] = attribute[2] or attribute[3] or ""
    return found


def find_link_tag(scanner: Scanner, start: int, close: int) -> tuple[str, str] | None:
    """Return name and target of an opening tag `<a>` or `<Link>`; None for any other tag."""
    name = _OPENING.match(scanner.text, start, close)
    if name is None or name[1] not in _LINKS or scanner.text.startswith("/>", close - 2):
        return None
    attributes = read_attributes(scanner, start, close)
    target = attributes.get("href") or attributes.get("to")
    return (name[1], target) if target else None
