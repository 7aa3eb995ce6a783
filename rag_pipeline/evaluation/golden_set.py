"""The golden set: evaluation questions and the sections of the book that answer them.

One invalid entry makes the whole file invalid: silently skipped questions would distort results.
"""

from __future__ import annotations

import codecs
import difflib
import json
import logging
import re
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
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from pydantic_core import ErrorDetails

    from rag_pipeline.core.models import Document


_FOLDER: Final = Path(__file__).parent / "golden"
QUESTIONS_PATH: Final = _FOLDER / "questions.json"
SELECTED_TEXT_PATH: Final = _FOLDER / "selected_text.json"
DEFINITIONS_PATH: Final = _FOLDER / "definitions.json"
CONVERSATIONS_PATH: Final = _FOLDER / "conversations.json"
ALL_PATHS: Final = (QUESTIONS_PATH, SELECTED_TEXT_PATH, DEFINITIONS_PATH, CONVERSATIONS_PATH)

_LOG: Final = logging.getLogger(__name__)


def _check_doc_path(text: str) -> str:
    try:
        return parse_doc_id(text)
    except DocumentIdError as error:
        raise ValueError(error) from error


def _name_group(group: object) -> object:
    """Return a whole number as text, because JSON may number groups; return other values as is."""
    return str(group) if type(group) is int else group


def _check_pattern(pattern: str) -> str:
    try:
        compiled = re.compile(pattern, re.IGNORECASE)
    except re.error as error:
        message = f"{pattern!r:.80} is not a valid regular expression: {error}"
        raise ValueError(message) from error
    if compiled.search(""):
        message = f"{pattern!r:.80} matches every answer. Write an expression that needs a text"
        raise ValueError(message)
    return pattern


_Text: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_DocPath: TypeAlias = Annotated[_Text, AfterValidator(_check_doc_path)]
_Pattern: TypeAlias = Annotated[str, AfterValidator(_check_pattern)]
Half: TypeAlias = Literal["tune", "report"]
Relation: TypeAlias = Literal["related", "unrelated", "injected"]


@dataclass(frozen=True, slots=True)
class ExpectedSection:
    """A section of the book that answers a question, or a part of the question.

    Attributes:
        section_heading: Any heading. The page's title names the text before the first heading.
        group: Name of the part of an `all_of` question that the section answers.
    """

    doc_path: _DocPath
    section_heading: _Text
    group: Annotated[str | None, BeforeValidator(_name_group)] = None


@dataclass(frozen=True, slots=True)
class GoldenQuery:
    """A question of the golden set and the sections that answer it.

    Attributes:
        expected: Sections that answer the question; empty if the book has no answer. Without
            `all_of`, each section is a complete answer.
        category: Kind of question, such as `fact`; reports also show figures per category.
        all_of: True if an answer needs one section per group, and all sections without a group.
        half: `tune` (for choosing parameters) or `report` (for published figures); JSON: `split`.
        paraphrase: A harder wording that avoids the usual names of things, if there is one.
        facts: Regular expressions. A right answer matches all of them, regardless of letter case.
    """

    id: _Text
    question: _Text
    expected: tuple[ExpectedSection, ...]
    category: _Text = "other"
    all_of: bool = False
    half: Annotated[Half, Field(validation_alias="split")] = "report"
    paraphrase: _Text | None = None
    # The golden set's version is a hash of the repr. Facts do not change what retrieval is asked.
    facts: tuple[_Pattern, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class SelectedTextCase:
    """A test case for selected-text mode: a passage that a reader selected, and a question on it.

    Attributes:
        relation: `related` if the passage answers the question, `unrelated` if it does not,
            `injected` if the question tells the system to look outside the passage.
        must_not_contain: Terms of other sections. Finding one in the answer is a leak.
    """

    id: _Text
    selected_text: _Text
    doc_path: _DocPath
    section_heading: _Text
    question: _Text
    relation: Relation
    must_not_contain: tuple[_Text, ...]


@dataclass(frozen=True, slots=True)
class DefinitionCase:
    """A term of the book's glossary, for the question "What is ...?".

    Attributes:
        definition: First sentence of the glossary's entry. An answer that contains it is right.
        places: Sections that define the term. A main passage from one of them is right.
    """

    term: _Text
    definition: _Text
    places: tuple[ExpectedSection, ...]


@dataclass(frozen=True, slots=True)
class ExpectedPage:
    """A page of the book that answers a question."""

    doc_path: _DocPath


@dataclass(frozen=True, slots=True)
class Conversation:
    """A question that was asked first, and the question after it.

    Attributes:
        first: The first question.
        question: The second question.
        kind: `follow_up` if the second question needs the first, `new_topic` if it does not.
        expected: Pages that answer the second question; any of them is right.
        half: `tune` (for choosing rules) or `report` (for published figures); JSON: `split`.
    """

    id: _Text
    first: _Text
    question: _Text
    kind: Literal["follow_up", "new_topic"]
    expected: Annotated[tuple[ExpectedPage, ...], Field(min_length=1)]
    half: Annotated[Half, Field(validation_alias="split")] = "report"


@dataclass(frozen=True, slots=True)
class GoldenSet:
    """The questions of a test set, and the other cases that it may have, in their order.

    Attributes:
        path: File of the questions, shown in error messages. Comparisons ignore it.
        selected_text: Selected passages with questions; JSON: `cases`.
        definitions: Terms of the glossary.
    """

    path: Path = field(default=Path(), repr=False, compare=False)
    queries: tuple[GoldenQuery, ...] = ()
    selected_text: Annotated[tuple[SelectedTextCase, ...], Field(validation_alias="cases")] = ()
    definitions: tuple[DefinitionCase, ...] = ()
    conversations: tuple[Conversation, ...] = ()


_FIELDS: Final = {"split"}.union(
    own.name for record in (GoldenQuery, ExpectedSection) for own in fields(record)
) - {"half"}
_GOLDEN_SET: Final = TypeAdapter(GoldenSet)


def load_golden_set(path: Path = QUESTIONS_PATH, *others: Path) -> GoldenSet:
    """Load the questions of a test set, and all other cases of this and of other files.

    Args:
        path: JSON: `{"queries": [{"id", "question", "category", "all_of", "expected": [{"doc_path",
            "section_heading", "group"?}], "split"?, "facts"?: [pattern]}], "cases"?: [...],
            "definitions"?: [...], "conversations"?: [...]}`. Unknown fields are ignored. A question
            without `split` belongs to the report half.
        others: Files with other lists of the same form.

    Raises:
        GoldenSetError: A file cannot be read, a field is missing or invalid, an id is repeated, a
            question without expected sections has `all_of` or `facts`, or a selected passage
            contains a forbidden term.
    """
    golden = _read(path)
    if not golden.queries:
        raise GoldenSetError(path, ["queries is empty; add a question"])
    for more in map(_read, others):
        golden = replace(
            golden,
            selected_text=golden.selected_text + more.selected_text,
            definitions=golden.definitions + more.definitions,
            conversations=golden.conversations + more.conversations,
        )
    return golden


def _read(path: Path) -> GoldenSet:
    """Read a file of a test set, which may have any of its lists."""
    try:
        content = path.read_bytes().removeprefix(codecs.BOM_UTF8)
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
        raise GoldenSetError(path, [problem], "Check the path and its permissions") from error
    try:
        read = _GOLDEN_SET.validate_json(content, strict=True)
    except ValidationError as error:
        problems = [_describe(detail, content) for detail in error.errors()]
        raise GoldenSetError(path, problems) from error
    names: set[str] = set()
    for record in json.loads(content).get("queries", []):
        names.update(record, *record["expected"])
    for name in sorted(names - _FIELDS):
        nearest = difflib.get_close_matches(name, sorted(_FIELDS), n=1, cutoff=0.75)
        if nearest:
            _LOG.warning("%s: ignored field %r; did you mean %r?", path, name, nearest[0])
    problems = _list_problems(read)
    if problems:
        raise GoldenSetError(path, problems)
    return replace(read, path=path)


def _describe(detail: ErrorDetails, content: bytes) -> str:
    """Return a message about one invalid field that names it and its question, case or term."""
    place, message = list(detail["loc"]), detail["msg"].removeprefix("Value error, ")
    if len(place) < 2:
        return f"{place[0] if place else 'the file'}: {message}"
    number = int(place[1])
    record = json.loads(content)[place[0]][number]
    kind, name = ("term", "term") if place[0] == "definitions" else ("query", "id")
    given = record.get(name) if isinstance(record, dict) else None
    entry = repr(given) if given and isinstance(given, str) else f"number {number + 1}"
    parts = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place[2:])
    field = parts.removeprefix(".")
    return f"{kind} {entry}: {field}: {message}" if field else f"{kind} {entry}: {message}"


def _list_problems(golden: GoldenSet) -> list[str]:
    """Return what is wrong with the content of a file whose fields are valid."""
    problems = []
    for entries in (golden.queries, golden.selected_text, golden.conversations):
        counts = Counter(entry.id for entry in entries)
        found = counts.items()
        problems += [f"query {name!r}: the id occurs {n} times" for name, n in found if n > 1]
    for query in golden.queries:
        if query.all_of and not query.expected:
            problems.append(f"query {query.id!r}: all_of is true, but expected is empty")
        if query.facts and not query.expected:
            problems.append(f"query {query.id!r}: facts are given, but expected is empty")
    return problems + [
        f"query {case.id!r}: must_not_contain: {term!r} occurs in selected_text"
        for case in golden.selected_text
        for term in case.must_not_contain
        if term.casefold() in case.selected_text.casefold()
    ]


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

    def find_page(where: str, path: str) -> dict[str, str] | None:
        """Return the sections of a page; report a page that does not exist."""
        if path not in pages:
            problem = f" {path!r} does not exist{_name_nearest(path, pages)}"
            problem = f": {unreadable[path]}" if unreadable and path in unreadable else problem
            problems.append(f"{where}doc_path{problem}")
        return pages.get(path)

    def correct(where: str, place: _Place) -> _Place:
        sections, heading = find_page(where, place.doc_path), place.section_heading
        found = sections.get(_normalize(heading)) if sections else None
        if sections and found is None:
            nearest = _name_nearest(heading, sections.values())
            missing = f"{heading!r} is missing from {place.doc_path}{nearest}"
            problems.append(f"{where}section_heading {missing}")
        return replace(place, section_heading=found) if found else place

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
    for where, path in _list_pages(golden.conversations):
        find_page(where, path)
    if problems:
        raise GoldenSetError(golden.path, problems)
    return replace(golden, queries=tuple(queries), selected_text=tuple(cases))


def _list_pages(conversations: Iterable[Conversation]) -> Iterator[tuple[str, str]]:
    for one in conversations:
        for at, page in enumerate(one.expected):
            yield f"query {one.id!r}: expected[{at}].", page.doc_path


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
