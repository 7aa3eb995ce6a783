"""Tests that the textbook follows the rules of `book_lint`, and that each rule finds its errors."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rag_pipeline_tests.website import book_lint, book_page
from rag_pipeline_tests.website.book_lint import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from rag_pipeline_tests.website.book_page import Page

WEBSITE = Path(__file__).parents[2] / "website"
DOCS = WEBSITE / "docs"


load_terms = cache(book_lint.load_terms)


def check_terms(page: Page) -> Iterator[Finding]:
    """Check the spelling of a page with the book's list of terms."""
    return book_lint.check_terms(page, load_terms(WEBSITE / "terms.yml"))


PAGE_CHECKS = (
    book_lint.check_front_matter,
    book_lint.check_headings,
    book_lint.check_length,
    book_lint.check_code,
    book_lint.check_mdx,
    check_terms,
    book_lint.check_links,
)
BOOK_CHECKS = (book_lint.check_size, book_lint.check_repeats, book_lint.check_order)

GOOD_HEAD = """\
---
title: "Springs"
description: "How a spring stores the energy of a falling leg and gives it back."
tags: [spring, leg-energy]
sidebar_label: "Springs"
sidebar_position: 2
learning-objectives:
  - "Work out the energy in a spring"
---

"""
GOOD_BODY = r"""import Tabs from '@theme/Tabs';
import TabItem from '@theme/TabItem';

# Springs

A spring of stiffness $k_{x}$ holds $E = \frac{1}{2}k_x \lvert x \rvert^2$, less than \$5
and \< 3 J. Use `ros2 topic list <name> {x}` with [the list](good.md#part),
or [outside](https://example.org/ROS2).

$$
\begin{aligned} {a} &< b \\ # no heading \end{aligned}
$$

:::tip[In brackets]

1. A list with code:

   ```python title="a.py"
   # ROS2 behaviour <b> {c}
   x = {"a": 1}
   ```

:::

<Tabs>
<TabItem value="py" label="Python">

```yaml
a: [1, 2]
---
b: 2
```

</TabItem>
</Tabs>

<details>
<summary>Answer</summary>

## Inside

</details>

```xml
<?xml version="1.0"?>
<robot name="r"/>
```

```json
{"a": [1]}
```
"""


@cache
def book() -> tuple[Page, ...]:
    """Return all pages of the textbook."""
    return book_page.load_book(DOCS)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """Return a docs folder with one page, `good.md`, that others can link to."""
    (tmp_path / "good.md").write_text(GOOD_HEAD + GOOD_BODY, "utf-8")
    return tmp_path


def listed(findings: Iterable[Finding]) -> str:
    """Return the findings as text, one per line."""
    return "\n".join(map(str, findings))


@pytest.mark.parametrize("check", PAGE_CHECKS, ids=lambda check: check.__name__)
def test_every_page_of_the_textbook_passes_the_check(
    check: Callable[[Page], Iterator[Finding]],
) -> None:
    findings = [finding for page in book() for finding in check(page)]
    assert not findings, f"{len(findings)} findings\n{listed(findings)}"


@pytest.mark.parametrize("check", BOOK_CHECKS, ids=lambda check: check.__name__)
def test_the_whole_textbook_passes_the_check(
    check: Callable[[Sequence[Page]], Iterator[Finding]],
) -> None:
    findings = list(check(book()))
    assert not findings, f"{len(findings)} findings\n{listed(findings)}"


@pytest.mark.parametrize("check", PAGE_CHECKS, ids=lambda check: check.__name__)
def test_a_page_with_every_allowed_construct_has_no_finding(
    check: Callable[[Page], Iterator[Finding]], docs: Path
) -> None:
    page = book_page.parse_page(GOOD_HEAD + GOOD_BODY, "index.md", docs)
    assert listed(check(page)) == ""


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ('title: "Springs"\n', "", 1, "has no title"),
        ('"Springs"\ndesc', "3\ndesc", 2, "title is not a text"),
        ("How a spring", "Spring" * 40, 3, "description has 294 characters, not 50 to 180"),
        ("leg-energy", "Leg_energy", 4, "'Leg_energy', which is not lower-case"),
        ("leg-energy", "spring", 4, "contains a tag twice"),
        ("[spring, leg-energy]", "spring", 4, "tags is not a list"),
        ("position: 2", "position: two", 6, "sidebar_position is not a whole number"),
        ("position: 2", "position: true", 6, "sidebar_position is not a whole number"),
        (
            '  - "Work out the energy in a spring"\n',
            "",
            7,
            "is not a list with at least one objective",
        ),
        ('"Work out the energy in a spring"', "5", 7, "contains an entry that is not a text"),
    ],
)
def test_an_error_in_front_matter_is_found(
    old: str, new: str, line: int, message: str, docs: Path
) -> None:
    page = book_page.parse_page(GOOD_HEAD.replace(old, new, 1), "bad.md", docs)
    (finding,) = book_lint.check_front_matter(page)
    assert finding.line == line
    assert message in finding.message


@pytest.mark.parametrize("text", ["# Springs\n", "---\n- a\n---\n# S\n", "---\na: [\n---\n# S\n"])
def test_front_matter_that_is_not_a_mapping_lacks_every_key(text: str, docs: Path) -> None:
    page = book_page.parse_page(text, "bad.md", docs)
    assert len(list(book_lint.check_front_matter(page))) == 6


@pytest.mark.parametrize(
    ("check", "body", "line", "message"),
    [
        (book_lint.check_headings, "text\n", 10, "no h1"),
        (book_lint.check_headings, "# Other\n", 11, "'Other' is not the title 'Springs'"),
        (book_lint.check_headings, "# Springs\n\n# Again\n", 13, "second h1 'Again'"),
        (book_lint.check_headings, "# Springs\n\n### Deep\n", 13, "h3 'Deep' follows an h1"),
        (book_lint.check_headings, "## Early\n\n# Springs\n", 11, "h2 'Early' follows an h0"),
        (book_lint.check_length, "word " * 499, 1, "499 words, fewer than 500"),
        (book_lint.check_code, "```\nx\n```\n", 11, "without a language"),
        (book_lint.check_code, "```python\nx = 1\n", 11, "is never closed"),
        (book_lint.check_code, "```python\nx = 1\ny = (\n```\n", 13, "python does not parse"),
        (book_lint.check_code, '```python\nx = "\\d"\n```\n', 12, "invalid escape sequence"),
        (book_lint.check_code, "```yaml\na: 1\nb: [\n```\n", 14, "yaml does not parse"),
        (book_lint.check_code, '```json\n{\n"a": 1,\n}\n```\n', 14, "json does not parse"),
        (book_lint.check_code, "```xml\n<a>\n<b>\n</a>\n```\n", 14, "xml does not parse"),
        (book_lint.check_code, "- item\n\n  ```python\n  x = (\n  ```\n", 14, "python does not"),
        (book_lint.check_mdx, "one\ntwo {x} three\n", 12, "bare '{'"),
        (book_lint.check_mdx, "a < b\n", 11, "bare '<'"),
        (book_lint.check_mdx, "see <https://example.org>\n", 11, "address in angle brackets"),
        (book_lint.check_mdx, "<!-- note -->\n", 11, "HTML comment"),
        (book_lint.check_mdx, "a<br/>b\n", 11, "tag <br>"),
        (book_lint.check_mdx, "<details>\n\ntext\n", 13, "<details> is never closed"),
        (book_lint.check_mdx, "text\n\n</Tabs>\n", 13, "</Tabs> closes nothing"),
        (book_lint.check_mdx, ":::note A title\n\ntext\n\n:::\n", 11, "without brackets"),
        (book_lint.check_mdx, ":::note\n\ntext\n", 13, "admonition is never closed"),
        (book_lint.check_mdx, "text\n\n:::\n", 13, "::: closes nothing"),
        (check_terms, "one\ntwo ROS2 nodes\n", 12, "'ROS2': write 'ROS 2'"),
        (check_terms, "The Behaviours of it\n", 11, "'Behaviours': write 'behavior'"),
        (check_terms, "a *LiDAR* scan\n", 11, "'LiDAR': write 'lidar'"),
        (check_terms, "| a |\n| - |\n| numpy |\n", 13, "'numpy': write 'NumPy'"),
        (check_terms, "[about ROS2](good.md)\n", 11, "'ROS2'"),
        (
            book_lint.check_links,
            "one\n[two](gone.md#part)\n",
            12,
            "gone.md#part: the file does not exist",
        ),
        (book_lint.check_links, "[two](./good)\n", 11, "the file does not exist"),
        (book_lint.check_links, "[two](/docs/good)\n", 11, "link to the Markdown file"),
        (book_lint.check_links, "![two](gone.png)\n", 11, "the file does not exist"),
    ],
)
def test_an_error_in_the_body_is_found_on_its_line(
    check: Callable[[Page], Iterator[Finding]], body: str, line: int, message: str, docs: Path
) -> None:
    page = book_page.parse_page(GOOD_HEAD + body, "bad.md", docs)
    (finding,) = check(page)
    assert finding.line == line
    assert message in finding.message


@pytest.mark.parametrize(
    "body",
    [
        "`ROS2` and $ROS2$ and [x](ROS2.md)\n",
        "$$\nROS2\n$$\n",
        "```text\nROS2\n```\n",
        "the ros2_control package and ./ROS2/file\n",
        "Lidar begins a sentence\n",
    ],
)
def test_spelling_is_checked_only_in_prose(body: str, docs: Path) -> None:
    page = book_page.parse_page(GOOD_HEAD + body, "bad.md", docs)
    assert listed(check_terms(page)) == ""


def test_a_finding_is_printed_as_page_line_and_message() -> None:
    assert str(Finding("a/b.md", 3, "no h1")) == "a/b.md:3: no h1"


def test_a_book_with_too_few_pages_and_words_is_found(docs: Path) -> None:
    page = book_page.load_page(docs / "good.md", docs)
    pages, words = book_lint.check_size([page])
    assert pages.message == "1 pages, fewer than 89"
    assert words.message == f"{page.word_count} words, fewer than 100000"


def test_a_repeated_paragraph_is_found_despite_other_line_breaks_and_case(docs: Path) -> None:
    twelve = "one two three four five six seven eight nine ten eleven $x$"
    first = book_page.parse_page(f"# A\n\n{twelve}\n", "a.md", docs)
    wrapped = twelve.replace("six ", "six\n  ").replace("one", "One")
    second = book_page.parse_page(f"# B\n\ntext\n\n- {wrapped}\n", "b.md", docs)
    (finding,) = book_lint.check_repeats([first, second])
    assert str(finding) == "b.md:5: repeats the paragraph at a.md:3"
    (again,) = book_lint.check_repeats([book_page.parse_page(f"{twelve}\n\n" * 2, "c.md", docs)])
    assert str(again) == "c.md:3: repeats the paragraph at c.md:1"


def test_short_paragraphs_and_paragraphs_with_other_formulas_may_be_repeated(docs: Path) -> None:
    long = "one two three four five six seven eight nine ten eleven"
    text = f"short one\n\nshort one\n\n{long} $x$\n\n{long} $y$\n"
    assert listed(book_lint.check_repeats([book_page.parse_page(text, "a.md", docs)])) == ""


def test_two_pages_of_a_folder_with_the_same_sidebar_position_are_found(docs: Path) -> None:
    pages = [book_page.parse_page(GOOD_HEAD, name, docs) for name in ("m/a.md", "n/a.md", "n/b.md")]
    (finding,) = book_lint.check_order(pages)
    assert str(finding) == "n/b.md:6: n/a.md has the same sidebar_position 2"
