"""The Markdown files of a built site, `llms.txt` and `llms-full.txt`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.ingestion.publishing import publish_site
from rag_pipeline_tests.ingestion.site.written_site import WrittenSite

if TYPE_CHECKING:
    from pathlib import Path


def write_book(folder: Path, *, trailing_slash: bool | None = False) -> WrittenSite:
    """Write a site with pages in and outside of categories; its build is not finished."""
    site = WrittenSite(folder, trailing_slash=trailing_slash)
    welcome = site.add_page(
        "intro.md", "Hi, see [legs](part/legs.mdx#knee).", "/book/docs/intro", title="Welcome"
    )
    legs = site.add_page(
        "part/legs.mdx",
        "# Legs\n\nBack to [arms](./arms.md), ![a](/img/a.png).",
        "/book/docs/part/legs",
        title="Legs [new]",
        description="Two\nof them",
    )
    arms = site.add_page("part/arms.md", "Arms.", "/book/docs/part/arms", title="Arms")
    index = site.add_page("part/index.md", "Parts.", "/book/docs/part/", title="The parts")
    category = {
        "type": "category",
        "label": "Parts",
        "href": index["href"],
        "items": [legs, {"type": "category", "label": "Inner", "items": [arms]}],
    }
    end = site.add_page("end.md", "Bye.", "/book/docs/end", title="The end")
    site.sidebar = [welcome, category, {"type": "html", "value": "<hr>"}, end]
    return site


def read(folder: Path, name: str) -> str:
    """Return the text of a written file."""
    return (folder / name).read_text(encoding="utf-8")


def test_each_page_has_a_markdown_file_with_links_of_the_site(tmp_path: Path) -> None:
    build = write_book(tmp_path).finish()
    result = publish_site(build)
    assert (result.pages, result.failures) == (5, ())
    written = {path.relative_to(build).as_posix() for path in build.rglob("*.md")}
    pages = {"docs/intro", "docs/end", "docs/part", "docs/part/legs", "docs/part/arms"}
    assert written == {f"{page}.md" for page in pages}
    assert set(result.files) == {*written, "llms.txt", "llms-full.txt"}
    assert read(build, "docs/intro.md") == (
        "# Welcome\n\nHi, see [legs](/book/docs/part/legs#knee).\n"
    )
    assert read(build, "docs/part/legs.md") == (
        "# Legs\n\nBack to [arms](/book/docs/part/arms), ![a](/book/img/a.png).\n"
    )


def test_the_index_has_the_order_of_the_sidebar(tmp_path: Path) -> None:
    build = write_book(tmp_path).finish()
    publish_site(build, "https://book.example")
    assert read(build, "llms.txt") == (
        "# A Book\n\n> About robots\n\n"
        "## Start here\n\n"
        "- [Welcome](https://book.example/book/docs/intro.md)\n\n"
        "## Parts\n\n"
        "- [The parts](https://book.example/book/docs/part.md)\n"
        "- [Legs \\[new\\]](https://book.example/book/docs/part/legs.md): Two of them\n"
        "- [Arms](https://book.example/book/docs/part/arms.md)\n\n"
        "## More pages\n\n"
        "- [The end](https://book.example/book/docs/end.md)\n"
    )


def test_the_full_text_has_each_page_once_with_its_address(tmp_path: Path) -> None:
    build = write_book(tmp_path).finish()
    publish_site(build, "https://book.example")
    text = read(build, "llms-full.txt")
    heads = [line for line in text.split("\n") if line.startswith("# ")]
    assert heads == ["# A Book", "# Welcome", "# The parts", "# Legs", "# Arms", "# The end"]
    assert "# Legs\n\nSource: https://book.example/book/docs/part/legs\n\nBack to" in text


def test_addresses_with_a_slash_have_a_second_file(tmp_path: Path) -> None:
    site = write_book(tmp_path, trailing_slash=True)
    site.sidebar.append(site.add_page("part/i.md", "I.", "/book/docs/part/index", title="I"))
    site.sidebar.append(site.add_page("root.md", "Root.", "/book/", title="Root"))
    build = site.finish()
    publish_site(build)
    assert read(build, "docs/part.md") == "# The parts\n\nParts.\n"
    assert read(build, "docs/intro/index.md") == read(build, "docs/intro.md")
    # The page at `part/index/` has this file, so the page at `part/` has only `part.md`.
    assert read(build, "docs/part/index.md") == "# I\n\nI.\n"
    assert read(build, "index.md") == "# Root\n\nRoot.\n"
    assert "](/book/index.md)" in read(build, "llms.txt")
    assert "[legs](/book/docs/part/legs/#knee)" in read(build, "docs/intro.md")


def test_unlisted_pages_and_old_versions_are_written_but_not_listed(tmp_path: Path) -> None:
    site = write_book(tmp_path)
    site.sidebar.append(
        site.add_page("secret.md", "S.", "/book/docs/secret", title="Secret", unlisted=True)
    )
    site.add_page("old.md", "O.", "/book/docs/1.0/old", title="Old", version="1.0")
    site.add_page("loose.md", "L.", "/book/docs/loose", title="Loose")
    build = site.finish()
    publish_site(build)
    assert read(build, "docs/secret.md") == "# Secret\n\nS.\n"
    assert read(build, "docs/1.0/old.md") == "# Old\n\nO.\n"
    listed = read(build, "llms.txt")
    assert "secret" not in listed
    assert "old" not in listed
    assert listed.endswith("- [The end](/book/docs/end.md)\n- [Loose](/book/docs/loose.md)\n")


def test_metadata_of_deleted_pages_is_ignored(tmp_path: Path) -> None:
    site = write_book(tmp_path)
    site.add_page("gone.md", "G.", "/book/docs/gone")
    site.add_page("unbuilt.md", "U.", "/book/docs/unbuilt")
    (tmp_path / "docs" / "gone.md").unlink()
    (tmp_path / "build" / "docs" / "unbuilt.html").unlink()
    assert publish_site(site.finish()).pages == 5


def test_the_list_of_a_category_is_a_page(tmp_path: Path) -> None:
    site = write_book(tmp_path)
    inner = site.sidebar[1]["items"][1]
    inner["href"] = "/book/docs/category/inner"
    inner["description"] = "What is inside."
    site.add_html(inner["href"])
    build = site.finish()
    publish_site(build)
    assert read(build, "docs/category/inner.md") == (
        "# Inner\n\nWhat is inside.\n\n- [Arms](/book/docs/part/arms)\n"
    )


def test_a_page_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    site = write_book(tmp_path)
    (tmp_path / "docs" / "end.md").write_text("---\ntitle: [\n---\n", encoding="utf-8")
    build = site.finish()
    result = publish_site(build)
    assert [failure.doc_path for failure in result.failures] == ["docs/end.md"]
    assert result.pages == 4
    assert "end.md" not in read(build, "llms.txt")
    assert result.to_json()["failures"]


def test_writing_again_gives_the_same_files(tmp_path: Path) -> None:
    build = write_book(tmp_path).finish()
    first = {name: read(build, name) for name in publish_site(build).files}
    assert {name: read(build, name) for name in publish_site(build).files} == first
    assert not list(build.rglob("*.part"))


@pytest.mark.parametrize("missing", ["build/404.html", ".docusaurus/docusaurus.config.mjs"])
def test_a_missing_build_is_named_with_its_remedy(tmp_path: Path, missing: str) -> None:
    build = write_book(tmp_path).finish()
    (tmp_path / missing).unlink()
    with pytest.raises(ConfigurationError, match=r"--site: .*make site"):
        publish_site(build)


@pytest.mark.parametrize("text", ['export default {"title', "export default {};", ""])
def test_a_damaged_configuration_is_named_with_its_remedy(tmp_path: Path, text: str) -> None:
    build = write_book(tmp_path).finish()
    (tmp_path / ".docusaurus" / "docusaurus.config.mjs").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"--site: .*config\.mjs.*make site"):
        publish_site(build)


def test_damaged_metadata_is_named_with_its_remedy(tmp_path: Path) -> None:
    site = write_book(tmp_path)
    build = site.finish()
    (site.metadata / "site-docs-end-md.json").write_text('{"title": ', encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"--site: .*end-md\.json.*make site"):
        publish_site(build)


@pytest.mark.parametrize(
    ("target", "address"),
    [
        ("legs.mdx", "/book/docs/part/legs"),
        ("../intro.md?a=b#c", "/book/docs/intro?a=b#c"),
        ("/part/legs.mdx", "/book/docs/part/legs"),
        ("/docs/intro.md", "/book/docs/intro"),
        ("@site/docs/end.md", "/book/docs/end"),
        ("/docs/end", "/book/docs/end"),
        ("/book/docs/end", "/book/docs/end"),
        ("legs", "/book/docs/part/legs"),
        ("../end", "/book/docs/end"),
        ("#here", "/book/docs/part/arms#here"),
        ("https://e.org/x_(y)", "https://e.org/x_%28y%29"),
        ("<https://e.org/a b>", "https://e.org/a%20b"),
        ("<legs.mdx?a=b c#d (e)>", "/book/docs/part/legs?a=b%20c#d%20%28e%29"),
        ("<pathname:///a b.html>", "/a%20b.html"),
        ("n" * 300, "/book/docs/part/" + "n" * 300),
        ("n" * 300 + ".md", None),
        ("mailto:a@e.org", "mailto:a@e.org"),
        ("pathname:///api/x.html", "/api/x.html"),
        ("/img/a%20b.png", "/book/img/a%20b.png"),
        ("missing.md", None),
        ("table.csv", None),
    ],
)
def test_each_kind_of_link_gets_its_address(
    tmp_path: Path, target: str, address: str | None
) -> None:
    site = write_book(tmp_path)
    (tmp_path / "docs" / "part" / "table.csv").write_text("a", encoding="utf-8")
    (tmp_path / "docs" / "part" / "arms.md").write_text(f"[x]({target})", encoding="utf-8")
    build = site.finish()
    publish_site(build)
    expected = "x" if address is None else f"[x]({address})"
    assert read(build, "docs/part/arms.md") == f"# Arms\n\n{expected}\n"


def test_pages_that_differ_by_a_slash_have_different_files(tmp_path: Path) -> None:
    site = write_book(tmp_path, trailing_slash=None)
    site.sidebar.append(site.add_page("p.md", "P.", "/book/docs/part", title="P"))
    build = site.finish()
    publish_site(build)
    assert read(build, "docs/part.md") == "# P\n\nP.\n"
    assert read(build, "docs/part/index.md") == "# The parts\n\nParts.\n"
    assert "[The parts](/book/docs/part/index.md)" in read(build, "llms.txt")


def test_loose_pages_and_pages_in_no_sidebar_share_a_section(tmp_path: Path) -> None:
    site = write_book(tmp_path)
    site.add_page("loose.md", "L.", "/book/docs/loose", title="Loose")
    build = site.finish()
    publish_site(build)
    assert read(build, "llms.txt").endswith(
        "## More pages\n\n- [The end](/book/docs/end.md)\n- [Loose](/book/docs/loose.md)\n"
    )


def test_a_page_that_fails_loses_its_old_file(tmp_path: Path) -> None:
    build = write_book(tmp_path).finish()
    publish_site(build)
    (tmp_path / "docs" / "end.md").write_text("---\ntitle: [\n---\n", encoding="utf-8")
    publish_site(build)
    assert not (build / "docs" / "end.md").exists()


def test_files_that_replace_those_of_the_site_are_reported(tmp_path: Path) -> None:
    build = write_book(tmp_path).finish()
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "llms.txt").write_text("Own.", encoding="utf-8")
    assert publish_site(build).replaced == ("llms.txt",)
