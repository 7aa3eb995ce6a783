"""Checks of the passages that an answer quotes, made with the parsed documents of the book.

The checks use neither the stored chunks nor the code that writes answers.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.models import TextBlockKind
from rag_pipeline.core.text.sentences import split_sentences
from rag_pipeline.core.text.source_lines import find_page_line
from rag_pipeline.core.text.tokens import count_tokens
from rag_pipeline.evaluation.definitions import QUIZZES
from rag_pipeline.ingestion.markdown.spans import read_span
from rag_pipeline.ingestion.markdown.text_blocks import find_text_blocks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rag_pipeline.answering import Answer, Passage
    from rag_pipeline.core.models import Block, Document, ParsedDoc
    from rag_pipeline.evaluation.golden_set import DefinitionCase, ExpectedSection

_CODE_SHARE: Final = 0.5  # with more code than this, a passage is a code block
_EMPHASIS: Final = re.compile(r"[*_`]+$")


def find_broken_passages(
    answer: Answer, documents: Mapping[str, ParsedDoc], max_chunk_tokens: int
) -> tuple[str, ...]:
    """Return the passages of an answer that are not whole blocks of their document.

    A passage is whole if every block on its lines lies completely on them, and the cleaned text of
    these blocks is the text of the passage. White space does not matter. A block that is longer
    than a chunk may be cut between two sentences.

    Args:
        answer: An answer from the whole book.
        documents: The parsed documents by path.
        max_chunk_tokens: Largest size of a chunk of text, in cl100k_base tokens.
    """
    return tuple(
        passage.text
        for passage in answer.passages
        if not _is_whole(passage, documents, max_chunk_tokens)
    )


def find_broken_selections(answer: Answer, selection: str) -> tuple[str, ...]:
    """Return the passages of an answer that are not whole blocks of the selected text."""
    blocks = find_text_blocks(selection) if selection.strip() else ()
    spans = {
        _close_up(selection[first.start : last.end])
        for number, first in enumerate(blocks)
        for last in blocks[number:]
    }
    return tuple(one.text for one in answer.passages if _close_up(one.text) not in spans)


def _close_up(text: str) -> str:
    """Return the text without white space."""
    return "".join(text.split())


def _is_whole(passage: Passage, documents: Mapping[str, ParsedDoc], max_chunk_tokens: int) -> bool:
    parsed = documents.get(passage.doc_path)
    blocks = list(_read_blocks(passage, parsed)) if parsed else []
    if parsed is None or not blocks or not passage.text.strip():
        return False
    first, last = blocks[0], blocks[-1]
    start_line, _ = _find_block_lines(first, parsed)
    _, end_line = _find_block_lines(last, parsed)
    whole, quoted = _close_up(read_span(parsed, first.start, last.end)), _close_up(passage.text)
    before, _, after = whole.partition(quoted)
    inside = passage.start_line <= start_line and end_line <= passage.end_line
    if inside and whole == quoted:
        return True
    starts = _read_edges(first, max_chunk_tokens)
    ends = _read_edges(last, max_chunk_tokens, at_end=True)
    return quoted in whole and before in starts and after in ends


def _read_edges(block: Block, max_chunk_tokens: int, *, at_end: bool = False) -> set[str]:
    """Return the texts, without white space, that may be missing at the start or end of a block.

    These are the empty text and, for a block that is longer than a chunk, runs of its sentences.
    """
    if block.is_atomic or count_tokens(block.text) <= max_chunk_tokens:
        return {""}
    spans = split_sentences(block.text)
    if at_end:
        return {"", *(_close_up(block.text[start:]) for start, _ in spans)}
    return {"", *(_close_up(block.text[:end]) for _, end in spans)}


def _read_blocks(passage: Passage, parsed: ParsedDoc) -> Iterator[Block]:
    """Yield the blocks that lie on at least one of the passage's lines and have a text."""
    for block in parsed.blocks:
        first, last = _find_block_lines(block, parsed)
        if first <= passage.end_line and last >= passage.start_line and block.text.strip():
            yield block


def _find_block_lines(block: Block, parsed: ParsedDoc) -> tuple[int, int]:
    """Return the first and last line of a block in the document's own file."""
    first, last = block.start_line, block.end_line
    return find_page_line(parsed.origins, first), find_page_line(parsed.origins, last)


def name_flaw(passage: Passage, documents: Mapping[str, ParsedDoc]) -> str | None:
    """Return the reason why a passage cannot explain a term; None if nothing is wrong.

    The reason is `heading` for a passage of headings only, `code` if code makes up more than half
    of the passage, and `quiz` for a passage of a quiz or one that consists of questions.
    """
    parsed = documents.get(passage.doc_path)
    blocks = list(_read_blocks(passage, parsed)) if parsed else []
    if parsed is None or not blocks:
        return None
    kinds = [block.text_kind for block in blocks]
    if all(kind is TextBlockKind.HEADING for kind in kinds):
        return TextBlockKind.HEADING.value
    code = sum(len(block.text) for block in blocks if block.text_kind is TextBlockKind.CODE)
    if code > _CODE_SHARE * sum(len(block.text) for block in blocks):
        return TextBlockKind.CODE.value
    text = passage.text.strip()
    sentences = [_EMPHASIS.sub("", text[start:end]) for start, end in split_sentences(text)]
    asks = all(sentence.endswith("?") for sentence in sentences)
    return "quiz" if asks or parsed.document.content_type in QUIZZES else None


def defines(passage: Passage, case: DefinitionCase, documents: Mapping[str, ParsedDoc]) -> bool:
    """Return True if a passage contains the definition of a term, or lies in a defining section."""
    if _keep_words(case.definition) in _keep_words(passage.text):
        return True
    return any(
        first <= passage.start_line and passage.end_line <= last
        for place in case.places
        if place.doc_path == passage.doc_path and place.doc_path in documents
        for first, last in _find_lines(documents[place.doc_path].document, place)
    )


def _keep_words(text: str) -> str:
    words = re.findall(r"[^\W_]+", text.casefold())
    return f" {' '.join(words)} "


def _find_lines(document: Document, place: ExpectedSection) -> Iterator[tuple[int, float]]:
    """Yield the first and last line of each section of a document with the heading of a place.

    A section includes its subsections. A page's title stands only for the text before the next
    heading, because the rest of a page is about more than its title.
    """
    lines = [heading.line for heading in document.headings]
    titles = [at for at, heading in enumerate(document.headings) if heading.level == 1]
    if place.section_heading == document.title and not titles:
        yield 1, min(lines, default=float("inf")) - 1
    for at, heading in enumerate(document.headings):
        if (heading.text or document.title) == place.section_heading:
            level = 6 if heading.level == 1 else heading.level
            following = (one.line for one in document.headings[at + 1 :] if one.level <= level)
            yield heading.line, next(following, float("inf")) - 1
