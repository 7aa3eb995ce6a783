"""Matching of retrieved chunks with the documents and sections that a question expects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rag_pipeline.evaluation.golden_set import ExpectedSection, GoldenQuery

DOCUMENT: Final = "document"
SECTION: Final = "section"


class Place(Protocol):
    """The location of a chunk in the book."""

    @property
    def doc_path(self) -> str:
        """Id of the document that contains the chunk: its path below the docs folder."""

    @property
    def section_heading(self) -> str:
        """The nearest heading above the chunk, or the document's title if there is none."""

    @property
    def heading_breadcrumb(self) -> tuple[str, ...]:
        """Title of the document, then the headings above the chunk, outermost first."""


class Section(Protocol):
    """A section that a question expects to be found."""

    @property
    def doc_path(self) -> str:
        """Id of the document that contains the section: its path below the docs folder."""

    @property
    def section_heading(self) -> str:
        """The section's heading; the document's title for the text before the first heading."""


def hits_section(place: Place, expected: Section) -> bool:
    """Return True if a chunk belongs to an expected section or to one of its subsections.

    If the expected heading is the document's title, only chunks before the first other heading
    match, although the title begins the breadcrumb of every chunk.
    """
    if place.doc_path != expected.doc_path:
        return False
    heading = expected.section_heading
    return heading in (place.section_heading, *place.heading_breadcrumb[1:])


@dataclass(frozen=True, slots=True)
class Ranking:
    """The retrieved chunks of one question, compared with the expected documents or sections.

    An expected document or section is called a unit here.

    Attributes:
        units: Key of each expected unit, without repetition.
        hits: For each retrieved chunk, best first, the keys of the units that it belongs to. The
            unit with the chunk's own heading comes before the units of the sections around it.
        groups: Sets of unit keys. The question succeeds if a unit of each set is found.
    """

    units: tuple[str, ...]
    hits: tuple[tuple[str, ...], ...]
    groups: tuple[frozenset[str], ...]

    def succeeds(self, depth: int) -> bool:
        """Return True if the first `depth` chunks hit at least one unit of each group."""
        found = {unit for hit in self.hits[:depth] for unit in hit}
        return all(group & found for group in self.groups)

    def first_rank(self, unit: str) -> int | None:
        """Return the rank, from 1, of the first chunk that hits a unit; None without a hit."""
        return next((rank for rank, hit in enumerate(self.hits, 1) if unit in hit), None)


def rank_hits(query: GoldenQuery, places: Sequence[Place], level: str) -> Ranking:
    """Compare retrieved chunks with the documents or sections that a question expects.

    Args:
        query: A question with at least one expected section.
        places: Locations of the retrieved chunks, best first.
        level: DOCUMENT to compare only documents, SECTION to compare sections.
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
    """Return the key by which an expected section is counted at a level.

    The key is the document's path at DOCUMENT level, and `path#heading` at SECTION level.
    """
    return f"{section.doc_path}#{section.section_heading}" if level == SECTION else section.doc_path


def _same_doc(place: Place, section: ExpectedSection) -> bool:
    return place.doc_path == section.doc_path


def _group_units(
    query: GoldenQuery, keys: Mapping[ExpectedSection, str]
) -> tuple[frozenset[str], ...]:
    """Return the groups of expected units; a question succeeds if a unit of each group is found.

    Normally all units form one group. With `all_of`, sections with the same group name form one
    group, and each unit without a group name is a group of its own.
    """
    groups: dict[tuple[str | None, str], set[str]] = {}
    for section, key in keys.items():
        name = (section.group, "" if section.group else key) if query.all_of else (None, "")
        groups.setdefault(name, set()).add(key)
    return tuple(frozenset(units) for units in groups.values())
