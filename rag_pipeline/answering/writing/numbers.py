"""Read the numbers of a text with their units, so that two texts can be compared.

The same number can be written in many ways: `1,000`, `1 000` and `1000`; `0.5`, `.5` and `50%`;
`20 ms` and `0.02 s`; `10^6`, `1e6` and `1 million`. Written words such as "two" are read only in
the text that is compared with, because nobody invents a measurement in words.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal, localcontext
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.text.terms import STOP_WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator

_RAISED: Final = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_POWER: Final = re.compile(r"(?<=\d)[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+")
_DASHES: Final = re.compile(r"[\u2010-\u2015\u2212]")
_DIGITS: Final = r"(?:\d+|(?<!\d)\.\d+)(?:(?:[.,']|[ ](?=\d{3}(?!\d)))\d+)*"
_TIMES_POWER: Final = (
    r"(?:\s*(?:[x*\u00d7\u00b7]|\\times|\\cdot)\s*)10\s*\^\s*\{?\s*(?P<power>-?\d{1,2})\}?"
)
_EXPONENT: Final = r"[eE](?P<exponent>[+-]?\d{1,2})(?![A-Za-z0-9])"
_UNIT: Final = r"[ \t~]?-?(?P<unit>%|[^\W\d_]+|°)(?P<per>(?:[/·*^][^\W_]+)*)"
NUMBER: Final = re.compile(
    r"(?<![A-Za-z0-9_])(?<![\d][.,])"
    rf"(?:10\s*\^\s*\{{?\s*(?P<bare>-?\d{{1,2}})\}}?"
    rf"|(?P<digits>{_DIGITS})(?:{_TIMES_POWER}|{_EXPONENT})?)"
    rf"(?:{_UNIT})?"
)
"""A number with the word after it, which may be a unit. Digits after a letter belong to a name."""

_ANY_DIGITS: Final = re.compile(_DIGITS)
_ENGLISH: Final = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_CONTINENTAL: Final = re.compile(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?")
_DECIMAL: Final = re.compile(r"\d*[.,]\d+|\d+")
_ENUMERATION: Final = re.compile(r"\d+(?:,\d{1,2})+")
_LONGEST: Final = 30  # digits; longer runs are data, and are compared as text
_PREFIXES: Final = dict(zip("nuμmckKMGTB", (-9, -6, -6, -3, -2, 3, 3, 6, 9, 12, 9), strict=True))
"""Power of ten of the first letter of a unit, or of a letter such as the M of `2M`."""

_ALONE: Final = frozenset("kKMGTB")
_LONGEST_SYMBOL: Final = 4  # letters; `kWh` is a symbol with a prefix, `motors` is a word
_NAMED: Final = {
    "percent": -2,
    "hundred": 2,
    "thousand": 3,
    "million": 6,
    "billion": 9,
    "trillion": 12,
    "nano": -9,
    "micro": -6,
    "milli": -3,
    "centi": -2,
    "deci": -1,
    "kilo": 3,
    "mega": 6,
    "giga": 9,
    "tera": 12,
}
"""Power of ten that the beginning of a word after a number stands for."""

_CARDINALS: Final = (  # noqa: SIM905  # shorter than a list
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen twenty"
).split()
_ORDINALS: Final = (  # noqa: SIM905  # shorter than a list
    "first second third fourth fifth sixth seventh eighth ninth tenth"
).split()
_WRITTEN: Final = {
    **{word: Decimal(number) for number, word in enumerate(_CARDINALS)},
    **{word: Decimal(number) for number, word in enumerate(_ORDINALS, start=1)},
    **{
        f"{word}ty": Decimal(10 * number)
        for number, word in enumerate(
            ["twen", "thir", "for", "fif", "six", "seven", "eigh", "nine"], start=2
        )
    },
    **dict.fromkeys(("once", "single", "a", "an"), Decimal(1)),
    **dict.fromkeys(("twice", "both", "double", "pair", "dual"), Decimal(2)),
    **dict.fromkeys(("triple", "thrice"), Decimal(3)),
    "quadruple": Decimal(4),
    "dozen": Decimal(12),
    "half": Decimal("0.5"),
    "quarter": Decimal("0.25"),
}
_WRITTEN_WORD: Final = re.compile(r"[A-Za-z]+")


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a text.

    Attributes:
        start: Offset of its first character.
        end: Offset after its last digit; the unit is not included.
        unit_end: Offset after the word that follows and may be a unit.
        text: The number as it is written.
        values: Values that it may have, such as 1 and 1000 for `1.000`. Empty for `1.2.3`.
        scaled: Values in base units, each with the first letter of the unit: ("s", 0.02) for
            `20 ms`. A share has no letter: ("", 0.5) for `50%`.
    """

    start: int
    end: int
    unit_end: int
    text: str
    values: frozenset[Decimal]
    scaled: frozenset[tuple[str, Decimal]]

    @property
    def unitless(self) -> bool:
        """True if no unit follows the number."""
        return all(not letter for letter, _ in self.scaled)


def unify_characters(text: str) -> str:
    """Return a text with one form for each character: wide digits, dashes, spaces and powers."""
    powers = _POWER.sub(lambda found: f"^{found.group().translate(_RAISED)}", text)
    return _DASHES.sub("-", unicodedata.normalize("NFKC", powers))


def find_numbers(text: str) -> Iterator[Number]:
    """Yield the numbers of a text in order. The text must have unified characters."""
    for match in NUMBER.finditer(text):
        digits, unit = match.group("digits"), match.group("unit") or ""
        if digits is None:
            values = {Decimal(1).scaleb(int(match.group("bare")))}
        else:
            power = int(match.group("power") or match.group("exponent") or 0)
            values = {value.scaleb(power) for value in _read_digits(digits)}
        end = match.start("unit") if unit else match.end()
        shown = match.group()[: end - match.start()].rstrip(" \t~-")
        scaled = {
            (letter, value.scaleb(power).normalize())
            for value in values
            for letter, power in _read_unit("" if unit.lower() in STOP_WORDS else unit)
        }
        yield Number(
            match.start(),
            match.start() + len(shown),
            match.end(),
            f"{shown}%" if unit == "%" else shown,
            frozenset(values),
            frozenset(scaled),
        )


class KnownNumbers:
    """The numbers that a text contains in any form.

    Args:
        text: The text. It must have unified characters.
        counts: Further numbers that count as contained, such as the length of a list.
    """

    def __init__(self, text: str, counts: frozenset[int] = frozenset()) -> None:
        self._written: set[str] = set()
        self._scaled: set[tuple[str, Decimal]] = set()
        self._values: set[Decimal] = {Decimal(count) for count in counts}
        for number in find_numbers(text):
            self._scaled |= {(of, near) for of, value in number.scaled for near in _round(value)}
            for value in number.values:
                self._values |= set(_round(value))
        for match in _ANY_DIGITS.finditer(text):  # also digits in names, dates and versions
            self._written.add(match.group())
            for value in _read_digits(match.group()):
                self._values |= set(_round(value))
            if not _read_digits(match.group()) or _ENUMERATION.fullmatch(match.group()):
                self._values |= {Decimal(part) for part in re.findall(r"\d{1,30}", match.group())}
        self._values |= set(_read_words(text))
        self._base_values = {value for _, value in self._scaled}

    def contain(self, number: Number) -> bool:
        """Return True if the text contains a number, in any notation, rounding or unit."""
        if number.values & self._values or number.scaled & self._scaled:
            return True
        # Code contains values in base units, without the unit.
        if any(("", value) in self._scaled for _, value in number.scaled):
            return True
        if number.unitless and number.values & self._base_values:
            return True
        parts = number.text.split(" " if " " in number.text else ",")
        if len(parts) > 1 and (" " in number.text or not number.values):
            return all(_read_digits(part) & self._values for part in parts)
        return not number.values and any(one.startswith(number.text) for one in self._written)


def _read_digits(digits: str) -> frozenset[Decimal]:
    plain = digits.replace("'", "").replace(" ", "")
    if len(plain) > _LONGEST:
        return frozenset()
    forms = set()
    if _ENGLISH.fullmatch(plain):
        forms.add(plain.replace(",", ""))
    elif _CONTINENTAL.fullmatch(plain):
        forms |= {plain.replace(".", "").replace(",", "."), plain.replace(",", "")}
    elif _DECIMAL.fullmatch(plain):
        forms.add(plain.replace(",", "."))
    return frozenset(Decimal(form).normalize() for form in forms if form.count(".") < 2)


def _read_unit(unit: str) -> Iterator[tuple[str, int]]:
    """Yield each reading of a unit: the first letter of its base and a power of ten."""
    if unit == "%":
        yield "", -2
        return
    lower = unit.lower()
    yield lower[:1], 0
    if unit[:1] in _PREFIXES and (1 < len(unit) <= _LONGEST_SYMBOL or unit in _ALONE):
        yield lower[1:2], _PREFIXES[unit[0]]
    for name, power in _NAMED.items():
        if lower.startswith(name):
            yield lower[len(name) : len(name) + 1], power


def _round(value: Decimal) -> Iterator[Decimal]:
    """Yield a value and the values that it becomes when it is rounded or cut to fewer decimals."""
    yield value
    exponent = value.as_tuple().exponent
    places = min(12, -exponent) if isinstance(exponent, int) else 0
    with localcontext(prec=_LONGEST + 20):
        for place in range(places):
            step = Decimal(1).scaleb(-place)
            yield value.quantize(step, ROUND_HALF_UP).normalize()
            yield value.quantize(step, ROUND_DOWN).normalize()


def _read_words(text: str) -> Iterator[Decimal]:
    """Yield the numbers written in English words, such as `twenty-five` and `two hundred`."""
    before: Decimal | None = None
    for match in _WRITTEN_WORD.finditer(text):
        word = match.group().lower()
        value = _WRITTEN.get(word)
        if before is not None and word in _NAMED:
            value = before.scaleb(_NAMED[word])
        elif before is not None and value is not None and before >= 20 and value < 10:
            yield value
            value += before
        if value is not None:
            yield value.normalize()
        before = value
