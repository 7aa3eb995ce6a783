"""The files of a site, and what must be found on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class PublicSite:
    """A site, and what must be found on it.

    Attributes:
        files: The text of each file of the repository except Markdown files.
        pages: The Markdown files.
        values: The value of each setting.
        routes: The address of each source below the URL of the site.
        latest: The sources that readers get unless they choose a version.
        notes: A text that each note contains if the configuration is run, in their order.
    """

    files: dict[str, str]
    pages: tuple[str, ...]
    values: dict[str, str | bool]
    routes: dict[str, str]
    latest: set[str]
    notes: tuple[str, ...] = ()

    def write(self, root: Path) -> Path:
        """Write the repository of the site, and return the folder of the site."""
        (root / ".git").mkdir(parents=True)
        for name, text in self.files.items() | {
            (page, f"# {page}\n\nText.\n") for page in self.pages
        }:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return root / "website"
