"""Tests that MDX tags, expressions and statements end at the right place, in linear time."""

from __future__ import annotations

import pytest

from rag_pipeline.ingestion.markdown.page import read_content
from rag_pipeline.ingestion.markdown.scope import Scope
from rag_pipeline.ingestion.markdown.tags import Scanner, is_comment_expression, read_literal
from rag_pipeline_tests.growth import assert_linear


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("<b>x", "<b>"),
        ("</Tabs.Item >x", "</Tabs.Item >"),
        ("<>x", "<>"),
        ("</>x", "</>"),
        ("<a href='x>y'>z", "<a href='x>y'>"),
        ('<A b={x => {"}"}} c="\n"/>z', '<A b={x => {"}"}} c="\n"/>'),
        ("<A b={`}`}>", "<A b={`}`}>"),
        ("<A b={<i>What's this?</i>}>it's", "<A b={<i>What's this?</i>}>"),
        ("<5ms>", None),
        ("< b>", None),
        ("<a <b>", None),
        ("<a b='x>", None),
        ("<a b={x>", None),
        ("<a b", None),
        ("<https://x.y>", None),
    ],
)
def test_a_tag_ends_after_its_own_bracket(text: str, tag: str | None) -> None:
    end = Scanner(text, mdx=True).find_tag_end(0, len(text))
    assert (None if end is None else text[:end]) == tag


def test_braces_have_no_meaning_in_html() -> None:
    text = "<a b={x>y"
    assert Scanner(text, mdx=False).find_tag_end(0, len(text)) == len("<a b={x>")


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("{a}b}", "{a}"),
        ("{a {b} c}d", "{a {b} c}"),
        ("{'}'}x", "{'}'}"),
        ("{'\\'}'}x", "{'\\'}'}"),
        ("{/* } ' */}x", "{/* } ' */}"),
        ("{// }\n}x", "{// }\n}"),
        ("{a", None),
        ("{a && <b>Don't</b>} it's}", "{a && <b>Don't</b>}"),
        ("{a && <b>'tis</b>}\n'x}", "{a && <b>'tis</b>}"),
        ("{a && <b>http://x.y</b>}", "{a && <b>http://x.y</b>}"),
        ("{a.replace(/[}]\\//, '')}x}", "{a.replace(/[}]\\//, '')}"),
        ("{a / 2} / }", "{a / 2}"),
        ("{/* a}", None),
    ],
)
def test_an_expression_ends_at_its_own_brace(text: str, expression: str | None) -> None:
    end = Scanner(text, mdx=True).find_brace_end(0, len(text))
    assert (None if end is None else text[:end]) == expression


@pytest.mark.no_cover  # tracing would add to the measured time
@pytest.mark.slow
def test_unclosed_tags_and_braces_take_linear_time() -> None:
    def scan(count: int) -> None:
        text = "<a b={ {" * count
        scanner = Scanner(text, mdx=True)
        for at in range(0, len(text), 8):
            assert scanner.find_tag_end(at, len(text)) is None
            assert scanner.find_brace_end(at + 7, len(text)) is None

    assert_linear(scan, 3_000, least=3_000)  # fewer do not use up the limit


@pytest.mark.parametrize(
    ("text", "is_esm"),
    [
        ("import X from 'x';", True),
        ("import X, {Y} from 'x';", True),
        ("import X\nfrom 'x';", True),
        ("import\n  X from 'x';", True),
        ("import {", True),
        ("import * as X from 'x'", True),
        ("import 'x.css';", True),
        ("export const a = 1;", True),
        ("export default function X() {", True),
        ("export {x};", True),
        ("import the data from the robot", False),
        ("import data", False),
        ("import data\ninto the robot", False),
        ("export the model", False),
        ("imports are listed below", False),
        ("exporting", False),
    ],
)
def test_an_import_is_distinguished_from_prose(*, text: str, is_esm: bool) -> None:
    assert (read_content(text, 0, {}, mdx=True).blocks[0].kind == "esm") is is_esm


@pytest.mark.parametrize(
    "statement",
    [
        "import 'x",
        "import {\n  A,\n\n  B,\n} from './x';",
        "export const a = {b: [1]};",
        "export const a = {\n\n};",
        "export const a = `x\n\n# y`;",
        "export const a = 1; /* x\n\n*/",
        "export const a = 1; // it's (",
        "export const a = '{';",
        "export const a = () =>\n  <>\n    <B />\n\n    <C d='e'>f</C>\n  </>;",
        "export const a = () => {\n  const b = <p>Don't</p>;\n\n  return b;\n};",
        "export const a = () => (<a href='/x'>See http://x.y</a>);",
        "export const a = (u) => u.replace(/^https?:\\/\\//, '');",
        "export const a = (u) => u.replace(/[(]/g, '');",
        "export const a = (u) => u.replace(/`/g, '');",
        "export const a = () => <p>Never closed :(</p>;",
        "export const a = [`never closed",
    ],
)
def test_a_statement_ends_at_the_first_blank_line_outside_its_brackets(statement: str) -> None:
    text = f"{statement}\n \nIt's `code`.\n\n# Title\n\n) ]"
    assert text[: Scanner(text, mdx=True).find_statement_end(0, len(text))] == statement
    assert Scanner(statement, mdx=True).find_statement_end(0, len(statement)) == len(statement)


@pytest.mark.no_cover  # tracing would add to the measured time
@pytest.mark.slow
def test_unclosed_statements_take_linear_time() -> None:
    def scan(count: int) -> None:
        text = "export const a = (\n\n" * count
        scanner = Scanner(text, mdx=True)
        for at in range(0, len(text), 20):
            assert scanner.find_statement_end(at, len(text)) == at + 18

    assert_linear(scan, 3_000, least=3_000)  # fewer do not use up the limit


@pytest.mark.parametrize(
    ("tag", "texts"),
    [
        ('<TabItem value="a" label="Tab A">', ["Tab A"]),
        ('<TabItem value="a">', ["a"]),
        ('<option value="a">', []),
        ('<img src="x.png" alt="An arm" title=" "/>', ["An arm"]),
        ("<Card title={'Fast'} summary={`All`}>", ["Fast", "All"]),
        ('<a href="https://example.org/?title=" target="_blank">', []),
        ("<Tabs values={[{label: 'A', value: 'a'}]}>", []),  # a tab shows its label
        ("</TabItem>", []),
    ],
)
def test_labels_titles_and_alternative_texts_of_a_tag_are_found(tag: str, texts: list[str]) -> None:
    found = Scope().read_tag(Scanner(tag, mdx=True), 0, len(tag))
    assert [piece.text or tag[piece.start : piece.end] for piece in found] == texts


def test_string_expressions_and_comment_expressions_are_recognized() -> None:
    for text, inner in (("'a b'", "a b"), ('"x"', "x"), ("`t`", "t"), ("' '", " ")):
        assert read_literal(text) == inner
    for text in ("a", "`a${b}`", "'a' + 'b'"):
        assert read_literal(text) is None
    assert is_comment_expression("{/* a */}")
    assert is_comment_expression("{/* a */ // b\n}")
    assert not is_comment_expression("{a /* b */}")
