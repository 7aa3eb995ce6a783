"""Write `rag-pipeline.toml` for a site, and compare it and the site's settings with the site."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.settings import Settings
from rag_pipeline.core.settings.file import SETTINGS_FILE, SettingsFile, is_own_file
from rag_pipeline.core.site.addresses import describe_source, place_entries, read_sources
from rag_pipeline.ingestion.site.detection import detect_site, name_some
from rag_pipeline.ingestion.site.docusaurus_config import find_config, read_config
from rag_pipeline.ingestion.site.literals import Origin

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from rag_pipeline.core.models import SiteSettings
    from rag_pipeline.core.sources import Source
    from rag_pipeline.ingestion.site.detection import DetectedSite, DetectedValue


_HEAD: Final = """\
# The settings of this site for rag-pipeline. `rag-pipeline init` writes this file, and
# `rag-pipeline init --check` says if it still matches the site.
# Each key is the name of a setting in lower case. Environment variables and .env win over this
# file. Relative paths are relative to this file. Addresses of services, keys and models are set in
# the environment or in .env, not here.
"""


@dataclass(frozen=True, slots=True)
class FileDifference:
    """A value of the settings file that is not the one of the site.

    Attributes:
        setting: Name of the setting in lower case.
        in_file: The value in the file; None if the file lacks it.
        on_site: The value that the site has.
    """

    setting: str
    in_file: Any
    on_site: str | bool | None


def read_site_file(path: Path) -> dict[str, Any]:
    """Return the values that a settings file states; empty if there is no such file.

    Raises:
        ConfigurationError: The file is invalid.
    """
    return dict(SettingsFile(Settings, path).toml_data) if is_own_file(path) else {}


def find_site_file(site: DetectedSite) -> Path:
    """Return the path of the settings file of a site."""
    return site.folder / SETTINGS_FILE


def describe_site_file(site: DetectedSite, kept: Mapping[str, Any]) -> str:
    """Return the text of the settings file of a site.

    Args:
        site: The site.
        kept: Values of the file that is replaced. They stay, except those that the site states.
    """
    values = {value.setting: value for value in site.values}
    chosen = {name: value for name, value in kept.items() if name not in {*values, "sources"}}
    # A new file fixes the place of all state, so that all commands find it.
    default = str(Settings.model_fields["data_dir"].get_default())
    data_dir = chosen.pop("data_dir", None if chosen else default)
    parts = [_HEAD, f"\n# --- The site, from {site.config.path.name} ---\n"]
    parts += [_write_detected(value, kept.get(value.setting)) for value in values.values()]
    if not site.sources and site.is_complete:
        parts.append("# The site has no other folders with pages.\nsources = []\n")
    parts.append("\n# Everything that the program stores. Add the folder to .gitignore.\n")
    parts.append(f"{'# ' * (data_dir is None)}data_dir = {_write(data_dir or default)}\n")
    if chosen:
        parts.append("\n# Other settings.\n")
        parts += [f"{name} = {_write(value)}\n" for name, value in chosen.items()]
    if site.sources:
        parts.append("\n# --- All folders of the site with pages ---\n")
    for source in site.sources:
        entry = describe_source(source, site.folder)
        lines = "".join(f"{name} = {_write(value)}\n" for name, value in entry.items())
        parts.append(f"\n[[sources]]\n{lines}")
    return "".join(parts)


def compare_site_file(site: DetectedSite, path: Path) -> list[FileDifference]:
    """Return the values of a settings file that differ from those that are certain on the site.

    Raises:
        ConfigurationError: The file is missing or invalid.
    """
    if not path.is_file():
        remedy = f"Write it with `rag-pipeline init {site.folder}`"
        raise ConfigurationError(str(path), "there is no such file to check", remedy)
    stated = read_site_file(path)
    differences = []
    for value in site.values:
        in_file = stated.get(value.setting)
        if value.origin.is_certain and not _is_equal(value, in_file, site, path):
            differences.append(FileDifference(value.setting, in_file, value.value))
    entries = place_entries(stated.get("sources"), site.folder)
    return [*differences, *compare_sources(site, read_sources(entries) or ())]


def compare_sources(site: DetectedSite, stated: Sequence[Source]) -> Iterator[FileDifference]:
    """Yield the sources that only the settings or only the site has, or that differ."""
    in_file, on_site = ({str(one): one for one in found} for found in (stated, site.sources))
    for name in dict.fromkeys((*on_site, *in_file)):
        texts = [
            " ".join(f"{key}={_write(value)}" for key, value in entry.items())
            for entry in (
                describe_source(found[name], site.folder) if name in found else {}
                for found in (in_file, on_site)
            )
        ]
        if texts[0] != texts[1]:
            yield FileDifference(f"source {name}", texts[0] or None, texts[1] or None)


def _is_equal(value: DetectedValue, in_file: object, site: DetectedSite, path: Path) -> bool:
    if in_file is None or value.setting != "docs_dir":
        return _normalize(in_file) == _normalize(value.value)
    return (path.parent / str(in_file)).resolve() == site.docs_dir.resolve()


def _normalize(value: object) -> object:
    """Return a value without slashes at its end, which make no difference in any setting."""
    return value.rstrip("/") if isinstance(value, str) else value


def _write_detected(value: DetectedValue, kept: object) -> str:
    """Return the lines of a value; `kept` is the one of the file before, or None."""
    if not value.origin.is_certain and kept not in {None, value.value}:
        return f"# Set by hand, because {value.problem}.\n{value.setting} = {_write(kept)}\n"
    names = " and ".join(f"`{name}`" for name in value.names)
    if value.origin is Origin.UNKNOWN:
        return f"# Not known: {value.problem}. Set it by yourself.\n# {value.setting} =\n"
    reasons = {
        Origin.READ: f"Read from {names}.",
        Origin.DEFAULT: f"Docusaurus's default; the site does not set {names}.",
        Origin.GUESS: f"A guess: {value.problem}. Correct it if it is wrong.",
    }
    return f"# {reasons[value.origin]}\n{value.setting} = {_write(value.value)}\n"


def _write(value: object) -> str:
    """Return a value in TOML."""
    if isinstance(value, dict):
        inner = ", ".join(f"{_write(str(name))} = {_write(one)}" for name, one in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return f"[{', '.join(map(_write, value))}]"
    if isinstance(value, bool | int | float):
        return str(value).lower()
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def find_config_notes(docs_dir: Path, site: SiteSettings) -> tuple[str, ...]:
    """Return a note for each such setting that changes how Markdown files are read.

    Another note says if `rag-pipeline.toml` is older than a change of the site.

    Args:
        docs_dir: The docs folder.
        site: Settings of the built site.

    Raises:
        MissingDependencyError: The parser of the configuration is not installed.
    """
    path = find_config(docs_dir)
    if path is None:
        return ()
    config, notes = read_config(path, docs_dir), []
    found = config.markdown_format
    if found.origin.is_certain and found.value != site.markdown_format.value:
        notes.append(
            f"{path.name} sets markdown.format to {found.value}, but SITE_MARKDOWN_FORMAT is "
            f"{site.markdown_format.value}. Set SITE_MARKDOWN_FORMAT to {found.value}"
        )
    if config.parse_front_matter.value:
        notes.append(
            f"{path.name} sets markdown.parseFrontMatter, which the pipeline does not run. Front "
            "matter is read as it is written in the files"
        )
    return (*notes, *_note_outdated_file(path))


def _note_outdated_file(config: Path) -> Iterator[str]:
    """Yield a note if the settings file of a site differs from what the site states literally."""
    file = config.parent / SETTINGS_FILE
    if not file.is_file():
        return
    try:
        named = read_site_file(file).get("docs_dir")
        docs_dir = None if named is None else config.parent / str(named)
        site = detect_site(config, lambda _: None, run_config=False, docs_dir=docs_dir)
        found = [one.setting for one in compare_site_file(site, file)]
    except ConfigurationError:  # `init` names what is wrong
        return
    if not site.is_complete:
        found = [name for name in found if not name.startswith("source ")]
    if found:
        yield (
            f"{SETTINGS_FILE} differs from {config.name} in {name_some(found)}. If the site was "
            f"changed, write the file again with `rag-pipeline init {config.parent}`"
        )
