"""Measure the CPU time of parsing and chunking, and check that it grows linearly.

The first figure is for 1 MB of the book's own Markdown, including token counts; the target is 2 s
on one core. The table shows inputs that could take quadratic time, at 1, 2, 4 and 8 times their
size. Run it from the root of the repository: `python benchmarks/parse_and_chunk.py`.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.ids import DocId
from rag_pipeline.core.models import ChunkLimits, DiscoveredDoc, SiteSettings
from rag_pipeline.core.text.terms import count_tokens
from rag_pipeline.ingestion.chunking import chunk_doc
from rag_pipeline.ingestion.markdown.source import normalize_source, read_front_matter
from rag_pipeline.ingestion.parsing import parse_doc

if TYPE_CHECKING:
    from collections.abc import Callable

_MEGABYTE: Final = 1_000_000
_SECTION: Final = "## Section {n}\n\nA short text about a robot arm. It has two sentences.\n\n"
_SHAPES: Final[dict[str, Callable[[int], str]]] = {
    "5,000 sections": lambda k: "".join(_SECTION.format(n=n) for n in range(1250 * k)),
    "5,000 equal headings": lambda k: "## Same\n\nText.\n\n" * (1250 * k),
    "one paragraph": lambda k: "The robot moves its arm to the left. " * (6_500 * k),
    "one paragraph without sentences": lambda k: "word " * (50_000 * k),
    "one line without spaces": lambda k: "ab" * (125_000 * k),
    "tight list": lambda k: "- an item of a list with a few words\n" * (6_500 * k),
    "nested list": lambda k: "- a\n  - b\n    - c\n      - d\n" * (3_000 * k),
    "quotes": lambda k: "> > text in a quote\n> lazy\n" * (5_000 * k),
    "table": lambda k: "| a | b |\n|---|---|\n" + "| c d e | f g h |\n" * (14_000 * k),
    "open tags": lambda k: "<Tag a={ <b c='\n" * (8_000 * k),
    "open containers": lambda k: "<TabItem value='a'>\n\nText.\n\n<details>\n\n" * (5_000 * k),
    "tabs": lambda k: "<TabItem value='a'>\n\nText.\n\n</TabItem>\n\n" * (5_000 * k),
    "open braces": lambda k: "{a {b `c\n" * (12_000 * k),
    "open brackets": lambda k: "[a ![b ](c\n" * (12_000 * k),
    "open code spans": lambda k: "` `` ``` ```` a\n" * (10_000 * k),
    "open directives": lambda k: ":::note\n```\nx\n$$\n" * (4_000 * k),
    "open comments": lambda k: "<!-- a\n\n" * (15_000 * k),
    "imports": lambda k: "import {\n\n" * (12_000 * k),
    "references": lambda k: "".join(
        f"[r{n}]: /x 'a'\n[r{n}] [b][r{n}]\n\n" for n in range(5_000 * k)
    ),
    "emphasis": lambda k: "*a **b _c " * (13_000 * k),
}


def main() -> None:
    """Read the options, run the measurements and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else "")
    parser.add_argument(
        "--docs-dir", type=Path, default=Path("website/docs"), help="folder with the book's pages"
    )
    docs_dir: Path = parser.parse_args().docs_dir
    count_tokens("load the vocabulary before the clock runs")
    _measure_book(docs_dir)
    print(f"\n{'shape':34}{'KB':>6}" + "".join(f"{f'{k}x s':>9}" for k in (1, 2, 4, 8)))
    for name, build in _SHAPES.items():
        seconds = [_run(build(k))[0] for k in (1, 2, 4, 8)]
        row = "".join(f"{value:9.2f}" for value in seconds)
        print(f"{name:34}{len(build(1)) // 1000:6d}{row}   8x/1x {seconds[3] / seconds[0]:5.1f}")


def _measure_book(docs_dir: Path) -> None:
    bodies = []
    for path in sorted(docs_dir.rglob("*.md")):
        source = normalize_source(path.read_bytes())
        bodies.append(source[read_front_matter(path.name, source).end :])
    book = "\n\n".join(bodies)
    text = (book * (_MEGABYTE // len(book) + 1))[:_MEGABYTE]
    seconds, chunks = _run(text)
    print(f"{len(text.encode()) / 1e6:.2f} MB of the book: {seconds:.2f} s CPU, {chunks} chunks")


def _run(text: str) -> tuple[float, int]:
    doc = DiscoveredDoc(DocId("page.md"), Path("page.md"), "", 0, 0)
    content = text.encode()
    start = time.process_time()
    chunks = chunk_doc(parse_doc(doc, SiteSettings(), content), ChunkLimits())
    return time.process_time() - start, len(chunks)


if __name__ == "__main__":
    main()
