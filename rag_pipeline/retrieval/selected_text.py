"""Selected-text mode: the caller's selection is all the context there is.

Imports core and the models beside it, nothing else: no store, no search, no model can be reached
from here, which a test of the import graph holds. What stands in the selection or the question is
data; nothing in it is followed.
"""

from __future__ import annotations

import posixpath
import unicodedata
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.docusaurus import HeadingIds, build_permalink, link_to_anchor
from rag_pipeline.core.errors import DocumentIdError
from rag_pipeline.core.ids import hash_text, parse_doc_id
from rag_pipeline.core.models import ContentType
from rag_pipeline.core.payload import ChunkMetadata
from rag_pipeline.core.sentences import split_sentences
from rag_pipeline.core.terms import UNSPACED, count_words, extract_terms, extract_words
from rag_pipeline.retrieval.models import Citation, Mode, RetrievalResult, ScoredChunk

if TYPE_CHECKING:
    from rag_pipeline.core.models import SiteSettings
    from rag_pipeline.core.protocols.embedding import Embedder
    from rag_pipeline.retrieval.models import Query

SHORT_SELECTION_WORDS: Final = 10

UNRELATED_NOTICE: Final = (
    "The question does not seem to be about the selected text. Ask the whole book to search every "
    "chapter."
)
SHORT_NOTICE: Final = (
    "The selection is short, so the answer rests on little. Select more text, or ask the whole "
    "book to search every chapter."
)

_GENERIC_WORDS: Final = (
    "above answer arabic argument author beginner beginners below bit book brief briefly bug "
    "bullet chapter chart child children chinese clarify class code command comment concept "
    "conclude conclusion content define definition describe detail detailed diagram difference "
    "different discuss eight elaborate english entire equation example excerpt explain explanation "
    "express fact figure five follow following formula four french function generate german give "
    "going happen happening help highlighted hindi idea image important instruction italian "
    "japanese key kid kind language layman level line list lists literally look loop main make "
    "mean meaning meant mention message method need nine old one outline output page paragraph "
    "parameter paraphrase part passage phrase picture please point portuguese previous purpose "
    "question quote read relate rephrase return review rewrite right russian saying script section "
    "see select selected selection sense sentence seven short shorten show significance simple "
    "simplify simply six snippet somebody someone spanish speak state step student summarise "
    "summarize summary table takeaway takeaways talk tell ten term text thing third three "
    "translate try tutor two type understand urdu use used useful variable want way whole word "
    "work write year years dr tl"
)
_GENERIC_TERMS: Final = frozenset(extract_terms(_GENERIC_WORDS))
"""Terms about reading itself: a question of nothing else is about whatever is selected."""

_JUDGED_WITH: Final = {"DIGIT": "LATIN", "HIRAGANA": "CJK", "KATAKANA": "CJK"}

_MIN_SHARED_PREFIX: Final = 4  # characters: `gyro` and `gyroscop` mean one thing


def retrieve_selected(
    query: Query, threshold: float, site: SiteSettings, embedder: Embedder | None = None
) -> RetrievalResult:
    """Make the selection the one passage found, with score 1.

    The passage is given even where the question seems to be about something else: the caller
    decides, `related` and `notice` say so.

    Args:
        query: Checked, in selected-text mode.
        threshold: Relatedness from which the question counts as being about the selection.
        site: How addresses are formed, for the citation.
        embedder: Compares meanings besides words; None compares words alone.
    """
    text = (query.selected_text or "").strip()
    relatedness = measure_relatedness(query.question, text, embedder)
    related = relatedness >= threshold
    notice = None if related else UNRELATED_NOTICE
    if notice is None and count_words(text) < SHORT_SELECTION_WORDS:
        notice = SHORT_NOTICE
    citation = _cite(query, site)
    metadata = _describe(query, text, citation)
    chunk = ScoredChunk(metadata.chunk_id, text, 1.0, metadata, citation)
    return RetrievalResult(
        (chunk,), query, Mode.SELECTED_TEXT_ONLY, 1, related, relatedness, notice
    )


def measure_relatedness(question: str, selection: str, embedder: Embedder | None = None) -> float:
    """How far a question is about a selection, 0 to 1.

    The share of the question's terms that the selection holds, each by its length: long words are
    rarer and say more. Words about reading itself (`explain`, `line`, `summarize`) are left out; a
    question of nothing else points at the selection and counts as 1. Words in a script that the
    selection is not written in are left out too: they cannot be compared. An embedder can raise it
    to the cosine with the nearest sentence.
    """
    asked = {term for term in _extract_units(question) if term not in _GENERIC_TERMS}
    if not asked:
        return 1.0
    held = set(_extract_units(selection))
    if embedder is None and held:
        scripts = {_name_script(term) for term in held}
        asked = {term for term in asked if _name_script(term) in scripts}
        if not asked:
            return 1.0
    share = sum(len(t) for t in asked if _is_held(t, held)) / sum(len(t) for t in asked)
    if embedder is None:
        return share
    sentences = [selection[start:end] for start, end in split_sentences(selection)] or [selection]
    rows, _ = embedder.embed_passages([*sentences, selection])
    cosine = float((rows @ embedder.embed_query(question)).max())
    return min(1.0, max(share, cosine))


def _extract_units(text: str) -> list[str]:
    """Terms; of scripts without spaces pairs of characters, which is what words there are near."""
    return [
        unit
        for term in extract_terms(text)
        for unit in (
            [term[at : at + 2] for at in range(max(1, len(term) - 1))]
            if UNSPACED.search(term)
            else [term]
        )
    ]


def _name_script(term: str) -> str:
    script = unicodedata.name(term[0], "").split(" ")[0]
    return _JUDGED_WITH.get(script, script)


def _is_held(term: str, held: set[str]) -> bool:
    if term in held:
        return True
    if len(term) < _MIN_SHARED_PREFIX:
        return False
    return any(
        len(other) >= _MIN_SHARED_PREFIX and (other.startswith(term) or term.startswith(other))
        for other in held
    )


def _cite(query: Query, site: SiteSettings) -> Citation:
    path, section = query.source_doc_path or "", query.source_section or ""
    folders, stem = path.split("/")[:-1], posixpath.splitext(posixpath.basename(path))[0]
    named = folders[-1] if stem.lower() in {"index", "readme"} and folders else stem
    title = named.replace("-", " ").replace("_", " ").strip() or "Selected text"
    return Citation(
        title=title[0].upper() + title[1:],
        section=section,
        url=_link(query, site),
        module=folders[0] if folders else "",
        chapter=folders[1] if len(folders) > 1 else "",
    )


def _link(query: Query, site: SiteSettings) -> str:
    """Address of the selection's section on the caller's page, or on the page its path makes."""
    anchor = HeadingIds().next_id(2, query.source_section, None) if query.source_section else None
    if query.source_url is not None:
        page_url, _, named = query.source_url.partition("#")
        return query.source_url if named and anchor is None else link_to_anchor(page_url, anchor)
    try:
        page_url = build_permalink(parse_doc_id(query.source_doc_path or ""), site)
    except DocumentIdError:
        return ""
    return link_to_anchor(page_url, anchor)


def _describe(query: Query, text: str, citation: Citation) -> ChunkMetadata:
    content_hash = hash_text(text)
    return ChunkMetadata(
        chunk_id=hash_text(f"selection::{text}")[:16],
        doc_path=query.source_doc_path or "",
        module=citation.module,
        chapter=citation.chapter,
        title=citation.title,
        description="",
        section_heading=citation.section,
        heading_breadcrumb=tuple(part for part in (citation.title, citation.section) if part),
        heading_level=0,
        anchor=None,
        url=citation.url,
        chunk_index=0,
        content_type=ContentType.PROSE.value,
        tags=(),
        learning_objectives=(),
        sidebar_label=citation.title,
        sidebar_position=None,
        content_hash=content_hash,
        word_count=len(extract_words(text)),
        token_count=0,
        start_line=1,
        end_line=text.count("\n") + 1,
        start_byte=0,
        end_byte=len(text.encode()),
        ingested_at="",
    )
