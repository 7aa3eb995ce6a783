"""Evaluation questions and the sections that answer them, checked in form and against the pages.

A test set that cannot be read whole is an error: a silently shorter set would flatter the figures.
"""

from __future__ import annotations

import codecs
import difflib
import json
import logging
from collections import Counter
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias, TypeVar

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
)

from rag_pipeline.core.errors import DocumentIdError, GoldenSetError
from rag_pipeline.core.ids import parse_doc_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pydantic_core import ErrorDetails

    from rag_pipeline.core.models import Document

_FOLDER: Final = Path(__file__).parent / "golden"
QUESTIONS_PATH: Final = _FOLDER / "questions.json"
SELECTED_TEXT_PATH: Final = _FOLDER / "selected_text.json"
_LOG: Final = logging.getLogger(__name__)
SECTION_LEVEL: Final = 3  # FR-002: h1, h2 and h3 divide chunks; deeper headings are within them


def _check_doc_path(text: str) -> str:
    try:
        return parse_doc_id(text)
    except DocumentIdError as error:
        raise ValueError(error) from error


def _name_group(group: object) -> object:
    """Accept a number as the name of a group."""
    return str(group) if type(group) is int else group


_Text: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_DocPath: TypeAlias = Annotated[_Text, AfterValidator(_check_doc_path)]
Half: TypeAlias = Literal["tune", "report"]
Relation: TypeAlias = Literal["related", "unrelated", "injected"]


@dataclass(frozen=True, slots=True)
class ExpectedSection:
    """A section that answers a query.

    Attributes:
        section_heading: Text of its h1, h2 or h3; the page's title for the text before the first.
        group: Part of an `all_of` query that the section answers.
    """

    doc_path: _DocPath
    section_heading: _Text
    group: Annotated[str | None, BeforeValidator(_name_group)] = None


@dataclass(frozen=True, slots=True)
class GoldenQuery:
    """A question and the sections that answer it.

    Attributes:
        expected: Sections that answer it, each of them enough; empty if the book has no answer.
        category: Kind of question, for figures by category.
        all_of: One section of each group is needed; a section without a group is always needed.
        paraphrase: The question without the ordinary names of things: harder than students ask.
        half: `tune` for choosing parameters, `report` for the figures shown; `split` in the file.
    """

    id: _Text
    question: _Text
    expected: tuple[ExpectedSection, ...]
    category: _Text = "other"
    all_of: bool = False
    half: Annotated[Half, Field(validation_alias="split")] = "report"
    paraphrase: _Text | None = None


@dataclass(frozen=True, slots=True)
class SelectedTextCase:
    """A passage a reader selected, and a question asked about it.

    Attributes:
        relation: `related`: the passage answers the question; `unrelated`: it does not;
            `injected`: the question orders the answerer to look elsewhere.
        must_not_contain: Terms of other sections. A term in the answer is a leak.
    """

    id: _Text
    selected_text: _Text
    doc_path: _DocPath
    section_heading: _Text
    question: _Text
    relation: Relation
    must_not_contain: tuple[_Text, ...]

    @property
    def answerable(self) -> bool:
        """True if the passage answers the question."""
        return self.relation == "related"


@dataclass(frozen=True, slots=True)
class GoldenSet:
    """Queries and cases in the order of their files.

    Attributes:
        path: File of the queries, for messages; not part of the set's identity.
    """

    path: Path = field(repr=False, compare=False)
    queries: tuple[GoldenQuery, ...]
    selected_text: tuple[SelectedTextCase, ...] = ()

    def select_half(self, half: Half) -> GoldenSet:
        """Return the set with the queries of one half and all cases."""
        return replace(self, queries=tuple(one for one in self.queries if one.half == half))


@dataclass(frozen=True, slots=True)
class _QuestionFile:
    queries: tuple[GoldenQuery, ...]


@dataclass(frozen=True, slots=True)
class _SelectedTextFile:
    cases: tuple[SelectedTextCase, ...]


_File = TypeVar("_File", _QuestionFile, _SelectedTextFile)
_Place = TypeVar("_Place", ExpectedSection, SelectedTextCase)
_FIELDS: Final = {"split"}.union(
    own.name for record in (GoldenQuery, ExpectedSection) for own in fields(record)
) - {"half"}
_QUESTIONS: Final = TypeAdapter(_QuestionFile)
_SELECTED_TEXT: Final = TypeAdapter(_SelectedTextFile)


def load_golden_set(path: Path = QUESTIONS_PATH, cases_path: Path | None = None) -> GoldenSet:
    """Load a test set. A query without `split` belongs to the report half.

    Args:
        path: JSON: `{"queries": [{"id", "question", "category", "all_of", "expected": [{"doc_path",
            "section_heading", "group"?}], "split"?}]}`. Unknown fields are ignored.
        cases_path: JSON: `{"cases": [...]}` with the fields of SelectedTextCase, or None.

    Raises:
        GoldenSetError: A file cannot be read, a field is missing or wrong, an id occurs twice, an
            `all_of` query expects nothing, or a passage contains a term that no answer may
            contain.
    """
    queries = _read(path, _QUESTIONS).queries
    problems = [] if queries else ["queries is empty"]
    problems += [
        f"query {query.id!r}: all_of is true, but expected is empty"
        for query in queries
        if query.all_of and not query.expected
    ]
    _refuse(path, queries, problems)
    if cases_path is None:
        return GoldenSet(path, queries)
    cases = _read(cases_path, _SELECTED_TEXT).cases
    problems = [
        f"query {case.id!r}: must_not_contain: {term!r} stands in selected_text"
        for case in cases
        for term in case.must_not_contain
        if term.casefold() in case.selected_text.casefold()
    ]
    _refuse(cases_path, cases, problems)
    return GoldenSet(path, queries, cases)


def validate_against_corpus(
    golden: GoldenSet, documents: Sequence[Document], unreadable: Mapping[str, str] | None = None
) -> GoldenSet:
    """Check that every page and heading named exists, and return the set in their spelling.

    Letter case, markup and white space of a heading may differ. A heading below h3 becomes the
    section that contains it, because its text is cited under that section.

    Args:
        golden: A set as it was loaded.
        documents: The documents of the corpus.
        unreadable: Errors of the corpus's other documents, by path.

    Raises:
        GoldenSetError: A page or heading is missing. The message names the nearest one.
    """
    pages = {str(one.doc_path): _read_sections(one) for one in documents}
    problems: list[str] = []

    def correct(where: str, place: _Place) -> _Place:
        path, heading = place.doc_path, place.section_heading
        sections = pages.get(path)
        if sections is None and unreadable and path in unreadable:
            problems.append(f"{where}doc_path: {unreadable[path]}")
        elif sections is None:
            problems.append(f"{where}doc_path {path!r} is no page{_name_nearest(path, pages)}")
        elif (found := sections.get(_normalize(heading))) is not None:
            return replace(place, section_heading=found)
        else:
            nearest = _name_nearest(heading, sections.values())
            problems.append(f"{where}section_heading {heading!r} is no heading of {path}{nearest}")
        return place

    queries = []
    for query in golden.queries:
        where = f"query {query.id!r}: expected"
        expected = [correct(f"{where}[{at}].", place) for at, place in enumerate(query.expected)]
        queries.append(replace(query, expected=tuple(expected)))
    cases = [correct(f"query {case.id!r}: ", case) for case in golden.selected_text]
    if problems:
        raise GoldenSetError(golden.path, problems)
    return replace(golden, queries=tuple(queries), selected_text=tuple(cases))


def _name_nearest(text: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(text, list(known), n=1, cutoff=0.4)
    return f"; the nearest is {found[0]!r}" if found else ""


def _read_sections(document: Document) -> dict[str, str]:
    """Map each heading, in normal form, to its section; sections win over deeper headings."""
    sections = {_normalize(document.title): document.title}
    deeper: dict[str, str] = {}
    current = document.title
    for heading in document.headings:
        if heading.level <= SECTION_LEVEL:
            current = heading.text or document.title
            sections.setdefault(_normalize(current), current)
        else:
            deeper.setdefault(_normalize(heading.text), current)
    return deeper | sections


def _normalize(heading: str) -> str:
    return " ".join(heading.replace("`", "").replace("*", "").split()).casefold()


def _read(path: Path, adapter: TypeAdapter[_File]) -> _File:
    try:
        content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        raise GoldenSetError(path, [f"cannot be read ({error.strerror})"]) from error
    try:
        read = adapter.validate_json(content, strict=True)
    except ValidationError as error:
        problems = [_describe(detail, content) for detail in error.errors()]
        raise GoldenSetError(path, problems) from error
    names: set[str] = set()
    for record in json.loads(content).get("queries", []):
        names.update(record, *record["expected"])
    for name in sorted(names - _FIELDS):
        nearest = difflib.get_close_matches(name, sorted(_FIELDS), n=1, cutoff=0.75)
        if nearest:
            _LOG.warning("%s: field %r is passed over; is it %r?", path, name, nearest[0])
    return read


def _describe(detail: ErrorDetails, content: bytes) -> str:
    """Describe one problem of form: the query by its id, the field by its path."""
    place, message = list(detail["loc"]), detail["msg"].removeprefix("Value error, ")
    if len(place) < 2:
        return f"{place[0] if place else 'the file'}: {message}"
    number = int(place[1])
    record = json.loads(content)[place[0]][number]
    given = record.get("id") if isinstance(record, dict) else None
    query = repr(given) if given and isinstance(given, str) else f"number {number + 1}"
    parts = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place[2:])
    return ": ".join(part for part in (f"query {query}", parts.removeprefix("."), message) if part)


def _refuse(
    path: Path, entries: Sequence[GoldenQuery | SelectedTextCase], problems: Sequence[str]
) -> None:
    """Raise GoldenSetError if an id occurs twice or there are other problems."""
    counts = Counter(entry.id for entry in entries)
    repeated = [f"query {name!r}: id stands {n} times" for name, n in counts.items() if n > 1]
    if repeated or problems:
        raise GoldenSetError(path, [*repeated, *problems])
