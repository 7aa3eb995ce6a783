"""List the pages of a folder as Docusaurus does: in `<DocCardList />` and on generated indexes.

A category without a page of its own, whose `_category_.json` links to a generated index, is a
document too. Its text is the description of the category and the list of its pages.
"""

from __future__ import annotations

import json
import math
import posixpath
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import yaml

from rag_pipeline.core.errors import FrontMatterError
from rag_pipeline.core.site.docusaurus import base_id, is_doc_name, make_slug, split_custom_id
from rag_pipeline.core.site.files import is_inside, read_site_file
from rag_pipeline.ingestion.markdown.front_matter import (
    Visibility,
    find_visibility,
    read_front_matter,
)
from rag_pipeline.ingestion.markdown.source import normalize_source

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CATEGORY_FILES: Final = ("_category_.json", "_category_.yml", "_category_.yaml")
_CARD: Final = "#card"
_INDEX_NAMES: Final = ("index", "readme")
_MOST_CARDS: Final = 1_000
_HEADING: Final = re.compile(r"^#[ \t]+(.+)$", re.MULTILINE)
_NO_EXCERPT: Final = re.compile(r"(?:#[ \t]|import\b|export\b|:::|<|```|\||---|!\[|\{)")


def is_category(doc_path: str) -> bool:
    """Return True if a file describes a category of the sidebar."""
    return posixpath.basename(doc_path) in CATEGORY_FILES


def has_generated_index(content: bytes) -> bool:
    """Return True if the description of a category links to a generated index."""
    link = _read_category(content).get("link")
    return isinstance(link, dict) and link.get("type") == "generated-index"


def write_category(content: str, cards: Mapping[str, bytes | None]) -> str:
    """Return the Markdown of a generated index, with a front matter.

    Args:
        content: Content of the file that describes the category.
        cards: The cards of its pages, among other files.

    Source:
        sidebars/processor.js of @docusaurus/plugin-content-docs 3.10: the slug of the index is
        made of the label.
    """
    category = _read_category(content.encode("utf-8", "surrogatepass"))
    given = category.get("link")
    link = {
        name: value
        for name, value in (given.items() if isinstance(given, dict) else ())
        if isinstance(value, str)
    }
    label = str(category.get("label") or "")
    slug = link.get("slug") or f"/category/{make_slug(label)}"
    head = {
        "title": str(link.get("title") or label),
        "description": str(link.get("description") or category.get("description") or ""),
        "slug": str(slug),
    }
    fields = "\n".join(f"{name}: {json.dumps(value)}" for name, value in head.items())
    return f"---\n{fields}\n---\n\n{head['description']}\n\n{write_cards(cards)}\n"


def write_cards(cards: Mapping[str, bytes | None]) -> str:
    """Return the cards as a Markdown list, in the order of the sidebar."""
    found = [json.loads(data) for name, data in cards.items() if data and name.endswith(_CARD)]
    found.sort(key=lambda card: (card["position"], card["name"]))
    return "\n".join(
        f"- **{card['label']}**" + f": {card['description']}" * bool(card["description"])
        for card in found
    )


def read_cards(site_dir: Path, folder: str, own_name: str, root: Path) -> dict[str, bytes]:
    """Return a card for each page and subfolder of a folder, as JSON by path and a suffix.

    Args:
        site_dir: Folder of the site.
        folder: Path of the folder below it.
        own_name: Name of the file that shows the cards.
        root: The folder in which all files must be.
    """
    cards: dict[str, bytes] = {}
    try:
        entries = sorted((site_dir / folder).iterdir(), key=lambda entry: entry.name)
    except OSError:
        return cards
    for entry in entries[:_MOST_CARDS]:
        is_index = entry.stem.lower() in _INDEX_NAMES and not is_category(own_name)
        is_own = entry.name == own_name or is_index
        if not is_inside(entry, root):
            continue
        if entry.is_dir() and not entry.name.startswith(("_", ".")):
            card = _read_folder_card(entry, root)
        elif is_doc_name(entry.name) and not is_own:
            card = _read_page_card(entry, root)
        else:
            continue
        if card is not None:
            cards[f"{folder}/{entry.name}{_CARD}"] = json.dumps(card).encode()
    return cards


def _read_folder_card(folder: Path, root: Path) -> dict[str, Any] | None:
    category: dict[str, Any] = {}
    for name in CATEGORY_FILES:
        with suppress(OSError):
            category = _read_category(read_site_file(folder / name, root))
            break
    pages = [entry for entry in folder.iterdir() if is_doc_name(entry.name)]
    index = next((page for page in pages if page.stem.lower() in _INDEX_NAMES), None)
    if not pages and not category:
        return None
    link = category.get("link")
    own = (_read_page_card(index, root) if index else None) or {}
    described = link.get("description") if isinstance(link, dict) else None
    described = described if isinstance(described, str) else None
    position = category.get("position", own.get("position"))
    return {
        "label": str(category.get("label") or own.get("label") or base_id(folder.name, "")),
        "description": str(described or category.get("description") or own.get("description", "")),
        "position": position if isinstance(position, int | float) else math.inf,
        "name": folder.name,
    }


def _read_page_card(page: Path, root: Path) -> dict[str, Any] | None:
    try:
        source = normalize_source(read_site_file(page, root))
        head = read_front_matter(page.name, source)
        position = head.number("sidebar_position")
    except (OSError, FrontMatterError):
        return None
    if find_visibility(source) is not Visibility.LISTED:
        return None
    body = source[head.end :]
    heading = _HEADING.search(body)
    label = head.text("sidebar_label") or head.text("title")
    return {
        "label": label or (heading[1] if heading else base_id(page.name, head.text("id"))),
        "description": head.text("description") or _find_excerpt(body),
        "position": math.inf if position is None else position,
        "name": page.name,
    }


def _find_excerpt(body: str) -> str:
    """Return the first line of prose of a page, or its first heading below the title."""
    lines = (line.strip() for line in body.split("\n"))
    found = next((line for line in lines if line and not _NO_EXCERPT.match(line)), "")
    return split_custom_id(found.lstrip("# "))[0]


def _read_category(content: bytes) -> dict[str, Any]:
    try:
        found = yaml.safe_load(normalize_source(content))  # JSON is YAML
    except (yaml.YAMLError, RecursionError, ValueError):
        return {}
    return {
        name: value
        for name, value in (found.items() if isinstance(found, dict) else ())
        if name == "link" or isinstance(value, str | int | float | bool)
    }
