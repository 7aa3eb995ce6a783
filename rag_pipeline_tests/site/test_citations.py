"""Tests that all citations of the textbook are right, and that its site has no broken link."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast
from urllib.parse import unquote

import pytest

from rag_pipeline.ingestion.report import chunk_folder
from rag_pipeline_tests.site.conftest import ROOT, WEBSITE
from rag_pipeline_tests.site.proof import check_links, prove_citations

if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_pipeline.core.settings import Settings
    from rag_pipeline_tests.site.proof import BuiltSite, Proof
    from rag_pipeline_tests.site.records import ChunksRecord

pytestmark = pytest.mark.site

SHOWN_FAULTS = 50


@pytest.fixture(scope="module")
def record(default_settings: Settings) -> ChunksRecord:
    """Return all chunks of the textbook, as `rag-pipeline chunks --json` prints them."""
    docs_dir = ROOT / default_settings.docs_dir
    record = chunk_folder(docs_dir, default_settings.site, default_settings.chunk_limits)
    return cast("ChunksRecord", json.loads(json.dumps(record)))


@pytest.mark.usefixtures("built_site")
def test_the_cited_pages_are_the_pages_that_docusaurus_built(record: ChunksRecord) -> None:
    generated = WEBSITE / ".docusaurus"
    known = json.loads((generated / "globalData.json").read_text(encoding="utf-8"))
    docs = known["docusaurus-plugin-content-docs"]["default"]["versions"][0]["docs"]
    served = {(doc["id"], doc["path"]) for doc in docs}
    made_of = {}
    for path in (generated / "docusaurus-plugin-content-docs/default").glob("site-*.json"):
        page = json.loads(path.read_text(encoding="utf-8"))
        # The folder may still contain files of deleted pages.
        if (page["id"], page["permalink"]) in served:
            # Docusaurus adds the trailing slash later, when it creates the routes.
            made_of[page["source"]] = page["permalink"].rstrip("/")
    cited = {
        f"@site/docs/{document['doc_path']}": unquote(document["url"]).rstrip("/")
        for document in record["documents"]
    }
    assert not record.get("failures")
    assert cited == made_of


def test_every_chunk_is_cited_with_its_own_page_and_heading(
    built_site: BuiltSite, record: ChunksRecord, report: Callable[[Proof], None]
) -> None:
    proof = prove_citations(built_site, record)
    report(proof)
    assert not proof.faults, "\n".join(proof.faults[:SHOWN_FAULTS])
    assert proof.seen["pages"] == len(record["documents"])
    assert proof.seen["chunks"] == len(record["chunks"])
    assert proof.seen["anchors"] > 0


def test_every_link_of_the_site_leads_to_a_built_file_and_id(
    built_site: BuiltSite, report: Callable[[Proof], None]
) -> None:
    proof = check_links(built_site)
    report(proof)
    assert not proof.faults, "\n".join(proof.faults[:SHOWN_FAULTS])
    assert proof.seen["links"] > 0
