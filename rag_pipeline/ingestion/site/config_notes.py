"""Notice settings in a site's docusaurus.config that the settings of the pipeline do not follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_pipeline.ingestion.site.docusaurus_config import find_config, read_config

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.core.models import SiteSettings


def find_config_notes(docs_dir: Path, site: SiteSettings) -> tuple[str, ...]:
    """Return a note for each such setting that changes how Markdown files are read.

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
    if found.is_certain and found.value != site.markdown_format.value:
        notes.append(
            f"{path.name} sets markdown.format to {found.value}, but SITE_MARKDOWN_FORMAT is "
            f"{site.markdown_format.value}. Set SITE_MARKDOWN_FORMAT to {found.value}"
        )
    if config.parse_front_matter.value:
        notes.append(
            f"{path.name} sets markdown.parseFrontMatter, which the pipeline does not run. Front "
            "matter is read as it is written in the files"
        )
    return tuple(notes)
