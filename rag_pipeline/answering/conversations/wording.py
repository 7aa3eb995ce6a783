"""The closed classes of English words by which a follow-up question is recognised."""

from __future__ import annotations

import re
from typing import Final

SUBJECT_PRONOUNS: Final = frozenset("i you we one i'd i'm let's to".split())
"""Words before a verb. A verb names no subject: "how do I install it?" needs an earlier one."""

DETERMINERS: Final = frozenset(
    "a an the my our your his her its their this that these those each every some any no all both"
    " either neither".split()
)
WH_WORDS: Final = frozenset(
    "what which who whom whose when where why how what's who's where's how's when's why's".split()
)
VERBS: Final = frozenset(
    "is are was were be been being am isn't aren't wasn't weren't do does did don't doesn't didn't"
    " has have had hasn't haven't can could can't couldn't will would won't wouldn't shall should"
    " shouldn't may might must what's who's where's how's when's why's it's that's they're"
    " there's".split()
)
_PRONOUNS: Final = frozenset(
    "i me we us you he him she it they them himself itself themselves myself yourself mine yours"
    " this that these those there here one ones it's that's they're there's i'm i'd let's".split()
)
_JOINING: Final = frozenset(
    "and or but so because if then than also too as of in on at by for with from to into onto about"
    " over under between after before during without within through via per like not only even just"
    " still again yet up down out off instead rather else otherwise though although while until"
    " since once both either neither however therefore maybe perhaps now ever".split()
)
_ASKING: Final = frozenset(
    "give show tell explain describe elaborate clarify repeat rephrase summarize summarise expand"
    " continue go say said mean means meant please help understand know want wonder think see get"
    " got make makes made use used uses using do done doing work works working happen happens"
    " happened happening need needs needed take takes look looks looking apply applies come comes"
    " put let try matter matters"
    " happy sure ok okay yes no well really exactly actually basically simply quickly briefly"
    " detail details detailed simple simpler simplest easy easier plain short shorter shortly long"
    " longer clear clearer word words term terms sentence sentences language english way ways thing"
    " things something anything nothing everything someone stuff bit little lot lots more most much"
    " many few less least several other another others same different next last first second third"
    " former latter previous above below main important common typical usual usually often always"
    " never sometimes possible true false wrong right correct good better best bad worse worst new"
    " old big bigger biggest small smaller smallest fast faster fastest slow slower high higher low"
    " lower hard harder cheap cheaper expensive useful necessary enough such".split()
)
_BELONGING: Final = frozenset(
    "example examples instance analogy reason reasons cause causes purpose point goal benefit"
    " benefits advantage advantages disadvantage disadvantages drawback drawbacks downside"
    " downsides upside upsides limit limits limitation limitations problem problems issue issues"
    " risk risks alternative alternatives option options difference differences similarity"
    " similarities effect effects consequence consequences result results step steps part parts"
    " component components kind kinds type types form forms property properties feature features"
    " value values unit units number numbers formula formulas equation definition meaning default"
    " defaults requirement requirements condition conditions exception exceptions role"
    " function order size cost costs price answer question rest code".split()
)
"""Nouns that always need something that they belong to: "the advantages" of what?"""

EMPTY_WORDS: Final = DETERMINERS | WH_WORDS | VERBS | _PRONOUNS | _JOINING | _ASKING | _BELONGING
"""Words that name no subject to search for."""

POINTING: Final = frozenset(
    "it its they them their it's they're this that these those that's himself itself themselves"
    " he him she".split()
)
PLACE_OF_ITS_OWN: Final = {
    "it": re.compile(
        r"takes? |(?:(?:is|be|was) )?(?:\w+ )?(?:true|possible|necessary|likely|important|better|best|safe"
        r"|enough|easy|hard|good|bad|normal|common|useful|allowed|ok|okay|worth|recommended)\b"
        r"(?= \w)|means? (?:to|that|when|if|for)\b|matters? (?:if|whether|which|that|how)\b"
        r"|makes? sense to\b|happens? that\b|depends? on\b(?=.* (?:whether|which|how))"
    ),
    "this": re.compile(
        r"(?:whole |very |entire )?(?:course|book|textbook|chapter|module|page|section|class"
        r"|semester|term|year|week|site|website|guide|manual|documentation|tutorial|program|lab"
        r"|unit|lesson)\b"
    ),
    "these": re.compile(r"(?:days|docs|pages|chapters|modules|lessons)\b"),
    "those": re.compile(r"(?:who|that|which|of|with)\b"),
    "that": re.compile(r"is to say\b"),
}
"""What follows a pronoun that refers to nothing earlier: "it takes", "this book", "those who"."""

FRAGMENT_OPENINGS: Final = frozenset(
    "and but or so also then in on at by for with without from under over during between"
    " through via after before if when because only even just not still plus except besides"
    " despite like than".split()
)
UNATTACHED: Final = re.compile(
    r"^(?:(?:ok|okay|and|but|so|hmm|well)[\s,]+)*(?:what|how) about\b"
    r"|^(?:and|but|so|or)[\s,]+(?:why|how|when|where|which|who)\b(?:\W+\w+){0,4}\W*$"
    r"|\b(?:which|what|that|the (?:first|second|third|last|other|former|latter|next|previous)) ones?\b"
    r"|\bthe (?:former|latter|others?|rest)\b(?=\s*(?:[?.!,]|$|is|are|do|does|one))"
    r"|\b(?:another|one more|more|an?|some|any other|other|better|simpler|shorter)\s+"
    r"(?:\w+ )?(?:examples?|analog(?:y|ies)|illustrations?)\b(?!\s+(?:of|for|that|where|with|how|in|to)\b)"
    r"|\bthe same\b(?!.*\bas\b)(?=\s*(?:[?.!,]|$)|\s+(?:\w+\s+)?(?:\w+\s+)?(?:hold|true|apply|applies"
    r"|work|thing|problem|way|reason|for|with|in|on|happen|go|issue|effect|idea|method|rule)\b)"
    r"|\bdifferences?\s+(?:to|from|with)\b|^(?:\w+\s+){0,3}(?:compared|in contrast|similar|opposed)\s+to\b"
    r"|\byou\s+(?:just\s+)?(?:said|mentioned|wrote|described|explained|listed|told)\b"
    r"|\b(?:your|the (?:last|previous|above))\s+(?:last\s+|previous\s+)?(?:answer|reply|explanation)\b"
    r"|\b(?:mentioned|described|explained|said|listed)\s+(?:above|before|earlier)\b"
    r"|(?<!is )(?<!are )(?<!was )(?<!were )\bthere\s*[?.!]*$|\b(?:anything|what|who) else\b"
    r"|\bin (?:simpler|other|plain|easier|fewer|your own)\s+(?:words|terms|english|language)\b"
    r"|\b(?:each|both|all|either|neither|some|one|any|most|none) of (?:them|these|those)\b"
    r"|\bin (?:that|this|such a|which) case\b|^(?:why|how) (?:so|come|not)\b",
)
"""Phrases that have no meaning without an earlier question."""

CONTRASTS: Final = re.compile(
    r"\b(?:better|worse|faster|slower|cheaper|easier|harder|safer|simpler|larger|bigger|smaller"
    r"|higher|lower|stronger|weaker|(?:more|less) \w+)\s*[?.!]*$"
    r"(?<!or more)|\binstead\s*[?.!]*$|\b(?:too|as well|either|otherwise)\s*[?.!]*$"
)
"""Endings of a short question that compare with something earlier: "is a lidar better?"."""

NEW_TOPIC: Final = re.compile(
    r"(?:(?:ok|okay|now|and|so|well)[\s,]+)*(?:(?:a |one )?(?:new|different|another|unrelated|separate|other)"
    r" (?:question|topic|subject|thing)|changing (?:the )?(?:topic|subject)|by the way|btw"
    r"|something (?:else|different)|on another (?:note|topic)|switching topics?|off topic)\b.*\w+\W+\w+"
)
"""Words with which a reader announces another subject."""
