"""The base class of all errors, and the errors of configuration and installation."""

from __future__ import annotations

import copyreg
import shlex
import sys
from pathlib import PurePath
from typing import Any

from rag_pipeline.core.errors.hiding import hide_places


class RagPipelineError(Exception):
    """Base class of all errors that this package raises on purpose.

    Attributes:
        code: Stable upper-case name of the error for programs, such as `STORE_LOCKED`.
        http_status: HTTP status that a web backend should answer with.
        exit_code: Exit code of the command line: 1 if the work failed, 2 if the usage or the
            configuration is wrong.
        transient: True if the same call may succeed later without any change.
        retry_after_s: Seconds to wait before the next try; None if no time is known.
        path_name: Text that replaces absolute paths in the public message, such as the name of the
            setting that they come from. If None, the paths are kept, because the caller sent them.
    """

    code = "RAG_PIPELINE_ERROR"
    http_status = 500
    exit_code = 1
    transient = False
    retry_after_s: float | None = None
    path_name: str | None = "a local path"

    @property
    def public_message(self) -> str:
        """The message as clients of a service may see it: without absolute paths and passwords."""
        if self.path_name is None:
            return str(self)
        known = (str(value) for value in vars(self).values() if isinstance(value, PurePath))
        return hide_places(str(self), self.path_name, known)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the data with which `pickle` and `copy` rebuild the error without its constructor.

        Without this method, they would call the constructor with the message instead of its own
        arguments. That fails, and a process pool that cannot unpickle an error stops working.
        """
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]  # pickle uses it, but the stubs lack it


class ConfigurationError(RagPipelineError):
    """A required setting or command line option is missing, or its value is invalid or rejected.

    Attributes:
        setting: Name of the setting or option, such as `QDRANT_URL` or `--site`.
    """

    code = "CONFIGURATION_ERROR"
    exit_code = 2

    def __init__(self, setting: str, problem: str, remedy: str) -> None:
        self.setting = setting
        self.path_name = "the given path"
        super().__init__(f"{setting}: {problem}. {remedy}")


class MissingDependencyError(RagPipelineError):
    """An optional Python package that the requested feature needs is not installed.

    Attributes:
        package: Name of the package that cannot be imported.
    """

    code = "DEPENDENCY_MISSING"
    exit_code = 2

    def __init__(self, package: str, extra: str | None = None) -> None:
        self.package = package
        wanted = package if extra is None else f"'rag-pipeline[{extra}]'"
        python = shlex.quote(sys.executable or "python")  # another pip may be first on the PATH
        super().__init__(
            f"the package {package} is not installed. Install it with `{python} -m pip install "
            f"{wanted}`"
        )
