"""Run the `rag-pipeline` command on a small book, with an embedding service on 127.0.0.1."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Any

from rag_pipeline_tests.adapters.test_chat_model import stream_reply
from rag_pipeline_tests.book import PAGES, Book
from rag_pipeline_tests.class_names import find_class_names
from rag_pipeline_tests.hashing_embedder import DIM, HashingEmbedder
from rag_pipeline_tests.loopback import Received, Reply

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


CONFIG = "export default {url: 'https://e.org', baseUrl: '/m/', presets: [['classic', {}]]};"
"""The configuration of a site without anything of its own."""

API = "plugins: [['content-docs', {id: 'api', path: 'api', routeBasePath: 'api'}]]"
"""The part of a configuration that adds a docs folder."""

UNSET = {"SITE_BASE_URL": "", "SITE_TRAILING_SLASH": ""}
"""The settings with which the site of a book is not known."""


def embed(request: Received) -> Reply:
    """Answer a request as OpenAI's embeddings endpoint does, with hashes as vectors."""
    texts = request.body["input"]
    rows, _ = HashingEmbedder(100_000).embed_passages(texts)
    data = [
        {"object": "embedding", "index": place, "embedding": row.tolist()}
        for place, row in enumerate(rows)
    ]
    tokens = sum(len(text.split()) for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return Reply(body={"object": "list", "data": data, "model": "m", "usage": usage})


@dataclass(frozen=True)
class Outcome:
    """The exit code, the output and the error output of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:  # noqa: ANN401  # any JSON value
        """The JSON document that the command wrote to standard output."""
        return json.loads(self.out)


@dataclass(frozen=True)
class Command:
    """The command with its own docs folder, data folder and embedding service."""

    root: Path
    url: str

    @property
    def book(self) -> Book:
        """The book, for edits of its pages. The book's own state folder is not used."""
        return Book(self.root)

    @property
    def environment(self) -> dict[str, str]:
        """All environment variables that the command gets."""
        measuring = {name: value for name, value in os.environ.items() if "COVERAGE" in name}
        return measuring | {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root),
            "DOCS_DIR": str(self.root / "docs"),
            "DATA_DIR": str(self.root / "data"),
            "SITE_BASE_URL": "/physical-ai-robotics-textbook/",
            "SITE_TRAILING_SLASH": "false",
            "EMBEDDING_PROVIDER": "openai",
            "OPENAI_API_KEY": "test-key",
            "OPENAI_BASE_URL": f"{self.url}/v1",
            "EMBEDDING_DIM": str(DIM),
            "CHUNK_MIN_TOKENS": "30",
            "CHUNK_TARGET_TOKENS": "45",
            "CHUNK_MAX_TOKENS": "80",
            "CHUNK_OVERLAP_TOKENS": "10",
            "STORE_LOCK_TIMEOUT_S": "1",
            "INGEST_LOCK_TIMEOUT_S": "30",
        }

    def start(
        self, *arguments: str, stdin: int | None = None, **changes: str
    ) -> subprocess.Popen[str]:
        """Start the command as a process; with `subprocess.PIPE` as its input if requested."""
        return subprocess.Popen(
            [sys.executable, "-m", "rag_pipeline.cli", *arguments],
            env=self.environment | changes,
            cwd=self.root,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # a process group of its own, as a shell gives to a command
        )

    def run(self, *arguments: str, **changes: str) -> Outcome:
        """Run the command as a process and wait for its end."""
        return finish(self.start(*arguments, **changes))


def write_config(command: Command, text: str) -> None:
    """Write the configuration of the book's site."""
    (command.root / "docusaurus.config.js").write_text(text, encoding="utf-8")


def read_urls(outcome: Outcome) -> set[str]:
    """Return the start of each cited address of a search, up to the folder of the docs."""
    return {chunk["citation"]["url"].partition("docs/")[0] for chunk in outcome.json["chunks"]}


def finish(process: subprocess.Popen[str]) -> Outcome:
    """Wait for the end of a command and return its outcome.

    Its messages, which begin with the name of the command, may not contain names of classes.
    """
    out, err = process.communicate(timeout=100)
    messages = [line for line in err.splitlines() if line.startswith("rag-pipeline: ")]
    assert not [name for line in messages for name in find_class_names(line)], messages
    return Outcome(process.returncode, out, err)


def make_command(root: Path, url: str) -> Command:
    """Build a command and write its book of three pages."""
    command = Command(root, url)
    for doc_id, text in PAGES.items():
        command.book.write(doc_id, text)
    return command


def assert_one_line(outcome: Outcome, code: int, *texts: str) -> None:
    """Check that a command failed with this exit code and one line that contains all texts."""
    assert outcome.code == code, outcome
    line, rest = outcome.err.split("\n")
    assert rest == ""
    assert line.startswith("rag-pipeline: ")
    for text in texts:
        assert text in line


@contextmanager
def serving(
    command: Command, *arguments: str, **changes: str
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `serve` on a free port, and yield the process and its address."""
    process = command.start("serve", "--port", "0", *arguments, **changes)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if found := re.search(r"Questions: +(http://\S+)/v1/answers", line):
                yield process, found.group(1)
                break
        else:
            raise AssertionError(finish(process))
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


class SlowModel:
    """A service that embeds at once, and writes an answer when it is released."""

    def __init__(self) -> None:
        self.asked = Event()
        self.released = Event()

    def __call__(self, request: Received) -> Reply:
        """Return the reply to a request."""
        if request.path.endswith("/embeddings"):
            return embed(request)
        self.asked.set()
        self.released.wait(60)
        return stream_reply("A servo holds its joint at an angle [1].")
