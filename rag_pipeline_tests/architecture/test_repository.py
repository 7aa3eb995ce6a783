"""Rules that every file of the repository keeps."""

from __future__ import annotations

import ast
import hashlib
import os
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from rag_pipeline_tests.class_names import parse

ROOT = Path(__file__).parents[2]
FOLDERS = ("rag_pipeline", "rag_pipeline_tests", "benchmarks", "scripts", "deploy", "docs")
TEXT = {".py", ".md", ".toml", ".yaml", ".yml", ".sh", ".json", ".txt", ".lock", ""}
MACHINE_PATH = re.compile(r"(?<![\w.])(/home/|/root/|/Users/|/work/|C:\\Users\\)\w")
FUNDING = re.compile(r'^\s*("url": )?"https?://[^"]*"')
EXCUSE = re.compile(r"#\s*(noqa|type:\s*ignore)\b(?P<rest>.*)")
CODE_AND_REASON = re.compile(r"^(: [A-Z]+[0-9]+(, ?[A-Z]+[0-9]+)*|\[[\w, -]+\])\s+#\s*\S+")
MODULES = sorted((ROOT / "rag_pipeline").rglob("*.py"))
SOURCES = [*MODULES, *sorted((ROOT / "benchmarks").rglob("*.py")), *(ROOT / "scripts").glob("*.py")]
MAX_DOCSTRING_LINES = 22


def text_files() -> list[Path]:
    roots = [path for path in ROOT.iterdir() if path.is_file()]
    nested = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
    generated = ("__pycache__", "minilm", "cl100k_base")
    return [
        path
        for path in (*roots, *nested)
        if path.suffix in TEXT
        and path.name not in {".env", ".coverage", ".git"}
        and not set(generated) & set(path.parts)
    ]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


LOCKS = ("requirements.lock", "requirements-dev.lock")


def locked(*names: str) -> dict[str, tuple[str, int]]:
    """Package to (version, number of hashes) in lock files."""
    text = "\n".join((ROOT / name).read_text(encoding="utf-8").strip() for name in names)
    entries = re.split(r"\n(?=[A-Za-z0-9])", text)
    found = {}
    for entry in entries:
        match = re.match(r"(?P<name>[A-Za-z0-9._-]+)(\[[\w,-]+\])?==(?P<version>[^\s;\\]+)", entry)
        assert match, f"not a pinned requirement: {entry[:60]!r}"
        found[canonicalize_name(match["name"])] = (match["version"], entry.count("--hash=sha256:"))
    return found


def declared(*extras: str, groups: bool) -> list[Requirement]:
    """The requirements in pyproject.toml of the package, some extras, and all groups."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    for extra in extras or project["project"]["optional-dependencies"]:
        listed += project["project"]["optional-dependencies"][extra]
    for group in project["dependency-groups"].values() if groups else ():
        listed += [entry for entry in group if isinstance(entry, str)]
    return [Requirement(entry) for entry in listed]


def test_no_lock_file_names_a_host() -> None:
    for name in (*LOCKS, "website/package-lock.json"):
        lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
        # npm copies where a package asks for funds; that is no place anything comes from.
        hosts = [line.strip() for line in lines if "://" in line and not FUNDING.search(line)]
        assert hosts == [], name


def test_every_locked_version_has_a_hash() -> None:
    assert [name for name, (_, hashes) in locked(*LOCKS).items() if not hashes] == []


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (LOCKS, declared(groups=True)),
        (LOCKS[:1], declared("pipeline", "serve", "cohere", groups=False)),
    ],
    ids=["both", "main"],
)
def test_the_locks_satisfy_what_pyproject_asks_for(
    names: tuple[str, ...], wanted: list[Requirement]
) -> None:
    versions = {name: version for name, (version, _) in locked(*names).items()}
    for requirement in wanted:
        name = canonicalize_name(requirement.name)
        assert name in versions, f"{name} is not locked: run `make lock`"
        assert requirement.specifier.contains(versions[name], prereleases=True), (
            f"{requirement} does not allow the locked {versions[name]}: run `make lock`"
        )


def test_the_locks_agree_on_packages_that_both_name() -> None:
    main, dev = (locked(name) for name in LOCKS)
    assert [name for name in set(main) & set(dev) if main[name] != dev[name]] == []


def test_no_file_holds_a_path_of_one_machine() -> None:
    found = [
        f"{name_of(path)}:{number}: {line.strip()[:100]}"
        for path in text_files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if MACHINE_PATH.search(line) and path != Path(__file__)
    ]
    assert found == []


def test_no_work_is_left_as_a_note() -> None:
    mark = re.compile("|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX")))
    found = [
        name_of(path) for path in text_files() if mark.search(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_docstrings_can_be_read_at_a_glance() -> None:
    long = [
        f"{name_of(path)}: {node.name}"
        for path in MODULES
        for node in ast.walk(parse(path))
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and len((ast.get_docstring(node) or "").splitlines()) > MAX_DOCSTRING_LINES
    ]
    assert long == []


def test_an_excuse_to_a_checker_names_its_code_and_reason() -> None:
    found = []
    for path in SOURCES:
        said = ""  # a run of lines excused alike says why once, in its first
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            excuse = EXCUSE.search(line)
            code = excuse[0].partition("  #")[0] if excuse else ""
            if excuse and code != said and not CODE_AND_REASON.match(excuse["rest"]):
                found.append(f"{name_of(path)}:{number}: {line.strip()}")
            said = code
    assert found == []


def test_dagster_modules_keep_their_annotations() -> None:
    # Postponed annotations break Dagster's Config parameters and annotated contexts.
    folder = ROOT / "rag_pipeline" / "orchestration"
    for path in (*folder.rglob("*.py"), ROOT / "rag_pipeline" / "definitions.py"):
        assert "from __future__ import annotations" not in path.read_text(encoding="utf-8"), path


def test_vendored_files_are_those_their_notices_name() -> None:
    for notice in (ROOT / "rag_pipeline" / "data").glob("*/NOTICE.md"):
        row = re.compile(r"^\| (?P<name>[\w.]+) \| (?P<digest>[0-9a-f]{64}) \|$", re.MULTILINE)
        named = {
            match["name"]: match["digest"]
            for match in row.finditer(notice.read_text(encoding="utf-8"))
        }
        present = {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in notice.parent.iterdir()
            if path != notice
        }
        assert named == present
    assert len(list((ROOT / "rag_pipeline" / "data").glob("*/NOTICE.md"))) == 2


def test_scripts_can_be_started() -> None:
    for path in (ROOT / ".ci" / "run", *(ROOT / "scripts").glob("*.sh")):
        assert os.access(path, os.X_OK), path


def test_ci_calls_targets_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):.*?## ", makefile, re.MULTILINE))
    callers = [*(ROOT / ".github" / "workflows").glob("*.yml"), ROOT / ".ci" / "run"]
    called = {
        target
        for path in callers
        for target in re.findall(
            r"\bmake (?:--no-print-directory )?([a-z-]+)", path.read_text(encoding="utf-8")
        )
    }
    assert called
    assert called <= targets
