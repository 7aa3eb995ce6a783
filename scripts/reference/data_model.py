"""The pages of the data model, and the JSON Schemas that they describe."""

# ruff: noqa: TC001  # the annotations of the outputs are read at run time

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from rag_pipeline.cli.explaining import QueryRecord
from rag_pipeline.core.models import Chunk, DocFailure, Document
from rag_pipeline.core.payload import FILTERS, INDEXED_FIELDS, LATE_INDEXES, PAYLOAD_FIELDS
from rag_pipeline.evaluation.gates import GateResult
from rag_pipeline.evaluation.records import AnswersReport, EvaluationReport
from rag_pipeline.ingestion.report import IngestionReport
from rag_pipeline.retrieval.models import SearchRecord
from reference.docstrings import NOTE, write_table
from reference.schemas import Schema, build_payload_schema, build_schema

_NOT_PRINTED = frozenset({"start_byte", "content_start_byte", "end_byte", "stage"})
"""Fields of chunks and failures that `rag-pipeline chunks --json` leaves out."""


@dataclass(frozen=True)
class ChunksOutput:
    """The JSON document of `rag-pipeline chunks --json`.

    Attributes:
        documents: The documents in the order of their paths.
        chunks: The chunks of all documents, in order.
        failures: The documents that could not be parsed.
    """

    documents: list[Document]
    chunks: list[Chunk]
    failures: list[DocFailure]


@dataclass(frozen=True)
class EvaluationOutput:
    """The JSON document of `rag-pipeline evaluate --json`.

    Attributes:
        passed: True if every gate passed.
        gates: The verdicts of the gates.
        report: The report, which is also in `report.json`.
        answers: The evaluation of answers, which is also in `answers.json`; null with the option
            `--no-answers`.
    """

    passed: bool
    gates: tuple[GateResult, ...]
    report: EvaluationReport
    answers: AnswersReport | None


_PLURALS = {"string": "strings", "integer": "integers", "number": "numbers"}


def build_schemas() -> dict[str, Schema]:
    """Return every JSON Schema by the name of its file, without `.schema.json`."""
    return {
        "payload": build_payload_schema(),
        "answer": build_schema(QueryRecord, "Answer"),
        "search": build_schema(SearchRecord, "Search result"),
        "chunks": build_schema(ChunksOutput, "Documents and chunks", without=_NOT_PRINTED),
        "ingestion-report": build_schema(IngestionReport, "Ingestion report"),
        "evaluation": build_schema(EvaluationOutput, "Evaluation"),
    }


_PAGES = {
    "answer": ("Answers and search results", ("answer", "search")),
    "chunks": ("Documents and chunks", ("chunks",)),
    "report": ("Reports", ("ingestion-report", "evaluation")),
}
"""The title of each page, and the schemas that it describes."""

_ONLY_OUTLINED = frozenset({"evaluation"})
"""Documents whose inner objects only the JSON Schema describes, because they are many."""

_DETAILS = frozenset({"ChannelScores", "ExplanationRecord", "Signals"})
"""Inner objects that explain a result, which only the JSON Schema describes."""

_STORED = {field.name: field.declared.description for field in PAYLOAD_FIELDS}

_ON_PAYLOAD_PAGE = {"ChunkMetadata": "payload.md", "TextBlock": "payload.md#textblock"}
"""Objects that the page of the payload describes."""

_INTRODUCTIONS = {
    "answer": """\
The JSON of `rag-pipeline query --json` and `rag-pipeline search --json`, and what
[`Answer.to_dict()`](api-answering.md#rag_pipeline.answering.Answer) and
[`RetrievalResult.to_dict()`](api-retrieval.md#rag_pipeline.retrieval.RetrievalResult) return. Only
the command adds `chunks` and `explanation` to an answer.""",
    "chunks": """\
The JSON of `rag-pipeline chunks --json`, which parses and chunks a docs folder without embedding or
storing anything.""",
    "report": """\
The JSON of `rag-pipeline ingest --json` and `rag-pipeline evaluate --json`. An evaluation also
writes its report to `report.json` and its answers, unless `--no-answers` is given, to
`answers.json`.""",
}


def describe_model() -> dict[str, str]:
    """Return the text of each page of the data model by the name of its file, without `.md`."""
    schemas = build_schemas()
    pages = {"payload": _describe_payload(schemas["payload"])}
    for name, (title, parts) in _PAGES.items():
        page = f"{NOTE}# {title}\n\n{_INTRODUCTIONS[name]}\n\n"
        seen: set[str] = set()
        for part in parts:
            schema = schemas[part]
            shown = [
                name
                for name, definition in schema["$defs"].items()
                if part not in _ONLY_OUTLINED and name not in _DETAILS and "enum" not in definition
            ]
            links = {inner: f"#{inner.lower()}" for inner in shown} | _ON_PAYLOAD_PAGE
            links |= {
                inner: f"schemas/{part}.schema.json"
                for inner in schema["$defs"]
                if inner not in links
            }
            page += f"## {schema['title']}\n\n{_link_schema(part)}\n\n"
            page += _describe_object(schema, schema["$defs"], links)
            for inner in shown:
                if inner not in seen and inner not in _ON_PAYLOAD_PAGE:
                    text = _describe_object(schema["$defs"][inner], schema["$defs"], links)
                    page += f"### {inner}\n\n{text}"
                    seen.add(inner)
        pages[name] = page.rstrip() + "\n"
    return pages


def _describe_payload(schema: Schema) -> str:
    rows = [
        (
            f"`{field.name}`" + ("*" if field.name in (*INDEXED_FIELDS, *LATE_INDEXES) else ""),
            field.kind.label,
            field.declared.description,
            field.declared.source,
            ", ".join(f"`{flag}`" for flag in FILTERS[field.name].flags)
            if field.name in FILTERS
            else "",
        )
        for field in PAYLOAD_FIELDS
    ]
    hidden = ", ".join(f"`{field.name}`" for field in PAYLOAD_FIELDS if not field.shown)
    return (
        f"{NOTE}# Payload\n\nThe fields that the vector store keeps with every point. They are "
        "declared in `rag_pipeline/core/payload.py`. A `*` means that the store has a keyword "
        "index of the field. *Source* says where the value comes from: the chunk, its document, "
        "its edition (source, version and language), or the moment of writing. *Filter* names the "
        f"options of `search` and `query`. Results show all fields in "
        f"`metadata`, except {hidden}.\n\n"
        f"{_link_schema('payload')}\n\n"
        f"{write_table(('Field', 'Type', 'Meaning', 'Source', 'Filter'), rows)}## TextBlock\n\n"
        f"{_describe_object(schema['$defs']['TextBlock'], schema['$defs'], {})}"
    ).rstrip() + "\n"


def _link_schema(name: str) -> str:
    return f"JSON Schema: [{name}.schema.json](schemas/{name}.schema.json)"


def _describe_object(schema: Schema, definitions: Schema, links: dict[str, str]) -> str:
    properties = schema["properties"]
    stored = [
        name
        for name, field in properties.items()
        if links and _STORED.get(name) == field.get("description")
    ]
    stored = stored if len(stored) > 3 else []  # fewer are easier to read in the table
    rows = [
        (f"`{name}`", _name_type(field, definitions, links), _say_null(field["description"]))
        for name, field in properties.items()
        if name not in stored
    ]
    names = ", ".join(f"`{name}`" for name in stored)
    also = f"As in the [payload](payload.md): {names}.\n\n" if stored else ""
    return f"{schema['description']}\n\n{also}{write_table(('Field', 'Type', 'Meaning'), rows)}"


def _say_null(text: str) -> str:
    """Return a description with JSON's word for Python's None."""
    return re.sub(r"\bNone\b", "null", text)


def _name_type(  # noqa: PLR0911  # one return per kind of type
    schema: Any,  # noqa: ANN401  # JSON
    definitions: Schema,
    links: dict[str, str],
) -> str:
    if schema is True:
        return "any value"
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if "enum" in definitions[name]:
            return _name_type(definitions[name], definitions, links)
        return f"[{name}]({links[name]})"
    if "anyOf" in schema:
        return " or ".join(_name_type(part, definitions, links) for part in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema["type"] == "array":
        inner = schema["items"]
        return f"list of {_PLURALS.get(inner.get('type')) or _name_type(inner, definitions, links)}"
    if schema["type"] == "object":
        return f"object of {_name_type(schema['additionalProperties'], definitions, links)}"
    return str(schema["type"])
