"""A small built site, written with the metadata files that a Docusaurus build leaves."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class WrittenSite:
    """A built site in a folder.

    Attributes:
        root: Folder of the site; the pages are built into `build` in it.
        base_url: `baseUrl` of the site.
        trailing_slash: `trailingSlash` of the site.
        sidebar: Entries of the sidebar `main`, as Docusaurus writes them.
    """

    root: Path
    base_url: str = "/book/"
    trailing_slash: bool | None = False
    sidebar: list[dict[str, Any]] = field(default_factory=list)

    def add_page(self, name: str, text: str, permalink: str, **metadata: object) -> dict[str, Any]:
        """Write a page's source, metadata and HTML file, and return an entry for the sidebar."""
        source = self.root / "docs" / name
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(text, encoding="utf-8")
        record = {
            "id": name.rsplit(".", 1)[0],
            "title": name,
            "description": "",
            "source": f"@site/docs/{name}",
            "permalink": permalink,
            "unlisted": False,
            "version": "current",
        } | metadata
        safe = name.replace("/", "-").replace(".", "-")
        write_json(self.metadata / f"site-docs-{safe}.json", record)
        self.add_html(permalink)
        label = str(record["title"])
        unlisted = record["unlisted"]
        return {"type": "link", "href": permalink, "label": label, "unlisted": unlisted}

    def add_html(self, permalink: str) -> None:
        """Write the HTML file of an address."""
        path = permalink.removeprefix(self.base_url).strip("/")
        html = self.build / (f"{path}.html" if path else "index.html")
        html.parent.mkdir(parents=True, exist_ok=True)
        html.write_text("<!doctype html>", encoding="utf-8")

    def finish(self) -> Path:
        """Write the configuration and the sidebar, and return the folder of the build."""
        config = {
            "title": "A Book",
            "tagline": "About robots",
            "baseUrl": self.base_url,
            "trailingSlash": self.trailing_slash,
            "markdown": {"format": "mdx"},
        }
        text = f"// generated\nexport default {json.dumps(config, indent=2)};\n"
        (self.root / ".docusaurus" / "docusaurus.config.mjs").write_text(text, encoding="utf-8")
        version = {"version": "current", "isLast": True, "docsSidebars": {"main": self.sidebar}}
        write_json(self.metadata / "p" / "docs-1a2.json", {"version": version})
        (self.build / "404.html").write_text("<!doctype html>", encoding="utf-8")
        return self.build

    @property
    def build(self) -> Path:
        """The folder of the built pages."""
        return self.root / "build"

    @property
    def metadata(self) -> Path:
        """The folder of the docs plugin's metadata."""
        return self.root / ".docusaurus" / "docusaurus-plugin-content-docs" / "default"


def write_json(path: Path, record: object) -> None:
    """Write a record as JSON, with the folders above the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record), encoding="utf-8")
