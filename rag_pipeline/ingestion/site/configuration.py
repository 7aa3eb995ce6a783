"""Notice settings in a site's docusaurus.config that change how its Markdown files are read.

The configuration is read as text and never run.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.core.models import SiteSettings

CONFIG_NAMES: Final = tuple(
    f"docusaurus.config.{suffix}" for suffix in ("ts", "js", "mjs", "cjs", "mts")
)
"""Names of the configuration file of a Docusaurus site."""

_COMMENT: Final = re.compile(
    r"""("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`)|//[^\n]*|/\*.*?\*/""", re.DOTALL
)
_FORMAT: Final = re.compile(
    r"""\bmarkdown\s*:\s*\{(?:[^{}]|\{[^{}]*\}){0,2000}?\bformat\s*:\s*["'`](?P<format>\w+)["'`]"""
)
_PARSER: Final = re.compile(r"\bparseFrontMatter\b\s*[:(,}]")


def find_config(docs_dir: Path) -> Path | None:
    """Return the docusaurus.config in the nearest folder above a docs folder; None if it has none.

    Args:
        docs_dir: Absolute path of the docs folder.
    """
    for folder in docs_dir.parents:
        for name in CONFIG_NAMES:
            if (folder / name).is_file():
                return folder / name
    return None


def find_config_notes(docs_dir: Path, site: SiteSettings) -> tuple[str, ...]:
    """Return notes about a site's configuration that the settings of the pipeline do not follow.

    Args:
        docs_dir: The docs folder.
        site: Settings of the built site.
    """
    config = find_config(docs_dir.absolute())
    if config is None:
        return ()
    try:
        written = config.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    text = _COMMENT.sub(lambda match: match[1] or " ", written)
    notes = []
    found = _FORMAT.search(text)
    if found is not None and found["format"] != site.markdown_format.value:
        notes.append(
            f"{config.name} sets markdown.format to {found['format']}, but SITE_MARKDOWN_FORMAT is "
            f"{site.markdown_format.value}. Set SITE_MARKDOWN_FORMAT to {found['format']}"
        )
    if _PARSER.search(text):
        notes.append(
            f"{config.name} sets markdown.parseFrontMatter, which the pipeline does not run. Front "
            "matter is read as it is written in the files"
        )
    return tuple(notes)
