"""Measure the prompts of written answers, and the time until a reader sees the first sentence.

`python benchmarks/answer_prompts.py` reads the settings and needs an index. For each size of a
model's context, it prints the tokens of the largest prompt of all golden questions, and of its
marks. A scripted server then stands in for a model: it sends the first sentence and waits. The time
from the end of this sentence to the first text is printed as wall and as processor time.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import re
import statistics
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files

from rag_pipeline.adapters.chat_model import OpenAIChatModel
from rag_pipeline.answering import Assistant, Level, open_assistant
from rag_pipeline.answering.prompts import build_prompt
from rag_pipeline.core.text.terms import count_tokens
from rag_pipeline.retrieval import Query

CONTEXTS = (4_096, 8_192)
ANSWER_TOKENS = 800
MARGIN = 1.25  # of an unknown tokenizer
MARK = re.compile(r"^=== .* ===$", re.MULTILINE)
PACE_S = 0.01
PAUSE_S = 0.5  # after the text; a first text after this pause means that no end was recognized


def count(text: str) -> int:
    """Return the tokens that a prompt is reckoned with for a model with an unknown tokenizer."""
    return math.ceil(count_tokens(text) * MARGIN)


class Server(BaseHTTPRequestHandler):
    """A model that writes one sentence, word by word, and then waits for a while."""

    sentence = ""
    sent_s = 0.0

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        """Tell nothing about the model."""
        self.send_error(404)

    def do_POST(self) -> None:
        """Write the sentence."""
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for piece in re.findall(r"\S+\s*", f"{Server.sentence} The"):
            Server.sent_s = time.perf_counter()
            event = {"choices": [{"delta": {"content": piece}}]}
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
            time.sleep(PACE_S)
        time.sleep(PAUSE_S)
        with contextlib.suppress(OSError):  # the reader has what it wants
            self.wfile.write(b"data: [DONE]\n\n")


async def time_first(assistant: Assistant, question: str) -> tuple[float, float] | None:
    """Return the wall and processor milliseconds until the first text; None without an answer."""
    prepared = await assistant.aprepare(Query(question))
    if prepared.grounding.level is not Level.ANSWERED:
        return None
    text = prepared.grounding.sources[0].text
    found = re.search(r"^[A-Z][^.!?\n`|]{40,200}\.(?=\s)", text, re.MULTILINE)
    if found is None:
        return None
    Server.sentence = found.group()
    stream = await assistant.awrite(prepared)
    async with stream:
        reading = asyncio.ensure_future(anext(stream, ""))
        spent = time.process_time()
        shown = await reading
        waited = time.perf_counter() - Server.sent_s
        spent = time.process_time() - spent
    return (1000 * waited, 1000 * spent) if shown.startswith(found.group()[:20]) else None


def main() -> None:
    """Print the figures."""
    path = files("rag_pipeline.evaluation") / "golden" / "questions.json"
    questions = [one["question"] for one in json.loads(path.read_text("utf-8"))["queries"]]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with open_assistant() as assistant:
        assistant.chat_model = OpenAIChatModel(
            model="scripted",
            api_key="",
            base_url=f"http://127.0.0.1:{server.server_port}/v1",
            timeout_s=30,
            max_tokens=ANSWER_TOKENS,
        )
        prepared = [assistant.prepare(Query(question)) for question in questions]
        for context in CONTEXTS:
            room, sizes, marks = context - ANSWER_TOKENS, [], []
            for one in prepared:
                prompt = build_prompt(one.grounding, one.question, count_tokens=count, room=room)
                text = "\n".join(message.content for message in prompt.messages)
                sizes.append(count(text))
                marks.append(sum(count_tokens(mark) for mark in MARK.findall(text)))
            print(
                f"context {context}: largest prompt {max(sizes)} of {room} tokens, median "
                f"{statistics.median(sizes):.0f}; marks at most {max(marks)} tokens; "
                f"{sum(size > room for size in sizes)} of {len(sizes)} prompts are too large"
            )
        timed = [asyncio.run(time_first(assistant, question)) for question in questions[::12]]
        wall, spent = zip(*[one for one in timed if one is not None], strict=True)
        print(
            f"first text of {len(wall)} answers after the end of the first sentence: median "
            f"{statistics.median(wall):.1f} ms, highest {max(wall):.1f} ms, "
            f"{sum(ms >= 1000 * PAUSE_S for ms in wall)} not recognized; processor time of the "
            f"whole wait: median {statistics.median(spent):.1f} ms"
        )


if __name__ == "__main__":
    main()
