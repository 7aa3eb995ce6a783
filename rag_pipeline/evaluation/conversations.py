"""Two-turn conversations of the golden set, and how often the second question finds its page."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

from pydantic import AfterValidator, Field, StringConstraints, TypeAdapter, ValidationError

from rag_pipeline.answering.conversations.follow_ups import complete_question
from rag_pipeline.answering.models import Turn
from rag_pipeline.core.errors import DocumentIdError, GoldenSetError, RagPipelineError
from rag_pipeline.core.ids import parse_doc_id
from rag_pipeline.evaluation.gates import REPORT_HALF, GateResult, check_share
from rag_pipeline.evaluation.metrics import find_interval
from rag_pipeline.retrieval import Query

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rag_pipeline.evaluation.report import Retriever

CONVERSATIONS_PATH: Final = Path(__file__).parent / "golden" / "conversations.json"
DEPTH: Final = 5
MIN_RIGHT_PAGES: Final = 0.90
"""Lowest share of follow-ups of the report half that find a right page among five passages."""


def _check_doc_path(text: str) -> str:
    try:
        return parse_doc_id(text)
    except DocumentIdError as error:
        raise ValueError(error) from error


_Text: TypeAlias = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_DocPath: TypeAlias = Annotated[_Text, AfterValidator(_check_doc_path)]
Kind: TypeAlias = Literal["follow_up", "new_topic"]
Half: TypeAlias = Literal["tune", "report"]


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
    kind: Kind
    expected: Annotated[tuple[ExpectedPage, ...], Field(min_length=1)]
    half: Annotated[Half, Field(validation_alias="split")] = field(default="report")


@dataclass(frozen=True, slots=True)
class ConversationResult:
    """The search for the second question of a conversation.

    Attributes:
        searched: The question that was searched, completed if it needed the first.
        found_alone: True if the second question as asked finds a right page among five passages.
        found: True if the searched question does.
    """

    conversation: Conversation
    searched: str
    found_alone: bool
    found: bool


@dataclass(frozen=True, slots=True)
class _File:
    conversations: tuple[Conversation, ...]


_FILE: Final = TypeAdapter(_File)


def load_conversations(path: Path = CONVERSATIONS_PATH) -> tuple[Conversation, ...]:
    """Load the conversations of a test set.

    Args:
        path: JSON: `{"conversations": [{"id", "first", "question", "kind", "split"?, "expected":
            [{"doc_path"}]}]}`.

    Raises:
        GoldenSetError: The file cannot be read, a field is missing or invalid, or an id is
            repeated.
    """
    try:
        loaded = _FILE.validate_json(path.read_bytes()).conversations
    except OSError as error:
        problem = f"cannot be read ({error.strerror})"
        raise GoldenSetError(path, [problem], "Check the path and its permissions") from error
    except ValidationError as error:
        problems = [
            f"{'.'.join(map(str, one['loc']))}: {one['msg']}"
            for one in error.errors(include_url=False, include_input=False)
        ]
        raise GoldenSetError(path, problems) from error
    ids = [one.id for one in loaded]
    repeated = sorted({one for one in ids if ids.count(one) > 1})
    if repeated:
        raise GoldenSetError(path, [f"id {one!r} occurs more than once" for one in repeated])
    return loaded


def run_conversations(
    conversations: Iterable[Conversation], retriever: Retriever
) -> tuple[ConversationResult, ...]:
    """Search for the second question of each conversation, with and without the first.

    No model rewrites a question. A search that fails finds no page.
    """
    results = []
    for one in conversations:
        searched = complete_question(one.question, [Turn(one.first)])
        alone = _finds_page(one, one.question, retriever)
        found = alone if searched == one.question else _finds_page(one, searched, retriever)
        results.append(ConversationResult(one, searched, alone, found))
    return tuple(results)


def check_conversations(results: Sequence[ConversationResult]) -> GateResult:
    """Check that enough follow-ups of the report half find a right page; see `CONVERSATION_GATES`.

    The gate passes as "not measured" if there are no results.
    """
    counted = [
        one
        for one in results
        if one.conversation.half == REPORT_HALF and one.conversation.kind == "follow_up"
    ]
    return check_share(
        "follow_ups_found",
        find_interval([one.found for one in counted]),
        MIN_RIGHT_PAGES,
        f"follow-ups of the report half that find a right page among {DEPTH} passages "
        f"({sum(one.found_alone for one in counted)} of {len(counted)} do as asked)",
    )


def _finds_page(one: Conversation, question: str, retriever: Retriever) -> bool:
    pages = {page.doc_path for page in one.expected}
    try:
        result = retriever.retrieve(Query(question, top_k=DEPTH))
    except RagPipelineError:  # recorded like a failed question of the golden set: it found nothing
        return False
    return any(chunk.metadata.doc_path in pages for chunk in result.chunks)
