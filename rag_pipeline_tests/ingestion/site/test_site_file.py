"""Tests of the settings file that is written for a site, and of its comparison with the site."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.settings import Settings, load_settings
from rag_pipeline.ingestion.site.detection import (
    compare_site_file,
    describe_site_file,
    find_site_file,
    read_site_file,
)
from rag_pipeline_tests.ingestion.site.test_detection import CLASSIC, detect, write_site

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _ignore_settings_of_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.chdir(tmp_path)


def write_file(root: Path) -> Path:
    """Write the settings file of the site in a folder, and return its path."""
    site, _ = detect(root, run_config=False)
    path = find_site_file(site)
    path.write_text(describe_site_file(site, read_site_file(path)), encoding="utf-8")
    return path


def compare(root: Path) -> dict[str, tuple[object, object]]:
    """Return the values of the file and of the site that differ, by setting."""
    site, _ = detect(root, run_config=False)
    differences = compare_site_file(site, find_site_file(site))
    return {one.setting: (one.in_file, one.on_site) for one in differences}


def test_the_file_contains_the_settings_of_the_site(tmp_path: Path) -> None:
    root = write_site(tmp_path / "site")
    write_file(root)
    settings = load_settings(docs_dir=root / "guides")
    assert settings.unset_site_fields == ()
    assert settings.site.base_url == "https://example.org/manual/"
    assert settings.site.route_base_path == ""
    assert settings.site.trailing_slash is True
    assert settings.data_dir == root / "data"


def test_all_offered_settings_have_their_default_value(tmp_path: Path) -> None:
    path = write_file(write_site(tmp_path))
    text = path.read_text(encoding="utf-8")
    lines = [line.removeprefix("# ") for line in text.splitlines()]
    offered = tomllib.loads("\n".join(line for line in lines if " = " in line))
    assert len(offered) == 7
    assert offered.pop("sources") == []
    differing = {"docs_dir", *(name for name in offered if name.startswith("site_"))}
    for name in offered.keys() - differing:
        assert offered[name] == str(Settings.model_fields[name].default)


def test_a_value_that_is_not_known_is_left_to_the_user(tmp_path: Path) -> None:
    root = write_site(tmp_path, CLASSIC.replace("true", "isLive()"))
    path = write_file(root)
    text = path.read_text(encoding="utf-8")
    assert "# Not known: `trailingSlash` is computed in line 3" in text
    assert "site_trailing_slash" not in read_site_file(path)


def test_a_new_file_matches_its_site(tmp_path: Path) -> None:
    root = write_site(tmp_path)
    write_file(root)
    assert compare(root) == {}


def test_the_comparison_names_the_values_that_differ(tmp_path: Path) -> None:
    root = write_site(tmp_path)
    write_file(root)
    (root / "texts").mkdir()
    config = CLASSIC.replace("manual", "book").replace("true", "false").replace("guides", "texts")
    (root / "docusaurus.config.js").write_text(config, encoding="utf-8")
    assert compare(root) == {
        "docs_dir": ("guides", "texts"),
        "site_base_url": ("https://example.org/manual/", "https://example.org/book/"),
        "site_trailing_slash": (True, False),
    }


def test_a_guess_is_no_reason_to_reject_the_file(tmp_path: Path) -> None:
    root = write_site(tmp_path)
    path = write_file(root)
    text = path.read_text(encoding="utf-8").replace("https://example.org/", "https://mine.org/")
    path.write_text(text, encoding="utf-8")
    config = CLASSIC.replace("'https://example.org'", "read() || 'https://example.org'")
    (root / "docusaurus.config.js").write_text(config, encoding="utf-8")
    assert compare(root) == {}


def test_another_way_to_write_the_same_folder_is_no_difference(tmp_path: Path) -> None:
    root = write_site(tmp_path)
    path = write_file(root)
    text = path.read_text(encoding="utf-8").replace('"guides"', '"./guides/"')
    path.write_text(text, encoding="utf-8")
    assert compare(root) == {}


def test_settings_that_the_site_does_not_decide_are_kept(tmp_path: Path) -> None:
    root = write_site(tmp_path)
    kept = {
        "data_dir": "state",
        "evaluation_test_set": 'a "quoted" file \\ ü',
        "chunk_max_tokens": 900,
        "site_manifest": "build/rag-manifest.json",
        "dedup_threshold": 0.9,
    }
    site, _ = detect(root, run_config=False)
    path = find_site_file(site)
    path.write_text(describe_site_file(site, kept | {"docs_dir": "old"}), encoding="utf-8")
    assert read_site_file(path).items() >= kept.items()
    assert read_site_file(path)["docs_dir"] == "guides"
    again = describe_site_file(site, read_site_file(path))
    assert again == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("computed", ["read()", "read() || 'https://guess.org'"])
def test_a_value_that_was_set_by_hand_is_kept_if_the_site_does_not_state_it(
    tmp_path: Path, computed: str
) -> None:
    root = write_site(tmp_path, CLASSIC.replace("'https://example.org'", computed))
    path = write_file(root)
    (root / "rag-pipeline.toml").write_text('site_base_url = "https://mine.org/"', encoding="utf-8")
    write_file(root)
    assert read_site_file(path)["site_base_url"] == "https://mine.org/"
    text = path.read_text(encoding="utf-8")
    assert "# Set by hand, because `url` is computed in line 3" in text
    write_file(root)
    assert path.read_text(encoding="utf-8") == text


def test_a_missing_file_cannot_be_compared(tmp_path: Path) -> None:
    root = write_site(tmp_path)
    with pytest.raises(ConfigurationError, match=r"no such file.*rag-pipeline init"):
        compare(root)


def test_a_broken_file_is_not_replaced_silently(tmp_path: Path) -> None:
    root = write_site(tmp_path)
    (root / "rag-pipeline.toml").write_text("docs_dirr = 'x'", encoding="utf-8")
    with pytest.raises(ConfigurationError, match="Did you mean `docs_dir`"):
        read_site_file(root / "rag-pipeline.toml")
