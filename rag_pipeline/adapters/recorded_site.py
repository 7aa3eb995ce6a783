"""The site that the links of the current collection lead to, compared with the settings."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from rag_pipeline.adapters.connect import connect_catalog
from rag_pipeline.adapters.database.ledger import open_book_state
from rag_pipeline.core.errors import ConfigurationError, RagPipelineError, StoreError
from rag_pipeline.core.settings.rules import OWN_DOCS_DIR, OWN_SITE
from rag_pipeline.core.state_dirs import DATABASE_NAME

if TYPE_CHECKING:
    from rag_pipeline.core.models import SiteSettings
    from rag_pipeline.core.protocols import CollectionCatalog, IngestionProgress
    from rag_pipeline.core.settings import Settings


def read_recorded_site(
    settings: Settings, catalog: CollectionCatalog | None = None
) -> SiteSettings | None:
    """Return the site settings that the links of the current collection were built with.

    Returns None if they are not known: nothing was ingested with this DATA_DIR, the store or the
    database cannot be read, or the state is at DATABASE_URL, on which no question depends.
    """
    if not _has_database(settings):
        return None
    try:
        collection_id = (catalog or connect_catalog(settings)).current_id()
        state = open_book_state(settings)
        recorded = state.open_ledger(collection_id).read_site() if collection_id else None
        state.database.close()
    except RagPipelineError:
        return None  # shows again when the collection is opened
    return recorded.site if recorded else None


def read_running_ingestion(settings: Settings) -> IngestionProgress | None:
    """Return how far the running ingestion of a book is; None if no ingestion is known to run."""
    if not _has_database(settings):
        return None
    state = open_book_state(settings)
    with suppress(StoreError):
        return state.read_progress()
    return None


def choose_site(settings: Settings, catalog: CollectionCatalog | None = None) -> SiteSettings:
    """Return the site settings for questions; those of the collection replace unset ones.

    Raises:
        ConfigurationError: A site setting differs from the one that the links were built with.
    """
    recorded = read_recorded_site(settings, catalog)
    if settings.docs_dir.resolve() == OWN_DOCS_DIR:
        settings = settings.fill_site(OWN_SITE)
    if recorded is None:
        return settings.site
    chosen = settings.fill_site(recorded).site
    for name in ("base_url", "route_base_path", "trailing_slash"):
        wanted, built = getattr(chosen, name), getattr(recorded, name)
        if wanted != built:
            setting, before = f"SITE_{name.upper()}", _show(built)
            problem = (
                f"the value is {_show(wanted)}, but the links of the index were built with {before}"
            )
            remedy = (
                f"Set {setting}={before}, or run `rag-pipeline ingest` to change the links, which "
                "embeds no text again"
            )
            raise ConfigurationError(setting, problem, remedy)
    return chosen


def _has_database(settings: Settings) -> bool:
    return not settings.database_url and (settings.state_dir / DATABASE_NAME).is_file()


def _show(value: object) -> str:
    """Return a value as it is written in `.env`."""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value) or "/"
