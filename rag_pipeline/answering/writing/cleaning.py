"""Remove from a model's text what is not a part of the answer, and cut it into units.

The text arrives in pieces. A unit is a sentence, a heading, or a whole code block, table or
formula. It is passed on as soon as its end is known, so that a reader sees each sentence at once.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.tables import find_blocks, hide_literals
from rag_pipeline.answering.writing.citing import LEADING_CITATIONS
from rag_pipeline.answering.writing.numbers import KnownNumbers, unify_characters
from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.core.text.sentences import SENTENCE_MARKS, split_sentences
from rag_pipeline.core.text.terms import (
    STOP_WORDS,
    UNSPACED,
    extract_terms,
    extract_words,
    find_distinct_terms,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from rag_pipeline.answering.models import Source


_NO_LETTER: Final = re.compile(r"[\W_]+")
_SHORTEST_RUN: Final = 4  # letters; a shorter name occurs in a text without spaces by chance
_STEM: Final = 5  # letters by which word forms are compared; stemming misses some forms
_SAME_WORDS: Final = 0.8  # share of the words of a sentence that its opposite has too
_NEGATIONS: Final = frozenset({"not", "no", "never", "cannot", "nicht", "kein", "nie", "jamais"})
_NEGATED: Final = re.compile(
    r"\b(?:not|no|never|cannot|nor|neither|without|nicht|kein\w*|nie|jamais|nunca)\b|n['\u2019]t\b",
    re.IGNORECASE,
)
_PLACE: Final = 3  # neighbouring parts of a text that count as one place
_PLACE_WORDS: Final = 2  # words of a place for each word that is sought, if it has more parts
_LONGEST_LEAD: Final = 300  # characters of a text that introduces a list
_FENCE_LINE: Final = re.compile(r"^[ \t]*(?:`{3}|~{3})", re.MULTILINE)
_ENTRY: Final = re.compile(r"[ \t>]*(?:[-*+]|\d{1,3}[.)])[ \t]")
_LONGEST_ENDING: Final = 3  # letters by which two forms of a name may differ: Bayes, Bayesian


class KnownText:
    """The text of a source with its title and section, prepared for look-ups.

    Args:
        source: The source.

    Attributes:
        text: Title, section, address and text of the source, with unified characters.
        words: All words in lower case.
        lower_words: The words that are written in lower case.
        numbers: The numbers that a sentence may take from the text. These are the numbers in the
            text and the number of entries of each of its lists.
    """

    def __init__(self, source: Source) -> None:
        citation = source.citation
        place = dict.fromkeys((citation.title, citation.section, citation.url))
        self.text = text = unify_characters("\n".join((*place, source.text)))
        written = extract_words(text)
        lower = [word.casefold() for word in written]
        spaced = extract_words(UNSPACED.sub(" ", text))
        self.words = frozenset([*lower, *(word.casefold() for word in spaced)])
        self.lower_words = frozenset(word for word in written if word.islower())
        self.numbers = KnownNumbers(text, _count_entries(source))
        self._sequence = f" {' '.join(written)} "
        self._without_blanks = "".join(text.split())
        self._joined = _join(text)
        self._terms = find_distinct_terms(text)
        self._starts = frozenset(term[:_STEM] for term in self._terms if len(term) >= _STEM)
        self._initials = (  # first letters of all words, and of all words but stop words
            "".join(word[0] for word in lower),
            "".join(word[0] for word in lower if word not in STOP_WORDS),
        )
        sentences = [text[start:end] for start, end in split_sentences(text)]
        self._sentences = [  # the terms of each sentence, and whether it has a negation
            (find_distinct_terms(part) - _NEGATIONS, _is_negated(part)) for part in sentences
        ]
        self._place_keys = _list_keys(f"{citation.title}\n{citation.section}")
        parts = _cut_parts(unify_characters(source.text))
        self._ends = list(accumulate(len(find_distinct_terms(part)) for part in parts))
        self._parts_by_key: dict[str, list[int]] = {}
        for at, part in enumerate(parts):
            for key in _list_keys(part):
                self._parts_by_key.setdefault(key, []).append(at)

    def quotes(self, text: str) -> bool:
        """Return True if the words of `text` stand in this text one after the other."""
        return f" {' '.join(extract_words(text))} " in self._sequence

    def has_code(self, code: str) -> bool:
        """Return True if this text contains the code, whatever the white space."""
        return "".join(code.split()) in self._without_blanks

    def has_identifier(self, word: str) -> bool:
        """Return True if this text contains an identifier, possibly written as several words."""
        joined = _join(word)
        long_enough = len(joined) >= _SHORTEST_RUN
        return word.casefold() in self.words or (long_enough and joined in self._joined)

    def has_name(self, name: str) -> bool:
        """Return True if this text contains a name, another form of it, or what it abbreviates."""
        lower = name.casefold().removesuffix("s")
        if self.has_identifier(name) or lower in self.words:
            return True
        if not self._terms.isdisjoint(extract_terms(name)[:1]):
            return True
        if sum(char.isupper() for char in name) > 1 and any(lower in run for run in self._initials):
            return True
        start = lower[: max(_SHORTEST_RUN, len(lower) - _LONGEST_ENDING)]
        return lower.isalpha() and any(term.startswith(start) for term in self._terms)

    def has_words(self, words: Sequence[str]) -> bool:
        """Return True if any of the words is in this text, possibly in another form."""
        terms = {term for word in words for term in extract_terms(word)}
        starts = {term[:_STEM] for term in terms if len(term) >= _STEM}
        return not terms.isdisjoint(self._terms) or not starts.isdisjoint(self._starts)

    def contradicts(self, text: str) -> bool:
        """Return True if the sentence that is nearest to `text` says the opposite.

        Two sentences with almost the same words are opposites if only one of them has a negation.
        """
        terms = find_distinct_terms(text) - _NEGATIONS
        if not terms or self.quotes(text):
            return False
        nearest, is_negated = max(
            self._sentences,
            key=lambda one: (len(terms & one[0]), -len(one[0])),
            default=(frozenset[str](), False),
        )
        is_same = len(terms & nearest) >= _SAME_WORDS * len(terms)
        return is_same and is_negated != _is_negated(text)

    def gather(self, words: Collection[str]) -> frozenset[str]:
        """Return the words that this text has in one place, where it has most of them.

        A place is three neighbouring parts, or as many as have twice the given number of words.
        The words of title and section are in every place.
        """
        keys = {word: _list_keys(word) for word in words}
        everywhere = {word for word in words if not keys[word].isdisjoint(self._place_keys)}
        parts: list[list[str]] = [[] for _ in self._ends]
        for word in keys.keys() - everywhere:
            for at in {at for key in keys[word] for at in self._parts_by_key.get(key, ())}:
                parts[at].append(word)
        best = frozenset[str]()
        seen, end, before = Counter[str](), 0, 0
        for start, size in enumerate(self._ends):
            wanted = before + _PLACE_WORDS * len(words)
            while end < len(parts) and (end < start + _PLACE or self._ends[end - 1] < wanted):
                seen.update(parts[end])
                end += 1
            if len(+seen) > len(best):
                best = frozenset(+seen)
            seen.subtract(parts[start])
            before = size
        return best | everywhere


def _count_entries(source: Source) -> frozenset[int]:
    """Return the number of entries of each list of a source."""
    blocks = source.blocks or find_blocks(source.text)
    lists = [block for block in blocks if block.kind is TextBlockKind.LIST]
    owners = Counter(
        max((kept.start for kept in lists if kept.start <= entry.start < kept.end), default=-1)
        for entry in blocks
        if entry.kind is TextBlockKind.LIST_ITEM
    )
    return frozenset(owners.values())


def _list_keys(text: str) -> frozenset[str]:
    """Return the terms of a text, and the beginnings by which word forms are compared."""
    terms = find_distinct_terms(text)
    return terms.union(f"{term[:_STEM]}-" for term in terms if len(term) >= _STEM)


def _cut_parts(text: str) -> list[str]:
    """Return the sentences of a text, each code block as one part.

    A list item begins with the text before its list, and a table row with the header of its table.
    """
    parts: list[list[str]] = []
    lead, is_code, in_table = "", False, False
    for start, end in split_sentences(text):
        part = text[start:end]
        fences = len(_FENCE_LINE.findall(part))
        if is_code:
            parts[-1].append(part)
        else:
            is_row = part.startswith("|")
            is_entry = (is_row and in_table) or _ENTRY.match(part) is not None
            parts.append([lead, part] if is_entry and len(lead) <= _LONGEST_LEAD else [part])
            lead, in_table = lead if is_entry else part, is_row
        is_code ^= fences % 2 == 1
    return ["\n".join(part) for part in parts]


def _is_negated(text: str) -> bool:
    return _NEGATED.search(text) is not None


def _join(text: str) -> str:
    return _NO_LETTER.sub("", text).casefold()


_THOUGHT: Final = (
    r"(?:seed:|ant)?(?:think|thinking|thoughts?|reasoning|reflection|analysis|scratchpad)"
)
_OPEN_THOUGHT: Final = (
    rf"<{_THOUGHT}(?:\s[^<>\n]{{0,60}})?>|<unused94>(?:thought\b)?|\[THINK\]|\u25c1think\u25b7|<\|begin_of_thought\|>"
    r"|<\|channel\|>\s*(?:analysis|commentary)[^<\n]*<\|message\|>"
)
_CLOSE_THOUGHT: Final = (
    rf"</{_THOUGHT}>|<unused95>|\[/THINK\]|\u25c1/think\u25b7|<\|end_of_thought\|>"
    r"|(?:<\|end\|>\s*)?(?:<\|start\|>\s*assistant\s*)?<\|channel\|>\s*final[^<\n]*<\|message\|>"
)
_END: Final = (
    r"<\|(?:im_end|eot_id|eom_id|end|endoftext|end_of_text|end_of_turn|return|call|eos)\|>"
    r"|<\uff5cend\u2581of\u2581sentence\uff5c>|</s>|<(?:end_of_turn|eos)>"
    r"|<\|(?:im_start|start|start_header_id)\|>\s*(?:user|system)"
    r"|<\|(?:user|system)\|>|<start_of_turn>\s*user|<\uff5cUser\uff5c>|\[INST\]"
)
_TEMPLATE: Final = (
    r"<\|(?:im_start|start|start_header_id)\|>\s*(?:assistant|model)?(?:<\|end_header_id\|>)?\s*"
    r"|<\|[A-Za-z0-9_\u2581]{1,40}\|>|<\uff5c[^\uff5c<>]{1,40}\uff5c>|<start_of_turn>\s*(?:model)?"
    r"|\[/?(?:INST|SYS)\]|<</?SYS>>|</?(?:s|bos|pad|unk)>"
    r"|</?(?:answer|response|output|final|final_answer|result)>"
)
_TAG: Final = re.compile(
    rf"(?P<open>{_OPEN_THOUGHT})|(?P<close>{_CLOSE_THOUGHT})|(?P<end>{_END})|(?P<token>{_TEMPLATE})",
    re.IGNORECASE,
)
"""Marks of chat templates and of hidden reasoning, as many models write them."""

_TAG_STARTS: Final = "<[\u25c1"
_TAG_ENDS: Final = ">]\u25b7\n"
_LONGEST_TAG: Final = 60

_FENCE: Final = re.compile(r"(?P<mark>`{3,}|~{3,})(?P<info>[^\n`]*)\n")
_WRAPPERS: Final = frozenset({"markdown", "md", "text", "txt", "plaintext"})
_BLOCK: Final = re.compile(r"\n[ \t]*(?=\n|[-*+] |\d{1,3}[.)] |#{1,6} |`{3}|~{3}|\||\$\$)")
_HAS_END: Final = re.compile(rf"[{SENTENCE_MARKS}\n]")
_ROWS_END: Final = re.compile(r"\n(?=[^|])")
_LONGEST_UNIT: Final = 2_000  # characters; a longer text without an end is cut


class TagFilter:
    """A filter that removes hidden reasoning and the marks of chat templates from a text.

    Args:
        known: Text of the sources. Marks that stand in it belong to the book.

    Attributes:
        is_ended: True after a mark that ends the model's turn. The rest is not the answer.
        restarts: Number of ends of reasoning whose beginning was not marked. All text before the
            last of them is reasoning.
        has_thoughts: True if reasoning was removed.
    """

    def __init__(self, known: str) -> None:
        self.is_ended = self.has_thoughts = False
        self.restarts = 0
        self._known = known.casefold()
        self._pending = ""
        self._is_thinking = self._has_text = False

    def feed(self, piece: str, *, is_last: bool = False) -> str:
        """Return the text that can be passed on after the next piece."""
        if self.is_ended:
            return ""
        self._pending += piece
        shown = ""
        while match := next(self._find_tags(), None):
            before = self._pending[: match.start()]
            self._pending = self._pending[match.end() :]
            if match["close"] is not None:
                if not self._is_thinking:
                    shown, self.restarts, self._has_text = "", self.restarts + 1, False
                self.has_thoughts, self._is_thinking = True, False
                continue
            if self._is_thinking:
                continue
            shown += before
            self._has_text = self._has_text or bool(shown.strip())
            self._is_thinking = match["open"] is not None
            if match["end"] is not None and self._has_text:
                self.is_ended, self._pending = True, ""
        kept = 0 if is_last else self._count_uncertain()
        at = len(self._pending) - kept
        rest, self._pending = self._pending[:at], self._pending[at:]
        if self._is_thinking:
            self.has_thoughts = True
            return shown
        self._has_text = self._has_text or bool(rest.strip())
        return shown + rest

    def _find_tags(self) -> Iterator[re.Match[str]]:
        """Yield the marks that do not belong to the book."""
        for match in _TAG.finditer(self._pending):
            if match.group().strip().casefold() not in self._known:
                yield match

    def _count_uncertain(self) -> int:
        """Return how many characters at the end may be the beginning of a mark."""
        tail = self._pending[-_LONGEST_TAG:]
        at = max(tail.rfind(char) for char in _TAG_STARTS)
        if at > 0 and tail[at - 1] in _TAG_STARTS:
            at -= 1
        is_open = at >= 0 and not any(char in tail[at:] for char in _TAG_ENDS)
        # A role or a second mark may follow a complete one.
        is_long = at >= 0 and tail[at : at + 2] in {"<|", "<s"} and "\n" not in tail[at:]
        return len(tail) - at if is_open or (is_long and tail.endswith((">", "|"))) else 0


@dataclass(frozen=True, slots=True)
class WrittenUnit:
    """A sentence or block of a text that a model writes.

    Attributes:
        gap: White space before the unit.
        text: The unit as written.
        is_block: True for a code block, a table or a formula.
    """

    gap: str
    text: str
    is_block: bool = False


class UnitReader:
    """Cuts a text that arrives in pieces into sentences and blocks."""

    def __init__(self) -> None:
        self._text = ""
        self._is_line_start = True
        self._is_first = True
        self._awaited: re.Pattern[str] | None = None  # the end of the block that has begun
        self._seen = 0  # characters in which that end was sought

    @property
    def pending(self) -> str:
        """The text whose end is not known yet."""
        return self._text

    def feed(self, piece: str, *, is_last: bool = False) -> Iterator[WrittenUnit]:
        """Yield the units that the next piece completes.

        Args:
            piece: The next piece.
            is_last: True if no text follows.
        """
        self._text += piece
        may_end = _HAS_END.search(piece) or piece[:1].isspace() or piece[-1:].isspace()
        if not is_last and not may_end and len(self._text) < _LONGEST_UNIT:
            return
        if self._awaited is not None and not is_last:
            found = self._awaited.search(self._text, max(0, self._seen - _LONGEST_TAG))
            self._seen = len(self._text)
            if found is None:
                return
        self._awaited = None
        while self._text.strip():
            if self._is_first and self._text.lstrip().startswith('{"') and not is_last:
                return  # the answer as JSON is read as a whole
            if self._is_first and is_last:
                self._text = _unwrap_json(self._text)
            unit = self._cut(is_last=is_last)
            if unit is None:
                return
            self._is_first = False
            yield unit
        if is_last:
            self._text = ""

    def drop(self) -> None:
        """Forget the text whose end is not known yet."""
        self._text, self._awaited = "", None

    def _cut(self, *, is_last: bool) -> WrittenUnit | None:
        body = self._text.lstrip()
        gap = self._text[: len(self._text) - len(body)]
        is_line_start = self._is_line_start or "\n" in gap
        length = _find_block(body, is_last=is_last) if is_line_start else 0
        if length is None:
            fence = _FENCE.match(body)
            if fence:
                mark = fence["mark"]
                self._awaited = re.compile(rf"{mark[0]}{{{len(mark)},}}[ \t]*\n")
            elif body.startswith("|"):
                self._awaited = _ROWS_END
            self._seen = len(self._text)
            return None
        if length:
            text = body[:length]
            inner = _unwrap_fence(text, is_first=self._is_first)
            if inner is not None:
                self._text = f"{inner}\n{body[length:]}"
                return self._cut(is_last=is_last) if self._text.strip() else None
            is_block = not text.startswith("#")
        else:
            end = _find_sentence(body, is_last=is_last)
            if not end:
                return None
            text, is_block = body[:end], False
        shown = text.rstrip()
        self._text = body[len(shown) :]
        self._is_line_start = False  # the line break is in the gap of the next unit
        return WrittenUnit(gap, shown, is_block)


def _find_block(body: str, *, is_last: bool) -> int | None:  # noqa: PLR0911  # one for each kind
    """Return the length of the block that a text begins with; 0 if it begins with a sentence.

    The result is None if the end of the block has not arrived.
    """
    if not is_last and (body in {"`", "``", "~", "~~", "$"} or re.match(r"[`~]{3,}[^\n]*\Z", body)):
        return None
    fence = _FENCE.match(body)
    if fence:
        mark = fence["mark"]
        closed = re.compile(rf"^[ \t]*{mark[0]}{{{len(mark)},}}[ \t]*(?:\n|\Z)", re.MULTILINE)
        found = closed.search(body, fence.end())
        ends = found is not None and (is_last or found.group().endswith("\n"))
        return found.end() if found and ends else (len(body) if is_last else None)
    if body.startswith("$$"):
        at = body.find("$$", 2)
        line = body.find("\n", at)
        if at < 0:
            return len(body) if is_last else None
        return line + 1 if line > 0 else (len(body) if is_last else None)
    if body.startswith("|"):
        rows = re.match(r"(?:\|[^\n]*\n)+(?=[^|])|(?:\|[^\n]*(?:\n|\Z))+\Z", body)
        ended = rows is not None and (is_last or rows.end() < len(body))
        return rows.end() if rows and ended else (0 if rows is None and is_last else None)
    if body.startswith("#"):
        line = body.find("\n")
        return line + 1 if line >= 0 else (len(body) if is_last else None)
    return 0


def _find_sentence(body: str, *, is_last: bool) -> int:
    """Return the length of the sentence that a text begins with; 0 if its end has not arrived."""
    ended = _BLOCK.search(body)
    block = body[: ended.start()] if ended else body
    is_whole = is_last or ended is not None
    if not is_whole and (block.count("`") % 2 or block.count("$$") % 2):
        return _cut_long(body)
    prose = hide_literals(block)
    spans = split_sentences(prose)
    if not spans:
        return 0
    end = spans[0][1]
    following = block[end:]
    if len(spans) == 1:
        if not is_whole and not following[:1].isspace():
            return _cut_long(body)
        if not is_whole and len(split_sentences(f"{prose.rstrip()} Xx")) == 1:
            return _cut_long(body)
    cited = LEADING_CITATIONS.match(block, end)
    return cited.end() if cited else end


def _cut_long(body: str) -> int:
    """Return the length of the part to pass on of a text that has no end for too long."""
    if len(body) < _LONGEST_UNIT:
        return 0
    return body.rfind(" ", 0, _LONGEST_UNIT) + 1 or _LONGEST_UNIT


def close_fence(block: str) -> str:
    """Return a block of code with its closing fence, which a text that was cut off lacks."""
    fence = _FENCE.match(block)
    if fence is None or block[fence.end() :].rstrip().rpartition("\n")[2].strip() == fence["mark"]:
        return block
    return f"{block.rstrip()}\n{fence['mark']}"


def _unwrap_fence(block: str, *, is_first: bool) -> str | None:
    """Return the text inside a fence that a model put around its whole answer; otherwise None."""
    fence = _FENCE.match(block)
    if fence is None:
        return None
    lines = block[fence.end() :].rstrip().split("\n")
    if lines and lines[-1].strip().startswith(fence["mark"]):
        lines.pop()
    inner = "\n".join(lines)
    if not inner.strip():
        return ""
    info = fence["info"].strip().lower()
    is_prose = bool(re.search(r"\[\d+\]|[^\W\d_]{2,}[.!?]\s*$", inner))
    return inner if is_first and (info in _WRAPPERS or (not info and is_prose)) else None


def _unwrap_json(text: str) -> str:
    """Return the text of an answer that a model wrote as a JSON object, such as {"answer": ...}."""
    if not text.lstrip().startswith("{"):
        return text
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return text
    texts = [value for value in content.values() if isinstance(value, str)]
    return max(texts, key=len, default=text) if isinstance(content, dict) else text
