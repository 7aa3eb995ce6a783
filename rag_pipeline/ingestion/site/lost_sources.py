"""Notice that the index has documents of sources that no setting names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.sources import find_place, find_source
from rag_pipeline.ingestion.site.docusaurus_config import find_config

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from rag_pipeline.core.protocols.state import Ledger
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.core.sources import Source
    from rag_pipeline.ingestion.context import IngestionContext
    from rag_pipeline.ingestion.site.detection import DetectedSite

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
