"""Words and terms of a text, for lexical search and for comparing questions with texts.

A term is a lower-case, stemmed word. An identifier such as `use_sim_time`, `JointState` or `ROS2`
gives a term for the whole and one for each part, so that a question may spell it either way. One
letter with a symbol, such as A* or C++, is a term too. A run of Chinese, Japanese or Korean
characters gives a term for each pair of neighbours.
Increase FORMAT_VERSION with every change in this module, because sparse vectors consist of terms.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from py_rust_stemmers import SnowballStemmer

if TYPE_CHECKING:
    from collections.abc import Iterable

STOP_WORDS: Final = frozenset(
    [
        "a",
        "about",
        "above",
        "after",
        "again",
        "against",
        "all",
        "also",
        "am",
        "an",
        "and",
        "any",
        "are",
        "aren",
        "as",
        "at",
        "be",
        "because",
        "been",
        "before",
        "being",
        "below",
        "between",
        "both",
        "but",
        "by",
        "can",
        "cant",
        "cannot",
        "could",
        "couldn",
        "did",
        "didn",
        "didnt",
        "do",
        "does",
        "doesn",
        "doesnt",
        "doing",
        "don",
        "dont",
        "down",
        "during",
        "each",
        "few",
        "for",
        "from",
        "further",
        "had",
        "hadn",
        "has",
        "hasn",
        "have",
        "haven",
        "having",
        "he",
        "her",
        "here",
        "hers",
        "herself",
        "him",
        "himself",
        "his",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "isn",
        "isnt",
        "it",
        "its",
        "itself",
        "just",
        "let",
        "ll",
        "me",
        "more",
        "most",
        "mustn",
        "my",
        "myself",
        "no",
        "nor",
        "not",
        "now",
        "of",
        "off",
        "on",
        "once",
        "only",
        "or",
        "other",
        "ought",
        "our",
        "ours",
        "ourselves",
        "out",
        "over",
        "own",
        "re",
        "s",
        "same",
        "shan",
        "she",
        "should",
        "shouldn",
        "so",
        "some",
        "such",
        "t",
        "than",
        "that",
        "the",
        "their",
        "theirs",
        "them",
        "themselves",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "through",
        "to",
        "too",
        "under",
        "until",
        "up",
        "ve",
        "versus",
        "very",
        "vs",
        "was",
        "wasn",
        "we",
        "were",
        "weren",
        "what",
        "whats",
        "when",
        "where",
        "which",
        "while",
        "who",
        "whom",
        "why",
        "will",
        "with",
        "won",
        "wont",
        "would",
        "wouldn",
        "wouldnt",
        "you",
        "your",
        "yours",
        "yourself",
        "yourselves",
    ]
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
_WORD: Final = re.compile(rf"{_SYMBOL}|[^\W_]+(?:_+[^\W_]+)*")
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
    """Return start and end (exclusive) of each word of a text that is not a stop word, in order."""
    return [
        match.span() for match in _WORD.finditer(text) if match.group().lower() not in STOP_WORDS
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
    if not word[-1].isalnum():  # a name such as A* or C++, which is a term as it is
        return (whole,)
    if word.isalpha() and word[1:].islower():  # most words: they have no parts
        return (_STEMMER.stem_word(whole),)
    parts = [part.lower() for part in _split_parts(word)]
    if len(parts) < 2:
        return (_STEMMER.stem_word(whole),)
    kept = [_STEMMER.stem_word(part) for part in parts if part not in STOP_WORDS]
    return (whole, *kept)


def _split_parts(word: str) -> list[str]:
    """Split an identifier at underscores, at capitals, and between letters and digits.

    The letters may be of any script.
    """
    shape = "".join(
        "_" if char == "_" else "d" if char.isdigit() else "U" if char.isupper() else "l"
        for char in word
    )
    return [word[match.start() : match.end()] for match in _PARTS.finditer(shape)]
