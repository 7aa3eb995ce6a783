"""Find the files and addresses of the images of a page."""

from __future__ import annotations

import posixpath
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote, urljoin, urlsplit

from rag_pipeline.core.models import SITE_FILES
from rag_pipeline.core.site.files import is_inside

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rag_pipeline.core.models import Block, Figure

_STATIC: Final = "static/"
_SCHEME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//")
_AS_WRITTEN: Final = "pathname://"
_SUFFIX: Final = re.compile(r"[?#].*$")


def place_images(blocks: Iterable[Block], place: str) -> tuple[Block, ...]:
    """Return blocks whose images have paths below the site's folder.

    Args:
        blocks: The blocks of one file.
        place: Path of the file below the site's folder.
    """
    return tuple(
        replace(block, images=tuple(_place(image, place) for image in block.images))
        if block.images
        else block
        for block in blocks
    )


def settle_images(
    blocks: Iterable[Block], base_url: str, site_dir: Path, root: Path
) -> tuple[tuple[Block, ...], list[str]]:
    """Return blocks whose images have their addresses, and the images that are missing.

    Args:
        blocks: Blocks from `place_images`.
        base_url: Base URL of the page's locale.
        site_dir: Folder of the site.
        root: Folder outside which no file counts as an image of the site.
    """
    missing: list[str] = []

    def settle(image: Figure) -> Figure:
        address, is_missing = _settle(image.address, base_url, site_dir, root)
        if is_missing:
            missing.append(image.address.removeprefix(SITE_FILES))
        return replace(image, address=address)

    settled = tuple(
        replace(block, images=tuple(map(settle, block.images))) if block.images else block
        for block in blocks
    )
    return settled, [*dict.fromkeys(missing)]


def _place(image: Figure, place: str) -> Figure:
    target = image.address
    if _SCHEME.match(target) or target.startswith(("/", SITE_FILES)):
        return image
    path = posixpath.normpath(posixpath.join(posixpath.dirname(place), unquote(target)))
    return replace(image, address=SITE_FILES + path)


def _settle(target: str, base_url: str, site_dir: Path, root: Path) -> tuple[str, bool]:
    """Return the address of an image, and True if its file is missing."""
    if target.startswith(_AS_WRITTEN):
        return urljoin(base_url, "/" + target.removeprefix(_AS_WRITTEN).lstrip("/")), False
    if _SCHEME.match(target):
        return target, False
    target = _SUFFIX.sub("", target)
    if target.startswith("/"):
        path = unquote(target)
        below = path.removeprefix(urlsplit(base_url).path.rstrip("/"))
        found = next((one for one in (path, below) if _exists(site_dir / f"static{one}", root)), "")
        is_missing = not found and (site_dir / "static").is_dir()
        return urljoin(base_url, quote((found or below).lstrip("/"))), is_missing
    path = target.removeprefix(SITE_FILES)
    is_missing = not _exists(site_dir / path, root)
    if path.startswith(_STATIC):
        return urljoin(base_url, quote(path.removeprefix(_STATIC))), is_missing
    return SITE_FILES + path, is_missing


def _exists(path: Path, root: Path) -> bool:
    return path.is_file() and is_inside(path, root)
