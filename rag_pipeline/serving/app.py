"""The HTTP service: its routes and shared parts are put together here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import FastAPI

from rag_pipeline.serving import answers, search
from rag_pipeline.serving.conversations import Conversations
from rag_pipeline.serving.problems import add_problem_handlers
from rag_pipeline.serving.state import Service

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.answering.assistant import Assistant
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.serving.state import AnswerLog


def create_app(
    settings: Settings,
    assistant: Assistant,
    *,
    log: AnswerLog | None = None,
    site_dir: Path | None = None,
) -> FastAPI:
    """Return the service over an assistant.

    Args:
        settings: The settings of the process.
        assistant: Answers the questions. The caller closes it.
        log: Writes the question log; None logs nothing.
        site_dir: Folder of the built site to serve on the same port; None serves no site.
    """
    app = FastAPI(title="RoboTutor", docs_url=None, redoc_url=None)
    app.state.service = Service(assistant, settings, Conversations(), log)
    add_problem_handlers(app)
    app.include_router(answers.router)
    app.include_router(search.router)
    app.add_api_route("/healthz", report_health, methods=["GET"])
    del site_dir  # the site is mounted last, after every other route
    return app


async def report_health() -> dict[str, str]:
    """Return that the process is alive."""
    return {"status": "ok"}
