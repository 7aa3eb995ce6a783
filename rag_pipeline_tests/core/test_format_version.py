"""The format version moves with the rules: a change of chunks without a new version fails here.

The corpus is the folder of awkward pages and the inputs of all case files. When a rule changes on
purpose, raise FORMAT_VERSION and record the new digest that the failing test shows.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from rag_pipeline.core.ids import parse_doc_id
from rag_pipeline.core.models import ChunkLimits, DiscoveredDoc, SiteSettings
from rag_pipeline.core.terms import extract_terms
from rag_pipeline.core.vectors import FORMAT_VERSION
from rag_pipeline.ingestion.chunking import chunk_doc
from rag_pipeline.ingestion.export import chunk_folder, chunk_record
from rag_pipeline.ingestion.parsing import parse_doc
from rag_pipeline_tests.cases.case_files import read_cases

_DOCS_DIR = Path(__file__).parent.parent / "fixtures" / "docusaurus-edge-docs"
_RECORDED = {3: "0b12c4b40b13e619b48f98a5b495909b4ec226805f7ae5c297b336807553e350"}


def test_a_change_of_chunks_or_terms_raises_the_format_version() -> None:
    records = [chunk_folder(_DOCS_DIR, SiteSettings(), ChunkLimits())["chunks"]]
    for number, case in enumerate(read_cases()):
        doc_id = parse_doc_id(f"cases/{case.file}-{number}.md")
        doc = DiscoveredDoc(doc_id, Path(doc_id), "", 0, 0)
        parsed = parse_doc(doc, SiteSettings(), case.source.encode())
        for limits in (ChunkLimits(), ChunkLimits(20, 40, 60, 10)):
            chunks = chunk_doc(parsed, limits)
            records.append([chunk_record(chunk) for chunk in chunks])
            records.append([extract_terms(chunk.text) for chunk in chunks])
    digest = hashlib.sha256(json.dumps(records, sort_keys=True).encode()).hexdigest()
    assert {FORMAT_VERSION: digest} == _RECORDED
