"""The payload of a point (FR-015). Each field is declared once, as an attribute of a class here.

Writing and reading payloads, the stores' indexes, the filters of queries and commands, and
docs/reference/payload.md follow from the declarations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_type_hints

from rag_pipeline.core.errors import PayloadError
from rag_pipeline.core.ids import hash_text, is_chunk_id
from rag_pipeline.core.models import ContentType, TextBlock, TextBlockKind

if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_pipeline.core.models import Chunk, Document, Payload


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter of queries: only points that have one of the given values in a field.

    Attributes:
        name: The field of `QueryFilters`.
        flags: The options of `rag-pipeline search` and `rag-pipeline query`.
        help: The help text of the options.
        values: The only values that exist; empty if any value is possible.
    """

    name: str
    flags: tuple[str, ...]
    help: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of payload values.

    Attributes:
        label: The type's name in docs/reference/payload.md.
        accepts: Tells if a stored value has the type.
        write: Turns the value of a chunk or document into JSON.
        read: Turns an accepted value into the value of the attribute.
    """

    label: str
    accepts: Callable[[object], bool]
    write: Callable[[Any], Any] = lambda value: value
    read: Callable[[Any], object] = lambda value: value


@dataclass(frozen=True, slots=True)
class Declared:
    """The declaration of a payload field, in the annotation of the attribute.

    Attributes:
        description: The field's description in docs/reference/payload.md.
        source: Chunks and documents have an attribute of the field's name; `build_payload` makes
            the values of "writing".
        filter: How queries are filtered by the field.
        indexed: The stores keep a keyword index, although no filter needs it.
        check: Tells if a value of the right type is valid.
    """

    description: str
    source: Literal["chunk", "document", "writing"] = "chunk"
    filter: Filter | None = None
    indexed: bool = False
    check: Callable[[object], bool] = lambda _: True


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkMetadata:
    """The fields of a point's payload that are shown to users, read back and typed.

    A new field has a default: a selected text, which comes from no store, then needs no value.
    """

    chunk_id: Annotated[
        str,
        Declared(
            "16 hexadecimal digits; read as a number, the point's id.",
            check=is_chunk_id,
        ),
    ]
    doc_path: Annotated[str, Declared("Path below the docs folder.", indexed=True)]
    module: Annotated[
        str,
        Declared(
            "Module from the front matter or the path, such as `module-1`; may be empty.",
            filter=Filter("modules", ("--module",), "Only this module."),
        ),
    ]
    chapter: Annotated[
        str,
        Declared(
            "Chapter from the front matter or the path, such as `1.1-introduction`; may be empty.",
            filter=Filter("chapters", ("--chapter",), "Only this chapter."),
        ),
    ]
    title: Annotated[str, Declared("Title of the document.")]
    description: Annotated[str, Declared("Description from the front matter.", "document")]
    section_heading: Annotated[str, Declared("Heading of the section.")]
    heading_breadcrumb: Annotated[
        tuple[str, ...], Declared("Title of the document, then the headings down to the section.")
    ]
    heading_level: Annotated[int, Declared("Level of the heading; 0 before the first one.")]
    anchor: Annotated[
        str | None,
        Declared("Id of the heading on the page; null before the first heading with an id."),
    ]
    url: Annotated[str, Declared("Path of the page on the site, with the anchor.")]
    chunk_index: Annotated[int, Declared("Position in the document, from 0.")]
    content_type: Annotated[
        str,
        Declared(
            "One of prose, code, table, lab, quiz and assessment.",
            filter=Filter(
                "content_types",
                ("--type", "--content-type"),
                "Only prose, code, table, lab, quiz or assessment.",
                tuple(ContentType),
            ),
        ),
    ]
    tags: Annotated[
        tuple[str, ...],
        Declared(
            "Tags from the front matter.",
            filter=Filter("tags", ("--tag",), "Only documents with this tag."),
        ),
    ]
    learning_objectives: Annotated[
        tuple[str, ...],
        Declared("Learning objectives from the front matter.", "document"),
    ]
    sidebar_label: Annotated[str, Declared("Name in the site's sidebar.", "document")]
    sidebar_position: Annotated[
        float | None, Declared("Position in the site's sidebar.", "document")
    ]
    content_hash: Annotated[str, Declared("SHA-256 of `text`.")]
    word_count: Annotated[int, Declared("Words of `text`.")]
    token_count: Annotated[int, Declared("cl100k_base tokens of `text`.")]
    start_line: Annotated[int, Declared("First line in the source, from 1.")]
    end_line: Annotated[int, Declared("Last line in the source, inclusive.")]
    start_byte: Annotated[int, Declared("First byte in the normalized source.")]
    end_byte: Annotated[int, Declared("Byte after the last one in the normalized source.")]
    ingested_at: Annotated[
        str, Declared("Time of the content's first ingestion (ISO 8601, UTC).", "writing")
    ]
    blocks: Annotated[
        tuple[TextBlock, ...],
        Declared("Blocks of `text`: their kind, first character and end (exclusive)."),
    ] = ()


class _HiddenFields(ChunkMetadata):
    """The declarations of the fields that are stored, but are not part of the metadata."""

    text: Annotated[str, Declared("The passage as it is shown and cited.")]
    embedding_hash: Annotated[str, Declared("SHA-256 of the text that was embedded.", "writing")]


@dataclass(frozen=True, slots=True)
class PayloadField:
    """A declared field with the name and the type of its attribute.

    Attributes:
        shown: The field is part of `ChunkMetadata`.
    """

    name: str
    kind: Kind
    declared: Declared
    shown: bool


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_block(value: object) -> bool:
    if not isinstance(value, dict) or value.keys() != {"kind", "start", "end"}:
        return False
    kind, start, end = value["kind"], value["start"], value["end"]
    return kind in tuple(TextBlockKind) and _is_int(start) and _is_int(end) and 0 <= start <= end


_KINDS: Final[dict[object, Kind]] = {
    str: Kind("text", lambda value: isinstance(value, str), write=str),
    str | None: Kind("text or null", lambda value: value is None or isinstance(value, str)),
    int: Kind("integer", _is_int),
    float | None: Kind(
        "number or null",
        lambda value: value is None or isinstance(value, float) or _is_int(value),
    ),
    tuple[str, ...]: Kind(
        "list of texts",
        lambda value: isinstance(value, list) and all(isinstance(entry, str) for entry in value),
        write=list,
        read=tuple,
    ),
    tuple[TextBlock, ...]: Kind(
        "list of `{kind, start, end}`",
        lambda value: isinstance(value, list) and all(map(_is_block, value)),
        write=lambda blocks: [
            {"kind": block.kind.value, "start": block.start, "end": block.end} for block in blocks
        ],
        read=lambda blocks: tuple(
            TextBlock(TextBlockKind(block["kind"]), block["start"], block["end"])
            for block in blocks
        ),
    ),
}


def _resolve_fields() -> tuple[PayloadField, ...]:
    shown = ChunkMetadata.__dataclass_fields__
    hints = get_type_hints(_HiddenFields, include_extras=True)
    return tuple(
        PayloadField(name, _KINDS[hint.__origin__], hint.__metadata__[0], name in shown)
        for name, hint in hints.items()
    )


PAYLOAD_FIELDS: Final = _resolve_fields()
"""All fields, in the order of their declarations."""

FILTERS: Final = {
    field.name: field.declared.filter for field in PAYLOAD_FIELDS if field.declared.filter
}
"""The filters of queries by the name of the payload field."""

INDEXED_FIELDS: Final = tuple(
    field.name for field in PAYLOAD_FIELDS if field.declared.indexed or field.name in FILTERS
)
"""The fields with a keyword index (FR-016)."""


def build_payload(chunk: Chunk, document: Document, ingested_at: str) -> Payload:
    """Build the payload of a chunk's point.

    Args:
        chunk: The chunk.
        document: The document that the chunk is from.
        ingested_at: ISO 8601 in UTC. Moves only if the chunk's content does.
    """
    payload: Payload = {
        "embedding_hash": hash_text(chunk.embedding_text),
        "ingested_at": ingested_at,
    }
    origins = {"chunk": chunk, "document": document}
    for field in PAYLOAD_FIELDS:
        if field.declared.source != "writing":
            value = getattr(origins[field.declared.source], field.name)
            payload[field.name] = field.kind.write(value)
    return payload


def read_metadata(payload: Payload) -> ChunkMetadata:
    """Read the fields that are shown to users.

    Raises:
        PayloadError: A field is missing or has another type. The message names the point, the
            field and the remedy.
    """
    values = {field.name: _read_field(payload, field) for field in PAYLOAD_FIELDS if field.shown}
    return ChunkMetadata(**values)  # type: ignore[arg-type]  # the types were checked


def read_text(payload: Payload) -> str:
    """Read the passage.

    Raises:
        PayloadError: The text is missing.
    """
    return str(_read_field(payload, _TEXT))


def _read_field(payload: Payload, field: PayloadField) -> object:
    value = payload.get(field.name, _MISSING)
    if not field.kind.accepts(value) or not field.declared.check(value):
        raise PayloadError(str(payload.get("chunk_id", "?")), field.name, value)
    return field.kind.read(value)


class _Missing:
    """Stands for a missing field in error messages."""

    def __repr__(self) -> str:
        return "nothing"


_MISSING: Final = _Missing()
_TEXT: Final = next(field for field in PAYLOAD_FIELDS if field.name == "text")
