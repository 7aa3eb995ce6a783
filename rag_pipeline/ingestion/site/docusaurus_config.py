"""Read `docusaurus.config`, from its text or, with consent, by running it with Node.

Each value says if it was read, is Docusaurus's default, is a guess from the source, or is unknown.
"""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.models import MarkdownFormat, SiteSettings
from rag_pipeline.core.settings.file import list_site_folders
from rag_pipeline.core.settings.rules import OPEN, SITE_FIELDS
from rag_pipeline.core.site.files import CONFIG_NAMES, read_site_file
from rag_pipeline.ingestion.site.literals import (
    ConfigValue,
    ModuleSyntaxError,
    ObjectLiteral,
    Origin,
    as_literal,
    get_property,
    read_exported_value,
    read_value,
)
from rag_pipeline.ingestion.site.plugins import read_route

if TYPE_CHECKING:
    from collections.abc import Iterable


_SCRIPT: Final = Path(__file__).with_name("load_config.cjs")
_TIMEOUT_S: Final = 120.0
_QUOTED_CHARACTERS: Final = 300
_COLORS: Final = re.compile(r"\x1b\[[0-9;]*m")
_WITHOUT_NODE: Final = "leave out --run-config"
_HEAP_MB: Final = 1024
_MEMORY_BYTES: Final = 4 * 1024**3
_OUTPUT_BYTES: Final = 16 * 1024**2


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
        command = [self.node, f"--max-old-space-size={_HEAP_MB}", str(_SCRIPT)]
        command += [str(path.resolve()), str(self.core.resolve())]
        code, output, errors = _run(command, path)
        lines = output.strip().splitlines()
        try:
            result = json.loads(lines[-1])
            found = result.get("config")
        except (LookupError, ValueError, AttributeError, RecursionError):
            said = _shorten(errors)
            problem = f"Node ended with exit code {code} while it was loaded"
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
        package = json.loads(read_site_file(core / "package.json", None))
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


def make_environment() -> dict[str, str]:
    """Return the environment for the site's code: PATH, HOME and NODE_*, and no tokens."""
    allowed = {
        name: value
        for name, value in os.environ.items()
        if name in {"PATH", "HOME"} or (name.startswith("NODE_") and "TOKEN" not in name)
    }
    # A build of the site runs the configuration in this mode too.
    return allowed | {"NODE_ENV": "production", "BABEL_ENV": "production"}


def _run(command: list[str], config: Path) -> tuple[int, str, str]:
    """Run the site's code within limits; return its exit code, output and errors.

    Raises:
        ConfigurationError: It does not end in time.
    """
    with TemporaryFile() as output, TemporaryFile() as errors:
        process = subprocess.Popen(  # noqa: S603  # the user has allowed to run this code
            command,
            cwd=config.parent,
            env=make_environment(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=True,
        )
        try:
            _limit(process.pid)
            code = process.wait(_TIMEOUT_S)
        except subprocess.TimeoutExpired as error:
            problem = f"it did not end within {_TIMEOUT_S:g} s when it was loaded"
            raise _describe_failure(config, problem) from error
        finally:
            with suppress(ProcessLookupError):  # also what it started
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        texts = []
        for file in (output, errors):
            file.seek(0)
            texts.append(file.read(_OUTPUT_BYTES).decode("utf-8", "replace"))
        return code, texts[0], texts[1]


def _limit(process_id: int) -> None:
    """Limit the memory of a process, and the size of each file that it writes."""
    if sys.platform != "linux":  # other systems limit only the heap, by an option of Node
        return
    for limit, size in (
        (resource.RLIMIT_DATA, _MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, _OUTPUT_BYTES),
    ):
        with suppress(ProcessLookupError):
            resource.prlimit(process_id, limit, (size, size))


def _describe_failure(path: Path, problem: str) -> ConfigurationError:
    remedy = f"Build the site to see the cause and correct it, or {_WITHOUT_NODE}"
    return ConfigurationError(str(path), problem, remedy)


def _shorten(message: str) -> str:
    """Return a message of Node as one line without colors."""
    line = " ".join(_COLORS.sub("", message).split()).rstrip(".")
    return line if len(line) <= _QUOTED_CHARACTERS else line[: _QUOTED_CHARACTERS - 3] + "..."


def _read_version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text)[:3])


_FUNCTIONS: Final = ("parseFrontMatter", "preprocessor")


@dataclass(frozen=True, slots=True)
class SiteConfig:
    """The values of one `docusaurus.config` for a docs folder: its addresses, and how it is read.

    Attributes:
        path: The file.
        site: The values as settings. A value that is unknown has Docusaurus's default.
        values: One value for each field of the site that `SITE_FIELDS` names.
        functions: The functions of the site that change how Markdown files are read.
    """

    path: Path
    site: SiteSettings
    values: tuple[ConfigValue, ...]
    functions: tuple[str, ...] = ()


def list_configs(site_dir: Path) -> list[Path]:
    """Return the `docusaurus.config` files in a folder. Docusaurus reads the first one."""
    paths = (site_dir / name for name in CONFIG_NAMES)
    return [path for path in paths if path.is_file()]


def find_config(docs_dir: Path) -> Path | None:
    """Return the `docusaurus.config` file of the site that a docs folder belongs to."""
    return find_config_in(list_site_folders(docs_dir))


def find_config_in(folders: Iterable[Path]) -> Path | None:
    """Return the `docusaurus.config` in the first of some folders that has one."""
    return next((paths[0] for folder in folders if (paths := list_configs(folder))), None)


def read_config(path: Path, docs_dir: Path) -> SiteConfig:
    """Read the values that decide the addresses of the pages of one docs folder.

    Raises:
        MissingDependencyError: The parser is not installed.
    """
    config = read_literals(path)
    if isinstance(config, str):
        unknown = (
            ConfigValue((), None, Origin.UNKNOWN, config, f"site_{name}") for name in SITE_FIELDS
        )
        return SiteConfig(path, SiteSettings(), tuple(unknown))
    return interpret_config(config, path, read_route(config, path, docs_dir))


def read_literals(path: Path) -> ObjectLiteral | str:
    """Return what a `docusaurus.config` states literally, or a clause that says why it cannot be.

    Raises:
        MissingDependencyError: The parser is not installed.
    """
    try:
        config = read_exported_value(path)
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    except ModuleSyntaxError as error:
        return str(error)
    return config if isinstance(config, ObjectLiteral) else "it exports no object literal"


def interpret_config(config: ObjectLiteral, path: Path, route: ConfigValue) -> SiteConfig:
    """Return the values of a configuration; `route` is the `routeBasePath` of the docs folder."""
    markdown = config.get("markdown")
    formats = {each.value for each in MarkdownFormat}
    url = read_value("url", config.get("url"), lambda value: str(value).startswith("http"))
    base = read_value("baseUrl", config.get("baseUrl"), lambda value: str(value).startswith("/"))
    trailing = config.get("trailingSlash")
    if trailing in ("true", "false"):  # Docusaurus converts these texts
        trailing = trailing == "true"
    slash = read_value("trailingSlash", trailing, lambda value: isinstance(value, bool), None)
    form = read_value(
        "markdown.format",
        get_property(markdown, "format"),
        lambda value: value in formats,
        MarkdownFormat.MDX.value,
    )
    base_path = str(base.value or "").strip("/")
    site = SiteSettings(
        str(url.value or "").rstrip("/") + (f"/{base_path}/" if base_path else "/"),
        "docs" if route.value is None else str(route.value).strip("/"),
        None if slash.value is None else bool(slash.value),
        MarkdownFormat.MDX if form.value is None else MarkdownFormat(str(form.value)),
    )
    values = (
        _join("base_url", site.base_url, url, base),
        _join("route_base_path", site.route_base_path or "/", route),
        _join("trailing_slash", OPEN if slash.value is None else bool(slash.value), slash),
        _join("markdown_format", site.markdown_format.value, form),
    )
    functions = (name for name in _FUNCTIONS if get_property(markdown, name) is not None)
    return SiteConfig(path, site, values, tuple(functions))


def _join(field: str, value: str | bool, *parts: ConfigValue) -> ConfigValue:  # noqa: FBT001  # a value
    """Return the value of a site setting, with the origin and problems of its parts.

    The origin is the least certain one, but `READ` if some were read and others are defaults.
    """
    order = (Origin.UNKNOWN, Origin.GUESS, Origin.READ, Origin.DEFAULT)
    origin = min((part.origin for part in parts), key=order.index)
    return ConfigValue(
        tuple(name for part in parts for name in part.names),
        None if origin is Origin.UNKNOWN else value,
        origin,
        "; ".join(dict.fromkeys(part.problem for part in parts if part.problem)),
        f"site_{field}",
    )
