"""Check that the built documentation site is whole and works without a network.

`python scripts/check_site.py build/docs` reads every HTML page below the folder. It prints each
link or image whose file or anchor is missing, and each script, style sheet or image that the
browser would load from another host. The exit code is 1 if it found any. Zensical's strict mode
checks links between Markdown pages, but neither images nor links to other files.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {"img": "src", "script": "src", "iframe": "src", "source": "src", "link": "href"}
_NOT_LOADED = {"canonical", "alternate", "prev", "next", "edit"}  # relations of <link>
_WEB = {"http", "https", ""}


class Page(HTMLParser):
    """The anchors and the links of one page.

    Attributes:
        anchors: Every `id` and every `name` of a link target.
        links: Targets of `<a href>`.
        loaded: Addresses that a browser loads to show the page.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the anchor and the address of a tag, if it has them."""
        values = dict(attrs)
        self.anchors.update(values[name] or "" for name in ("id", "name") if name in values)
        if tag == "a" and values.get("href"):
            self.links.append(values["href"] or "")
        address = values.get(_LOADED.get(tag, ""))
        if address and not _NOT_LOADED & set((values.get("rel") or "").split()):
            self.loaded.append(address)


def find_problems(site: Path) -> list[str]:
    """Return one line for each broken link and each resource of another host."""
    site = site.resolve()
    pages = {path: Page(path) for path in sorted(site.rglob("*.html"))}
    if not pages:
        return [f"{site} contains no page"]
    problems = []
    for path, page in pages.items():
        name = path.relative_to(site)
        problems += [
            f"{name}: loads {address} from another host"
            for address in page.loaded
            if urlsplit(address).netloc
        ]
        if path.name == "404.html":  # served for any address, so its links are absolute
            continue
        for address in (*page.links, *page.loaded):
            split = urlsplit(address)
            if split.scheme not in _WEB or split.netloc:
                continue
            target = (path.parent / unquote(split.path)).resolve() if split.path else path
            anchor = unquote(split.fragment)
            if not target.is_file() or not target.is_relative_to(site):
                remedy = "Correct it; write a path outside docs/ as code, without a link"
                problems.append(f"{name}: {address} is no file of the site. {remedy}")
            elif anchor and target in pages and anchor not in pages[target].anchors:
                problems.append(f"{name}: {address} leads to a missing anchor")
    return problems


def main() -> int:
    """Print the problems of the site that the first argument names; return the exit code."""
    problems = find_problems(Path(sys.argv[1]))
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
