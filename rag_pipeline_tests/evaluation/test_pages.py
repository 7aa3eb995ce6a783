"""Tests of the tree of a report and of its three written forms."""

from __future__ import annotations

import pytest

from rag_pipeline.evaluation.pages import (
    Block,
    Items,
    Mark,
    Section,
    Table,
    shorten,
    to_html,
    to_markdown,
    to_text,
)

TREE: tuple[Block, ...] = (
    ("Run ", Mark("make test", "code"), ", which is ", Mark("fast", "strong"), "."),
    Section(
        "Pages",
        (
            Table(("name", "size"), (("a | b", "1"), ("c", "20"))),
            Section("Below", (Items(("one", "two")),), form="article"),
        ),
    ),
)


def test_a_tree_is_written_as_markdown() -> None:
    assert to_markdown(TREE, level=2) == (
        "Run `make test`, which is **fast**.\n\n"
        "## Pages\n\n"
        "| name | size |\n| --- | --- |\n| a \\| b | 1 |\n| c | 20 |\n\n"
        "### Below\n\n"
        "- one\n- two"
    )


def test_a_tree_is_written_as_text_with_aligned_columns() -> None:
    assert to_text(TREE) == (
        "Run make test, which is fast.\n"
        "Pages:\n"
        "  name   size\n"
        "  a | b  1\n"
        "  c      20\n"
        "  Below:\n"
        "    one\n"
        "    two"
    )


def test_a_tree_is_written_as_html_for_the_style_sheet() -> None:
    page = to_html(TREE)
    assert "<p>Run <code>make test</code>, which is <strong>fast</strong>.</p>" in page
    assert "<section><h2>Pages</h2>" in page
    assert "<article><h3>Below</h3>" in page
    assert '<td data-label="size">20</td>' in page


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<b> & [a](b)", "&lt;b&gt; &amp; \\[a\\](b)"),
        ("two\n lines", "two lines"),
        ("https://a.org and www.b.org", "https\u2060://a.org and www\u2060.b.org"),
        ("@team and a@b.org", "@\u2060team and a@\u2060b.org"),
        ("Success@5", "Success@5"),
    ],
)
def test_markdown_interprets_nothing_in_a_text(text: str, shown: str) -> None:
    assert to_markdown([text]) == shown


def test_a_long_text_is_cut_with_an_ellipsis() -> None:
    assert (shorten("a  b", 3), shorten("abcd", 3)) == ("a b", "ab…")
