"""The sources of an answer in OpenAI's chat format: annotations, and links after the text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rag_pipeline.answering import AnswerKind
from rag_pipeline.answering.voice import list_shown
from rag_pipeline.core.site.addresses import encode_target, escape_label

if TYPE_CHECKING:
    from collections.abc import Callable

    from rag_pipeline.answering import Answer
    from rag_pipeline.retrieval import Citation

SOURCES_TITLE: Final = "\n\n**Where the book says this**\n"
_RELATED_TITLE: Final = "\n\n**Related sections**\n"
_NOTICES_TITLE: Final = "\n\n**Please note**\n"
_TITLES: Final = (SOURCES_TITLE, _RELATED_TITLE, _NOTICES_TITLE)
"""The lines before what is added to an answer. A model's answer contains none of them."""

_MARK: Final = re.compile(r"\[(\d+)\]")


def cite_sources(
    answer: Answer, resolve: Callable[[str], str], offset: int = 0
) -> tuple[str, list[dict[str, object]]]:
    """Return the links to an answer's sources as Markdown, and an annotation for each citation.

    An annotation covers a citation such as `[1]` that a model wrote, and the link itself. Notices
    for the reader precede the links.

    Args:
        answer: The answer, whose text the links follow.
        resolve: Turns the URL of a citation into an absolute one.
        offset: Number of characters before the answer's text in the message.

    Returns:
        The text to append, empty if there is nothing to add, and annotations of the type
        `url_citation`. Their indices count the characters of the message; the end is exclusive.
    """
    numbered = answer.numbered_citations
    sources = {number: citation for number, citation in numbered.items() if citation.url}
    annotations: list[dict[str, object]] = []

    def annotate(start: int, end: int, citation: Citation) -> None:
        place = {"start_index": offset + start, "end_index": offset + end}
        named = {"url": encode_target(resolve(citation.url)), "title": citation.place}
        annotations.append({"type": "url_citation", "url_citation": {**place, **named}})

    if answer.kind is AnswerKind.GENERATED:
        for mark in _MARK.finditer(answer.text):
            if int(mark[1]) in sources:
                annotate(mark.start(), mark.end(), sources[int(mark[1])])
    notices = list_shown(answer)
    links = _NOTICES_TITLE if notices else ""
    links += "".join(f"\n- {notice.text}" for notice in notices)
    if sources:
        links += _RELATED_TITLE if answer.kind is AnswerKind.REFUSED else SOURCES_TITLE
    for number, citation in sources.items():
        links += f"\n{number}. "
        link = f"[{escape_label(citation.place)}]({encode_target(resolve(citation.url))})"
        start = len(answer.text) + len(links)
        annotate(start, start + len(link), citation)
        links += link
    return links, annotations


def remove_additions(text: str) -> str:
    """Return the text of an answer without the notices and links that `cite_sources` appends."""
    return text[: min(at for at in (*map(text.find, _TITLES), len(text)) if at >= 0)].strip()
