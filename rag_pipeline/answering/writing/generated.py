"""Check what a model writes, sentence by sentence, before a reader sees it.

Each sentence is attributed to the source that contains it, whatever the model cited. A sentence
that no source contains is left out or marked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.models import AnswerSentence, GroundedResponse, Notice
from rag_pipeline.answering.writing.citing import (
    is_definition,
    place_citations,
    read_citations,
    remove_citations,
)
from rag_pipeline.answering.writing.cleaning import TagFilter, UnitReader, WrittenUnit, close_fence
from rag_pipeline.answering.writing.declining import has_sentinel, may_decline, remove_sentinel
from rag_pipeline.answering.writing.support import Attributor
from rag_pipeline.core.text.sentences import SENTENCE_MARKS
from rag_pipeline.core.text.terms import extract_words, find_distinct_terms

if TYPE_CHECKING:
    from rag_pipeline.answering.voice import Voice

_MARK: Final = re.compile(
    r"(?:<{2,}|={3,}|\[{3,}|-{3,}|#{3,})[ \t]*/?(?:END[ _]+)?(?:OF[ _]+)?"
    r"(?:SOURCES?|QUESTION|TURN|EARLIER|EXCERPTS?|CONTEXT)\b[^\n<>=]*(?:>{2,}|={3,}|\]{3,}|-{3,})?",
    re.IGNORECASE,
)
"""A mark of a prompt, as models repeat it, perhaps unfinished."""

_INVISIBLE: Final = re.compile(
    "\x1b\\[[0-9;]*[A-Za-z]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u200b\u2060\ufeff]"
)
"""Sequences that command a terminal, control characters, and characters of no width."""

_BOXED: Final = re.compile(r"\\boxed\{(?P<inner>.*)\}", re.DOTALL)
_LINK: Final = re.compile(
    r"(?P<image>!?)\[(?P<label>[^\]\n]*)\]\((?P<target>[^()\s]*(?:\s[^()]*)?)\)"
)
_ADDRESS: Final = re.compile(r"<?\b(?:https?://|www\.)[^\s<>\])]+>?")
_HTML: Final = re.compile(
    r"</?(?:a|img|iframe|script|style|div|span|p|br|b|i|em|strong|font|center|details|summary)"
    r"(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_NAME: Final = (
    r"(?:final answer|answer|response|assistant|tutor|ai|bot|model|antwort|r\u00e9ponse|respuesta"
    r"|risposta|resposta|a)"
)
_OPENING: Final = re.compile(
    rf"(?:#{{1,6}}[ ]*)?[*_]{{0,2}}{_NAME}[*_]{{0,2}}[ ]?[:\uff1a][*_]{{0,2}}[ ]*"
    rf"|#{{1,6}}[ ]*{_NAME}[ ]*(?=\n|\Z)",
    re.IGNORECASE,
)
_TURN: Final = re.compile(
    r"[*_#> ]{0,4}(?:user|human|reader|student|question|follow-?up question|assistant|tutor|q)"
    r"[ ]?\d{0,2}[*_]{0,2}[ ]?[:\uff1a]",
    re.IGNORECASE,
)
_SOURCE_LIST: Final = re.compile(
    r"[\W_]*(?:sources?(?: used| cited)?|references?|citations?|bibliography|works cited|footnotes?"
    r"|further reading|quellen(?:verzeichnis)?|literatur|r\u00e9f\u00e9rences?|fuentes|referencias)"
    r"[\W_]*",
    re.IGNORECASE,
)
_LIST_LABEL: Final = re.compile(
    r"^[ \t>]*(?:[-*+][ ]+|\d{1,3}[.)][ ]+)?(?:step[ ]\d+[:.][ ])?", re.IGNORECASE
)
_BOLD: Final = re.compile(r"(?:\*\*|__)[^*_\n]+(?:\*\*|__)[.:]?")
_FENCE: Final = re.compile(r"^[ \t]*[`~]{3,}.*$", re.MULTILINE)
_LOOP: Final = re.compile(r"(?P<part>.{3,150}?)(?P=part){3,}.{0,150}\Z", re.DOTALL)
_LOOP_CHARS: Final = 700  # characters at the end of an unfinished sentence that are searched
_LOOP_STEP: Final = 120
_ROUNDS: Final = 2  # repeated sentences after which a model is stopped
_FEWEST_TERMS: Final = 3  # of a sentence that mostly consists of words of the instructions
_ECHO: Final = 2 / 3  # share of such words in a sentence that repeats the instructions
_LONGEST_LEAD: Final = 4  # terms of a sentence that only introduces what follows
_SHORTEST_ECHO: Final = 3  # words; a shorter sentence may stand in the instructions by chance
_SHOWN_SENTENCES: Final = 5
_LONGEST_SHOWN: Final = 120


@dataclass(frozen=True, slots=True)
class Written:
    """The checked text of a model.

    Attributes:
        text: The text for the reader; empty if no sentence stands in a source.
        sentences: Its sentences with the sources that contain them.
        dropped_numbers: Cited numbers that no source has, in ascending order.
        notices: What was changed.
        declined: True if the model wrote that it found no answer.
        is_empty: True if the model wrote nothing.
    """

    text: str
    sentences: tuple[AnswerSentence, ...]
    dropped_numbers: tuple[int, ...]
    notices: tuple[Notice, ...]
    declined: bool
    is_empty: bool


class AnswerWriter:
    """Turns the pieces that a model writes into the text to show and the complete answer.

    It does no input or output. Reading the sources takes some milliseconds.

    Args:
        grounded: The sources.
        question: The question of the user.
        voice: The language of notices and marks.
        marks: Whether a sentence that is in no source is marked; otherwise it is left out.
        instructions: The text of the prompt without its sources. The model must not repeat it.
        secret: The key in the marks of the prompt.

    Attributes:
        is_ended: True if the rest of the model's text is not needed.
        shown: The text that was returned so far.
    """

    def __init__(
        self,
        grounded: GroundedResponse,
        question: str,
        voice: Voice,
        *,
        marks: bool = False,
        instructions: str = "",
        secret: str = "",
    ) -> None:
        sources = grounded.sources
        self._voice, self._marks, self._secret = voice, marks, secret
        self._attributor = Attributor(sources, question)
        self._places = [
            (name, source.number)
            for source in sources
            for name in (source.citation.section, source.citation.title)
        ]
        self._headings = {_fold(source.citation.place) for source in sources}
        self._book = "\n".join(
            (*(one.text for one in sources), *(one.citation.url for one in sources))
        )
        self._told = _fold(f"{instructions}\n{question}")
        self._rules, self._asked = find_distinct_terms(instructions), find_distinct_terms(question)
        self._tags = TagFilter(self._book)
        self.shown = ""
        self.is_ended = False
        self._has_text = False
        self._restart()

    def _restart(self) -> None:
        self._units = UnitReader()
        self._text = ""
        self._gap = ""
        self._leads: list[tuple[str, str]] = []
        self._sentences: list[AnswerSentence] = []
        self._seen: set[str] = set()
        self._ungrounded: list[str] = []
        self._dropped: set[int] = set()
        self._added = self._corrected = self._repeated = 0
        self._declined = self._looped = self._in_list = self._is_held = self._has_opened = False
        self._has_echoed = False
        self._looked_at = 0

    def feed(self, piece: str) -> str:
        """Take the next piece of the model's text, and return the text to show, often empty."""
        restarts = self._tags.restarts
        self._has_text = self._has_text or bool(piece.strip())
        text = self._tags.feed(piece)
        if self._tags.restarts != restarts:
            self._restart()
        self._read(text, is_last=self._tags.is_ended)
        self._check_loop()
        if self._tags.is_ended:
            self.is_ended = True
        return "" if self._is_held else self._show()

    def finish(self, *, complete: bool) -> tuple[str, Written]:
        """Return the rest of the text to show, and everything that was written.

        Args:
            complete: False if the model's text was cut off.
        """
        restarts = self._tags.restarts
        text = "" if self._looped else self._tags.feed("", is_last=True)
        if self._tags.restarts != restarts:
            self._restart()
        pending = f"{self._units.pending}{text}".rstrip("\"')]*_ \n")
        if complete or pending.endswith(tuple(SENTENCE_MARKS)):
            self._read(text, is_last=True)
        notices = self._collect_notices(complete=complete or self._looped)
        grounded = any(entry.cited for entry in self._sentences)
        if not grounded:
            self._text = self.shown = ""
            self._sentences.clear()
        written = Written(
            self._text,
            tuple(self._sentences),
            tuple(sorted(self._dropped)),
            notices if grounded else (),
            self._declined,
            not self._has_text
            or not (self._seen or self._declined or self._ungrounded or self._has_echoed),
        )
        return (self._show() if grounded else ""), written

    def _show(self) -> str:
        if not self._text.startswith(self.shown):  # reasoning was shown before its end was marked
            return ""
        rest = self._text[len(self.shown) :]
        self.shown = self._text
        return rest

    def _read(self, text: str, *, is_last: bool) -> None:
        if self.is_ended:
            return
        for unit in self._units.feed(text, is_last=is_last):
            self._take(unit)
            if self.is_ended:
                return

    def _take(self, unit: WrittenUnit) -> None:  # noqa: C901, PLR0911  # one branch for each kind
        """Check a unit and add it to the answer, or leave it out."""
        if unit.gap.count("\n") > self._gap.count("\n") or not self._gap:
            self._gap = unit.gap
        text = self._trim(unit)
        if not text.strip("`~*_#<>=-[]() \t\n"):
            return
        is_line = "\n" in unit.gap or not self._has_opened
        if self._has_opened and is_line and _TURN.match(text) and not self._stands(text):
            self.is_ended = True
            return
        self._has_opened = True
        if self._is_listed(text) or is_definition(text):
            return
        if self._is_told(text) or (unit.is_block and not _fold(_FENCE.sub("", text))):
            self._has_echoed = True
            return
        if has_sentinel(text):
            self._declined = True
            text = remove_sentinel(remove_citations(text))
            if not text:
                return
        plain = _LIST_LABEL.sub("", text)
        if self._repeats(_fold(read_citations(plain, self._attributor.known, self._places).text)):
            return
        if not unit.is_block and may_decline(text) and not self._stands(text):
            self._declined = True
            return
        if not unit.is_block and self._is_echo(text):
            self._has_echoed = True
        else:
            self._attribute(text, is_block=unit.is_block)

    def _trim(self, unit: WrittenUnit) -> str:
        """Return a unit without marks, an endless repetition at its end, and "Answer:"."""
        if unit.is_block and unit.text[:1] in "`~":
            return unit.text
        text = self._clean(unit.text)
        loop = None
        if len(text) > _LOOP_CHARS and not unit.is_block:
            loop = _LOOP.search(text)
        if loop is not None:
            text = text[: loop.start()].rstrip()
            self._stop_loop()
        opening = None if self._sentences else _OPENING.match(text)
        return text[opening.end() :].lstrip() if opening else text

    def _attribute(self, text: str, *, is_block: bool) -> None:
        known = self._attributor.known
        text = close_fence(text) if is_block else text
        read = read_citations(text, known, self._places)
        if not read.text.strip("`~*_#<>=-[]().,;:!? \t\n"):
            return
        found = self._attributor.attribute(read.text, read.numbers)
        self._dropped.update(number for number in read.numbers if number not in known)
        is_title = read.text.startswith("#") or _BOLD.fullmatch(_LIST_LABEL.sub("", read.text))
        introduces = is_title or read.text.rstrip("*_ ").endswith((":", "\uff1a"))
        is_short = len(find_distinct_terms(read.text)) <= _LONGEST_LEAD
        is_lead = read.text.startswith("#") or bool(introduces and is_short)
        if found.numbers and not is_lead:
            same = tuple(sorted(read.numbers)) == tuple(sorted(found.numbers))
            kept = same and read.as_shown
            shown = text if kept else place_citations(read.text, found.numbers, is_block=is_block)
            self._added += not read.numbers
            self._corrected += bool(read.numbers) and not same
            self._add(shown, tuple(sorted(found.numbers)))
            return
        if found.is_neutral or (introduces and not found.missing):
            self._leads.append((self._gap, read.text))
            self._gap = ""
        if found.is_neutral or introduces or not found.is_claim:
            return
        while self._leads and self._leads[-1][1].startswith("#"):
            self._leads.pop()
        self._is_held = self._is_held or not self._sentences
        self._ungrounded.append(read.text)
        if self._marks:
            self._add(f"{read.text} ({self._voice.say('mark')})", ())

    def _add(self, shown: str, cited: tuple[int, ...]) -> None:
        lead = ""
        for gap, text in (*self._leads, (self._gap, shown)):
            between = _normalize_gap(gap) if self._text else ""
            self._text += between + text
            lead += (between if lead else "") + text
        self._sentences.append(AnswerSentence(lead, cited))
        self._leads.clear()
        self._gap = ""

    def _clean(self, text: str) -> str:
        """Return a unit without marks of the prompt, and without links that are not the book's."""
        text = _BOXED.sub(r"\g<inner>", _INVISIBLE.sub("", _MARK.sub("", text)))
        if self._secret:
            text = re.sub(rf"\S*{self._secret}\S*", "", text)
        if "](" in text:
            text = _LINK.sub(self._replace_link, text)
        if "://" in text or "www." in text:
            text = _ADDRESS.sub(self._replace_address, text)
        if "<" in text and "`" not in text:
            text = _HTML.sub("", text)
        return text.strip()

    def _replace_link(self, found: re.Match[str]) -> str:
        target, label = found["target"].split(" ")[0], found["label"]
        if remove_citations(f"x [{label}]").strip() == "x":  # the label is a number
            return f"[{label}]"
        if target and target in self._book and not found["image"]:
            return found.group()
        return "" if found["image"] else label

    def _replace_address(self, found: re.Match[str]) -> str:
        address = found.group().strip("<>").rstrip(".,;:!?'\"*_")
        return found.group() if address in self._book else found.group().strip("<>")[len(address) :]

    def _is_told(self, text: str) -> bool:
        """Return True for a sentence of the instructions or the question, or a source's heading."""
        told = _fold(_LIST_LABEL.sub("", text))
        if told in self._headings and " > " in text:
            return True
        is_long = len(told.split()) >= _SHORTEST_ECHO
        return is_long and f" {told} " in f" {self._told} " and not self._stands(text)

    def _is_echo(self, text: str) -> bool:
        """Return True if a sentence repeats the instructions in other words."""
        terms = find_distinct_terms(remove_citations(_LIST_LABEL.sub("", text)))
        if not terms or not terms.isdisjoint(self._asked):
            return False
        share = len(terms & self._rules) / len(terms)
        is_echo = share == 1 or (len(terms) >= _FEWEST_TERMS and share >= _ECHO)
        return is_echo and not self._stands(text)

    def _stands(self, text: str) -> bool:
        return self._attributor.contains(remove_citations(text))

    def _is_listed(self, text: str) -> bool:
        """Return True for the heading and the entries of a list of sources."""
        plain = remove_citations(text)
        first, _, rest = plain.partition(":")
        if _SOURCE_LIST.fullmatch(plain) or _SOURCE_LIST.fullmatch(first):
            self._in_list = True
            return True
        label = _LIST_LABEL.match(text)
        is_entry = bool(label and label.group().strip()) or text.lstrip().startswith(("[", "("))
        self._in_list = self._in_list and (is_entry or (not rest and len(plain.split()) < 4))
        return self._in_list

    def _repeats(self, folded: str) -> bool:
        """Return True for a sentence that was written before; stop the model after two of them."""
        if len(folded) < 12:
            return False
        if folded not in self._seen:
            self._seen.add(folded)
            return False
        self._repeated += 1
        if self._repeated >= _ROUNDS:
            self._stop_loop()
        return True

    def _check_loop(self) -> None:
        """Stop a model that repeats a part of a sentence without end."""
        pending = self._units.pending
        if len(pending) < self._looked_at:
            self._looked_at = 0
        if len(pending) < self._looked_at + _LOOP_STEP:
            return
        self._looked_at = len(pending)
        tail = pending[-_LOOP_CHARS:]
        if not pending.lstrip().startswith(("`", "~", "|")) and _LOOP.search(tail):
            self._stop_loop()

    def _stop_loop(self) -> None:
        self.is_ended = self._looped = True
        self._units.drop()

    def _collect_notices(self, *, complete: bool) -> tuple[Notice, ...]:
        voice = self._voice
        counts = {"citations_added": self._added, "citations_corrected": self._corrected}
        notices = [voice.note(code, count=count) for code, count in counts.items() if count]
        if self._ungrounded:
            code = "sentences_marked" if self._marks else "sentences_dropped"
            shown = [text[:_LONGEST_SHOWN] for text in self._ungrounded[:_SHOWN_SENTENCES]]
            notices.append(voice.note(code, count=len(self._ungrounded), sentences=shown))
        states = {
            "partly_declined": self._declined,
            "repeated": self._looped,
            "cut_off": not complete,
        }
        return (*notices, *(voice.note(code) for code, holds in states.items() if holds))


def _normalize_gap(gap: str) -> str:
    breaks = gap.count("\n")
    if not breaks:
        return " " if gap else ""
    indent = gap.rpartition("\n")[2]
    return "\n" * min(breaks, 2) + indent


def _fold(text: str) -> str:
    """Return the words of a text in lower case, without citations and punctuation."""
    return " ".join(word.lower() for word in extract_words(remove_citations(text)))
