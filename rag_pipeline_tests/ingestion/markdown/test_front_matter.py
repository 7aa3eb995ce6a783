"""Tests that front matter is read as Docusaurus reads it, and that errors name the line."""

from __future__ import annotations

import pytest

from rag_pipeline.core.errors import FrontMatterError
from rag_pipeline.ingestion.markdown.source import Visibility, find_visibility, read_front_matter


@pytest.mark.parametrize(
    ("value", "tags"),
    [
        ("[a, b]", ("a", "b")),
        ("\n  - a\n  - b", ("a", "b")),
        ("one tag", ("one tag",)),
        ("ros2, nav , ros2", ("ros2", "nav")),
        ("null", ()),
        ("", ()),
        ("[]", ()),
        ("[1, 2.5, 2.0, yes, true, null]", ("1", "2.5", "2", "yes", "true")),
        ("[{label: Robots, permalink: /r}]", ("Robots",)),
    ],
)
def test_tags_may_be_a_list_a_text_or_empty(value: str, tags: tuple[str, ...]) -> None:
    assert read_front_matter("a.md", f"---\ntags: {value}\n---\n").texts("tags", split=True) == tags


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Robots", "Robots"),
        ('"Quoted: yes"', "Quoted: yes"),
        ("2024", "2024"),
        ("2024-01-02", "2024-01-02"),
        ("yes", "yes"),
        ("12:30", "12:30"),
        ("null", ""),
        ("~", ""),
        ('""', ""),
        (">-\n  folded\n  text", "folded text"),
        ("2.0", "2"),
        ("1e3", "1000"),
        ("-0x10", "-16"),
        ("0o17", "15"),
        ("0b11", "3"),
        ("010", "10"),
        ("1e300", "1e+300"),
        ("\t tabbed", "tabbed"),
        ("a\u2028b\x85c", "a b c"),
    ],
)
def test_a_text_is_read_as_written(value: str, text: str) -> None:
    assert read_front_matter("a.md", f"---\ntitle: {value}\n---\n").text("title") == text


@pytest.mark.parametrize(
    ("value", "number"),
    [("3", 3.0), ("2.5", 2.5), ('"4"', 4.0), ("null", None), ("-1", -1.0), ("0x10", 16.0)],
)
def test_a_position_is_a_number(value: str, number: float | None) -> None:
    head = read_front_matter("a.md", f"---\nsidebar_position: {value}\n---\n")
    assert head.number("sidebar_position") == number


@pytest.mark.parametrize("value", [".nan", ".inf", "first", "true", "[1]", "1e999"])
def test_a_position_that_is_not_a_finite_number_is_an_error(value: str) -> None:
    head = read_front_matter("a.md", f"---\ntitle: T\nsidebar_position: {value}\n---\n")
    with pytest.raises(FrontMatterError, match=r"a\.md: line 3: .*sidebar_position"):
        head.number("sidebar_position")


@pytest.mark.parametrize("value", ["[a]", "{name: a}", "[[a]]", "[{what: a}]"])
def test_a_field_that_docusaurus_does_not_define_may_have_any_value(value: str) -> None:
    fields = ("module", "chapter", "content_type", "learning_objectives", "title", "tags")
    source = "\n".join(["---", *(f"{field}: {value}" for field in fields), "---\n"])
    head = read_front_matter("a.md", source)
    assert [head.text(field) for field in fields[:3]] == [""] * 3
    assert head.texts("learning_objectives") in {(), ("a",)}
    with pytest.raises(FrontMatterError, match=r"line 6: .*title"):
        head.text("title")


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("---\ntitle: a: b\n---\n", 2),
        ("---\ntitle: T\ntags: [a\n---\n", 4),
        ("---\ntitle: T\n\tx: y\n---\n", 3),
        ("---\ntitle: 'open\n---\n", 3),
        ("---\njust text\n---\n", 2),
        ("---\n- a\n- b\n---\n", 2),
        ("---\na: *missing\n---\n", 2),
        ("---\ntitle:\tT\u2028\nx: 'open\n---\n", 4),
        ("---\na: b\n\x01\n---\n", 1),
    ],
)
def test_the_error_for_invalid_yaml_names_file_and_line(source: str, line: int) -> None:
    with pytest.raises(FrontMatterError, match=r"^a/b\.md: line \d+: front matter: ") as caught:
        read_front_matter("a/b.md", source)
    assert caught.value.line == line


@pytest.mark.slow
def test_yaml_that_is_nested_too_deeply_is_an_error() -> None:
    source = "---\na: " + "[" * 5000 + "]" * 5000 + "\n---\n"
    with pytest.raises(FrontMatterError, match="nested too deeply"):
        read_front_matter("a.md", source)


@pytest.mark.parametrize(
    ("source", "rest"),
    [
        ("---\ntitle: T\n---\nText", "Text"),
        ("---  \ntitle: T\n---  \nText", "Text"),
        ("---\n---\nText", "Text"),
        ("---\ntitle: T\n---", ""),
        ("Text\n---\na: b\n---\n", "Text\n---\na: b\n---\n"),
        ("----\na: b\n----\n", "----\na: b\n----\n"),
        ("---\n\nprose: here\nmore prose\n\n---\n", "---\n\nprose: here\nmore prose\n\n---\n"),
        ("---\nnever: closed\n", "---\nnever: closed\n"),
    ],
)
def test_the_body_begins_after_the_front_matter(source: str, rest: str) -> None:
    assert source[read_front_matter("a.md", source).end :] == rest


@pytest.mark.parametrize(
    ("head", "line"),
    [
        ("title: A\ntags: [x]\ntitle: B\n", 4),
        ("title: A\nlast_update:\n  author: x\n  author: y\n", 5),
        ("tags:\n  - label: x\n    label: y\n", 4),
    ],
)
def test_a_repeated_field_is_an_error_as_in_docusaurus(head: str, line: int) -> None:
    with pytest.raises(FrontMatterError, match=rf"line {line}: .* appears twice"):
        read_front_matter("a.md", f"---\n{head}---\n")


def test_yaml_aliases_are_not_expanded() -> None:
    bomb = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 60))
    head = read_front_matter("a.md", f"---\na0: &a0 [x]\n{bomb}title: T\ntags: *a59\n---\n")
    assert head.text("title") == "T"
    with pytest.raises(FrontMatterError, match=r"line 60: .*tags must be a list of texts"):
        head.texts("tags")


@pytest.mark.parametrize(
    ("head", "visibility"),
    [
        ("draft: true", Visibility.DRAFT),
        ('draft: "true"', Visibility.DRAFT),
        ("draft: false", Visibility.LISTED),
        ("title: draft", Visibility.LISTED),
        ("title: [draft: true", Visibility.LISTED),
        ("unlisted: true", Visibility.UNLISTED),
        ("unlisted: true\ndraft: true", Visibility.DRAFT),
        ("unlisted: maybe", Visibility.LISTED),
        ("title: unlisted pages", Visibility.LISTED),
    ],
)
def test_a_page_is_hidden_only_if_its_front_matter_says_so(
    head: str, visibility: Visibility
) -> None:
    assert find_visibility(f"---\n{head}\n---\nText") is visibility
