"""Recognise small talk and other texts that get a fixed reply without a search."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering.models import GroundedResponse, Level, Reason
from rag_pipeline.answering.reading.book_questions import find_book_question, join_phrases
from rag_pipeline.core.text.terms import extract_terms
from rag_pipeline.retrieval.queries import Mode, Query

if TYPE_CHECKING:
    from rag_pipeline.answering.voice import Voice

KINDS: Final = ("about", "farewell", "thanks", "greeting")
"""The kinds of small talk. The first kind that occurs decides the reply."""

_PHRASES: Final = {
    "about": r"""
        (?:can|could|would|will) you (?:please )?help(?: me)?
        (?:please )?help(?: me)?
        i need (?:some )?help
        how (?:can|do|could) you help(?: me)?
        (?:who|what) are you
        who (?:made|built|created) you
        (?:what is|what's|whats) your name
        what (?:can|do) you (?:do|know)(?: for me)?
        what can i (?:ask|do)(?: you| here)?
        how do you work
        how do i use you
        (?:tell me about|introduce) yourself
        can i ask (?:you )?(?:a question|questions|something)
        i have a question
        are you there
        (?:yes|yeah|yep|nope|sure|no(?! thank))(?: please)?
        h+m+
        are you (?:an? )?(?:bot|robot|ai|human|person|real person|real|chatbot|machine|chatgpt)
    """,
    "pointing": r"""
        how does (?:this|it)(?: (?:tutor|bot|chatbot|chat|assistant|tool))? work
        what is this(?: (?:tutor|bot|chatbot|chat|assistant|tool))?
        how do i use this(?: (?:tutor|bot|chatbot|chat|assistant|tool))?
        what can this (?:tutor|bot|chatbot|chat|assistant|tool) do
    """,
    "farewell": r"""
        good ?bye
        bye(?: bye)?
        good night
        see (?:you|ya)(?: later| soon| tomorrow)?
        have a (?:nice|good|great) (?:day|evening|weekend)
        take care
        au revoir
        tschüss
        adios
        ciao
    """,
    "thanks": r"""
        (?:many thanks|thanks|thank you)(?: a lot| so much| very much)?(?: for (?:your|the) help)?
        in advance
        thx
        danke
        merci
        gracias
        shukria
        great
        ok
        okay
        cool
        nice
        perfect
        awesome
        got it
        i see
        (?:that|this|it) (?:was|is) (?:very |really )?(?:helpful|great|good)
        (?:that|this|it) help(?:s|ed)(?: me)?(?: a lot)?
        no(?: thanks| thank you)
        never ?mind
        forget it
        well done
        good job
    """,
    "greeting": r"""
        hello+
        hi+
        hey+
        hiya
        howdy
        greetings
        good (?:morning|afternoon|evening|day)
        how are you(?: doing)?(?: today)?
        (?:how is|how's) it going
        what's up
        nice to meet you
        hola
        bonjour
        hallo
        salut
        namaste
        as?sala+mu? ?(?:o |u )?alaikum
        salam
    """,
}
_ADDRESSED: Final = "there|again|everyone|all|sir|friend|please|today|tutor|robotutor|bot|assistant"
PHRASE: Final = re.compile(rf"(?:{join_phrases(_PHRASES)})(?: (?:{_ADDRESSED}))*(?: |$)")
SMILEY: Final = re.compile(r"[:;]-?[)(DP]")
_WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
CODE_SIGNS: Final = re.compile(r"[-+*/\\_=<>(){}\[\]`#$%&@|^~]")
_SEGMENT: Final = re.compile(r"[^,.!?;]+[,.!?;\s]*")
MAX_WORDS: Final = 20
_LEFT_WORDS: Final = 2  # "Hello, world" stays whole


def find_reply(query: Query, *, has_turns: bool = False) -> str:
    """Return the kind of the fixed reply to a question, otherwise an empty text.

    Small talk is a greeting, thanks, a farewell, or a question about the tutor. If the reader has
    selected a text, or asked something before, "How does this work?" is a question about that, and
    only a question that names the book is about the book. A text of signs and stop words has no
    words to search.
    """
    kinds = _read_small_talk(query.question)
    is_first = not has_turns and query.mode != Mode.SELECTED_TEXT_ONLY
    if "pointing" in kinds:
        kinds = {"about"} if is_first else set()
    found = next((kind for kind in KINDS if kind in kinds), "")
    if found or query.mode == Mode.SELECTED_TEXT_ONLY:
        return found
    about = find_book_question(query.question, is_first=is_first)
    return about or ("no_words" if is_first and not extract_terms(query.question) else "")


def remove_small_talk(question: str) -> str:
    """Return a question without a greeting or thanks before or after it.

    They must be separated from the question by a punctuation mark. A question of fewer than two
    other words stays as it is.
    """
    segments = _SEGMENT.findall(question)
    kept = list(segments)
    while kept and _is_polite(kept[0]):
        del kept[0]
    while kept and _is_polite(kept[-1]):
        del kept[-1]
    left = "".join(kept)
    if len(kept) == len(segments) or len(_WORD.findall(left)) < _LEFT_WORDS:
        return question
    return left.strip(" ,;")


def ground_reply(query: Query, kind: str, voice: Voice, recalled: str) -> GroundedResponse:
    """Return the decision not to search for a question, with the reply as its message.

    Args:
        query: The question.
        kind: The kind of the reply.
        voice: The language of the reply.
        recalled: The earlier question that the kind `recalled` repeats.
    """
    mode, notices = Mode(query.mode), (voice.note(kind),) if kind == "no_words" else ()
    level, reason = Level.NO_QUESTION, Reason.SMALL_TALK
    if kind == "no_words":
        level, reason = Level.NOT_COVERED, Reason.NO_WORDS
    return GroundedResponse(
        "", "", (), mode, level, reason, message=voice.say(kind, question=recalled), notices=notices
    )


def _is_polite(segment: str) -> bool:
    return set() < _read_small_talk(segment) <= {"greeting", "thanks"}


def _read_small_talk(text: str) -> set[str]:
    """Return the kinds of small talk that a text consists of; empty if it contains anything else.

    A text with signs of code, such as `help()` or `--help`, contains something else.
    """
    text = SMILEY.sub(" ", text.casefold().replace("\u2019", "'"))
    words = _WORD.findall(text)
    if not words or len(words) > MAX_WORDS or CODE_SIGNS.search(text):
        return set()
    spoken, kinds, at = " ".join(words), set(), 0
    while at < len(spoken):
        phrase = PHRASE.match(spoken, at)
        if phrase is None:
            return set()
        kinds.add(phrase.lastgroup or "")
        at = phrase.end()
    return kinds
