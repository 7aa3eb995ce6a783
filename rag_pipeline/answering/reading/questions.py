"""Read from the words of a question which kind of answer it asks for, and its subject.

The rules are for English. A single word of any language with spaces between words asks for its
meaning. Any other question is of the kind `OTHER`, which no rule treats apart.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from rag_pipeline.core.text.form_words import CODE_LANGUAGE, compile_all
from rag_pipeline.core.text.terms import UNSPACED, count_words, extract_terms

_MAX_CHARS: Final = 500  # a longer text is no short question about one thing
_MAX_SUBJECT_WORDS: Final = 7


class QuestionKind(StrEnum):
    """The kind of answer that a question asks for.

    `DEFINITION`: the meaning of a term. `CODE`: code or a command. `FORMULA`: a formula. `HOW_TO`:
    steps to follow.
    `COMPARISON`: what two or more things have in common or not. `LIST`: all things of a kind.
    `PROBLEM`: why something does not work, or that it does not. `OTHER`: anything else.
    """

    DEFINITION = "definition"
    CODE = "code"
    FORMULA = "formula"
    HOW_TO = "how_to"
    COMPARISON = "comparison"
    LIST = "list"
    PROBLEM = "problem"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class ReadQuestion:
    """The kind of a question and its subject.

    Attributes:
        kind: The kind of answer that the question asks for.
        subject: The term whose meaning is asked, or the things that are listed, as written, without
            an article; empty for other kinds.
    """

    kind: QuestionKind
    subject: str


_OPENING: Final = re.compile(
    r"(?:(?:hello|hi|hey|good (?:morning|afternoon|evening)|thanks|thank you|ok|okay|so|please|and)"
    r"\b[\s,.!:]*)+",
    re.IGNORECASE,
)
_REQUEST: Final = re.compile(
    r"(?:(?:can|could|would|will) you (?:please )?|please )?"
    r"(?:tell me|(?:do you|i|i'd like to|i want to|i would like to) know"
    r"|i (?:don't|do not) (?:understand|know)|give me|explain(?: to me)?)(?: please)? "
    r"(?=what\b|an? (?:short )?(?:definition|explanation)\b|the (?:meaning|definition)\b)",
    re.IGNORECASE,
)
_PLEASE: Final = re.compile(
    r"(?:can|could|would|will) you (?:please )?|please |i'd like |i would like ", re.IGNORECASE
)
_COMPARES: Final = re.compile(
    r"\bdifferences?\s+(?:between|of|in|to|from)\b|\bdiffers?\s+from\b|\bdifferent\s+from\b"
    r"|\bvs\b(?!\s+code\b)|\bversus\b|\bcompar(?:e|ed|ing|ison)\b|\bbetter\s+than\b|\bpros\s+and\s+cons\b"
    r"|\b(?:choose|decide)\s+between\b|\binstead\s+of\b|\badvantages?\s+of\b.+\bover\b"
    r"|\b(?:should|which|rather|better|prefer)\b[^.?!]*\bor\b"
    r"|\bor\b[^.?!]*[,:]\s*(?:which|what)\b|\b(?:and|or|the)\s.*?\bdifferences?\s*[?.!]*$",
    re.IGNORECASE,
)
_WANTS_CODE: Final = re.compile(
    rf"^(?!what\b(?!.*\blook\s+like\b)).*\b(?:in|with|using)\s+(?:code\b|{CODE_LANGUAGE}(?!\w))"
    rf"|^(?!what\b|why\b)\S+\s.*\s{CODE_LANGUAGE}\s*[?.]*$"
    rf"|(?<!what is )(?<!what's )\b{CODE_LANGUAGE}\s+(?:code|script|function|class|example|snippet"
    r"|program|for|that|to)\b"
    r"|(?<!error )(?<!exit )(?<!status )\bcode\s+(?:for|to|that|example|sample|snippet)"
    r"|\b(?:example|sample|source)\s+code\b|(?<!\bvs )\bcode\s*[?.]*$"
    r"|\bshow\b[^.?!]*\b(?:code|example|that)\b"
    rf"|\b{CODE_LANGUAGE}\b[^.?!]*\bexample\b"
    r"|\b(?:minimal|working|full|complete)\s+example\b|\bsnippets?\b|\bsyntax\s+(?:of|for)\b"
    r"|\b(?:which|what)\s+(?:command|script|code|line)\b(?!s?\s+(?:is|does|mean))"
    r"|\bcommand\s+(?:for|to|that)\b|\bscript\s+(?:for|to|that)\b|\bimplement\b"
    r"|\b(?:write|give)\s+(?:me\s+)?an?\b[^.?!]*\b(?:script|program|node|function|class|query|test"
    r"|file)\b|\b(?:tiny|small|short|simple|little|example)\s+(?:program|script)\b",
    re.IGNORECASE,
)
_WANTS_FORMULA: Final = re.compile(r"\b(?:formulas?|equations?)\s+(?:for|of|to)\b", re.IGNORECASE)
_WANTS_STEPS: Final = re.compile(
    r"\bhow\s+(?:(?:do|can|could|should|must|may|would|shall)\s+(?:i|we|you|one)\b|to\b)"
    r"|\bsteps\s+(?:to|for|of|in)\b|\bwalk\s+me\s+through\b|\bbest\s+way\s+to\b"
    r"|\bwhat\s+(?:should|must|can|do)\s+(?:i|we)\s+(?:(?:have|need)\s+to\s+)?do\b",
    re.IGNORECASE,
)
_VERB: Final = (
    r"(?:add|build|calibrate|compute|configure|connect|convert|create|delete|deploy|disable|enable|find"
    r"|fix|generate|get|implement|install|integrate|make|move|put|read|remove|rename|run|save|send"
    r"|set\s?up|uninstall|update|use|write)"
)
_NO_VERB: Final = (
    r"(?:a|about|after|all|an|and|are|at|because|before|by|can|could|define|did|do|does|during|even"
    r"|explain|for|from|had|has|have|how|if|in|is|my|not|of|on|or|should|since|the|to|was|were|what"
    r"|when|where|which|while|who|whose|why|will|with|would)"
)
_ORDERS: Final = re.compile(
    rf"{_VERB}\s+\w|(?!{_NO_VERB}\b)\w+\s+(?:an?|my|the)\s+\w", re.IGNORECASE
)
"""The beginning of a text that names a task, such as "record a bag" or "install on Windows"."""

TROUBLE: Final = (
    r"(?:\b(?:not|never|nothing|no|cannot|unable|fail(?:s|ed|ing)?|failure|empty|missing|stuck"
    r"|slow|crash(?:es|ed|ing)?|hangs?|fr(?:eez|oze)\w*|broken|wrong|lost)\b|n't\b)"
)
"""Pattern of the words with which a state is described that nobody wants."""

_TELLS: Final = (
    r"(?!(?:what|which|how|when|where|who|whose|why|if|is|are|does|do|can|could|should|would|will"
    r"|explain|define|describe|list|name|i\s+(?:don't|do\s+not)\s+(?:understand|know))\b)"
)
_REPORTS: Final = re.compile(
    rf"why\b(?!\s+(?:can|may|must|should))(?=.*?\b(?:my|our|i|we)\b).*?{TROUBLE}"
    r"|why\s+(?:do|does|did|is|are|has|have|will)\b(?:\s+\S+){1,5}?\s+not\s+\w+\W*$"
    r"|why\s+(?:(?:do|does|did|wo)n't\s|(?:is|are)n't\s+(?:\S+\s+){1,4}?\w+ing\b)"
    rf"|{_TELLS}(?:\S+\s+){{1,6}}?"
    r"(?:(?:do|does|did|is|are|can|will|has|have|wo|ca)(?:n't|\s+not)|cannot|won?t|doesnt|isnt"
    r"|(?:says\s+|is\s+)?unable|not\s+\w+ing\b|\w+s\s+(?:nothing|no)\b"
    r"|fails?\b|failed\W*$|crashes\b|freezes\b|hangs\b|(?:stopped|keeps?)\s+\w+ing\b"
    r"|(?:an?|the)\s+error\b|(?:denied|refused|rejected|aborted)\b"
    r"|(?:is|are|gets?)\s+(?:\w+\s+)?(?:empty|missing|stuck|broken|wrong|lost)\b)"
    rf"|{_TELLS}(?!{_VERB}\b)(?:\S+\s+){{1,4}}?"
    r"(?:(?:is|are|gets?|looks?)\s+(?!(?:an?|the)\b)\w+(?:\s+\w+){0,3}\W*$"
    r"|\w+[^s\W]s\s+(?:(?:(?:\w+\s+)?(?:when|while|after|if|without)|the|my|its|too|very|slower|faster)\b"
    r"|(?:over|off|out|away|apart|down|up|back|to|into|through)(?:\s+(?:an?|the|my|its)\b|\W*$)))"
    r"|(?:error\s+(?:code|message|no)|error:|cannot|can't|unable|no\s+\w+\s+(?:named|found))(?!\w)",
    re.IGNORECASE,
)
"""The beginning of a report that something does not work, such as "my widget shows nothing".

A statement is a report too, such as "the widget jumps to the left", because nobody tells a book
how well something works.
"""

NUMBER_WORD: Final = "two|three|four|five|six|seven|eight|nine|ten|\\d+"
"""Pattern of a number of things."""

_THINGS: Final = (
    r"(?:all\s+)?(?P<subject>[^\W_][\w-]*(?:\s+(?!(?:an?|and|are|at|by|can|do|does|for|from|has|have|in"
    r"|is|of|on|or|that|the|there|to|which|with)\b)[^\W_][\w-]*)?)"
)
_WANTS_LIST: Final = compile_all(
    r"(?:list|name|enumerate)\s+(?:me\s+)?(?:all|the|some|every)\s+(?:(?:of\s+)?the\s+)?"
    rf"(?:{NUMBER_WORD}\s+)?(?:(?:types|kinds|sorts|examples)\s+of\s+)?{_THINGS}",
    r"(?:(?:what|which)\s+|(?:what\s+are\s+)?(?:the\s+)?(?:\w+\s+)?)"
    rf"(?:types|kinds|sorts|list|examples)\s+of\s+(?:the\s+)?{_THINGS}",
    r"what\s+are\s+(?:all\s+)?the\s+"
    rf"(?:{NUMBER_WORD}|all|main|different|various|possible|available|supported|common)\s+"
    rf"{_THINGS}",
    r"(?:what|which)\s+(?P<subject>(?:[\w-]+\s+)?[\w-]*[^\Ws_]s)\s+"
    r"(?:(?:are|is)\s+(?:there|available|supported|possible|included|used)\b|exist\b"
    r"|(?:do|does|can)\s+.+\s(?:have|support|use|offer|provide|include|contain|need)\W*$)",
)
"""Beginnings of questions for all things of a kind, such as "list the sensors of a robot"."""

NUMBERED_PART: Final = (
    r"(?:module|chapter|part|unit|lesson|lecture|section|kapitel)\s+\d+(?:\.\d+)*"
)
"""Pattern of the name of a part of a book with its number, such as `chapter 3.2`."""

_MEANING: Final = compile_all(
    r"what\s+do(?:es)?\s+(?P<subject>.+?)\s+(?:mean|stand for|refer to)"
    r"(?:\s+(?:in|for|here)\b.*)?",
    r"what\s+(?:do\s+you\s+mean\s+by|is\s+meant\s+by)\s+(?P<subject>.+)",
    r"(?:what(?:'s|\s+is|\s+are)\s+)?(?:an?\s+|the\s+)?(?:short\s+)?"
    r"(?:definition|meaning)\s+of\s+(?P<subject>.+)",
    r"(?!(?:what|which|how|where|when|why)\b)(?P<subject>.+?)\s+"
    r"(?:definition|meaning|(?:simply\s+)?explained(?:\s+simply)?)",
    r"(?:define|explain)\s+(?:the\s+)?(?:(?:terms?|words?|concepts?|ideas?|notion)\s+(?:of\s+)?)?"
    r"(?P<subject>.+)",
    r"what(?:(?:'s|\s+is)\s+(?:covered|explained|taught)|\s+(?:do|will|can)\s+(?:i|we|you)\s+learn)"
    r"\s+in\s+(?P<subject>.+)",
    r"what(?:'s|\s+is|\s+does)\s+(?P<subject>.+?)\s+(?:all\s+)?(?:cover|explain|teach|about)",
    r"(?:(?:give\s+me\s+)?(?:an?\s+|the\s+)?(?:short\s+)?(?:summary|overview|outline)\s+of"
    r"|summari[sz]e)\s+(?P<subject>.+)",
    r"what(?:'s|\s+(?:exactly\s+)?(?:is|are))\s+(?P<subject>.+)",
    r"what\s+(?P<subject>.+?)\s+(?:is|are|means?)",
    rf"(?!.*{UNSPACED.pattern})(?P<subject>[^\W_][\w+#.-]+|{NUMBERED_PART})",
)
"""Phrasings that ask for the meaning of a term; the first that fits the whole question counts."""

_AROUND: Final = re.compile(
    r"^(?:(?:an?|the)\s+)+"
    r"|,?\s+(?:exactly|really|actually|simply|please|again|in\s+(?!the\b)\S+(?: \S+){0,2})$",
    re.IGNORECASE,
)
_ABOUT_SOMETHING_ELSE: Final = re.compile(
    r"\b(?:i|my|me|we|our|you|your|it|its|this|that|these|those|there|here|he|she|they|do|does|did"
    r"|is|are|was|were|has|have|can|could|should|will|would|wrong|how|why|when|where|which|who|if"
    r"|what)\b"
    r"|^(?:best|better|most|purpose|point|goal|aim|role|function|benefits?|advantages?|reasons?|causes?"
    r"|effects?|use|value|size|number|amount|cost|price|name|relation|relationship|connection"
    r"|(?:max|min)(?:imum)?)\b|\bof\s+(?:an?|the)\b"
    r"|\b(?:for|of|with|to|from|on|at|by|about|like|into|used|happening|called)$",
    re.IGNORECASE,
)


_ORDER: Final = re.compile(
    r"(?:(?:please|can you|could you)\s+)*(?:list|name|enumerate)\s+(?:me\s+)?"
    r"(?:all\s+(?:the\s+)?|the\s+|some\s+(?:of\s+the\s+)?|every\s+)(?=\w)",
    re.IGNORECASE,
)


def drop_order(question: str) -> str:
    """Return a question without words such as "list the" before the things that it asks for."""
    order = _ORDER.match(question)
    return question[order.end() :] if order else question


_LONG_WORDS: Final = 40
_LEAST_TERMS: Final = 3
MAX_CLAUSES: Final = 4
_ASKING: Final = re.compile(
    r"\b(?:how|what|when|where|whether|which|who|why)\b[^.?!,;:\n]*+", re.IGNORECASE
)


def find_asking_clauses(question: str) -> tuple[str, ...]:
    """Return the clauses of a long text that may be its question, the last ones if it has many.

    A text of more than 40 words tells a story around its question, and most of its words are of the
    story. A shorter text has no clauses.
    """
    if count_words(question) <= _LONG_WORDS:
        return ()
    clauses = (" ".join(match.group().split()) for match in _ASKING.finditer(question))
    asking = [one for one in clauses if len(set(extract_terms(one))) >= _LEAST_TERMS]
    return tuple(asking[-MAX_CLAUSES:])


def read_question(question: str) -> ReadQuestion:
    """Return the kind of answer that a question asks for, and the term whose meaning it asks.

    A greeting or a polite phrase at the beginning does not matter. A single word asks for its
    meaning. A question that fits several kinds counts as a comparison first, then as a report of a
    problem that does not ask for steps, then as asking for code, for a formula, for steps, for a
    list, and for a meaning. A text that only names a task, such as "record a bag", asks for steps.
    A question of more than 500 characters is `OTHER`.
    """
    text = " ".join(question.split()).replace("\u2019", "'")
    if len(text) > _MAX_CHARS:
        return ReadQuestion(QuestionKind.OTHER, "")
    opening = _OPENING.match(text)
    asked = text[opening.end() :] if opening else text
    request = _REQUEST.match(asked) or _PLEASE.match(asked)
    requested = asked[request.end() :] if request else asked
    kind = QuestionKind.OTHER
    if _COMPARES.search(asked):
        kind = QuestionKind.COMPARISON
    elif _REPORTS.match(asked) and not _WANTS_STEPS.search(asked):
        kind = QuestionKind.PROBLEM
    elif _WANTS_CODE.search(asked):
        kind = QuestionKind.CODE
    elif _WANTS_FORMULA.search(asked):
        kind = QuestionKind.FORMULA
    elif _WANTS_STEPS.search(asked):
        kind = QuestionKind.HOW_TO
    elif listed := next(filter(None, (one.match(requested) for one in _WANTS_LIST)), None):
        return ReadQuestion(QuestionKind.LIST, listed["subject"])
    elif found := _find_subject(requested):
        return found
    elif _ORDERS.match(asked):
        kind = QuestionKind.HOW_TO
    return ReadQuestion(kind, "")


def _find_subject(asked: str) -> ReadQuestion | None:
    """Return a question for a meaning with its term, without articles and quotes, or None."""
    asked = asked.strip(" ?!.,;:")
    for pattern in _MEANING:
        match = pattern.fullmatch(asked)
        if match is None:
            continue
        subject = _AROUND.sub("", match["subject"]).strip(" \"'`\u201c\u201d\u2018*,;:?!")
        words = subject.split()
        if not any(char.isalnum() for char in subject) or len(words) > _MAX_SUBJECT_WORDS:
            return None
        is_other = _ABOUT_SOMETHING_ELSE.search(subject) is not None
        return None if is_other else ReadQuestion(QuestionKind.DEFINITION, subject)
    return None
