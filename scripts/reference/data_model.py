"""The pages of the data model, and the JSON Schemas that they describe."""

# ruff: noqa: TC001  # the annotations of the outputs are read at run time

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rag_pipeline.cli.records import QueryRecord
from rag_pipeline.core.models import Chunk, DocFailure, Document
from rag_pipeline.core.payload import FILTERS, INDEXED_FIELDS, LATE_INDEXES, PAYLOAD_FIELDS
from rag_pipeline.core.protocols.state import LedgerEntry, LedgerFailure
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
        "ledger-entry": build_schema(LedgerEntry, "Ledger entry"),
        "ledger-failure": build_schema(LedgerFailure, "Failure in the ledger"),
    }


_PAGES = {
    "answer": ("Answers and search results", ("answer", "search")),
    "chunks": ("Documents and chunks", ("chunks",)),
    "report": ("Reports", ("ingestion-report", "evaluation")),
    "ledger": ("Ledger", ("ledger-entry", "ledger-failure")),
}
"""The title of each page, and the schemas that it describes."""

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
    "ledger": """\
The ledger records what is indexed. It is a folder with one JSON file per document: `indexed/*.json`
contains ledger entries, `failed/*.json` contains the failures of documents that could not be
indexed. With `LEDGER_URL`, each entry and each failure is a row in Postgres instead.

Each write of an entry compares and swaps: it succeeds only if the ledger still has the version of
the entry that the writer has read. Otherwise another process has changed the document meanwhile.
The writer then gets the error `LEDGER_CONFLICT` and changes nothing.

The ledger is internal: the format may change with a release.""",
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
            page += f"## {schema['title']}\n\n{_link_schema(part)}\n\n"
            page += _describe_object(schema)
            for inner, definition in schema["$defs"].items():
                if inner not in seen:
                    page += f"### {inner}\n\n{_describe_object(definition)}"
                    seen.add(inner)
        pages[name] = page.rstrip() + "\n"
    return pages


def _describe_payload(schema: Schema) -> str:
    rows = []
    for field in PAYLOAD_FIELDS:
        flags = FILTERS[field.name].flags if field.name in FILTERS else ()
        origin = {"writing": "the write"}.get(field.declared.source, f"the {field.declared.source}")
        cells = (
            f"`{field.name}`",
            field.kind.label,
            field.declared.description,
            origin,
            "yes" if field.shown else "no",
            "yes" if field.name in (*INDEXED_FIELDS, *LATE_INDEXES) else "no",
            ", ".join(f"`{flag}`" for flag in flags),
        )
        rows.append(cells)
    head = ("Field", "Type", "Meaning", "Comes from", "Shown", "Indexed", "Filter")
    return (
        f"{NOTE}# Payload\n\nThe fields that the vector store keeps with every point. They are "
        "declared in `rag_pipeline/core/payload.py`.\n\n"
        "- Comes from: the chunk, its document, or the time at which the point is written.\n"
        "- Shown: the field is part of `metadata` in results, in `ScoredChunk` and in the JSON of "
        "`rag-pipeline search` and `rag-pipeline query`.\n"
        "- Indexed: the store has a keyword index of the field.\n"
        "- Filter: the options of `rag-pipeline search` and `rag-pipeline query` for the field.\n\n"
        f"{_link_schema('payload')}\n\n{write_table(head, rows)}## TextBlock\n\n"
        f"{_describe_object(schema['$defs']['TextBlock'])}## TextBlockKind\n\n"
        f"{_describe_object(schema['$defs']['TextBlockKind'])}"
    ).rstrip() + "\n"


def _link_schema(name: str) -> str:
    return f"JSON Schema: [{name}.schema.json](schemas/{name}.schema.json)"


def _describe_object(schema: Schema) -> str:
    text = f"{schema['description']}\n\n"
    if "enum" in schema:
        return text + "".join(f"- `{value}`\n" for value in schema["enum"]) + "\n"
    rows = [
        (f"`{name}`", _name_type(field), field.get("description", ""))
        for name, field in schema["properties"].items()
    ]
    return text + write_table(("Field", "Type", "Meaning"), rows)


def _name_type(schema: Any) -> str:  # noqa: ANN401  # JSON
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_name_type(part) for part in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if schema["type"] == "array":
        return f"list of {_PLURALS.get(schema['items'].get('type'), _name_type(schema['items']))}"
    if schema["type"] == "object":
        return f"object of {_name_type(schema['additionalProperties'])}"
    return str(schema["type"])
