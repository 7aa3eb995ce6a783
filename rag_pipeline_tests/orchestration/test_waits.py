"""Tests of the waits after failures."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from rag_pipeline.orchestration.jobs import find_next_try, is_due
from rag_pipeline_tests.ingestion.records import TIME, make_discovered, make_failure


@pytest.mark.parametrize(
    ("attempts", "seconds"),
    [(1, 60), (2, 120), (3, 240), (6, 1920), (7, 3600), (1000, 3600)],
)
def test_the_wait_before_a_retry_doubles_from_a_minute_to_an_hour(
    attempts: int, seconds: int
) -> None:
    failed_at = datetime.fromisoformat(TIME)
    failure = replace(make_failure(attempts=attempts), stage="embeddings")
    wait = timedelta(seconds=seconds)
    assert not is_due(failure, make_discovered(), failed_at + wait - timedelta(seconds=1))
    assert is_due(failure, make_discovered(), failed_at + wait)
    set_back = failed_at - timedelta(seconds=1)
    assert is_due(failure, make_discovered(), set_back)
    assert find_next_try(failed_at, attempts, set_back) is None
    assert find_next_try(failed_at, attempts, failed_at) == failed_at + wait


def test_a_document_that_changed_or_never_failed_is_due_at_once() -> None:
    now = datetime.fromisoformat(TIME).astimezone(UTC)
    assert is_due(None, make_discovered(), now)
    assert is_due(make_failure(attempts=9), make_discovered(sha256="b"), now)
