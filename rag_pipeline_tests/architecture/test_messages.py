"""Messages name no Python class. The command's tests check this for each message that they get."""

from __future__ import annotations

import ast

import pytest

from rag_pipeline.core import errors
from rag_pipeline.core.errors import describe_kind
from rag_pipeline_tests.class_names import PACKAGE, find_class_names, parse

# These write class names into logs, metrics and the `error` field of a failed document.
RECORDS = {
    "core/errors.py",
    "ingestion/stages.py",
    "retrieval/logs.py",
    "serving/api/problems.py",
    "serving/metrics.py",
}


def names_a_type(node: ast.AST) -> bool:
    """Return True for `type(value).__name__` and `value.__class__.__name__`."""
    if not isinstance(node, ast.Attribute) or node.attr not in {"__name__", "__qualname__"}:
        return False
    if isinstance(node.value, ast.Attribute):
        return node.value.attr == "__class__"
    is_call = isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name)
    return is_call and node.value.func.id == "type"


def test_class_names_are_read_only_for_records() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(parse(path))
        if names_a_type(node) and not is_compared(path.read_text("utf-8"), node)
    }
    assert found == RECORDS


def is_compared(source: str, node: ast.AST) -> bool:
    """Return True if a class name is only compared with a text, as that of a private class."""
    line = source.splitlines()[node.lineno - 1]  # type: ignore[attr-defined]  # expressions have it
    return '__name__ != "' in line


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ConnectError", "connect error"),
        ("JSONDecodeError", "JSON decode error"),
        ("HTTP2Error", "HTTP2 error"),
        ("timeout", "timeout"),
    ],
)
def test_the_kind_of_an_error_is_described_in_words(name: str, words: str) -> None:
    assert describe_kind(type(name, (Exception,), {})()) == words


def test_class_names_are_found_in_a_message() -> None:
    assert find_class_names("failed (ConnectError) in OpenAIEmbedder") == [
        "ConnectError",
        "OpenAIEmbedder",
    ]
    assert find_class_names("Qdrant at 127.0.0.1 cannot be reached (connect error)") == []


def test_every_error_is_imported_from_one_module() -> None:
    def list_all(kind: type) -> set[type]:
        return {kind}.union(*map(list_all, kind.__subclasses__()))

    of_package = {
        kind for kind in list_all(errors.RagPipelineError) if kind.__module__.startswith("rag_")
    }
    assert {kind.__module__ for kind in of_package} == {errors.__name__}
