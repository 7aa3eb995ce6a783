"""Tests of `rag-pipeline evaluate` and `sweep` on another book with its own test set."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest

from rag_pipeline_tests.adapters.test_chat_model import stream_reply
from rag_pipeline_tests.end_to_end.command import Command, Outcome, assert_one_line, embed
from rag_pipeline_tests.loopback import Reply, serve

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rag_pipeline_tests.loopback import LoopbackServer, Received


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
NO_BASELINE = "no baseline was accepted yet"
BROKEN = "---\ntitle: [\n---\n"


@pytest.fixture
def test_set(command: Command) -> Path:
    """A file with ten questions about the five sections that consist of one chunk."""
    return write(command.root / "set.json", {"queries": QUERIES})


def write(path: Path, content: object) -> Path:
    """Write text, or any other value as JSON, and return the path."""
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


def test_one_command_evaluates_another_book_with_its_own_test_set(
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
    assert NO_BASELINE in again.out
    command.book.edit("intro.md", "title: Intro", "title: Opening")
    third = call("evaluate", "--test-set", str(test_set), "--json").json
    loss = {gate["name"]: gate for gate in third["gates"]}["no_loss_section_ndcg_at_10"]
    assert "of 10 questions differ" in loss["sentence"]


def test_answers_of_a_model_are_evaluated_on_request(
    call: Callable[..., Outcome], command: Command, test_set: Path
) -> None:
    def reply(request: Received) -> Reply:
        if "embeddings" in request.path:
            return embed(request)
        return stream_reply("However, it moves by <rule> ", "10 [1].", invented)

    invented = ""
    queries = [QUERIES[0] | {"facts": ["by <rule> (10|ten)", "robot"]}, *QUERIES[1:4]]
    write(test_set, {"queries": queries})
    page = command.root / "report.html"
    with serve(reply) as server:
        url = f"{server.url}/v1"
        arguments = ("evaluate", "--test-set", str(test_set), "--html", str(page))
        plain = call(*arguments, "--json", OPENAI_BASE_URL=url, ANSWER_MODEL="m")
        assert plain.json["answers"]["model"] is None
        assert all("embeddings" in request.path for request in server.received)
        told = call(*arguments, "--answers", "--json", OPENAI_BASE_URL=url, ANSWER_MODEL="m")
        shown = call(*arguments, "--answers", "--verbose", OPENAI_BASE_URL=url, ANSWER_MODEL="m")
        written = page.read_text("utf-8")
        invented = " It weighs 4711 tons [1]."
        half = call(*arguments, "--answers", "--json", OPENAI_BASE_URL=url, ANSWER_MODEL="m")
    assert (told.code, told.json["passed"]) == (0, True), told
    answers = told.json["answers"]
    assert (answers["model"], answers["failure_count"]) == ("m", 0)
    first = answers["questions"][0]
    number = first["text"][-3]
    assert (first["kind"], first["text"]) == (
        "generated",
        f"However, it moves by <rule> 10 [{number}].",
    )
    assert first["notices"] == ["citations_corrected"]
    assert (first["facts_found"], first["facts_missed"]) == (["by <rule> (10|ten)"], ["robot"])
    supported = answers["overall"]["supported"]
    assert (supported["count"], supported["mean"]) == (4, 1.0)
    gates = {gate["name"]: gate for gate in told.json["gates"]}
    assert gates["passages_whole"]["value"] is None
    assert "Answers by m:\n  group  " in shown.out
    assert f"However, it moves by &lt;rule&gt; 10 [{number}]." in written
    supported = half.json["answers"]["overall"]["supported"]
    assert (supported["count"], supported["mean"]) == (8, 0.5)
    unsupported = [entry["unsupported"] for entry in half.json["answers"]["questions"]]
    assert unsupported == [["It weighs 4711 tons."]] * 4
    failed = {gate["name"] for gate in half.json["gates"] if not gate["passed"]}
    assert (half.code, "sentences_grounded" in failed) == (1, True)


def test_answers_without_a_model_are_evaluated_by_default(
    call: Callable[..., Outcome], test_set: Path
) -> None:
    queries = [query | {"facts": [query["question"].split()[-1]]} for query in QUERIES]
    write(test_set, {"queries": queries})
    local = {"EMBEDDING_PROVIDER": "local", "OPENAI_API_KEY": "", "EMBEDDING_DIM": "0"}
    told = call("evaluate", "--test-set", str(test_set), "--json", **local)
    answers = told.json["answers"]
    assert answers["model"] is None
    assert {one["kind"] for one in answers["questions"]} <= {"extracted", "refused"}
    assert answers["overall"]["facts"]["count"] == 10
    assert [one["broken_passages"] for one in answers["questions"]] == [[]] * 10
    skipped = call("evaluate", "--no-answers", "--test-set", str(test_set), "--json", **local)
    assert skipped.json["answers"] is None
    assert "passages_whole" not in {gate["name"] for gate in skipped.json["gates"]}


def test_terms_of_the_test_set_are_asked(
    call: Callable[..., Outcome], command: Command, test_set: Path
) -> None:
    command.book.write("glossary.md", "# Glossary\n\n## Robot 99\n\nRobot 99 moves never.\n")
    place = {"doc_path": "glossary.md", "section_heading": "Robot 99"}
    definition = {"term": "Robot 99", "definition": "Robot 99 moves never.", "places": [place]}
    write(test_set, {"queries": QUERIES, "definitions": [definition]})
    answers = call("evaluate", "--test-set", str(test_set), "--json").json["answers"]
    assert [(one["term"], one["defined"]) for one in answers["terms"]] == [("Robot 99", True)]


def test_an_answering_service_that_fails_is_recorded_for_each_question(
    call: Callable[..., Outcome], test_set: Path
) -> None:
    def reply(request: Received) -> Reply:
        return embed(request) if "embeddings" in request.path else Reply(401)

    write(test_set, {"queries": QUERIES[:2]})
    with serve(reply) as server:
        arguments = ("evaluate", "--answers", "--test-set", str(test_set), "--json")
        told = call(*arguments, OPENAI_BASE_URL=f"{server.url}/v1", ANSWER_MODEL="m")
    assert told.json["answers"]["failure_count"] == 2
    assert told.json["answers"]["questions"][0]["error"].startswith(
        "CONFIGURATION_ERROR: OPENAI_API_KEY: "
    )
    assert {one["kind"] for one in told.json["answers"]["questions"]} == {None}
    gates = {gate["name"]: gate for gate in told.json["gates"]}
    assert gates["answer_leaks"]["passed"]  # the set has no selected-text case


def test_test_sets_with_the_same_file_name_have_separate_baselines(
    call: Callable[..., Outcome], command: Command, test_set: Path
) -> None:
    other = command.root / "other" / test_set.name
    other.parent.mkdir()
    write(other, {"queries": QUERIES[:4]})
    assert call("evaluate", "--accept", "--test-set", str(test_set)).code == 0
    unaccepted = call("evaluate", "--test-set", str(other))
    assert NO_BASELINE in unaccepted.out
    known = call("evaluate", "--test-set", test_set.name)
    assert NO_BASELINE not in known.out


def test_a_failed_gate_gives_exit_code_1(call: Callable[..., Outcome], test_set: Path) -> None:
    # Expect a refusal of questions that the book answers.
    queries = [query | {"expected": []} for query in QUERIES]
    outcome = call("evaluate", "--test-set", str(write(test_set, {"queries": queries})))
    assert outcome.code == 1
    assert (
        "FAIL success_at_5: Success@5 was not measured: the golden set has only 0 answerable"
        in outcome.out
    )
    assert "FAIL refusal_recall: " in outcome.out


@pytest.mark.parametrize(
    ("content", "texts"),
    [
        pytest.param("", ["Invalid JSON"], id="empty_file"),
        pytest.param(
            {
                "queries": QUERIES[:1],
                "definitions": [
                    {
                        "term": "Rye",
                        "definition": "A grain.",
                        "places": [{"doc_path": "rye.md", "section_heading": "Rye"}],
                    }
                ],
            },
            ["term 'Rye'", "places[0]", "'rye.md' does not exist"],
            id="missing_page_of_a_term",
        ),
        pytest.param(
            {"queries": QUERIES[:1], "definitions": [{"term": "Rye", "definition": "A grain."}]},
            ["term 'Rye'", "places"],
            id="term_without_places",
        ),
        pytest.param(
            {
                "queries": [
                    QUERIES[0]
                    | {"expected": [{"doc_path": "intro.md", "section_heading": "Starting"}]}
                ]
            },
            ["'Starting' is missing from intro.md", "'Start'"],
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
def test_an_invalid_test_set_is_one_error_line_before_anything_is_embedded(
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
    """Return the outcome without the error line that names the cell being evaluated."""
    lines = [line for line in outcome.err.split("\n") if not line.startswith("evaluating ")]
    return Outcome(outcome.code, outcome.out, "\n".join(lines))


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        pytest.param(["--test-set", "."], ["cannot be read"], id="test_set_is_a_folder"),
        pytest.param(
            ["--test-set", "no.json"],
            ["no.json", "cannot be read", "Check the path"],
            id="no_test_set",
        ),
        pytest.param(["--html", "."], ["--html", "cannot be written"], id="page_is_a_folder"),
        pytest.param(["--html", "set.json/x.html"], ["--html"], id="page_below_a_file"),
        pytest.param(["--accept", "--paraphrased"], ["--accept"], id="no_baseline_of_paraphrases"),
        pytest.param(["--accept", "--no-answers"], ["--accept"], id="no_baseline_without_answers"),
        pytest.param(["--docs-dir", "no"], ["DOCS_DIR"], id="no_docs_folder"),
        pytest.param(["--nonsense"], ["--nonsense", "--help"], id="no_such_option"),
        pytest.param([], ["EVALUATION_TEST_SET", "--test-set", "another book"], id="no_set"),
    ],
)
def test_wrong_usage_is_one_error_line_before_anything_is_embedded(
    call: Callable[..., Outcome],
    test_set: Path,
    server: LoopbackServer,
    arguments: list[str],
    texts: list[str],
) -> None:
    assert test_set.is_file()
    assert_one_line(call("evaluate", *arguments), 2, *texts)
    assert server.received == []


@pytest.mark.parametrize("module", ["ir_measures", "scipy"])
def test_a_missing_library_is_named_before_anything_is_embedded(
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


def test_a_sweep_over_embedding_texts_embeds_nothing_the_second_time(
    call: Callable[..., Outcome], test_set: Path, server: LoopbackServer
) -> None:
    arguments = ["sweep", "EMBEDDING_TEXT=text", "--test-set", str(test_set), "--json"]
    first = call(*arguments)
    assert first.code == 0, first
    overrides = [row["overrides"] for row in first.json["rows"]]
    assert overrides == [{}, {"embedding_text": "text"}]
    assert first.json["rows"][1]["cell"] == "embedding_text=text"
    assert first.json["rows"][1]["measures"]["section"]["Success@5"]["count"] == 5
    assert {row["test"]["pair_count"] for row in first.json["rows"]} == {5}
    embedded = sum(len(request.body["input"]) for request in server.received)
    server.received.clear()
    assert call(*arguments).json == first.json
    # Each of the nine chunks was embedded in two forms. The rest are questions.
    asked = sum(len(request.body["input"]) for request in server.received)
    assert asked == embedded - 18


def test_a_sweep_stops_if_documents_of_a_cell_fail(
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
        (["CHUNK_TARGET_TOKENS"], ["CHUNK_TARGET_TOKENS"]),
        (["CHUNK_TARGET_TOKENS="], ["CHUNK_TARGET_TOKENS"]),
        (["NO_SUCH=1"], ["NO_SUCH"]),
        (["QDRANT_COLLECTION=a,b"], ["QDRANT_COLLECTION"]),
        (["OPENAI_API_KEY=a,b"], ["OPENAI_API_KEY"]),
    ],
)
def test_a_setting_that_cannot_be_swept_is_named_before_anything_is_built(
    call: Callable[..., Outcome],
    test_set: Path,
    server: LoopbackServer,
    values: list[str],
    texts: list[str],
) -> None:
    outcome = call("sweep", *values, "--test-set", str(test_set))
    assert_one_line(outcome, 2, *texts)
    assert "a,b" not in outcome.err  # the value may be a secret
    assert server.received == []


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"split": "report"}, "tuning half"),
        ({"expected": [{"doc_path": "x.md", "section_heading": "X"}]}, "'x.md' does not exist"),
    ],
)
def test_a_test_set_that_a_sweep_cannot_use_is_refused_before_anything_is_built(
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
