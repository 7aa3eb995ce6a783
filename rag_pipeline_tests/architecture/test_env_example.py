"""`.env.example` and the settings class say the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from rag_pipeline.core.settings import Settings

if TYPE_CHECKING:
    import pytest

EXAMPLE = Path(__file__).parents[2] / ".env.example"
VARIABLE = re.compile(r"^(?P<name>[A-Z][A-Z0-9_]*)=(?P<value>.*)$")


def variables() -> dict[str, tuple[str, list[str]]]:
    """Name to (value, the comment lines right above it)."""
    found: dict[str, tuple[str, list[str]]] = {}
    comment: list[str] = []
    for line in EXAMPLE.read_text(encoding="utf-8").splitlines():
        if match := VARIABLE.match(line):
            assert match["name"] not in found, f"{match['name']} stands twice"
            found[match["name"]] = (match["value"], comment)
        comment = [*comment, line] if line.startswith("#") else []
    return found


def test_each_setting_is_listed_and_nothing_else() -> None:
    assert set(variables()) == {name.upper() for name in Settings.model_fields}


def test_the_values_are_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in variables():
        monkeypatch.delenv(name, raising=False)
    assert Settings(_env_file=EXAMPLE) == Settings(_env_file=None)


def test_each_setting_has_its_meaning_and_its_readers() -> None:
    for name, (_, comment) in variables().items():
        assert len(comment) >= 2, f"{name} has no meaning"
        assert comment[-1].startswith("# Read by: "), f"{name} does not say who reads it"


def test_no_secret_has_a_value() -> None:
    secrets = {name: value for name, (value, _) in variables().items() if name.endswith("_KEY")}
    assert secrets
    assert set(secrets.values()) == {""}
