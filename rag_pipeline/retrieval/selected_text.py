"""Selected-text mode: the text that a reader selected is the only passage.

This module and the modules of this folder that it needs import nothing else outside core, so that
they cannot reach a store, a search or a service; a test checks the imports. The selection and the
question are data: instructions in them are not followed.
"""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.errors import DocumentIdError
from rag_pipeline.core.ids import hash_text, parse_doc_id
from rag_pipeline.core.models import ContentType, SiteSettings
from rag_pipeline.core.payload import ChunkMetadata, show_edition
from rag_pipeline.core.site.addresses import build_doc_permalink, find_source_at
from rag_pipeline.core.site.docusaurus import HeadingIds, link_to_anchor
from rag_pipeline.core.sources import Source, find_edition, find_place, find_source
from rag_pipeline.core.text.terms import count_words, extract_words
from rag_pipeline.retrieval.models import Citation, RetrievalResult, ScoredChunk, name_edition
from rag_pipeline.retrieval.queries import Mode, Query, link_source
from rag_pipeline.retrieval.relatedness import SelectionVerdict, judge_selection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rag_pipeline.core.protocols import Embedder

SHORT_SELECTION_WORDS: Final = 10

UNRELATED_NOTICE: Final = (
    "Your selection does not answer this. Ask the whole book to search every chapter."
)
POSSIBLE_NOTICE: Final = (
    "If your selection does not answer this, ask the whole book to search every chapter."
)
SHORT_NOTICE: Final = (
    "The selection is short, so the answer has little to go on. Select more text, or ask the whole "
    "book to search every chapter."
)
_NOTICES: Final = {
    SelectionVerdict.UNRELATED: UNRELATED_NOTICE,
    SelectionVerdict.MAY_NOT_ANSWER: POSSIBLE_NOTICE,
}


def retrieve_selected(
    query: Query,
    threshold: float,
    site: SiteSettings,
    embedder: Embedder | None = None,
    sources: Sequence[Source] = (),
) -> RetrievalResult:
    """Return the selected text as the only passage, with score 1.

    The passage is returned even if the question is about something else. The result says so in
    `verdict` and `notice`, and the caller decides what to do.

    Args:
        query: A checked query in selected-text mode.
        threshold: The least share of the question's words in a selection that answers, 0 to 1.
        site: The site settings from which the URL of the citation is built.
        embedder: Compares the question and the selection by meaning as well. It must be the local
            textbook model. None compares only their words.
        sources: The sources of the site. The citation names the version and the language of the
            page with the selection, unless readers get them by default.

    Raises:
        QueryError: `source_url` of the query does not belong to the site.
    """
    text = _trim(query.selected_text or "")
    verdict, relatedness = judge_selection(query.question, text, threshold, embedder)
    notice = _NOTICES.get(verdict)
    if notice is None and count_words(text) < SHORT_SELECTION_WORDS:
        notice = SHORT_NOTICE
    source = find_source(sources, query.source_doc_path or "")
    if query.source_url:
        source = find_source_at(sources, query.source_url, site)
    metadata = _describe(query, text, site, source)
    citation = Citation(
        metadata.title,
        metadata.section_heading,
        metadata.url,
        metadata.module,
        metadata.chapter,
        *name_edition(metadata),
    )
    chunk = ScoredChunk(metadata.chunk_id, text, 1.0, metadata, citation)
    return RetrievalResult(
        (chunk,), query, Mode.SELECTED_TEXT_ONLY, 1, verdict, relatedness, notice
    )


def _trim(selection: str) -> str:
    """Return a selection without white space around it.

    The indentation of the first line is kept if another line has it too, because the lines may be
    code.
    """
    text = selection.strip()
    indentation = selection[: selection.index(text)].rpartition("\n")[2]
    return f"{indentation}{text}" if indentation and f"\n{indentation}" in text else text


def _link(query: Query, site: SiteSettings, source: Source | None) -> str:
    """Return the URL of the section with the selection, or "" if the document path is invalid.

    `source_url` of the query takes precedence over the URL that follows from its document path, and
    its anchor over the one that follows from the heading. A repeated heading has another anchor.
    """
    anchor = HeadingIds().next_id(2, query.source_section, None) if query.source_section else None
    source_url = link_source(query, site)
    if source_url is not None:
        page_url, _, named = source_url.partition("#")
        return source_url if named else link_to_anchor(page_url, anchor)
    try:
        doc_id = parse_doc_id(query.source_doc_path or "")
        page_url = build_doc_permalink(doc_id, site, source)
    except DocumentIdError:
        return ""
    return link_to_anchor(page_url, anchor)


def _describe(query: Query, text: str, site: SiteSettings, source: Source | None) -> ChunkMetadata:
    """Return the metadata of the selected text, which is in no collection."""
    doc_path, section = query.source_doc_path or "", query.source_section or ""
    path = find_place(source, doc_path)
    folders, stem = path.split("/")[:-1], posixpath.splitext(posixpath.basename(path))[0]
    named = folders[-1] if stem.lower() in {"index", "readme"} and folders else stem
    title = named.replace("-", " ").replace("_", " ").strip() or "Selected text"
    title = title[0].upper() + title[1:]
    return ChunkMetadata(
        chunk_id=hash_text(f"selection::{text}")[:16],
        doc_path=doc_path,
        module=folders[0] if folders else "",
        chapter=folders[1] if len(folders) > 1 else "",
        title=title,
        description="",
        section_heading=section,
        heading_breadcrumb=tuple(part for part in (title, section) if part),
        heading_level=0,
        anchor=None,
        url=_link(query, site, source),
        chunk_index=0,
        content_type=ContentType.PROSE.value,
        tags=(),
        learning_objectives=(),
        sidebar_label=title,
        sidebar_position=None,
        content_hash=hash_text(text),
        word_count=len(extract_words(text)),
        token_count=0,
        start_line=1,
        end_line=text.count("\n") + 1,
        start_byte=0,
        end_byte=len(text.encode()),
        ingested_at="",
        **show_edition(find_edition(source, doc_path)),
    )
