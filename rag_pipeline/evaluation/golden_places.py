"""Check that the pages and headings that a golden set names exist in the corpus."""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from rag_pipeline.core.errors import GoldenSetError
from rag_pipeline.evaluation.golden_set import ExpectedSection, SelectedTextCase

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rag_pipeline.core.models import Document
    from rag_pipeline.evaluation.golden_set import GoldenSet

_Place = TypeVar("_Place", ExpectedSection, SelectedTextCase)


def validate_against_corpus(
    golden: GoldenSet, documents: Sequence[Document], unreadable: Mapping[str, str] | None = None
) -> GoldenSet:
    """Check that a golden set's pages and headings exist, and return a copy with exact headings.

    A heading may differ from the page's in letter case, markup and white space. The places of
    definitions stay as they are, because they are compared by lines.

    Args:
        golden: The golden set, as loaded from its files.
        documents: All readable documents of the corpus.
        unreadable: Error message of each other document, by path.

    Raises:
        GoldenSetError: A page or heading does not exist. The message names the most similar one.
    """
    pages = {str(one.doc_path): _read_sections(one) for one in documents}
    problems: list[str] = []

    def correct(where: str, place: _Place) -> _Place:
        path, heading = place.doc_path, place.section_heading
        sections = pages.get(path)
        if sections is None and unreadable and path in unreadable:
            problems.append(f"{where}doc_path: {unreadable[path]}")
        elif sections is None:
            problems.append(f"{where}doc_path {path!r} does not exist{_name_nearest(path, pages)}")
        elif (found := sections.get(_normalize(heading))) is not None:
            return replace(place, section_heading=found)
        else:
            nearest = _name_nearest(heading, sections.values())
            problems.append(f"{where}section_heading {heading!r} is missing from {path}{nearest}")
        return place

    queries = []
    for query in golden.queries:
        where = f"query {query.id!r}: expected"
        expected = [correct(f"{where}[{at}].", place) for at, place in enumerate(query.expected)]
        queries.append(replace(query, expected=tuple(expected)))
    cases = [correct(f"query {case.id!r}: ", case) for case in golden.selected_text]
    for definition in golden.definitions:
        where = f"term {definition.term!r}: places"
        for at, place in enumerate(definition.places):
            correct(f"{where}[{at}].", place)
    if problems:
        raise GoldenSetError(golden.path, problems)
    return replace(golden, queries=tuple(queries), selected_text=tuple(cases))


def _name_nearest(text: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(text, list(known), n=1, cutoff=0.4)
    return f"; the most similar is {found[0]!r}" if found else ""


def _read_sections(document: Document) -> dict[str, str]:
    """Map each heading, normalized, to its text as written; the document's title is included."""
    sections = {_normalize(document.title): document.title}
    for heading in document.headings:
        text = heading.text or document.title
        sections.setdefault(_normalize(text), text)
    return sections


def _normalize(heading: str) -> str:
    return " ".join(heading.replace("`", "").replace("*", "").split()).casefold()
