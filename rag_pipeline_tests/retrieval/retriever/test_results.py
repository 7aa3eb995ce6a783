"""Retrieval over a real embedded store with the real local model."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.retrieval import Query, QueryError, Retriever, open_retriever
from rag_pipeline_tests.retrieval.indexed_book import PAGES, open_book
from rag_pipeline_tests.retrieval.retriever.questions import QUESTIONS, headings, outline

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.core.settings import Settings
    from rag_pipeline.core.vectors import Point
    from rag_pipeline.retrieval import RetrievalResult


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


def test_a_repeated_passage_is_returned_once(retriever: Retriever) -> None:
    result = retriever.retrieve(Query("How do I store a lithium battery?", top_k=20))
    assert len([text for text in headings(result) if text == "Storage"]) == 1
    assert result.chunks[0].metadata.doc_path == "module-2/2.2-copies/copy-one.md"


@pytest.mark.slow
def test_many_copies_of_the_best_text_do_not_raise_the_scores_of_other_hits(tmp_path: Path) -> None:
    copy = "# Care\n\n## Oil\n\nOil the chain once a week, and wipe off what drips from it.\n"
    pages = {f"module-1/copy-{at}.md": copy for at in range(40)} | dict(list(PAGES.items())[:3])
    with open_book(tmp_path, pages) as reader:
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
    questions = [
        "Why does a motor slow down?",
        "slips",
        "What is the difference of belt and brake?",
    ]
    with open_book(tmp_path, pages) as reader:
        for question in questions:
            every = reader.retrieve(Query(question, top_k=100))
            for count in (1, 5, 20, 50):
                fewer = reader.retrieve(Query(question, top_k=count))
                assert outline(fewer) == outline(every)[:count]
            hashes = [hit.metadata.content_hash for hit in every.chunks]
            assert len(set(hashes)) == len(hashes) > 50
            is_bare = [re.fullmatch("#+ .*", hit.text) is not None for hit in every.chunks]
            assert is_bare == sorted(is_bare)  # bare headings come last


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


def test_a_heading_without_text_comes_after_its_subsections(tmp_path: Path) -> None:
    page = "# Gears\n\n## Backlash in gears\n\n### Cause\n\nTeeth need room.\n\n### 12\n\n28\n"
    with open_book(tmp_path, {"module-1/gears.md": page}) as reader:
        asked = headings(reader.retrieve(Query("What causes backlash in gears?")))
        named = headings(reader.retrieve(Query("backlash in gears")))
    assert set(asked[:2]) == {"Cause", "12"}
    assert set(asked[2:]) == {"Gears", "Backlash in gears"}
    assert named[0] == "Backlash in gears"  # the question names this heading


def test_every_page_of_the_book_can_be_found(retriever: Retriever) -> None:
    found = {
        hit.metadata.doc_path
        for question in QUESTIONS
        for hit in retriever.retrieve(Query(question)).chunks
    }
    assert found == set(PAGES) - {"module-2/2.2-copies/copy-two.md"}


def test_passages_below_a_share_of_the_best_score_are_left_out(retriever: Retriever) -> None:
    every = retriever.retrieve(Query(QUESTIONS[0])).chunks
    share = (every[1].score + every[2].score) / 2 / every[0].score
    kept = retriever.retrieve(Query(QUESTIONS[0], min_relative_score=share)).chunks
    assert [chunk.chunk_id for chunk in kept] == [chunk.chunk_id for chunk in every[:2]]
    assert len(retriever.retrieve(Query(QUESTIONS[0], min_relative_score=1.0)).chunks) >= 1


@pytest.mark.parametrize("share", [-0.1, 1.1, "0.5", None, float("nan")])
def test_a_share_of_the_best_score_is_a_number_from_0_to_1(share: object) -> None:
    with pytest.raises(QueryError, match="min_relative_score"):
        Query("What is a robot?", min_relative_score=share).check()  # type: ignore[arg-type]  # wrong on purpose
