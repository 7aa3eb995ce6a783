"""Reading of settings, and errors for invalid values."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.settings import load_settings

PLACES = ["docs_dir", "data_dir", "dagster_home", "evaluation_test_set"]


pytestmark = pytest.mark.usefixtures("no_settings_from_outside")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("EMBEDDING_PRICES", text) for text in ("", "abc", "[]", '{"a": -1}', '{"a": NaN}')],
        *[(name.upper(), " ") for name in PLACES],
        ("DOCS_DIR", ""),
        ("DATA_DIR", ""),
        ("QDRANT_URL", "\t"),
        ("QDRANT_TIMEOUT_S", "nan"),
    ],
)
def test_the_error_names_the_setting_with_an_invalid_value(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError, match=f"^{name}: ") as caught:
        load_settings()
    assert "\n" not in str(caught.value)


def test_the_error_shows_the_invalid_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHUNK_MIN_TOKENS", "0")
    problem = "^CHUNK_MIN_TOKENS: '0' is not valid: input should be greater than or equal to 1[.]"
    with pytest.raises(ConfigurationError, match=problem):
        load_settings()


def test_the_error_never_shows_a_secret() -> None:
    with pytest.raises(ConfigurationError, match=r"^OPENAI_API_KEY: ") as caught:
        load_settings(openai_api_key=["sk-123"])
    assert "sk-123" not in str(caught.value)


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_the_error_names_an_env_file_that_is_not_utf_8(encoding: str, tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes("DOCS_DIR=bücher\n".encode(encoding))
    with pytest.raises(ConfigurationError, match=r"^\.env: .*UTF-8"):
        load_settings()


def test_an_env_file_may_start_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes("DOCS_DIR=bücher\n".encode("utf-8-sig"))
    assert load_settings().docs_dir == Path("bücher")


@pytest.mark.parametrize("line", ["STORE_IDLE_S: 3", "STORE_IDLE_S='3", "to be done", "DATA_DIR"])
def test_a_line_of_an_env_file_without_a_value_is_an_error(line: str, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"# places\nDOCS_DIR=docs\n{line}\n")
    with pytest.raises(ConfigurationError, match=r"^\.env: line 3 .*NAME=value"):
        load_settings()


def test_an_env_file_may_contain_comments_exports_and_settings_of_other_programs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = "# book\n\nexport docs_dir='my docs' # here\nPORT=80\nNODE_ENV=x\nOPENAI_API_KEY=\n"
    (tmp_path / ".env").write_text(text)
    assert load_settings().docs_dir == Path("my docs")
    assert not caplog.messages


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("CHUNK_TARGT_TOKENS", "CHUNK_TARGET_TOKENS"),
        ("openai_key", "OPENAI_API_KEY"),
        ("SITE_BASEURL", "SITE_BASE_URL"),
        ("DATADIR", "DATA_DIR"),
    ],
)
def test_a_misspelled_setting_in_an_env_file_is_warned_about_once(
    name: str, meant: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / ".env").write_text(f"\n{name}=secret-{name}\n")
    for _ in "ab":
        load_settings()
    (message,) = caplog.messages
    assert f"line 2: {name} is not a setting. Did you mean {meant}?" in message
    assert "secret" not in message


@pytest.mark.parametrize("name", PLACES)
def test_a_tilde_stands_for_the_home_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(name.upper(), "~/rag")
    assert Path(getattr(load_settings(), name)) == tmp_path / "rag"


def test_prices_are_read_from_a_json_object_in_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EMBEDDING_PRICES", '{"m": 0.5, "free": 0}')
    settings = load_settings()
    assert settings.embedding_prices == {"m": 0.5, "free": 0}
    assert load_settings(**settings.model_dump()) == settings
