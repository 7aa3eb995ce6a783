"""Find the settings of a Docusaurus site, fill in missing ones, and report lost sources.

Also write them to `rag-pipeline.toml`, and compare that file with the site.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.settings import Settings
from rag_pipeline.core.settings.file import SETTINGS_FILE, SettingsFile, is_own_file
from rag_pipeline.core.settings.rules import OWN_DOCS_DIR, OWN_SITE
from rag_pipeline.core.site.addresses import describe_source, place_entries, read_sources
from rag_pipeline.core.site.docusaurus import MARKDOWN_SUFFIXES
from rag_pipeline.core.sources import Source, SourceKind, find_place, find_source
from rag_pipeline.ingestion.site.docusaurus_config import (
    find_config,
    find_loader,
    interpret_config,
    list_configs,
    read_config,
    read_literals,
)
from rag_pipeline.ingestion.site.literals import ConfigValue, ObjectLiteral, Origin
from rag_pipeline.ingestion.site.plugins import (
    DEFAULT_ID,
    LEFT_OUT,
    ContentPlugin,
    list_plugins,
    list_sources,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from rag_pipeline.core.models import SiteSettings
    from rag_pipeline.core.protocols import Ledger
    from rag_pipeline.ingestion.context import IngestionContext
    from rag_pipeline.ingestion.site.docusaurus_config import SiteConfig


_RUN: Final = "run the configuration with --run-config"


@dataclass(frozen=True, slots=True)
class DetectedSite:
    """The settings of a Docusaurus site.

    Attributes:
        config: The values of its configuration.
        docs_dir: The docs folder, or the first of several.
        docs_folder: `path` of its docs plugin.
        reader: How the configuration was read, for users, such as `Docusaurus 3.10.2`.
        sources: All folders with pages; empty if there is only the docs folder.
        notes: Sentences about parts of the site that are left out.
    """

    config: SiteConfig
    docs_dir: Path
    docs_folder: ConfigValue
    reader: str
    sources: tuple[Source, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """True if the site has no other sources than those that were found."""
        return not any(note.startswith(LEFT_OUT) for note in self.notes)

    @property
    def folder(self) -> Path:
        """The folder of the site, which contains its configuration."""
        return self.config.path.parent

    @property
    def values(self) -> tuple[ConfigValue, ...]:
        """The settings that the site decides, in the order of the settings file."""
        place = Path(os.path.relpath(self.docs_dir, self.folder)).as_posix()
        docs = replace(self.docs_folder, setting="docs_dir", value=place, problem="")
        return (docs, *self.config.values)


def detect_site(
    site: Path,
    tell: Callable[[str], None],
    *,
    run_config: bool = False,
    plugin_id: str | None = None,
    docs_dir: Path | None = None,
) -> DetectedSite:
    """Find the settings of a Docusaurus site.

    Args:
        site: Folder of the site, or its `docusaurus.config` file.
        tell: Receives a sentence for users before the configuration is run, or one that says why it
            cannot be.
        run_config: If the configuration may be run, with Node. It can then do everything that the
            user can do. Otherwise only values that it states literally are found.
        plugin_id: The `id` of an instance of the docs plugin, if only its pages are meant.
        docs_dir: The docs folder of such an instance, if no `plugin_id` is given. The docs folder
            of the first instance stands for the whole site.

    Raises:
        ConfigurationError: The site has no configuration, several, or one that cannot be loaded; it
            has no docs plugin, a folder is missing, or two parts of it collide.
        MissingDependencyError: The parser is not installed.
    """
    path = find_site_config(site)
    config, reader = _load(path, tell, run_config=run_config)
    plugins = _list_docs_plugins(config, path)
    chosen = _choose_plugin(plugins, path, plugin_id, docs_dir)
    first = chosen or plugins[0]
    others = [plugin for plugin in plugins if plugin is not first]
    sources, notes = list_sources(config, path, [first, *others], only=chosen is not None)
    route = first.read_route()
    latest = next((source for source in sources if source.is_latest), None)
    has_released = latest is not None and latest.version is not None
    if route.value is None and latest is not None and has_released:  # the docs folder is not built
        route = ConfigValue(route.names, latest.route_base_path, Origin.READ)
    values, folder = interpret_config(config, path, route), first.folder
    return DetectedSite(values, first.dir, folder, reader, sources, tuple(notes))


def find_site_config(site: Path) -> Path:
    """Return the `docusaurus.config` file of a site, which may be given by itself.

    Raises:
        ConfigurationError: There is no such file, or there are several.
    """
    if site.is_file() and site.name.startswith("docusaurus.config."):
        return site
    if not site.is_dir():
        remedy = "Give the folder that contains docusaurus.config"
        raise ConfigurationError(str(site), "it is not a folder", remedy)
    paths = list_configs(site)
    if len(paths) == 1:
        return paths[0]
    if paths:
        names = ", ".join(path.name for path in paths)
        remedy = f"Delete the files that are not used, or give one of them: {paths[0]}"
        raise ConfigurationError(
            str(site.absolute()), f"it has several configurations: {names}", remedy
        )
    below = [path for folder in sorted(site.glob("*/")) for path in list_configs(folder)]
    remedy = "Give the folder of the site, which contains docusaurus.config"
    if below:
        remedy = f"Give the folder of the site: {' or '.join(str(path.parent) for path in below)}"
    problem = "it contains no docusaurus.config file"
    raise ConfigurationError(str(site.absolute()), problem, remedy)


def _load(
    path: Path, tell: Callable[[str], None], *, run_config: bool
) -> tuple[ObjectLiteral, str]:
    """Return the configuration, and how it was read."""
    missing = ""
    if run_config:
        loader = find_loader(path.parent)
        if not isinstance(loader, str):
            by = f"Docusaurus {loader.version} and Node {loader.node_version}"
            tell(f"Running {path} with {by}.")
            return loader.load(path), by
        missing = loader
        tell(f"{missing}. {path} is therefore read and not run.")
    found = read_literals(path)
    if isinstance(found, str):
        remedy = "Set docs_dir and site_base_url in rag-pipeline.toml, or "
        remedy += f"correct this: {missing}" if missing else f"{_RUN} if you trust its code"
        raise ConfigurationError(str(path), found, remedy)
    return found, "rag-pipeline, which did not run it"


def _list_docs_plugins(config: ObjectLiteral, path: Path) -> list[ContentPlugin]:
    """Return the instances of the docs plugin, the one without an `id` first.

    Raises:
        ConfigurationError: There are none with a known folder.
    """
    found = list_plugins(config, SourceKind.DOCS, path)
    if found.plugins:
        return sorted(found.plugins, key=lambda plugin: plugin.plugin_id != DEFAULT_ID)
    if found.problem:
        problem = f"no docs plugin is known: {found.problem}"
        remedy = f"Set DOCS_DIR, or {_RUN} if you trust its code"
    else:
        problem, remedy = "it has no docs plugin", "Add one, or set DOCS_DIR and SITE_BASE_URL"
    raise ConfigurationError(str(path), problem, remedy)


def _choose_plugin(
    plugins: Sequence[ContentPlugin], path: Path, plugin_id: str | None, docs_dir: Path | None
) -> ContentPlugin | None:
    """Return the only instance of the docs plugin that is meant; None if all are meant.

    Raises:
        ConfigurationError: There is no such instance.
    """
    if plugin_id is not None:
        for plugin in plugins:
            if plugin.plugin_id == plugin_id:
                return plugin
        known = ", ".join(f"{plugin.plugin_id} ({plugin.folder.value})" for plugin in plugins)
        problem = f"{path} has no docs plugin with this id"
        raise ConfigurationError("--docs-plugin", problem, f"Choose one of {known}")
    if docs_dir is not None:
        for plugin in plugins[1:]:
            if plugin.dir.resolve() == docs_dir.resolve():
                return plugin
    return None


def settle_site(settings: Settings) -> Settings:
    """Return the settings with a value for each site setting.

    A setting that is set keeps its value. For the textbook of this repository the others are known.
    For another docs folder they are read from its `docusaurus.config`. If there is no such file,
    SITE_BASE_URL must be set, and the others get Docusaurus's defaults. The settings are returned
    unchanged if the docs folder is missing or contains no page.

    Raises:
        ConfigurationError: A value is not set, and the file does not state it literally.
        MissingDependencyError: The parser is not installed.
    """
    unset = settings.unset_site_fields
    if not unset or not settings.docs_dir.is_dir():
        return settings
    if settings.docs_dir.resolve() == OWN_DOCS_DIR:
        return settings.fill_site(OWN_SITE)
    path = find_config(settings.docs_dir)
    if path is None:
        names = (name for _, _, names in os.walk(settings.docs_dir) for name in names)
        if "base_url" not in unset or not any(name.endswith(MARKDOWN_SUFFIXES) for name in names):
            return settings
        raise ConfigurationError(
            "SITE_BASE_URL",
            f"it is not set, and no docusaurus.config file near {settings.docs_dir} says where the "
            "pages are published",
            "Set it to the address of the site, such as https://example.org/book/. Set "
            "SITE_ROUTE_BASE_PATH too if it is not `docs`, and SITE_TRAILING_SLASH if the site "
            "sets it",
        )
    config = read_config(path, settings.docs_dir)
    remedy = "Run `rag-pipeline init --run-config` if you trust the site's code, or set"
    return _fill_from(settings, config, {one for one in Origin if one.is_certain}, remedy)


def settle_detected_site(settings: Settings, site: DetectedSite) -> Settings:
    """Return the settings with the sources and a value for each site setting of a detected site.

    A setting that is set keeps its value. A guess counts as a value.

    Raises:
        ConfigurationError: A value is not set, and unknown.
    """
    if settings.sources is None and (site.sources or site.is_complete):
        settings = settings.model_copy(update={"sources": site.sources})
    if settings.docs_dir.resolve() == OWN_DOCS_DIR:
        return settings.fill_site(OWN_SITE)
    return _fill_from(settings, site.config, set(Origin) - {Origin.UNKNOWN}, "Set")


def _fill_from(
    settings: Settings, config: SiteConfig, accepted: set[Origin], remedy: str
) -> Settings:
    """Return the settings with the unset ones from a configuration.

    Raises:
        ConfigurationError: A value that is needed has an origin that is not accepted.
    """
    needed = {f"site_{name}" for name in settings.unset_site_fields}
    unread = {
        value.setting.upper(): value.problem
        for value in config.values
        if value.setting in needed and value.origin not in accepted
    }
    if unread:
        remedy += f" {' and '.join(unread)}"
        if "SITE_BASE_URL" in unread:
            example = urljoin("https://example.org", config.site.base_url)
            remedy += f", for example SITE_BASE_URL={example}"
        problems = "; ".join(dict.fromkeys(unread.values()))
        problem = f"{config.path} does not state the values literally: {problems}"
        raise ConfigurationError(", ".join(unread), problem, remedy)
    return settings.fill_site(config.site)


_NAMED: Final = 5


def name_some(names: Sequence[str]) -> str:
    """Join the first 5 names with commas, and say how many more there are."""
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")


def check_sources(settings: Settings, doc_ids: Collection[str], ledger: Ledger | None) -> None:
    """Check that no document belongs to another folder of the site, if no sources are set.

    Such documents were indexed by `rag-pipeline ingest --site` or with a settings file that is
    missing now. Their files still exist, so their removal would be a mistake. An empty list of
    sources says that there is only the docs folder, so nothing is checked.

    Args:
        settings: The settings of the book.
        doc_ids: Documents of the index, such as those that would be removed.
        ledger: The ledger of the index, which knows its sources; None if there is no index.

    Raises:
        ConfigurationError: One belongs to another folder.
    """
    if settings.sources is not None or not doc_ids or ledger is None:
        return
    config, recorded = find_config(settings.docs_dir), ledger.read_site()
    known = recorded.sources if recorded else ()
    for doc_id in doc_ids:
        places = list(_find_places(doc_id, settings.docs_dir, known))
        if config is not None:
            places.append(config.parent / doc_id.removeprefix("@site/"))
        is_elsewhere = any(place.is_file() for place in places)
        if is_elsewhere and not (settings.docs_dir / doc_id).exists():
            site_dir = config.parent if config else settings.docs_dir.parent
            raise ConfigurationError(
                "SOURCES",
                f"the index has pages of other folders of the site, such as {doc_id}, but no "
                "setting names these folders",
                f"Run `rag-pipeline init {site_dir}` to write the settings, or use `rag-pipeline"
                f" ingest --site {site_dir}`. To index only {settings.docs_dir} from now on, "
                "use `rag-pipeline ingest --rebuild`",
            )


def check_detected(context: IngestionContext, site: DetectedSite) -> None:
    """Check that no source of the index is lost because a site was not read completely.

    Raises:
        ConfigurationError: The folder of such a source exists, but the site was read without it.
    """
    catalog, settings = context.services.catalog, context.settings
    collection_id = "" if site.is_complete else catalog.current_id()
    if not collection_id or not site.sources or settings.sources != site.sources:
        return
    recorded = context.services.open_ledger(collection_id).read_site()
    found = {source.prefix for source in site.sources}
    lost = [
        str(source)
        for source in (recorded.sources if recorded else ())
        if source.prefix not in found and (settings.docs_dir / source.folder).is_dir()
    ]
    if lost:
        raise ConfigurationError(
            "--site",
            f"the site was not read completely, as the notes above say, and the index has pages "
            f"of {name_some(lost)}, which would be removed",
            "Use --run-config with Node and the site's node_modules, or write them to [[sources]] "
            f"in {site.folder / 'rag-pipeline.toml'}. To index only what was read, use --rebuild",
        )


def _find_places(doc_id: str, docs_dir: Path, sources: Sequence[Source]) -> list[Path]:
    """Return the files that a document of another source may have."""
    source = find_source(sources, doc_id)
    if source is None or not source.prefix:
        return []
    folders = (source.folder, source.fallback)
    return [docs_dir / folder / find_place(source, doc_id) for folder in folders if folder]


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


def _is_equal(value: ConfigValue, in_file: object, site: DetectedSite, path: Path) -> bool:
    if in_file is None or value.setting != "docs_dir":
        return _normalize(in_file) == _normalize(value.value)
    return (path.parent / str(in_file)).resolve() == site.docs_dir.resolve()


def _normalize(value: object) -> object:
    """Return a value without slashes at its end, which make no difference in any setting."""
    return value.rstrip("/") if isinstance(value, str) else value


def _write_detected(value: ConfigValue, kept: object) -> str:
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
    found = next(one for one in config.values if one.setting == "site_markdown_format")
    if found.origin.is_certain and found.value != site.markdown_format.value:
        notes.append(
            f"{path.name} sets markdown.format to {found.value}, but SITE_MARKDOWN_FORMAT is "
            f"{site.markdown_format.value}. Set SITE_MARKDOWN_FORMAT to {found.value}"
        )
    notes += (
        f"{path.name} sets markdown.{name}, which the pipeline does not run. "
        f"{'Front matter is' if name == 'parseFrontMatter' else 'Pages are'} read as written in "
        "the files"
        for name in config.functions
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
