"""Tests that plain literals are read from a module, and that everything else is named."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.ingestion.site.literals import (
    Computed,
    FunctionLiteral,
    Literal,
    ModuleSyntaxError,
    ObjectLiteral,
    read_exported_value,
)

if TYPE_CHECKING:
    from pathlib import Path


def read(root: Path, source: str) -> Literal:
    """Return what a module with this source exports."""
    path = root / "config.ts"
    path.write_text(source, encoding="utf-8")
    return read_exported_value(path)


LITERAL = {
    "list": ("export default ['a', 1, true, null, undefined];", ["a", 1, True, None, None]),
    "escapes": (r"export default 'a\n\x41\u{42}';", "a\nAB"),
    "constant": ("const a = 'x'; export default [a, a];", ["x", "x"]),
    "exported constant": ("export const a = 'x'; export default a;", "x"),
    "template": ("const a = 'x'; export default `/${a}/`;", "/x/"),
    "types": ("export default (['a'] as const) satisfies string[];", ["a"]),
    "resolved name": ("export default require.resolve('@docusaurus/x');", "@docusaurus/x"),
    "resolved name with options": ("export default require.resolve('@x/y', {a: ask()});", "@x/y"),
    "joined path": ("export default path.join(__dirname, '..', 'a', './b.js');", "../a/b.js"),
    "resolved path": ("const a = 'x'; export default path.resolve(__dirname, a);", "x"),
    "function": ("export default async function make() { const a = 'x'; return [a]; }", ["x"]),
    "named function": ("function make() { return ['x']; } module.exports = make;", ["x"]),
    "constant function": ("const make = () => ['x']; export default make;", ["x"]),
    "short function": ("export default () => ['x'];", ["x"]),
    "method of a text": ("const a = 'x'; a.trim(); export default a;", "x"),
    "item of a list": ("const a = ['x', 'y']; export default a[1];", "y"),
    "list without missing items": ("export default ['x', false, null].filter(Boolean);", ["x"]),
    "list that is read": ("const a = ['x']; const b = a.slice(1); export default a;", ["x"]),
}


@pytest.mark.parametrize(("source", "expected"), LITERAL.values(), ids=LITERAL)
def test_a_plain_literal_is_read(tmp_path: Path, source: str, expected: Literal) -> None:
    assert read(tmp_path, source) == expected


def test_objects_are_read_with_their_spreads_and_methods(tmp_path: Path) -> None:
    source = "const a = {x: 1}; const b = 'z';"
    source += "export default {'y': 2, ...a, x: 3, f() {}, [b]: 4, given: ask(a), g};"
    source += "function g() {}"
    found = read(tmp_path, source)
    assert isinstance(found, ObjectLiteral)
    assert found.get("x") == 3
    assert found.get("z") == 4
    assert isinstance(found.get("f"), FunctionLiteral)
    assert isinstance(found.get("g"), FunctionLiteral)
    assert found.get("missing") is None


IMPORTED = {
    "required": "module.exports = require('./parts');",
    "required with a suffix": "module.exports = require('./parts.js');",
    "default of a module": "module.exports = require('./parts').default;",
    "imported": "import parts from './parts'; export default parts;",
    "spread": "export default [...require('./parts')];",
    "JSON": "export default require('./parts.json');",
    "property": "const all = {parts: require('./parts')}; export default all.parts;",
}


@pytest.mark.parametrize("source", IMPORTED.values(), ids=IMPORTED)
def test_a_value_of_a_module_beside_it_is_read(tmp_path: Path, source: str) -> None:
    (tmp_path / "parts.ts").write_text(
        "const all = {wheels: ['rim', 'hub']};\nexport default all.wheels;"
    )
    (tmp_path / "parts.json").write_text('["rim", "hub"]')
    assert read(tmp_path, source) == ["rim", "hub"]


def test_a_path_of_an_imported_module_is_relative_to_the_module_that_imports_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "parts").mkdir()
    source = "export default path.join(__dirname, '../docs/a');"
    (tmp_path / "parts" / "folder.js").write_text(source)
    assert read(tmp_path, "export default require('./parts/folder');") == "docs/a"


def test_a_value_that_an_imported_module_computes_names_its_file(tmp_path: Path) -> None:
    (tmp_path / "parts.ts").write_text("const a = 1;\nexport default ask();")
    found = read(tmp_path, "export default [require('./parts'), ask()];")
    assert isinstance(found, list)
    assert [one.place for one in found if isinstance(one, Computed)] == [
        "line 2 of parts.ts",
        "line 1",
    ]


UNREADABLE = ("export default [", "export default require('./config');", "const a = 1;", None)


@pytest.mark.parametrize("other", UNREADABLE)
def test_a_module_that_cannot_be_read_is_computed(tmp_path: Path, other: str | None) -> None:
    if other is not None:
        (tmp_path / "other.ts").write_text(other)
    found = read(tmp_path, "export default ['rim', require('./other')];")
    assert isinstance(found, list)
    assert found[0] == "rim"
    assert isinstance(found[1], Computed)


def test_an_import_from_outside_the_root_is_computed(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text('["rim"]')
    site = tmp_path / "site"
    (site / ".git").mkdir(parents=True)
    assert isinstance(read(site, "export default require('../secret.json');"), Computed)


COMPUTED = {
    "call": "export default ask();",
    "import": "import x from './helper'; export default x;",
    "require": "const x = require('./helper'); export default x;",
    "file of the machine": "export default require('/proc/self/environ');",
    "environment": "export default process.env.SECRET;",
    "assigned again": "let a = 'x'; a = ask(); export default a;",
    "changed list": "const a = [1]; a.push(2); export default a;",
    "given to a function": "const a = [1]; change(a); export default a;",
    "awaited": "const a = [1]; await change(a); export default a;",
    "given to a method": "const a = {b: 1}; const c = Object.assign(a, {}); export default a;",
    "item that is missing": "const a = [1]; export default a[1];",
    "filtered list": "export default [1].filter(choose);",
    "item by a name": "const a = [1]; export default a[b];",
    "condition": "export default ask() ? 1 : 2;",
    "function with two results": "export default () => { if (ask()) return 1; return 2; };",
    "result of a call": "export default () => { return ask(); };",
    "sum": "export default 'a' + 'b';",
    "path of a call": "export default path.join(__dirname, ask());",
    "path from the root": "export default path.resolve(__dirname, '/etc');",
    "path of the working folder": "export default path.resolve('a');",
    "path of nothing": "export default path.resolve();",
    "large template": "const a = '" + "x" * 1000 + "'; const b = `" + "${a}" * 1100 + "`;"
    "export default b;",
}


@pytest.mark.parametrize("source", COMPUTED.values(), ids=COMPUTED)
def test_a_value_that_only_running_would_show_is_computed(tmp_path: Path, source: str) -> None:
    found = read(tmp_path, source)
    assert isinstance(found, Computed)
    assert found.fallback is None
    assert found.place == "line 1"


@pytest.mark.parametrize("source", ["process.env.A || 'x'", "ask() ?? ('x' as string)"])
def test_a_literal_for_other_cases_is_a_guess(tmp_path: Path, source: str) -> None:
    found = read(tmp_path, f"export default {source};")
    assert isinstance(found, Computed)
    assert found.fallback == "x"


def test_an_unknown_spread_hides_the_properties_before_it(tmp_path: Path) -> None:
    found = read(tmp_path, "export default {a: 1, ...more(), b: 2};")
    assert isinstance(found, ObjectLiteral)
    assert isinstance(found.get("a"), Computed)
    assert found.get("b") == 2


def _double(number: int) -> str:
    return "".join(f"const a{n + 1} = [a{n}, a{n}];\n" for n in range(number))


HOSTILE = {
    "chain of templates": "const a0 = 'x';\n"
    + "".join(f"const a{n + 1} = `${{a{n}}}${{a{n}}}`;\n" for n in range(40))
    + "export default a40;",
    "chain of lists": f"const a0 = ['x'];\n{_double(40)}export default a40;",
    "deep brackets": "export default " + "[" * 5_000 + "]" * 5_000 + ";",
    "deep parentheses": "export default " + "(" * 5_000 + "1" + ")" * 5_000 + ";",
    "deep objects": "export default " + "{a:" * 5_000 + "1" + "}" * 5_000 + ";",
    "itself": "const a = [a]; export default a;",
    "each other": "const a = [b]; const b = [a]; export default a;",
    "long": "export default [" + "1," * 600_000 + "];",
    "wide": "export default [" + "1," * 60_000 + "];",
}


@pytest.mark.parametrize("source", HOSTILE.values(), ids=HOSTILE)
def test_a_module_that_is_built_to_take_long_ends_with_a_clause(
    tmp_path: Path, source: str
) -> None:
    started = time.process_time()
    with pytest.raises(ModuleSyntaxError):
        read(tmp_path, source)
    assert time.process_time() - started < 10  # it took minutes, or forever
