"""Notice that the index has documents of sources that no setting names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.ingestion.site.docusaurus_config import find_config

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rag_pipeline.core.settings import Settings


def check_sources(settings: Settings, doc_ids: Iterable[str]) -> None:
    """Check that no document belongs to another folder of the site, if no sources are set.

    Such documents were indexed by `rag-pipeline ingest --site` or with a settings file that is
    missing now. Their files still exist, so their removal would be a mistake. An empty list of
    sources says that there is only the docs folder, so nothing is checked.

    Args:
        settings: The settings of the book.
        doc_ids: Documents of the index, such as those that would be removed.

    Raises:
        ConfigurationError: One belongs to another folder.
    """
    path = None if settings.sources is not None else find_config(settings.docs_dir)
    if path is None:
        return
    for doc_id in doc_ids:
        is_elsewhere = (path.parent / doc_id.removeprefix("@site/")).is_file()
        if is_elsewhere and not (settings.docs_dir / doc_id).exists():
            raise ConfigurationError(
                "SOURCES",
                f"the index has pages of other folders of the site, such as {doc_id}, but no "
                "setting names these folders",
                f"Run `rag-pipeline init {path.parent}` to write the settings, or use `rag-pipeline"
                f" ingest --site {path.parent}`. To index only {settings.docs_dir} from now on, "
                "use `rag-pipeline ingest --rebuild`",
            )
