"""Recognise the language of a question and of the book, to tell the reader if they differ.

A script tells the language of most texts that are not in Latin letters. In Latin letters, the most
frequent function words tell it. Technical terms, which many languages share, count for no language.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from rag_pipeline.core.text.terms import STOP_WORDS, extract_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.retrieval.models import ScoredChunk

_DATA: Final[dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("languages.toml").read_text("utf-8")
)
"""Words, scripts and letters that tell languages; the file describes them."""

_SIMILAR: Final = str.maketrans("\u0142\u0111\u0131", "ldi")
_LATIN_WORD: Final = re.compile(r"[A-Za-z0-9_]+")

_BY_LANGUAGE: Final = {
    "English": STOP_WORDS,
    **{name: frozenset(words.split()) for name, words in _DATA["function_words"].items()},
}
_IN_NAMES: Final[frozenset[str]] = frozenset(_DATA["in_names"].split())
_SCRIPTS: Final[dict[str, str]] = _DATA["scripts"]
_FAMILIES: Final = {"HIRAGANA": "CJK", "KATAKANA": "CJK"}
"""Scripts that count as another one, because a language mixes them."""

ANOTHER_LANGUAGE: Final = "another language"

_SHARE_OF_LETTERS: Final = 0.3  # a question in another script may contain English terms
_LETTERS_OF_SYMBOLS: Final = {"GREEK": 2}  # with as many letters it may be a symbol; otherwise 1
_READ_CHARS: Final = 500  # of each passage
_READ_PASSAGES: Final = 5  # a model gets more of them, but they are from the same book
_MIN_LONGEST: Final = 3  # letters of the longest function word of a language
_ENOUGH_WORDS: Final = 2  # one word may be a name, such as "La" or "de"


def find_languages(question: str, chunks: Sequence[ScoredChunk]) -> tuple[str, str] | None:
    """Return the languages of a question and of the book if they differ; otherwise None.

    The language of the book is that of the first passages. Without passages, or if one of the
    languages is not clear, the result is None.
    """
    asked, read = find_language(question), chunks[:_READ_PASSAGES]
    if not asked or any(chunk.citation.locale for chunk in read):
        return None  # the reader chose a translation, whose other pages are not translated
    text = "\n".join(chunk.text[:_READ_CHARS] for chunk in read)
    script, other = _find_script(question), _find_script(text)
    is_same = _FAMILIES.get(script, script) == _FAMILIES.get(other, other)
    if is_same and asked == _SCRIPTS.get(script):
        return None  # too few letters to tell two languages with one script apart
    written = find_language(text)
    is_clear = written and written != ANOTHER_LANGUAGE
    if not is_clear or _count_words(question)[written] >= _ENOUGH_WORDS or asked == written:
        return None
    return asked, written


def find_foreign_terms(question: str, chunks: Sequence[ScoredChunk]) -> str:
    """Return the words of a question in another language that may be terms of the book.

    The function words of that language are left out and, if it is not written in Latin letters, all
    words in its script. They would count as words that the book lacks. The text is empty if the
    question is in the language of the book, or if no words or all words are left.
    """
    languages = find_languages(question, chunks)
    if languages is None:
        return ""
    asked, _ = languages
    if asked in _BY_LANGUAGE or asked == ANOTHER_LANGUAGE:
        own = _BY_LANGUAGE.get(asked) or frozenset().union(*_BY_LANGUAGE.values())
        words = extract_words(question)
        kept = [word for word in words if _simplify(word) not in own | _IN_NAMES]
    else:
        words = [question]
        kept = _LATIN_WORD.findall(question)
    return " ".join(kept) if len(kept) < len(words) or words == [question] else ""


@lru_cache(maxsize=64)  # a question and its passages are read twice: for the search, for the hint
def find_language(text: str) -> str:
    """Return the English name of a text's language; empty if it is not clear.

    A language in Latin letters is clear if two of its function words occur, and more than of any
    other language. If several languages have the same three or more words, the name is "another
    language", unless English is one of them.
    """
    script = "" if text.isascii() else _find_script(text)
    if script:
        present = set(text)
        named = (
            name for name, chars in _DATA["own_letters"].items() if not present.isdisjoint(chars)
        )
        return next(named, _SCRIPTS[script])
    counts = _count_words(text)
    most = max(counts.values())
    first, *others = (name for name, count in counts.items() if count == most)
    if others:
        return ANOTHER_LANGUAGE if most > _ENOUGH_WORDS and first != "English" else ""
    return first if most >= _ENOUGH_WORDS else ""


def _find_script(text: str) -> str:
    """Return the script of a text if it is no Latin text with a few symbols; otherwise ""."""
    scripts: Counter[str] = Counter()
    for word in text.split():
        if word.isascii():
            continue
        own = Counter(
            unicodedata.name(char, "").split(" ")[0]
            for char in word
            if unicodedata.category(char)[0] in "LM"
        )
        for name, count in own.items():
            if count > _LETTERS_OF_SYMBOLS.get(name, 1):
                scripts[name] += count
    script = max(_SCRIPTS, key=lambda name: scripts[name])
    if not scripts[script]:
        return ""
    letters = sum(char.isalpha() for char in text)
    return script if scripts[script] > _SHARE_OF_LETTERS * letters else ""


def _count_words(text: str) -> Counter[str]:
    """Return how many different words of a text are function words of each language.

    A repeated word counts once, because it may be a name, such as "jest". A language whose words
    all have at most two letters counts as absent, because such words are often codes: "the locales
    en, de and es".
    """
    found = set(extract_words(_simplify(text)))
    letters = set() if text.isascii() else set(text.lower())
    counts: Counter[str] = Counter()
    for name, words in _BY_LANGUAGE.items():
        own = words & found
        has_marks = not letters.isdisjoint(_DATA["marks"].get(name, ""))
        is_clear = any(len(word) >= _MIN_LONGEST for word in own)
        counts[name] = len(own) + has_marks if is_clear else 0
    return counts


def _simplify(text: str) -> str:
    """Return a text in lower case, without accents and with plain letters for similar ones."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text.casefold())
    kept = "".join(char for char in plain if not unicodedata.combining(char))
    return kept.translate(_SIMILAR)
