"""Run `docusaurus.config` with Node, through the configuration loader of the site's Docusaurus."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.ingestion.site.literals.values import ObjectLiteral, as_literal

_SCRIPT: Final = Path(__file__).with_name("load_config.cjs")
_TIMEOUT_S: Final = 120.0
_QUOTED_CHARACTERS: Final = 300
_COLORS: Final = re.compile(r"\x1b\[[0-9;]*m")
_WITHOUT_NODE: Final = "use --no-node to read the file without running it"


@dataclass(frozen=True, slots=True)
class ConfigLoader:
    """Node and the Docusaurus of a site, which together can run its configuration.

    Attributes:
        node: Path of the program Node.
        node_version: Its version, such as `20.1.0`.
        core: Folder of the package `@docusaurus/core`.
        version: Version of Docusaurus.
    """

    node: str
    node_version: str
    core: Path
    version: str

    def load(self, path: Path) -> ObjectLiteral:
        """Run a `docusaurus.config` and return its values, with the presets replaced by plugins.

        Raises:
            ConfigurationError: The configuration cannot be loaded.
        """
        # A build of the site runs the configuration in this mode too.
        environment = os.environ | {"NODE_ENV": "production", "BABEL_ENV": "production"}
        try:
            done = subprocess.run(  # noqa: S603  # the caller says before that the code is run
                [self.node, str(_SCRIPT), str(path.resolve()), str(self.core.resolve())],
                cwd=path.parent,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            problem = f"it did not end within {_TIMEOUT_S:g} s when it was loaded"
            raise _describe_failure(path, problem) from error
        lines = done.stdout.decode("utf-8", "replace").strip().splitlines()
        try:
            result = json.loads(lines[-1])
            found = result.get("config")
        except (LookupError, ValueError, AttributeError):
            said = _shorten(done.stderr.decode("utf-8", "replace"))
            problem = f"Node ended with exit code {done.returncode} while it was loaded"
            raise _describe_failure(path, problem + (f" ({said})" if said else "")) from None
        if found is None:
            problem = f"it fails when it is loaded: {_shorten(str(result.get('error')))}"
            raise _describe_failure(path, problem)
        return ObjectLiteral({name: as_literal(value) for name, value in found.items()})


def find_loader(site_dir: Path) -> ConfigLoader | str:
    """Return the loader of a site, or a sentence that says why there is none."""
    folders = (site_dir.absolute(), *site_dir.absolute().parents)
    places = (folder / "node_modules" / "@docusaurus" / "core" for folder in folders)
    core = next((place for place in places if (place / "package.json").is_file()), None)
    if core is None:
        return (
            "The site's node_modules folder with Docusaurus is missing. `npm install` in the "
            "folder of the site creates it"
        )
    try:
        package = json.loads((core / "package.json").read_bytes())
        docusaurus, engine = str(package["version"]), str(package.get("engines", {}).get("node"))
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return f"The package in {core} is damaged. Install the site's packages again"
    node = shutil.which("node")
    if node is None:
        return "Node is not installed, or `node` is not on the PATH"
    try:
        done = subprocess.run(  # noqa: S603  # the program that the PATH names
            [node, "--version"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return f"Node cannot be started ({node})"
    version = done.stdout.strip().removeprefix("v")
    needed = re.search(r">=?\s*v?(\d+(?:\.\d+)*)", engine)
    if needed and _read_version(version) < _read_version(needed[1]):
        return f"Node {version} is too old. Docusaurus {docusaurus} needs Node {needed[1]} or newer"
    return ConfigLoader(node, version, core, docusaurus)


def _describe_failure(path: Path, problem: str) -> ConfigurationError:
    remedy = f"Build the site to see the cause and correct it, or {_WITHOUT_NODE}"
    return ConfigurationError(str(path), problem, remedy)


def _shorten(message: str) -> str:
    """Return a message of Node as one line without colors."""
    line = " ".join(_COLORS.sub("", message).split()).rstrip(".")
    return line if len(line) <= _QUOTED_CHARACTERS else line[: _QUOTED_CHARACTERS - 3] + "..."


def _read_version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])
