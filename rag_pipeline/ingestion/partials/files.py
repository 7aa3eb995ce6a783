"""Read the files of a site that a page depends on, and hash them with the page."""

from __future__ import annotations

import hashlib
import os
import posixpath
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from rag_pipeline.core.site.docusaurus import MARKDOWN_SUFFIXES
from rag_pipeline.core.site.files import MAX_FILE_BYTES, find_page_root, read_site_file
from rag_pipeline.ingestion.markdown.openapi_spec import find_references
from rag_pipeline.ingestion.markdown.scope import CARD_LIST, find_imports
from rag_pipeline.ingestion.markdown.source import normalize_source
from rag_pipeline.ingestion.partials.cards import is_category, read_cards
from rag_pipeline.ingestion.site.docusaurus_config import find_config_above
from rag_pipeline.ingestion.site.manifest import MANIFEST_FILE, describes

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_BYTES: Final = 32 * 1024**2
"""Bytes of all files that one page imports."""

ImportedFiles: TypeAlias = "Mapping[str, bytes | None]"
"""Content of imported files by path below the site's folder; None for a file that is missing."""


def read_imports(
    place: str, path: Path, content: bytes, built: bytes = b""
) -> dict[str, bytes | None]:
    """Read all files that a page imports, directly or through its partials.

    Only files below the site's folder are read, and only files inside the root of the site.

    Args:
        place: Path of the page below the docs folder, or below the folder of its source.
        path: Path of the page on this machine.
        content: Content of the page.
        built: The page's entry in the manifest of the built site; empty without a manifest.

    Returns:
        The content of each file, or None if it cannot be read. If the site was built from this
        content, the name of the manifest has the page's entry. Empty without both.
    """
    found: dict[str, bytes | None] = {}
    root = find_page_root(place, path)
    if built and describes(built, content):
        found[MANIFEST_FILE] = built
    if is_spec(path.name):
        return _read_spec_files(place, path, content, root)
    if CARD_LIST.encode() in content or is_category(path.name):
        base = find_site_dir(place, path)
        folder = posixpath.dirname(locate_page(path, base))
        found |= read_cards(base, folder, path.name, root)
    if b"import" not in content and b"require(" not in content:
        return found
    site_dir: Path | None = None
    left = _MOST_BYTES
    pending = [("", content)]
    while pending:
        importer, source = pending.pop()
        for target in find_imports(normalize_source(source)):
            if site_dir is None:
                site_dir = find_site_dir(place, path)
            wanted = resolve_import(importer or locate_page(path, site_dir), target)
            if wanted is None or wanted in found:
                continue
            data = found[wanted] = _read_file(site_dir / wanted, root, left)
            left -= len(data or b"")
            if data is not None and wanted.endswith(MARKDOWN_SUFFIXES):
                pending.append((wanted, data))
    return found


def is_spec(doc_path: str) -> bool:
    """Return True for an OpenAPI document, which is JSON or YAML; a category is none."""
    return doc_path.endswith((".json", ".yaml", ".yml")) and not is_category(doc_path)


def _read_spec_files(place: str, path: Path, content: bytes, root: Path) -> dict[str, bytes | None]:
    """Read the files that an OpenAPI document refers to, directly or through others."""
    found: dict[str, bytes | None] = {}
    site_dir = find_site_dir(place, path)
    left = _MOST_BYTES
    pending = [(locate_page(path, site_dir), content)]
    while pending:
        importer, source = pending.pop()
        for target in find_references(normalize_source(source)):
            wanted = posixpath.normpath(posixpath.join(posixpath.dirname(importer), target))
            if wanted in found or wanted.startswith(("../", "/")):
                continue
            data = found[wanted] = _read_file(site_dir / wanted, root, left)
            left -= len(data or b"")
            if data is not None:
                pending.append((wanted, data))
    return found


def resolve_import(importer: str, target: str) -> str | None:
    """Return the path of an imported file below the site's folder; None if it is outside.

    Args:
        importer: Path of the importing file below the site's folder.
        target: The file as the statement names it: `./x`, `../x` or `@site/x`. The name of a
            package gives None.
    """
    if target.startswith("@site/"):
        path = posixpath.normpath(target.removeprefix("@site/"))
    elif target.startswith(("./", "../")):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(importer), target))
    else:
        return None
    return None if path.startswith(("../", "/")) else path


def find_site_dir(place: str, path: Path) -> Path:
    """Return the folder of the site: the nearest folder above the docs with a docusaurus.config.

    Without such a file, it is the folder that contains the docs folder.

    Args:
        place: Path of a page below the docs folder, or below the folder of its source.
        path: Path of the page on this machine.
    """
    docs_dir = Path(os.path.abspath(path))  # noqa: PTH100  # symbolic links must not be resolved
    for _ in place.split("/"):
        docs_dir = docs_dir.parent
    config = find_config_above(docs_dir)
    return docs_dir.parent if config is None else config.parent


def locate_page(path: Path, site_dir: Path) -> str:
    """Return the path of a page below the site's folder, with `/` between its parts."""
    return Path(os.path.relpath(path, site_dir)).as_posix()


def hash_content(content: bytes, imported: ImportedFiles) -> str:
    """Return the SHA-256 of a page's content, and of the files that it imports, if any."""
    digest = hashlib.sha256(content)
    for place in sorted(imported):
        data = imported[place]
        own = "missing" if data is None else hashlib.sha256(data).hexdigest()
        digest.update(f"\0{place}\0{own}".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _read_file(path: Path, root: Path, left: int) -> bytes | None:
    try:
        return read_site_file(path, root, min(left, MAX_FILE_BYTES))
    except OSError:
        return None
