"""What a terminal shows while an ingestion runs."""

from __future__ import annotations

import io
import logging
import sys
from typing import TYPE_CHECKING

from rag_pipeline.cli.terminal import IngestionProgress

if TYPE_CHECKING:
    import pytest

LOGGER = logging.getLogger("rag_pipeline.ingestion")


class Terminal(io.StringIO):
    """A terminal that keeps what is written to it."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_the_step_and_the_number_of_documents_beside_a_bar(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    with IngestionProgress(7):
        LOGGER.info("embedding 9 chunks of [one] document")
    assert "0/7" in terminal.getvalue()
    assert "embedding 9 chunks of [one] document" in terminal.getvalue()


def test_a_file_gets_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with IngestionProgress(7):
        LOGGER.info("embedding 9 chunks")
    assert capsys.readouterr().err == ""
