"""Rules about dangerous calls in the package, besides those of bandit, which ruff checks."""

from __future__ import annotations

import ast
import re
import tomllib
from typing import TYPE_CHECKING

import pytest

from rag_pipeline_tests.architecture.test_repository import MODULES, ROOT, name_of
from rag_pipeline_tests.class_names import parse

if TYPE_CHECKING:
    from collections.abc import Iterator

SITE_READERS = (
    "ingestion/site/",
    "ingestion/cards",
    "ingestion/discovery",
    "ingestion/publishing",
    "ingestion/splicing",
)
READS = {"open", "read_text", "read_bytes", "write_text", "write_bytes"}
STARTS_PROGRAMS = {
    "rag_pipeline/ingestion/site/docusaurus_config.py",  # runs it, with consent
}
RUNS_CODE = {"eval", "exec", "compile", "__import__"}
WRITERS = {
    "rag_pipeline/core/site/files.py": "the one place that writes for a site",
    "rag_pipeline/adapters/database/sqlite.py": "the database in DATA_DIR",
    "rag_pipeline/adapters/local_files.py": "files and locks in DATA_DIR",
    "rag_pipeline/adapters/stores/edge_catalog.py": "copies of the store in DATA_DIR",
    "rag_pipeline/cli/initializing.py": "remembered answers in the folder of the user's settings",
    "rag_pipeline/cli/evaluating.py": "tries if a folder can be written; the file has no name",
    "rag_pipeline/cli/output.py": "/dev/null",
    "rag_pipeline/retrieval/logs.py": "the log in DATA_DIR",
    "rag_pipeline/serving/limits.py": "the key in DATA_DIR",
}
"""The modules that write files, and what they write."""
SITE_WRITERS = {
    "rag_pipeline/cli/evaluating.py",  # --html and, for `review`, --write
    "rag_pipeline/cli/initializing.py",  # rag-pipeline.toml
    "rag_pipeline/ingestion/publishing.py",  # Markdown pages, llms.txt
}
"""The modules that write below the folder of a site, or a file that an option names."""
UNSAFE_MODULES = {"pickle", "marshal", "shelve", "dill", "telnetlib", "ftplib", "xml"}


def calls(tree: ast.AST) -> Iterator[tuple[ast.Call, str, str]]:
    """Yield each call with the name of the called function and of what stands before its dot."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Name(id=name):
                    yield node, name, ""
                case ast.Attribute(attr=name, value=owner):
                    yield node, name, ast.unparse(owner)


def imported(tree: ast.AST) -> set[str]:
    """Return the first parts of the names of imported modules."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


def breaks_a_rule(path: str, tree: ast.AST) -> Iterator[str]:
    """Yield a line for each call or import that the package must not contain."""
    for module in sorted(imported(tree) & UNSAFE_MODULES):
        yield f"{path} imports {module}"
    if "subprocess" in imported(tree) and path not in STARTS_PROGRAMS:
        yield f"{path} may start programs"
    for node, name, owner in calls(tree):
        place = f"{path}:{node.lineno}"
        options = {option.arg: ast.unparse(option.value) for option in node.keywords}
        if (not owner and name in RUNS_CODE) or f"{owner}.{name}" in {"os.system", "os.popen"}:
            yield f"{place} runs code"
        if owner == "yaml" and name in {"load", "load_all"}:
            yield f"{place} reads YAML that may create objects"
        if owner in {"zlib", "gzip", "bz2", "lzma"} and name == "decompress":
            yield f"{place} unpacks data without a limit"
        if options.get("shell") == "True" or options.get("verify") == "False":
            yield f"{place} uses a shell, or does not check certificates"
        reads_site = any(f"rag_pipeline/{part}" in path for part in SITE_READERS)
        if reads_site and name in READS:
            yield f"{place} opens a file of a site without core.site.files"


def writes(tree: ast.AST) -> bool:
    """Return True if a module creates or changes a file."""
    for node, name, owner in calls(tree):
        modes = [ast.unparse(one) for one in (*node.args, *(key.value for key in node.keywords))]
        opens = name in {"open", "fdopen"} and any(
            re.fullmatch(r"'[rbt]*[wax+][bt+]*'", mode) or "O_WRONLY" in mode or "O_RDWR" in mode
            for mode in modes
        )
        changes = owner and name in {
            "write_text",
            "write_bytes",
            "touch",
            "symlink_to",
            "hardlink_to",
        }
        makes = owner in {"shutil", "tempfile"} and re.match("copy|move|mkstemp|Named|Temp", name)
        if opens or changes or makes:
            return True
    return False


def test_all_modules_that_write_files_are_known() -> None:
    trees = {name_of(path): parse(path) for path in MODULES}
    assert {path for path, tree in trees.items() if writes(tree)} == set(WRITERS)
    assert {
        path
        for path, tree in trees.items()
        if any(n == "write_site_file" for _, n, _ in calls(tree))
    } == SITE_WRITERS


@pytest.mark.parametrize(
    "source",
    [
        "path.write_text(text)",
        "open(path, 'w')",
        "path.open('ab')",
        "os.open(path, os.O_WRONLY | os.O_CREAT)",
        "tempfile.mkstemp(dir=folder)",
        "shutil.copyfile(one, other)",
    ],
)
def test_each_way_to_write_is_found(source: str) -> None:
    assert writes(ast.parse(source))


def test_no_module_makes_a_dangerous_call() -> None:
    found = [line for path in MODULES for line in breaks_a_rule(name_of(path), parse(path))]
    assert found == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "import subprocess",
        "eval(text)",
        "os.system(text)",
        "yaml.load(text)",
        "zlib.decompress(data)",
        "run(text, shell=True)",
        "Client(verify=False)",
        "path.read_text()",
        "open(path)",
    ],
)
def test_each_rule_finds_its_call(source: str) -> None:
    assert list(breaks_a_rule("rag_pipeline/ingestion/site/new.py", ast.parse(source)))


def test_the_linter_checks_the_rules_of_bandit() -> None:
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"][
        "lint"
    ]
    assert lint["select"] == ["ALL"]
    assert not [rule for rule in lint["ignore"] if rule.startswith("S")]
