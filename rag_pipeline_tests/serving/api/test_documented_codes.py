"""The page about the service lists every route, event, offer, notice and error code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from rag_pipeline.core.settings import Settings
from rag_pipeline.serving import api
from rag_pipeline.serving.api import responses
from rag_pipeline.serving.api.events import EVENTS

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reference" / "service.md").read_text("utf-8")
SERVING = Path(str(api.__file__)).parents[1]
CODE = re.compile(r'"([A-Z]+(?:_[A-Z]+)+)"')


def list_error_codes() -> set[str]:
    """Return the words in capital letters of the modules, except names of settings."""
    modules = [*SERVING.glob("api/*.py"), *SERVING.glob("protection/*.py")]
    found = {code for path in modules for code in CODE.findall(path.read_text("utf-8"))}
    return {code for code in found if code.lower() not in Settings.model_fields}


def read_first_column(heading: str) -> set[str]:
    """Return the code spans in the first cells of the table below a heading of the page."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return {span for cell in cells for span in re.findall(r"`([^`]+)`", cell)}


@pytest.mark.parametrize(
    ("heading", "codes"),
    [
        ("Errors", list_error_codes()),
        ("Events of an answer", set(EVENTS)),
        ("Offers of a refusal", set(get_args(responses.Offer))),
        ("Notices", {code for _, code, _ in responses.NOTICES} | {"hint"}),
    ],
)
def test_the_page_lists_exactly_what_exists(heading: str, codes: set[str]) -> None:
    assert len(codes) > 2
    assert read_first_column(heading) == codes
