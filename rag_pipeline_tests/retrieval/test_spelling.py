"""Tests of the correction of misspelled words, with a real store and the real local model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rag_pipeline.adapters.embedders.bm25 import Bm25Encoder
from rag_pipeline.core.errors import StoreTimeoutError
from rag_pipeline.core.text.terms import extract_terms, load_everyday_words
from rag_pipeline.retrieval import Evidence, Query, RetrieverOptions
from rag_pipeline.retrieval import retriever as retriever_module
from rag_pipeline.retrieval.models import TermWeight
from rag_pipeline.retrieval.retriever import Retriever
from rag_pipeline.retrieval.spelling import (
    correct_queries,
    correct_question,
    find_misspelled,
    write_symbols,
)

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

EVERYDAY = """
pasta cook cooks cooking recipe garden flowers window kitchen mother brother holiday
weather football music guitar violin painting museum theatre cinema novel poem history
battle king queen castle village city mountain river ocean island desert forest animal
horse sheep goat chicken rabbit tiger lion elephant monkey bird eagle fish shark whale
insect spider apple banana orange lemon cherry cherries bread butter cheese coffee water
sugar salt pepper soup doctor nurse hospital medicine fever money bank market price
salary taxes lawyer judge police soldier church temple school teacher lesson pencil
paper letters stamp train airport ticket passport login stepper passer studies happiest
unhappy sleeping swimming slowly kindness aws lte dose form three
""".split()  # noqa: SIM905  # a list of a hundred strings is hard to read


def make_evidence(*words: str, known: bool = False) -> Evidence:
    terms = tuple(TermWeight(extract_terms(word)[0], word, 5.0, known) for word in words)
    return Evidence("local/some", 100, terms)


def load_nothing() -> AbstractSet[str]:
    pytest.fail("the everyday words were loaded although no word is unknown")


def test_everyday_words_are_never_misspelled() -> None:
    assert len(EVERYDAY) >= 100
    for word in EVERYDAY:
        assert find_misspelled(make_evidence(word), load_everyday_words) == ()


@pytest.mark.parametrize(
    "word",
    ["gripppr", "Gripppr", "quaternoin", "zreo", "odometery", "kinemtics", "teh", "Hwo", "invers"],
)
def test_a_word_that_is_in_no_vocabulary_may_be_misspelled(word: str) -> None:
    assert find_misspelled(make_evidence("robot", word), load_everyday_words) == (word,)


@pytest.mark.parametrize(
    "name",
    [
        "URDF",
        "JointSttae",
        "ROS2",
        "use_sim_tiem",
        "GZS",
        "gzx",
        "K\u00fcka2",
        "IMUs",
        "x" * 21,
        "\u043d\u0430\u0432\u0438",
    ],
)
def test_names_and_words_of_other_sizes_and_scripts_are_never_misspelled(name: str) -> None:
    assert find_misspelled(make_evidence(name), load_everyday_words) == ()


def test_a_question_of_many_unknown_words_is_left_alone() -> None:
    unknown = ("blorb", "frotz", "gnusto", "plugh")
    assert find_misspelled(make_evidence(*unknown), load_everyday_words) == ()
    assert find_misspelled(make_evidence(*unknown[:3]), load_everyday_words) == unknown[:3]


def test_the_everyday_words_are_loaded_only_for_an_unknown_word() -> None:
    assert find_misspelled(make_evidence("gripper", known=True), load_nothing) == ()
    assert find_misspelled(make_evidence("ROS2"), load_nothing) == ()
    assert find_misspelled(None, load_nothing) == ()


@pytest.mark.parametrize(
    ("question", "corrected"),
    [
        ("How does a gripepr close?", "How does a gripper close?"),
        ("How does a griper close?", "How does a gripper close?"),
        ("How does a gripperr close?", "How does a gripper close?"),
        ("How does a grippar close?", "How does a gripper close?"),
        ("Gripepr?", "Gripper?"),
        ("gripepr or gripepr", "gripper or gripper"),
        ("rgipper", "gripper"),
        ("what regulation and wtihout mtoors", "what regulation and without motors"),
        ("Which subscirbers get it?", "Which subscribers get it?"),
        ("Which subscrybbers get it?", "Which subscribers get it?"),
        ("a sotf egg", "a soft egg"),
        ("Waht si teh gripepr?", "What si the gripper?"),
        ("whta cna it get and hwo", "what can it get and how"),
        ("glas", "glass"),  # of four letters, one of a pair is missing
        ("a suft egg", None),  # another first vowel, and too short
        ("rubberty", None),  # no slip: an ending
        ("a xripper", None),  # another first letter
        ("qwertzuiop", None),
    ],
)
def test_a_slip_is_corrected_to_a_word_of_the_book(
    retriever: Retriever, question: str, corrected: str | None
) -> None:
    words = [word.strip("?") for word in question.split()]
    slips = ("a", "or", "and", "what", "get", "egg", "regulation", "How", "does", "close", "Which")
    misspelled = tuple(dict.fromkeys(word for word in words if word not in (*slips, "it")))
    found = retriever.read(
        lambda index: correct_question(index, Bm25Encoder(), question, misspelled)
    )
    assert found == corrected


def test_the_corrected_question_is_searched(retriever: Retriever) -> None:
    right = retriever.retrieve(Query("How does a soft gripper close around an egg?"))
    asked = Query("How does a sotf gripepr close around an egg?")
    found = retriever.retrieve(asked)
    assert found.search_question == "How does a soft gripper close around an egg?"
    assert found.query == asked
    assert found.chunks == right.chunks
    assert found.evidence == right.evidence


@pytest.mark.parametrize(
    "question",
    [
        "How does a soft gripper close?",
        "How does the hsv gripper close?",
        "Which pasta do I cook?",
        "What is a Quadrotor?",
        "What is use_sim_tiem?",
        "the and of",
    ],
)
def test_a_question_without_a_slip_is_searched_as_it_is(
    retriever: Retriever, question: str
) -> None:
    assert retriever.retrieve(Query(question)).search_question is None


def test_a_question_with_a_slip_in_a_function_word_is_as_good_as_without(
    retriever: Retriever,
) -> None:
    right = retriever.retrieve(Query("How does the soft gripper close?"))
    found = retriever.retrieve(Query("How does teh soft gripper close?"))
    assert (found.chunks, found.evidence) == (right.chunks, right.evidence)


def test_each_question_of_a_batch_is_corrected_apart(retriever: Retriever) -> None:
    questions = ["soft gripper", "laser scnaner", "qwertzuiop", "passive wlaker"]
    found = retriever.retrieve_many([Query(question) for question in questions])
    assert [entry.search_question for entry in found] == [
        None,
        "laser scanner",
        None,
        "passive walker",
    ]
    assert [entry.query.question for entry in found] == questions


def test_a_retriever_without_everyday_words_corrects_nothing(retriever: Retriever) -> None:
    plain = Retriever(
        retriever._embedder,  # noqa: SLF001  # a copy with other options
        Bm25Encoder(),
        retriever.session,
        options=RetrieverOptions(),
    )
    assert plain.retrieve(Query("soft gripepr")).search_question is None


def test_exact_words_are_searched_as_written(retriever: Retriever) -> None:
    misspelled = "How does a sotf gripepr close around an egg?"
    corrected, exact = retriever.retrieve_many(
        [Query(misspelled), Query(misspelled, exact_words=True)]
    )
    assert corrected.search_question == "How does a soft gripper close around an egg?"
    assert exact.search_question is None


def test_the_result_as_asked_is_kept_if_the_correction_fails(
    retriever: Retriever, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StoreTimeoutError("the store is too slow")

    asked = retriever.retrieve(Query("soft gripepr"))
    monkeypatch.setattr(retriever_module, "correct_queries", fail)
    kept = retriever.retrieve(Query("soft gripepr"))
    assert asked.search_question is not None
    assert kept.search_question is None
    assert kept.chunks


@pytest.mark.parametrize(
    ("question", "written"),
    [
        ("Is Dijkstra slower than A star?", "Is Dijkstra slower than A*?"),
        ("a node in c plus plus", "a node in c++"),
        ("events in C sharp", "events in C#"),
        ("the star of the show", "the star of the show"),
    ],
)
def test_a_spelled_symbol_of_a_name_is_written_as_a_sign(question: str, written: str) -> None:
    assert write_symbols(question) == written


def test_a_written_symbol_is_searched_but_not_taken_if_the_book_lacks_it(
    retriever: Retriever,
) -> None:
    found = retriever.retrieve(Query("Is a soft gripper slower than a star?"))
    tried = correct_queries([found], Bm25Encoder(), load_everyday_words, retriever.read)
    assert [query.question for query in tried.values()] == ["Is a soft gripper slower than a*?"]
    assert found.search_question is None
    exact = retriever.retrieve(Query("a star", exact_words=True))
    assert correct_queries([exact], Bm25Encoder(), load_everyday_words, retriever.read) == {}
