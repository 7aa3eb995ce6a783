"""Decides whether a retrieved chunk is what a question expects, at document and section level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rag_pipeline.evaluation.golden_set import ExpectedSection, GoldenQuery

DOCUMENT: Final = "document"
SECTION: Final = "section"


class Place(Protocol):
    """The place of a chunk in the book."""

    @property
    def doc_path(self) -> str:
        """Document id."""

    @property
    def section_heading(self) -> str:
        """The chunk's own heading."""

    @property
    def heading_breadcrumb(self) -> tuple[str, ...]:
        """Title of the document, then the headings down to the chunk's own."""


class Section(Protocol):
    """A section that is expected."""

    @property
    def doc_path(self) -> str:
        """Document id."""

    @property
    def section_heading(self) -> str:
        """Its heading; the document's title for the text before the first."""


def hits_section(place: Place, expected: Section) -> bool:
    """Return True if a chunk belongs to an expected section or to one below it.

    The title, which begins every breadcrumb, stands only for the text before the first heading, not
    for the whole page.
    """
    if place.doc_path != expected.doc_path:
        return False
    heading = expected.section_heading
    return heading in (place.section_heading, *place.heading_breadcrumb[1:])


@dataclass(frozen=True, slots=True)
class Ranking:
    """The expected units that each retrieved chunk hits, best chunk first.

    Attributes:
        units: Expected documents or sections, each once.
        hits: For each chunk the units it hits, the most exact one first.
        groups: Sets of units. Success needs a hit in each set.
    """

    units: tuple[str, ...]
    hits: tuple[tuple[str, ...], ...]
    groups: tuple[frozenset[str], ...]

    def succeeds(self, depth: int) -> bool:
        """Return True if the first `depth` chunks hit each group."""
        found = {unit for hit in self.hits[:depth] for unit in hit}
        return all(group & found for group in self.groups)

    def first_rank(self, unit: str) -> int | None:
        """Return the rank, from 1, of the first chunk that hits a unit."""
        return next((rank for rank, hit in enumerate(self.hits, 1) if unit in hit), None)


def rank_hits(query: GoldenQuery, places: Sequence[Place], level: str) -> Ranking:
    """Compare retrieved chunks with what a question expects, at one level.

    Args:
        query: An answerable question.
        places: Retrieved chunks, best first.
        level: DOCUMENT or SECTION.
    """
    keys = {section: name_unit(section, level) for section in query.expected}
    hits = tuple(
        tuple(
            dict.fromkeys(
                keys[section]
                for section in sorted(
                    query.expected, key=lambda one: one.section_heading != place.section_heading
                )
                if (hits_section(place, section) if level == SECTION else _same_doc(place, section))
            )
        )
        for place in places
    )
    return Ranking(tuple(dict.fromkeys(keys.values())), hits, _group_units(query, keys))


def name_unit(section: ExpectedSection, level: str) -> str:
    """Return the key of an expected section at a level: its document's path or its own."""
    return f"{section.doc_path}#{section.section_heading}" if level == SECTION else section.doc_path


def _same_doc(place: Place, section: ExpectedSection) -> bool:
    return place.doc_path == section.doc_path


def _group_units(
    query: GoldenQuery, keys: Mapping[ExpectedSection, str]
) -> tuple[frozenset[str], ...]:
    """Return one group of all units, or with `all_of` a group for each name and nameless unit."""
    groups: dict[tuple[str | None, str], set[str]] = {}
    for section, key in keys.items():
        name = (section.group, "" if section.group else key) if query.all_of else (None, "")
        groups.setdefault(name, set()).add(key)
    return tuple(frozenset(units) for units in groups.values())
