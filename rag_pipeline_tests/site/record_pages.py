"""Record the headings and texts of a built site, as truth for tests that build no site.

The truth of fixtures/docusaurus-mdx-site was recorded after `npx docusaurus build` in a copy of the
folder, with the `node_modules` of website/ and the npm package raw-loader:
`python -m rag_pipeline_tests.site.record_pages build/docs > docusaurus-mdx-truth.json`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TypedDict

from rag_pipeline_tests.site.built_page import read_page


class PageTruth(TypedDict):
    """The level, text and id of each heading of a page, and the text of each of its sections."""

    headings: list[tuple[int, str, str | None]]
    sections: list[str]


def record_pages(folder: Path) -> dict[str, PageTruth]:
    """Return the headings and sections of all pages below a folder, by path without suffix."""
    pages: dict[str, PageTruth] = {}
    for path in sorted(folder.rglob("*.html")):
        page = read_page(path)
        name = path.relative_to(folder).with_suffix("").as_posix()
        pages[name] = {
            "headings": [(item.level, item.text, item.id) for item in page.headings],
            "sections": [" ".join(text.replace("\u200b", "").split()) for text in page.texts],
        }
    return pages


if __name__ == "__main__":
    print(json.dumps(record_pages(Path(sys.argv[1])), indent=1, ensure_ascii=False))  # noqa: T201
