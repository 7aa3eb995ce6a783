"""Plain data that the stages hand on: frozen, and without behaviour."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.core.ids import ChunkId, DocId


class ContentType(StrEnum):
    """The kind of a chunk's content (FR-015): lab, quiz and assessment come from the document."""

    PROSE = "prose"
    CODE = "code"
    TABLE = "table"
    LAB = "lab"
    QUIZ = "quiz"
    ASSESSMENT = "assessment"


class Stage(StrEnum):
    """The stages of ingestion in their order; the names are those of the Dagster assets."""

    DISCOVERED = "discovered_docs"
    PARSED = "parsed_docs"
    CHUNKS = "chunks"
    EMBEDDINGS = "embeddings"
    POINTS = "qdrant_points"


class MarkdownFormat(StrEnum):
    """The syntax of `.md` files: `detect` reads `.md` as CommonMark and `.mdx` as MDX."""

    MDX = "mdx"
    MD = "md"
    DETECT = "detect"


class EmbeddingText(StrEnum):
    """The headings that are embedded before a chunk's text: none, the document's title, its own
    heading, or the title and all headings down to its own.
    """

    TEXT = "text"
    TITLE = "title"
    SECTION = "section"
    HEADING_PATH = "heading-path"


@dataclass(frozen=True, slots=True)
class SiteSettings:
    """How the built site forms its paths.

    Attributes:
        base_url: Begins and ends with `/`, such as `/physical-ai-robotics-textbook/`; may carry
            scheme and host.
        route_base_path: Path of the docs plugin without slashes at its ends; empty for docs at the
            root.
        trailing_slash: None leaves a path as it is.
        markdown_format: Syntax of `.md` files.
    """

    base_url: str = "/"
    route_base_path: str = "docs"
    trailing_slash: bool | None = None
    markdown_format: MarkdownFormat = MarkdownFormat.MDX


@dataclass(frozen=True, slots=True)
class ChunkLimits:
    """Sizes of chunks in cl100k_base tokens, `min <= target <= max` and `0 <= overlap < min`."""

    min_tokens: int = 200
    target_tokens: int = 500
    max_tokens: int = 800
    overlap_tokens: int = 50
    embedding_text: EmbeddingText = EmbeddingText.HEADING_PATH


@dataclass(frozen=True, slots=True)
class DiscoveredDoc:
    """A Markdown file that Docusaurus would build.

    Attributes:
        doc_id: Path below the docs folder.
        path: Where the file lies on this machine.
        sha256: Hash of the file's bytes, 64 hexadecimal digits.
        size_bytes: Size of the file.
        mtime_ns: Time of its last change in nanoseconds; never part of a hash.
    """

    doc_id: DocId
    path: Path
    sha256: str
    size_bytes: int
    mtime_ns: int


DOCUMENT_MISSING: Final = "DocumentMissing"
"""The error of a document that was asked for by name and is missing."""


@dataclass(frozen=True, slots=True)
class DocFailure:
    """A document that a stage left out, with the reason."""

    doc_path: str
    stage: str
    error: str
    message: str


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading as the built site shows it; `anchor` is None for an h1, `line` is 1-based."""

    level: int
    text: str
    anchor: str | None
    line: int


class TextBlockKind(StrEnum):
    """The kinds of blocks that a chunk's text consists of."""

    PARAGRAPH = "paragraph"
    HEADING = "heading"
    LIST = "list"
    LIST_ITEM = "list_item"
    TABLE = "table"
    CODE = "code"
    FORMULA = "formula"
    QUOTE = "quote"
    ADMONITION = "admonition"
    HTML = "html"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class TextBlock:
    """A block of a chunk's text, such as a paragraph or a table.

    Attributes:
        kind: A list is followed by its items, which lie within it.
        start: Offset of the first character in the text.
        end: Offset after the last character.
    """

    kind: TextBlockKind
    start: int
    end: int


Container: TypeAlias = "tuple[int, TextBlockKind]"
"""Number in its text, and kind, of a list, list item, quote or admonition."""

Run: TypeAlias = "tuple[int, int, int]"
"""Characters that cleaning keeps: start and end (exclusive) in the source, start in the text."""

Hold: TypeAlias = "tuple[int, int]"
"""Start and end (exclusive) of characters that no cut may come between: a code span, a link."""


@dataclass(frozen=True, slots=True)
class Block:
    """A run of whole source lines with one meaning; blocks never share a line and stand in order.

    Attributes:
        kind: Name of the Markdown construct.
        start_line: First line, 1-based.
        end_line: Last line, inclusive.
        start: First character in the source.
        end: Position after the last character, its line end left out.
        start_byte: First byte in the UTF-8 bytes of the source.
        end_byte: Position after the last byte.
        text: The block cleaned for reading and embedding; empty for mere syntax.
        runs: The parts of the source that `text` keeps, in order; between them cleaning removed
            or replaced something.
        holds: Where the block must not be cut, in order.
        text_kind: How a text's blocks list it; None for mere marks of the container around it.
        containers: Number and kind of the lists, items, quotes and admonitions around it, the
            outermost first.
        is_atomic: Whether the block is never cut.
        leads: Whether the block after it belongs to it, as to a heading.
        heading: Position in `Document.headings` of the heading that this block is.
    """

    kind: str
    start_line: int
    end_line: int
    start: int
    end: int
    start_byte: int
    end_byte: int
    text: str
    runs: tuple[Run, ...]
    holds: tuple[Hold, ...]
    text_kind: TextBlockKind | None
    containers: tuple[Container, ...]
    is_atomic: bool
    leads: bool
    heading: int | None


@dataclass(frozen=True, slots=True)
class Document:
    """A document as a whole: front matter (FR-001), place in the course, page and headings."""

    doc_path: DocId
    title: str
    description: str
    tags: tuple[str, ...]
    learning_objectives: tuple[str, ...]
    sidebar_label: str
    sidebar_position: float | None
    content_type: ContentType
    module: str
    chapter: str
    url: str
    headings: tuple[Heading, ...]


@dataclass(frozen=True, slots=True)
class ParsedDoc:
    r"""A document in blocks: every line of the source that is not blank is in exactly one.

    Attributes:
        source: Normalized: no byte order mark, `\n` line ends, no NUL; front matter included.
        blocks: In source order.
    """

    document: Document
    source: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file's metadata from the previous scan; drafts count too, so that none is read again."""

    size_bytes: int
    mtime_ns: int
    sha256: str
    draft: bool = False


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of one section of one document.

    Attributes:
        heading_breadcrumb: Title of the document, then the headings down to the chunk's own.
        heading_level: 0 where no heading stands above the chunk's text in the body.
        anchor: Id of the section's heading on the page; None before the first heading with an id.
        chunk_index: 0-based position in the document.
        content_hash: SHA-256 of `text`.
        start_line: First source line, 1-based; the overlap with the chunk before is included.
        end_line: Last source line, inclusive.
        start_byte: First byte, overlap included, in the UTF-8 bytes of the normalized source.
        content_start_byte: First byte of the span's own content, after the overlap.
        end_byte: Position after the last byte of the span.
        text: The cleaned span, which is stored, shown and cited.
        embedding_text: The text that is embedded: headings as EMBEDDING_TEXT says, a lead-in if
            there is one, and `text`.
        blocks: The blocks of `text` in order of their start.
    """

    chunk_id: ChunkId
    doc_path: DocId
    module: str
    chapter: str
    title: str
    section_heading: str
    heading_breadcrumb: tuple[str, ...]
    heading_level: int
    anchor: str | None
    url: str
    chunk_index: int
    content_type: ContentType
    tags: tuple[str, ...]
    content_hash: str
    word_count: int
    token_count: int
    start_line: int
    end_line: int
    start_byte: int
    content_start_byte: int
    end_byte: int
    text: str
    embedding_text: str
    blocks: tuple[TextBlock, ...] = ()


JsonValue: TypeAlias = "str | int | float | bool | list[JsonValue] | dict[str, JsonValue] | None"
Payload: TypeAlias = "dict[str, JsonValue]"
