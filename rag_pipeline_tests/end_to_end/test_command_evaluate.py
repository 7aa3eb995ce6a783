"""`rag-pipeline evaluate` and `sweep` on a foreign book with a test set of its own."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from rag_pipeline_tests.end_to_end.command import Command, Outcome, assert_one_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rag_pipeline_tests.loopback import LoopbackServer


SECTIONS = [
    ("intro.md", "Start", 10),
    ("intro.md", "Why", 21),
    ("module-1/large.md", "Two", 42),
    ("module-1/large.md", "Three", 53),
    ("module-1/small page.md", "Alone", 61),
]
QUERIES: list[dict[str, Any]] = [
    {
        "id": f"q{robot}-{number}",
        "question": f"{words} robot {robot} {words}",
        "expected": [{"doc_path": doc_path, "section_heading": heading}],
        "split": "report" if number else "tune",
    }
    for doc_path, heading, robot in SECTIONS
    for number, words in enumerate(("by rule moves", "rule of"))
]
BROKEN = "---\ntitle: [\n---\n"


@pytest.fixture
def test_set(command: Command) -> Path:
    """Ten questions about the five sections of one chunk."""
    return write(command.root / "set.json", {"queries": QUERIES})


def write(path: Path, content: object) -> Path:
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_foreign_book_gets_its_report_from_one_command(
    call: Callable[..., Outcome], command: Command, test_set: Path
) -> None:
    page = command.root / "new folder" / "report.html"
    first = call("evaluate", "--test-set", str(test_set), "--html", str(page), "--json")
    assert (first.code, first.json["passed"]) == (0, True), first
    assert "3 processed" in first.err
    assert first.json["report"]["overall"]["document"]["Success@5"]["count"] == 10
    assert page.read_text("utf-8").startswith("<!doctype html>")
    again = call("evaluate", "--accept", EVALUATION_TEST_SET=str(test_set))
    assert again.code == 0
    assert "no baseline was accepted yet" in again.out
    command.book.edit("intro.md", "title: Intro", "title: Opening")
    third = call("evaluate", "--test-set", str(test_set), "--json").json
    loss = {gate["name"]: gate for gate in third["gates"]}["no_loss_section_ndcg_at_10"]
    assert "of 10 questions differ" in loss["sentence"]


def test_test_sets_of_one_name_have_a_baseline_each(
    call: Callable[..., Outcome], command: Command, test_set: Path
) -> None:
    other = command.root / "other" / test_set.name
    other.parent.mkdir()
    write(other, {"queries": QUERIES[:4]})
    assert call("evaluate", "--accept", "--test-set", str(test_set)).code == 0
    unaccepted = call("evaluate", "--test-set", str(other))
    assert "no baseline was accepted yet" in unaccepted.out
    known = call("evaluate", "--test-set", test_set.name)
    assert "no baseline was accepted yet" not in known.out


def test_a_gate_that_fails_is_exit_code_1(call: Callable[..., Outcome], test_set: Path) -> None:
    queries = [one | {"expected": []} for one in QUERIES]  # the book answers them all the same
    outcome = call("evaluate", "--test-set", str(write(test_set, {"queries": queries})))
    assert outcome.code == 1
    assert "FAIL success_at_5: Success@5: 0 answerable questions" in outcome.out
    assert "FAIL refusal_recall: " in outcome.out


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        pytest.param({"queries": []}, ["queries is empty"], id="empty_list"),
        pytest.param("", ["Invalid JSON"], id="empty_file"),
        pytest.param("{", ["Invalid JSON"], id="bad_json"),
        pytest.param({"queries": QUERIES[:1] * 2}, ["'q10-0'", "stands 2 times"], id="twice"),
        pytest.param(
            {"queries": [QUERIES[0] | {"expected": [{"doc_path": "x.md"}]}]},
            ["'q10-0'", "expected[0].section_heading"],
            id="no_heading",
        ),
        pytest.param(
            {
                "queries": [
                    QUERIES[0]
                    | {"expected": [QUERIES[1]["expected"][0] | {"doc_path": "introduction.md"}]}
                ]
            },
            ["'introduction.md' is no page", "intro.md"],
            id="missing_page",
        ),
        pytest.param(
            {
                "queries": [
                    QUERIES[0]
                    | {"expected": [{"doc_path": "intro.md", "section_heading": "Starting"}]}
                ]
            },
            ["'Starting' is no heading of intro.md", "'Start'"],
            id="renamed_heading",
        ),
        pytest.param(
            {
                "queries": [
                    QUERIES[0] | {"expected": [{"doc_path": "broken.md", "section_heading": "A"}]}
                ]
            },
            ["broken.md", "front matter"],
            id="page_that_is_broken",
        ),
    ],
)
def test_a_wrong_test_set_is_one_line_before_anything_is_embedded(
    call: Callable[..., Outcome],
    command: Command,
    test_set: Path,
    server: LoopbackServer,
    content: object,
    texts: list[str],
) -> None:
    command.book.write("broken.md", BROKEN)
    for subcommand in (["evaluate"], ["sweep", "EMBEDDING_TEXT=text"]):
        outcome = call(*subcommand, "--test-set", str(write(test_set, content)))
        last = replace_progress(outcome)
        assert_one_line(last, 2, str(test_set), *texts)
    assert server.received == []


def replace_progress(outcome: Outcome) -> Outcome:
    """Without the line that says which cell is evaluated."""
    lines = [line for line in outcome.err.split("\n") if not line.startswith("evaluating ")]
    return Outcome(outcome.code, outcome.out, "\n".join(lines))


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        pytest.param(["--test-set", "."], ["cannot be read"], id="test_set_is_a_folder"),
        pytest.param(["--test-set", "no.json"], ["no.json", "cannot be read"], id="no_test_set"),
        pytest.param(["--html", "."], ["--html", "cannot be written"], id="page_is_a_folder"),
        pytest.param(["--html", "set.json/x.html"], ["--html"], id="page_below_a_file"),
        pytest.param(["--accept", "--paraphrased"], ["--accept"], id="no_baseline_of_paraphrases"),
        pytest.param(["--docs-dir", "no"], ["DOCS_DIR"], id="no_docs_folder"),
        pytest.param(["--nonsense"], ["--nonsense", "--help"], id="no_such_option"),
        pytest.param([], ["EVALUATION_TEST_SET", "--test-set", "another book"], id="no_set"),
    ],
)
def test_bad_usage_is_one_line_before_anything_is_embedded(
    call: Callable[..., Outcome],
    test_set: Path,
    server: LoopbackServer,
    arguments: list[str],
    texts: list[str],
) -> None:
    assert test_set.is_file()
    assert_one_line(call("evaluate", *arguments), 2, *texts)
    assert server.received == []


@pytest.mark.parametrize("module", ["ir_measures", "jinja2", "matplotlib", "scipy"])
def test_a_library_that_is_not_installed_is_named_before_anything_is_embedded(
    call: Callable[..., Outcome],
    test_set: Path,
    server: LoopbackServer,
    monkeypatch: pytest.MonkeyPatch,
    module: str,
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    outcome = call("evaluate", "--test-set", str(test_set))
    package = module.replace("_", "-")
    assert_one_line(outcome, 2, package, "pip install 'rag-pipeline[pipeline]'")
    assert server.received == []


def test_a_sweep_moves_the_embedding_text_and_a_second_one_embeds_nothing(
    call: Callable[..., Outcome], test_set: Path, server: LoopbackServer
) -> None:
    arguments = ["sweep", "EMBEDDING_TEXT=text", "--test-set", str(test_set), "--json"]
    first = call(*arguments)
    assert first.code == 0, first
    moved = [row["overrides"] for row in first.json["rows"]]
    assert moved == [{}, {"embedding_text": "text"}]
    assert first.json["rows"][1]["cell"] == "embedding_text=text"
    assert first.json["rows"][1]["measures"]["section"]["Success@5"]["count"] == 5
    assert {row["test"]["pair_count"] for row in first.json["rows"]} == {5}
    embedded = sum(len(one.body["input"]) for one in server.received)
    server.received.clear()
    assert call(*arguments).json == first.json
    asked = sum(len(one.body["input"]) for one in server.received)
    assert asked == embedded - 18  # two forms of nine texts; the rest are questions


def test_a_cell_whose_documents_failed_ends_the_sweep(
    call: Callable[..., Outcome], command: Command, test_set: Path
) -> None:
    command.book.write("broken.md", BROKEN)
    outcome = call("sweep", "CHUNK_TARGET_TOKENS=40", "--test-set", str(test_set))
    assert_one_line(replace_progress(outcome), 1, "present settings", "broken.md", "front matter")


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (["EMBEDDING_TEXT=text,breadcrumb"], ["EMBEDDING_TEXT", "heading-path"]),
        (["CHUNK_TARGET_TOKENS=40", "CHUNK_OVERLAP_TOKENS=x"], ["CHUNK_OVERLAP_TOKENS"]),
        (["CHUNK_TARGET_TOKENS=9000"], ["CHUNK_TARGET_TOKENS"]),
        (["EMBEDDING_PROVIDER=local", "EMBEDDING_DIM=0"], ["EMBEDDING_DIM"]),
        (["EMBEDDING_MODEL=nope", "EMBEDDING_DIM=0", "--crossed"], ["nope", "EMBEDDING_DIM"]),
        (["CHUNK_TARGET_TOKENS"], ["CHUNK_TARGET_TOKENS"]),
        (["CHUNK_TARGET_TOKENS="], ["CHUNK_TARGET_TOKENS"]),
        (["NO_SUCH=1"], ["NO_SUCH"]),
        (["QDRANT_COLLECTION=a,b"], ["QDRANT_COLLECTION"]),
        (["OPENAI_API_KEY=a,b"], ["OPENAI_API_KEY"]),
    ],
)
def test_what_cannot_be_swept_is_said_before_anything_is_built(
    call: Callable[..., Outcome],
    test_set: Path,
    server: LoopbackServer,
    values: list[str],
    texts: list[str],
) -> None:
    outcome = call("sweep", *values, "--test-set", str(test_set))
    assert_one_line(outcome, 2, *texts)
    assert "a,b" not in outcome.err  # may be a secret
    assert server.received == []


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"split": "report"}, "tune half"),
        ({"expected": [{"doc_path": "x.md", "section_heading": "X"}]}, "'x.md' is no page"),
    ],
)
def test_a_set_that_a_sweep_cannot_decide_by_is_refused_before_anything_is_built(
    call: Callable[..., Outcome],
    test_set: Path,
    server: LoopbackServer,
    changes: dict[str, Any],
    text: str,
) -> None:
    write(test_set, {"queries": [QUERIES[0] | changes]})
    outcome = call("sweep", "CHUNK_TARGET_TOKENS=40", "--test-set", str(test_set))
    assert_one_line(outcome, 2, text)
    assert server.received == []
