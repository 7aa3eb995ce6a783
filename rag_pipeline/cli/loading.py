"""The settings of a command, with the site settings of the book that it works on."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from rag_pipeline.adapters.recorded_site import read_recorded_site
from rag_pipeline.core.errors import ConfigurationError, MissingDependencyError
from rag_pipeline.core.settings import load_settings
from rag_pipeline.ingestion.site.detection import settle_site

if TYPE_CHECKING:
    from rag_pipeline.core.settings import Settings


def load_book(docs_dir: str | None) -> Settings:
    """Load the settings of a command that reads the docs folder.

    Raises:
        ConfigurationError: A setting is invalid, or the site of the docs folder is not known.
    """
    return settle_site(load_settings(docs_dir=docs_dir))


def load_index(docs_dir: str | None) -> Settings:
    """Load the settings of a command that reads the index and may run without the docs folder.

    If the site of the docs folder is not known, it is the one that the index was built for.
    """
    settings = load_settings(docs_dir=docs_dir)
    with suppress(ConfigurationError, MissingDependencyError):
        settings = settle_site(settings)
    recorded = read_recorded_site(settings) if settings.unset_site_fields else None
    return settings.fill_site(recorded) if recorded else settings
