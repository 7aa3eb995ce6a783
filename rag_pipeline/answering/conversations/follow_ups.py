"""What to search for a question that only makes sense after earlier questions.

The rules look at closed classes of English words: pronouns, conjunctions, prepositions and words
such as "example" that always need something they belong to. They know no subject of a book.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.conversations.wording import (
    CONTRASTS,
    DETERMINERS,
    EMPTY_WORDS,
    FRAGMENT_OPENINGS,
    NEW_TOPIC,
    PLACE_OF_ITS_OWN,
    POINTING,
    SUBJECT_PRONOUNS,
    UNATTACHED,
    VERBS,
    WH_WORDS,
)
from rag_pipeline.answering.reading.small_talk import find_reply, remove_small_talk
from rag_pipeline.retrieval.queries import Mode, Query

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.answering.conversations.history import Turn

MAX_FOLLOW_UP_CHARS: Final = 500
MAX_TOPIC_CHARS: Final = 500
_MAX_FRAGMENT_CONTENT: Final = 3  # content words of a fragment such as "and with a wet floor?"
_MAX_CONTENT: Final = 4  # a question with more words that name a subject can be searched as it is
_WORD: Final = re.compile(r"[^\W_](?:[\w'+#./-]*[\w+#])?|[,;:.?!]")
_MARKS: Final = frozenset(",;:.?!")
_CLAUSE_STARTS: Final = frozenset(
    [
        "and",
        "or",
        "but",
        "if",
        "when",
        "so",
        "because",
        "while",
        "before",
        "after",
        "once",
        "until",
        "unless",
        "since",
        "whether",
        "where",
        "as",
        "then",
    ]
) | frozenset(_MARKS)


def complete_question(question: str, turns: Sequence[Turn]) -> str:
    """Return the question with the earlier question that it needs in front of it.

    The earlier question is the latest one that makes sense on its own. If follow-ups were asked
    since then, the last of them is added too. Only questions count, never answers. The question is
    returned unchanged if it makes sense on its own, is small talk, has more than 500 characters, or
    if no earlier question makes sense on its own.

    Args:
        question: The question as asked.
        turns: Earlier turns, oldest first.

    Returns:
        At most 1,502 characters if the question was changed.
    """
    if not turns or not needs_earlier(question):
        return question
    between = ""
    for turn in reversed(turns):
        earlier = _shorten(turn.question)
        if not earlier or _is_small_talk(earlier):
            continue
        if not needs_earlier(earlier):
            return " ".join(part for part in (earlier, between, question.strip()) if part)
        between = between or earlier
    return f"{between} {question.strip()}" if between else question


def needs_earlier(question: str) -> bool:
    """Return True if a question does not make sense without an earlier one."""
    text = question.strip().replace("\u2019", "'")
    if not text or len(text) > MAX_FOLLOW_UP_CHARS or _is_small_talk(text):
        return False
    text = remove_small_talk(text).casefold()
    if NEW_TOPIC.match(text):
        return False
    words = _WORD.findall(text)
    if not any(word not in _MARKS for word in words):
        return False
    if not text.isascii() and not _is_english(words):
        return False  # the rules are for English
    content = [at for at, word in enumerate(words) if _is_content(words, at)]
    if len(content) > _MAX_CONTENT:
        return False
    return (
        not content
        or _is_fragment(words, len(content))
        or UNATTACHED.search(text) is not None
        or (len(content) <= _MAX_FRAGMENT_CONTENT and CONTRASTS.search(text) is not None)
        or any(_points_back(words, at) for at in range(len(words)))
    )


def _shorten(question: str) -> str:
    """Return a question on one line, cut after 500 characters."""
    text = " ".join(question[: 4 * MAX_TOPIC_CHARS].split())
    return text if len(text) <= MAX_TOPIC_CHARS else text[:MAX_TOPIC_CHARS].rsplit(" ", 1)[0]


def _is_small_talk(text: str) -> bool:
    # "How does it work?" asks about the tutor only if nothing was said before, as with a selection.
    return bool(find_reply(Query(text, Mode.SELECTED_TEXT_ONLY)))


def _is_english(words: Sequence[str]) -> bool:
    return any(word in VERBS or word in WH_WORDS or word in DETERMINERS for word in words)


def _is_content(words: Sequence[str], at: int) -> bool:
    """Return True if a word can name a subject: no empty word, and no verb such as "I install"."""
    word = words[at]
    if word in _MARKS or word in EMPTY_WORDS or not any(char.isalnum() for char in word):
        return False
    return not (at > 0 and words[at - 1] in SUBJECT_PRONOUNS)


def _is_fragment(words: Sequence[str], content_count: int) -> bool:
    """Return True for a short question without a verb, such as "and on ice?" or "why lidar?"."""
    first = words[0]
    has_verb = any(word in VERBS for word in words)
    if first in FRAGMENT_OPENINGS:
        limit = 1 if has_verb else _MAX_FRAGMENT_CONTENT
        return content_count <= limit
    return first in WH_WORDS and not has_verb and content_count <= 1 and "to" not in words[1:2]


def _points_back(words: Sequence[str], at: int) -> bool:
    """Return True if a word is a pronoun that refers to nothing else in the question."""
    word = words[at]
    if word not in POINTING:
        return False
    after = words[at + 1] if at + 1 < len(words) else "?"
    if word in PLACE_OF_ITS_OWN and PLACE_OF_ITS_OWN[word].match(" ".join(words[at + 1 : at + 7])):
        return False
    if word == "that" and after not in _MARKS:
        return not _has_subject(words[:at])
    before = words[:at]
    if word not in {"its", "their"}:
        starts = [place for place, earlier in enumerate(before) if earlier in _CLAUSE_STARTS]
        before = before[: starts[-1]] if starts else []
    return not _has_subject(before)


def _has_subject(words: Sequence[str]) -> bool:
    return any(_is_content(words, at) for at in range(len(words)))
