"""Evaluation questions and what answers them: loaded, checked in form and against the pages.

Belongs here: the files of golden/ and foreign test sets of the same form. Does not belong here:
asking the retriever (runner), help with writing new entries (golden_entry).

A test set that cannot be read whole is an error: a silently shorter set would flatter the figures.
"""

from __future__ import annotations

import codecs
import difflib
import json
import logging
from collections import Counter
from dataclasses import dataclass, field, replace
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
    from collections.abc import Mapping, Sequence

    from pydantic_core import ErrorDetails

    from rag_pipeline.core.models import Document

_FOLDER: Final = Path(__file__).parent / "golden"
QUESTIONS_PATH: Final = _FOLDER / "questions.json"
SELECTED_TEXT_PATH: Final = _FOLDER / "selected_text.json"
_LOG: Final = logging.getLogger(__name__)
_FIELDS: Final = frozenset(
    {
        *("id", "question", "category", "all_of", "split", "paraphrase", "expected"),
        *("doc_path", "section_heading", "group"),
    }
)
SECTION_LEVEL: Final = 3  # chunks are divided at h1, h2 and h3; a deeper heading is within them


def _check_doc_path(text: str) -> str:
    """Reject a path that no document can have."""
    try:
        return parse_doc_id(text)
    except DocumentIdError as error:
        raise ValueError(error) from error


def _name_group(group: object) -> object:
    """Take a numbered group as a named one."""
    return str(group) if type(group) is int else group


_Text: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_DocPath: TypeAlias = Annotated[_Text, AfterValidator(_check_doc_path)]
Half: TypeAlias = Literal["tune", "report"]
Relation: TypeAlias = Literal["related", "unrelated", "injected"]


@dataclass(frozen=True, slots=True)
class ExpectedSection:
    """A section that answers a query.

    Attributes:
        section_heading: Text of its h1, h2 or h3; the page's title for what stands before the
            first.
        group: Part of an `all_of` query that the section answers.
    """

    doc_path: _DocPath
    section_heading: _Text
    group: Annotated[str | None, BeforeValidator(_name_group)] = None


@dataclass(frozen=True, slots=True)
class GoldenQuery:
    """A question and the sections that answer it.

    Attributes:
        expected: Sections that answer it, each of them enough; empty where the book does not.
        category: Kind of question, for figures by category.
        all_of: True where one section of each group is needed; without a group each is needed.
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
        relation: Whether the passage answers the question, does not, or the question orders the
            answerer to look elsewhere.
        must_not_contain: Terms of other sections; one of them in the answer is a leak.
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
        """Whether the passage alone answers the question."""
        return self.relation == "related"


@dataclass(frozen=True, slots=True)
class GoldenSet:
    """Queries and cases in the order of their files.

    Attributes:
        path: File of the queries, for messages; no part of the set's identity.
    """

    path: Path = field(repr=False, compare=False)
    queries: tuple[GoldenQuery, ...]
    selected_text: tuple[SelectedTextCase, ...] = ()

    def select_half(self, half: Half) -> GoldenSet:
        """Queries of one half; the cases stay."""
        return replace(self, queries=tuple(one for one in self.queries if one.half == half))


@dataclass(frozen=True, slots=True)
class _QuestionFile:
    queries: tuple[GoldenQuery, ...]


@dataclass(frozen=True, slots=True)
class _SelectedTextFile:
    cases: tuple[SelectedTextCase, ...]


_File = TypeVar("_File", _QuestionFile, _SelectedTextFile)
_QUESTIONS: Final = TypeAdapter(_QuestionFile)
_SELECTED_TEXT: Final = TypeAdapter(_SelectedTextFile)


def load_golden_set(
    path: Path = QUESTIONS_PATH, selected_text_path: Path | None = None
) -> GoldenSet:
    """Load a test set; a query without `split` is reported.

    Args:
        path: JSON: `{"queries": [{"id", "question", "category", "all_of", "expected": [{"doc_path",
            "section_heading", "group"?}], "split"?}]}`; unknown fields are passed over.
        selected_text_path: JSON: `{"cases": [...]}` with the fields of SelectedTextCase; None for
            a set without cases.

    Raises:
        GoldenSetError: A file cannot be read, a field is missing or wrong, an id stands twice, an
            `all_of` query expects nothing, or a passage holds a term that must not be in answers.
    """
    queries = _read(path, _QUESTIONS).queries
    problems = _find_repeated([query.id for query in queries])
    problems += [
        f"query {query.id!r}: all_of is true, but expected is empty"
        for query in queries
        if query.all_of and not query.expected
    ]
    if not queries:
        problems.append("queries is empty")
    if problems:
        raise GoldenSetError(path, problems)
    cases = _load_cases(selected_text_path) if selected_text_path else ()
    return GoldenSet(path, queries, cases)


def _load_cases(path: Path) -> tuple[SelectedTextCase, ...]:
    cases = _read(path, _SELECTED_TEXT).cases
    problems = _find_repeated([case.id for case in cases])
    problems += [
        f"query {case.id!r}: must_not_contain: {term!r} stands in selected_text"
        for case in cases
        for term in case.must_not_contain
        if term.casefold() in case.selected_text.casefold()
    ]
    if problems:
        raise GoldenSetError(path, problems)
    return cases


def validate_against_corpus(
    golden: GoldenSet, documents: Sequence[Document], unreadable: Mapping[str, str] | None = None
) -> GoldenSet:
    """Check that every page and heading named is there, and return the set in their spelling.

    Letter case, markup and white space of a heading may differ; a heading below h3 becomes the
    section that holds it, as its text is cited under that one.

    Args:
        golden: A set as it was loaded.
        documents: Of the corpus.
        unreadable: Why other documents of the corpus are not in `documents`, by path.

    Raises:
        GoldenSetError: A page or heading is missing; names the query and the nearest there is.
    """
    pages = {str(one.doc_path): _read_sections(one) for one in documents}
    lookup = _Lookup(pages, unreadable or {})
    queries = [
        replace(
            query,
            expected=tuple(
                replace(
                    section,
                    section_heading=lookup.find(
                        f"query {query.id!r}: expected[{number}].",
                        section.doc_path,
                        section.section_heading,
                    ),
                )
                for number, section in enumerate(query.expected)
            ),
        )
        for query in golden.queries
    ]
    cases = [
        replace(
            case,
            section_heading=lookup.find(
                f"query {case.id!r}: ", case.doc_path, case.section_heading
            ),
        )
        for case in golden.selected_text
    ]
    if lookup.problems:
        raise GoldenSetError(golden.path, lookup.problems)
    return replace(golden, queries=tuple(queries), selected_text=tuple(cases))


@dataclass(slots=True)
class _Lookup:
    """Section headings by page and by the heading's normal form; notes what it does not find."""

    pages: Mapping[str, Mapping[str, str]]
    unreadable: Mapping[str, str]
    problems: list[str] = field(default_factory=list)

    def find(self, where: str, doc_path: str, heading: str) -> str:
        sections = self.pages.get(doc_path)
        if sections is None and doc_path in self.unreadable:
            self.problems.append(f"{where}doc_path: {self.unreadable[doc_path]}")
            return heading
        if sections is None:
            nearest = _name_nearest(doc_path, list(self.pages))
            self.problems.append(f"{where}doc_path {doc_path!r} is no page{nearest}")
            return heading
        found = sections.get(_normalize(heading))
        if found is None:
            nearest = _name_nearest(heading, list(sections.values()))
            self.problems.append(
                f"{where}section_heading {heading!r} is no heading of {doc_path}{nearest}"
            )
        return found or heading


def _name_nearest(text: str, known: Sequence[str]) -> str:
    nearest = difflib.get_close_matches(text, known, n=1, cutoff=0.4)
    return f"; the nearest is {nearest[0]!r}" if nearest else ""


def _read_sections(document: Document) -> dict[str, str]:
    """Section of each heading, by the heading's normal form; sections win over what they hold."""
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
    _warn_of_misspelled(path, content)
    return read


def _warn_of_misspelled(path: Path, content: bytes) -> None:
    """Fields of a set's own are passed over in silence, but not those that look like ours."""
    records = json.loads(content).get("queries", [])
    names = {name for one in records for place in (one, *one["expected"]) for name in place}
    for name in sorted(names - _FIELDS):
        nearest = difflib.get_close_matches(name, sorted(_FIELDS), n=1, cutoff=0.75)
        if nearest:
            _LOG.warning("%s: field %r is passed over; is it %r?", path, name, nearest[0])


def _describe(detail: ErrorDetails, content: bytes) -> str:
    """One problem of form: the query by its id, the field by its path."""
    place, message = list(detail["loc"]), detail["msg"].removeprefix("Value error, ")
    if len(place) < 2:
        return f"{place[0] if place else 'the file'}: {message}"
    number = int(place[1])
    record = json.loads(content)[place[0]][number]
    given = record.get("id") if isinstance(record, dict) else None
    query = repr(given) if given and isinstance(given, str) else f"number {number + 1}"
    parts = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place[2:])
    return ": ".join(part for part in (f"query {query}", parts.removeprefix("."), message) if part)


def _find_repeated(ids: Sequence[str]) -> list[str]:
    return [f"query {name!r}: id stands {n} times" for name, n in Counter(ids).items() if n > 1]
