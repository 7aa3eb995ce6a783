"""Document ids and partition keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.core.errors import DocumentIdError
from rag_pipeline.core.ids import DocId, parse_doc_id
from rag_pipeline.orchestration.partitions import to_doc_id, to_partition_key


@pytest.mark.parametrize(
    ("doc_id", "key"),
    [
        ("module-1/1.1-intro/index.md", "module-1/1.1-intro/index.md"),
        ("a b/größe.md", "a b/größe.md"),
        ("a,b.md", "a%2Cb.md"),
        ("wait...md", "wait%2E%2E.md"),
        ("50%.md", "50%25.md"),
        ("[a|b].md", "%5Ba%7Cb%5D.md"),
        (" a b.md", "%20a%20b.md"),
    ],
)
def test_plain_ids_are_readable_keys_and_the_rest_is_encoded(doc_id: str, key: str) -> None:
    assert to_partition_key(DocId(doc_id)) == key
    assert to_doc_id(key) == doc_id


parts = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\\")).filter(
    lambda part: part not in {"", ".", ".."}
)


@given(st.lists(parts, min_size=1, max_size=3).map("/".join))
def test_every_id_comes_back_and_no_key_disturbs_dagster(doc_id: str) -> None:
    key = to_partition_key(parse_doc_id(doc_id))
    assert to_doc_id(key) == doc_id
    assert not any(text in key for text in ("...", ",", "|", "[", "]", "\n", "\t"))
    assert key.strip(" ") == key


@pytest.mark.parametrize("key", ["", "a,b.md", "../a.md", "%2E%2E/a.md", "%61.md", "a//b.md", "%"])
def test_what_is_no_key_of_ours_is_refused(key: str) -> None:
    with pytest.raises(DocumentIdError):
        to_doc_id(key)
