"""The command `init`, and the settings of a command with the site of its book."""

from __future__ import annotations

import hashlib
import os
import sys
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rag_pipeline.adapters.connect import read_recorded_site
from rag_pipeline.cli.options import AsJson, DocsPlugin, RunConfig
from rag_pipeline.cli.output import print_result, tell
from rag_pipeline.core.errors import ConfigurationError, MissingDependencyError
from rag_pipeline.core.settings import Settings, load_settings
from rag_pipeline.core.settings.file import SETTINGS_FILE
from rag_pipeline.core.settings.rules import OPEN, SITE_FIELDS
from rag_pipeline.core.site.addresses import describe_source
from rag_pipeline.core.site.files import write_site_file
from rag_pipeline.ingestion.site import detection
from rag_pipeline.ingestion.site.docusaurus_config import find_loader
from rag_pipeline.ingestion.site.literals import Origin

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


commands = typer.Typer()


@commands.command()
def init(
    site: Annotated[
        str, typer.Argument(help="Folder of the Docusaurus site, or its docusaurus.config file.")
    ] = ".",
    yes: Annotated[
        bool, typer.Option("--yes", help="Replace an existing file without asking.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option("--check", help="Write nothing; exit with code 1 if the file is outdated."),
    ] = False,
    docs_plugin: DocsPlugin = None,
    run_config: RunConfig = False,
    as_json: AsJson = False,
) -> None:
    """Read the settings of a Docusaurus site, and write them to rag-pipeline.toml beside it.

    Values that the site's configuration states literally are read. With --run-config, Node and the
    site's node_modules, the configuration is run by its own Docusaurus.

    Exits with code 1 if a value is not known.
    """
    found = _detect(site, docs_plugin, run_config=run_config)
    path = detection.find_site_file(found)
    record: dict[str, Any] = {
        "site": str(found.folder),
        "read_by": found.reader,
        "file": str(path),
        "values": [
            {name: getattr(value, name) for name in ("setting", "value", "origin", "problem")}
            for value in found.values
        ],
        "sources": [describe_source(source, found.folder) for source in found.sources],
        "notes": list(found.notes),
    }
    stated = detection.read_site_file(path)
    lines = [f"{found.config.path}, read by {found.reader}:", *_show_values(found)]
    lines += [
        f"KEPT {value.setting}: the file has {_show(stated[value.setting])}, and {value.problem}. "
        "Make sure that it is right"
        for value in found.values
        if not value.origin.is_certain and stated.get(value.setting) not in {None, value.value}
    ]
    if check:
        differences = detection.compare_site_file(found, path)
        record["differences"] = [asdict(one) for one in differences]
        lines += [_show_difference(one) for one in differences]
        lines.append(
            f"{path} no longer matches the site. Write it again with `rag-pipeline init {site}`"
            if differences
            else f"{path} matches the site"
        )
        print_result(record, "\n".join(lines), as_json=as_json)
        if differences:
            raise typer.Exit(1)
        return
    text = detection.describe_site_file(found, stated)
    if path.is_file() and path.read_text(encoding="utf-8") != text and not yes:
        if not sys.stdin.isatty():
            remedy = "Use --yes to replace it, or --check to compare it with the site"
            raise ConfigurationError(str(path), "the file exists and would change", remedy)
        question = f"Replace {path}? Settings that the site does not decide stay"
        typer.confirm(question, abort=True, err=True)
    write_site_file(path.parent, path.name, text)
    unknown = [
        value.setting
        for value in found.values
        if value.value is None and value.setting not in stated
    ]
    lines.append(f"Wrote {path}")
    if unknown:
        lines.append(f"Set {' and '.join(unknown)} in it, because the site does not say the value")
    else:
        lines.append(f"Next: rag-pipeline ingest --docs-dir {found.docs_dir}")
    print_result(record, "\n".join(lines), as_json=as_json)
    if unknown:
        raise typer.Exit(1)


def load_book_or_site(
    docs_dir: str | None,
    site: str | None,
    docs_plugin: str | None,
    *,
    run_config: bool,
    may_ask: bool = True,
) -> tuple[Settings, detection.DetectedSite | None]:
    """Load the settings of a book, or of a Docusaurus site if one is given.

    For a site, values that are not set are those that are detected. They are shown on standard
    error. Unless `may_ask` is false, a person at a terminal is asked if the code
    of the site may run.

    Raises:
        ConfigurationError: A setting is invalid, the options contradict each other, or the site
            cannot be detected.
    """
    if site is None:
        if docs_plugin is not None or run_config:
            option = "--docs-plugin" if docs_plugin is not None else "--run-config"
            raise ConfigurationError(option, "it has no effect without --site", "Add --site")
        return load_book(docs_dir), None
    if docs_dir is not None:
        remedy = "Leave out --docs-dir; --docs-plugin chooses one of several docs folders"
        raise ConfigurationError("--site", "it cannot be combined with --docs-dir", remedy)

    found = _detect(site, docs_plugin, run_config=run_config, may_ask=may_ask)
    for line in (f"{found.config.path}, read by {found.reader}:", *_show_values(found)):
        tell(line)
    settings = detection.settle_detected_site(load_settings(docs_dir=found.docs_dir), found)
    file = detection.find_site_file(found)
    stated = detection.read_site_file(file)
    for line in _show_overrides(settings, found, stated):
        tell(line)
    if not file.is_file() or (found.sources and "sources" not in stated):
        tell(
            f"`rag-pipeline init {site}` writes these settings to a file, which other commands "
            f"read. Without it, index only with `rag-pipeline ingest --site {site}`."
            if found.sources
            else f"Other commands need `--docs-dir {found.docs_dir}`, or the file that "
            f"`rag-pipeline init {site}` writes."
        )
    return settings, found


def _show_overrides(
    settings: Settings, found: detection.DetectedSite, stated: Mapping[str, Any]
) -> Iterator[str]:
    """Yield a sentence for each setting that is used although the site has another value."""

    def describe(name: str, problem: str) -> str:
        if name not in stated:
            return f"The setting {name.upper()} {problem}. The setting is used."
        return (
            f"In {detection.find_site_file(found)}, {name} {problem}. The file is used. If the "
            f"site was changed, write the file again with `rag-pipeline init {found.folder}`."
        )

    for name in SITE_FIELDS:
        used, detected = (getattr(one, name) for one in (settings.site, found.config.site))
        if used != detected:
            shown = OPEN if used is None else _show(used) or "/"
            yield describe(f"site_{name}", f"is {shown}")
    if settings.sources is not None:
        others = [one.setting for one in detection.compare_sources(found, settings.sources)]
        if others:
            yield describe("sources", f"differs from the site ({detection.name_some(others)})")


def _detect(
    site: str, docs_plugin: str | None, *, run_config: bool, may_ask: bool = True
) -> detection.DetectedSite:
    """Detect a site. Of several docs folders, the one that the settings file names is chosen."""
    config = detection.find_site_config(Path(site))
    named = detection.read_site_file(config.parent / SETTINGS_FILE).get("docs_dir")
    docs_dir = None if named is None else config.parent / str(named)
    detect = partial(
        detection.detect_site, Path(site), tell, plugin_id=docs_plugin, docs_dir=docs_dir
    )
    if run_config:
        return detect(run_config=True)
    try:
        found = detect(run_config=False)
    except ConfigurationError:
        if may_ask and has_consent(config):
            return detect(run_config=True)
        raise
    is_complete = found.is_complete and all(one.value is not None for one in found.values)
    if not is_complete and may_ask and has_consent(config):
        return detect(run_config=True)
    return found


def _show_values(found: detection.DetectedSite) -> list[str]:
    """Format each value with its source, in columns."""
    origins = {Origin.READ: "read", Origin.DEFAULT: "Docusaurus's default"}
    rows = []
    for value in found.values:
        text = "not known" if value.value is None else _show(value.value)
        if value.value == OPEN:
            text = "open (as links are written)"
        origin = origins.get(value.origin) or f"{value.origin.value}: {value.problem}"
        rows.append((value.setting, text, origin))
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    lines = [f"  {name:<{widths[0]}}  {text:<{widths[1]}}  {origin}" for name, text, origin in rows]
    for source in found.sources:
        folder = Path(os.path.relpath(source.folder, found.folder)).as_posix()
        address = f"/{source.base_url}{source.route_base_path}"
        lines.append(f"  source {source}: {folder}, at {address} of the site")
    return [*lines, *(f"NOTE {note}" for note in found.notes)]


def _show_difference(one: detection.FileDifference) -> str:
    in_file, on_site = (
        "no value" if value is None else _show(value) for value in (one.in_file, one.on_site)
    )
    return f"DIFFERS {one.setting}: the file has {in_file}, the site has {on_site}"


def _show(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def load_book(docs_dir: str | None) -> Settings:
    """Load the settings of a command that reads the docs folder.

    Raises:
        ConfigurationError: A setting is invalid, or the site of the docs folder is not known.
    """
    return detection.settle_site(load_settings(docs_dir=docs_dir))


def load_index(docs_dir: str | None) -> Settings:
    """Load the settings of a command that reads the index and may run without the docs folder.

    If the site of the docs folder is not known, it is the one that the index was built for.
    """
    settings = load_settings(docs_dir=docs_dir)
    with suppress(ConfigurationError, MissingDependencyError):
        settings = detection.settle_site(settings)
    recorded = read_recorded_site(settings) if settings.unset_site_fields else None
    return settings.fill_site(recorded) if recorded else settings


def has_consent(config: Path) -> bool:
    """Return True if a person has allowed to run a `docusaurus.config`.

    A person at a terminal is asked once for each content of the file. Without a terminal, in a job
    of continuous integration, and if the site cannot be run anyway, the answer is no.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()) or os.environ.get("CI"):
        return False
    if isinstance(find_loader(config.parent), str):
        return False
    place = f"{config.resolve()}\n".encode()
    # The folder of the answers belongs to the user; no file of a site can name it.
    folder = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    name = hashlib.sha256(place + config.read_bytes()).hexdigest()
    answer = folder / "rag-pipeline" / "run-config" / name
    if answer.is_file():
        return answer.read_text(encoding="utf-8") == "yes"
    is_allowed = typer.confirm(
        f"{config} computes values. Run it with Node? It can do everything that you can do on this "
        "machine. The answer is remembered until the file changes",
        err=True,
    )
    answer.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    answer.write_text("yes" if is_allowed else "no", encoding="utf-8")
    return is_allowed
