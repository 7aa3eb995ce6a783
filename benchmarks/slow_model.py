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
_open: set[object] = set()  # the answers that are being written


def main() -> None:
    """Read the options and serve until the process is ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.5, help="duration of one answer")
    asyncio.run(_serve(parser.parse_args().seconds))


async def _serve(seconds: float) -> None:
    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await _respond(reader, writer, seconds)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, backlog=200)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def _respond(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float
) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    headers = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
    await reader.readexactly(int(headers.get("content-length", "0")))
    if head.startswith("GET /open "):
        body = str(len(_open)).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body)
        await writer.drain()
        return
    await _write_answer(reader, writer, seconds)


async def _write_answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float
) -> None:
    ticket = object()
    _open.add(ticket)
    gone = asyncio.create_task(reader.read())  # returns when the caller closes the connection
    try:
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        )
        for number in range(_PIECES):
            done, _ = await asyncio.wait({gone}, timeout=seconds / _PIECES)
            if done:
                return
            finish = "stop" if number == _PIECES - 1 else None
            choice = {"index": 0, "delta": {"content": "word [1]. "}, "finish_reason": finish}
            event = {
                "id": "slow",
                "object": "chat.completion.chunk",
                "created": 0,
                "model": "slow",
                "choices": [choice],
            }
            writer.write(f"data: {json.dumps(event)}\n\n".encode())
            await writer.drain()
        writer.write(b"data: [DONE]\n\n")
        await writer.drain()
    finally:
        gone.cancel()
        _open.discard(ticket)


if __name__ == "__main__":
    main()
