"""Searches, the table of contents, ratings and deletion."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi import Query as QueryParameter

from rag_pipeline.answering.quoting.passages import hide_section_solutions
from rag_pipeline.core.protocols import Rating
from rag_pipeline.retrieval.contents import (
    SectionText,
    count_filter_values,
    find_entries,
    read_contents,
    read_section,
    retrieve_explained,
)
from rag_pipeline.serving.api import bodies
from rag_pipeline.serving.api.problems import ProblemError, document_problems
from rag_pipeline.serving.api.service import Service, get_service
from rag_pipeline.serving.replies import AsciiJsonResponse, answer_disconnected, run_while_connected

_READING: Final = document_problems(422, 500, 503, 504)
_DELETING: Final = document_problems(404, 422, 429, 500, 503)
_LOOKING_UP: Final = document_problems(400, 415, 422, 429, 500, 503, 504)
_LOG_OFF: Final = "This service stores no answers, so it cannot store ratings."
_UNKNOWN: Final = "This answer is unknown. It may have expired or been deleted."

router = APIRouter(prefix="/v1")
_Shared = Annotated[Service, Depends(get_service)]
_Id = Annotated[str, Path(pattern=bodies.ID_PATTERN)]
_Address = Annotated[str, QueryParameter(max_length=2_000)]


@router.post("/search", responses={200: {"model": bodies.SearchBody}, **_LOOKING_UP})
async def search(request: Request, body: bodies.SearchRequest, service: _Shared) -> Response:
    """Find the passages that best match a question."""
    query = body.to_query()
    searching = service.read(lambda retriever: retrieve_explained(retriever, query))
    found = await run_while_connected(request.receive, searching)
    if found is None:
        return answer_disconnected()
    result, told = found
    notice = " ".join(told) or result.notice
    return AsciiJsonResponse(bodies.describe_search(replace(result, notice=notice)))


@router.get("/about", responses={200: {"model": bodies.AboutBody}})
async def describe_assistant(service: _Shared) -> Response:
    """Return the name of the assistant, what its source is called, and its language."""
    voice = service.assistant.voice
    return AsciiJsonResponse(
        {"name": voice.name, "source": voice.source, "language": voice.language}
    )


@router.get("/filters", responses={200: {"model": bodies.FiltersBody}, **_READING})
async def list_filters(service: _Shared) -> Response:
    """Return the values of each filter with their numbers of passages."""
    return AsciiJsonResponse({"filters": await service.read(count_filter_values)})


@router.get("/contents", responses={200: {"model": bodies.ContentsBody}, **_READING})
async def list_contents(
    service: _Shared,
    module: _Address | None = None,
    url: _Address | None = None,
    version: _Address | None = None,
    locale: _Address | None = None,
) -> Response:
    """Return pages with their sections in reading order: all, those of a module, or one by URL.

    The pages are those of the latest version in the default language, unless a version or a
    language is named.
    """
    pages = await service.read(
        lambda retriever: read_contents(retriever, module, url, version=version, locale=locale)
    )
    return AsciiJsonResponse({"pages": [bodies.describe_page(page) for page in pages]})


@router.get(
    "/sections", responses={200: {"model": SectionText}, **_READING, **document_problems(404)}
)
async def show_section(service: _Shared, url: _Address) -> Response:
    """Return the text of the section or page with a URL, without hidden solutions of a quiz."""
    section = await service.read(lambda retriever: read_section(retriever, url))
    if not service.assistant.voice.tells_solutions:
        section = hide_section_solutions(section)
    return AsciiJsonResponse(asdict(section))


@router.post("/glossary", responses={200: {"model": bodies.GlossaryBody}, **_LOOKING_UP})
async def look_up(body: bodies.GlossaryRequest, service: _Shared) -> Response:
    """Return the entries of the book's glossaries for the terms and symbols in a text."""
    entries = await service.read(lambda retriever: find_entries(retriever, body.text))
    return AsciiJsonResponse({"entries": [asdict(entry) for entry in entries]})


@router.post(
    "/feedback", status_code=204, responses=document_problems(400, 404, 415, 422, 429, 500, 503)
)
async def rate(body: bodies.FeedbackRequest, service: _Shared) -> None:
    """Store a rating of an answer; a later rating replaces it."""
    log = service.log
    if log is None:
        raise ProblemError(404, "QUESTION_LOG_OFF", _LOG_OFF)
    rating = Rating(body.answer_id, datetime.now(UTC), body.stars, tuple(body.tags), body.note)
    if not await service.run_log(lambda: log.rate(rating)):
        raise ProblemError(404, "ANSWER_UNKNOWN", _UNKNOWN)


@router.delete("/answers/{answer_id}", status_code=204, responses=_DELETING)
async def delete_answer(answer_id: _Id, service: _Shared) -> None:
    """Delete an answer and its rating from the question log."""
    if not await _delete(service, answer_id=answer_id):
        raise ProblemError(404, "ANSWER_UNKNOWN", _UNKNOWN)


@router.delete("/conversations/{conversation_id}", status_code=204, responses=_DELETING)
async def delete_conversation(conversation_id: _Id, service: _Shared) -> None:
    """Delete the answers of a conversation from the question log."""
    if not await _delete(service, conversation_id=conversation_id):
        detail = "This conversation is unknown. It may have expired or been deleted."
        raise ProblemError(404, "CONVERSATION_UNKNOWN", detail)


async def _delete(service: Service, **wanted: str) -> int:
    """Delete entries of the question log; return their number."""
    log = service.log
    return 0 if log is None else await service.run_log(lambda: log.delete(**wanted))
