"""The options of a plugin that choose its pages and name their addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rag_pipeline.core.site.page_patterns import PagePatterns, make_patterns
from rag_pipeline.ingestion.site.config_values import take_value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rag_pipeline.ingestion.site.sources.plugins import ContentPlugin


class PageOptions(NamedTuple):
    """The options of a plugin for its pages.

    Attributes:
        include: Patterns of the files that become pages; None for Docusaurus's default.
        exclude: Patterns of files and folders that do not; None for Docusaurus's default.
        number_prefixes: True if numbers that only order files are no part of addresses.
    """

    include: tuple[str, ...] | None
    exclude: tuple[str, ...] | None
    number_prefixes: bool

    @property
    def patterns(self) -> PagePatterns:
        """The files that become pages."""
        return make_patterns(self.include, self.exclude)


def read_page_options(plugin: ContentPlugin) -> PageOptions:
    """Return the options of a plugin. An option that is not known has its default value."""
    numbers = plugin.options.get("numberPrefixParser")
    include, exclude = (_read_patterns(plugin, name, []) for name in ("include", "exclude"))
    return PageOptions(include, exclude, number_prefixes=numbers is not False)


def note_unread_options(plugin: ContentPlugin, name: str) -> Iterable[str]:
    """Yield a note about each option that is not known, or that is a guess.

    Args:
        plugin: The plugin.
        name: Name of its source.
    """
    for option in ("include", "exclude"):
        problems: list[str] = []
        _read_patterns(plugin, option, problems)
        for problem in problems:
            yield (
                f"`{option}` of {name} is not certain: {problem}. Check the number of pages, or "
                "write it in [[sources]] in rag-pipeline.toml."
            )
    if plugin.options.get("numberPrefixParser") not in {None, True, False}:
        yield (
            f"`numberPrefixParser` of {name} is not read, so addresses may differ. Build the site "
            "with docusaurus-theme-robotutor, and set SITE_MANIFEST to its rag-manifest.json."
        )


def _read_patterns(
    plugin: ContentPlugin, option: str, problems: list[str]
) -> tuple[str, ...] | None:
    try:
        found = take_value(option, plugin.options.get(option), problems)
    except ValueError as error:
        problems.append(f"{error}. The default is used instead")
        return None
    if found is None:
        return None
    if not (isinstance(found, list) and all(isinstance(one, str) for one in found)):
        problems.append("it is not a list of texts. The default is used instead")
        return None
    patterns = tuple(map(str, found))
    try:
        make_patterns(patterns, None)
    except ValueError as error:
        problems.append(f"{error}. The default is used instead")
        return None
    return patterns
