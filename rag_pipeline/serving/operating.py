"""The routes for operators: `/healthz`, `/readyz` and `/metrics`."""

from __future__ import annotations

import math
from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse, Response

from rag_pipeline.core.errors import RagPipelineError
from rag_pipeline.core.errors.hiding import describe_kind
from rag_pipeline.serving.api.problems import describe_error, make_problem
from rag_pipeline.serving.metrics import CONTENT_TYPE
from rag_pipeline.serving.state import Service, get_service

router = APIRouter()
_Shared = Annotated[Service, Depends(get_service)]
_NO_STORE = {"Cache-Control": "no-store"}


@router.get("/healthz")
async def report_health() -> dict[str, str]:
    """Return that the process is alive."""
    return {"status": "ok"}


@router.get("/readyz", response_model=None)
async def report_readiness(service: _Shared) -> Response:
    """Return the status 200 if questions can be answered, and otherwise 503 with the reason."""
    error = await service.readiness.check()
    if error is None:
        return JSONResponse({"status": "ready"}, headers=_NO_STORE)
    code, message, _transient, wait_s = describe_error(error)
    if not isinstance(error, RagPipelineError):
        message = f"The check whether questions can be answered failed ({describe_kind(error)})."
    headers = _NO_STORE if wait_s is None else _NO_STORE | {"Retry-After": str(math.ceil(wait_s))}
    return make_problem(503, code, message, headers=dict(headers))


@router.get("/metrics", include_in_schema=False)
async def report_metrics(service: _Shared) -> Response:
    """Return the metrics in the text format of Prometheus."""
    return Response(service.metrics.render(), media_type=CONTENT_TYPE)
