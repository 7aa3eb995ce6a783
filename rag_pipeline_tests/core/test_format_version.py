"""A change of chunks or terms without a new FORMAT_VERSION fails here.

The corpus consists of the pages in docusaurus-edge-docs and the inputs of all case files. If you
change a rule on purpose, increase FORMAT_VERSION and record the digest that the failing test shows.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from rag_pipeline.core.ids import parse_doc_id
from rag_pipeline.core.models import ChunkLimits, DiscoveredDoc, SiteSettings
from rag_pipeline.core.text.terms import extract_terms
from rag_pipeline.core.vectors import FORMAT_VERSION
from rag_pipeline.ingestion.chunking import chunk_doc
from rag_pipeline.ingestion.parsing import parse_doc
from rag_pipeline.ingestion.report import chunk_folder, chunk_record
from rag_pipeline_tests.cases.case_files import read_cases

_DOCS_DIR = Path(__file__).parent.parent / "fixtures" / "docusaurus-edge-docs"
_RECORDED = {18: "13f2da19031369d7c52ec269c2b12492221382dd9254c7bc522e22368526fe34"}


def test_chunks_and_terms_do_not_change_without_a_new_format_version() -> None:
    records = [chunk_folder(_DOCS_DIR, SiteSettings(), ChunkLimits())["chunks"]]
    for number, case in enumerate(read_cases()):
        doc_id = parse_doc_id(f"cases/{case.file}-{number}.md")
        doc = DiscoveredDoc(doc_id, Path("/site/docs") / doc_id, "", 0, 0)
        parsed = parse_doc(doc, SiteSettings(), case.source.encode())
        for limits in (ChunkLimits(), ChunkLimits(20, 40, 60, 10)):
            chunks = chunk_doc(parsed, limits)
            records.append([chunk_record(chunk) for chunk in chunks])
            records.append([extract_terms(chunk.text) for chunk in chunks])
    digest = hashlib.sha256(json.dumps(records, sort_keys=True).encode()).hexdigest()
    assert {FORMAT_VERSION: digest} == _RECORDED
