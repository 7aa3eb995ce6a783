"""A person at a terminal is asked once if the configuration of a site may run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.cli import initializing

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "site" / "docusaurus.config.js"
    path.parent.mkdir()
    path.write_text("module.exports = {url: process.env.URL};\n", encoding="utf-8")
    return path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Be at a terminal with a site that can be run; a person answers yes. Returns the questions."""
    questions: list[str] = []

    def confirm(question: str, *, err: bool) -> bool:
        assert err
        questions.append(question)
        return "no.config" not in question

    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(initializing, "find_loader", lambda folder: folder / "loader.js")
    monkeypatch.setattr(initializing.typer, "confirm", confirm)
    return questions


def test_the_answer_is_remembered_until_the_file_changes(config: Path, asked: list[str]) -> None:
    assert [initializing.has_consent(config), initializing.has_consent(config)] == [True, True]
    assert len(asked) == 1
    config.write_text("module.exports = {};\n", encoding="utf-8")
    assert initializing.has_consent(config)
    assert len(asked) == 2


def test_a_no_is_remembered_too(config: Path, asked: list[str]) -> None:
    other = config.rename(config.with_name("no.config.js"))
    assert [initializing.has_consent(other), initializing.has_consent(other)] == [False, False]
    assert len(asked) == 1


def test_nobody_is_asked_in_continuous_integration_or_without_a_terminal(
    config: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", "true")
    assert not initializing.has_consent(config)
    monkeypatch.delenv("CI")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    assert not initializing.has_consent(config)
    assert asked == []


def test_nobody_is_asked_about_a_site_that_cannot_be_run(
    config: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(initializing, "find_loader", lambda _: "Node is not installed")
    assert not initializing.has_consent(config)
    assert asked == []
