"""The page about the service lists every route, field of a rating, event and code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest
from fastapi.routing import APIRoute

from rag_pipeline.core.settings import Settings
from rag_pipeline.serving import api, chat
from rag_pipeline.serving.api import answers, bodies, search, service
from rag_pipeline.serving.api.bodies import EVENTS, FeedbackRequest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reference" / "service.md").read_text("utf-8")
SERVING = Path(str(api.__file__)).parents[1]
ROUTE = re.compile(r"`(?:([A-Z]+) )?(/[^`?]*)")
PARAMETER = re.compile(r"\{[^}]*\}")
CODE = re.compile(r'"([A-Z]+(?:_[A-Z]+)+)"')
NOTICES = (  # noqa: SIM905  # shorter than a list
    """
    no_words sections book_size book_subject book_start book_next book_previous book_author
    book_no_author no_model model_unavailable model_declined not_grounded cut_off repeated
    partly_declined citations_added citations_corrected sentences_dropped sentences_marked
    search_changed names_missing scope filtered filter_unknown other_language
    selection_unrelated selection_uncertain selection_short
"""
).split()


def list_error_codes() -> set[str]:
    """Return the words in capital letters of the modules, except names of settings."""
    modules = [*SERVING.glob("*.py"), *SERVING.glob("api/*.py")]
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
        ("Offers of a refusal", set(get_args(bodies.Offer))),
        ("Notices", set(NOTICES)),
    ],
)
def test_the_page_lists_exactly_what_exists(heading: str, codes: set[str]) -> None:
    assert len(codes) > 2
    assert read_first_column(heading) == codes


def list_routes() -> set[str]:
    """Return method and path of each route below `/v1`, without the names of parameters."""
    found = [
        (method, route.path)
        for router in (answers.router, search.router, service.router, chat.router)
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in route.methods
    ]
    return {f"{method} {PARAMETER.sub('{}', path)}" for method, path in found if "/v1/" in path}


def test_the_page_lists_exactly_the_routes() -> None:
    section = PAGE.split("## Routes\n")[1].split("\n## ")[0]
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    listed = {
        f"{method} {PARAMETER.sub('{}', path)}"
        for cell in cells
        for method, path in ROUTE.findall(cell)
        if path.startswith("/v1/")
    }
    assert len(listed) > 7
    assert listed == list_routes()


def test_the_page_lists_exactly_the_fields_of_a_rating() -> None:
    row = next(line for line in PAGE.splitlines() if line.startswith("| `POST /v1/feedback`"))
    names = set(re.findall(r"`([^`]+)`", row.split("|")[2])) - {"up", "down"}
    assert names == set(FeedbackRequest.model_fields)
