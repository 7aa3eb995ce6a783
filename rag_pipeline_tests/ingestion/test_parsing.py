"""Tests of parsing: encodings, Markdown formats, and metadata from front matter and path."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_pipeline.core.errors import DocumentReadError, FrontMatterError
from rag_pipeline.core.ids import DocId
from rag_pipeline.core.models import (
    ContentType,
    DiscoveredDoc,
    MarkdownFormat,
    ParsedDoc,
    SiteSettings,
)
from rag_pipeline.ingestion.markdown.source import find_invalid_line
from rag_pipeline.ingestion.parsing import parse_doc

_HEAD = """---
title: Kinematics
description: How joints move a hand.
tags: [arm, math]
learning-objectives:
  - Compute a pose
  - Invert it
sidebar_label: Kin
sidebar_position: 2.5
date: 2024-01-02
---
"""


def parse(
    source: str | bytes,
    doc_path: str = "page.md",
    markdown_format: MarkdownFormat = MarkdownFormat.MDX,
) -> ParsedDoc:
    """Parse a source as the file at a path below the docs folder."""
    doc = DiscoveredDoc(DocId(doc_path), Path(doc_path), "", 0, 0)
    content = source.encode() if isinstance(source, str) else source
    return parse_doc(doc, SiteSettings(markdown_format=markdown_format), content)


def test_all_fields_of_the_front_matter_reach_the_document() -> None:
    document = parse(_HEAD + "# Body title\n").document
    assert document.title == "Kinematics"
    assert document.description == "How joints move a hand."
    assert document.tags == ("arm", "math")
    assert document.learning_objectives == ("Compute a pose", "Invert it")
    assert document.sidebar_label == "Kin"
    assert document.sidebar_position == 2.5


@pytest.mark.parametrize(
    ("source", "doc_path", "title"),
    [
        ("# The *title* {#x}\n", "a.md", "The title"),
        ("\n\n   # Title #\n", "a.md", "Title"),
        ("import A from 'a'\nimport B from 'b'\n\n\n#\tTitle\n", "a.mdx", "Title"),
        ("import A from 'a'\n\n   Title\n====", "a.mdx", "Title"),
        ("export const a = 1;\n\n# No title\n", "a.mdx", "a"),
        ("Text\n\nNo title\n===\n", "a.md", "a"),
        ("No\ntitle\n===\n", "a.md", "a"),
        ("<!-- Comment -->\n\n# No title\n", "a.md", "a"),
        ('<h1 align="center">No title</h1>\n\n# Not either\n', "a.md", "a"),
        ("```\n# no title\n```\n## Not either\n", "b/02-set-up.md", "set-up"),
        ("---\nid: own-id\n---\nText", "a.md", "own-id"),
        ("", "index.md", "index"),
    ],
)
def test_without_a_title_field_the_title_is_the_heading_at_the_start_or_the_file_name(
    source: str, doc_path: str, title: str
) -> None:
    assert parse(source, doc_path).document.title == title


def test_byte_order_marks_and_windows_line_ends_do_not_change_the_result() -> None:
    source = _HEAD + "# A\n\n```py\nx = 1\n```\n"
    windows = b"\xef\xbb\xbf" + source.replace("\n", "\r\n").encode()
    assert parse(windows) == parse(source) == parse(source.replace("\n", "\r"))


def test_bytes_that_are_not_utf8_are_replaced_as_docusaurus_does() -> None:
    parsed = parse(b"# Caf\xe9\n\nText \xff\x00.\n")
    assert parsed.document.title == "Caf\ufffd"
    assert parsed.source.endswith("Text \ufffd\ufffd.\n")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"", None),
        ("\ufeffCaf\u00e9 \ufffd\n".encode(), None),
        (b"\xff", 1),
        (b"a\nb\rc\r\nd \xe9\n\xe9", 4),
        (b"\xef\xbb\xbfa\n\xe2\x82", 2),
    ],
)
def test_the_first_line_with_bytes_that_are_not_utf8_is_found(
    content: bytes, line: int | None
) -> None:
    assert find_invalid_line(content) == line


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_a_page_in_utf16_is_refused_instead_of_indexed_as_noise(
    tmp_path: Path, encoding: str
) -> None:
    path = tmp_path / "page.md"
    path.write_bytes("\ufeff# Title\n".encode(encoding))
    with pytest.raises(DocumentReadError, match=r"page\.md.*UTF-8"):
        parse_doc(DiscoveredDoc(DocId("page.md"), path, "", 0, 0), SiteSettings())


def test_line_numbers_include_the_front_matter() -> None:
    (heading,) = parse(_HEAD + "\n# A\n").document.headings
    assert heading.line == 13


def test_unicode_line_separators_do_not_shift_line_numbers() -> None:
    parsed = parse("a\u2028b\x0cc\x85d\n\n## H\n")
    assert parsed.document.headings[0].line == 3


@pytest.mark.parametrize(
    ("doc_path", "site_format", "page_format", "is_code"),
    [
        ("a.md", MarkdownFormat.MDX, "", False),
        ("a.md", MarkdownFormat.MD, "", True),
        ("a.md", MarkdownFormat.DETECT, "", True),
        ("a.mdx", MarkdownFormat.DETECT, "", False),
        ("a.mdx", MarkdownFormat.MDX, "md", True),
        ("a.md", MarkdownFormat.MD, "mdx", False),
        ("a.md", MarkdownFormat.MDX, "detect", True),
    ],
)
def test_the_format_of_the_page_takes_precedence_over_that_of_the_site(
    *, doc_path: str, site_format: MarkdownFormat, page_format: str, is_code: bool
) -> None:
    head = f"---\nmdx:\n  format: {page_format}\n---\n" if page_format else ""
    blocks = parse(f"{head}Text\n\n    x = 1\n", doc_path, site_format).blocks
    assert (blocks[-1].kind == "code") is is_code


def test_a_format_field_outside_the_mdx_section_is_ignored() -> None:
    blocks = parse("---\nformat: md\n---\nText\n\n    x = 1\n").blocks
    assert blocks[-1].kind == "paragraph"


@pytest.mark.parametrize(
    ("doc_path", "module", "chapter"),
    [
        ("intro.md", "", ""),
        ("module-1/index.md", "module-1", ""),
        ("module-1/1.1-foundations/a.md", "module-1", "1.1-foundations"),
        ("module-1/1.1-foundations/deep/a.md", "module-1", "1.1-foundations"),
        ("textbook/Module 2/2.1-x/a.md", "Module 2", "2.1-x"),
        ("guides/setup/a.md", "guides", "setup"),
        ("modules/a.md", "modules", ""),
    ],
)
def test_module_and_chapter_come_from_the_path(doc_path: str, module: str, chapter: str) -> None:
    document = parse("Text", doc_path).document
    assert (document.module, document.chapter) == (module, chapter)


def test_module_and_chapter_of_the_front_matter_take_precedence() -> None:
    head = "---\nmodule: module-9\nchapter: 9.1\n---\n"
    document = parse(head, "module-1/1.1-a/b.md").document
    assert (document.module, document.chapter) == ("module-9", "9.1")


@pytest.mark.parametrize(
    ("doc_path", "content_type"),
    [
        ("module-1/lab-exercises.md", ContentType.LAB),
        ("module-4/4.3-vla/vla-mini-experiments.md", ContentType.LAB),
        ("labs/03-arm.md", ContentType.LAB),
        ("module-1/Lab1.md", ContentType.LAB),
        ("module-1/hands-on_intro.md", ContentType.LAB),
        ("module-1/quiz.md", ContentType.QUIZ),
        ("module-1/lab-quiz.md", ContentType.QUIZ),
        ("module-3/3.5-integrated-project-and-assessment/overview.md", ContentType.PROSE),
        ("module-3/3.5-integrated-project-and-assessment.md", ContentType.ASSESSMENT),
        ("labs/design & exams/overview.md", ContentType.LAB),
        ("labs-and-exercises/overview.md", ContentType.LAB),
        ("brand-exams/overview.md", ContentType.ASSESSMENT),
        ("module-3/3.5-integrated-project-and-assessment/quiz.md", ContentType.QUIZ),
        ("module-4/capstone-project/lab.md", ContentType.ASSESSMENT),
        ("module-4/capstone-project/a/b.md", ContentType.ASSESSMENT),
        ("final-exam.md", ContentType.ASSESSMENT),
        ("syllabus.md", ContentType.PROSE),
        ("labels/a.md", ContentType.PROSE),
        ("collaboration.md", ContentType.PROSE),
        ("gitlab-matlab.md", ContentType.PROSE),
        ("example.md", ContentType.PROSE),
        ("quizzical.md", ContentType.PROSE),
    ],
)
def test_the_content_type_comes_from_whole_words_of_the_path(
    doc_path: str, content_type: ContentType
) -> None:
    assert parse("Text", doc_path).document.content_type is content_type


@pytest.mark.parametrize(
    ("given", "content_type"),
    [
        ("lab", ContentType.LAB),
        ("lab-exercise", ContentType.LAB),
        ("Assessment", ContentType.ASSESSMENT),
        ("prose", ContentType.PROSE),
        ("nonsense", ContentType.QUIZ),
        ("null", ContentType.QUIZ),
    ],
)
def test_a_valid_content_type_of_the_front_matter_takes_precedence(
    given: str, content_type: ContentType
) -> None:
    document = parse(f"---\ncontent_type: {given}\n---\n", "module-1/quiz.md").document
    assert document.content_type is content_type


def test_a_file_that_is_gone_raises_an_error_that_names_the_document(tmp_path: Path) -> None:
    doc = DiscoveredDoc(DocId("a.md"), tmp_path / "a.md", "", 0, 0)
    with pytest.raises(DocumentReadError, match=r"a\.md: it was deleted or renamed"):
        parse_doc(doc, SiteSettings())
    doc.path.write_text("# A\n", encoding="utf-8")
    assert parse_doc(doc, SiteSettings()).document.title == "A"


def test_the_error_for_a_field_of_a_wrong_type_names_file_and_line() -> None:
    with pytest.raises(FrontMatterError, match=r"a/b\.md: line 3: front matter: title"):
        parse("---\nid: x\ntitle: [a]\n---\n", "a/b.md")


def test_content_that_is_nested_300_levels_deep_is_kept() -> None:
    quotes = "> " * 300 + "deep words\n"
    lists = "".join("  " * depth + "- item\n" for depth in range(300))
    for source in (quotes, lists, "- " * 300 + "deep words\n"):
        parsed = parse(source)
        assert sum(block.end_line - block.start_line + 1 for block in parsed.blocks) == len(
            source.strip().split("\n")
        )
