"""Find and read `docusaurus.config`: the values from which Docusaurus builds page addresses.

The file is never run. Each value says if it was read, is Docusaurus's default, is a guess from the
source, or is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.models import MarkdownFormat, SiteSettings
from rag_pipeline.ingestion.site.js_literals import (
    Computed,
    ModuleSyntaxError,
    ObjectLiteral,
    read_exported_value,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from rag_pipeline.ingestion.site.js_literals import Literal

_SUFFIXES: Final = (".ts", ".mts", ".cts", ".js", ".mjs", ".cjs")
_NAMES: Final = (
    "url",
    "baseUrl",
    "trailingSlash",
    "markdown.format",
    "routeBasePath",
    "markdown.parseFrontMatter",
)
_CLASSIC: Final = {"classic", "@docusaurus/classic", "@docusaurus/preset-classic"}
_DOCS_PLUGIN: Final = {
    "content-docs",
    "@docusaurus/content-docs",
    "@docusaurus/plugin-content-docs",
}


class Origin(StrEnum):
    """The source of a value of the site's configuration."""

    READ = "read"
    DEFAULT = "default"
    GUESS = "guess"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """A value of the site's configuration.

    Attributes:
        name: Name in the configuration, such as `baseUrl`.
        value: The value; None if it is unknown, or if the site leaves `trailingSlash` open.
        origin: The source of the value.
        problem: A clause that says why the value is a guess or unknown; otherwise empty.
    """

    name: str
    value: str | bool | None
    origin: Origin
    problem: str = ""

    @property
    def is_certain(self) -> bool:
        """True if the value was read or is Docusaurus's default."""
        return self.origin in {Origin.READ, Origin.DEFAULT}


@dataclass(frozen=True, slots=True)
class SiteConfig:
    """The values of one `docusaurus.config` for a docs folder: its addresses, and how it is read.

    `parse_front_matter` is true if the site has a function of its own that reads front matter.
    """

    path: Path
    url: ConfigValue
    base_url: ConfigValue
    trailing_slash: ConfigValue
    markdown_format: ConfigValue
    route_base_path: ConfigValue
    parse_front_matter: ConfigValue

    @property
    def site(self) -> SiteSettings:
        """The values as site settings. A value that is unknown gets Docusaurus's default."""
        route, form = self.route_base_path.value, self.markdown_format.value
        url, base = str(self.url.value or ""), str(self.base_url.value or "").strip("/")
        return SiteSettings(
            url.rstrip("/") + (f"/{base}/" if base else "/"),
            "docs" if route is None else str(route).strip("/"),
            None if self.trailing_slash.value is None else bool(self.trailing_slash.value),
            MarkdownFormat.MDX if form is None else MarkdownFormat(str(form)),
        )


def find_config(docs_dir: Path) -> Path | None:
    """Return the `docusaurus.config` file of the site that a docs folder belongs to.

    The folders above the docs folder are searched first, the nearest first, then the folders beside
    it, because a site may lie in `website/` next to `docs/`.
    """
    real = docs_dir.resolve()
    beside = sorted(path for path in real.parent.glob("*/") if path != real)
    return find_config_above(docs_dir) or _find_in((*real.parents, *beside))


def find_config_above(docs_dir: Path) -> Path | None:
    """Return the `docusaurus.config` in the nearest folder above a docs folder, if there is one.

    Symbolic links in the path of the docs folder are not followed.
    """
    return _find_in(docs_dir.absolute().parents)


def _find_in(folders: Iterable[Path]) -> Path | None:
    paths = (folder / f"docusaurus.config{suffix}" for folder in folders for suffix in _SUFFIXES)
    return next((path for path in paths if path.is_file()), None)


def read_config(path: Path, docs_dir: Path) -> SiteConfig:
    """Read the values that decide the addresses of the pages of one docs folder.

    Raises:
        MissingDependencyError: The parser is not installed.
    """
    try:
        source = path.read_bytes()
        config = read_exported_value(source, typescript=path.suffix in {".ts", ".mts", ".cts"})
        problem = "" if isinstance(config, ObjectLiteral) else "it exports no object literal"
    except OSError as error:
        config, problem = None, f"it cannot be read ({error.strerror})"
    except ModuleSyntaxError as error:
        config, problem = None, str(error)
    if not isinstance(config, ObjectLiteral):
        return SiteConfig(
            path, *(ConfigValue(name, None, Origin.UNKNOWN, problem) for name in _NAMES)
        )
    markdown = config.get("markdown")
    inner = _get(markdown, "format")
    formats = {each.value for each in MarkdownFormat}
    return SiteConfig(
        path,
        _read("url", config.get("url"), _is_url),
        _read("baseUrl", config.get("baseUrl"), lambda value: str(value).startswith("/")),
        _read("trailingSlash", config.get("trailingSlash"), _is_boolean, None),
        _read("markdown.format", inner, lambda value: value in formats, MarkdownFormat.MDX.value),
        _read_route(config, path.parent, docs_dir),
        ConfigValue(_NAMES[-1], _get(markdown, "parseFrontMatter") is not None, Origin.READ),
    )


def _read(
    name: str,
    found: Literal,
    is_valid: Callable[[object], bool],
    *default: str | bool | None,
) -> ConfigValue:
    """Return a value of the file; `default` is Docusaurus's own, if it has one."""
    if isinstance(found, Computed):
        guess = found.fallback
        problem = f"`{name}` is computed in line {found.line} (`{found.source}`)"
        if guess is not None and is_valid(guess):
            return ConfigValue(name, _as_value(guess), Origin.GUESS, problem)
        return ConfigValue(name, None, Origin.UNKNOWN, problem)
    if found is None:
        if default:
            return ConfigValue(name, default[0], Origin.DEFAULT)
        return ConfigValue(name, None, Origin.UNKNOWN, f"`{name}` is missing")
    if not is_valid(found):
        problem = f"`{name}` has the unexpected value {found!r:.60}"
        return ConfigValue(name, None, Origin.UNKNOWN, problem)
    return ConfigValue(name, _as_value(found), Origin.READ)


def _read_route(config: ObjectLiteral, site_dir: Path, docs_dir: Path) -> ConfigValue:
    """Return `routeBasePath` of the instance of the docs plugin that builds the docs folder."""
    name = "routeBasePath"
    folders, unclear = [], ""
    for options in _list_docs_options(config):
        if isinstance(options, Computed):
            unclear = unclear or f"is computed in line {options.line} (`{options.source}`)"
            continue
        folder = _read("path", options.get("path"), _is_text, "docs")
        if not folder.is_certain:
            unclear = unclear or folder.problem.replace("`path` ", "", 1)
            continue
        folders.append(str(folder.value))
        if (site_dir / folders[-1]).resolve() == docs_dir.resolve():
            if problem := _find_version_problem(options, site_dir):
                return ConfigValue(name, None, Origin.UNKNOWN, problem)
            return _read(name, options.get(name), _is_text, "docs")
    if unclear:
        problem = f"the part of the docs plugin that names the docs folder {unclear}"
    elif folders:
        problem = f"its docs plugin builds {', '.join(folders)} and not {docs_dir}"
    else:
        problem = "it has no docs plugin"
    return ConfigValue(name, None, Origin.UNKNOWN, problem)


def _list_docs_options(config: ObjectLiteral) -> Iterator[ObjectLiteral | Computed]:
    """Yield the options of each instance of the docs plugin, or the part that is not literal."""
    for kind, names in (("presets", _CLASSIC), ("plugins", _DOCS_PLUGIN)):
        entries = config.get(kind)
        for entry in entries if isinstance(entries, list) else [entries]:
            plugin, options = entry, None
            if isinstance(entry, list):
                plugin, options = (*entry, None, None)[:2]
            if isinstance(plugin, Computed):
                yield plugin
            elif plugin in names:
                found = _get(options, "docs") if kind == "presets" else options
                if found is not False:
                    yield found if isinstance(found, (ObjectLiteral, Computed)) else ObjectLiteral()


def _find_version_problem(options: ObjectLiteral, site_dir: Path) -> str:
    """Return a clause if the docs folder is not the version at the plugin's own route, or empty.

    `versions.json` lists released versions. Docusaurus then gives the docs folder another route,
    unless `lastVersion` is `current`.
    """
    plugin_id = options.get("id")
    prefix = f"{plugin_id}_" if isinstance(plugin_id, str) and plugin_id != "default" else ""
    if not (site_dir / f"{prefix}versions.json").is_file():
        return ""
    if options.get("lastVersion") == "current" and options.get("versions") is None:
        return ""
    return f"{prefix}versions.json lists other versions, so the docs folder has another route"


def _get(options: Literal, name: str) -> Literal:
    if isinstance(options, ObjectLiteral):
        return options.get(name)
    return options if isinstance(options, Computed) else None


def _is_url(value: object) -> bool:
    return isinstance(value, str) and value.startswith(("https://", "http://"))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_boolean(value: object) -> bool:
    return isinstance(value, bool)


def _as_value(value: Literal) -> str | bool:
    return value if isinstance(value, bool) else str(value)
