"""The names of Python classes, which no message for a user may contain."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import rag_pipeline

PACKAGE = Path(rag_pipeline.__file__).parent
_ERRORS = r"[A-Z]\w*(?:Error|Exception|Warning)|NoneType|TimeoutExpired"


@cache
def parse(path: Path) -> ast.Module:
    """Return the syntax tree of a module, which a test process parses only once."""
    return ast.parse(path.read_text("utf-8"))


def list_classes() -> set[str]:
    """Return the names of the package's classes that no English word or product name equals."""
    return {
        node.name
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(parse(path))
        if isinstance(node, ast.ClassDef) and re.search(r"[a-z][A-Z]", node.name)
    }


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{_ERRORS}|{'|'.join(sorted(list_classes()))})\b")


def find_class_names(message: str) -> list[str]:
    """Return the class names that a message contains."""
    return _pattern().findall(message)
