"""Measure the time of one `rag-pipeline query` process, in total and step by step.

    python benchmarks/query_startup.py [--runs 7] [--against OTHER/.venv/bin/rag-pipeline]

Run `rag-pipeline ingest` first. Each run is a new process. Compare the processor times, because the
wall times depend on the load of the machine. With `--against`, the command of another checkout runs
alternately with this one, and the ratio of their times is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

_QUESTION = "What is a digital twin?"
_STEPS = {
    "command line (typer)": "import rag_pipeline.cli, typer",
    "settings (pydantic)": "from rag_pipeline.core.settings import load_settings\n"
    "settings = load_settings()",
    "commands": "import rag_pipeline.cli.app",
    "NumPy": "import numpy",
    "retrieval and answering": "import rag_pipeline.answering.assistant\n"
    "import rag_pipeline.retrieval.retriever",
    "store's engine": "import rag_pipeline.adapters.stores.edge_catalog",
    "ONNX Runtime, tokenizers": "import onnxruntime, tokenizers",
    "retriever": "from rag_pipeline.retrieval import Query, open_retriever\n"
    "retriever = open_retriever(settings)",
    "model: weights, tokenizer": "from rag_pipeline.adapters.embedders import local\n"
    "local._get_model(settings.embedding_model or local.TEXTBOOK)",
    "opening the store": "use = retriever.session.use()\nuse.__enter__()",
    "first search": f"retriever.retrieve(Query({_QUESTION!r}))",
    "answer, with a second search": "from rag_pipeline.answering import answer\n"
    f"answer({_QUESTION!r}, retriever=retriever)",
    "closing the store": "use.__exit__(None, None, None)\nretriever.close()",
}
_MARKING = """
import gc, json, os, time
gc.set_threshold(50_000)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
marks = []
def mark():
    marks.append((time.process_time(), time.perf_counter()))
mark()
{steps}
gc.freeze()
print(json.dumps(marks))
"""


def main() -> None:
    """Read the options, run the measurements and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=7, help="number of runs of each command")
    parser.add_argument("--against", help="rag-pipeline command of another checkout")
    arguments = parser.parse_args()
    commands = [str(Path(sys.executable).with_name("rag-pipeline"))]
    if arguments.against:
        commands.append(arguments.against)
    runs = [
        [_run([command, "query", _QUESTION]) for command in commands] for _ in range(arguments.runs)
    ]
    for at, command in enumerate(commands):
        cpu_s = [run[at][0] for run in runs]
        wall_s = [run[at][1] for run in runs]
        print(command)
        print(f"  processor {min(cpu_s):6.2f} s best {statistics.median(cpu_s):6.2f} s median")
        print(f"  wall      {min(wall_s):6.2f} s best {statistics.median(wall_s):6.2f} s median")
    if arguments.against:
        for name, at in (("processor", 0), ("wall", 1)):
            ratio = statistics.median(own[at] / other[at] for own, other in runs)
            print(f"{name} time, this one / the other: {ratio:.2f} median")
    _print_steps(arguments.runs)
    print(f"load of the machine, 1 minute: {os.getloadavg()[0]:.1f}")


def _run(command: list[str]) -> tuple[float, float]:
    """Run a command and return its processor time and its wall time, in seconds."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu_s, time.perf_counter() - start


def _print_steps(count: int) -> None:
    code = _MARKING.format(steps="\n".join(f"{step}\nmark()" for step in _STEPS.values()))
    marked, finals = [], []
    for _ in range(count):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        marks = json.loads(done.stdout)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        marked.append(marks)
        finals.append(spent - marks[-1][0])
    print("steps in order, best of all runs:                     processor      wall")
    print(f"  {'interpreter':50} {min(marks[0][0] for marks in marked) * 1000:7.0f} ms")
    for at, name in enumerate(_STEPS, 1):
        cpu_s, wall_s = (
            min(marks[at][clock] - marks[at - 1][clock] for marks in marked) for clock in (0, 1)
        )
        print(f"  {name:50} {cpu_s * 1000:7.0f} ms {wall_s * 1000:6.0f} ms")
    print(f"  {'end of the process':50} {min(finals) * 1000:7.0f} ms")


if __name__ == "__main__":
    main()
