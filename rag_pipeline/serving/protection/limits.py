"""The limits of what one client can make the service do. docs/how-to/serve.md lists them."""

from __future__ import annotations

from typing import Final

MAX_HEADERS: Final = 100
"""Headers of one request."""

MAX_HEAD_BYTES: Final = 32 * 1024
"""Bytes of the request line and all headers of one request."""

MAX_BODY_BYTES: Final = 256 * 1024
"""Bytes of the body of one request."""

FIRST_BYTE_S: Final = 10.0
"""Seconds from the connection to the first byte of a request."""

HEAD_S: Final = 10.0
"""Seconds from the first byte to the end of the headers."""

BODY_S: Final = 30.0
"""Seconds from the end of the headers to the end of the body."""

WRITE_S: Final = 30.0
"""Seconds in which a client reads nothing of a response that waits for it."""

KEEP_ALIVE_S: Final = 75
"""Seconds that an idle connection stays open.

That is longer than proxies keep theirs, usually 60 s. With uvicorn's own 5 s, a proxy or a busy
machine could send a question on a connection that was being closed.
"""

MAX_SELECTION_PARTS: Final = 2_000
"""Lines and sentences of a selected text. A page of 20,000 characters has about 400."""

QUOTE_S: Final = 20.0
"""Seconds for choosing and quoting passages, the wait for a thread included."""

ANSWER_S: Final = 600.0
"""Seconds for the whole text of a model. What it has not written by then is quoted."""

MAX_CONNECTIONS: Final = 512
"""Open connections. For a new one, the connection is closed that has been idle for longest."""

CLIENT_WAITING: Final = 20
"""Questions of one client that wait for others of it (SERVE_CLIENT_ANSWERS). More are refused."""

READ_RATE: Final = "600/minute"
"""The highest rate of other requests of one client to the API, such as those for sections."""

KEY_RATE: Final = "20/minute"
"""The highest rate of wrong keys of one client."""
