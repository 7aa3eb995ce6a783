"""Say which settings of a site changed since the last ingestion, and which pages that concerns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

_NAMED: Final = 5


def name_some(names: Sequence[str]) -> str:
    """Join the first 5 names with commas, and say how many more there are."""
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
