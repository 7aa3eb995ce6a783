"""Tests that the pages of a site with all parts are read, addressed and cited as Docusaurus does.

The site in fixtures/docusaurus-full-site has three docs instances, three versions, two locales, a
blog, pages, partials and tabs. Docusaurus builds it here, with the packages of website/.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

import pytest

from rag_pipeline.core.models import ChunkLimits
from rag_pipeline.ingestion.discovery import discover_docs
from rag_pipeline.ingestion.parsing import parse_doc
from rag_pipeline.ingestion.report import chunk_folder
from rag_pipeline.ingestion.site.detection import detect_site
from rag_pipeline.ingestion.site.manifest import MANIFEST_FILE
from rag_pipeline_tests.site.conftest import WEBSITE
from rag_pipeline_tests.site.proof import BuiltSite, prove_citations

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rag_pipeline.ingestion.site.detection import DetectedSite
    from rag_pipeline_tests.site.proof import Proof
    from rag_pipeline_tests.site.records import ChunksRecord

pytestmark = pytest.mark.site

_FIXTURE: Final = Path(__file__).parents[1] / "fixtures" / "docusaurus-full-site"
_OWN_RULES: Final = ("api/", "i18n/fr/docusaurus-plugin-content-docs-api/")
"""The folders whose addresses and anchors follow rules of the site, and not those of Docusaurus."""

_CODE: Final = re.compile(r"^[ \t]*```.*?^[ \t]*```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
_JSX: Final = re.compile(r"</?[A-Z>]|^import .* from|^export |className=|\{[^}]*\}", re.MULTILINE)
_PLAIN_MARKDOWN: Final = ".md"
"""Suffix of the files that the site reads without JSX, so that braces stay in their text."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    folder = tmp_path_factory.mktemp("full") / "site"
    shutil.copytree(_FIXTURE, folder)
    (folder / "node_modules").symlink_to(WEBSITE / "node_modules")
    program = WEBSITE / "node_modules" / "@docusaurus" / "core" / "bin" / "docusaurus.mjs"
    run(["node", program, "build", folder], folder, NO_UPDATE_NOTIFIER="1")
    return folder


@pytest.fixture(scope="module")
def site(folder: Path) -> DetectedSite:
    """The site as its own Docusaurus reads it."""
    return detect_site(folder, lambda _: None, run_config=True)


def run(
    command: list[str | Path], folder: Path, *, code: int = 0, **variables: str
) -> tuple[str, str]:
    """Run a command without input, and return its output and its messages."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("SITE_")}
    done = subprocess.run(
        command,
        cwd=folder,
        env=own | {"NO_COLOR": "1", "DATA_DIR": str(folder.parent / "data")} | variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout, done.stderr


def run_program(folder: Path, *arguments: str, code: int = 0) -> str:
    """Run `rag-pipeline` in the folder of the site, and return its output."""
    command: list[str | Path] = [sys.executable, "-m", "rag_pipeline.cli", *arguments]
    return run(command, folder, code=code)[0]


def read_chunks(site: DetectedSite, manifest: Path | None = None) -> ChunksRecord:
    """Return all chunks of the site."""
    found = chunk_folder(site.docs_dir, site.config.site, ChunkLimits(), manifest, site.sources)
    return cast("ChunksRecord", json.loads(json.dumps(found)))


def list_built_pages(folder: Path) -> list[Mapping[str, Any]]:
    """Return the entries of the manifests of both locales."""
    manifests = [folder / "build" / MANIFEST_FILE, folder / "build" / "fr" / MANIFEST_FILE]
    return [page for path in manifests for page in json.loads(path.read_bytes())["pages"]]


def test_init_finds_all_parts_without_a_question(folder: Path) -> None:
    told = run_program(folder, "init", "--yes")
    own, translated = "", "i18n/fr/docusaurus-plugin-content-"
    for locale, base, prefix in (("en", "/", own), ("fr", "/fr/", translated)):
        for name, place, route in (
            ("docs@current", "docs" if not prefix else "docs/current", "docs/next"),
            ("docs@2.0", f"{'docs' if prefix else 'versioned_docs'}/version-2.0", "docs"),
            ("docs@1.0", f"{'docs' if prefix else 'versioned_docs'}/version-1.0", "docs/1.0"),
            ("api", "api" if not prefix else "docs-api/current", "reference"),
            ("manuals", "manuals" if not prefix else "docs-manuals/current", "manuals"),
            ("blog", "blog", "news"),
            ("pages", "src/pages" if not prefix else "pages", ""),
        ):
            assert f"source {name}:{locale}: {prefix}{place}, at {base}{route} of the site" in told
    assert "`numberPrefixParser` of api" in told
    run_program(folder, "init", "--check")


def test_each_listed_page_of_the_build_is_a_document_and_no_other(
    folder: Path, site: DetectedSite
) -> None:
    documents = read_chunks(site, folder / "build" / MANIFEST_FILE)["documents"]
    addresses = sorted(urlsplit(document["url"]).path for document in documents)
    built = sorted(page["permalink"] for page in list_built_pages(folder))
    listed = [address for address in built if not address.endswith("/guides/unlisted")]
    assert len(listed) < len(built)
    assert addresses == listed


def test_every_chunk_is_cited_with_its_own_page_and_heading(
    folder: Path, site: DetectedSite, report: Callable[[Proof], None]
) -> None:
    record = read_chunks(site)
    for part in ("documents", "chunks"):
        record[part] = [one for one in record[part] if not one["doc_path"].startswith(_OWN_RULES)]
    proof = prove_citations(BuiltSite(folder / "build", site.config.site.base_url), record)
    report(proof)
    assert not proof.faults, "\n".join(proof.faults)
    assert not record.get("failures")


def test_with_the_manifest_pages_with_rules_of_the_site_are_cited_too(
    folder: Path, site: DetectedSite, report: Callable[[Proof], None]
) -> None:
    record = read_chunks(site, folder / "build" / MANIFEST_FILE)
    proof = prove_citations(BuiltSite(folder / "build", site.config.site.base_url), record)
    report(proof)
    assert not proof.faults, "\n".join(proof.faults)
    anchors = {chunk["anchor"] for chunk in record["chunks"]}
    assert {"call-1", "call-2"} <= anchors


def test_the_manifest_differs_from_the_rules_only_where_the_site_has_its_own(
    folder: Path, site: DetectedSite
) -> None:
    manifest = folder / "build" / MANIFEST_FILE
    found = discover_docs(site.docs_dir, manifest=manifest, sources=site.sources)
    differing = {
        doc.doc_id
        for doc in found.docs
        if any("the site has" in text for text in parse_doc(doc, site.config.site).notes.warnings)
    }
    assert differing == {doc.doc_id for doc in found.docs if doc.doc_id.startswith(_OWN_RULES)}


def test_no_chunk_contains_jsx(site: DetectedSite) -> None:
    for chunk in read_chunks(site)["chunks"]:
        if not chunk["doc_path"].endswith(_PLAIN_MARKDOWN):
            found = _JSX.search(_CODE.sub("", chunk["text"]))
            assert found is None, (chunk["doc_path"], found)


def test_one_command_indexes_the_site_and_answers_cite_built_pages(
    folder: Path, site: DetectedSite
) -> None:
    (folder / "rag-pipeline.toml").unlink(missing_ok=True)
    run_program(folder, "ingest", "--site", ".")
    built = BuiltSite(folder / "build", site.config.site.base_url)
    for question, options, page in (
        ("What does a station measure?", (), "/handbook/docs"),
        ("What does a station measure?", ("--version", "1.0"), "/handbook/docs/1.0"),
        ("Que mesure une station ?", ("--locale", "fr"), "/handbook/fr/docs"),
        (
            "What does a cap for the hygrometer cost?",
            (),
            "/handbook/manuals/02-sensors/_spare-parts",
        ),
        ("What sits on the rain gauge?", (), "/handbook/news/2024/03/01/first-station"),
    ):
        found = json.loads(run_program(folder, "query", "--json", *options, "--", question))
        url = urlsplit(found["chunks"][0]["citation"]["url"])
        assert url.path == page
        file = built.find_file(url.path)
        assert file is not None
        assert url.fragment in built.page(file).ids
