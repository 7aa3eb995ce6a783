"""The base of all errors, and errors of the set-up."""

from __future__ import annotations

import copyreg
from typing import Any


class RagPipelineError(Exception):
    """Base of all errors raised on purpose.

    Attributes:
        code: Stable upper-case name for machines.
        http_status: Status a web backend answers with.
        exit_code: 1 when the work fell short, 2 for bad usage or configuration.
        transient: True when the same call may succeed later.
        retry_after_s: How long a service asked to wait; None where none did.
    """

    code = "RAG_PIPELINE_ERROR"
    http_status = 500
    exit_code = 1
    transient = False
    retry_after_s: float | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy without the constructor, whose arguments are not kept: a process pool that cannot
        read an error back breaks for all its callers.
        """
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]  # pickle's own way, not in the stubs


class ConfigurationError(RagPipelineError):
    """A setting is missing or wrong."""

    code = "CONFIGURATION_ERROR"
    exit_code = 2

    def __init__(self, setting: str, problem: str, mend: str) -> None:
        self.setting = setting
        super().__init__(f"{setting}: {problem}. {mend}")


class MissingDependencyError(RagPipelineError):
    """An optional package is not installed."""

    code = "DEPENDENCY_MISSING"
    exit_code = 2

    def __init__(self, package: str, extra: str) -> None:
        self.package = package
        super().__init__(
            f"the package {package} is not installed. Install it with `pip install "
            f"'rag-pipeline[{extra}]'`"
        )
