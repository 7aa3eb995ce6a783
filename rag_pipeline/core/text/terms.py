"""Tokens, words and terms of a text, for lexical search and for comparing texts.

A term is a lower-case, stemmed word. An identifier such as `use_sim_time`, `JointState` or `ROS2`
gives a term for the whole and one for each part, so that a question may spell it either way. The
same holds for names with symbols, such as A* and C++, for files such as `.env`, and for flags such
as `--ros-args`. A run of Chinese, Japanese or Korean characters gives a term for each pair of
neighbours.
Increase FORMAT_VERSION with every change in this module, because sparse vectors consist of terms.
"""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from binascii import a2b_base64
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

from py_rust_stemmers import SnowballStemmer

from rag_pipeline.core.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import tiktoken


VOCABULARY: Final = (
    Path(__file__).parents[2] / "data/cl100k_base/9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
)
"""The file with the tokens of cl100k_base, each in Base64 with its number."""

_VOCABULARY_SHA256: Final = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
_LONG_RUN_LENGTH: Final = 2000  # characters
_LONG_RUN: Final = re.compile(rf"(\S{{{_LONG_RUN_LENGTH},}}|\s{{{_LONG_RUN_LENGTH},}})")
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
    pieces: list[str] = []
    for number, part in enumerate(_LONG_RUN.split(text)):  # each second part is a long run
        size = _RUN_PIECE if number % 2 else max(1, len(part))
        pieces += [part[at : at + size] for at in range(0, len(part), size)]
    return sum(len(encoding.encode_ordinary(piece)) for piece in pieces)


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
        fault = f"is damaged (sha256 {found[:12]}...)" if found != _VOCABULARY_SHA256 else ""
    except OSError as error:
        fault = f"cannot be read: {error.strerror}"
    if fault:
        problem = f"the vocabulary {VOCABULARY.name} {fault}"
        raise ConfigurationError("cl100k_base", problem, "Install the package again")


STOP_WORDS: Final = frozenset(
    (  # noqa: SIM905  # shorter than a list
        "a about above after again against all also am an and any are aren as at be because "
        "been before being below between both but by can cant cannot could couldn did didn "
        "didnt do does doesn doesnt doing don dont down during each few for from further had "
        "hadn has hasn have haven having he her here hers herself him himself his how i if in "
        "into is isn isnt it its itself just let ll me more most mustn my myself no nor not "
        "now of off on once only or other ought our ours ourselves out over own re s same shan "
        "she should shouldn so some such t than that the their theirs them themselves then "
        "there these they this those through to too under until up ve versus very vs was wasn "
        "we were weren what whats when where which while who whom why will with won wont would "
        "wouldn wouldnt you your yours yourself yourselves"
    ).split()
)
"""Lower-case English function words, which say nothing about the subject of a text.

Some are written as students type them, without an apostrophe. `vs` joins the things that a question
compares.
"""

UNSPACED: Final = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
"""Pattern of one letter of a script without spaces between words: Thai, Lao, kana or Han."""

_PAIRED: Final = re.compile(f"[\u3005\uac00-\ud7a3{UNSPACED.pattern[1:-1]}]")
_PAIRED_RUN: Final = re.compile(f"({_PAIRED.pattern}+)")
_SYMBOL: Final = r"(?<![\w*])[A-Za-z](?:\*|\+\+|#)(?![\w*+#])"  # such as A*, C++ and C#
_PLAIN: Final = r"[^\W_]+(?:_+[^\W_]+)*"
_NAMES: Final = (
    r"(?<![\w*])(?:[A-Za-z]|[A-Z]{2,5})\\?\*(?![\w*])",  # A*, and RRT\* as Markdown escapes it
    r"(?<![\w+])[A-Za-z][A-Za-z0-9]*\+\+(?![A-Za-z_+*#])",  # C++, also in C++17
    r"(?<![\w*#])[A-Za-z]#(?![\w*+#])",  # C#
    r"(?<![\w.)\]}])\.[A-Za-z][A-Za-z0-9_]*(?:[.-][A-Za-z0-9_]+)*(?![\w(])",  # .env
    r"(?:^|(?<=[\s`'\"|\[]))--?[A-Za-z][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)*(?!\w)",  # --ros-args
)
"""Patterns of names with symbols, of files that begin with a dot, and of the flags of commands."""

_WORD: Final = re.compile("|".join((*_NAMES, _PLAIN)))
_CONTENT_WORD: Final = re.compile(rf"{_SYMBOL}|{_PLAIN}")  # those of which windows consist
_PARTS: Final = re.compile(r"U+(?!l)|U?l+|d+")  # parts of a word's shape, see _split_parts
_MAX_TERM_LENGTH: Final = 64  # characters; longer runs are data, not words
_STEMMER: Final = SnowballStemmer("english")


def extract_terms(text: str) -> list[str]:
    """Return the terms of a text in order, with repeats and without stop words.

    The term of a whole identifier comes before the terms of its parts.
    """
    terms: list[str] = []
    for match in _WORD.finditer(text):
        terms.extend(_find_terms(match.group()))
    return terms


def find_distinct_terms(text: str) -> frozenset[str]:
    """Return the set of a text's terms, faster than `extract_terms` if many words repeat."""
    words = set(_WORD.findall(text))
    return frozenset(term for word in words for term in _find_terms(word))


def is_latin(term: str) -> bool:
    """Return True if a term is written in Latin letters, digits or symbols."""
    return term.isascii() or not any(
        char.isalpha() and not unicodedata.name(char, "").startswith("LATIN") for char in term
    )


def extract_words(text: str) -> list[str]:
    """Return the words of a text in order, exactly as they are written.

    Stop words are included. An identifier such as `use_sim_time` is one word.
    """
    return _WORD.findall(text)


def count_words(text: str) -> int:
    """Return the number of words of a text.

    In scripts without spaces between words, two characters count as one word.
    """
    if text.isascii():
        return len(_WORD.findall(text))
    return len(_WORD.findall(UNSPACED.sub(" ", text))) + len(UNSPACED.findall(text)) // 2


def find_content_words(text: str) -> list[tuple[int, int]]:
    """Return start and end (exclusive) of each word of a text that is not a stop word, in order.

    The dashes of a flag and the dot of a file name do not count as parts of a word.
    """
    return [
        match.span()
        for match in _CONTENT_WORD.finditer(text)
        if match.group().lower() not in STOP_WORDS
    ]


def _find_terms(word: str) -> Iterable[str]:
    if word.isascii() or _PAIRED.search(word) is None:
        return _terms_of_word(word)
    terms: list[str] = []
    for run in _PAIRED_RUN.split(word):
        if _PAIRED.match(run) is None:
            terms += _terms_of_word(run) if run else ()
        else:
            terms += [run[at : at + 2] for at in range(max(len(run) - 1, 1))]
    return terms


@lru_cache(maxsize=65_536)
def _terms_of_word(word: str) -> tuple[str, ...]:
    whole = word.lower()
    if len(whole) > _MAX_TERM_LENGTH or whole in STOP_WORDS:
        return ()
    if not (word[0].isalnum() and word[-1].isalnum()):
        return _terms_of_name(word)
    if word.isalpha() and word[1:].islower():  # most words: they have no parts
        return (_STEMMER.stem_word(whole),)
    parts = [part.lower() for part in _split_parts(word)]
    if len(parts) < 2:
        return (_STEMMER.stem_word(whole),)
    kept = [_STEMMER.stem_word(part) for part in parts if part not in STOP_WORDS]
    # "websockets" has no parts, and must give the same term as "WebSockets".
    return (_STEMMER.stem_word(whole) if word.isalpha() else whole, *kept)


def _terms_of_name(name: str) -> tuple[str, ...]:
    """Return the terms of a name with symbols: the whole, and then the terms of its words.

    The letter of a name such as A* or C++ means nothing without the symbol.
    """
    whole = name.replace("\\", "").lower()
    words = re.findall(_PLAIN, name)
    if len(words[0]) == 1 and name[0].isalpha():
        return (whole,)
    return (whole, *(term for word in words for term in _terms_of_word(word)))


def _split_parts(word: str) -> list[str]:
    """Split an identifier at underscores, at capitals, and between letters and digits.

    The letters may be of any script.
    """
    shape = "".join(
        "_" if char == "_" else "d" if char.isdigit() else "U" if char.isupper() else "l"
        for char in word
    )
    return [word[match.start() : match.end()] for match in _PARTS.finditer(shape)]


_WORD_PIECE: Final = re.compile(r'"([a-z]+)": ?\d')
_BPE_TOKEN: Final = re.compile(rb"^(I\S+) ", re.MULTILINE)  # in base64, a blank begins with I

_SLIPS: Final = frozenset({"nto", "teh"})  # misspelled so often that they are tokens


@lru_cache(maxsize=1)
def load_everyday_words() -> frozenset[str]:
    """Return about 35,000 frequent English words and names in lower case, read once per process.

    They are the whole words in the vocabularies of the local embedding model and of cl100k_base,
    which are files of this package. A token that is only the beginning of a word is left out. No
    model is loaded, so the words are available with each embedding provider.
    """
    data = files("rag_pipeline") / "data"
    vocabulary = (data / "minilm" / "tokenizer.json").read_text(encoding="utf-8")
    pieces = frozenset(_WORD_PIECE.findall(vocabulary))
    tokens = VOCABULARY.read_bytes()
    spelled = (a2b_base64(token)[1:] for token in _BPE_TOKEN.findall(tokens))
    words = (word.decode().lower() for word in spelled if word.isalpha())
    return pieces.union(word for word in words if word + "e" not in pieces) - _SLIPS
