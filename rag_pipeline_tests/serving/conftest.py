"""Fixtures of the small book, and of a service over it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from rag_pipeline_tests.serving.running_service import index_book, run_service

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rag_pipeline.core.settings import Settings


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings of the small book, which is indexed, without rate limits."""
    return index_book(tmp_path_factory.mktemp("book"), store_idle_s=30.0)


@pytest.fixture(scope="module")
def client(settings: Settings) -> Iterator[httpx.Client]:
    """A client of a service over the small book, without a model and without a log."""
    with run_service(settings) as url, httpx.Client(base_url=url, timeout=30) as client:
        yield client
