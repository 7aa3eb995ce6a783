"""The fields stored with each point of the vector store. Each field is declared once, here.

Everything else is derived: writing and reading payloads, the indexes of the stores, the filters of
queries and commands, and docs/reference/payload.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_type_hints

from rag_pipeline.core.errors import PayloadError
from rag_pipeline.core.ids import hash_text, is_chunk_id, to_json
from rag_pipeline.core.models import ContentType, Figure, TextBlock, TextBlockKind
from rag_pipeline.core.sources import DEFAULT_EDITION, Edition

if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_pipeline.core.models import Chunk, Document, Payload


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter that lets queries find only points with given values in one payload field.

    Attributes:
        name: Name of the filter's attribute in `QueryFilters`.
        flags: Names of its option in `rag-pipeline search` and `rag-pipeline query`.
        help: Help text of the options.
        values: The only allowed values; empty if any value is allowed.
    """

    name: str
    flags: tuple[str, ...]
    help: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of payload field, with the functions that check and read its values.

    Attributes:
        label: Name of the type in docs/reference/payload.md.
        accepts: Function that returns True if a stored value has the type.
        read: Function that converts a stored value that `accepts` approved to a Python value.
    """

    label: str
    accepts: Callable[[object], bool]
    read: Callable[[Any], object] = lambda value: value


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_block(value: object) -> bool:
    if not isinstance(value, dict) or value.keys() != TextBlock.__dataclass_fields__.keys():
        return False
    kind, start, end, first, last, links = (value[name] for name in TextBlock.__dataclass_fields__)
    is_valid = kind in tuple(TextBlockKind) and all(map(_is_int, (start, end, first, last)))
    return is_valid and 0 <= start <= end and 1 <= first <= last and isinstance(links, bool)


def _is_figure(value: object) -> bool:
    if not isinstance(value, dict) or value.keys() != Figure.__dataclass_fields__.keys():
        return False
    *texts, line = (value[name] for name in Figure.__dataclass_fields__)
    return all(isinstance(text, str) for text in texts) and _is_int(line) and line >= 1


KINDS: Final[dict[object, Kind]] = {
    str: Kind("text", lambda value: isinstance(value, str)),
    str | None: Kind("text or null", lambda value: value is None or isinstance(value, str)),
    bool: Kind("boolean", lambda value: isinstance(value, bool)),
    int: Kind("integer", _is_int),
    float | None: Kind(
        "number or null", lambda value: value is None or isinstance(value, float) or _is_int(value)
    ),
    tuple[str, ...]: Kind(
        "list of texts",
        lambda value: isinstance(value, list) and all(isinstance(entry, str) for entry in value),
        read=tuple,
    ),
    tuple[TextBlock, ...]: Kind(
        "list of `{kind, start, end, start_line, end_line, opens_with_link}`",
        lambda value: isinstance(value, list) and all(map(_is_block, value)),
        read=lambda blocks: tuple(
            TextBlock(**{**block, "kind": TextBlockKind(block["kind"])}) for block in blocks
        ),
    ),
    tuple[Figure, ...]: Kind(
        "list of `{kind, address, text, caption, line}`",
        lambda value: isinstance(value, list) and all(map(_is_figure, value)),
        read=lambda figures: tuple(Figure(**figure) for figure in figures),
    ),
}
"""The type of payload field for each type of attribute."""


@dataclass(frozen=True, slots=True)
class Declared:
    """The properties of a payload field, given in the annotation of its attribute.

    Attributes:
        description: Description of the field in docs/reference/payload.md.
        source: Where `build_payload` gets the value: from the attribute of the chunk, of the
            document or of its edition that has the field's name. With "writing", it computes the
            value itself. The payload leaves out a value that the default edition has too.
        filter: Filter that lets queries select by this field; None if there is no filter.
        check: Function that returns True if a value of the right type is valid.
    """

    description: str
    source: Literal["chunk", "document", "edition", "writing"] = "chunk"
    filter: Filter | None = None
    check: Callable[[object], bool] = lambda _: True


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkMetadata:
    """The metadata of a chunk: the payload fields of its point that are shown to users.

    Give each new field a default value: a text that a reader selected gets metadata too, but it is
    not stored and has no value for the field.
    """

    chunk_id: Annotated[
        str,
        Declared(
            "Id of the chunk: 16 hexadecimal digits. The same number is the point's id.",
            check=is_chunk_id,
        ),
    ]
    doc_path: Annotated[
        str,
        Declared(
            "Path of the document below the docs folder.",
            filter=Filter("doc_paths", ("--doc-path",), "Search only this page, such as a/b.md."),
        ),
    ]
    module: Annotated[
        str,
        Declared(
            "Module, from the front matter or the path, such as `module-1`. May be empty.",
            filter=Filter("modules", ("--module",), "Search only this module, such as module-1."),
        ),
    ]
    chapter: Annotated[
        str,
        Declared(
            "Chapter, from the front matter or the path, such as `1.1-introduction`. May be empty.",
            filter=Filter(
                "chapters", ("--chapter",), "Search only this chapter, such as 1.1-introduction."
            ),
        ),
    ]
    title: Annotated[str, Declared("Title of the document.")]
    description: Annotated[str, Declared("Description, from the front matter.", "document")]
    section_heading: Annotated[str, Declared("Heading of the chunk's section.")]
    heading_breadcrumb: Annotated[
        tuple[str, ...], Declared("Title of the document, then the headings down to the section.")
    ]
    heading_level: Annotated[int, Declared("Level of the heading; 0 before the first heading.")]
    anchor: Annotated[
        str | None,
        Declared("Id of the heading on the page; null before the first heading with an id."),
    ]
    url: Annotated[str, Declared("Address of the page on the site, with the anchor.")]
    chunk_index: Annotated[int, Declared("Position of the chunk in the document, from 0.")]
    content_type: Annotated[
        str,
        Declared(
            "One of prose, code, table, lab, quiz, assessment and api.",
            filter=Filter(
                "content_types",
                ("--type", "--content-type"),
                "Search only this type: prose, code, table, lab, quiz, assessment or api.",
                tuple(ContentType),
            ),
        ),
    ]
    tags: Annotated[
        tuple[str, ...],
        Declared(
            "Tags of the document, from the front matter.",
            filter=Filter("tags", ("--tag",), "Search only documents with this tag, such as ros2."),
        ),
    ]
    learning_objectives: Annotated[
        tuple[str, ...], Declared("Learning objectives, from the front matter.", "document")
    ]
    sidebar_label: Annotated[str, Declared("Name of the page in the site's sidebar.", "document")]
    sidebar_position: Annotated[
        float | None, Declared("Position of the page in the site's sidebar.", "document")
    ]
    content_hash: Annotated[str, Declared("SHA-256 of `text`.")]
    word_count: Annotated[int, Declared("Number of words in `text`.")]
    token_count: Annotated[int, Declared("Number of cl100k_base tokens in `text`.")]
    start_line: Annotated[int, Declared("First line in the source file, from 1.")]
    end_line: Annotated[int, Declared("Last line in the source file, inclusive.")]
    start_byte: Annotated[int, Declared("First byte in the normalized source.")]
    end_byte: Annotated[int, Declared("Position after the last byte in the normalized source.")]
    ingested_at: Annotated[
        str, Declared("Time when this content was first ingested (ISO 8601, UTC).", "writing")
    ]
    blocks: Annotated[
        tuple[TextBlock, ...],
        Declared("Blocks of `text`: kind, first character, end (exclusive), first and last line."),
    ] = ()
    tabs: Annotated[
        tuple[str, ...], Declared("Labels of the tabs around the chunk, the outermost first.")
    ] = ()
    figures: Annotated[
        tuple[Figure, ...],
        Declared("Images of the chunk: address, alternative text, caption and line."),
    ] = ()
    source: Annotated[
        str | None,
        Declared(
            "Source of the page, such as `docs` or `blog`. Missing if the site has only one.",
            "edition",
            Filter("sources", ("--source",), "Search only this part of the site, such as api."),
        ),
    ] = None
    version: Annotated[
        str | None,
        Declared(
            "Version of the docs, such as `current` or `2.0`. Missing without versions.",
            "edition",
            Filter("versions", ("--version",), "Search this version, such as 2.0, or * for all."),
        ),
    ] = None
    version_label: Annotated[
        str | None, Declared("Name of the version on the site; often missing.", "edition")
    ] = None
    is_latest: Annotated[
        bool, Declared("False for a version that readers do not get by default.", "edition")
    ] = True
    locale: Annotated[
        str | None,
        Declared(
            "Language of the page, such as `fr`. Missing if the site has only one.",
            "edition",
            Filter("locales", ("--locale",), "Search this language, such as fr, or * for all."),
        ),
    ] = None
    is_default_locale: Annotated[
        bool, Declared("False for a language that readers do not get by default.", "edition")
    ] = True


class _HiddenFields(ChunkMetadata):
    """A class that adds to `ChunkMetadata` the payload fields that are stored but not shown.

    Only its annotations are used; no object of it is created.
    """

    text: Annotated[str, Declared("Text of the chunk, as it is shown and cited.")]
    embedding_hash: Annotated[str, Declared("SHA-256 of the text that was embedded.", "writing")]
    common_path: Annotated[
        str | None,
        Declared("Path that the page has in all versions and languages; often missing.", "edition"),
    ] = None
    is_post: Annotated[
        bool, Declared("True for a page of a blog; otherwise missing.", "edition")
    ] = False


@dataclass(frozen=True, slots=True)
class PayloadField:
    """A payload field: name and type of its attribute, and its declared properties.

    Attributes:
        shown: True if the field is part of `ChunkMetadata`.
    """

    name: str
    kind: Kind
    declared: Declared
    shown: bool

    @property
    def may_lack(self) -> bool:
        """True if a payload leaves the field out when its value is that of the default edition."""
        return self.declared.source == "edition"


PAYLOAD_FIELDS: Final = tuple(
    PayloadField(
        name,
        KINDS[hint.__origin__],
        hint.__metadata__[0],
        shown=name in ChunkMetadata.__dataclass_fields__,
    )
    for name, hint in get_type_hints(_HiddenFields, include_extras=True).items()
)
"""All payload fields, in the order of their declarations."""

FILTERS: Final = {
    field.name: field.declared.filter for field in PAYLOAD_FIELDS if field.declared.filter
}
"""The filters of queries, by name of the payload field."""

INDEXED_FIELDS: Final = tuple(
    field.name for field in PAYLOAD_FIELDS if field.declared.filter and not field.may_lack
)
"""Names of the payload fields for which every collection has a keyword index."""

LATE_INDEXES: Final = {
    field.name: field.kind.label == "boolean"
    for field in PAYLOAD_FIELDS
    if field.shown and field.may_lack and (field.declared.filter or field.kind.label == "boolean")
}
"""Fields whose index is made when the first point has them, and if it is one of booleans."""


def build_payload(chunk: Chunk, document: Document, ingested_at: str) -> Payload:
    """Return the payload of a chunk's point, with every field that is not left out.

    Args:
        chunk: The chunk.
        document: The document that contains the chunk.
        ingested_at: Time when the chunk's content was first ingested, ISO 8601 in UTC.
    """
    payload: Payload = {
        "embedding_hash": hash_text(chunk.embedding_text),
        "ingested_at": ingested_at,
    }
    origins = {"chunk": chunk, "document": document, "edition": document.edition}
    for field in PAYLOAD_FIELDS:
        if field.declared.source != "writing":
            value = getattr(origins[field.declared.source], field.name)
            if not (field.may_lack and value == getattr(DEFAULT_EDITION, field.name)):
                payload[field.name] = to_json(value)
    return payload


def read_metadata(payload: Payload) -> ChunkMetadata:
    """Return the part of a point's payload that is shown to users, with each field checked.

    Raises:
        PayloadError: A field is missing or has an invalid value.
    """
    values = {field.name: _read_field(payload, field) for field in PAYLOAD_FIELDS if field.shown}
    return ChunkMetadata(**values)  # type: ignore[arg-type]  # the types were checked


def read_edition(metadata: ChunkMetadata) -> Edition:
    """Return the edition of a chunk's page, with the fields that are shown to users."""
    return Edition(**show_edition(metadata))


def show_edition(edition: Edition | ChunkMetadata) -> dict[str, Any]:
    """Return the fields of an edition that are shown to users, by name."""
    names = [field.name for field in PAYLOAD_FIELDS if field.shown and field.may_lack]
    return {name: getattr(edition, name) for name in names}


def read_text(payload: Payload) -> str:
    """Return the text of the chunk from a payload.

    Raises:
        PayloadError: The text is missing or is not a string.
    """
    return str(_read_field(payload, _TEXT))


def _read_field(payload: Payload, field: PayloadField) -> object:
    value = payload.get(field.name, _MISSING)
    if value is _MISSING and field.may_lack:
        return getattr(DEFAULT_EDITION, field.name)
    if not field.kind.accepts(value) or not field.declared.check(value):
        found = None if value is _MISSING else value
        raise PayloadError(str(payload.get("chunk_id", "?")), field.name, found)
    return field.kind.read(value)


_MISSING: Final = object()
"""The value of a missing field. None would be valid for a field that may be null."""
_TEXT: Final = next(field for field in PAYLOAD_FIELDS if field.name == "text")
