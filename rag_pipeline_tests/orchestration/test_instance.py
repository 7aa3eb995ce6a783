"""Tests of DAGSTER_HOME, the instance settings in dagster.yaml, and workspace.yaml."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import dagster as dg
import pytest
import yaml

from rag_pipeline.adapters.local_files import hold_lock
from rag_pipeline.core.errors import ConfigurationError, StoreLockedError
from rag_pipeline.core.settings import Settings, load_settings
from rag_pipeline.orchestration import instance
from rag_pipeline.orchestration.instance import INSTANCE_SETTINGS, prepare_dagster_home

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _restored_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", "")  # so that pytest restores it after the test


def settings_for(tmp_path: Path, dagster_home: str = "") -> Settings:
    """Return settings with all folders below `tmp_path`."""
    return load_settings(
        _env_file="",
        docs_dir=tmp_path / "docs",
        data_dir=tmp_path / "data",
        dagster_home=dagster_home,
    )


def test_the_default_home_is_in_the_books_state_folder_and_has_our_settings(
    tmp_path: Path,
) -> None:
    settings = settings_for(tmp_path)
    home = prepare_dagster_home(settings)
    assert home == settings.state_dir / "dagster"
    assert (home / "dagster.yaml").read_text() == INSTANCE_SETTINGS.read_text()
    with dg.DagsterInstance.get() as opened:
        assert opened.root_directory == str(home)
        assert not opened.telemetry_enabled
        assert opened.run_monitoring_enabled


def test_a_command_in_the_background_gets_a_home_with_databases_and_can_be_stopped(
    tmp_path: Path,
) -> None:
    show = """
import os, pathlib, signal
home = pathlib.Path(os.environ["DAGSTER_HOME"])
print(home, *(path.name for path in home.rglob("*.db")))
signal.raise_signal(2)
"""
    command = [sys.executable, "-m", "rag_pipeline.orchestration.instance", sys.executable, "-c"]
    done = subprocess.run(
        ["/bin/sh", "-c", 'trap "" INT TERM; exec "$@"', "sh", *command, show],
        env={**os.environ, "DATA_DIR": str(tmp_path), "DAGSTER_HOME": "", "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    home, *databases = done.stdout.split()
    assert home.startswith(str(tmp_path))
    assert {"event_log.db", "runs.db", "schedules.db"} <= set(databases)
    assert "KeyboardInterrupt" in done.stderr, "SIGINT was ignored"


def test_an_empty_database_is_left_to_the_process_that_creates_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = prepare_dagster_home(settings_for(tmp_path))
    monkeypatch.setattr(instance, "_OPENING_TIMEOUT_S", 0.1)
    with hold_lock(home / ".opening.lock", 0.0):
        (home / "event_log.db").touch()
        with pytest.raises(StoreLockedError, match=r"opens Dagster's instance"):
            prepare_dagster_home(settings_for(tmp_path))
        assert (home / "event_log.db").is_file()


def test_an_event_log_whose_creation_was_killed_is_created_again(tmp_path: Path) -> None:
    home = prepare_dagster_home(settings_for(tmp_path))
    with closing(sqlite3.connect(home / "event_log.db")) as connection:
        connection.execute("create table event_logs (id integer primary key)")
    prepare_dagster_home(settings_for(tmp_path))
    with dg.DagsterInstance.get() as opened:
        assert opened.event_log_storage.all_asset_keys() == []
    prepare_dagster_home(settings_for(tmp_path))
    assert len(list(home.glob("event_log.db.damaged-*"))) == 1


def test_the_queue_starts_one_run_at_a_time(tmp_path: Path) -> None:
    prepare_dagster_home(settings_for(tmp_path))
    with dg.DagsterInstance.get() as opened:
        queue = opened.get_concurrency_config().run_queue_config
        assert queue is not None
        assert queue.max_concurrent_runs == 1


def test_an_outdated_copy_of_dagster_yaml_is_replaced(tmp_path: Path) -> None:
    home = prepare_dagster_home(settings_for(tmp_path))
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: true\n")
    prepare_dagster_home(settings_for(tmp_path))
    assert (home / "dagster.yaml").read_text() == INSTANCE_SETTINGS.read_text()


def test_a_home_named_in_the_settings_is_created_and_stays_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    home = prepare_dagster_home(settings_for(tmp_path, dagster_home="my-home"))
    assert home == tmp_path / "my-home"
    assert list(home.iterdir()) == []


def test_the_error_about_a_home_that_cannot_be_created_names_the_setting(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match=r"^DAGSTER_HOME: .*file/home cannot be written"):
        prepare_dagster_home(settings_for(tmp_path, dagster_home=str(tmp_path / "file" / "home")))


def test_the_error_about_a_file_in_place_of_the_home_says_so(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(ConfigurationError, match=r"home is a file, .*\. Move the file away$"):
        prepare_dagster_home(settings_for(tmp_path, dagster_home=str(tmp_path / "home")))


def test_every_instance_setting_has_a_comment() -> None:
    sections = re.split(r"\n(?=\w)", INSTANCE_SETTINGS.read_text(encoding="utf-8"))[1:]
    for section in sections:
        head, *lines = [line for line in section.splitlines() if not line.lstrip().startswith("#")]
        leaves = [line for line in lines if line.strip() and not line.rstrip().endswith(":")]
        assert " # " in head or all(" # " in leaf for leaf in leaves), head


def test_the_workspace_file_names_the_code_location() -> None:
    workspace = yaml.safe_load((ROOT / "workspace.yaml").read_text())
    (location,) = workspace["load_from"]
    assert location["python_module"]["module_name"] == "rag_pipeline.definitions"
