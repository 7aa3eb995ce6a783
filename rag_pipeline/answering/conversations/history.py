"""The earlier turns of a conversation, and which of them count for a question."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.models import Turn
from rag_pipeline.core.errors import QueryError
from rag_pipeline.core.text.tokens import count_tokens
from rag_pipeline.retrieval.queries import Mode

if TYPE_CHECKING:
    from rag_pipeline.retrieval.queries import Query

MAX_TURNS: Final = 20
MAX_HISTORY_TOKENS: Final = 8_000
MAX_EARLIER_QUESTION_CHARS: Final = 2_000
MAX_EARLIER_ANSWER_CHARS: Final = 8_000
_CUT: Final = " …"


def choose_turns(history: Sequence[Turn], query: Query) -> tuple[Turn, ...]:
    """Return the latest turns that count for a query, oldest first.

    In selected-text mode, only turns about the same selection count. Otherwise every turn counts,
    but a turn about a selection loses the selection and its answer. Turns without a visible
    question are left out. Control characters and unpaired surrogates are removed.

    The result has at most 20 turns and 8,000 tokens. A question is cut after 2,000 characters, and
    an answer after 8,000. If a turn does not fit, it and all earlier turns are left out.

    Raises:
        QueryError: The history is not a sequence of turns, or a field of a turn is not text.
    """
    if isinstance(history, str | bytes) or not isinstance(history, Sequence):
        raise QueryError(f"history must be a list of turns, not {history!r:.40}")
    selection = _normalize(query.selected_text or "") if _is_about_selection(query) else None
    chosen: list[Turn] = []
    left = MAX_HISTORY_TOKENS
    for number in range(len(history), 0, -1):
        turn = history[number - 1]
        _check(turn, number)
        if left < 0 or len(chosen) == MAX_TURNS:
            continue  # the other turns are only checked
        cleaned = _clean(turn, selection)
        if cleaned is None:
            continue
        left -= count_tokens(cleaned.question) + count_tokens(cleaned.answer)
        if left >= 0:
            chosen.append(cleaned)
    return tuple(reversed(chosen))


def _is_about_selection(query: Query) -> bool:
    return query.mode == Mode.SELECTED_TEXT_ONLY


def _check(turn: object, number: int) -> None:
    if not isinstance(turn, Turn):
        raise QueryError(f"history[{number - 1}] must be a Turn, not {turn!r:.40}")
    for name in ("question", "answer", "selected_text"):
        value = getattr(turn, name)
        if not isinstance(value, str) and not (name == "selected_text" and value is None):
            raise QueryError(f"history[{number - 1}].{name} must be a string, not {value!r:.40}")


def _clean(turn: Turn, selection: str | None) -> Turn | None:
    """Return a turn within the bounds, or None if it does not count.

    Args:
        turn: The turn as given.
        selection: The normalized selection of the query; None in normal mode.
    """
    if selection is not None and (
        turn.selected_text is None or _normalize(turn.selected_text) != selection
    ):
        return None
    question = _clean_text(turn.question, MAX_EARLIER_QUESTION_CHARS)
    if not any(map(_is_visible, question)):
        return None
    if selection is None and turn.selected_text is not None:
        return Turn(question)
    return replace(
        turn, question=question, answer=_clean_text(turn.answer, MAX_EARLIER_ANSWER_CHARS)
    )


def _clean_text(text: str, max_chars: int) -> str:
    """Return a text without control characters, cut after `max_chars` characters.

    Format characters stay, because Persian words and many emoji need zero-width joiners.
    """
    head = text[: 2 * max_chars].strip()
    kept = "".join(char for char in head if char in "\n\t" or _is_text(char)).strip()
    if len(kept) <= max_chars and len(text) <= 2 * max_chars:
        return kept
    return kept[: max_chars - len(_CUT)].rstrip() + _CUT if kept else ""


def _is_visible(char: str) -> bool:
    return unicodedata.category(char)[0] not in {"C", "Z"}


def _is_text(char: str) -> bool:
    return unicodedata.category(char) not in {"Cc", "Cs"}


def _normalize(selection: str) -> str:
    """Return a selection without differences in white space and Unicode form."""
    text = selection.encode("utf-8", "replace").decode().replace("\x00", "")
    return " ".join(unicodedata.normalize("NFC", text).split())
