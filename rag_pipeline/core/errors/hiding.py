"""Words for messages: the kind of a foreign error, and no paths or passwords of this machine."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_ROOT: Final = r"(?:/|\\\\|[A-Za-z]:[\\/])"
_WORD: Final = r"[^\s'\"`,;:()\[\]<>]"
_END: Final = r"[^\s'\"`,;:()\[\]<>.]"
_PATH: Final = re.compile(
    rf"'{_ROOT}[^'\n]+'|\"{_ROOT}[^\"\n]+\"|`{_ROOT}[^`\n]+`"  # in quotes, also with spaces
    rf"|\b(?:file|sqlite)[\w+]*:/+{_WORD}*{_END}"
    rf"|(?<![\w:/.\\~-]){_ROOT}{_WORD}*{_END}(?:(?: {_WORD}+?){{1,2}}[/\\]{_WORD}*{_END})*"
)
_WORDS: Final = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PASSWORD: Final = re.compile(r"(?<=://)[^/\s?#]+@")


def hide_places(message: str, name: str, known: Iterable[str] = ()) -> str:
    """Return a message without absolute paths, and without user names and passwords in URLs.

    Relative paths and other addresses are kept. In a path with spaces that is neither in quotes nor
    known, a part that begins with a space is recognized only if a slash follows within two words.

    Args:
        message: The message of an error.
        name: The text that replaces each path.
        known: Paths that are replaced in any case.
    """
    for path in sorted(known, key=len, reverse=True):
        message = re.sub(rf"{re.escape(path)}(?:[/\\]{_WORD}*{_END})?", lambda _: name, message)
    hidden = _PATH.sub(lambda _: name, message).replace(f"{name} {name}", name)
    return _PASSWORD.sub("", hidden)


def describe_kind(error: BaseException) -> str:
    """Return the kind of an error in words, such as `connect error` for a `ConnectError`."""
    words = _WORDS.sub(" ", type(error).__name__).split()
    return " ".join(word if word.isupper() else word.lower() for word in words)
