"""Tests that the value that a module exports is read without running the module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_pipeline.ingestion.site.literals.reading import read_exported_value
from rag_pipeline.ingestion.site.literals.values import Computed, Literal, ObjectLiteral

if TYPE_CHECKING:
    from pathlib import Path

HELPER = """
const inner = {path: '../docs'};
export const names = ['a', 'b'], label = `The ${names[0]}`;
export {inner as options};
export function find() { return names[1]; }
export default {base: '/x/'};
"""
COMMON = "const data = require('./data.json'); module.exports = {data, list: data.list.slice(1)};"


def read(root: Path, source: str) -> Literal:
    """Return what a module exports that lies beside two others and a JSON file."""
    files = {"helper.mjs": HELPER, "common/index.js": COMMON, "loop.js": "module.exports = 1;"}
    for name, text in files.items() | {("common/data.json", '{"list": [1, 2, null]}')}:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    path = root / "config.ts"
    path.write_text(source, encoding="utf-8")
    return read_exported_value(path)


LITERAL = {
    "default import": ("import x from './helper'; export default x.base;", "/x/"),
    "named import": ("import {label as l} from './helper.mjs'; export default l;", "The a"),
    "renamed export": ("import {options} from './helper'; export default options.path;", "../docs"),
    "namespace": ("import * as h from './helper'; export default h.names;", ["a", "b"]),
    "imported function": ("import {find} from './helper'; export default find;", None),
    "require": ("module.exports = require('./common').list;", [2, None]),
    "destructured": ("const {data: {}, list} = require('./common'); export default list[0];", 2),
    "destructured by name": (
        "const {list: rest} = require('./common'); export default rest;",
        [2, None],
    ),
    "JSON": ("import d from './common/data.json'; export default d.list[0];", 1),
    "spread and concat": ("const a = [1]; export default [...a, 2].concat([3], 4);", [1, 2, 3, 4]),
    "filter": ("export default ['a', false, null].filter(Boolean);", ["a"]),
    "reading methods change nothing": (
        "const v = ['a']; v.map(f); Object.entries(v); export default v[0];",
        "a",
    ),
    "let": ("let a = 'x'; export default a;", "x"),
    "key": ("const k = 'a'; export default {[k]: 1}['a'];", 1),
    "build mode": ("export default process.env.NODE_ENV === 'production' ? 1 : 2;", 1),
    "sum": ("const a = 'x'; export default a + `y`;", "xy"),
    "function": ("export default async () => { const a = 1; return a; };", 1),
    "called function": ("const f = () => 'x'; export default f();", "x"),
    "branch": ("function f() { if (!'') { return 1; } return 2; } export default f();", 1),
    "else": ("function f() { if ('') return 1; else { return 2; } } export default f();", 2),
}


@pytest.mark.parametrize(("source", "expected"), LITERAL.values(), ids=LITERAL)
def test_a_value_that_the_source_decides_is_read(
    tmp_path: Path, source: str, expected: Literal
) -> None:
    found = read(tmp_path, source)
    if expected is None:
        assert isinstance(found, Computed)
        assert not found.has_fallback
    else:
        assert found == expected


GUESSES = {
    "or": ("process.env.A || 'x'", "x"),
    "unknown or": ("ask() || 'x'", "x"),
    "environment in brackets": ("process.env['A'] ?? 'x'", "x"),
    "not": ("!!process.env.A", False),
    "and": ("!!process.env.A && process.env.B === 'b'", False),
    "condition": ("process.env.A ? 'a' : 'x'", "x"),
    "undefined": ("process.env.A", None),
    "template": ("`/${process.env.A || 'x'}/`", "/x/"),
    "function with a branch": ("(() => { if (process.env.A) return 1; return 2; })()", 2),
    "spread of nothing": ("({...(process.env.A && {a: 1}), b: 'x'}).b", "x"),
}


@pytest.mark.parametrize(("source", "expected"), GUESSES.values(), ids=GUESSES)
def test_a_value_that_depends_on_the_environment_is_a_guess(
    tmp_path: Path, source: str, expected: Literal
) -> None:
    found = read(tmp_path, f"export default {source};")
    if isinstance(found, Computed):
        assert found.has_fallback
        assert found.fallback == expected
    else:  # the part that depends on the environment has no influence
        assert found == expected


COMPUTED = {
    "call": "export default ask();",
    "package": "import x from 'package'; export default x;",
    "missing file": "import x from './missing'; export default x.y;",
    "name that is not exported": "import {x} from './helper'; export default x;",
    "itself": "import x from './config'; export default x;",
    "recursion": "const f = () => f(); export default f();",
    "argument": "const f = (a) => a; export default f(1);",
    "assigned again": "let a = 'x'; a = ask(); export default a;",
    "changed list": "const a = [1]; a.push(2); export default a;",
    "unknown condition": "function f() { if (ask()) return 1; return 2; } export default f();",
    "loop": "function f() { for (const a of [1]) { return a; } } export default f();",
}


@pytest.mark.parametrize("source", COMPUTED.values(), ids=COMPUTED)
def test_a_value_that_only_running_would_show_is_computed(tmp_path: Path, source: str) -> None:
    found = read(tmp_path, source)
    assert isinstance(found, Computed)
    assert not found.has_fallback


def test_the_place_of_a_computed_value_names_the_imported_file(tmp_path: Path) -> None:
    (tmp_path / "other.js").write_text("\nexport const a = {b: ask()};", encoding="utf-8")
    found = read(tmp_path, "import {a} from './other'; export default {...a};")
    assert isinstance(found, ObjectLiteral)
    value = found.get("b")
    assert isinstance(value, Computed)
    assert value.problem == "is computed in line 2 of other.js (`ask()`)"
