"""Read `rag-manifest.json`, in which a built site lists the address and headings of its pages.

The theme `docusaurus-theme-robotutor` writes the file. Its addresses and heading ids come from the
build itself, so they are right for sites whose configuration or plugins change Docusaurus's rules.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.models import Document, Heading
from rag_pipeline.core.site.files import MAX_BUILD_BYTES, find_root, read_site_file
from rag_pipeline.ingestion.site.docusaurus_config import find_config

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.sources import Source

MANIFEST_FILE: Final = "rag-manifest.json"

_FORMAT: Final = 1
_HOST: Final = re.compile(r"https?://[^/]+")
_REMEDY: Final = "Build the website again with the matching version of docusaurus-theme-robotutor"


@dataclass(frozen=True, slots=True)
class ManifestPage:
    """A page of the built site.

    Attributes:
        source_sha256: Hash of the file's bytes when the site was built, 64 hexadecimal digits.
        permalink: Path of the page with the base URL, percent-encoded.
        headings: The headings of the page's text, in their order. Their lines are not known.
    """

    source_sha256: str
    permalink: str
    headings: tuple[Heading, ...]


def read_manifest(path: Path, docs_dir: Path, source: Source | None = None) -> dict[str, bytes]:
    """Return the entries of a manifest for a docs folder, by the path of each document below it.

    The files in a manifest are named from the site's folder, which is the folder of
    `docusaurus.config`, or else the folder that contains the docs folder. Each locale except the
    default one has a manifest of its own, in the folder of its base URL.

    Args:
        path: The manifest of the default locale.
        docs_dir: The docs folder.
        source: The source whose documents are meant, if not those of the docs folder.

    Returns:
        The JSON text of each entry, for `read_page`. Empty if the locale was not built.

    Raises:
        ConfigurationError: The file cannot be read, is damaged or has an unknown format.
    """
    config, docs_dir = find_config(docs_dir), docs_dir.absolute()
    site_dir, folders = (config or docs_dir).parent, [docs_dir]
    root = find_root(path.parent)
    if source is not None:
        folders = [source.folder] if source.fallback is None else [source.fallback, source.folder]
        if source.base_url:
            path = path.parent / urlsplit(source.base_url).path.strip("/") / path.name
            if not path.is_file():
                return {}
    pages, found = _load_pages(path, root), dict[str, bytes]()
    for folder in folders:
        place = Path(os.path.relpath(folder.absolute(), site_dir)).as_posix()
        prefix = "" if place == "." else f"{place}/"
        found |= {
            name.removeprefix(prefix): page.encode()
            for name, page in pages.items()
            if name.startswith(prefix)
        }
    return found


def _load_pages(path: Path, root: Path) -> dict[str, str]:
    """Return the JSON text of each entry of a manifest, by the path of the Markdown file.

    Raises:
        ConfigurationError: The file cannot be read, is damaged or has an unknown format.
    """
    try:
        content = json.loads(read_site_file(path, root, MAX_BUILD_BYTES))
        if content["format"] != _FORMAT:
            problem = f"{path} has format {content['format']!r}, but format {_FORMAT} is needed"
            raise ConfigurationError("SITE_MANIFEST", problem, _REMEDY)
        pages = {str(page["source"]): json.dumps(page, sort_keys=True) for page in content["pages"]}
        for page in pages.values():
            read_page(page)
    except OSError as error:
        problem = f"{path} cannot be read ({error.strerror})"
        raise ConfigurationError("SITE_MANIFEST", problem, _REMEDY) from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigurationError("SITE_MANIFEST", f"{path} is damaged", _REMEDY) from error
    return pages


def read_page(entry: bytes | str) -> ManifestPage:
    """Return an entry of a manifest."""
    page: dict[str, Any] = json.loads(entry)
    return ManifestPage(
        source_sha256=str(page["sourceHash"]),
        permalink=str(page["permalink"]),
        headings=tuple(
            Heading(int(one["level"]), str(one["text"]), one["id"] or None, 0)
            for one in page["headings"]
        ),
    )


def describes(entry: bytes, content: bytes) -> bool:
    """Return True if an entry was made from this content of the Markdown file."""
    return read_page(entry).source_sha256 == hashlib.sha256(content).hexdigest()


def take_addresses(document: Document, page: ManifestPage) -> tuple[Document, tuple[str, ...]]:
    """Return a document with the address and anchors of the built page, and what differs.

    A heading that the built page does not have keeps its predicted anchor, unless the page has
    another heading with this anchor.

    Args:
        document: The document with the address and anchors that the rules predict.
        page: The page that the site built from the same file content.
    """
    differences: list[str] = []
    host = _HOST.match(document.url)
    url = (host[0] if host else "") + page.permalink
    if url != document.url:
        differences.append(f"{document.doc_path}: expected {document.url}, the site has {url}")
    built = _align(document.headings, page.headings)
    anchors = {one.anchor for one in page.headings}
    headings: list[Heading] = []
    for heading, found in zip(document.headings, built, strict=True):
        anchor = found.anchor if found else heading.anchor
        if found is None and heading.anchor in anchors:
            anchor = None
        headings.append(replace(heading, anchor=anchor))
        if found is None or found.anchor != heading.anchor:
            shown = (found.anchor if found else None) or "no such heading"
            differences.append(
                f"{document.doc_path}:{heading.line}: expected {heading.anchor or 'no anchor'}, "
                f"the site has {shown}"
            )
    return replace(document, url=url, headings=tuple(headings)), tuple(differences)


def _align(headings: Sequence[Heading], built: Sequence[Heading]) -> list[Heading | None]:
    """Return the built heading of each heading of a document, or None where there is none.

    Headings are paired by level and text in their order. Between two pairs, the headings that are
    left are paired by their order if both sides have the same number of them, because a plugin may
    have changed their texts.
    """
    own = [(one.level, _simplify(one.text)) for one in headings]
    site = [(one.level, _simplify(one.text)) for one in built]
    # Usually the site has all headings, and perhaps more, such as the title above the text.
    found = _find_in_order(own, site)
    if found is not None:
        return [built[at] for at in found]
    result: list[Heading | None] = [None] * len(headings)
    matcher = SequenceMatcher(a=own, b=site, autojunk=False)
    for kind, start, end, built_start, built_end in matcher.get_opcodes():
        if kind == "equal" or (kind == "replace" and end - start == built_end - built_start):
            result[start:end] = built[built_start:built_end]
    return result


def _find_in_order(wanted: Sequence[object], items: Sequence[object]) -> list[int] | None:
    """Return an ascending position in `items` for each wanted item; None if one is missing."""
    positions: list[int] = []
    for item in wanted:
        start = positions[-1] + 1 if positions else 0
        position = next((at for at in range(start, len(items)) if items[at] == item), None)
        if position is None:
            return None
        positions.append(position)
    return positions


def _simplify(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())
