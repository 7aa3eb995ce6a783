"""Reading of `rag-pipeline.toml`: where it is found, its paths, its precedence and its errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.settings import load_settings
from rag_pipeline.core.settings.file import SETTINGS_FILE

pytestmark = pytest.mark.usefixtures("no_settings_from_outside")


def write_file(folder: Path, text: str) -> Path:
    """Write a settings file and a docs folder beside it, and return the docs folder."""
    (folder / "docs").mkdir(parents=True, exist_ok=True)
    (folder / SETTINGS_FILE).write_text(text, encoding="utf-8")
    return folder / "docs"


def test_the_file_in_the_working_directory_is_read(tmp_path: Path) -> None:
    write_file(
        tmp_path, 'docs_dir = "docs"\nsite_trailing_slash = false\nchunk_overlap_tokens = 5\n'
    )
    settings = load_settings()
    assert settings.docs_dir.resolve() == tmp_path / "docs"
    assert settings.site_trailing_slash is False
    assert settings.chunk_overlap_tokens == 5


def test_env_wins_over_the_file_and_the_environment_over_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_file(tmp_path, "dedup_threshold = 0.1\nsemantic_weight = 0.1\nwindow_weight = 0.1\n")
    (tmp_path / ".env").write_text("DEDUP_THRESHOLD=0.2\nSEMANTIC_WEIGHT=0.2\n", encoding="utf-8")
    monkeypatch.setenv("DEDUP_THRESHOLD", "0.3")
    settings = load_settings()
    found = (settings.dedup_threshold, settings.semantic_weight, settings.window_weight)
    assert found == (0.3, 0.2, 0.1)
    assert load_settings(window_weight=0.4).window_weight == 0.4


def test_an_empty_variable_hides_no_site_setting_but_clears_other_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_file(tmp_path, 'site_base_url = "/x/"\nevaluation_test_set = "a.json"\n')
    (tmp_path / ".env").write_text("SITE_ROUTE_BASE_PATH=guide\n", encoding="utf-8")
    for name in ("SITE_BASE_URL", "SITE_ROUTE_BASE_PATH", "EVALUATION_TEST_SET"):
        monkeypatch.setenv(name, "")
    settings = load_settings()
    assert settings.site_base_url == "/x/"
    assert settings.site_route_base_path == "guide"
    assert settings.evaluation_test_set == ""


@pytest.mark.parametrize("path", ["relative", "absolute"])
@pytest.mark.parametrize("named_by", ["environment", "argument"])
def test_the_file_of_a_named_docs_folder_is_found_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, named_by: str
) -> None:
    docs = write_file(tmp_path / "site", 'docs_dir = "docs"\nsite_base_url = "/x/"\n')
    named = str(docs.relative_to(tmp_path) if path == "relative" else docs)
    if named_by == "environment":
        monkeypatch.setenv("DOCS_DIR", named)
    settings = load_settings(docs_dir=named if named_by == "argument" else None)
    assert settings.site_base_url == "/x/"
    assert settings.docs_dir == Path(named)


def test_the_file_of_a_site_beside_the_docs_folder_is_found(tmp_path: Path) -> None:
    write_file(tmp_path / "website", 'docs_dir = "../docs"\nsite_base_url = "/x/"\n')
    (tmp_path / "docs").mkdir()
    assert load_settings(docs_dir="docs").site_base_url == "/x/"


def test_the_file_of_another_docs_folder_is_not_used(tmp_path: Path) -> None:
    write_file(tmp_path, 'docs_dir = "docs"\nsite_base_url = "/x/"\n')
    other = tmp_path / "api"
    other.mkdir()
    assert load_settings(docs_dir="api").site_base_url is None
    nested = write_file(tmp_path / "inner", 'docs_dir = "docs"\nsite_base_url = "/inner/"\n')
    assert load_settings(docs_dir=nested).site_base_url == "/inner/"


@pytest.mark.parametrize("text", ['site_base_url = "/x/"\n', "not TOML", "unknown_key = 1\n"])
def test_a_file_beside_the_docs_folder_that_names_no_folder_is_not_used(
    tmp_path: Path, text: str
) -> None:
    write_file(tmp_path / "website", text)
    (tmp_path / "docs").mkdir()
    assert load_settings(docs_dir="docs").site_base_url is None


def test_an_invalid_file_above_the_docs_folder_is_an_error(tmp_path: Path) -> None:
    write_file(tmp_path / "site", "not TOML")
    with pytest.raises(ConfigurationError, match="is not valid TOML"):
        load_settings(docs_dir=tmp_path / "site" / "docs")


def test_a_docs_folder_that_cannot_be_looked_up_has_no_file(tmp_path: Path) -> None:
    long_name = "x" * 300
    assert load_settings(docs_dir=f"{long_name}/docs").docs_dir == Path(long_name) / "docs"
    assert load_settings(docs_dir=tmp_path / "missing" / "docs").site_base_url is None
    assert load_settings(docs_dir="~no-such-user/docs").site_base_url is None


def test_relative_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    text = """
        docs_dir = "docs"
        data_dir = "state"
        evaluation_test_set = "tests/golden.json"
    """
    docs = write_file(tmp_path / "site", text)
    settings = load_settings(docs_dir=docs)
    assert settings.data_dir == tmp_path / "site/state"
    assert Path(settings.evaluation_test_set) == tmp_path / "site/tests/golden.json"


BROKEN = {
    "misspelled": ('site_base_ulr = "/"', r"`site_base_ulr` is not a setting.*`site_base_url`"),
    "upper case": ('DOCS_DIR = "docs"', r"`DOCS_DIR` is not a setting.*Did you mean `docs_dir`"),
    "table": ('[site]\nbase_url = "/"', r"`site` is not a setting.*names of settings"),
    "syntax": ("docs_dir = docs", r"not valid TOML.*line 1"),
    "value": ('chunk_max_tokens = "many"', r"CHUNK_MAX_TOKENS: 'many' is not valid"),
    "list": ('docs_dir = ["docs"]', r"DOCS_DIR: "),
}


@pytest.mark.parametrize(("text", "message"), BROKEN.values(), ids=BROKEN)
def test_a_wrong_file_is_an_error_that_says_what_to_do(
    tmp_path: Path, text: str, message: str
) -> None:
    write_file(tmp_path, text)
    with pytest.raises(ConfigurationError, match=message) as raised:
        load_settings()
    assert "\n" not in str(raised.value)
    if text not in {BROKEN["value"][0], BROKEN["list"][0]}:
        assert SETTINGS_FILE in str(raised.value)


def test_a_file_that_is_not_utf_8_is_an_error(tmp_path: Path) -> None:
    (tmp_path / SETTINGS_FILE).write_bytes('docs_dir = "bücher"\n'.encode("latin-1"))
    with pytest.raises(ConfigurationError, match=rf"{SETTINGS_FILE}: .*UTF-8"):
        load_settings()


def test_an_open_trailing_slash_counts_as_set(tmp_path: Path) -> None:
    write_file(tmp_path, 'site_trailing_slash = "open"\n')
    settings = load_settings()
    assert settings.site.trailing_slash is None
    assert "trailing_slash" not in settings.unset_site_fields
