"""The generated reference is current, complete, and true for real output."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from rag_pipeline.core import errors
from rag_pipeline.core.settings import load_settings
from rag_pipeline.retrieval import open_retriever
from rag_pipeline_tests.architecture.guides import DOCS, GuideBook

if TYPE_CHECKING:
    from pathlib import Path

ROOT = DOCS.parent
SCHEMAS = sorted((DOCS / "reference" / "schemas").glob("*.schema.json"))


def validate(name: str, record: object) -> None:
    """Check a JSON value against a committed schema."""
    path = DOCS / "reference" / "schemas" / f"{name}.schema.json"
    Draft202012Validator(json.loads(path.read_bytes())).validate(record)


def run_json(book: GuideBook, *command: str) -> Any:  # noqa: ANN401  # whatever the command prints
    done = book.run("rag-pipeline", *command, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_generated_files_are_up_to_date() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "write_reference.py"), "--check"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"run `python scripts/write_reference.py`: {done.stderr}"


@pytest.mark.parametrize("path", SCHEMAS, ids=lambda path: path.name)
def test_each_schema_is_valid(path: Path) -> None:
    Draft202012Validator.check_schema(json.loads(path.read_bytes()))


@pytest.mark.parametrize("package", ["retrieval", "answering"])
def test_each_public_name_is_on_its_api_page(package: str) -> None:
    page = (DOCS / "reference" / f"api-{package}.md").read_text(encoding="utf-8")
    module = import_module(f"rag_pipeline.{package}")
    assert set(re.findall(rf"^::: rag_pipeline\.{package}\.(\w+)$", page, re.MULTILINE)) == set(
        module.__all__
    )


def test_each_error_code_has_one_row_with_its_cause_and_remedy() -> None:
    page = (DOCS / "reference" / "errors.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([A-Z_]+)` \| ([^|]+) \| ([^|]+) \|", page, re.MULTILINE)
    codes = {kind.code for kind in vars(errors).values() if hasattr(kind, "code")}
    assert sorted(code for code, _, _ in rows) == sorted(
        codes | {"INTERRUPTED", "SYSTEM_ERROR", "USAGE"}
    )
    assert all(cause.strip() and remedy.strip() for _, cause, remedy in rows)


def test_real_reports_match_their_schemas(guide_book: GuideBook) -> None:
    validate("ingestion-report", json.loads((guide_book.folder / "ingest.json").read_bytes()))
    validate("chunks", run_json(guide_book, "chunks"))


def test_a_real_failure_matches_its_schemas(guide_book: GuideBook, tmp_path: Path) -> None:
    book = GuideBook(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "broken.md").write_text("---\ntitle: [\n---\n", encoding="utf-8")
    (tmp_path / ".env").write_bytes((guide_book.folder / ".env").read_bytes())
    record = json.loads(book.run("rag-pipeline", "ingest", "--json").stdout)
    assert record["docs_failed"] == 1
    validate("ingestion-report", record)
    validate("chunks", json.loads(book.run("rag-pipeline", "chunks", "--json").stdout))


def test_real_answers_match_their_schemas(guide_book: GuideBook) -> None:
    kinds = []
    for question in ("How often do I feed the starter?", "Who won the 1998 world cup?"):
        record = run_json(guide_book, "query", question)
        validate("answer", record)
        kinds.append(record["kind"])
    assert kinds == ["extracted", "refused"]
    validate("search", run_json(guide_book, "search", "crisp crust"))


def test_a_real_payload_matches_its_schema(guide_book: GuideBook) -> None:
    folder = guide_book.folder
    settings = load_settings(
        docs_dir=str(folder / "docs"),
        data_dir=str(folder / "data"),
        qdrant_url="",
        embedding_provider="local",
    )
    with open_retriever(settings) as retriever:
        points = retriever.read(lambda store: store.scroll())
    assert points
    for point in points:
        validate("payload", point.payload)


def test_a_real_evaluation_matches_its_schema(guide_book: GuideBook) -> None:
    guide_book.write_files("how-to/evaluate.md")
    validate(
        "evaluation", run_json(guide_book, "evaluate", "--answers", "--test-set", "questions.json")
    )
