"""Notice settings in a site's docusaurus.config that the settings of the pipeline do not follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.settings.file import SETTINGS_FILE
from rag_pipeline.ingestion.site.detection import detect_site
from rag_pipeline.ingestion.site.docusaurus_config import find_config, read_config
from rag_pipeline.ingestion.site.lost_sources import name_some
from rag_pipeline.ingestion.site.site_file import compare_site_file, read_site_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rag_pipeline.core.models import SiteSettings


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
