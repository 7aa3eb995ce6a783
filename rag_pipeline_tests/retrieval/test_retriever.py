"""Retrieval over a real embedded store with the real local model."""

from __future__ import annotations

import asyncio
import math
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pytest

from rag_pipeline.adapters.embedders.local import LocalEmbedder
from rag_pipeline.core.errors import EmbeddingDimensionError, ResultInvalidError
from rag_pipeline.core.ids import PointId
from rag_pipeline.core.vectors import (
    FORMAT_VERSION,
    EmbeddingModel,
    EmbeddingSpace,
    QuestionVectors,
)
from rag_pipeline.retrieval import (
    CollectionMissingError,
    InvalidKError,
    Query,
    QueryEmptyError,
    QueryError,
    QueryFilters,
    QueryTooLongError,
    Retriever,
    SpaceMismatchError,
    StoreError,
    StoreLockedError,
    open_retriever,
)
from rag_pipeline_tests.retrieval.indexed_book import (
    PAGES,
    build_collection,
    make_catalog,
    make_points,
    make_settings,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rag_pipeline.core.settings import Settings
    from rag_pipeline.core.vectors import Point
    from rag_pipeline.retrieval import RetrievalResult

QUESTIONS = [
    "How can a hand pick up an egg without a force sensor?",
    "What moves a walker that has no motors?",
    "Who receives the messages of a publisher?",
    "When does a service caller go on?",
    "How do nodes follow the clock of the simulator?",
    "Why are ranges wrong behind glass?",
    "How is the range of a beam measured?",
    "How do I store a battery?",
    "What do I record in front of the wall?",
    "Does the body think?",
]


def headings(result: RetrievalResult) -> list[str]:
    """Return the section headings of the hits, in order."""
    return [hit.metadata.section_heading for hit in result.chunks]


def outline(result: RetrievalResult) -> list[tuple[str, float]]:
    """Return the chunk id and the score of each hit, in order."""
    return [(hit.chunk_id, hit.score) for hit in result.chunks]


def test_a_paraphrased_question_finds_its_section_first(retriever: Retriever) -> None:
    result = retriever.retrieve(Query(QUESTIONS[0]))
    assert headings(result)[0] == "Soft grippers"
    first = result.chunks[0]
    assert first.citation.url == "/book/docs/module-1/1.1-foundations/embodiment#soft-grippers"
    assert (first.citation.title, first.citation.section) == ("Embodiment", "Soft grippers")
    assert (first.citation.module, first.citation.chapter) == ("module-1", "1.1-foundations")
    assert first.text.startswith("## Soft grippers") or "egg" in first.text
    assert result.total_candidates >= len(result.chunks) == 5


def test_an_identifier_is_found_in_every_spelling(retriever: Retriever) -> None:
    for question in ("use_sim_time", "what does use sim time do", "create_publisher JointState"):
        assert retriever.retrieve(Query(question)).chunks[0].metadata.title == "Topics and Services"


def test_scores_are_descending_and_between_0_and_1_and_include_channels(
    retriever: Retriever,
) -> None:
    for question in QUESTIONS:
        result = retriever.retrieve(Query(question, top_k=10))
        shown = [hit.score for hit in result.chunks]
        assert shown == sorted(shown, reverse=True)
        assert all(0.0 <= score <= 1.0 for score in shown)
        for hit in result.chunks:
            assert hit.channels is not None
            assert -1.0 <= hit.channels.dense <= 1.0001
            assert hit.channels.windows <= 1.0001
            assert hit.channels.bm25 >= 0.0
            assert 0.0 <= hit.channels.lexical <= 1.0


@pytest.mark.parametrize(
    ("filters", "allowed"),
    [
        (QueryFilters(modules=["module-2"]), {"module-2"}),
        (QueryFilters(chapters=["1.2-ros2", "2.1-sensors"]), {"module-1", "module-2"}),
        (QueryFilters(modules=("module-1", "module-2")), {"module-1", "module-2"}),
        (QueryFilters(modules=["module-2"] * 50), {"module-2"}),
    ],
)
def test_filters_restrict_the_results(
    retriever: Retriever, filters: QueryFilters, allowed: set[str]
) -> None:
    result = retriever.retrieve(Query("How are things measured?", filters=filters, top_k=20))
    assert result.chunks
    assert {hit.metadata.module for hit in result.chunks} <= allowed
    if filters.chapters:
        assert {hit.metadata.chapter for hit in result.chunks} == set(filters.chapters)


def test_a_query_can_be_restricted_to_pages(retriever: Retriever) -> None:
    whole = retriever.retrieve(Query("How are things measured?", top_k=20))
    pages = {hit.metadata.doc_path for hit in whole.chunks}
    assert len(pages) > 2
    page, other, *_ = sorted(pages)
    for wanted in ([page], [page, other]):
        filters = QueryFilters(doc_paths=wanted)
        found = retriever.retrieve(Query("How are things measured?", filters=filters, top_k=20))
        assert {hit.metadata.doc_path for hit in found.chunks} == set(wanted)
    nothing = QueryFilters(doc_paths=[page], modules=["module-7"])
    assert retriever.retrieve(Query("x", filters=nothing)).chunks == ()


def test_the_message_of_a_bound_says_how_much_is_allowed(retriever: Retriever) -> None:
    with pytest.raises(QueryError, match=r"tags has 51 values, but the limit is 50"):
        retriever.retrieve(Query("x", filters=QueryFilters(tags=["ros2"] * 51)))
    with pytest.raises(QueryError, match=r"20,001 characters, but the limit is 20,000"):
        retriever.retrieve(Query("x", selected_text="x" * 20_001))


def test_all_filters_of_a_query_apply_together(retriever: Retriever) -> None:
    filters = QueryFilters(modules=["module-2"], content_types=["lab"], tags=["practice", "other"])
    result = retriever.retrieve(Query("noise of the scanner", filters=filters))
    assert {hit.metadata.doc_path for hit in result.chunks} == {
        "module-2/2.1-sensors/lab-exercises.md"
    }


def test_an_unknown_module_has_no_hits_and_an_unknown_content_type_is_an_error(
    retriever: Retriever,
) -> None:
    assert retriever.retrieve(Query("x", filters=QueryFilters(modules=["module-7"]))).chunks == ()
    with pytest.raises(QueryError, match="prose, code, table, lab, quiz, assessment"):
        retriever.retrieve(Query("x", filters=QueryFilters(content_types=["essay"])))


def test_a_filter_with_an_unpaired_surrogate_has_no_hits(retriever: Retriever) -> None:
    broken = QueryFilters(tags=["half a pair: \ud800"])
    assert retriever.retrieve(Query("x", filters=broken)).chunks == ()


def test_white_space_at_the_ends_of_a_question_does_not_count(retriever: Retriever) -> None:
    assert retriever.retrieve(Query("ranges".ljust(4_000) + "scanner" + "\n" * 2_000)).chunks


def test_an_empty_filter_does_not_restrict(retriever: Retriever) -> None:
    plain = retriever.retrieve(Query(QUESTIONS[5]))
    empty = retriever.retrieve(Query(QUESTIONS[5], filters=QueryFilters(modules=[], tags=())))
    assert outline(plain) == outline(empty)


def test_a_repeated_passage_is_returned_once(retriever: Retriever) -> None:
    result = retriever.retrieve(Query("How do I store a lithium battery?", top_k=20))
    assert len([text for text in headings(result) if text == "Storage"]) == 1
    assert result.chunks[0].metadata.doc_path == "module-2/2.2-copies/copy-one.md"


@pytest.mark.slow
def test_many_copies_of_the_best_text_do_not_raise_the_scores_of_other_hits(tmp_path: Path) -> None:
    copy = "# Care\n\n## Oil\n\nOil the chain once a week, and wipe off what drips from it.\n"
    pages = {f"module-1/copy-{at}.md": copy for at in range(40)} | dict(list(PAGES.items())[:3])
    settings = make_settings(tmp_path)
    build_collection(settings, make_points(pages))
    with open_retriever(settings) as reader:
        found = reader.retrieve(Query("How often do I oil the chain?", top_k=5)).chunks
    assert found[0].metadata.section_heading == "Oil"
    assert all(0.0 < hit.score < 0.8 * found[0].score for hit in found[1:])


def test_a_lower_dedup_threshold_removes_more_near_duplicates(
    book_settings: Settings, retriever: Retriever
) -> None:
    strict = book_settings.model_copy(update={"dedup_threshold": 0.5})
    with open_retriever(strict) as other:
        few = other.retrieve(Query("range of a beam of the scanner", top_k=20))
    many = retriever.retrieve(Query("range of a beam of the scanner", top_k=20))
    assert 0 < len(few.chunks) < len(many.chunks)


def test_a_high_top_k_returns_all_distinct_chunks(
    retriever: Retriever, book_points: list[Point]
) -> None:
    result = retriever.retrieve(Query("scanner", top_k=100))
    texts = {str(point.payload["content_hash"]) for point in book_points}
    found = {hit.metadata.content_hash for hit in result.chunks}
    assert found <= texts
    # The five chunks of one section overlap, so some of them are near-duplicates.
    assert len(found) == len(result.chunks) >= len(texts) - 5


def test_one_hit_of_each_section_comes_before_further_chunks_of_a_section(
    retriever: Retriever,
) -> None:
    result = retriever.retrieve(Query("How far is each beam, in meters?", top_k=100))
    with_text = [hit for hit in result.chunks if re.fullmatch("#+ .*", hit.text) is None]
    assert result.chunks[: len(with_text)] == tuple(with_text)  # bare headings come last
    found = [hit.metadata.section_heading for hit in with_text]
    assert found.count("Time of flight") > 1
    distinct = len(set(found))
    assert len(set(found[: distinct - 1])) == distinct - 1


_PARTS = (
    "gear",
    "belt",
    "spring",
    "bearing",
    "encoder",
    "motor",
    "magnet",
    "cable",
    "brake",
    "lens",
)
_ACTS = ("warms", "slows", "wears out", "drifts", "rattles", "leaks", "bends", "sticks", "slips")


@pytest.mark.slow
def test_the_first_hits_are_the_same_for_every_top_k(tmp_path: Path) -> None:
    pages = {
        f"module-1/{part}.md": f"# The {part}\n\n"
        + "\n".join(
            f"## When the {part} {act}\n\nA {part} {act} after {3 * at + 7} hours of work beside "
            f"a {other}. Whoever hears that it {act} looks at the {other} first, and then changes "
            f"the {part} and writes down the day.\n"
            for at, (act, other) in enumerate(zip(_ACTS, _PARTS[::-1], strict=False))
        )
        for part in _PARTS
    }
    settings = make_settings(tmp_path)
    build_collection(settings, make_points(pages))
    questions = [
        "Why does a motor slow down?",
        "slips",
        "What is the difference of belt and brake?",
    ]
    with open_retriever(settings) as reader:
        for question in questions:
            every = reader.retrieve(Query(question, top_k=100))
            for count in (1, 5, 20, 50):
                fewer = reader.retrieve(Query(question, top_k=count))
                assert outline(fewer) == outline(every)[:count]
            hashes = [hit.metadata.content_hash for hit in every.chunks]
            assert len(set(hashes)) == len(hashes) > 50
            is_bare = [re.fullmatch("#+ .*", hit.text) is not None for hit in every.chunks]
            assert is_bare == sorted(is_bare)  # bare headings come last


def test_top_k_can_be_set_in_the_filters_or_in_the_query(retriever: Retriever) -> None:
    assert len(retriever.retrieve(Query("robot", filters=QueryFilters(top_k=2))).chunks) == 2
    both = Query("robot", filters=QueryFilters(top_k=2), top_k=3)
    assert len(retriever.retrieve(both).chunks) == 3


@pytest.mark.parametrize(
    ("query", "error"),
    [
        (Query(""), QueryEmptyError),
        (Query(" \n\t"), QueryEmptyError),
        (Query("\u200b\u3000\x00"), QueryEmptyError),  # no visible character
        (Query("x" * 5001), QueryTooLongError),
        (Query("x", top_k=0), InvalidKError),
        (Query("x", top_k=101), InvalidKError),
        (Query("x", top_k=True), InvalidKError),
        (Query("x", top_k=2.5), InvalidKError),  # type: ignore[arg-type]  # an invalid argument on purpose
        (Query("x", filters=QueryFilters(top_k=-1)), InvalidKError),
        (Query("x", filters=QueryFilters(modules="module-1")), QueryError),
        (Query("x", filters=QueryFilters(tags=[1])), QueryError),  # type: ignore[list-item]  # the same
        (Query("x", filters=QueryFilters(tags=7)), QueryError),  # type: ignore[arg-type]  # the same
        (Query("x", filters=QueryFilters(tags=["ros2"] * 51)), QueryError),
        (Query("x", filters=QueryFilters(doc_paths=list(map(str, range(50_000))))), QueryError),
        (Query("x", selected_text="x" * 20_001), QueryError),
        (Query("x", mode="all"), QueryError),  # type: ignore[arg-type]  # the same
        (Query("x", mode=["normal"]), QueryError),  # type: ignore[arg-type]  # the same
        (Query("x", filters={"modules": ["module-1"]}), QueryError),  # type: ignore[arg-type]  # the same
        (Query("x", selected_text=b"text"), QueryError),  # type: ignore[arg-type]  # the same
        (Query("x", source_doc_path=7), QueryError),  # type: ignore[arg-type]  # the same
        (Query("x", source_section=["A"]), QueryError),  # type: ignore[arg-type]  # the same
        (Query("x", expand_to_section_tokens=0), QueryError),
    ],
)
def test_invalid_queries_are_value_errors_with_http_status_400(
    retriever: Retriever, query: Query, error: type[QueryError]
) -> None:
    with pytest.raises(error) as caught:
        retriever.retrieve(query)
    assert isinstance(caught.value, ValueError)
    assert caught.value.http_status == 400


@pytest.mark.parametrize(
    "question",
    ["a", "123", "special@chars!", "???", "日本語のロボット", "\ud800 lone", "x\x00y", "w " * 2500],
)
def test_unusual_questions_have_results(retriever: Retriever, question: str) -> None:
    assert len(retriever.retrieve(Query(question)).chunks) == 5


def test_a_string_instead_of_a_query_is_refused(retriever: Retriever) -> None:
    text: Any = "How can a hand pick up an egg?"
    with pytest.raises(QueryError, match=r"Query\("):
        retriever.retrieve(text)
    with pytest.raises(QueryError, match="query 2: "):
        retriever.retrieve_many([Query(text), text])


def test_a_batch_returns_the_same_results_as_single_queries(retriever: Retriever) -> None:
    single = [retriever.retrieve(Query(question)) for question in QUESTIONS]
    batch = retriever.retrieve_many([Query(question) for question in QUESTIONS])
    assert [outline(result) for result in batch] == [outline(result) for result in single]
    assert [result.query.question for result in batch] == QUESTIONS
    assert retriever.retrieve_many([]) == []


def test_asynchronous_calls_return_the_same_results(retriever: Retriever) -> None:
    async def ask() -> tuple[RetrievalResult, list[RetrievalResult]]:
        one, many = await asyncio.gather(
            retriever.aretrieve(Query(QUESTIONS[0])),
            retriever.aretrieve_many([Query(question) for question in QUESTIONS[1:3]]),
        )
        return one, many

    one, many = asyncio.run(ask())
    assert outline(one) == outline(retriever.retrieve(Query(QUESTIONS[0])))
    assert outline(many[1]) == outline(retriever.retrieve(Query(QUESTIONS[2])))


def test_ten_concurrent_callers_get_the_same_results_as_one_caller(retriever: Retriever) -> None:
    alone = [outline(retriever.retrieve(Query(question))) for question in QUESTIONS]
    with ThreadPoolExecutor(10) as callers:
        together = list(
            callers.map(
                lambda question: outline(retriever.retrieve(Query(question))), QUESTIONS * 3
            )
        )
    assert together == alone * 3


def test_a_hit_is_expanded_within_its_section_and_budget(retriever: Retriever) -> None:
    narrow = retriever.retrieve(Query("range of beam 7"))
    hit = narrow.chunks[0]
    assert hit.metadata.section_heading == "Time of flight"
    assert hit.expanded_text is None
    assert hit.context_text == hit.text
    wide = retriever.retrieve(Query("range of beam 7", expand_to_section_tokens=10_000)).chunks[0]
    assert wide.text == hit.text
    assert wide.expanded_text is not None
    for number in range(1, 15):
        assert wide.expanded_text.count(f"Beam {number} of") == 1
    assert "Rain" not in wide.expanded_text
    small = retriever.retrieve(Query("range of beam 7", expand_to_section_tokens=1)).chunks[0]
    assert small.context_text == hit.text


_HOLD_BUILD = """
import sys
from pathlib import Path
from rag_pipeline.adapters.stores.edge_opening import open_build
build = open_build(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


class _Backwards:
    """A `Reranker` whose scores reverse the order of the passages."""

    def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        del question
        return [at / len(texts) for at in range(len(texts))]


def test_a_reranker_decides_the_order(book_settings: Settings, retriever: Retriever) -> None:
    plain = retriever.retrieve(Query(QUESTIONS[0], top_k=20))
    retriever.close()
    with open_retriever(book_settings, reranker=_Backwards()) as other:
        turned = other.retrieve(Query(QUESTIONS[0], top_k=2))
    assert [hit.chunk_id for hit in turned.chunks] == [
        hit.chunk_id for hit in (plain.chunks[7], plain.chunks[6])
    ]


class _Logits:
    """A `Reranker` whose scores are all above 1 and reverse the order of the passages."""

    def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        assert question
        return [3.0 + number for number in range(len(texts))]


def test_reranker_scores_above_1_keep_their_order_and_become_1(
    book_settings: Settings, retriever: Retriever
) -> None:
    plain = retriever.retrieve(Query(QUESTIONS[0], top_k=20))
    retriever.close()
    with open_retriever(book_settings, reranker=_Logits()) as other:
        turned = other.retrieve(Query(QUESTIONS[0], top_k=2))
    assert [hit.chunk_id for hit in turned.chunks] == [
        hit.chunk_id for hit in (plain.chunks[7], plain.chunks[6])
    ]
    assert [hit.score for hit in turned.chunks] == [1.0, 1.0]


class _Scores:
    """A `Reranker` whose scores are computed by a function from the number of passages."""

    def __init__(self, score: Callable[[int], object]) -> None:
        self._score = score

    def rerank(self, question: str, texts: Sequence[str]) -> list[float]:
        del question
        return cast("list[float]", self._score(len(texts)))


@pytest.mark.parametrize(
    ("score", "said"),
    [
        (lambda count: [0.5] * (count - 1), "returned 7 scores"),
        (lambda count: [0.5] * (count + 1), "returned 9 scores"),
        (lambda count: [0.5, math.nan] + [0.5] * (count - 2), "7 finite"),
        (lambda count: [math.inf] * count, "0 finite"),
    ],
)
def test_a_reranker_must_return_one_finite_score_for_each_passage(
    book_settings: Settings, score: Callable[[int], object], said: str
) -> None:
    with (
        open_retriever(book_settings, reranker=_Scores(score)) as other,
        pytest.raises(ResultInvalidError, match=f"{said}.*for 8 passages"),
    ):
        other.retrieve(Query(QUESTIONS[0], top_k=2))


def test_numpy_scores_of_a_reranker_become_python_floats(
    book_settings: Settings,
) -> None:
    reranker = _Scores(lambda count: np.linspace(0, 1, count, dtype=np.float32))
    with open_retriever(book_settings, reranker=reranker) as other:
        found = other.retrieve(Query(QUESTIONS[0], top_k=2))
    assert [type(hit.score) for hit in found.chunks] == [float, float]


def test_a_query_before_the_first_ingest_says_to_run_ingest(tmp_path: Path) -> None:
    with (
        open_retriever(make_settings(tmp_path)) as fresh,
        pytest.raises(CollectionMissingError, match="rag-pipeline ingest"),
    ):
        fresh.retrieve(Query("anything"))


def test_a_query_of_an_empty_collection_is_an_error(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    build_collection(settings, [])
    with open_retriever(settings) as empty, pytest.raises(CollectionMissingError, match="empty"):
        empty.retrieve(Query("anything"))


def test_a_collection_of_another_model_is_refused(tmp_path: Path) -> None:
    settings = make_settings(tmp_path)
    catalog = make_catalog(settings)
    store = catalog.create(
        EmbeddingSpace(EmbeddingModel("openai", "other", 384, 100), FORMAT_VERSION)
    )
    store.close()
    catalog.switch_to(store.collection_id)
    with open_retriever(settings) as mismatched, pytest.raises(SpaceMismatchError, match="rebuild"):
        mismatched.retrieve(Query("anything"))


def test_the_next_query_uses_a_rebuilt_collection(tmp_path: Path, book_points: list[Point]) -> None:
    settings = make_settings(tmp_path)
    build_collection(settings, book_points)
    with open_retriever(settings) as reader:
        assert reader.retrieve(Query(QUESTIONS[0])).chunks[0].metadata.title == "Embodiment"
        page = "module-9/9.1-new/page.md"
        build_collection(settings, make_points({page: "# New\n\n## Eggs\n\nEggs are new here.\n"}))
        result = reader.retrieve(Query(QUESTIONS[0]))
        assert {hit.metadata.doc_path for hit in result.chunks} == {page}


def test_an_idle_store_is_closed_and_opened_again(tmp_path: Path, book_points: list[Point]) -> None:
    settings = make_settings(tmp_path, store_idle_s=0.05, store_lock_timeout_s=5.0)
    build_collection(settings, book_points)
    catalog = make_catalog(settings)
    with open_retriever(settings) as reader:
        for _ in range(2):
            first = reader.retrieve(Query(QUESTIONS[0]))
            writer = catalog.open_current()  # waits until the reader closes it
            writer.delete([PointId(1)])
            writer.close()
            assert outline(reader.retrieve(Query(QUESTIONS[0]))) == outline(first)


def test_a_store_that_another_process_has_locked_is_an_error_until_unlocked(
    tmp_path: Path, book_points: list[Point]
) -> None:
    settings = make_settings(tmp_path, store_lock_timeout_s=0.2)
    collection_id = build_collection(settings, book_points)
    build = settings.state_dir / "store" / settings.qdrant_collection / collection_id
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            _HOLD_BUILD,
            str(build),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        with open_retriever(settings) as reader:
            with pytest.raises(StoreLockedError, match="another process has"):
                reader.retrieve(Query(QUESTIONS[0]))
            holder.communicate()
            assert reader.retrieve(Query(QUESTIONS[0])).chunks
    finally:
        holder.kill()
        holder.communicate()


def test_a_heading_without_text_comes_after_its_subsections(tmp_path: Path) -> None:
    page = "# Gears\n\n## Backlash in gears\n\n### Cause\n\nTeeth need room.\n\n### 12\n\n28\n"
    settings = make_settings(tmp_path)
    build_collection(settings, make_points({"module-1/gears.md": page}))
    with open_retriever(settings) as reader:
        asked = headings(reader.retrieve(Query("What causes backlash in gears?")))
        named = headings(reader.retrieve(Query("backlash in gears")))
    assert set(asked[:2]) == {"Cause", "12"}
    assert set(asked[2:]) == {"Gears", "Backlash in gears"}
    assert named[0] == "Backlash in gears"  # the question names this heading


class _WrongEmbedder(LocalEmbedder):
    """An embedder whose vectors have another length than its model declares."""

    def embed_question(self, text: str) -> QuestionVectors:
        del text
        return QuestionVectors(np.ones(7, dtype=np.float32), np.ones((1, 7), dtype=np.float32))


def test_a_query_vector_of_wrong_length_is_an_embedding_error(book_settings: Settings) -> None:
    with open_retriever(book_settings) as reader:
        wrong = Retriever(_WrongEmbedder(), reader._encoder, reader.session)  # noqa: SLF001  # the same store
        with pytest.raises(EmbeddingDimensionError):
            wrong.retrieve(Query("anything"))


def test_closing_a_retriever_does_not_disturb_running_queries(retriever: Retriever) -> None:
    expected = outline(retriever.retrieve(Query(QUESTIONS[0])))
    stop = threading.Event()

    def close_again_and_again() -> None:
        while not stop.is_set():
            retriever.close()
            time.sleep(0)

    closer = threading.Thread(target=close_again_and_again)
    closer.start()
    try:
        for _ in range(5):
            assert outline(retriever.retrieve(Query(QUESTIONS[0]))) == expected
    finally:
        stop.set()
        closer.join()


def test_a_probe_checks_the_payload_of_one_point(
    tmp_path: Path, book_points: list[Point], retriever: Retriever
) -> None:
    retriever.probe()
    damaged = [replace(point, payload={**point.payload, "url": 7}) for point in book_points[:1]]
    settings = make_settings(tmp_path)
    build_collection(settings, damaged)
    with open_retriever(settings) as other, pytest.raises(StoreError, match="field url"):
        other.probe()


def test_every_page_of_the_book_can_be_found(retriever: Retriever) -> None:
    found = {
        hit.metadata.doc_path
        for question in QUESTIONS
        for hit in retriever.retrieve(Query(question)).chunks
    }
    assert found == set(PAGES) - {"module-2/2.2-copies/copy-two.md"}
