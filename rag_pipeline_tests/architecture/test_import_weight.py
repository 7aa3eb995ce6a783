"""What a backend pays for importing the library: a fresh interpreter each time."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

HEAVY = {
    "dagster", "openai", "cohere", "qdrant_client", "qdrant_edge", "onnxruntime", "fastembed",
    "tokenizers", "numpy", "pydantic", "structlog",
}  # fmt: skip
CLIENTS = HEAVY - {"numpy", "pydantic", "structlog"}
LIMIT_S = 0.3

_MEASURE = """
import json, sys, time
start = time.{clock}()
{statement}
spent = time.{clock}() - start
print(json.dumps([spent, sorted({{name.split(".")[0] for name in sys.modules}})]))
"""


def measure(statement: str) -> tuple[float, set[str]]:
    """Seconds of processor time and loaded packages of a statement in a new interpreter.

    Processor time, because other work on the machine must not fail a test.
    """
    code = _MEASURE.format(statement=statement, clock="process_time")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    spent, loaded = json.loads(done.stdout)
    return spent, set(loaded)


def test_importing_the_library_loads_no_client_and_takes_no_time() -> None:
    spent, loaded = min(measure("import rag_pipeline.retrieval") for _ in range(3))
    assert not loaded & HEAVY
    assert spent < LIMIT_S


def test_the_names_of_a_query_load_no_client_either() -> None:
    statement = (
        "from rag_pipeline.retrieval import Mode, Query, QueryFilters, open_retriever, QueryError"
    )
    spent, loaded = min(measure(statement) for _ in range(3))
    assert not loaded & HEAVY
    assert spent < LIMIT_S


@pytest.mark.parametrize("name", ["Retriever", "RetrievalService"])
def test_classes_are_named_without_loading_a_client(name: str) -> None:
    _, loaded = measure(f"from rag_pipeline.retrieval import {name}")
    assert not loaded & CLIENTS


def test_selected_text_mode_loads_no_client() -> None:
    _, loaded = measure("import rag_pipeline.retrieval.selected_text")
    assert not loaded & CLIENTS


def test_embedding_a_question_loads_two_libraries_and_no_hub_client() -> None:
    _, loaded = measure(
        "from rag_pipeline.adapters.embedders.local import LocalEmbedder as E; E().embed_query('x')"
    )
    assert {"onnxruntime", "tokenizers"} <= loaded
    assert not loaded & {"fastembed", "huggingface_hub", "requests", "httpx", "PIL", "loguru"}


def test_the_command_starts_without_what_a_question_needs() -> None:
    _, loaded = measure("import rag_pipeline.cli.app")
    assert not loaded & (HEAVY - {"pydantic"} | {"rich", "dagster", "scipy", "github_slugger"})


def test_answers_load_no_client_and_no_markdown_parser() -> None:
    spent, loaded = min(measure("from rag_pipeline.answering import answer") for _ in range(3))
    assert not loaded & (HEAVY | {"markdown_it"})
    assert spent < LIMIT_S
