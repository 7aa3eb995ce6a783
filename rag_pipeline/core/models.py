"""Immutable data classes that the stages of ingestion pass to each other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple, Self, TypeAlias

from rag_pipeline.core.sources import DEFAULT_EDITION, Edition, Source
from rag_pipeline.core.text.sentences import NO_NOTES, Hold, LineOrigin, PageNotes, Run, SourceLines

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.core.ids import ChunkId, DocId


class Closing(ABC):
    """Base class of objects that hold a connection or a request until they are closed.

    Use the object in a `with` block, or call `close`.
    """

    @abstractmethod
    def close(self) -> None:
        """Release the connection or request. A second call does nothing."""

    def __enter__(self) -> Self:
        """Return the object itself for use in the `with` block."""
        return self

    def __exit__(self, *raised: object) -> None:
        """Close the object at the end of the `with` block, also after an exception."""
        self.close()


class ContentType(StrEnum):
    """The kind of a chunk's content; the last four hold for all chunks of a document."""

    PROSE = "prose"
    CODE = "code"
    TABLE = "table"
    LAB = "lab"
    QUIZ = "quiz"
    ASSESSMENT = "assessment"
    API = "api"


class Stage(StrEnum):
    """The stages of ingestion in order. The values are the names of the Dagster assets."""

    DISCOVERED = "discovered_docs"
    PARSED = "parsed_docs"
    CHUNKS = "chunks"
    EMBEDDINGS = "embeddings"
    POINTS = "qdrant_points"


class MarkdownFormat(StrEnum):
    """The syntax of Markdown files. DETECT reads `.md` files as CommonMark and `.mdx` as MDX."""

    MDX = "mdx"
    MD = "md"
    DETECT = "detect"


class EmbeddingText(StrEnum):
    """The headings embedded before a chunk's text: none, title, own heading, or the whole path."""

    TEXT = "text"
    TITLE = "title"
    SECTION = "section"
    HEADING_PATH = "heading-path"


@dataclass(frozen=True, slots=True)
class SiteSettings:
    """Settings of the Docusaurus site: those that decide page addresses, and the Markdown syntax.

    Attributes:
        base_url: `baseUrl` of the site, such as `/my-book/` or `https://host/book/`; ends with `/`.
        route_base_path: `routeBasePath` of the docs plugin without outer slashes; may be empty.
        trailing_slash: True adds `/` to each address, False removes it, None changes nothing.
        markdown_format: Syntax of the Markdown files.
        component_text: Exceptions from the rule which attributes of components are text, such as
            `Badge.type,-Chart`.
        index_unlisted: True if pages with `unlisted: true` are indexed.
    """

    base_url: str = "/"
    route_base_path: str = "docs"
    trailing_slash: bool | None = None
    markdown_format: MarkdownFormat = MarkdownFormat.MDX
    component_text: str = ""
    index_unlisted: bool = False


@dataclass(frozen=True, slots=True)
class ChunkLimits:
    """Sizes of chunks in tokens (cl100k_base); only code, tables and formulas may exceed `max`."""

    min_tokens: int = 200
    target_tokens: int = 500
    max_tokens: int = 800
    overlap_tokens: int = 50
    embedding_text: EmbeddingText = EmbeddingText.HEADING_PATH


@dataclass(frozen=True, slots=True)
class DiscoveredDoc:
    """A Markdown file that Docusaurus would build.

    Attributes:
        doc_id: Path of the file below the docs folder.
        path: Path of the file on this machine.
        sha256: Hash of the file's bytes and of the files it imports, 64 hexadecimal digits.
        mtime_ns: Time of the file's last change in nanoseconds; -1 if it imports other files.
        built: Its entry in the manifest of the built site; empty if there is none.
        source: Its source; None if the book has only its docs folder.
        written: The text of a page without a file, which the site generates; otherwise empty.
    """

    doc_id: DocId
    path: Path
    sha256: str
    size_bytes: int
    mtime_ns: int
    built: bytes = b""
    source: Source | None = None
    written: bytes = b""


@dataclass(frozen=True, slots=True)
class DocFailure:
    """A document that failed in a stage: path, name of the stage, error code and message."""

    doc_path: str
    stage: str
    error: str
    message: str


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a page. `anchor` is its id, None for level 1; `line` is 1-based."""

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
        kind: Kind of the block. A list or quote comes before the blocks that it contains.
        start: Position of the block's first character in the chunk's text, 0-based.
        end: Position after the block's last character.
        start_line: First line of the block in the document's file or in the parsed text, 1-based.
        end_line: Last line, inclusive.
        opens_with_link: True if the block begins with a link, as an entry of a list of pages does.
    """

    kind: TextBlockKind
    start: int
    end: int
    start_line: int
    end_line: int
    opens_with_link: bool = False


SITE_FILES: Final = "@site/"
"""Start of the path of a file below the site's folder."""


@dataclass(frozen=True, slots=True)
class Figure:
    """An image or a diagram of a page.

    Attributes:
        kind: `image`, or `diagram` for Mermaid, whose source is `text`.
        address: Address of an image on the site, or a path that starts with `@site/` for a file
            that the build renames. Empty for a diagram.
        text: The alternative text of an image, or the source of a diagram.
        caption: The caption; may be empty.
        line: Line in the document's file, 1-based.
    """

    kind: str
    address: str
    text: str
    caption: str
    line: int


class Container(NamedTuple):
    """A list, list item, quote, admonition or element, such as a tab, around a block.

    Attributes:
        number: Number of the container, unique within its text.
        kind: Kind among the blocks of a text; None for an element, which is not listed there.
        label: Label of a tab. Empty for other containers.
    """

    number: int
    kind: TextBlockKind | None
    label: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive whole lines of the source with one meaning, such as a paragraph or a table.

    Attributes:
        kind: Name of the Markdown construct.
        start_line: First line, 1-based.
        end_line: Last line, inclusive.
        start: Position of the first character in the source, 0-based.
        end: Position after the last character, without the line end.
        text: The block cleaned for reading and embedding; empty if it is only syntax.
        runs: The parts of the source that cleaning left unchanged in `text`, in order.
        holds: Parts of the block that must stay in one piece, such as links, in order.
        text_kind: Kind in a chunk's text; None if the block only opens or closes a container.
        containers: The lists, list items, quotes and admonitions around it, the outermost first,
            and then the elements around it, such as tabs.
        is_atomic: True if the block must not be split between two chunks.
        leads: True if the block belongs with the next one, as a heading with the text after it.
        heading: Index in `Document.headings` if the block is a heading, else None.
        images: Its images, in order.
    """

    kind: str
    start_line: int
    end_line: int
    start: int
    end: int
    text: str
    runs: tuple[Run, ...]
    holds: tuple[Hold, ...]
    text_kind: TextBlockKind | None
    containers: tuple[Container, ...]
    is_atomic: bool
    leads: bool
    heading: int | None
    images: tuple[Figure, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """The data of a whole document: front matter, module and chapter, page address, headings."""

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
    edition: Edition = DEFAULT_EDITION


@dataclass(frozen=True, slots=True)
class ParsedDoc:
    r"""A document split into blocks. Each non-blank line of the source is in exactly one block.

    Attributes:
        source: The file's text with front matter, `\n` line ends, no byte order mark and no NUL.
            A partial's text follows the block that shows it.
        blocks: Blocks in the order of the source.
        origins: Origin of the lines; empty if all lines come from the document's file.
        notes: The parts of the page that could not be read.
    """

    document: Document
    source: str
    blocks: tuple[Block, ...]
    origins: tuple[LineOrigin, ...] = ()
    notes: PageNotes = NO_NOTES


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of one section of a document, which is embedded, found and cited as a whole.

    Attributes:
        heading_breadcrumb: Title of the document, then the headings down to the chunk's own, and
            the labels of the tabs that contain the chunk.
        heading_level: Level of the chunk's heading; 0 for text before the first heading.
        anchor: Id of the section's heading on the page; None if no heading above has an id.
        chunk_index: 0-based number of the chunk in the document.
        content_hash: SHA-256 of `text`.
        start_line: First source line, 1-based, including the text repeated from the chunk before.
            A partial counts as the line of the document that shows it.
        end_line: Last source line, inclusive.
        start_byte: First byte in the normalized source (UTF-8), including the repeated text.
        content_start_byte: First byte after the repeated text.
        end_byte: Position after the last byte.
        text: The cleaned text, which is stored, shown and cited.
        embedding_text: The headings that EMBEDDING_TEXT selects, the sentence before code, `text`.
        blocks: The blocks of `text` in order of their start.
        sources: Files and lines of the text if it contains a partial. Not printed if empty.
        tabs: Labels of the tabs around the chunk, the outermost first. Not printed if empty.
        figures: The images of the chunk, in order. Not printed if empty.
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
    sources: tuple[SourceLines, ...] = ()
    tabs: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()


JsonValue: TypeAlias = "str | int | float | bool | list[JsonValue] | dict[str, JsonValue] | None"
Payload: TypeAlias = "dict[str, JsonValue]"
