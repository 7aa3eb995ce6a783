"""Token counts: exact, without network, and in linear time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.text import terms
from rag_pipeline.core.text.terms import count_tokens
from rag_pipeline_tests.growth import assert_linear


@pytest.mark.parametrize(
    ("text", "count"), [("", 0), ("hello world", 2), ("<|endoftext|>", 7), ("\U0001f680", 3)]
)
def test_token_counts_of_known_texts(text: str, count: int) -> None:
    assert count_tokens(text) == count


@given(st.text(max_size=300))
def test_counts_equal_those_of_cl100k_base(text: str) -> None:
    count = count_tokens(text)
    assert count == len(tiktoken.get_encoding("cl100k_base").encode(text, disallowed_special=()))


@pytest.mark.parametrize("unit", ["ab", " ", "=", "\n", "\u7dda", "a\u0301"])
def test_a_long_run_without_a_break_is_counted_in_linear_time(unit: str) -> None:
    assert_linear(lambda size: count_tokens(unit * size), 50_000)


@pytest.mark.slow
def test_the_packaged_vocabulary_is_used_unless_the_user_has_set_a_folder(
    tmp_path: Path,
) -> None:
    script = (
        "import os, sys\n"
        "from rag_pipeline.core.text.terms import count_tokens\n"
        "count_tokens('x')\n"
        "print(os.environ['TIKTOKEN_CACHE_DIR'])\n"
    )
    hidden = {"TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR"}
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    vocabulary = Path(terms.__file__).parents[2] / "data" / "cl100k_base"
    for own in (None, tmp_path):
        if own is not None:
            for file in vocabulary.iterdir():
                (own / file.name).write_bytes(file.read_bytes())
            env["TIKTOKEN_CACHE_DIR"] = str(own)
        run = subprocess.run(
            [sys.executable, "-c", script], env=env, capture_output=True, text=True, check=True
        )
        assert Path(run.stdout.strip()).resolve() == (own or vocabulary).resolve()


def test_the_error_names_a_damaged_or_missing_vocabulary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = tmp_path / "vocabulary"
    damaged.write_bytes(b"YQ== 0\n")
    monkeypatch.setattr(terms, "VOCABULARY", damaged)
    with pytest.raises(ConfigurationError, match="vocabulary is damaged"):
        terms._check_vocabulary()  # noqa: SLF001  # loading is cached for the process
    monkeypatch.setattr(terms, "VOCABULARY", tmp_path / "missing")
    with pytest.raises(ConfigurationError, match="missing cannot be read"):
        terms._check_vocabulary()  # noqa: SLF001  # loading is cached for the process
