"""Read case files, and describe blocks and chunks in the form of the expected output of a case.

A case consists of a title line, the input and the expected output. A line with only a dot follows
each of them. After a `|`, the title line may set the Markdown format, the path of the document and
the chunk limits (minimum, target, maximum and overlap): `Title | format=md limits=20/40/60/10`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rag_pipeline.core.ids import parse_doc_id
from rag_pipeline.core.models import (
    ChunkLimits,
    DiscoveredDoc,
    MarkdownFormat,
    SiteSettings,
    TextBlockKind,
)
from rag_pipeline.ingestion.chunking import chunk_doc
from rag_pipeline.ingestion.parsing import parse_doc

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rag_pipeline.core.models import Block, Chunk, ParsedDoc, TextBlock

CASES_DIR = Path(__file__).parent
CONTAINER_KINDS = {
    TextBlockKind.LIST,
    TextBlockKind.LIST_ITEM,
    TextBlockKind.QUOTE,
    TextBlockKind.ADMONITION,
}


@dataclass(frozen=True)
class CaseFile:
    """One case of a case file.

    Attributes:
        file: Name of the case file without its suffix.
        title: Sentence that says what the case shows.
        options: Settings from the title line, such as `format`.
        source: Markdown input.
        expected: Expected output.
    """

    file: str
    title: str
    options: dict[str, str]
    source: str
    expected: str


def read_cases(folder: Path = CASES_DIR) -> Iterator[CaseFile]:
    """Yield all cases of the case files in a folder, ordered by file name and place in the file."""
    for path in sorted(folder.glob("*.md")):
        parts = path.read_text(encoding="utf-8").split("\n.\n")
        for at in range(0, len(parts) - 2, 3):
            title, _, options = parts[at].strip("\n").partition(" | ")
            pairs = (pair.split("=", 1) for pair in options.split())
            yield CaseFile(path.stem, title, dict(pairs), parts[at + 1], parts[at + 2])


def describe(case: CaseFile) -> str:
    """Parse and chunk the input of a case, and describe the result as in its expected output.

    First come the blocks with their lines, then the chunks with content type, lines, heading path,
    anchor and text.
    """
    parsed, chunks = chunk_case(case)
    lines = [*map(_describe_block, parsed.blocks)]
    for chunk in chunks:
        lines += _describe_chunk(chunk)
    return "\n".join(lines)


def chunk_case(case: CaseFile) -> tuple[ParsedDoc, tuple[Chunk, ...]]:
    """Parse and chunk the input of a case with the options of the case."""
    doc_id = parse_doc_id(case.options.get("path", "page.md"))
    doc = DiscoveredDoc(doc_id, Path(doc_id), "", 0, 0)
    site = SiteSettings(markdown_format=MarkdownFormat(case.options.get("format", "mdx")))
    sizes = case.options.get("limits", "200/500/800/50").split("/")
    parsed = parse_doc(doc, site, case.source.encode())
    return parsed, chunk_doc(parsed, ChunkLimits(*map(int, sizes)))


def describe_text_blocks(text: str, blocks: Sequence[TextBlock]) -> list[str]:
    """Return one line per block with its kind, offsets, source lines and text.

    A block that begins with a link is marked by `link`.
    Blocks are indented inside containers.
    """
    lines: list[str] = []
    around: list[TextBlock] = []
    for block in blocks:
        while around and around[-1].end <= block.start:
            around.pop()
        shown = json.dumps(text[block.start : block.end], ensure_ascii=False)
        place = f"{block.start}-{block.end} @{block.start_line}-{block.end_line}"
        mark = " link" if block.opens_with_link else ""
        lines.append(f"{'  ' * len(around)}{block.kind} {place}{mark} {shown}")
        if block.kind in CONTAINER_KINDS:
            around.append(block)
    return lines


def _describe_block(block: Block) -> str:
    span = str(block.start_line)
    if block.end_line > block.start_line:
        span += f"-{block.end_line}"
    return f"{span} {block.kind}"


def _describe_chunk(chunk: Chunk) -> Iterator[str]:
    path = " > ".join(chunk.heading_breadcrumb)
    anchor = f" #{chunk.anchor}" if chunk.anchor else ""
    yield f"[{chunk.content_type}] {chunk.start_line}-{chunk.end_line} {path}{anchor}"
    lead_in = chunk.embedding_text.removeprefix(path).removesuffix(chunk.text).strip()
    if lead_in:
        yield f"  (after: {lead_in})"
    for line in chunk.text.split("\n"):
        yield f"  | {line}".rstrip()
