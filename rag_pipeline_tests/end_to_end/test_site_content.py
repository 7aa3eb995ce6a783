"""Tests of answers from what sites contain besides prose: components, tabs, tables, API pages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.answering import open_assistant
from rag_pipeline.core.settings import load_settings
from rag_pipeline.retrieval import Query

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rag_pipeline.answering import Answer, Assistant

_SITE = Path(__file__).parents[1] / "fixtures" / "site-content"


@pytest.fixture(scope="module")
def assistant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Assistant]:
    """An assistant for a site with the pages, which the local model embedded."""
    root = tmp_path_factory.mktemp("site")
    shutil.copytree(_SITE, root, dirs_exist_ok=True)
    own = {"DOCS_DIR": str(root / "docs"), "DATA_DIR": str(root / "data"), "HOME": str(root)}
    command = [sys.executable, "-m", "rag_pipeline.cli", "ingest"]
    done = subprocess.run(
        command,
        env={"PATH": os.environ["PATH"]} | own,
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    settings = load_settings(
        _env_file="",
        docs_dir=root / "docs",
        data_dir=root / "data",
        site_base_url="https://cards.example/",
    )
    with open_assistant(settings) as opened:
        yield opened


def _ask(assistant: Assistant, question: str) -> Answer:
    return assistant.answer(Query(question))


@pytest.mark.parametrize(
    ("question", "quoted", "place"),
    [
        ("Where must I never stand?", "Never stand inside the yellow circle.", "first-run"),
        ("What do I do on the first run?", "Unlock the brake lever", "first-run"),
        ("How do I install the package?", "add @arm/driver-next", "install-the-package"),
        ("What is the default of maxCurrent?", "defaultValue: 3.5", "options-of-the-driver"),
        ("Which tools are there?", "Join steel plates with the torch.", "/docs/tools/"),
        ("What accuracy has calibration?", "0.05 millimetres", "/docs/category/calibration"),
        ("What is armId?", "Serial number of the arm", "#request"),
        ("What does status 409 mean?", "Another program holds the arm", "#responses"),
        ("How do I install on Windows?", "Run the installer with admin", "/docs/install"),
        ("Which key do I import on Linux?", "Import the key", "#signing-key-on-linux"),
        ("How do I clean the optical sensor?", "with ethanol", "#maintenance"),
    ],
)
def test_an_answer_quotes_the_right_part_and_cites_its_place(
    assistant: Assistant, question: str, quoted: str, place: str
) -> None:
    passage = _ask(assistant, question).passages[0]
    assert quoted in passage.text
    assert passage.citation.url.endswith(place)


def test_a_quoted_tab_is_cited_with_its_label(assistant: Assistant) -> None:
    citation = _ask(assistant, "How do I install on Windows?").passages[0].citation
    assert (citation.section, citation.tabs) == ("Windows", ("Windows",))
    citation = _ask(assistant, "Which key do I import on Linux?").passages[0].citation
    assert (citation.section, citation.tabs) == ("Signing key on Linux", ("Linux",))


@pytest.mark.parametrize(
    ("question", "figures"),
    [
        (
            "At which pressure does the circuit keep the oil?",
            [("image", "https://cards.example/img/circuit.png", "Circuit with relief valve")],
        ),
        ("What cools the oil?", [("diagram", "", "graph LR\n  tank --> radiator")]),
        ("How often do I replace the oil filter?", []),
    ],
)
def test_an_answer_shows_the_figures_beside_the_quoted_passage(
    assistant: Assistant, question: str, figures: list[tuple[str, str, str]]
) -> None:
    passage = _ask(assistant, question).passages[0]
    assert [(one.kind, one.address, one.text) for one in passage.figures] == figures
    record = _ask(assistant, question).to_dict()["passages"][0]
    assert [one["address"] for one in record["figures"]] == [one[1] for one in figures]


@pytest.mark.parametrize("asked", ["wrist.delay", "the delay of the wrist"])
def test_one_row_of_a_long_table_is_quoted_with_the_header(
    assistant: Assistant, asked: str
) -> None:
    passage = _ask(assistant, f"What is the default of {asked}?").passages[0]
    header, line, *rows = passage.text.split("\n")
    assert (header, line[:4]) == ("| Setting | Default | Meaning |", "|---")
    assert rows == ["| `wrist.delay` | 17 ms | Sets the delay of the wrist. |"]


@pytest.mark.parametrize(
    "question",
    [
        "Who is the Zebra robot kit for?",
        "What is on the icon of a walrus?",
        "What does the Mark Two cost?",
        "How do I bake bread?",
    ],
)
def test_what_a_page_does_not_show_is_never_quoted(assistant: Assistant, question: str) -> None:
    shown = _ask(assistant, question).text
    assert not any(word in shown for word in ("Zebra", "walrus", "900 euros"))
