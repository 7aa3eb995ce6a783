"""Evaluate the book with the vectors of another model, served over the protocol of OpenAI.

The script starts a server on 127.0.0.1 that embeds with an ONNX model, ingests the book through it,
and runs the evaluation of `rag-pipeline evaluate`, without a chat model:

    .venv/bin/python -m benchmarks.embedding_service
    .venv/bin/python -m benchmarks.embedding_service --model-dir DIR --docs-dir D --data-dir X

It shows if search and refusals work for an embedding model for which no rule was measured. A folder
given with `--data-dir` is kept, so that a second run embeds only questions.
"""

from __future__ import annotations

import argparse
import base64
import tempfile
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Final

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from rag_pipeline.answering import apply_grounding_policy
from rag_pipeline.cli.ingesting import ingest_changes, open_ingestion
from rag_pipeline.core.settings import Settings, load_settings
from rag_pipeline.evaluation.book import BookEvaluation, evaluate_book
from rag_pipeline.evaluation.pages import to_text
from rag_pipeline.evaluation.rendering import describe_answers, describe_gates, describe_measures
from rag_pipeline.retrieval import Query, open_retriever
from rag_pipeline_tests.answering import calibration_questions as extra
from rag_pipeline_tests.loopback import Received, Reply, serve

ANY_KEY: Final = "local"  # pragma: allowlist secret  # the server checks no key
PART_TOKENS: Final = 254
"""Longer texts are embedded in parts of this many tokens; their vector is the mean of the parts."""


class OnnxModel:
    """A BERT model with the files `model.onnx` and `tokenizer.json` in one folder."""

    def __init__(self, folder: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._first, self._last = self._tokenizer.encode("").ids
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options)

    @cache  # noqa: B019  # the model lives as long as the process
    def embed(self, text: str) -> bytes:
        """Return the unit vector of a text as float32 bytes."""
        ids = self._tokenizer.encode(text, add_special_tokens=False).ids
        sums = []
        for start in range(0, max(len(ids), 1), PART_TOKENS):
            part = np.array([[self._first, *ids[start : start + PART_TOKENS], self._last]])
            inputs = {"input_ids": part, "attention_mask": part * 0 + 1, "token_type_ids": part * 0}
            (vectors,) = self._session.run(None, inputs)
            sums.append(np.asarray(vectors)[0].sum(axis=0))
        vector = np.sum(sums, axis=0)
        return bytes((vector / np.linalg.norm(vector)).astype("<f4"))

    def reply(self, request: Received) -> Reply:
        """Answer a request to `/v1/embeddings`."""
        data = [
            {"object": "embedding", "index": at, "embedding": self._encode(text, request.body)}
            for at, text in enumerate(request.body["input"])
        ]
        count = sum(len(text) // 4 for text in request.body["input"])
        usage = {"prompt_tokens": count, "total_tokens": count}
        body = {"object": "list", "data": data, "model": request.body["model"], "usage": usage}
        return Reply(body=body)

    def _encode(self, text: str, body: dict[str, str]) -> str | list[float]:
        vector = self.embed(text)
        if body.get("encoding_format") == "base64":
            return base64.b64encode(vector).decode()
        return [float(value) for value in np.frombuffer(vector, "<f4")]


def evaluate_served(settings: Settings) -> BookEvaluation:
    """Ingest the book with the served model, and evaluate search and answers without a model."""

    def ingest() -> None:
        ingest_changes(open_ingestion(settings))

    return evaluate_book(settings, ingest=ingest)


def count_answered(settings: Settings, questions: tuple[str, ...]) -> int:
    """Return how many of the questions the grounding policy finds answered by the book."""
    with open_retriever(settings) as retriever:
        return sum(
            apply_grounding_policy(retriever.retrieve(Query(one)), one).sufficient_context
            for one in questions
        )


def main() -> None:
    """Run the evaluation, and print its figures and those of the calibration questions."""
    parser = argparse.ArgumentParser(description=__doc__)
    vendored = Path(str(files("rag_pipeline") / "data" / "minilm"))
    parser.add_argument("--model-dir", type=Path, default=vendored)
    parser.add_argument("--docs-dir", default="website/docs")
    parser.add_argument("--data-dir", type=Path)
    arguments = parser.parse_args()
    model = OnnxModel(arguments.model_dir)
    dim = len(model.embed("dimension")) // 4
    with tempfile.TemporaryDirectory() as scratch, serve(model.reply) as server:
        settings = load_settings(
            docs_dir=arguments.docs_dir,
            data_dir=str(arguments.data_dir or scratch),
            qdrant_url="",
            embedding_provider="openai",
            embedding_model="minilm-served",
            embedding_dim=dim,
            embedding_batch_size=16,
            embedding_timeout_s=600,  # the server shares the processor with the client
            openai_base_url=f"{server.url}/v1",
            openai_api_key=ANY_KEY,
        )
        evaluation = evaluate_served(settings)
        print(to_text(describe_gates(evaluation.report, evaluation.gates)))
        print(to_text(describe_measures(evaluation.report)))
        if evaluation.answers is not None:
            print(to_text([describe_answers(evaluation.answers)]))
        for name, questions in (("near", extra.NEAR), ("far", extra.FAR)):
            answered = count_answered(settings, questions)
            refused = len(questions) - answered
            print(f"calibration questions, {name}: {refused} of {len(questions)} refused")
        print(f"requests to the server: {len(server.received)}")


if __name__ == "__main__":
    main()
