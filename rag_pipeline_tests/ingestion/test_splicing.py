"""Tests of pages that show other files: warnings, origins of lines, and hostile imports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.models import ChunkLimits, SiteSettings
from rag_pipeline.core.text.sentences import SourceLines
from rag_pipeline.ingestion.chunking import chunk_doc
from rag_pipeline.ingestion.discovery import discover_docs
from rag_pipeline.ingestion.parsing import parse_doc

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.core.models import ParsedDoc

_SHOW = "import Part from './_part.mdx';\n\nBefore.\n\n<Part />\n\nAfter.\n"


def parse_page(folder: Path, files: dict[str, str]) -> ParsedDoc:
    """Write the files of a site, and parse its page `docs/page.mdx`."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (doc,) = (doc for doc in discover_docs(folder / "docs").docs if doc.doc_id == "page.mdx")
    return parse_doc(doc, SiteSettings())


def read_text(parsed: ParsedDoc) -> str:
    return "\n".join(chunk.text for chunk in chunk_doc(parsed, ChunkLimits()))


@pytest.mark.parametrize(
    ("files", "named"),
    [
        pytest.param({}, ("docs/page.mdx", "docs/_part.mdx", "does not exist"), id="missing"),
        pytest.param(
            {"docs/_part.mdx": "import Self from './_part.mdx'\n\nOnce.\n\n<Self />"},
            ("docs/_part.mdx imports docs/_part.mdx", "contains the file that imports it"),
            id="itself",
        ),
        pytest.param(
            {
                "docs/_part.mdx": "import B from './_b.mdx'\n\nOnce.\n\n<B />",
                "docs/_b.mdx": "import A from './_part.mdx'\n\n<A />",
            },
            ("docs/_b.mdx imports docs/_part.mdx", "contains the file that imports it"),
            id="cycle",
        ),
        pytest.param(
            {"docs/_part.mdx": "import Page from './page.mdx'\n\nOnce.\n\n<Page />"},
            ("docs/_part.mdx imports docs/page.mdx", "contains the file that imports it"),
            id="page in its own partial",
        ),
        pytest.param(
            {"docs/_part.mdx": "---\ntitle: [\n---\nOnce."},
            ("docs/page.mdx imports docs/_part.mdx", "front matter that is not valid"),
            id="front matter",
        ),
        pytest.param(
            {"docs/_part.mdx": "import X from '!!raw-loader!../../secret.txt'\n\nOnce.\n\n{X}"},
            ("docs/_part.mdx imports ../../secret.txt", "not a file below the folder of the site"),
            id="outside the site",
        ),
        pytest.param(
            {"docs/_part.mdx": "import X from 'package/_x.mdx'\n\nOnce.\n\n<X />"},
            ("docs/_part.mdx imports node_modules/package/_x.mdx", "does not exist"),
            id="package",
        ),
    ],
)
def test_a_file_that_cannot_be_shown_is_named_and_the_page_is_indexed_without_it(
    tmp_path: Path, files: dict[str, str], named: tuple[str, ...]
) -> None:
    (tmp_path / "secret.txt").write_text("SECRET", encoding="utf-8")
    parsed = parse_page(tmp_path / "site", {"docs/page.mdx": _SHOW, **files})
    (warning,) = parsed.notes.warnings
    assert warning.startswith("page.mdx: ")
    for part in named:
        assert part in warning
    text = read_text(parsed)
    assert text.startswith("Before.")
    assert text.endswith("After.")
    assert text.count("Once.") == ("Once." in str(files) and "title: [" not in str(files))
    assert "SECRET" not in text


def test_a_circle_of_partials_five_deep_is_named_from_file_to_file(tmp_path: Path) -> None:
    files = {"docs/page.mdx": _SHOW.replace("_part", "_1")}
    for number in range(1, 6):
        following = number % 5 + 1
        files[f"docs/_{number}.mdx"] = _SHOW.replace("_part", f"_{following}")
    parsed = parse_page(tmp_path, files)
    (warning,) = parsed.notes.warnings
    circle = " > ".join(f"docs/_{number}.mdx" for number in (1, 2, 3, 4, 5, 1))
    assert warning.startswith("page.mdx: docs/_5.mdx imports docs/_1.mdx, which contains the file")
    assert f"({circle})" in warning
    assert read_text(parsed).count("Before.") == 6


def test_partials_that_multiply_are_stopped_at_a_limit(tmp_path: Path) -> None:
    files = {"docs/page.mdx": _SHOW, "docs/_part.mdx": _SHOW.replace("_part", "_0")}
    for number in range(12):
        uses = "<Part />\n\n" * 9
        files[f"docs/_{number}.mdx"] = f"import Part from './_{number + 1}.mdx'\n\n{uses}"
    files["docs/_12.mdx"] = "Text."
    parsed = parse_page(tmp_path, files)
    assert len(parsed.source) < 100_000
    assert any("can show files 500 times" in warning for warning in parsed.notes.warnings)


_IMPORTS = "import Part from './_part.mdx';\nimport data from './data.json';\n"
_FILES = {
    "docs/_part.mdx": "Words of the part.\n",
    "docs/data.json": '[{"title": "Turn", "href": "/x", "steps": ["Loosen it"]}]',
}


def test_a_part_of_a_package_is_shown_if_the_package_is_installed(tmp_path: Path) -> None:
    page = {"docs/page.mdx": "import Part from '@own/kit/part.md';\n\nText.\n\n<Part />\n"}
    (warning,) = parse_page(tmp_path, page).notes.warnings
    assert "node_modules/@own/kit/part.md" in warning
    files = {"node_modules/@own/kit/part.md": "Words of the part.", "docusaurus.config.js": ""}
    assert read_text(parse_page(tmp_path, page | files)) == "Text.\n\nWords of the part."


WRITTEN = {
    "an escaped name": r"import Part from './\_part.mdx';",
    "after another statement": "import Tabs from '@theme/Tabs'; import Part from './_part.mdx';",
    "on two lines": "import Part\nfrom './_part.mdx';",
    "on several lines": "import Tabs from '@theme/Tabs'; import\n  Part from\n  './_part.mdx';",
}


@pytest.mark.parametrize("statement", WRITTEN.values(), ids=WRITTEN)
def test_an_import_is_read_however_it_is_written(tmp_path: Path, statement: str) -> None:
    files = _FILES | {"docs/page.mdx": f"{statement}\n\nBefore.\n\n<Part />\n\nAfter.\n"}
    parsed = parse_page(tmp_path, files)
    assert "Before.\n\nWords of the part.\n\nAfter." in read_text(parsed)
    assert not parsed.notes.warnings


def test_code_is_read_from_a_file_whose_ending_is_left_out(tmp_path: Path) -> None:
    page = "import code from '!!raw-loader!./server';\n\n<CodeBlock>{code}</CodeBlock>\n"
    parsed = parse_page(tmp_path, {"docs/page.mdx": page, "docs/server.js": "listen(80);\n"})
    assert "listen(80);" in read_text(parsed)
    assert not parsed.notes.warnings


PASSED_ON = {
    "part": ("<Play code={Part} />", "Words of the part."),
    "parts in an object": ("<Play code={{Part, a: {'b.html': Part}}} />", "Words of the part."),
    "part in a tag": ("<Play code={<Part />} />", "Words of the part."),
    "data": ("<Steps items={data} />", "Turn\nLoosen it"),
    "mapped data": ("{data.map((one) => <p>{one.title}</p>)}", "Turn\nLoosen it"),
    "filtered data": ("{data.filter(Boolean).map((one) => <p />)}", "Turn\nLoosen it"),
    "entries": ("{Object.entries(data).map((one) => <p />)}", "Turn\nLoosen it"),
    "rows": ("<Table rows={[['CPU', '4 cores'], ['RAM', 16]]} />", "CPU | 4 cores\nRAM | 16"),
    "exported rows": (
        "export const own = [['CPU', '4'], ['RAM']];\n\n{own.map((one) => <b>{one}</b>)}",
        "CPU | 4\nRAM",
    ),
    "mapped literal": ("{['Red', 'Green'].map((one) => <li>{one}</li>)}", "Red\nGreen"),
    "literal": (
        "export const own = [{title: 'Turn'}];\n\n{own.map((one) => <b>{one.title}</b>)}",
        "Turn",
    ),
}


@pytest.mark.parametrize(("body", "shown"), PASSED_ON.values(), ids=PASSED_ON)
def test_an_imported_file_is_shown_by_what_it_is_passed_on_to(
    tmp_path: Path, body: str, shown: str
) -> None:
    parsed = parse_page(tmp_path, {"docs/page.mdx": f"{_IMPORTS}\n{body}\n", **_FILES})
    assert read_text(parsed) == shown
    assert parsed.notes.components == ()


@pytest.mark.parametrize("data", [None, "[", "null", '{"href": "/x"}'])
def test_data_without_texts_is_reported(tmp_path: Path, data: str | None) -> None:
    body = f"{_IMPORTS}\nText.\n\n{{data.map((one) => <p>{{one}}</p>)}}\n"
    files = {} if data is None else {"docs/data.json": data}
    parsed = parse_page(tmp_path, {"docs/page.mdx": body, **files})
    assert read_text(parsed) == "Text."
    assert parsed.notes.left_out == 1


def test_lines_lead_to_the_page_and_sources_to_the_files(tmp_path: Path) -> None:
    files = {"docs/page.mdx": _SHOW, "docs/_part.mdx": "First.\n\n## Heading\n\nSecond.\n"}
    parsed = parse_page(tmp_path, files)
    first, second = chunk_doc(parsed, ChunkLimits())
    assert first.text == "Before.\n\nFirst."
    assert (first.start_line, first.end_line) == (3, 5)
    assert first.sources == (
        SourceLines("docs/page.mdx", 3, 5),
        SourceLines("docs/_part.mdx", 1, 1),
    )
    assert second.text == "## Heading\n\nSecond.\n\nAfter."
    assert second.url == "/docs/page#heading"
    assert (second.start_line, second.end_line) == (5, 7)
    assert second.sources == (
        SourceLines("docs/_part.mdx", 3, 5),
        SourceLines("docs/page.mdx", 5, 7),
    )
    assert [(heading.text, heading.line) for heading in parsed.document.headings] == [
        ("Heading", 5)
    ]
    assert [(block.start_line, block.end_line) for block in second.blocks] == [
        (5, 5),
        (5, 5),
        (7, 7),
    ]


def test_the_first_heading_of_a_partial_is_not_the_title_of_the_page(tmp_path: Path) -> None:
    files = {"docs/page.mdx": _SHOW, "docs/_part.mdx": "# Title of the part\n"}
    assert parse_page(tmp_path, files).document.title == "page"


def test_a_tag_in_code_or_a_comment_shows_no_partial(tmp_path: Path) -> None:
    source = "import Part from './_part.mdx';\n\nUse `<Part />`. {/* <Part /> */}\n\n"
    source += "```\n<Part />\n```\n"
    files = {"docs/page.mdx": source, "docs/_part.mdx": "Hidden."}
    assert "Hidden." not in parse_page(tmp_path, files).source


def test_expressions_without_a_value_are_counted_in_the_page_and_its_partials(
    tmp_path: Path,
) -> None:
    page = _SHOW + "\n{version} {/* a comment */} {'text'} {props.children}\n"
    files = {"docs/page.mdx": page, "docs/_part.mdx": "A {props.name}.\n\n{list.map((x) => x)}\n"}
    parsed = parse_page(tmp_path, files)
    assert parsed.notes.left_out == 3
    assert "{" not in read_text(parsed)


def test_the_id_of_a_heading_is_not_counted_as_an_expression(tmp_path: Path) -> None:
    parsed = parse_page(tmp_path, {"docs/page.mdx": "## Install {#install-it}\n\n{version}\n"})
    assert parsed.notes.left_out == 1


def test_directives_of_plugins_are_named(tmp_path: Path) -> None:
    page = "::include{file=x}\n\n::include{file=y}\n\nA {@include: ./x.mdx}.\n"
    first, second = parse_page(tmp_path, {"docs/page.mdx": page}).notes.warnings
    assert first.startswith("page.mdx: the page contains `::include` (2 times)")
    assert "`{@include: ./x.mdx}`" in second


def test_each_file_has_its_own_markdown_format_links_and_footnotes(tmp_path: Path) -> None:
    page = "import Part from './_part.md';\n\n[a][ref] {1}\n\n<Part />\n\n[ref]: ./x\n"
    files = {
        "docs/page.mdx": page,
        "docs/_part.md": "---\nmdx: {format: md}\n---\n[b][ref] {x} <b>bold</b>\n",
    }
    assert read_text(parse_page(tmp_path, files)) == "a 1\n\n[b][ref] {x} bold"
