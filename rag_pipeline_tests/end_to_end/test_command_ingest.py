"""Tests of `rag-pipeline ingest` as users run it, on Dagster's own instance."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from queue import Queue
from threading import Event
from typing import TYPE_CHECKING, Any

import dagster as dg
import pytest

from rag_pipeline_tests.book import make_page, make_paragraph
from rag_pipeline_tests.end_to_end.command import (
    Command,
    Outcome,
    assert_one_line,
    embed,
    finish,
    make_command,
)
from rag_pipeline_tests.loopback import LoopbackServer, Received, Reply, find_closed_port, serve

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LARGE = "module-1/large.md"
BROKEN = "---\ntitle: [\n---\n"


def counts(report: dict[str, Any], *names: str) -> list[Any]:
    """Return some figures of a report, in the order of the names."""
    return [report[name] for name in names]


def test_a_first_ingest_indexes_all_pages_and_a_second_finds_no_changes(
    call: Callable[..., Outcome], server: LoopbackServer
) -> None:
    first = call("ingest", "--json")
    assert (first.code, first.err) == (0, "")
    assert set(first.json) >= {
        "docs_discovered",
        "docs_processed",
        "docs_unchanged",
        "docs_failed",
        "docs_deleted",
        "chunks_created",
        "chunks_updated",
        "chunks_unchanged",
        "chunks_deleted",
        "texts_embedded",
        "embeddings_reused",
        "tokens_embedded",
        "duration_s",
        "stage_seconds",
        "failures",
    }
    names = ("docs_processed", "chunks_created", "texts_embedded", "docs_failed")
    assert counts(first.json, *names) == [3, 9, 9, 0]
    requests = len(server.received)
    second = call("ingest", "--json")
    names = ("docs_processed", "docs_unchanged", "chunks_unchanged", "texts_embedded")
    assert (second.code, counts(second.json, *names)) == (0, [0, 3, 9, 0])
    written = ("chunks_created", "chunks_updated", "chunks_deleted")
    assert counts(second.json, *written) == [0, 0, 0]
    assert len(server.received) == requests


def test_only_the_broken_page_fails_and_the_next_ingest_tries_it_again(
    call: Callable[..., Outcome], command: Command
) -> None:
    command.book.write("broken.md", BROKEN)
    first = call("ingest", "--json")
    assert first.code == 1
    assert counts(first.json, "docs_processed", "docs_failed") == [3, 1]
    (failure,) = first.json["failures"]
    assert set(failure) == {"doc_path", "stage", "error", "message"}
    assert (failure["doc_path"], failure["error"]) == ("broken.md", "FrontMatterError")
    assert "line" in failure["message"]
    again = call("ingest")
    assert again.code == 1
    assert "FAILED broken.md: " in again.out
    assert "Traceback" not in again.out + again.err
    command.book.write("broken.md", "---\ntitle: Whole\n---\n\nText.\n")
    repaired = call("ingest", "--json")
    assert (repaired.code, repaired.json["docs_processed"]) == (0, 1)
    assert call("stats", "--json").json["failed_doc_count"] == 0


def test_many_documents_are_split_into_runs_with_one_report(
    call: Callable[..., Outcome], command: Command
) -> None:
    command.book.write("broken.md", BROKEN)
    report = call("ingest", "--json", INGEST_RUN_DOCS="1").json
    names = ("docs_discovered", "docs_processed", "docs_unchanged", "docs_failed", "chunks_created")
    assert counts(report, *names) == [4, 3, 0, 1, 9]
    assert [failure["doc_path"] for failure in report["failures"]] == ["broken.md"]
    command.book.move("intro.md", "zz/moved.md")
    command.book.edit(LARGE, "## Two", "## Duo")
    report = call("ingest", "--json", INGEST_RUN_DOCS="1").json
    names = ("docs_processed", "docs_unchanged", "docs_deleted", "docs_failed", "texts_embedded")
    assert counts(report, *names) == [2, 1, 1, 1, 1]


def test_one_document_can_be_ingested_by_name(
    call: Callable[..., Outcome], command: Command
) -> None:
    first = call("ingest-doc", f"./{LARGE}", "--json")
    assert (first.code, first.json["docs_processed"]) == (0, 1)
    again = call("ingest-doc", LARGE, "--json")
    assert (again.code, again.json["chunks_unchanged"], again.json["texts_embedded"]) == (0, 6, 0)
    (command.book.docs / LARGE).unlink()
    gone = call("ingest-doc", LARGE, "--json")
    assert (gone.code, gone.json["docs_deleted"], gone.json["chunks_deleted"]) == (0, 1, 6)
    missing = call("ingest-doc", "nowhere.md", "--json")
    assert missing.code == 1
    assert missing.json["failures"][0]["error"] == "DocumentMissing"
    assert "tried again" not in call("ingest-doc", "nowhere.md").out
    assert_one_line(call("ingest-doc", "../x.md"), 2, "../x.md")


def test_another_model_is_refused_until_a_rebuild_and_can_be_rolled_back(
    call: Callable[..., Outcome],
) -> None:
    first = call("ingest", "--json").json["collection_id"]
    other = {"EMBEDDING_MODEL": "text-embedding-3-large"}
    refused = call("ingest", **other)
    assert_one_line(refused, 2, "text-embedding-3-small", "text-embedding-3-large", "--rebuild")
    assert "EMBEDDING_PROVIDER=openai and EMBEDDING_MODEL=text-embedding-3-small" in refused.err
    assert refused.out == ""
    as_json = call("ingest", "--json", **other)
    assert as_json.json["error"]["code"] == "EMBEDDING_SPACE_MISMATCH"
    rebuilt = call("ingest", "--rebuild", "--json", **other)
    assert (rebuilt.code, rebuilt.json["docs_processed"]) == (0, 3)
    assert rebuilt.json["collection_id"] != first
    assert call("stats", "--json", **other).json["model"] == "text-embedding-3-large"
    assert call("ingest", "--json", **other).json["docs_unchanged"] == 3
    assert call("ingest", "--roll-back", "--json").json == {"collection_id": first}
    back = call("ingest", "--json")
    assert (back.code, back.json.get("docs_unchanged")) == (0, 3), back
    assert call("ingest", "--roll-back", "--json").json["collection_id"] != first


@pytest.mark.parametrize("option", ["--rebuild", "--prune-cache"])
def test_the_roll_back_option_cannot_be_combined_with_others(
    call: Callable[..., Outcome], option: str
) -> None:
    assert_one_line(call("ingest", "--roll-back", option), 2, "--roll-back", option)


def test_a_rebuild_with_a_broken_page_changes_nothing(
    call: Callable[..., Outcome], command: Command
) -> None:
    assert_one_line(call("ingest", "--roll-back"), 1, "no previous collection", "ingest --rebuild")
    first = call("ingest", "--json").json["collection_id"]
    command.book.write("broken.md", BROKEN)
    assert_one_line(call("ingest", "--rebuild"), 1, "broken.md", "front matter", "stays in use")
    assert call("stats", "--json").json["collection_id"] == first


@pytest.mark.parametrize(
    ("changes", "code", "texts"),
    [
        pytest.param({"DOCS_DIR": "nowhere"}, 2, ["nowhere", "DOCS_DIR"], id="no_folder"),
        pytest.param({"OPENAI_API_KEY": ""}, 2, ["OPENAI_API_KEY"], id="no_key"),
        pytest.param({"CHUNK_MIN_TOKENS": "0"}, 2, ["CHUNK_MIN_TOKENS"], id="bad_setting"),
        pytest.param({"EMBEDDING_PRICES": ""}, 2, ["EMBEDDING_PRICES"], id="no_json"),
        pytest.param(
            {"QDRANT_URL": f"http://127.0.0.1:{find_closed_port()}"}, 1, ["127.0.0.1"], id="server"
        ),
    ],
)
def test_a_wrong_setting_gives_one_line_that_names_it(
    call: Callable[..., Outcome], changes: dict[str, str], code: int, texts: list[str]
) -> None:
    assert_one_line(call("ingest", **changes), code, *texts)


def test_a_docs_folder_without_pages_is_named(
    call: Callable[..., Outcome], command: Command
) -> None:
    (command.root / "none").mkdir()
    told = call("ingest", "--docs-dir", "none", SITE_BASE_URL="")
    assert_one_line(told, 2, "none", ".md or .mdx")


def test_an_empty_docs_folder_option_is_not_the_current_folder(
    call: Callable[..., Outcome],
) -> None:
    assert_one_line(call("chunks", "--docs-dir", ""), 2, "DOCS_DIR", "blank")


def test_a_refused_api_key_gives_one_line(call: Callable[..., Outcome]) -> None:
    body = {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}
    with serve([Reply(401, body)]) as refusing:
        outcome = call("ingest", OPENAI_BASE_URL=f"{refusing.url}/v1")
    assert_one_line(outcome, 2, "OPENAI_API_KEY")
    assert "test-key" not in outcome.err


def test_an_ingest_stops_when_the_service_is_down_and_the_next_one_continues(
    call: Callable[..., Outcome],
) -> None:
    down = f"http://127.0.0.1:{find_closed_port()}/v1"
    outcome = call("ingest", "--json", OPENAI_BASE_URL=down)
    assert outcome.code == 1
    assert "0 of 3 documents are indexed; the next ingest continues" in outcome.err
    assert call("ingest", "--json").json["docs_processed"] == 3


def test_a_store_that_another_process_has_open_is_reported(
    call: Callable[..., Outcome], command: Command
) -> None:
    call("ingest")
    command.book.edit(LARGE, "## Two", "## Duo")
    (root,) = (command.root / "data").glob("*/store/textbook_chunks")
    holder_code = """
import sys
from pathlib import Path
from rag_pipeline.adapters.stores.edge_catalog import EdgeCatalog
store = EdgeCatalog(Path(sys.argv[1]), "textbook_chunks", 1.0).open_current()
print("held", flush=True)
sys.stdin.readline()
"""
    with subprocess.Popen(
        [sys.executable, "-c", holder_code, str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert_one_line(call("ingest"), 1, "another process has had", "STORE_LOCK_TIMEOUT_S")
        holder.communicate("go\n")
    assert call("ingest", "--json").json["docs_processed"] == 1


@pytest.mark.slow
def test_two_ingests_at_once_wait_for_each_other(
    command: Command, call: Callable[..., Outcome]
) -> None:
    outcomes = [finish(process) for process in [command.start("ingest", "--json") for _ in "ab"]]
    assert [outcome.code for outcome in outcomes] == [0, 0], outcomes
    processed = sorted(outcome.json["docs_processed"] for outcome in outcomes)
    assert processed == [0, 3]
    assert call("stats", "--json").json["point_count"] == 9


@pytest.mark.slow
def test_a_killed_ingest_does_not_block_the_next(
    command: Command, call: Callable[..., Outcome]
) -> None:
    with serve([Reply(fault="hang")]) as hanging:
        process = command.start("ingest", OPENAI_BASE_URL=f"{hanging.url}/v1")
        deadline = time.monotonic() + 90
        while not hanging.received and time.monotonic() < deadline:
            time.sleep(0.05)  # until the run waits for its embeddings
        assert hanging.received
        process.kill()
        finish(process)
    outcome = call("ingest", "--json")
    assert (outcome.code, outcome.json["docs_processed"]) == (0, 3), outcome


def test_a_dagster_database_that_cannot_be_written_gives_one_line(
    call: Callable[..., Outcome], command: Command
) -> None:
    call("ingest")
    (records,) = command.root.glob("data/*/dagster/history/runs.db")
    for path in records.parent.glob(f"{records.name}*"):
        path.unlink()
    records.mkdir()
    command.book.write("new.md", make_page("New", ("A", make_paragraph(200))))
    assert_one_line(call("ingest"), 1, "dagster", "unable to open database", "disk space")
    records.rmdir()
    assert call("ingest", "--json").json["docs_processed"] == 1


def test_an_ingest_without_changes_restores_the_partitions_of_a_deleted_history(
    call: Callable[..., Outcome], command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("ingest").code == 0
    (home,) = command.root.glob("data/*/dagster")
    shutil.rmtree(home)
    assert call("ingest", "--json").json["docs_unchanged"] == 3
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    with dg.DagsterInstance.get() as instance:
        assert len(instance.get_dynamic_partitions("docs")) == 3


def test_a_terminated_ingest_says_so_and_the_next_one_continues(
    call: Callable[..., Outcome],
) -> None:
    def stop(request: Received) -> Reply:
        os.kill(os.getpid(), signal.SIGTERM)
        return embed(request)

    with serve(stop) as stopping:
        assert_one_line(
            call("ingest", OPENAI_BASE_URL=f"{stopping.url}/v1"), 130, "stopped", "next ingest"
        )
    assert call("ingest", "--json").json["docs_processed"] == 3


def test_ctrl_c_in_a_terminal_gives_one_line(tmp_path: Path) -> None:
    started: Queue[int] = Queue()

    def stop(request: Received) -> Reply:
        os.killpg(started.get(), signal.SIGINT)  # a terminal signals the children as well
        return embed(request)

    with serve(stop) as stopping:
        process = make_command(tmp_path, stopping.url).start("ingest")
        started.put(process.pid)
        assert_one_line(finish(process), 130, "stopped", "next ingest")


def test_ctrl_c_does_not_wait_for_an_embedding_service_that_hangs(tmp_path: Path) -> None:
    started: Queue[int] = Queue()
    has_ended = Event()

    def hang(request: Received) -> Reply:
        os.kill(started.get(), signal.SIGINT)
        has_ended.wait()
        return embed(request)

    with serve(hang) as hanging:
        process = make_command(tmp_path, hanging.url).start("ingest")
        started.put(process.pid)
        try:
            assert_one_line(finish(process), 130, "stopped", "next ingest")
        finally:
            has_ended.set()


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM], ids=lambda sent: sent.name)
def test_an_ingest_that_is_interrupted_before_its_run_says_so(
    call: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch, sent: signal.Signals
) -> None:
    monkeypatch.setattr(
        "rag_pipeline.ingestion.planning.scan_docs", lambda _: signal.raise_signal(sent)
    )
    stopped = call("ingest", "--json")
    assert (stopped.code, stopped.json["error"]["code"]) == (130, "INTERRUPTED")


def test_a_page_with_an_old_modification_time_is_indexed_once(
    call: Callable[..., Outcome], command: Command
) -> None:
    call("ingest")
    path = command.book.write("late.md", make_page("Late", ("A", make_paragraph(200))))
    os.utime(path, ns=(1, 1))
    assert call("ingest", "--json").json["docs_processed"] == 1
    assert call("ingest", "--json").json["docs_processed"] == 0


def test_the_command_without_arguments_shows_its_help(call: Callable[..., Outcome]) -> None:
    outcome = call()
    assert (outcome.code, outcome.err) == (2, "")
    assert "Usage: " in outcome.out


@pytest.mark.parametrize("sink", ["full", "unread", "closed"])
@pytest.mark.parametrize("arguments", [("nope", "--json"), ("chunks",)])
def test_output_that_cannot_be_written_gives_no_traceback(
    command: Command, sink: str, arguments: tuple[str, ...]
) -> None:
    if sink == "unread":
        reader, writer = os.pipe()
        os.close(reader)
    else:
        writer = os.open("/dev/full", os.O_WRONLY)
    shell = 'exec "$@" >&-' if sink == "closed" else 'exec "$@"'
    done = subprocess.run(
        ["/bin/sh", "-c", shell, "sh", sys.executable, "-m", "rag_pipeline.cli", *arguments],
        env=command.environment,
        cwd=command.root,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    expected = 2 if "nope" in arguments else 0 if sink == "closed" else 1
    assert (done.returncode, "Traceback" in done.stderr) == (expected, False), done.stderr
    assert "Exception ignored" not in done.stderr
    assert done.stderr.count("rag-pipeline: ") == (expected == 2 or sink == "full")


@pytest.mark.parametrize("site", ["", "http://", "https://h/?x=1", "nowhere"])
def test_an_invalid_site_address_is_refused(call: Callable[..., Outcome], site: str) -> None:
    assert_one_line(call("validate", "--site", site), 2, "--site")
