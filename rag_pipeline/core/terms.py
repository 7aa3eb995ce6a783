"""Terms of a text: what lexical search, lexical cover and selected-text relevance count.

A term is a lower-cased, stemmed word. An identifier (`use_sim_time`, `JointState`, `ROS2`) counts
whole and in its parts, so that a question may spell it either way. Any change here raises
FORMAT_VERSION: sparse vectors are made of terms.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from py_rust_stemmers import SnowballStemmer

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
        "cannot",
        "could",
        "couldn",
        "did",
        "didn",
        "do",
        "does",
        "doesn",
        "doing",
        "don",
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
        "very",
        "was",
        "wasn",
        "we",
        "were",
        "weren",
        "what",
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
        "would",
        "wouldn",
        "you",
        "your",
        "yours",
        "yourself",
        "yourselves",
    ]
)
"""English function words; they say nothing about the subject of a text."""

UNSPACED: Final = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
"""Letters of scripts that put no space between words: Thai, Lao, kana, Han."""

_WORD: Final = re.compile(r"[^\W_]+(?:_+[^\W_]+)*")
_PARTS: Final = re.compile(r"U+(?!l)|U?l+|d+")  # of a word's shape, see _split_parts
_MAX_TERM_LENGTH: Final = 64  # characters; longer runs are data, not words
_STEMMER: Final = SnowballStemmer("english")


def extract_terms(text: str) -> list[str]:
    """Terms of a text in order, repeats kept, stop words left out; whole identifiers stand before
    their parts.
    """
    terms: list[str] = []
    for match in _WORD.finditer(text):
        terms.extend(_terms_of_word(match.group()))
    return terms


def find_distinct_terms(text: str) -> frozenset[str]:
    """The terms of a text, each once; faster than `extract_terms` where words repeat."""
    words = set(_WORD.findall(text))
    return frozenset(term for word in words for term in _terms_of_word(word))


def extract_words(text: str) -> list[str]:
    """Words of a text as written, without parts, stems or stop words removed; identifiers are one
    word.
    """
    return _WORD.findall(text)


def count_words(text: str) -> int:
    """How many words a text has; of scripts without spaces two characters count as one."""
    return len(_WORD.findall(UNSPACED.sub(" ", text))) + len(UNSPACED.findall(text)) // 2


def find_content_words(text: str) -> list[tuple[int, int]]:
    """Where the words of a text stand that are no stop words, in order."""
    return [
        match.span() for match in _WORD.finditer(text) if match.group().lower() not in STOP_WORDS
    ]


@lru_cache(maxsize=65_536)
def _terms_of_word(word: str) -> tuple[str, ...]:
    whole = word.lower()
    if len(whole) > _MAX_TERM_LENGTH or whole in STOP_WORDS:
        return ()
    if word.isalpha() and word[1:].islower():  # most words, which have no parts
        return (_STEMMER.stem_word(whole),)
    parts = [part.lower() for part in _split_parts(word)]
    if len(parts) < 2:
        return (_STEMMER.stem_word(whole),)
    kept = [_STEMMER.stem_word(part) for part in parts if part not in STOP_WORDS]
    return (whole, *kept)


def _split_parts(word: str) -> list[str]:
    """Cut an identifier where the kind of character changes, by any script's letters."""
    shape = "".join(
        "_" if char == "_" else "d" if char.isdigit() else "U" if char.isupper() else "l"
        for char in word
    )
    return [word[match.start() : match.end()] for match in _PARTS.finditer(shape)]
