"""Tests of the JSON of `rag-pipeline chunks`: fields, failures, and equal bytes in every run."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rag_pipeline.core.models import ChunkLimits, MarkdownFormat, SiteSettings
from rag_pipeline.core.sources import Edition
from rag_pipeline.ingestion.report import chunk_folder, document_record
from rag_pipeline_tests.ingestion.records import make_document

_DOCS_DIR = Path(__file__).parent.parent / "fixtures" / "docusaurus-edge-docs"
_SITE = SiteSettings("/", "edge", trailing_slash=False, markdown_format=MarkdownFormat.DETECT)


def test_documents_chunks_and_failures_have_the_named_fields(tmp_path: Path) -> None:
    (tmp_path / "module-1").mkdir()
    page = "---\ntags: [a]\n---\n# Title\n\nIntro.\n\n## Arms\n\nText.\n"
    (tmp_path / "module-1" / "b.md").write_text(page, encoding="utf-8")
    (tmp_path / "broken.md").write_text("---\ntitle: a: b\n---\n", encoding="utf-8")
    record = chunk_folder(tmp_path, SiteSettings("/base/", "docs"), ChunkLimits())
    assert record["documents"] == [
        {
            "doc_path": "module-1/b.md",
            "title": "Title",
            "description": "",
            "tags": ["a"],
            "learning_objectives": [],
            "sidebar_label": "",
            "sidebar_position": None,
            "content_type": "prose",
            "module": "module-1",
            "chapter": "",
            "url": "/base/docs/module-1/b",
            "headings": [
                {"level": 1, "text": "Title", "anchor": None, "line": 4},
                {"level": 2, "text": "Arms", "anchor": "arms", "line": 8},
            ],
        }
    ]
    chunks = record["chunks"]
    assert isinstance(chunks, list)
    assert len(chunks) == 2
    assert chunks[1] == {
        "chunk_id": "d0419eac3454f7d5",
        "doc_path": "module-1/b.md",
        "module": "module-1",
        "chapter": "",
        "title": "Title",
        "section_heading": "Arms",
        "heading_breadcrumb": ["Title", "Arms"],
        "heading_level": 2,
        "anchor": "arms",
        "url": "/base/docs/module-1/b#arms",
        "chunk_index": 1,
        "content_type": "prose",
        "tags": ["a"],
        "content_hash": "85d0991c07738b9b79fe14fe4aba91bc7a1f562efee6f146947fba4b8a7f59af",
        "word_count": 3,
        "token_count": 5,
        "start_line": 8,
        "end_line": 10,
        "text": "## Arms\n\nText.",
        "embedding_text": "Title > Arms\n\n## Arms\n\nText.",
        "blocks": [
            {
                "kind": "heading",
                "start": 0,
                "end": 7,
                "start_line": 8,
                "end_line": 8,
                "opens_with_link": False,
            },
            {
                "kind": "paragraph",
                "start": 9,
                "end": 14,
                "start_line": 10,
                "end_line": 10,
                "opens_with_link": False,
            },
        ],
    }
    (failure,) = record["failures"]
    assert isinstance(failure, dict)
    assert failure["doc_path"] == "broken.md"
    assert failure["error"] == "FRONT_MATTER_INVALID"
    assert str(failure["message"]).startswith("broken.md: line 2: front matter: ")


@pytest.mark.slow
def test_processes_with_different_hash_seeds_give_equal_bytes() -> None:
    script = (
        "import json, sys\n"
        "from pathlib import Path\n"
        "from rag_pipeline.core.models import ChunkLimits, MarkdownFormat, SiteSettings\n"
        "from rag_pipeline.ingestion.report import chunk_folder\n"
        "site = SiteSettings('/', 'edge', False, MarkdownFormat.DETECT)\n"
        "record = chunk_folder(Path(sys.argv[1]), site, ChunkLimits())\n"
        "print(json.dumps(record, ensure_ascii=True))\n"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script, str(_DOCS_DIR)],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[2])},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    here = json.dumps(chunk_folder(_DOCS_DIR, _SITE, ChunkLimits()), ensure_ascii=True)
    assert outputs == {here}


def test_the_record_of_a_document_contains_its_edition_unless_it_is_the_default() -> None:
    assert "edition" not in document_record(make_document())
    edition = Edition("docs", "2.0", "2.0.x", is_latest=False)
    assert document_record(replace(make_document(), edition=edition))["edition"] == {
        "source": "docs",
        "version": "2.0",
        "version_label": "2.0.x",
        "is_latest": False,
        "locale": None,
        "is_default_locale": True,
        "common_path": None,
        "is_post": False,
    }
