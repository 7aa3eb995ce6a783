"""Giving up on an answer that trickles in: an HTTP client's own time limit begins anew with every
byte.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType


def limit_answers(http: ModuleType, seconds: float) -> dict[str, list[Callable[[Any], None]]]:
    """Event hooks by which a client gives the body of an answer so long, however it comes in.

    Args:
        http: `httpx`, or `httpx2` for a client of that.
        seconds: From the end of the head; the first byte behind them raises the module's own
            ReadTimeout.
    """

    class Limited(http.SyncByteStream):  # type: ignore[misc, name-defined]  # of either module
        def __init__(self, stream: Any) -> None:  # noqa: ANN401  # a stream of that module
            self._stream = stream
            self._deadline = time.monotonic() + seconds

        def __iter__(self) -> Iterator[bytes]:
            for part in self._stream:
                if time.monotonic() > self._deadline:
                    message = f"the answer took longer than {seconds:g} s"
                    raise http.ReadTimeout(message)
                yield part

        def close(self) -> None:
            self._stream.close()

    def limit(response: Any) -> None:  # noqa: ANN401  # a response of that module
        response.stream = Limited(response.stream)

    return {"response": [limit]}
