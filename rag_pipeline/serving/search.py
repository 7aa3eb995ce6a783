"""Searches, the table of contents, ratings and deletion."""

# ruff: noqa: TC001  # FastAPI reads the annotations at run time

from __future__ import annotations

from dataclasses import asdict, is_dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, HTTPException
from fastapi.concurrency import run_in_threadpool

from rag_pipeline import retrieval
from rag_pipeline.core.protocols.question_log import Rating
from rag_pipeline.retrieval.queries import Query
from rag_pipeline.serving.messages import FeedbackRequest, SearchRequest
from rag_pipeline.serving.state import Service, get_service

router = APIRouter(prefix="/v1")
_Shared = Annotated[Service, Depends(get_service)]
_NO_CONTENT: Final = 204


@router.post("/search")
async def search(body: SearchRequest, service: _Shared) -> dict[str, Any]:
    """Find the passages that best match a question."""
    filters = body.filters.to_filters() if body.filters else None
    query = Query(body.question, filters=filters, top_k=body.top_k)
    result = await service.assistant.retriever.aretrieve(query)
    return {
        "search_question": result.search_question,
        "index_id": getattr(result, "index_id", ""),
        "total_candidates": result.total_candidates,
        "results": [
            {
                "chunk_id": chunk.chunk_id,
                "text": chunk.text,
                "score": chunk.score,
                **asdict(chunk.citation),
                "content_type": chunk.metadata.content_type,
            }
            for chunk in result.chunks
        ],
    }


@router.get("/filters")
async def list_filters(service: _Shared) -> dict[str, Any]:
    """Return the values of each filter with their numbers of passages."""
    return {"filters": await _read(service, "count_filter_values")}


@router.get("/contents")
async def list_contents(service: _Shared, module: str | None = None) -> dict[str, Any]:
    """Return the pages and sections of the book in reading order."""
    return {"pages": await _read(service, "read_contents", module)}


@router.get("/sections")
async def show_section(service: _Shared, url: str) -> dict[str, Any]:
    """Return the text of the section or page with a URL."""
    section: dict[str, Any] = await _read(service, "read_section", url)
    return section


@router.post("/feedback", status_code=_NO_CONTENT)
def rate(body: FeedbackRequest, service: _Shared) -> None:
    """Store a rating of an answer; a later rating replaces it."""
    stars = body.rating or {"up": 5, "down": 1}.get(body.thumb or "")
    if stars is None:
        raise HTTPException(400)
    rating = Rating(body.answer_id, datetime.now(UTC), stars, tuple(body.tags), body.note)
    if service.log is None or not service.log.rate(rating):
        raise HTTPException(404)


@router.delete("/answers/{answer_id}", status_code=_NO_CONTENT)
def delete_answer(answer_id: str, service: _Shared) -> None:
    """Delete an answer and its rating from the question log."""
    if service.log is None or not service.log.delete(answer_id=answer_id):
        raise HTTPException(404)


@router.delete("/conversations/{conversation_id}", status_code=_NO_CONTENT)
def delete_conversation(conversation_id: str, service: _Shared) -> None:
    """Delete a conversation from memory and from the question log."""
    known = service.conversations.delete(conversation_id)
    logged = service.log.delete(conversation_id=conversation_id) if service.log else 0
    if not known and not logged:
        raise HTTPException(404)


async def _read(service: Service, name: str, *arguments: object) -> Any:  # noqa: ANN401  # JSON of several shapes
    """Call a function of the retrieval library in another thread, and return plain data."""
    found = await run_in_threadpool(
        getattr(retrieval, name), service.assistant.retriever, *arguments
    )
    if isinstance(found, tuple):
        return [asdict(entry) for entry in found]
    return asdict(found) if is_dataclass(found) and not isinstance(found, type) else found
