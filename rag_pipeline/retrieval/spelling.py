"""Correct misspelled words of a question to words of the book.

A word is misspelled if neither the book nor everyday language has it and a word of the book, or a
stop word, has almost the same letters.
"""

from __future__ import annotations

import re
from dataclasses import replace
from string import ascii_lowercase
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.protocols import ALL_POINTS, Channel, ChannelQuery
from rag_pipeline.core.text.terms import STOP_WORDS, extract_terms, extract_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from rag_pipeline.core.protocols import PointFilter, SparseEncoder, VectorIndex
    from rag_pipeline.retrieval.models import Evidence, RetrievalResult
    from rag_pipeline.retrieval.queries import Query

MIN_LETTERS: Final = 4
"""Shorter words have too many neighbours, and many are abbreviations."""

MAX_LETTERS: Final = 20
"""Longer words are not corrected: the number of their slips grows with the square of the length."""

MAX_CORRECTED: Final = 3
"""Number of words of a question that are corrected; more unknown words are no slips."""

_TWO_SLIPS_LETTERS: Final = 8  # words with as many letters may have two slips
_SAFE_LETTERS: Final = 3  # if a word has two slips, its beginning is right
_READ: Final = 10  # chunks in which a word is looked for
_LEAST_STOP_WORD: Final = 3  # letters; two exchanged letters are often an abbreviation
_VOWELS: Final = "aeiouy"
_SPELLED_SYMBOLS: Final = tuple(
    (re.compile(rf"\b([A-Za-z])[ -]{spelled}\b", re.IGNORECASE), symbol)
    for spelled, symbol in (("star", "*"), ("plus[ -]plus", "++"), ("sharp", "#"))
)


def correct_queries(
    results: Sequence[RetrievalResult],
    encoder: SparseEncoder,
    load_everyday_words: Callable[[], AbstractSet[str]] | None,
    read: Callable[[Callable[[VectorIndex], list[str | None]]], list[str | None]],
) -> dict[int, Query]:
    """Return queries with corrected words and written symbols, by the position of their result.

    The store is read only if a word may be misspelled.

    Args:
        results: Results of the questions as they were asked.
        encoder: The BM25 encoder that the collection was built with.
        load_everyday_words: See `find_misspelled`. None corrects nothing.
        read: Runs an action on the open collection.
    """
    if load_everyday_words is None:
        return {}
    asked = []
    for result in results:
        is_exact, question = result.query.exact_words, result.query.question
        words = () if is_exact else find_misspelled(result.evidence, load_everyday_words)
        corpus = result.evidence.corpus if result.evidence else ALL_POINTS
        asked.append((question if is_exact else write_symbols(question), words, corpus))
    corrected: Sequence[str | None] = [None] * len(asked)
    if any(words for _, words, _ in asked):
        corrected = read(lambda index: [correct_question(index, encoder, *one) for one in asked])
    return {
        at: replace(result.query, question=question)
        for at, (result, found, one) in enumerate(zip(results, corrected, asked, strict=True))
        if (question := found or one[0]) != result.query.question
    }


def write_symbols(question: str) -> str:
    """Return a question in which the spelled symbols of names are signs, as in `A*` and `C++`.

    The result is only tried: `A star` may be a star.
    """
    for name, symbol in _SPELLED_SYMBOLS:
        question = name.sub(rf"\1{symbol}", question)
    return question


def find_misspelled(
    evidence: Evidence | None, load_everyday_words: Callable[[], AbstractSet[str]]
) -> tuple[str, ...]:
    """Return the words of a question that may be misspelled, in order and as written.

    These are words of `MIN_LETTERS` to `MAX_LETTERS` English letters, or stop words with two
    exchanged letters, that neither the book nor everyday language contains in any form. A name or
    identifier (a capital after the first letter, a digit or an underscore) is never misspelled. If
    more than `MAX_CORRECTED` words remain, none is returned.

    Args:
        evidence: The terms of the question; None if the book was not searched.
        load_everyday_words: Returns words of everyday language in lower case. It is called only if
            the book lacks a word.
    """
    unknown = [
        entry
        for entry in (evidence.terms if evidence else ())
        if not entry.known
        and len(entry.word) <= MAX_LETTERS
        and (len(entry.word) >= MIN_LETTERS or _find_stop_word(entry.word.lower()))
        and entry.word.isascii()
        and entry.word.isalpha()
        and not any(char.isupper() for char in entry.word[1:])
    ]
    if not unknown:
        return ()
    everyday = load_everyday_words()
    # A stem is often a word, or a word without its final e or with i for y.
    found = tuple(
        entry.word
        for entry in unknown
        if everyday.isdisjoint(
            (entry.word.lower(), entry.term, entry.term + "e", entry.term.removesuffix("i") + "y")
        )
    )
    return found if len(found) <= MAX_CORRECTED else ()


def correct_question(
    index: VectorIndex,
    encoder: SparseEncoder,
    question: str,
    misspelled: Sequence[str],
    corpus: PointFilter = ALL_POINTS,
) -> str | None:
    """Return a question in which misspelled words are replaced by words of the book.

    A slip is a missing, an additional, a wrong or two exchanged letters. Exchanged letters are
    tried first, then the other slips, then, in words of at least eight letters, two of the most
    frequent slips. Of several words, the most frequent one in the book replaces the word. A stop
    word is tried before the words of the book, and only with exchanged letters.

    Args:
        index: The collection.
        encoder: The BM25 encoder that the collection was built with.
        question: The question as it was asked.
        misspelled: Words of the question, as `find_misspelled` returns them.
        corpus: The filter by version and language for the chunks whose words are tried.

    Returns:
        The corrected question; None if the book has no similar word for any of the words.
    """
    corrected = question
    for word in misspelled:
        lower = word.lower()
        slips = set(_slip_once(lower, ascii_lowercase))
        found = _find_stop_word(lower) or _choose_word(index, encoder, lower, slips, corpus)
        if found is None and len(lower) >= _TWO_SLIPS_LETTERS:
            once = set(_slip_often(lower))
            twice = {other for slip in once for other in _slip_often(slip)}
            found = _choose_word(index, encoder, lower, twice - slips, corpus)
        if found is not None:
            written = found.capitalize() if word[0].isupper() else found
            corrected = re.sub(rf"(?<![^\W_]){word}(?![^\W_])", written, corrected)
    return None if corrected == question else corrected


def choose_result(asked: RetrievalResult, corrected: RetrievalResult) -> RetrievalResult:
    """Return the better of the results for a question as asked and as corrected.

    The corrected question is better if its gain in the share of its words that the book knows is
    larger than its loss in similarity to the best passage. A correction to a word that the book
    lacks is not taken. The better result then has the query as asked, and the corrected question
    as `search_question`.
    """
    if _rate(corrected) <= _rate(asked):
        return asked
    before = {entry.term for entry in asked.evidence.terms} if asked.evidence else set()
    terms = corrected.evidence.terms if corrected.evidence else ()
    if any(not entry.known and entry.term not in before for entry in terms):
        return asked
    return replace(corrected, query=asked.query, search_question=corrected.query.question.strip())


def _rate(result: RetrievalResult) -> float:
    """Return the share of the question's known words plus the similarity of the best passage."""
    terms = result.evidence.terms if result.evidence else ()
    total = sum(entry.weight for entry in terms)
    known = sum(entry.weight for entry in terms if entry.known)
    scores = [chunk.channels for chunk in result.chunks if chunk.channels is not None]
    similarity = max(((entry.dense + entry.windows) / 2 for entry in scores), default=0.0)
    return (known / total if total else 0.0) + similarity


def _find_stop_word(word: str) -> str | None:
    """Return the stop word of at least three letters that has two letters exchanged in a word.

    Of two stop words, the one with the same first letter is returned.
    """
    others = (
        word[:at] + word[at + 1] + word[at] + word[at + 2 :]
        for at in (*range(1, len(word) - 1), 0)
        if len(word) >= _LEAST_STOP_WORD
    )
    return next((other for other in others if other in STOP_WORDS), None)


def _choose_word(
    index: VectorIndex,
    encoder: SparseEncoder,
    word: str,
    others: AbstractSet[str],
    corpus: PointFilter,
) -> str | None:
    """Return the most frequent word of the book among similar words; None if there is none.

    One search for each distinct term finds the terms that the book has; all searches are one
    request. The text of the found chunks must contain the very word.
    """
    terms = {
        other: own[0]
        for other in others
        if _is_likely(word, other) and (own := extract_terms(other))
    }
    distinct = sorted(set(terms.values()))
    vectors = encoder.encode_terms(distinct)
    hits = index.search_many(
        [ChannelQuery(Channel.BM25, vector, _READ, corpus, corpus) for vector in vectors]
    )
    best = {term: found for term, found in zip(distinct, hits, strict=True) if found}
    if not best:
        return None
    ids = sorted({point_id for found in best.values() for point_id, _ in found})
    used = {
        word.lower()
        for payload in index.fetch_fields(ids, ["text"]).values()
        for word in extract_words(str(payload.get("text", "")))
    }
    written = [other for other, term in terms.items() if term in best and other in used]

    def rank(other: str) -> tuple[bool, float, str]:
        exchanged = len(other) == len(word) and sorted(other) == sorted(word)
        return not exchanged, best[terms[other]][0][1], other  # a rare term has a high score

    return min(written, key=rank, default=None)


def _is_likely(word: str, other: str) -> bool:
    """Return True if a reader who meant another word is likely to have written this word.

    The first letter is rarely wrong, unless it was exchanged with the second. The first vowel is
    rarely another vowel, because that usually makes another word (pan, pen, pin). A word with an
    ending is another form of the word without it (jitter, jittery). A word of four letters has so
    many neighbours that only exchanged letters, or a missing letter of a pair (isac), count.
    """
    if word.startswith(other) and word != other + other[-1]:
        return False
    if other[0] != word[0] and other[:2] != word[1] + word[0]:
        return False
    is_pair = any(word[:at] + letter + word[at:] == other for at, letter in enumerate(word))
    if len(word) == MIN_LETTERS and sorted(other) != sorted(word) and not is_pair:
        return False
    vowel = next((at for at, letter in enumerate(word) if letter in _VOWELS), len(word))
    return (
        word[:vowel] != other[:vowel]
        or word[vowel + 1 :] != other[vowel + 1 :]
        or other[vowel : vowel + 1] not in _VOWELS
    )


def _slip_once(word: str, alphabet: str) -> Iterator[str]:
    """Yield each word that differs from a word by one slip."""
    for at in range(len(word) + 1):
        before, after = word[:at], word[at:]
        yield from (before + letter + after for letter in alphabet)
        if after:
            yield before + after[1:]
            yield from (before + letter + after[1:] for letter in alphabet)
        if len(after) > 1:
            yield before + after[1] + after[0] + after[2:]


def _slip_often(word: str) -> Iterator[str]:
    """Yield each word that differs from a word by one of the most frequent slips.

    These are two exchanged letters, an additional letter, a pair of equal letters of which one is
    missing, and another vowel. The first `_SAFE_LETTERS` letters stay as they are.
    """
    for at in range(_SAFE_LETTERS, len(word)):
        before, letter, after = word[:at], word[at], word[at + 1 :]
        yield before + after
        yield before + letter + letter + after
        if after:
            yield before + after[0] + letter + after[1:]
        if letter in _VOWELS:
            yield from (before + vowel + after for vowel in _VOWELS)
