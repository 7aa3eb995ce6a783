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

_LIST = """
import json, sys
{statement}
print(json.dumps(sorted({{name.split(".")[0] for name in sys.modules}})))
"""


def load(statement: str) -> set[str]:
    """Return the names of the packages that a statement loads in a new interpreter."""
    code = _LIST.format(statement=statement)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_importing_the_library_loads_no_client() -> None:
    loaded = load("import rag_pipeline.retrieval")
    assert not loaded & HEAVY


def test_the_names_of_a_query_load_no_client_either() -> None:
    statement = (
        "from rag_pipeline.retrieval import Mode, Query, QueryFilters, open_retriever, QueryError"
    )
    loaded = load(statement)
    assert not loaded & HEAVY


@pytest.mark.parametrize("name", ["Retriever", "RetrievalService"])
def test_classes_are_named_without_loading_a_client(name: str) -> None:
    loaded = load(f"from rag_pipeline.retrieval import {name}")
    assert not loaded & CLIENTS


def test_selected_text_mode_loads_no_client() -> None:
    loaded = load("import rag_pipeline.retrieval.selected_text")
    assert not loaded & CLIENTS


def test_embedding_a_question_loads_two_libraries_and_no_hub_client() -> None:
    loaded = load(
        "from rag_pipeline.adapters.embedders.local import LocalEmbedder as E; E().embed_query('x')"
    )
    assert {"onnxruntime", "tokenizers"} <= loaded
    assert not loaded & {"fastembed", "huggingface_hub", "requests", "httpx", "PIL", "loguru"}


def test_the_command_starts_without_what_a_question_needs() -> None:
    loaded = load("import rag_pipeline.cli.app")
    assert not loaded & (HEAVY - {"pydantic"} | {"rich", "dagster", "scipy", "github_slugger"})


def test_answers_load_no_client_and_no_markdown_parser() -> None:
    loaded = load("from rag_pipeline.answering import answer")
    assert not loaded & (HEAVY | {"markdown_it"})
