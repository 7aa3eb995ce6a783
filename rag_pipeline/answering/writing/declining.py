"""Recognise that a model says that it found no answer, in any form and in several languages."""

from __future__ import annotations

import re
from typing import Final

DECLINED: Final = "NO_ANSWER_IN_SOURCES"
"""The word with which a model says that the sources do not answer a question."""

_SENTINEL: Final = re.compile(r"no[_\s\-\\]*answer[_\s\-\\]*in[_\s\-\\]*sources?", re.IGNORECASE)

_ABOUT_SOURCES: Final = (
    # English
    r"\b(?:sources?|excerpts?|passages?|context|documents?|documentation|texts?|textbooks?|books?"
    r"|materials?|information (?:provided|given|available)|provided information|section)\b"
    # German, French, Spanish, Italian, Portuguese, Dutch, Polish, Turkish
    r"|\b(?:quellen?|auszügen?|texte?n?|abschnitte?n?|kontext|dokumente?n?|unterlagen|buch)\b"
    r"|\b(?:extraits?|passages?|textes?|contexte|documents?|livre)\b"
    r"|\b(?:fuentes?|fragmentos?|textos?|contexto|documentos?|libro|livro|trechos?)\b"
    r"|\b(?:fonti?|brani?|testo|testi|contesto|documenti|bronnen|bron|tekst|teksten|fragmenten)\b"
    r"|\b(?:źródła\w*|tekście|kontekście|kaynak\w*|metin\w*|bağlam\w*)\b"
    # Russian, Chinese, Japanese, Korean, Arabic, Hindi
    r"|источник\w*|текст\w*|контекст\w*"
    r"|来源|资料|文本|上下文|提供的|資料|出典|ソース|文脈|本文|출처|문맥|자료"
    r"|المصادر|النص|स्रोत"
)
_NEGATION: Final = (
    r"\b(?:not|no|none|never|nothing|neither|without|cannot|lacks?|insufficient|fails? to|unable"
    r"|unclear|silent)\b|n['\u2019]t\b"
    r"|\b(?:nicht|nichts|kein\w*|keine|weder|ohne)\b"
    r"|\b(?:ne|n['\u2019]\w+|pas|aucune?|rien|sans)\b"
    r"|\b(?:no|ningún\w*|nada|sin|non|nessun\w*|não|nenhum\w*|niet|geen|nie|brak"
    r"|yok|değil|bulunm\w*|içermiyor\w*)\b"
    r"|\b(?:не|нет)\b|没有|未|不|ありません|ない|ません|없|않|لا |لم |ليس|नहीं"
)
_TELLING: Final = (
    r"\b(?:answer\w*|contain\w*|provide\w*|mention\w*|include\w*|say|says|said|state\w*|specif\w*"
    r"|describ\w*|explain\w*|cover\w*|discuss\w*|address\w*|inform\w*|detail\w*|enough"
    r"|relevant|found"
    r"|find|refer\w*|talk\w*|tell\w*|define\w*|give\w*|list\w*|sufficient|insufficient|directly"
    r"|present|related|available|mentioned)\b"
    r"|\b(?:beantwort\w*|enth\w*|angab\w*|antwort\w*|erwähn\w*|informationen?|genug|hervor|sagen"
    r"|steht|stehen|finden|gefunden|beschr\w*)\b"
    r"|\b(?:répon\w*|contien\w*|mentionn\w*|informations?|indiqu\w*|fourni\w*|précis\w*"
    r"|trouv\w*)\b"
    r"|\b(?:respon\w*|contien\w*|mencion\w*|informaci\w*|indic\w*|respuest\w*|rispond\w*"
    r"|contengon\w*"
    r"|contiene|informaz\w*|cont[eê]m|informaç\w*|respost\w*|antwoord\w*|bevat\w*|odpowied\w*"
    r"|zawiera\w*"
    r"|cevap\w*|bilgi\w*)\b"
    r"|ответ\w*|содерж\w*|упомин\w*|информац\w*|回答|答案|提到|包含|信息|答え|情報|含ま|記載|답|정보|언급"
    r"|إجابة|يذكر|تحتوي|معلومات|उत्तर|जानकारी"
)
_SPEAKER: Final = re.compile(
    r"\b(?:i|we)\s+(?:\w+\s+){0,2}?(?:do not|don['\u2019]t|cannot|can['\u2019]t|could not"
    r"|couldn['\u2019]t|am not|['\u2019]m not"
    r"|am unable|was unable|am sorry|apologi[sz]e|have no|['\u2019]m unable|am afraid)\b"
    r"|\bi['\u2019]m (?:not|unable|sorry|afraid)\b"
    r"|\b(?:sorry|unfortunately|apologies)\b.*(?:\bnot?\b|n['\u2019]t\b|cannot|unable)"
    r"|\b(?:ich|wir)\b.*\b(?:nicht|kein\w*|leider)\b|\bleider\b.*\b(?:nicht|kein\w*)\b"
    r"|\bje (?:ne|n['\u2019])|\b(?:désolée?|malheureusement)\b"
    r"|\b(?:no (?:puedo|sé|tengo|encuentro)|lo siento|lamentablemente)\b"
    r"|\b(?:non (?:posso|so|ho|trovo)|mi dispiace|purtroppo|não (?:sei|posso|encontr\w+)|desculpe"
    r"|infelizmente|ik (?:weet|kan|vind)\b.*\bniet|helaas|nie (?:wiem|mogę)|niestety"
    r"|bilmiyorum|üzgünüm)"
    r"|к сожалению|я не |抱歉|无法|申し訳|わかりません|죄송|없습니다|عذرا|آسف|माफ",
    re.IGNORECASE,
)
_SHORT: Final = re.compile(
    r"\W*(?:not (?:found|answered|covered|mentioned|specified|available|provided"
    r"|enough information)"
    r"|insufficient(?: \w+)?|no (?:answer|information)(?: \w+){0,3}|n/?a|unknown|none|idk"
    r"|unanswerable|nicht (?:gefunden|beantwortbar|enthalten)|keine (?:antwort|angabe)"
    r"|aucune (?:réponse|information)|sin respuesta|no encontrado)\W*",
    re.IGNORECASE,
)
_NO_ANSWER: Final = re.compile(
    r"\b(?:there (?:is|are|was) (?:no|not enough|insufficient)|no|not enough"
    r"|insufficient)\b[^.]{0,40}"
    r"\b(?:information|answer|mention|details?|data)\b"
    r"|\b(?:not possible|impossible|unable) to (?:answer|determine|say|tell|know)\b"
    r"|\bcan(?:not|['\u2019]t) be (?:answered|determined)\b",
    re.IGNORECASE,
)
_PARTS: Final = (
    re.compile(_ABOUT_SOURCES, re.IGNORECASE),
    re.compile(_NEGATION, re.IGNORECASE),
    re.compile(_TELLING, re.IGNORECASE),
)


def has_sentinel(text: str) -> bool:
    """Return True if a text contains the word for "no answer", perhaps written differently."""
    return _SENTINEL.search(text) is not None


def remove_sentinel(text: str) -> str:
    """Return a text without the word for "no answer"."""
    return _SENTINEL.sub("", text).strip(" \t\"'`*_.:[]()")


def may_decline(text: str) -> bool:
    """Return True if a sentence says that the sources, or the writer, have no answer.

    Such a sentence is about the sources and denies that they say something, or the writer speaks of
    itself. A sentence of the book can have the same form, so the caller must check that the sources
    do not contain the sentence.
    """
    if has_sentinel(text) or _SHORT.fullmatch(text) or _SPEAKER.search(text):
        return True
    return _NO_ANSWER.search(text) is not None or all(one.search(text) for one in _PARTS)
