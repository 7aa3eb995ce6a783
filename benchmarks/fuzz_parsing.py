"""Fuzz parsing and chunking with random input, to find crashes and hangs.

The inputs are random bytes, sequences and long runs of awkward Markdown marks, and real pages with
random edits. The script stops at the first input that raises an unexpected exception (anything but
DocumentError) or takes more than 10 s of CPU time, and writes the input to the current folder. At
the end, it prints the peak memory. Run it from the root of the repository:
`python benchmarks/fuzz_parsing.py --inputs 100000 --seed 1`.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
from pathlib import Path
from typing import Final

from rag_pipeline.core.errors import DocumentError
from rag_pipeline.core.ids import DocId
from rag_pipeline.core.models import ChunkLimits, DiscoveredDoc, MarkdownFormat, SiteSettings
from rag_pipeline.ingestion.chunking import chunk_doc
from rag_pipeline.ingestion.markdown.blocks import find_text_blocks
from rag_pipeline.ingestion.parsing import parse_doc

_LONGEST_SECONDS: Final = 10.0
_LIMITS: Final = (ChunkLimits(), ChunkLimits(20, 40, 60, 10))
_MARKS: Final = (
    "\n|\n\n|# |## |```|~~~|````md\n|:::|::::note |:::tip[x]\n|::x|$$|$|{|}|{/*|*/}|<!--|-->|<|>"
    "|</|/>|<Tabs>\n|</Tabs>\n|<h2>|</h2>|[|]|](|)|![|[^1]: |[r]: /x\n|`|``|*|**|_|~~|\\|\\{|- |1. "
    "|> |    |---\n|===\n|| a |\n|-|-|\n|import {|export const a = |from 'x'\n|&amp;|&#x0;|{#id}"
    "|{/* #id */}|\ufeff|\0|\r|\r\n|\t|\u2028|\x0c|\u200b|\U0001f680|e\u0301|<|endoftext|>"
    "|---\ntitle: |tags: [|draft: true|highlight-next-line|```mdx-code-block\n|. |! |e.g. "
    "|http://x|\x85|\xa0"
)


def main() -> int:
    """Run the fuzz test and print a summary; return 1 if an input took too long, else 0."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else "")
    parser.add_argument("--inputs", type=int, default=100_000, help="number of inputs")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random inputs")
    parser.add_argument(
        "--docs-dir", type=Path, default=Path("website/docs"), help="folder with real pages"
    )
    options = parser.parse_args()
    rng = random.Random(options.seed)  # noqa: S311  # must be repeatable; not used for secrets
    pages = [path.read_bytes() for path in sorted(options.docs_dir.rglob("*.md"))] or [b"# A\n"]
    slowest, refused, start = 0.0, 0, time.monotonic()
    for number in range(options.inputs):
        content = _make_input(rng, pages)
        began = time.process_time()
        try:
            refused += _feed(rng, content)
        except Exception:
            Path(f"fuzz-failure-{options.seed}-{number}.bin").write_bytes(content)
            raise
        seconds = time.process_time() - began
        slowest = max(slowest, seconds)
        if seconds > _LONGEST_SECONDS:
            Path(f"fuzz-slow-{options.seed}-{number}.bin").write_bytes(content)
            print(f"input {number} took {seconds:.1f} s")
            return 1
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{options.inputs} inputs, seed {options.seed}: none raised; {refused} refused with "
        f"DocumentError; slowest {slowest:.2f} s; peak {peak_mb:.0f} MB; "
        f"{time.monotonic() - start:.0f} s"
    )
    return 0


def _feed(rng: random.Random, content: bytes) -> int:
    """Parse and chunk one input; return 1 if it was refused with DocumentError, else 0."""
    doc = DiscoveredDoc(DocId("module-1/lab.md"), Path("lab.md"), "", 0, 0)
    site = SiteSettings(markdown_format=rng.choice([MarkdownFormat.MDX, MarkdownFormat.MD]))
    try:
        parsed = parse_doc(doc, site, content)
    except DocumentError:
        return 1
    chunk_doc(parsed, rng.choice(_LIMITS))
    find_text_blocks(parsed.source)
    return 0


def _make_input(rng: random.Random, pages: list[bytes]) -> bytes:
    kind = rng.random()
    if kind < 0.1:
        return rng.randbytes(rng.randrange(0, 2000))
    if kind < 0.4:
        marks = rng.choices(_split_marks(), k=rng.randrange(1, 120))
        return "".join(marks).encode("utf-8", "surrogatepass")
    if kind < 0.45:
        mark = rng.choice(_split_marks()) + rng.choice(["", " ", "a", "\n"])
        return (mark * rng.randrange(1, 3000)).encode()
    return _mutate(rng, pages)


def _split_marks() -> list[str]:
    return [mark or "|" for mark in _MARKS.split("|")]


def _mutate(rng: random.Random, pages: list[bytes]) -> bytes:
    page = rng.choice(pages)
    at = rng.randrange(len(page))
    content = bytearray(page[at : at + rng.randrange(50, 3000)])
    for _ in range(rng.randrange(1, 25)):
        at = rng.randrange(len(content) + 1)
        action = rng.random()
        if action < 0.5:
            content[at:at] = rng.choice(_split_marks()).encode()
        elif action < 0.7:
            del content[at : at + rng.randrange(1, 60)]
        elif action < 0.85:
            start = rng.randrange(len(content) + 1)
            content[at:at] = content[start : start + rng.randrange(1, 200)]
        else:
            content[at:at] = rng.randbytes(rng.randrange(1, 4))
    return bytes(content)


if __name__ == "__main__":
    sys.exit(main())
