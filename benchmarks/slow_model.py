"""Run a chat model with OpenAI's API that takes its time, for measurements of the service.

    python benchmarks/slow_model.py [--seconds 1.5]

Prints its port on 127.0.0.1. An answer is 30 pieces of text, sent evenly over the given seconds.
`GET /open` returns the number of answers that are being written. Needs no package.
"""

from __future__ import annotations

import argparse
import asyncio
import json

_PIECES = 30
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def main() -> None:
    """Read the options and serve until the process is ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.5, help="duration of one answer")
    asyncio.run(_SlowModel(parser.parse_args().seconds).serve())


class _SlowModel:
    """A server that writes slow answers and counts those that are being written.

    Args:
        seconds: The duration of one answer.
    """

    def __init__(self, seconds: float) -> None:
        self._pause_s = seconds / _PIECES
        self._open = 0

    async def serve(self) -> None:
        """Print the port and answer until the process is ended."""
        server = await asyncio.start_server(self._handle, "127.0.0.1", 0, backlog=200)
        print(server.sockets[0].getsockname()[1], flush=True)
        await server.serve_forever()

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._respond(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        await reader.readexactly(int(headers.get("content-length", "0")))
        if head.startswith("get /open "):
            body = str(self._open).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body)
            await writer.drain()
            return
        self._open += 1
        try:
            await self._write_answer(reader, writer)
        finally:
            self._open -= 1

    async def _write_answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        gone = asyncio.create_task(reader.read())  # returns when the caller closes the connection
        try:
            writer.write(_HEAD)
            for number in range(_PIECES):
                done, _ = await asyncio.wait({gone}, timeout=self._pause_s)
                if done:
                    return
                writer.write(_encode_piece(is_last=number == _PIECES - 1))
                await writer.drain()
            writer.write(b"data: [DONE]\n\n")
            await writer.drain()
        finally:
            gone.cancel()


def _encode_piece(*, is_last: bool) -> bytes:
    finish = "stop" if is_last else None
    choice = {"index": 0, "delta": {"content": "word [1]. "}, "finish_reason": finish}
    event = {"id": "slow", "object": "chat.completion.chunk", "created": 0, "model": "slow"}
    return f"data: {json.dumps(event | {'choices': [choice]})}\n\n".encode()


if __name__ == "__main__":
    main()
