"""Tests of the buckets of documents."""

from __future__ import annotations

import pytest

from rag_pipeline.core.buckets import BUCKET_COUNT, bucket_of, bucket_of_key, find_buckets, is_in
from rag_pipeline.core.ids import DocId, make_file_key


@pytest.mark.parametrize(
    ("doc_id", "bucket"), [("intro.md", 156), ("module 1/größe.mdx", 197), ("\ud83d.md", 194)]
)
def test_the_bucket_of_a_document_never_changes(doc_id: str, bucket: int) -> None:
    assert bucket_of(doc_id) == bucket


def test_the_buckets_are_about_equally_large() -> None:
    sizes = [0] * BUCKET_COUNT
    for number in range(BUCKET_COUNT * 20):
        sizes[bucket_of(f"module-{number % 7}/page-{number}.md")] += 1
    assert min(sizes) >= 5
    assert max(sizes) <= 45


def test_documents_are_found_in_their_buckets() -> None:
    doc_ids = ["a.md", "b.md", "a.md"]
    buckets = find_buckets(doc_ids, 8)
    assert buckets == tuple(sorted({bucket_of("a.md", 8), bucket_of("b.md", 8)}))
    assert all(is_in(doc_id, buckets, 8) for doc_id in doc_ids)
    assert is_in("a.md", None)
    assert not is_in("a.md", ())


@pytest.mark.parametrize("count", [1, 7, 256])
def test_the_name_of_a_documents_files_tells_its_bucket(count: int) -> None:
    for doc_id in ("intro.md", "module 1/größe.mdx"):
        assert bucket_of_key(make_file_key(DocId(doc_id)), count) == bucket_of(doc_id, count)
