"""Find and read `docusaurus.config`: the values from which Docusaurus builds page addresses.

The file is never run here. Each value says if it was read, is Docusaurus's default, is a guess from
the source, or is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.models import MarkdownFormat, SiteSettings
from rag_pipeline.core.settings.file import list_site_folders
from rag_pipeline.core.site.files import CONFIG_NAMES
from rag_pipeline.ingestion.site.config_values import (
    ConfigValue,
    Origin,
    get_property,
    read_value,
)
from rag_pipeline.ingestion.site.literals import (
    ModuleSyntaxError,
    ObjectLiteral,
    read_exported_value,
)
from rag_pipeline.ingestion.site.sources.plugins import read_route

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_NAMES: Final = (
    "url",
    "baseUrl",
    "trailingSlash",
    "markdown.format",
    "routeBasePath",
    "markdown.parseFrontMatter",
)


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
    def by_field(self) -> dict[str, tuple[ConfigValue, ...]]:
        """The values from which each field of the site settings is made."""
        return {
            "base_url": (self.url, self.base_url),
            "route_base_path": (self.route_base_path,),
            "trailing_slash": (self.trailing_slash,),
            "markdown_format": (self.markdown_format,),
        }

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


def list_configs(site_dir: Path) -> list[Path]:
    """Return the `docusaurus.config` files in a folder. Docusaurus reads the first one."""
    paths = (site_dir / name for name in CONFIG_NAMES)
    return [path for path in paths if path.is_file()]


def find_config(docs_dir: Path) -> Path | None:
    """Return the `docusaurus.config` file of the site that a docs folder belongs to."""
    return _find_in(list_site_folders(docs_dir))


def find_config_above(docs_dir: Path) -> Path | None:
    """Return the `docusaurus.config` in the nearest folder above a docs folder, if there is one.

    Symbolic links in the path of the docs folder are not followed.
    """
    return _find_in(docs_dir.absolute().parents)


def _find_in(folders: Iterable[Path]) -> Path | None:
    return next((paths[0] for folder in folders if (paths := list_configs(folder))), None)


def read_config(path: Path, docs_dir: Path) -> SiteConfig:
    """Read the values that decide the addresses of the pages of one docs folder.

    Raises:
        MissingDependencyError: The parser is not installed.
    """
    config = read_literals(path)
    if isinstance(config, str):
        return SiteConfig(
            path, *(ConfigValue(name, None, Origin.UNKNOWN, config) for name in _NAMES)
        )
    return interpret_config(config, path, read_route(config, path.parent, docs_dir))


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
    inner = get_property(markdown, "format")
    formats = {each.value for each in MarkdownFormat}
    return SiteConfig(
        path,
        read_value("url", config.get("url"), _is_url),
        read_value("baseUrl", config.get("baseUrl"), lambda value: str(value).startswith("/")),
        read_value("trailingSlash", config.get("trailingSlash"), _is_boolean, None),
        read_value(
            "markdown.format", inner, lambda value: value in formats, MarkdownFormat.MDX.value
        ),
        route,
        ConfigValue(
            _NAMES[-1], get_property(markdown, "parseFrontMatter") is not None, Origin.READ
        ),
    )


def _is_url(value: object) -> bool:
    return isinstance(value, str) and value.startswith(("https://", "http://"))


def _is_boolean(value: object) -> bool:
    return isinstance(value, bool)
