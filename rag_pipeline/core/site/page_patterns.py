"""Which files become pages: the options `include` and `exclude` of Docusaurus's plugins."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.site.docusaurus import MARKDOWN_SUFFIXES, is_doc_folder_name, is_doc_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wcmatch.glob import WcMatcher

_INCLUDE: Final = ("**/*.{md,mdx}",)
_EXCLUDE: Final = ("**/_*.{md,mdx}", "**/_*/**", "**/__tests__/**")
"""The defaults of Docusaurus 3.10, as far as they concern Markdown files."""

_MAGIC: Final = re.compile(r"[*?\[\](){}!+@]")
_JOINED_STARS: Final = re.compile(r"\*\*(?=[^*/(])")


class PagePatterns:
    """The files of a folder that become pages.

    Patterns are those of fast-glob, which Docusaurus uses. They concern paths below the folder.
    Files and folders whose names start with `.` never become pages.

    Args:
        include: Patterns of files that become pages; None for all Markdown files.
        exclude: Patterns of files and folders that do not; None for those whose names start with
            `_`. Patterns replace this default.

    Raises:
        ValueError: A pattern has more than 1,000 alternatives. The message is a clause.
    """

    def __init__(
        self, include: Sequence[str] | None = None, exclude: Sequence[str] | None = None
    ) -> None:
        self._has_default_exclude = exclude is None
        self._has_defaults = include is None and exclude is None
        if self._has_defaults:
            return
        included = _INCLUDE if include is None else include
        wanted = [_normalize(one) for one in included if not one.startswith("!")]
        left_out = [_normalize(one[1:]) for one in included if one.startswith("!")]
        for pattern in _EXCLUDE if exclude is None else exclude:
            is_group = pattern.startswith("!(")
            left_out.append(_normalize(pattern if is_group else pattern.removeprefix("!")))
        self._exact = frozenset(wanted)
        below = [f"{one}/**" for one in wanted if not _MAGIC.search(one)]
        left_out = _expand(left_out)
        self._include = _compile(_expand((*wanted, *below)), dots=False)
        self._exclude = _compile(left_out, dots=True)
        self._left_out_folders = _compile(filter(_can_be_folder, left_out), dots=True)

    def reads_folder(self, name: str) -> bool:
        """Return True if a folder with this name can contain pages."""
        return is_doc_folder_name(name) if self._has_default_exclude else not name.startswith(".")

    def builds(self, place: str) -> bool:
        """Return True if a file becomes a page.

        Args:
            place: Path below the folder, with `/` between its parts.
        """
        name = place.rpartition("/")[2]
        if self._has_defaults:
            return is_doc_name(name)
        if not name.endswith(MARKDOWN_SUFFIXES) or name.startswith("."):
            return False
        if not (place in self._exact or _matches(self._include, place)):
            return False
        ends = (at for at, character in enumerate(place) if character == "/")
        return not _matches(self._exclude, place) and not any(
            _matches(self._left_out_folders, place[:end]) for end in ends
        )


@lru_cache(maxsize=64)
def make_patterns(include: tuple[str, ...] | None, exclude: tuple[str, ...] | None) -> PagePatterns:
    """Return the patterns of a source. They are compiled once."""
    return PagePatterns(include, exclude)


def _normalize(pattern: str) -> str:
    """Return a pattern as fast-glob reads it: `**.md` also finds files in folders."""
    while pattern.startswith("./"):
        pattern = pattern[2:]
    return f"**/{pattern[1:]}" if _JOINED_STARS.match(pattern) else pattern


def _expand(patterns: Sequence[str]) -> list[str]:
    """Return all alternatives of patterns such as `{a,b}.md`."""
    from bracex import ExpansionLimitException, expand  # noqa: PLC0415  # few sites have patterns

    try:
        return [one for pattern in patterns for one in expand(pattern, keep_escapes=True)]
    except ExpansionLimitException:
        problem = "a pattern has more than 1,000 alternatives"
        raise ValueError(problem) from None


def _can_be_folder(pattern: str) -> bool:
    """Return True if the pattern of a folder leaves out all files in it: its name has no `*`."""
    return not _MAGIC.search(pattern.rpartition("/")[2])


def _compile(patterns: Iterable[str], *, dots: bool) -> WcMatcher[str] | None:
    from wcmatch import glob  # noqa: PLC0415  # few sites have patterns

    flags = glob.GLOBSTAR | glob.EXTGLOB | glob.FORCEUNIX | (glob.DOTGLOB if dots else 0)
    kept = list(patterns)
    return glob.compile(kept, flags=flags, limit=0) if kept else None


def _matches(matcher: WcMatcher[str] | None, path: str) -> bool:
    return matcher is not None and bool(matcher.match(path))
