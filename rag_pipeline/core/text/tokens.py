"""Token counts with OpenAI's cl100k_base encoding, the unit of all chunk sizes.

The vocabulary is part of the package, so no network is needed. If the user has not set
TIKTOKEN_CACHE_DIR, it is set to the folder of that vocabulary.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import ConfigurationError

if TYPE_CHECKING:
    import tiktoken

VOCABULARY: Final = (
    Path(__file__).parents[2] / "data/cl100k_base/9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
)
"""The file with the tokens of cl100k_base, each in Base64 with its number."""

_VOCABULARY_SHA256: Final = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
_LONG_RUN_LENGTH: Final = 2000  # characters
_LONG_RUN: Final = re.compile(rf"\S{{{_LONG_RUN_LENGTH},}}|\s{{{_LONG_RUN_LENGTH},}}")
_RUN_PIECE: Final = 1000  # characters; the encoder's time grows faster than a run's length


def count_tokens(text: str) -> int:
    """Return the number of cl100k_base tokens in a text.

    Special tokens such as `<|endoftext|>` count as plain text. The count is exact, except for runs
    of at least 2,000 characters that are all white space or all without white space. Such a run is
    counted in pieces of 1,000 characters, so that the time stays linear in the length.
    """
    encoding = _load_encoding()
    if len(text) < _LONG_RUN_LENGTH or _LONG_RUN.search(text) is None:
        return len(encoding.encode_ordinary(text))
    return sum(len(encoding.encode_ordinary(part)) for part in _cut_long_runs(text))


def find_token_ends(text: str) -> list[int]:
    """Return the UTF-8 byte offset of the end of each cl100k_base token in a text, in order.

    The last offset is the length of the text in UTF-8 bytes; an empty text gives an empty list.
    Runs of at least 2,000 characters are cut in pieces, as in `count_tokens`.
    """
    encoding = _load_encoding()
    return list(
        itertools.accumulate(
            len(encoding.decode_single_token_bytes(token))
            for part in _cut_long_runs(text)
            for token in encoding.encode_ordinary(part)
        )
    )


def _cut_long_runs(text: str) -> list[str]:
    parts: list[str] = []
    start = 0
    for match in _LONG_RUN.finditer(text):
        parts.append(text[start : match.start()])
        parts.extend(
            text[at : min(at + _RUN_PIECE, match.end())]
            for at in range(match.start(), match.end(), _RUN_PIECE)
        )
        start = match.end()
    parts.append(text[start:])
    return parts


@lru_cache(maxsize=1)
def _load_encoding() -> tiktoken.Encoding:
    import tiktoken  # noqa: PLC0415  # slow to import, and not every command counts tokens

    if not os.environ.get("TIKTOKEN_CACHE_DIR") and not os.environ.get("DATA_GYM_CACHE_DIR"):
        _check_vocabulary()
        os.environ["TIKTOKEN_CACHE_DIR"] = str(VOCABULARY.parent)
    return tiktoken.get_encoding("cl100k_base")


def _check_vocabulary() -> None:
    try:
        found = hashlib.sha256(VOCABULARY.read_bytes()).hexdigest()
    except OSError as error:
        problem = f"the vocabulary {VOCABULARY.name} cannot be read: {error.strerror}"
        raise ConfigurationError("cl100k_base", problem, "Install the package again") from error
    if found != _VOCABULARY_SHA256:
        problem = f"the vocabulary {VOCABULARY.name} is damaged (sha256 {found[:12]}...)"
        raise ConfigurationError("cl100k_base", problem, "Install the package again")
