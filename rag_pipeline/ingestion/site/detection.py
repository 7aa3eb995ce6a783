"""Find the settings of a Docusaurus site, fill in missing ones, and report lost sources."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.settings.rules import OPEN, OWN_DOCS_DIR, OWN_SITE
from rag_pipeline.core.site.docusaurus import MARKDOWN_SUFFIXES
from rag_pipeline.core.sources import SourceKind, find_place, find_source
from rag_pipeline.ingestion.site.docusaurus_config import (
    find_config,
    find_loader,
    interpret_config,
    list_configs,
    read_config,
    read_literals,
)
from rag_pipeline.ingestion.site.listing import is_doubt, list_sources
from rag_pipeline.ingestion.site.literals import ConfigValue, Origin
from rag_pipeline.ingestion.site.plugins import DEFAULT_ID, list_plugins

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from rag_pipeline.core.protocols import Ledger
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.core.sources import Source
    from rag_pipeline.ingestion.context import IngestionContext
    from rag_pipeline.ingestion.site.docusaurus_config import SiteConfig
    from rag_pipeline.ingestion.site.literals import ObjectLiteral
    from rag_pipeline.ingestion.site.plugins import ContentPlugin


_RUN: Final = "run the configuration with --run-config"


@dataclass(frozen=True, slots=True)
class DetectedValue:
    """The value of one setting, as the site has it.

    Attributes:
        setting: Name of the setting in lower case.
        value: The value as the settings file writes it; None if it is unknown.
        origin: The least certain source of its parts; `READ` if some were read and others are
            Docusaurus's defaults.
        names: The names of its parts in the configuration.
        problem: A clause that says why the value is a guess or unknown; otherwise empty.
    """

    setting: str
    value: str | bool | None
    origin: Origin
    names: tuple[str, ...]
    problem: str = ""


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
        return not any(map(is_doubt, self.notes))

    @property
    def folder(self) -> Path:
        """The folder of the site, which contains its configuration."""
        return self.config.path.parent

    @property
    def values(self) -> tuple[DetectedValue, ...]:
        """The settings that the site decides, in the order of the settings file."""
        place = Path(os.path.relpath(self.docs_dir, self.folder)).as_posix()
        docs = DetectedValue("docs_dir", place, self.docs_folder.origin, ("path",))
        found = [self._join(name, parts) for name, parts in self.config.by_field.items()]
        return (docs, *found)

    def _join(self, field: str, parts: tuple[ConfigValue, ...]) -> DetectedValue:
        # A value counts as read if only some of its parts are defaults.
        order = (Origin.UNKNOWN, Origin.GUESS, Origin.READ, Origin.DEFAULT)
        origin = min((part.origin for part in parts), key=order.index)
        problem = "; ".join(dict.fromkeys(part.problem for part in parts if part.problem))
        value = getattr(self.config.site, field)
        if field == "route_base_path":
            value = value or "/"
        elif field == "trailing_slash" and value is None:
            value = OPEN
        shown = value if isinstance(value, bool) else str(value)
        return DetectedValue(
            f"site_{field}",
            None if origin is Origin.UNKNOWN else shown,
            origin,
            tuple(part.name for part in parts),
            problem,
        )


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
    route = first.read_route(path.parent)
    latest = next((source for source in sources if source.is_latest), None)
    has_released = latest is not None and latest.version is not None
    if route.value is None and latest is not None and has_released:  # the docs folder is not built
        route = ConfigValue(route.name, latest.route_base_path, Origin.READ)
    return DetectedSite(
        interpret_config(config, path, route),
        first.find_dir(path.parent),
        first.folder,
        reader,
        sources,
        tuple(notes),
    )


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
    found = list_plugins(config, SourceKind.DOCS)
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
            if plugin.find_dir(path.parent).resolve() == docs_dir.resolve():
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
        if "base_url" not in unset or not _has_page(settings.docs_dir):
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


def _has_page(docs_dir: Path) -> bool:
    """Return True if a docs folder contains a Markdown file."""
    return any(
        name.endswith(MARKDOWN_SUFFIXES) for _, _, names in os.walk(docs_dir) for name in names
    )


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
    unread = {}
    for name in settings.unset_site_fields:
        values = [value for value in config.by_field[name] if value.origin not in accepted]
        if values:
            unread[f"SITE_{name.upper()}"] = values
    if unread:
        raise _describe_unread(config, unread, remedy)
    return settings.fill_site(config.site)


def _describe_unread(
    config: SiteConfig, unread: dict[str, list[ConfigValue]], remedy: str
) -> ConfigurationError:
    """Return the error about the values that the file does not state, with all problems."""
    problems = dict.fromkeys(value.problem for parts in unread.values() for value in parts)
    settings = " and ".join(unread)
    remedy += f" {settings}"
    if "SITE_BASE_URL" in unread:
        url = config.url.value or "https://example.org"
        remedy += f", for example SITE_BASE_URL={url}{config.base_url.value or '/book/'}"
    problem = f"{config.path} does not state the values literally: {'; '.join(problems)}"
    return ConfigurationError(", ".join(unread), problem, remedy)


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
    known = (recorded and recorded.sources) or ()
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
        for source in (recorded and recorded.sources) or ()
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
