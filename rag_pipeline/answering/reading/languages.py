"""Recognise the language of a question and of the book, to tell the reader if they differ.

A script tells the language of most texts that are not in Latin letters. In Latin letters, the most
frequent function words tell it. Technical terms, which many languages share, count for no language.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.text.terms import STOP_WORDS, extract_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.retrieval.models import ScoredChunk

_FUNCTION_WORDS: Final = {
    "German": (
        "das den dem des ein eine einen einem einer und oder ist sind wird werden wie was wer "
        "wo wann warum wieso wozu welche welcher welches ich er sie wir ihr mein meine nicht "
        "kein keine mit ohne vom zu zum zur auf aus bei beim nach fur uber unter zwischen "
        "kann muss soll gibt hat habe macht bedeutet funktioniert heisst erklare zeig mir "
        "wenn dass durch im bitte brauche"
    ),
    "French": (
        "le les un une des ou est sont que qui quoi quel quelle quels quelles comment "
        "pourquoi quand combien je tu il elle nous vous mon ma mes ne pas avec sans dans sur "
        "sous entre pour par au aux ce cette ces ca sert faire fait faut puis peut signifie "
        "veut dire fonctionne explique moi quest cest qu d l"
    ),
    "Spanish": (
        "el un una unos y o es son que quien cual cuales como porque donde cuando cuanto "
        "cuanta yo tu mi mis no con sin en sobre entre para por su este esta esto hay hace "
        "hacer puedo debo tiene significa sirve funciona explica cuesta puede"
    ),
    "Portuguese": (
        "o os as um uma do dos das e ou que quem qual quais como porque onde quando quanto "
        "quantos eu meu minha nao com sem em no na nos nas sobre entre para por ao seu sua "
        "este esta isso ha faz fazer posso devo tem significa serve funciona explique pode"
    ),
    "Italian": (
        "il lo gli le un uno una della dei delle e o sono che chi cosa quale quali come "
        "perche dove quando quanto io mio mia non con senza nel nella su sul tra fra alla si "
        "questo questa fa fare posso devo ha significa serve funziona spiega cos puo ci piu"
    ),
    "Dutch": (
        "het een en of is zijn wordt worden hoe wat wie waar wanneer waarom welke welk ik jij "
        "je hij wij mijn niet geen met zonder naar op uit bij voor over onder tussen kan moet "
        "heeft heb betekent werkt doet gebruik dat deze dit aan te als ook er"
    ),
    "Polish": (
        "jest sa co kto jak gdzie kiedy dlaczego czemu czym ktory ktora ktore ja moj moja nie "
        "z bez w na nad pod miedzy dla przez od do i oraz lub albo czy sie to ten ta te ile "
        "moge musze znaczy dziala oznacza sluzy robi"
    ),
    "Turkish": (
        "bir ve veya ile icin ne nedir neden nicin nasil nerede kim hangi kac mi mu midir yok "
        "bu su ben benim degil gibi daha en ise olan olarak arasindaki fark eder yapilir "
        "calisir yapar demek anlama gelir kullanilir gerekir"
    ),
    "Swedish": (
        "en ett och eller ar hur vad vem nar varfor vilken vilket vilka jag mitt inte med "
        "utan av till fran pa ur mellan kan maste ska har gor betyder fungerar som det den "
        "att om for"
    ),
    "Indonesian": (
        "apa itu yang dan atau adalah bagaimana mengapa kenapa kapan dimana siapa berapa saya "
        "aku tidak bukan dengan tanpa ke dari untuk pada antara bisa harus ada cara apakah "
        "artinya kerja perbedaan ini dalam"
    ),
    "Vietnamese": (
        "gi nao the nhu tai sao khi dau ai bao nhieu toi khong voi trong cua va hoac cho tu "
        "den giua co phai lam duoc cac mot nhung su dung khac nhau hoat dong"
    ),
    "Urdu or Hindi": (
        "kya hai hain ka ki ke ko kaise kese kyun kyon kyu kab kahan kaun kon kitna kitne "
        "mein mujhe mera aur ya nahi nahin par ye yeh woh hota hoti karta karte karna karein "
        "kare batao samjhao matlab kaam"
    ),
}
"""Frequent words of each language without accents.

Words that occur in English names and phrases (Los, de, von, et al., per se) are in `_IN_NAMES`.
"""

_IN_NAMES: Final = frozenset(
    "de la las los el et al en se per da di du van von der del".split()  # noqa: SIM905  # shorter
)
_SIMILAR: Final = str.maketrans("\u0142\u0111\u0131", "ldi")
_LATIN_WORD: Final = re.compile(r"[A-Za-z0-9_]+")

_BY_LANGUAGE: Final = {
    "English": STOP_WORDS,
    **{language: frozenset(words.split()) for language, words in _FUNCTION_WORDS.items()},
}
_LANGUAGES_OF: Final = {
    word: tuple(name for name, own in _BY_LANGUAGE.items() if word in own)
    for word in frozenset().union(*_BY_LANGUAGE.values())
}
"""The languages that have a function word."""

_SCRIPTS: Final = {
    "CYRILLIC": "Russian",
    "ARABIC": "Arabic",
    "DEVANAGARI": "Hindi",
    "CJK": "Chinese",
    "HIRAGANA": "Japanese",
    "KATAKANA": "Japanese",
    "HANGUL": "Korean",
    "GREEK": "Greek",
    "HEBREW": "Hebrew",
    "THAI": "Thai",
    "BENGALI": "Bengali",
    "TAMIL": "Tamil",
    "TELUGU": "Telugu",
    "GUJARATI": "Gujarati",
    "GEORGIAN": "Georgian",
    "ARMENIAN": "Armenian",
}
"""The language with the most readers for each script, by the first word of a letter's name."""

_OWN_LETTERS: Final = {
    "Ukrainian": "\u0456\u0457\u0454\u0491",
    "Urdu": "\u0679\u0688\u0691\u06ba\u06be\u06c1\u06d2",
    "Persian": "\u067e\u0686\u0698\u06af",
    "Japanese": "\u3092\u306f\u306e\u304c\u3067",
}
"""Letters that tell a language from others with the same script; the first that fits counts."""

_MARKS: Final = {
    "German": "\u00df",
    "Spanish": "\u00bf\u00a1\u00f1",
    "Portuguese": "\u00e3\u00f5",
    "Polish": "\u0142\u0105\u0119\u015b\u017c",
    "Turkish": "\u0131\u011f\u015f",
    "Swedish": "\u00e5",
}
"""Letters and signs of languages with Latin letters; those in a text count as one word."""

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
    asked, written = _compare(question, chunks)
    return None if asked == written else (asked, written)


def find_foreign_terms(question: str, chunks: Sequence[ScoredChunk]) -> str:
    """Return the words of a question in another language that may be terms of the book.

    The function words of that language are left out and, if it is not written in Latin letters, all
    words in its script. They would count as words that the book lacks. The text is empty if the
    question is in the language of the book, or if no words or all words are left.
    """
    asked, written = _compare(question, chunks)
    if asked == written:
        return ""
    if asked in _BY_LANGUAGE or asked == ANOTHER_LANGUAGE:
        own = _BY_LANGUAGE.get(asked) or frozenset().union(*_BY_LANGUAGE.values())
        words = extract_words(question)
        kept = [word for word in words if _simplify(word) not in own | _IN_NAMES]
    else:
        words = [question]
        kept = _LATIN_WORD.findall(question)
    return " ".join(kept) if len(kept) < len(words) or words == [question] else ""


def _compare(question: str, chunks: Sequence[ScoredChunk]) -> tuple[str, str]:
    """Return the languages of a question and of passages; two empty texts if one is not clear."""
    asked = find_language(question)
    if not asked:
        return "", ""
    read = chunks[:_READ_PASSAGES]
    if any(chunk.citation.locale for chunk in read):
        return "", ""  # the reader chose a translation, whose other pages are not translated
    text = "\n".join(chunk.text[:_READ_CHARS] for chunk in read)
    script = _find_script(question)
    if asked == _SCRIPTS.get(script) and _name_family(script) == _name_family(_find_script(text)):
        return "", ""  # too few letters to tell two languages with one script apart
    written = find_language(text)
    if written in {"", ANOTHER_LANGUAGE} or _count_words(question)[written] >= _ENOUGH_WORDS:
        return "", ""
    return asked, written


def _name_family(script: str) -> str:
    return "CJK" if script in {"HIRAGANA", "KATAKANA"} else script


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
        named = (name for name, chars in _OWN_LETTERS.items() if not present.isdisjoint(chars))
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
    counts = Counter(dict.fromkeys(_BY_LANGUAGE, 0))
    longest = dict.fromkeys(_BY_LANGUAGE, 0)
    for word in _LANGUAGES_OF.keys() & extract_words(_simplify(text)):
        for name in _LANGUAGES_OF[word]:
            counts[name] += 1
            longest[name] = max(longest[name], len(word))
    for name, marks in _MARKS.items():
        if not text.isascii() and not set(marks).isdisjoint(text.lower()):
            counts[name] += 1
    for name, length in longest.items():
        if length < _MIN_LONGEST:
            counts[name] = 0
    return counts


def _simplify(text: str) -> str:
    """Return a text in lower case, without accents and with plain letters for similar ones."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text.casefold())
    kept = "".join(char for char in plain if not unicodedata.combining(char))
    return kept.translate(_SIMILAR)
