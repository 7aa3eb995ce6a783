"""Token counts in cl100k_base, the unit of every chunk size; needs no network.

The vocabulary lies in the package; TIKTOKEN_CACHE_DIR is set to it only where the user set none.
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

_VOCABULARY: Final = (
    Path(__file__).parent.parent / "data/cl100k_base/9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
)
_VOCABULARY_SHA256: Final = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
_LONG_RUN_LENGTH: Final = 2000  # characters
_LONG_RUN: Final = re.compile(rf"\S{{{_LONG_RUN_LENGTH},}}|\s{{{_LONG_RUN_LENGTH},}}")
_RUN_PIECE: Final = 1000  # characters; the encoder's time grows faster than the length of a run


def count_tokens(text: str) -> int:
    """Count cl100k_base tokens; special tokens such as `<|endoftext|>` count as plain text.

    Exact but for runs of over 2,000 characters with no change between white space and other
    characters: those are counted in pieces, so that time stays linear.
    """
    encoding = _load_encoding()
    if len(text) < _LONG_RUN_LENGTH or _LONG_RUN.search(text) is None:
        return len(encoding.encode_ordinary(text))
    return sum(len(encoding.encode_ordinary(part)) for part in _cut_long_runs(text))


def find_token_ends(text: str) -> list[int]:
    """Byte offset behind each cl100k_base token of a text, in order; the last is the text's length
    in UTF-8 bytes. Long runs are cut as `count_tokens` does.
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
    import tiktoken  # noqa: PLC0415  # slow to import, and not every command counts

    if not os.environ.get("TIKTOKEN_CACHE_DIR") and not os.environ.get("DATA_GYM_CACHE_DIR"):
        _check_vocabulary()
        os.environ["TIKTOKEN_CACHE_DIR"] = str(_VOCABULARY.parent)
    return tiktoken.get_encoding("cl100k_base")


def _check_vocabulary() -> None:
    try:
        found = hashlib.sha256(_VOCABULARY.read_bytes()).hexdigest()
    except OSError as error:
        problem = f"the vocabulary {_VOCABULARY.name} cannot be read: {error.strerror}"
        raise ConfigurationError("cl100k_base", problem, "Install the package again") from error
    if found != _VOCABULARY_SHA256:
        problem = f"the vocabulary {_VOCABULARY.name} is damaged (sha256 {found[:12]}...)"
        raise ConfigurationError("cl100k_base", problem, "Install the package again")
