"""Tests of the release: its notes, its version, and the versions that the wheel is tested with."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType  # noqa: TC003  # pytest reads annotations of fixtures

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
CHANGELOG = """# Changelog

## [1.1.0] - 2026-12-01

- One.

### Fixed

- Two.

## [1.0.0] - 2026-11-01

## [0.9.0] - 2026-10-01

- Three.
"""


@pytest.fixture(scope="module")
def release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release", ROOT / "scripts" / "release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_release_notes_are_the_changelog_section_of_the_version(release: ModuleType) -> None:
    assert release.extract_notes(CHANGELOG, "1.1.0") == "- One.\n\n### Fixed\n\n- Two.\n"
    assert release.extract_notes(CHANGELOG, "0.9.0") == "- Three.\n"


@pytest.mark.parametrize("version", ["1.0.0", "2.0.0", "1.1"])
def test_a_release_without_notes_is_refused(release: ModuleType, version: str) -> None:
    with pytest.raises(SystemExit, match=re.escape(f"no section '## [{version}]'")):
        release.extract_notes(CHANGELOG, version)


def test_the_changelog_has_notes_for_the_version_of_this_package(release: ModuleType) -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert release.extract_notes(changelog, release.read_version())


def test_the_wheel_is_tested_with_each_locked_version(release: ModuleType) -> None:
    lines = release.read_locked_versions().splitlines()
    requirements = [Requirement(line) for line in lines]
    assert not any(requirement.extras for requirement in requirements)
    assert "dagster" in {requirement.name for requirement in requirements}
