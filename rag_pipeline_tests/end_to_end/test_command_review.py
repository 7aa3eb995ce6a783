"""Tests of `rag-pipeline review`, and of the script that runs it in the GitHub Action."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from rag_pipeline_tests.end_to_end.command import (
    CONFIG,
    Command,
    Outcome,
    assert_one_line,
    write_config,
)

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
GOLDEN = {
    "queries": [
        {
            "id": f"q{robot}",
            "question": f"by rule moves robot {robot}",
            "expected": [{"doc_path": doc_path, "section_heading": heading}],
        }
        for doc_path, heading, robot in (
            ("intro.md", "Start", 10),
            ("module-1/large.md", "Two", 42),
        )
    ]
}
BROKEN = "---\ntitle: [\n---\n"


@pytest.fixture
def golden_set(command: Command) -> Path:
    """A golden set of two questions."""
    path = command.root / "golden.json"
    path.write_text(json.dumps(GOLDEN), "utf-8")
    return path


def test_a_review_is_compared_with_an_earlier_one(
    call: Callable[..., Outcome], command: Command, golden_set: Path
) -> None:
    kept = str(command.root / "review.json")
    arguments = ("review", "--test-set", str(golden_set), "--write", kept)
    first = call(*arguments, "--json")
    assert (first.json["pages"], first.json["chunks"], first.json["addresses"]) == (3, 9, None)
    assert first.json["search"]["questions"]["q42"]["finds_page"] is True
    assert first.code == (0 if first.json["passed"] else 1)
    command.book.write("new.md", "# New\n\nA robot of another kind.\n")
    second = call(*arguments, "--before", kept)
    assert "| Pages | 3 | 4 |" in second.out
    assert "| Chunks | 9 | 10 |" in second.out
    assert " | 2 of 2 (100%) | " in second.out


def test_a_page_that_fails_is_listed_and_the_exit_code_is_1(
    call: Callable[..., Outcome], command: Command
) -> None:
    command.book.write("broken.md", BROKEN)
    outcome = call("review")
    assert outcome.code == 1
    assert "(1)\n\n```text\nbroken.md" in outcome.out


def test_a_wrong_option_is_an_error_before_anything_is_indexed(
    call: Callable[..., Outcome], command: Command
) -> None:
    missing = str(command.root / "missing")
    assert_one_line(call("review", "--before", missing), 2, "missing", "cannot be read")
    assert_one_line(call("review", "--built-site", missing), 2, "--built-site", "npm run build")
    assert not list((command.root / "data").glob("*/store"))


@pytest.fixture
def run_script(command: Command) -> Callable[..., Outcome]:
    """A function that runs the script of the action; keywords change its environment."""
    write_config(command, CONFIG)
    temporary = command.root / "runner"
    temporary.mkdir()
    environment = command.environment | {
        "PATH": os.environ["PATH"],
        "PYTHON": str(Path(sys.executable).parent / "python"),
        "CHECKOUT": str(command.root),
        "RUN_CONFIG": "false",
        "SITE": ".",
        "DOCS_PLUGIN": "",
        "BUILT_SITE": "",
        "GOLDEN_SET": "",
        "STATE": str(temporary / "state"),
        "IS_PULL_REQUEST": "false",
        "GITHUB_OUTPUT": str(temporary / "output"),
        "GITHUB_STEP_SUMMARY": str(temporary / "summary"),
        "SITE_BASE_URL": "",
        "SITE_TRAILING_SLASH": "",
        "DOCS_DIR": "",
    }

    def run(**changes: str) -> Outcome:
        for name in ("output", "summary"):
            (temporary / name).unlink(missing_ok=True)
        script = ROOT / "scripts" / "review_change.sh"
        ended = subprocess.run(
            [str(script)],
            env=environment | changes,
            cwd=command.root,
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        return Outcome(ended.returncode, ended.stdout, ended.stderr)

    return run


def read_outputs(command: Command) -> dict[str, str]:
    """Return the outputs of the last run of the script."""
    lines = (command.root / "runner" / "output").read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines)


@pytest.mark.slow
def test_the_action_compares_a_pull_request_with_its_base_branch(
    command: Command, golden_set: Path, run_script: Callable[..., Outcome]
) -> None:
    pushed = run_script(GOLDEN_SET=str(golden_set))
    assert "3 processed" in pushed.err, pushed
    kept = command.root / "runner" / "state" / "review.json"
    base = kept.read_bytes()
    command.book.write("new.md", "# New\n\nA robot of another kind.\n")
    proposed = run_script(GOLDEN_SET=str(golden_set), IS_PULL_REQUEST="true")
    assert "1 processed" in proposed.err, proposed
    outputs = read_outputs(command)
    text = Path(outputs["text"]).read_text("utf-8")
    assert "| Pages | 3 | 4 |" in text
    assert text == (command.root / "runner" / "summary").read_text("utf-8")
    assert json.loads(Path(outputs["review"]).read_bytes())["pages"] == 4
    assert kept.read_bytes() == base


@pytest.mark.slow
def test_the_action_fails_without_a_comment_if_the_site_is_missing(
    command: Command, run_script: Callable[..., Outcome]
) -> None:
    outcome = run_script(SITE="elsewhere")
    assert_one_line(outcome, 2, "elsewhere", "is not a folder")
    assert not (command.root / "runner" / "output").exists()


def test_the_action_passes_each_of_its_inputs_on() -> None:
    action: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    text = json.dumps(action["runs"])
    assert all(f"inputs.{name}" in text for name in action["inputs"])
    review = next(step for step in action["runs"]["steps"] if step.get("id") == "review")
    script = (ROOT / "scripts" / "review_change.sh").read_text("utf-8")
    assert all(f"${name}" in script for name in review["env"] if name != "ACTION_PATH")
    uses = [step["uses"] for step in action["runs"]["steps"] if "uses" in step]
    assert all(len(one.partition("@")[2]) == 40 for one in uses)  # a commit, which cannot move
