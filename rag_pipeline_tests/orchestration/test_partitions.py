"""Tests of the conversion between document ids and partition keys."""

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
def test_only_special_characters_of_an_id_are_encoded_in_its_key(doc_id: str, key: str) -> None:
    assert to_partition_key(DocId(doc_id)) == key
    assert to_doc_id(key) == doc_id


parts = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/\\")).filter(
    lambda part: part not in {"", ".", ".."}
)


@given(st.lists(parts, min_size=1, max_size=3).map("/".join))
def test_every_id_survives_the_round_trip_and_no_key_has_special_characters(doc_id: str) -> None:
    key = to_partition_key(parse_doc_id(doc_id))
    assert to_doc_id(key) == doc_id
    assert not any(text in key for text in ("...", ",", "|", "[", "]", "\n", "\t"))
    assert key.strip(" ") == key


@pytest.mark.parametrize("key", ["", "a,b.md", "../a.md", "%2E%2E/a.md", "%61.md", "a//b.md", "%"])
def test_a_text_that_is_not_a_partition_key_is_rejected(key: str) -> None:
    with pytest.raises(DocumentIdError):
        to_doc_id(key)
