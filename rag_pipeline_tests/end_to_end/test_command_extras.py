"""Each command that needs a missing extra names the command that installs it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement

from rag_pipeline_tests.end_to_end.command import (
    Command,
    assert_one_line,
    embed,
    finish,
    make_command,
)
from rag_pipeline_tests.loopback import serve

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rag_pipeline_tests.end_to_end.command import Outcome

ROOT = Path(__file__).parents[2]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
    "optional-dependencies"
]
SHARED = {"typing-extensions"}  # packages without an extra need it too
MODULES = {"llama-index-core": "llama_index"}


def list_modules() -> list[str]:
    """Return the modules of all extras, as a user has them who installed none."""
    names = {Requirement(line).name for lines in EXTRAS.values() for line in lines} - SHARED
    return sorted(MODULES.get(name, name.replace("-", "_")) for name in names)


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Command]:
    """The command with a book that is not indexed."""
    with serve(embed) as server:
        yield make_command(tmp_path_factory.mktemp("extras"), server.url)


def run_without_extras(command: Command, arguments: str, **changes: str) -> Outcome:
    """Run the command as if no extra were installed."""
    module = ["-m", "rag_pipeline_tests.end_to_end.without", ",".join(list_modules())]
    return finish(
        subprocess.Popen(
            [sys.executable, *module, *arguments.split()],
            env=command.environment | {"PYTHONPATH": str(ROOT)} | changes,
            cwd=command.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        ("ingest", "pipeline"),
        ("ingest-doc intro.md", "pipeline"),
        ("evaluate --test-set set.json", "pipeline"),
        ("sweep CHUNK_TARGET_TOKENS=45,50 --test-set set.json", "pipeline"),
        ("serve --port 0", "serve"),
        ("mcp", "serve"),
    ],
)
def test_a_command_without_its_extra_names_the_command_that_installs_it(
    command: Command, arguments: str, extra: str
) -> None:
    place = '{"doc_path": "intro.md", "section_heading": "Start"}'
    query = f'{{"id": "a", "question": "Which robot starts?", "expected": [{place}]}}'
    (command.root / "set.json").write_text(f'{{"queries": [{query}]}}', "utf-8")
    outcome = run_without_extras(command, arguments)
    assert_one_line(outcome, 2, f"{sys.executable} -m pip install 'rag-pipeline[{extra}]'`")


@pytest.mark.slow
def test_a_missing_client_of_a_service_is_named_with_its_command(command: Command) -> None:
    keys = {"EMBEDDING_PROVIDER": "cohere", "COHERE_API_KEY": "a-test-key", "EMBEDDING_DIM": "0"}
    assert_one_line(run_without_extras(command, "search x", **keys), 2, "'rag-pipeline[cohere]'`")
    place = {"DATABASE_URL": "postgresql://host/rag", "STATE_NAME": "book"}
    assert_one_line(run_without_extras(command, "stats", **place), 2, "'rag-pipeline[postgres]'`")


@pytest.mark.slow
@pytest.mark.parametrize("arguments", ["--version", "--help", "chunks", "query Hello"])
def test_other_commands_need_no_extra(command: Command, arguments: str) -> None:
    outcome = run_without_extras(command, arguments)
    assert outcome.code == 0, outcome.err
