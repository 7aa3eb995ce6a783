"""Tests that the files of a site cannot send the user's keys or data anywhere."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.settings import Settings, load_settings
from rag_pipeline.core.settings.file import SETTINGS_FILE, may_set

SITE = {name for name, field in Settings.model_fields.items() if may_set(field)}
"""The settings that the file of a site may set."""


pytestmark = pytest.mark.usefixtures("no_settings_from_outside")


def write_site(folder: Path, text: str) -> Path:
    """Write a site with a settings file, and return its docs folder."""
    (folder / "docs").mkdir(parents=True)
    (folder / SETTINGS_FILE).write_text(text, encoding="utf-8")
    return folder / "docs"


@pytest.mark.parametrize("name", sorted(Settings.model_fields.keys() - SITE))
def test_a_line_that_only_the_user_may_set_is_refused_with_its_file(
    tmp_path: Path, name: str
) -> None:
    docs = write_site(tmp_path / "site", f'{name} = "http://127.0.0.1:9"\n')
    with pytest.raises(ConfigurationError) as raised:
        load_settings(docs_dir=docs)
    message = str(raised.value)
    assert SETTINGS_FILE in message
    assert name in message


def test_a_site_can_set_no_address_key_command_or_limit() -> None:
    words = ("url", "key", "host", "origin", "rate", "log", "provider", "model", "home", "proxies")
    assert SITE.isdisjoint(
        name
        for name in Settings.model_fields
        if any(word in name.split("_") for word in words) and name != "site_base_url"
    )


PLACES = {
    "above": 'docs_dir = "../../private"',
    "absolute": 'docs_dir = "/etc"',
    "home": 'data_dir = "~/.ssh"',
    "state": 'data_dir = "/var/tmp/state"',
    "file": 'evaluation_test_set = "/etc/passwd"',
    "manifest": 'site_manifest = "../../other/rag-manifest.json"',
    "link": 'site_manifest = "away/rag-manifest.json"',
    "source": '[[sources]]\nname = "a"\nfolder = "/etc"\nprefix = "a/"',
    "fallback": '[[sources]]\nname = "a"\nfolder = "docs"\nprefix = "a/"\nfallback = "../.."',
}


@pytest.mark.parametrize("text", PLACES.values(), ids=PLACES)
def test_a_site_names_no_place_outside_its_root(tmp_path: Path, text: str) -> None:
    docs = write_site(tmp_path / "repository" / "site", text + "\n")
    (docs.parent / "away").symlink_to("/etc")
    (tmp_path / "repository" / ".git").mkdir()
    with pytest.raises(ConfigurationError, match="outside"):
        load_settings(docs_dir=docs)


def test_a_site_names_folders_of_its_repository(tmp_path: Path) -> None:
    docs = write_site(tmp_path / "repository" / "site", 'data_dir = "../data"\n')
    (tmp_path / "repository" / ".git").mkdir()
    expected = tmp_path / "repository" / "data"
    assert load_settings(docs_dir=docs).data_dir.resolve() == expected


@pytest.mark.parametrize("name", [SETTINGS_FILE, ".env"])
@pytest.mark.parametrize("fault", ["owner", "mode"])
def test_a_file_of_another_user_or_one_that_all_may_write_is_not_read(
    tmp_path: Path, name: str, fault: str
) -> None:
    text = "SITE_BASE_URL=/evil/" if name == ".env" else 'site_base_url = "/evil/"'
    (tmp_path / name).write_text(f"{text}\n", encoding="utf-8")
    assert load_settings().site_base_url == "/evil/"
    if fault == "mode":
        (tmp_path / name).chmod(0o666)
    elif os.geteuid() == 0:
        os.chown(tmp_path / name, 12345, 12345)
    else:
        pytest.skip("only root can give a file away")
    assert load_settings().site_base_url is None


def test_a_pipe_with_the_name_of_a_settings_file_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / SETTINGS_FILE)
    os.mkfifo(tmp_path / ".env")
    assert load_settings().docs_dir == Path("website/docs")


def test_a_settings_file_that_is_a_link_out_of_the_site_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.toml").write_text('site_base_url = "/evil/"\n', encoding="utf-8")
    (tmp_path / "site" / "docs").mkdir(parents=True)
    (tmp_path / "site" / ".git").mkdir()
    (tmp_path / "site" / SETTINGS_FILE).symlink_to(tmp_path / "secret.toml")
    with pytest.raises(ConfigurationError, match="leads out of"):
        load_settings(docs_dir=tmp_path / "site" / "docs")
