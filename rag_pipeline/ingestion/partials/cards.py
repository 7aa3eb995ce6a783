"""List the pages of a category as Docusaurus does: in `<DocCardList />` and on generated indexes.

The category is a folder, or it is declared in the sidebars of the site. A category without a page
of its own that links to a generated index is a document too. Its text is the description of the
category and the list of its pages.
"""

from __future__ import annotations

import json
import math
import posixpath
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import yaml

from rag_pipeline.core.errors import FrontMatterError
from rag_pipeline.core.site.docusaurus import (
    HeadingIds,
    base_id,
    is_doc_name,
    make_slug,
    split_custom_id,
    strip_number_prefix,
)
from rag_pipeline.core.site.files import is_inside, read_site_file
from rag_pipeline.ingestion.markdown.source import (
    Visibility,
    find_visibility,
    normalize_source,
    read_front_matter,
)
from rag_pipeline.ingestion.site.sidebars import UNREAD, read_sidebars

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from rag_pipeline.ingestion.markdown.source import FrontMatter
    from rag_pipeline.ingestion.site.sidebars import SidebarItem

CATEGORY_FILES: Final = ("_category_.json", "_category_.yml", "_category_.yaml")
_CARD: Final = "#card"
_UNREAD_CARDS: Final = "#unread"
UNREAD_FIELD: Final = "has_unread_cards"
"""The field of a written front matter that says that a part of the list cannot be read."""

_INDEX_NAMES: Final = ("index", "readme")
_MOST_CARDS: Final = 1_000
_HEADING: Final = re.compile(r"^#[ \t]+(.+)$", re.MULTILINE)
_UNDERLINED: Final = re.compile(r"\s*[^\n]*\n=+")
_STATEMENT: Final = re.compile(r"(?:import|export)\s")
_NO_EXCERPT: Final = re.compile(r"<[^>]*>|^#[^#]+#?|^#+\s*|^\s{0,3}>\s?|:::.*|\[\^.+?\](?:: .*)?")


def is_category(doc_path: str) -> bool:
    """Return True if a file describes a category of the sidebar."""
    return posixpath.basename(doc_path) in CATEGORY_FILES


def has_generated_index(place: str, path: Path, content: bytes) -> bool:
    """Return True if Docusaurus generates an index for the file that describes a category.

    Args:
        place: Path of the file below its docs folder.
        path: Path of the file on this machine.
        content: Content of the file.
    """
    if _read_category(content).get("link", {}).get("type") != "generated-index":
        return False
    sidebars = read_sidebars(path.parents[place.count("/")])
    folder = posixpath.dirname(place)  # the folder of a sidebar itself is no category
    return sidebars is None or sidebars.has_code or sidebars.generates(folder)


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
    link = category.get("link", {})
    label = str(category.get("label") or "")
    title, slug = link.get("title") or label, link.get("slug") or f"/category/{make_slug(label)}"
    description = str(link.get("description") or category.get("description") or "")
    return _write_index(title, description, slug, cards)


def _write_index(title: str, description: str, slug: str, cards: Mapping[str, bytes | None]) -> str:
    head: dict[str, object] = {"title": title, "description": description, "slug": slug}
    head |= {UNREAD_FIELD: True} if _UNREAD_CARDS in cards else {}
    fields = "\n".join(f"{name}: {json.dumps(value)}" for name, value in head.items())
    return f"---\n{fields}\n---\n\n{description}\n\n{write_cards(cards)}\n"


def list_indexes(docs_dir: Path, root: Path) -> Iterator[tuple[str, str]]:
    """Yield a path and the Markdown of each generated index that the site's sidebars declare.

    No file has the path. It names the document, below the docs folder.

    Args:
        docs_dir: The docs folder.
        root: The folder in which all files must be.
    """
    sidebars, pages, slugs = read_sidebars(docs_dir), _Pages(docs_dir, root), HeadingIds()
    for item in sidebars.walk() if sidebars else ():
        if item.index is None or not item.items:
            continue
        slug = item.index["slug"] or f"/category/{slugs.next_id(2, item.label, None)}"
        first = next((pages.find(one.target) for one in item.items if one.kind == "doc"), None)
        folder = "." if first is None else first.parent.relative_to(docs_dir).as_posix()
        name = f"_category_.{slug.strip('/').replace('/', '-')}.md"
        title, cards = item.index["title"] or item.label, pages.make_cards(item.items)
        text = _write_index(title, item.index["description"], slug, cards)
        yield posixpath.normpath(f"{folder}/{name}"), text


def write_cards(cards: Mapping[str, bytes | None]) -> str:
    """Return the cards as a Markdown list, in the order of the sidebar."""
    found = [json.loads(cards[name] or "{}") for name in sorted(cards) if name.startswith(_CARD)]
    return "\n".join(
        f"- **{card['label']}**" + f": {card['description']}" * bool(card["description"])
        for card in found
    )


def has_all_cards(cards: Mapping[str, bytes | None]) -> bool:
    """Return False if there are no cards, or if code of the site decides which there are."""
    return _UNREAD_CARDS not in cards and any(name.startswith(_CARD) for name in cards)


def read_cards(place: str, path: Path, root: Path) -> dict[str, bytes]:
    """Return the cards that a page shows, as JSON by names in the order of the sidebar.

    Args:
        place: Path of the page below its docs folder.
        path: Path of the page on this machine.
        root: The folder in which all files must be.
    """
    docs_dir = path.parents[place.count("/")]
    pages, sidebars = _Pages(docs_dir, root), read_sidebars(docs_dir)
    own_ids = set() if is_category(place) else pages.name(path)
    items = None if sidebars is None else sidebars.find_siblings(own_ids)
    if items is not None:
        return pages.make_cards(items)
    if sidebars is None or sidebars.generates(place):
        return _number(pages.list_folder(path.parent, path.name))
    if sidebars.has_code:
        return _number(pages.list_folder(path.parent, path.name)) | {_UNREAD_CARDS: b""}
    return {}


def _number(cards: Iterable[dict[str, Any]]) -> dict[str, bytes]:
    return {f"{_CARD}{at:06}": json.dumps(card).encode() for at, card in enumerate(cards)}


@dataclass(slots=True)
class _Pages:
    """The pages of a docs folder, found by their ids.

    Attributes:
        docs_dir: The docs folder.
        root: The folder in which all files must be.
    """

    docs_dir: Path
    root: Path
    _names: dict[Path, set[str]] = field(default_factory=dict)
    _listed: dict[Path, list[Path]] = field(default_factory=dict)

    def name(self, page: Path) -> set[str]:
        """Return the id of a page, and its id with number prefixes."""
        folders = page.parent.relative_to(self.docs_dir).parts
        short = [strip_number_prefix(folder) for folder in folders]
        return {
            "/".join((*parts, name)) for parts in (folders, short) for name in self._name_file(page)
        }

    def _name_file(self, page: Path) -> set[str]:
        """Return the last part of the id of a page, without and with its number prefix."""
        if page not in self._names:
            own = _read_page(page, self.root)
            given = own[0].text("id") if own else None
            names = {base_id(page.name, given, strip_numbers=strip) for strip in (True, False)}
            self._names[page] = names
        return self._names[page]

    def find(self, doc_id: str) -> Path | None:
        """Return the page with an id."""
        folder, (*parts, name) = self.docs_dir, doc_id.split("/")
        for part in parts:
            child = folder / part
            if not child.is_dir():
                numbered = (one for one in _list_entries(folder) if one.name.endswith(part))
                child = next(
                    (one for one in numbered if strip_number_prefix(one.name) == part), child
                )
            folder = child
        if ".." in parts:
            return None
        if folder not in self._listed:
            self._listed[folder] = [one for one in _list_entries(folder) if is_doc_name(one.name)]
        # The name of the file seldom has nothing of the id.
        pages = sorted(self._listed[folder], key=lambda page: name not in page.name)
        return next((page for page in pages if name in self._name_file(page)), None)

    def make_cards(self, items: Sequence[SidebarItem]) -> dict[str, bytes]:
        """Return the cards of items of a sidebar."""
        unread = {_UNREAD_CARDS: b""} if any(item.kind == UNREAD for item in items) else {}
        return _number(self._list_items(items)) | unread

    def _list_items(self, items: Iterable[SidebarItem]) -> Iterator[dict[str, Any]]:
        for item in items:
            if item.kind == "autogenerated":
                yield from self.list_folder(self.docs_dir / item.target)
            elif item.kind == "doc" or (item.kind == "category" and not item.items):
                page = self.find(item.target)
                card = _read_page_card(page, self.root, item.label) if page else None
                if card is not None:
                    yield card
            elif item.label:
                yield {"label": item.label, "description": item.description}

    def list_folder(self, folder: Path, own_name: str = CATEGORY_FILES[0]) -> list[dict[str, Any]]:
        """Return a card for each page and subfolder of a folder, in the order of the sidebar.

        Args:
            folder: The folder.
            own_name: Name of the file that shows the cards. A page does not list the index.
        """
        cards: list[dict[str, Any]] = []
        for entry in _list_entries(folder)[:_MOST_CARDS]:
            is_index = entry.stem.lower() in _INDEX_NAMES and not is_category(own_name)
            is_own = entry.name == own_name or is_index
            if not is_inside(entry, self.root):
                continue
            if entry.is_dir() and not entry.name.startswith(("_", ".")):
                card = _read_folder_card(entry, self.root)
            elif is_doc_name(entry.name) and not is_own:
                card = _read_page_card(entry, self.root)
            else:
                continue
            if card is not None:
                cards.append(card)
        return sorted(cards, key=lambda card: (card["position"], card["name"]))


def _list_entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir(), key=lambda entry: entry.name)
    except OSError:
        return []


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
    own = (_read_page_card(index, root) if index else None) or {}
    described = category.get("link", {}).get("description")
    position = category.get("position", own.get("position"))
    return {
        "label": str(category.get("label") or own.get("label") or base_id(folder.name, "")),
        "description": str(described or category.get("description") or own.get("description", "")),
        "position": position if isinstance(position, int | float) else math.inf,
        "name": folder.name,
    }


def _read_page(page: Path, root: Path) -> tuple[FrontMatter, str] | None:
    """Return the front matter and the text of a page; None if they cannot be read."""
    try:
        source = normalize_source(read_site_file(page, root))
        return read_front_matter(page.name, source), source
    except (OSError, FrontMatterError):
        return None


def _read_page_card(page: Path, root: Path, label: str = "") -> dict[str, Any] | None:
    """Return the card of a page; `label` is that of the sidebar."""
    own = _read_page(page, root)
    if own is None or find_visibility(own[1]) is not Visibility.LISTED:
        return None
    head, body = own[0], own[1][own[0].end :]
    try:
        position = head.number("sidebar_position")
    except FrontMatterError:
        return None
    heading, given = _HEADING.search(body), head.scalar("description")
    label = head.text("sidebar_label") or label or head.text("title")
    return {
        "label": label or (heading[1] if heading else base_id(page.name, head.text("id"))),
        "description": _find_excerpt(body) if given is None else str(given),
        "position": math.inf if position is None else position,
        "name": page.name,
    }


def _find_excerpt(body: str) -> str:
    """Return the first line of text of a page, below the title; empty if there is none.

    Source:
        markdownUtils.js of @docusaurus/utils 3.10.
    """
    fence, in_statement = "", False
    for line in _UNDERLINED.sub("", body, count=1).split("\n"):
        text = line.strip()
        in_statement = bool(text) and (in_statement or _STATEMENT.match(line) is not None)
        ticks = len(text) - len(text.lstrip("`"))
        if not text or (in_statement and not fence):
            continue
        if ticks >= max(len(fence), 3):
            fence = "" if fence else "`" * ticks
        elif not fence and ticks < 3:
            shown = split_custom_id(_NO_EXCERPT.sub("", line).strip())[0]
            if shown:
                return shown
    return ""


def _read_category(content: bytes) -> dict[str, Any]:
    try:
        found = yaml.safe_load(normalize_source(content))  # JSON is YAML
    except (yaml.YAMLError, RecursionError, ValueError):
        return {}
    fields = found if isinstance(found, dict) else {}
    known = {name: one for name, one in fields.items() if isinstance(one, str | int | float)}
    link = fields.get("link")
    texts = link.items() if isinstance(link, dict) else ()
    own = {"link": {name: one for name, one in texts if isinstance(one, str)}}
    return known | (own if "link" in fields else {})
