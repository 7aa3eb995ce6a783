"""Replies to the tasks that chat programs send about a conversation, such as naming it.

A task looks like a question, but the book cannot answer it. It is recognized by its structure: it
contains the conversation, and often an example of the JSON that it asks for.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rag_pipeline.core.models import JsonValue

_TAGGED: Final = re.compile(r"<([A-Za-z][\w-]*)>(.*?)</\1>", re.DOTALL)
_SPEAKER: Final = re.compile(
    r"^[ \t|>*#-]*(?P<role>user|human|assistant|ai|bot|model|response|system)\b[*_ ]*:[*_]*[ \t]*",
    re.IGNORECASE | re.MULTILINE,
)
_READER_ROLES: Final = ("user", "human")
_LABEL: Final = re.compile(r"^#{1,6}[ \t]+[^\n]{1,60}:[*_ \t]*$", re.MULTILINE)
_MIN_LABELS: Final = 2
_MAX_TITLE_WORDS: Final = 6
_MAX_TITLE_CHARS: Final = 60
_MAX_DEPTH: Final = 5


class _Transcript(NamedTuple):
    """A conversation within a message.

    Attributes:
        question: What the reader said first.
        has_reply: True if the assistant says something in it.
        is_tagged: True if it is enclosed in tags.
        rest: The message without the conversation.
    """

    question: str
    has_reply: bool
    is_tagged: bool
    rest: str


def answer_task(
    message: str, response_format: Mapping[str, JsonValue] | None, *, is_streamed: bool
) -> str | None:
    """Return the reply to a task, or None if the message is a question of a reader.

    The reply is JSON if the message shows an example of it, or if the request asks for it. A title
    is the beginning of the conversation's first question. All other texts and lists are empty, so
    that a program shows no suggestions instead of wrong ones.

    Args:
        message: The last message of the user.
        response_format: The field `response_format` of the request.
        is_streamed: True if the program shows the reply while it is written. A task without tags
            and without JSON is then a question of a reader who quotes a conversation.
    """
    found = _find_transcript(message)
    example = _find_example(found.rest if found else message)
    schema = _read_schema(response_format)
    if found is None:
        if example is None or len(_LABEL.findall(message)) < _MIN_LABELS:
            return None
        found = _Transcript("", has_reply=False, is_tagged=False, rest=message)
    asks_for_json = example is not None or schema is not None
    if not (found.is_tagged or asks_for_json or (found.has_reply and not is_streamed)):
        return None
    title = _shorten(found.question)
    if not asks_for_json:
        return title
    filled = _fill_schema(schema, title) if schema else _fill(example or {}, title)
    return json.dumps(filled, ensure_ascii=False)


def _find_transcript(message: str) -> _Transcript | None:
    for tagged in _TAGGED.finditer(message):
        found = _read_turns(tagged[2])
        if found is not None:
            rest = message[: tagged.start()] + message[tagged.end() :]
            return _Transcript(*found, is_tagged=True, rest=rest)
    first = next(
        (one for one in _SPEAKER.finditer(message) if one["role"].lower() in _READER_ROLES), None
    )
    found = _read_turns(message[first.start() :]) if first else None
    if first is None or found is None:
        return None
    return _Transcript(*found, is_tagged=False, rest=message[: first.start()])


def _read_turns(text: str) -> tuple[str, bool] | None:
    """Return what the reader says first, and if the assistant speaks; None without a reader."""
    turns = _read_json_turns(text)
    if turns is None:
        labels = list(_SPEAKER.finditer(text))
        if not labels or text[: labels[0].start()].strip():
            return None
        ends = [*(label.start() for label in labels[1:]), len(text)]
        turns = [
            (label["role"].lower(), text[label.end() : end].strip())
            for label, end in zip(labels, ends, strict=True)
        ]
    asked = [said for role, said in turns if role in _READER_ROLES]
    has_reply = any(role not in (*_READER_ROLES, "system") for role, _ in turns)
    return (asked[0], has_reply) if asked else None


def _read_json_turns(text: str) -> list[tuple[str, str]] | None:
    """Return the turns of a conversation in OpenAI's format; None if the text is not one."""
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(entries, list):
        return None
    return [
        (str(entry["role"]).lower(), str(entry["content"]))
        for entry in entries
        if isinstance(entry, dict) and {"role", "content"} <= entry.keys()
    ]


def _find_example(text: str) -> dict[str, JsonValue] | None:
    """Return the first JSON object with a field in the text."""
    decoder = json.JSONDecoder()
    for brace in re.finditer(r"\{\s*\"", text):
        try:
            found, _ = decoder.raw_decode(text, brace.start())
        except (ValueError, RecursionError):
            continue
        return dict(found)
    return None


def _read_schema(response_format: Mapping[str, JsonValue] | None) -> dict[str, JsonValue] | None:
    """Return the JSON schema that a request asks for; None if it asks for plain text."""
    kind = (response_format or {}).get("type")
    described = (response_format or {}).get("json_schema")
    schema = described.get("schema") if isinstance(described, dict) else None
    if kind == "json_schema" and isinstance(schema, dict):
        return schema
    return {} if kind == "json_object" else None


def _fill_schema(
    schema: Mapping[str, JsonValue], title: str, name: str = "", depth: int = 0
) -> JsonValue:
    """Return a value that fits a JSON schema, for the types that such requests use."""
    choices, properties = schema.get("enum"), schema.get("properties")
    if isinstance(choices, list) and choices:
        return choices[0]
    if isinstance(properties, dict) and depth < _MAX_DEPTH:
        return {
            key: _fill_schema(inner, title, key, depth + 1)
            for key, inner in properties.items()
            if isinstance(inner, dict)
        }
    empty: dict[str, JsonValue] = {"object": {}, "array": [], "number": 0, "integer": 0}
    empty |= {"boolean": False, "null": None}
    kind = schema.get("type", "object" if depth == 0 else "string")
    return empty[str(kind)] if str(kind) in empty else _fill("", title, name)


def _fill(form: JsonValue, title: str, name: str = "") -> JsonValue:
    """Return a value of the same form. A text is the title if its field is a title."""
    if isinstance(form, dict):
        return {key: _fill(value, title, key) for key, value in form.items()}
    if isinstance(form, list):
        return []
    if isinstance(form, str):
        return title if "title" in name.lower() else ""
    return form


def _shorten(question: str) -> str:
    """Return the first words of a question, as the title of a conversation."""
    words = re.sub(r"[*_`#>\[\]\"]+", " ", question).split()
    title = " ".join(words[:_MAX_TITLE_WORDS])
    return title[:_MAX_TITLE_CHARS].rstrip(" ,;:.?!")
