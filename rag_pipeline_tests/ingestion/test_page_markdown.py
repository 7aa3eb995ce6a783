"""Pages as Markdown: what is removed, what stays, and where the lines are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from rag_pipeline.core.errors import DocumentReadError, FrontMatterError
from rag_pipeline.core.models import MarkdownFormat, SiteSettings
from rag_pipeline.ingestion.discovery import discover_docs
from rag_pipeline.ingestion.publishing import render_page

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCS_DIR: Final = Path(__file__).parents[2] / "website" / "docs"
EDGE_DOCS: Final = Path(__file__).parents[1] / "fixtures" / "docusaurus-edge-docs"
FENCE: Final = re.compile(r"[\s>]*(?:(?:[-*+]|\d+[.)])\s+)*(?P<mark>`{3,}|~{3,})")
SYNTAX: Final = re.compile(r"\s*(?:import\s.*from|import ['\"]|export |:::|</?[A-Za-z]|<!--|\{/\*)")


def render(folder: Path, text: str, *, mdx: bool = True) -> str:
    """Return the Markdown of a page with the title "Title"; links get the prefix `to:`."""
    file = folder / "page.md"
    file.write_text(text, encoding="utf-8")
    site = SiteSettings(markdown_format=MarkdownFormat.MDX if mdx else MarkdownFormat.MD)

    def resolve(target: str, is_image: bool) -> str | None:  # noqa: FBT001  # signature of ResolveLink
        return None if is_image and target.startswith("./") else f"to:{target}"

    return render_page("page.md", file, folder, site, "Title", resolve)


def prose_lines(text: str) -> Iterator[str]:
    """Yield the lines of a Markdown text that are outside of code fences."""
    fence = ""
    for line in text.split("\n"):
        found = FENCE.match(line)
        if fence:
            is_end = found is not None and found["mark"].startswith(fence)
            fence = "" if is_end and not line.strip(" >`~") else fence
        elif found is not None:
            fence = found["mark"]
        else:
            yield line


CODE_BLOCK: Final = """\
```tsx title="a.tsx" {2}
import A from "a";


:::tip
<Tabs>{/* x */}</Tabs>
[a](b.md)
```"""

CASES: Final = {
    "the title is the first line": ("Text.", "# Title\n\nText."),
    "an own title stays the only one": ("# Own *title*\n\nText.", "# Own *title*\n\nText."),
    "a later heading of level 1 is not the title": (
        "Text.\n\n# Late",
        "# Title\n\nText.\n\n# Late",
    ),
    "front matter is removed": ("---\ntitle: X\n---\n\nText.", "# Title\n\nText."),
    "learning objectives follow the title": (
        "---\nlearning-objectives:\n  - Walk\n  - Stand up\n---\n\n# Own\n\nText.",
        "# Own\n\nAfter this page you can:\n\n- Walk\n- Stand up\n\nText.",
    ),
    "imports and exports are removed": (
        "import A from './a';\nimport {\n  B,\n} from './b';\n\nexport const x = 1;\n\nText.",
        "# Title\n\nText.",
    ),
    "prose may begin with the word import": (
        "import taxes are\nexport taxes",
        "# Title\n\nimport taxes are\nexport taxes",
    ),
    "comments are removed": (
        "A {/* hidden */} b.\n\n{/* a\n\nb */}\n\n<!-- c -->\n\nC.",
        "# Title\n\nA b.\n\nC.",
    ),
    "the title of an admonition is bold": (
        ":::tip[Look *here*]\n\nText.\n\n:::\n\nAfter.",
        "# Title\n\n**Look *here***\n\nText.\n\nAfter.",
    ),
    "an admonition without a title gets its name": (
        "Before.\n:::warning\nText.\n:::",
        "# Title\n\nBefore.\n\n**Warning**\n\nText.",
    ),
    "admonitions can be nested and in a list": (
        "- Item\n\n  ::::note\n  A.\n\n  :::info[B]\n  C.\n  :::\n  ::::\n\n- Next",
        "# Title\n\n- Item\n\n  **Note**\n\n  A.\n\n  **B**\n\n  C.\n\n- Next",
    ),
    "the labels of tabs are bold": (
        (
            '<Tabs>\n<TabItem value="a" label="First">\n\nA.\n\n</TabItem>\n'
            '<TabItem value="second">\nB.\n</TabItem>\n</Tabs>'
        ),
        "# Title\n\n**First**\n\nA.\n\n**second**\n\nB.",
    ),
    "the summary of details is bold": (
        "<details>\n<summary>Why `x`?</summary>\n\nBecause.\n\n</details>",
        "# Title\n\n**Why `x`?**\n\nBecause.",
    ),
    "a summary of several lines is bold, and the text after it is not": (
        "<details>\n<summary>\nWhy is\nthat?\n</summary>\n\nBecause.\n\n</details>",
        "# Title\n\n**Why is that?**\n\nBecause.",
    ),
    "the title of an admonition that is written as a tag is bold": (
        '<Admonition type="tip" title="Watch out">\n\nBe careful.\n\n</Admonition>',
        "# Title\n\n**Watch out**\n\nBe careful.",
    ),
    "indentation inside tags does not become code": (
        (
            '<Tabs>\n  <TabItem value="a" label="A">\n\n    Text\n    more.\n\n'
            "    - x\n      - y\n\n"
            "    ```py\n    if a:\n        b()\n    ```\n\n  </TabItem>\n</Tabs>"
        ),
        "# Title\n\n**A**\n\nText\nmore.\n\n- x\n  - y\n\n```py\nif a:\n    b()\n```",
    ),
    "code keeps its lines": (CODE_BLOCK, f"# Title\n\n{CODE_BLOCK}"),
    "magic comments are not shown on the page": (
        "```py\n# highlight-next-line\nx = 1\n```",
        "# Title\n\n```py\nx = 1\n```",
    ),
    "the content of an mdx-code-block is live": (
        "```mdx-code-block\n<b>Text</b>\n```",
        "# Title\n\nText",
    ),
    "formulas keep their TeX": (
        "Let $a_{1}<b$ be.\n\n$$\n\\frac{a}{b}\n\n\\neq 0\n$$",
        "# Title\n\nLet $a_{1}<b$ be.\n\n$$\n\\frac{a}{b}\n\n\\neq 0\n$$",
    ),
    "escapes and entities stay": (
        "A \\* b \\$5 \\{x\\} &lt;y&gt;",
        "# Title\n\nA \\* b \\$5 \\{x\\} &lt;y&gt;",
    ),
    "links get their addresses": (
        'See [*a*](./a.md "T"), [b](<b c.md#d>), <https://e.org> and [c].\n\n[c]: c.md',
        (
            '# Title\n\nSee [*a*](to:./a.md "T"), [b](to:b%20c.md#d), <https://e.org> '
            "and [c](to:c.md)."
        ),
    ),
    "targets cannot end their links": (
        "[a](<https://e.org/a b>) [b](https://e.org/x_(y)) [c](<d\\\\e>)",
        "# Title\n\n[a](to:https://e.org/a%20b) [b](to:https://e.org/x_%28y%29) [c](to:d%5Ce)",
    ),
    "addresses in tags can be strings in braces": (
        """<Link data-href="/no" to={"/x"}>a</Link> <a href={`/y`}>b</a> <a data-href="/z">c</a>""",
        "# Title\n\n[a](to:/x) [b](to:/y) c",
    ),
    "attributes of link tags can contain tags": (
        '<Link title={<b to="/no">x</b>} to="/x">a</Link> <a x={"to=\\"/n\\""} href=/y>c</a>',
        "# Title\n\n[a](to:/x) c",
    ),
    "links inside tags get their addresses": (
        'A <Link to="/x">*b*</Link> and <a className="y" href=\'z.md\'>c</a> <b>d</b>.',
        "# Title\n\nA [*b*](to:/x) and [c](to:z.md) d.",
    ),
    "an image keeps its address, or only its text": (
        "![a b](/img/a.png) and [![c](./c.png)](d.md)",
        "# Title\n\n![a b](to:/img/a.png) and [c](to:d.md)",
    ),
    "a code span is not a link": ("Write `[a](b.md)`.", "# Title\n\nWrite `[a](b.md)`."),
    "ids of headings are removed": (
        "## D \\{#d}\n\n## A {#x}\n\n### B {/* #y */}\n\n<h3 id='z'>C</h3>",
        "# Title\n\n## D\n\n## A\n\n### B\n\n### C",
    ),
    "tables keep their bars and links": (
        "| a | b |\n|---|---|\n| x \\| y | [l](m.md)<br/>n |",
        "# Title\n\n| a | b |\n|---|---|\n| x \\| y | [l](to:m.md) n |",
    ),
    "quotes and lists stay tight": (
        "> a\n>\n> b\n\n1. c\n2. d\n   - e",
        "# Title\n\n> a\n>\n> b\n\n1. c\n2. d\n   - e",
    ),
    "a thematic break stays": ("a\n\n---\n\nb", "# Title\n\na\n\n---\n\nb"),
    "footnotes stay": ("a[^1]\n\n[^1]: b", "# Title\n\na[^1]\n\n[^1]: b"),
    "an empty page is its title": ("", "# Title"),
}


def test_a_summary_of_several_lines_is_bold_in_plain_markdown(tmp_path: Path) -> None:
    source = "<details>\n<summary>\n  Why is\n  that?\n</summary>\n\nBecause.\n\n</details>\n"
    page = render(tmp_path, source, mdx=False)
    assert page == "# Title\n\n**Why is\n  that?**\n\nBecause.\n"


@pytest.mark.parametrize("name", CASES)
def test_a_page_becomes_plain_markdown(tmp_path: Path, name: str) -> None:
    source, expected = CASES[name]
    assert render(tmp_path, source) == f"{expected}\n"


def test_an_underlined_title_becomes_one_line(tmp_path: Path) -> None:
    assert render(tmp_path, "Own\ntitle\n===\n\nText\n") == "# Own title\n\nText\n"


def test_a_page_in_commonmark_keeps_what_only_mdx_would_read_as_code(tmp_path: Path) -> None:
    text = "import x from 'y'\n\nA {b} <span>c</span>\n\n    code"
    expected = "# Title\n\nimport x from 'y'\n\nA {b} c\n\n    code\n"
    assert render(tmp_path, text, mdx=False) == expected


def test_windows_line_ends_and_a_byte_order_mark_are_accepted(tmp_path: Path) -> None:
    assert render(tmp_path, "\ufeff---\r\ntitle: X\r\n---\r\n\r\nA\r\nb\r\n") == "# Title\n\nA\nb\n"


def test_a_page_that_cannot_be_read_is_reported(tmp_path: Path) -> None:
    with pytest.raises(FrontMatterError, match=r"page\.md"):
        render(tmp_path, "---\ntitle: [\n---\n")
    with pytest.raises(DocumentReadError, match=r"gone\.md"):
        render_page(
            "gone.md", tmp_path / "gone.md", tmp_path, SiteSettings(), "Title", lambda *_: None
        )


@pytest.mark.parametrize("folder", [DOCS_DIR, EDGE_DOCS], ids=["the book", "the edge cases"])
def test_no_syntax_of_docusaurus_is_left_outside_code(folder: Path) -> None:
    site = SiteSettings(markdown_format=MarkdownFormat.DETECT)
    if folder == DOCS_DIR:
        site = SiteSettings()
    docs = discover_docs(folder, with_unlisted=True).docs
    assert len(docs) > 40
    left: list[str] = []
    for doc in docs:
        text = render_page(doc.doc_id, doc.path, folder, site, "Title", lambda target, _: target)
        left += [f"{doc.doc_id}: {line}" for line in prose_lines(text) if SYNTAX.match(line)]
    assert left == []


def test_code_of_the_book_is_copied_line_by_line() -> None:
    fence = re.compile(r"^```(?!mdx-code-block).*?^```$", re.MULTILINE | re.DOTALL)
    count = 0
    for doc in discover_docs(DOCS_DIR).docs:
        source = doc.path.read_text(encoding="utf-8")
        text = render_page(
            doc.doc_id, doc.path, DOCS_DIR, SiteSettings(), "Title", lambda target, _: target
        )
        for found in fence.findall(source):
            if "highlight-" not in found:
                assert found in text, f"{doc.doc_id}: {found[:60]}"
                count += 1
    assert count > 100
