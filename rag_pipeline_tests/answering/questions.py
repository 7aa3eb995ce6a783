"""Lists of questions that tests and benchmarks ask, from the files beside this module."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any


def load_questions(name: str) -> dict[str, Any]:
    """Return the lists of questions of the file `<name>_questions.toml`, by their names."""
    text = Path(__file__).with_name(f"{name}_questions.toml").read_text("utf-8")
    return tomllib.loads(text)
