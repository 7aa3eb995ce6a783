"""Tests that no file outside the root of a site is read or written, whatever the site contains."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from rag_pipeline.core.errors import RagPipelineError
from rag_pipeline.core.models import ChunkLimits
from rag_pipeline.core.site.files import SiteFileError, write_site_file
from rag_pipeline.ingestion.publishing import publish_site
from rag_pipeline.ingestion.report import chunk_folder
from rag_pipeline.ingestion.site.detection import detect_site

if TYPE_CHECKING:
    from collections.abc import Callable

SECRET: Final = "secret-4711"  # noqa: S105  # the attacks look for it
CONFIG: Final = """
export default {
  url: 'https://example.org', baseUrl: '/', %s
  presets: [['classic', {docs: {%s}, blog: {%s}, pages: {%s}}]],
};
"""
RAW: Final = (
    "import Code from '!!raw-loader!%s';\nimport Block from '@theme/CodeBlock';\n\n"
    "# Page\n\n<Block>{Code}</Block>\n"
)
PARTIAL: Final = "import Part from '%s';\n\n# Page\n\n<Part />\n"


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A site with one page, beside a folder with a secret, in no repository."""
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    folder = tmp_path / "site"
    write(folder, "docs/index.md", "# Start\n\nText of the site.\n")
    write(folder, "docusaurus.config.js", CONFIG % ("", "", "", ""))
    for name in ("secret.md", "secret.txt", "secret.js", "docs/secret.md"):
        write(tmp_path / "outside", name, f"# Secret\n\n{SECRET}\n")
    write(tmp_path / "outside", "secret.json", json.dumps({"url": f"https://{SECRET}.org"}))
    return folder


def write(folder: Path, name: str, text: str) -> None:
    """Write a file and the folders that it needs."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def read(site: Path) -> str:
    """Return everything that the program shows of a site: its settings, chunks and errors."""
    try:
        found = detect_site(site, lambda _: None)
    except RagPipelineError as error:
        return str(error)
    shown = [repr(found)]
    try:
        limits = ChunkLimits()
        chunks = chunk_folder(found.docs_dir, found.config.site, limits, sources=found.sources)
        shown.append(json.dumps(chunks))
    except RagPipelineError as error:
        shown.append(str(error))
    return "\n".join(shown)


def link(name: str, target: str) -> Callable[[Path], None]:
    """Return a function that adds a link to a site. `..` in the target begins at the link."""

    def add(site: Path) -> None:
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        if (site / name).is_dir():
            (site / name / "index.md").unlink()
            (site / name).rmdir()
        (site / name).symlink_to(target)

    return add


def page(text: str, *more: Callable[[Path], None]) -> Callable[[Path], None]:
    """Return a function that adds a page to a site."""

    def add(site: Path) -> None:
        for one in more:
            one(site)
        write(site, "docs/page.mdx", text)

    return add


def config(
    i18n: str = "", docs: str = "", blog: str = "", pages: str = ""
) -> Callable[[Path], None]:
    """Return a function that changes the configuration of a site."""
    return lambda site: write(site, "docusaurus.config.js", CONFIG % (i18n, docs, blog, pages))


def listen(site: Path) -> None:
    """Put a socket among the pages."""
    place = Path.cwd()
    os.chdir(site / "docs")  # the path of a socket is short
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind("page.md")
    finally:
        os.chdir(place)


def version(name: str) -> Callable[[Path], None]:
    """Return a function that adds a version of the docs."""

    def add(site: Path) -> None:
        (site / "versioned_docs" / "version-x").mkdir(parents=True)
        (site / "versioned_docs" / "version-..").mkdir()
        write(site, "versions.json", json.dumps([name]))

    return add


READING = {
    "page that is a link": link("docs/page.md", "../../outside/secret.md"),
    "folder that is a link": link("docs/more", "../../outside/docs"),
    "docs folder that is a link": link("docs", "../outside/docs"),
    "chain of links": page(
        "# P\n", link("docs/a.md", "b.md"), link("docs/b.md", "../../outside/secret.md")
    ),
    "raw file above": page(RAW % "../../outside/secret.txt"),
    "raw file of the site folder": page(RAW % "@site/../outside/secret.txt"),
    "raw file by its path": page(RAW % "/etc/hostname"),
    "raw file through a link": page(
        RAW % "./x.txt", link("docs/x.txt", "../../outside/secret.txt")
    ),
    "raw file in a linked folder": page(RAW % "./x/secret.txt", link("docs/x", "../../outside")),
    "environment": page(RAW % "./x/environ", link("docs/x", "/proc/self")),
    "environment by a link": page(RAW % "./x.txt", link("docs/x.txt", "/proc/self/environ")),
    "partial above": page(PARTIAL % "../../outside/secret.md"),
    "partial through a link": page(
        PARTIAL % "./_x.md", link("docs/_x.md", "../../outside/secret.md")
    ),
    "partial of a partial": page(
        PARTIAL % "./_x.md",
        lambda site: write(site, "docs/_x.md", PARTIAL % "../../outside/secret.md"),
    ),
    "pipe as a page": lambda site: os.mkfifo(site / "docs" / "page.md"),
    "pipe as a partial": page(PARTIAL % "./_x.md", lambda site: os.mkfifo(site / "docs" / "_x.md")),
    "raw pipe": page(RAW % "./x.txt", lambda site: os.mkfifo(site / "docs" / "x.txt")),
    "endless device as a page": link("docs/page.md", "/dev/zero"),
    "raw endless device": page(RAW % "./x.txt", link("docs/x.txt", "/dev/zero")),
    "terminal": page(RAW % "./x.txt", link("docs/x.txt", "/dev/tty")),
    "socket as a page": listen,
    "large page": lambda site: write(site, "docs/page.md", SECRET + "x" * 9_000_000),
    "folder of the docs": config(docs="path: '/etc'"),
    "folder of the docs above": config(docs="path: '../outside/docs'"),
    "folder of the docs by a link": lambda site: (
        link("linked", "../outside/docs")(site),
        config(docs="path: 'linked'")(site),
    ),
    "folder of the blog": config(blog="path: '../outside/docs'"),
    "folder of the pages": config(pages="path: '../outside'"),
    "folder of translations": config(i18n="i18n: {path: '../outside', locales: ['en', 'fr']},"),
    "folder of a locale": config(
        i18n="i18n: {locales: ['en', 'fr'], localeConfigs: {fr: {path: '../../outside'}}},"
    ),
    "name of a version": version("./../../../outside/docs"),
    "versions in a link": link("versions.json", "../outside/secret.json"),
    "configuration that is a link": lambda site: (
        (site / "docusaurus.config.js").unlink(),
        (site / "docusaurus.config.js").symlink_to("../outside/secret.js"),
    ),
    "configuration that is a pipe": lambda site: (
        (site / "docusaurus.config.js").unlink(),
        os.mkfifo(site / "docusaurus.config.js"),
    ),
    "module outside": lambda site: write(
        site, "docusaurus.config.js", "export default require('../outside/secret.json');"
    ),
}


@pytest.mark.parametrize("prepare", READING.values(), ids=READING)
def test_nothing_outside_a_site_is_read(site: Path, prepare: Callable[[Path], None]) -> None:
    prepare(site)
    assert SECRET not in read(site)


def test_a_link_inside_the_repository_is_followed(site: Path) -> None:
    (site.parent / ".git").mkdir()
    link("docs/page.md", "../../outside/secret.md")(site)
    assert SECRET in read(site)


def test_a_repository_in_the_home_folder_is_not_the_root_of_its_sites(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (site.parent / ".git").mkdir()
    monkeypatch.setenv("HOME", str(site.parent))
    link("docs/page.md", "../../outside/secret.md")(site)
    assert SECRET not in read(site)


def build(site: Path, permalink: str, source: str = "@site/docs/index.md") -> None:
    """Write what a build of the site would leave, with one page."""
    write(site, "build/404.html", "")
    write(site, "build/docs/index.html", "")
    generated = {"baseUrl": "/", "title": "Site", "trailingSlash": False}
    write(site, ".docusaurus/docusaurus.config.mjs", f"export default {json.dumps(generated)};")
    folder = ".docusaurus/docusaurus-plugin-content-docs/default"
    version_record = {"version": "current", "isLast": True, "docsSidebars": {}}
    write(site, f"{folder}/p/current.json", json.dumps({"version": version_record}))
    record = {"source": source, "permalink": permalink, "title": "Page", "version": "current"}
    write(site, f"{folder}/page.json", json.dumps(record))


def list_files(folder: Path) -> dict[str, str]:
    """Return the text of each file below a folder, by its path; links are not followed."""
    return {
        str(path.relative_to(folder)): path.read_text(encoding="utf-8", errors="replace")
        for path in folder.rglob("*")
        if path.is_file() and not path.is_symlink()
    }


@pytest.mark.parametrize(
    "permalink",
    ["/..%2f..%2foutside/new", "/../outside/new", "/docs/../../../outside/new", "//outside/new"],
)
def test_no_permalink_leads_a_written_file_out_of_the_build(site: Path, permalink: str) -> None:
    build(site, permalink)
    write(site.parent, "outside/new.html", "")
    write(site, "build/new.html", "")
    before = list_files(site.parent / "outside")
    with pytest.raises(RagPipelineError, match="no page"):
        publish_site(site / "build")
    assert list_files(site.parent / "outside") == before


@pytest.mark.parametrize("source", ["@site/../outside/secret.md", "@site/docs/linked.md"])
def test_no_page_outside_a_site_is_published(site: Path, source: str) -> None:
    link("docs/linked.md", "../../outside/secret.md")(site)
    build(site, "/docs", source)
    with pytest.raises(RagPipelineError, match="no page"):
        publish_site(site / "build")


def test_links_with_the_names_of_written_files_are_replaced_and_not_followed(site: Path) -> None:
    build(site, "/docs")
    target = site.parent / "outside" / "secret.txt"
    before = list_files(site.parent / "outside")
    for name in ("docs.md", ".docs.md.part", "llms.txt", "llms-full.txt"):
        (site / "build" / name).symlink_to(target)
    assert publish_site(site / "build").pages == 1
    assert list_files(site.parent / "outside") == before
    assert not (site / "build" / "llms.txt").is_symlink()


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/x", "linked/x", "a//x", "x\0"])
def test_no_name_leads_a_written_file_out_of_its_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "linked").symlink_to(tmp_path)
    with pytest.raises(SiteFileError):
        write_site_file(folder, name, "text")
    assert list_files(tmp_path) == {}
