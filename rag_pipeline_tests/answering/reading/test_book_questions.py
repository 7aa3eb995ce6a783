"""Questions about the book itself, texts without words, and long texts."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.answering.assistant import Assistant
from rag_pipeline.answering.models import AnswerKind, Level, Reason
from rag_pipeline.answering.reading.book_questions import (
    BOOK_QUESTIONS,
    drop_book,
    find_book_question,
    find_neighbor,
    find_numbered_part,
    find_part_pages,
    list_pages,
    list_sections,
    names_book,
)
from rag_pipeline.answering.voice import Voice
from rag_pipeline.retrieval import Mode, Query, QueryFilters, open_retriever
from rag_pipeline.retrieval.open_index import ContentsPage, ContentsSection
from rag_pipeline_tests.retrieval.indexed_book import (
    PAGES,
    build_collection,
    make_points,
    make_settings,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rag_pipeline.retrieval import Retriever


@contextmanager
def open_book(folder: Path, pages: dict[str, str]) -> Iterator[Retriever]:
    """Open a retriever over a book of some pages."""
    settings = make_settings(folder, store_idle_s=30.0)
    build_collection(settings, make_points(pages))
    with open_retriever(settings) as opened:
        yield opened


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Retriever]:
    """A retriever over the tiny book, which has six pages in two modules."""
    with open_book(tmp_path_factory.mktemp("book"), PAGES) as opened:
        yield opened


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("How many chapters are there in this book?", "book_size"),
        ("how many pages does the documentation have", "book_size"),
        ("Wie viele Kapitel hat das Buch?", "book_size"),
        ("Who wrote this course?", "book_author"),
        ("What is this book about?", "book_subject"),
        ("de quoi parle ce livre ?", "book_subject"),
        ("\u00bfDe qu\u00e9 trata este libro?", "book_subject"),
        ("list all the modules of this book", "book_subject"),
        ("table of contents", "book_subject"),
        ("Where should I start with this guide?", "book_start"),
    ],
)
def test_a_question_that_names_the_book_is_about_it_also_later(question: str, kind: str) -> None:
    assert find_book_question(question, is_first=True) == kind
    assert find_book_question(question, is_first=False) == kind


@pytest.mark.parametrize(
    "question", ["Who wrote it?", "what does it cover", "where do I start?", "list the modules"]
)
def test_a_pronoun_means_the_book_only_in_the_first_question(question: str) -> None:
    assert find_book_question(question, is_first=True) in BOOK_QUESTIONS
    assert find_book_question(question, is_first=False) == ""


@pytest.mark.parametrize(
    "question",
    [
        "how many pages does the heap have",
        "who wrote the lidar driver",
        "where do I start gazebo",
        "what does the manual override do",
        "what is a chapter in a bag file",
        "how long is the course",
    ],
)
def test_a_question_about_a_subject_is_searched(question: str) -> None:
    assert find_book_question(question, is_first=True) == ""


@pytest.mark.parametrize("language", ["en", "de", "es", "fr"])
def test_the_table_of_contents_answers_in_the_voice_of_the_assistant(
    book: Retriever, language: str
) -> None:
    given = Assistant(book, voice=Voice(language=language)).answer(Query("how many modules?"))
    assert given.kind is AnswerKind.REPLY
    assert given.grounding.level is Level.ANSWERED
    assert given.grounding.reason is Reason.ABOUT_BOOK
    (notice,) = given.notices
    assert notice.code == "book_size"
    assert notice.data["modules"] == 2
    assert notice.data["pages"] == 6
    assert "2" in given.text
    assert "6" in given.text


def test_parts_and_the_beginning_are_linked(book: Retriever) -> None:
    one = Assistant(book)
    about, start = (
        one.answer(Query("what is this book about?")),
        one.answer(Query("where to start")),
    )
    assert [place.module for place in about.citations] == ["module-1", "module-2"]
    assert start.citations[0] == about.citations[0]
    assert all(place.url in about.text for place in about.citations)


def test_the_parts_of_the_book_are_its_folders_before_single_pages(tmp_path: Path) -> None:
    pages = {f"{letter}.md": f"# Page {letter}\n\nText of it.\n" for letter in "abcdefghi"}
    pages["part/one.md"] = "# Part one\n\nText of it.\n"
    with open_book(tmp_path, pages) as opened:
        given = Assistant(opened).answer(Query("list the modules"))
    assert [place.title for place in given.citations][:2] == ["Part one", "Page a"]


RULED = ContentsPage(
    title="The three rules",
    url="/rules",
    doc_path="rules.md",
    module="",
    chapter="",
    sections=tuple(
        ContentsSection(heading, f"/rules#{heading}", level)
        for heading, level in [
            ("Be kind", 2),
            ("Kind words", 3),
            ("Be quick", 2),
            ("Be safe", 2),
            ("Safe tools", 3),
            ("A saw", 4),
            ("A drill", 4),
            ("A lathe", 4),
            ("Thanks", 2),
        ]
    ),
)


@pytest.mark.parametrize(
    ("things", "heading", "names"),
    [
        ("rules", "The three rules", ["Be kind", "Be quick", "Be safe", "Thanks"]),
        ("safe tools", "Safe tools", ["A saw", "A drill", "A lathe"]),
        ("kind words", "", []),
        ("house rules", "", []),
    ],
)
def test_the_sections_directly_below_a_heading_are_the_things_it_names(
    things: str, heading: str, names: list[str]
) -> None:
    assert list_sections(things, [RULED], {"rules.md"}) == (heading, names)
    assert list_sections(things, [RULED], {"other.md"}) == ("", [])


def test_a_question_for_things_is_answered_with_the_sections_about_them(tmp_path: Path) -> None:
    sections = "".join(
        f"## Be {word}\n\nEach robot is {word}.\n\n" for word in ("kind", "fast", "safe")
    )
    page = f"# Our robot rules\n\nAll our robots follow these robot rules.\n\n{sections}"
    with open_book(tmp_path, {"rules.md": page}) as opened:
        given = Assistant(opened).answer(Query("list the robot rules"))
        other = Assistant(opened).answer(Query("what are our robot rules for"))
    notice = next(one for one in given.notices if one.code == "sections")
    assert notice.data == {"place": "Our robot rules", "names": "Be kind, Be fast, Be safe"}
    assert given.text.startswith(notice.text)
    assert given.passages
    assert "sections" not in [one.code for one in other.notices]


def test_without_a_page_about_its_authors_the_book_names_none(book: Retriever) -> None:
    given = Assistant(book).answer(Query("who wrote this book?"))
    assert [notice.code for notice in given.notices] == ["book_no_author"]
    assert given.citations == ()


@pytest.mark.parametrize("text", ["???", "\U0001f44b", "the", "asdf qwer", "asdf"])
def test_a_text_without_a_word_of_the_book_gets_no_passages(book: Retriever, text: str) -> None:
    given = Assistant(book).answer(Query(text))
    assert given.kind is AnswerKind.REFUSED
    assert given.grounding.reason is Reason.NO_WORDS
    assert [notice.code for notice in given.notices] == ["no_words"]
    assert given.passages == given.citations == ()


def test_a_sentence_whose_words_the_book_does_not_have_is_a_question(book: Retriever) -> None:
    given = Assistant(book).answer(Query("Who won the xylophone cup?"))
    assert given.kind is AnswerKind.REFUSED
    assert given.grounding.reason is not Reason.NO_WORDS


def test_a_question_about_a_selection_is_not_about_the_book(book: Retriever) -> None:
    asked = Query("what is this about?", Mode.SELECTED_TEXT_ONLY, "A gripper closes around an egg.")
    assert Assistant(book).answer(asked).grounding.reason is not Reason.ABOUT_BOOK


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("How many weeks does the course take?", True),
        ("who is this book for", True),
        ("what is a course of action", False),
        ("the course of the robot", False),
        ("How do I book a robot?", False),
    ],
)
def test_a_question_may_name_the_book(question: str, *, named: bool) -> None:
    assert names_book(question) is named


@pytest.mark.parametrize(
    ("question", "part"),
    [
        ("what is module 2 about", "module 2"),
        ("What does chapter 3.2 cover?", "chapter 3.2"),
        ("summary of Part 4", "Part 4"),
        ("what will I learn in lesson 7?", "lesson 7"),
        ("chapter 1", "chapter 1"),
        ("what is a module", ""),
        ("how long does module 2 take", ""),
    ],
)
def test_a_question_about_a_numbered_part_names_it(question: str, part: str) -> None:
    assert find_numbered_part(question) == part


def make_page(title: str, path: str = "a/b.md", *headings: str) -> ContentsPage:
    """Return a page whose module and chapter are the folders of its path."""
    sections = tuple(ContentsSection(heading, "", 2) for heading in headings)
    module, chapter, *_ = [*path.split("/")[:-1], "", ""]
    return ContentsPage(title, "", path, module, chapter, sections)


@pytest.mark.parametrize(
    ("part", "pages", "found"),
    [
        ("module 1", ["Module 1 Assessment", "Module 1: Ovens", "Module 10: Pans"], [1]),
        ("part 2", ["Basics, Part 2: Dough", "Basics, Part 3", "Bread, Part 2: Rye"], [0, 2]),
        ("Chapter 3.2", ["Chapter 3: Pots", "3.2 Pans", "3.20 Lids", "13.2 Spoons"], [1]),
        ("chapter 3", ["Chapter 3.2: Pots", "3.1 Pans", "3. Lids"], [2]),
        ("unit 5", ["Unit 4", "Units"], []),
    ],
)
def test_a_numbered_part_is_found_by_the_titles_of_its_pages(
    part: str, pages: list[str], found: list[int]
) -> None:
    made = [make_page(title) for title in pages]
    assert find_part_pages(part, made) == [made[at] for at in found]


def test_a_numbered_part_without_a_title_is_a_section_or_the_beginning_of_a_folder() -> None:
    pages = [
        make_page("Ovens", "module-1/index.md"),
        make_page("Gas", "module-1/02-gas/gas.md"),
        make_page("Pans", "pans.md", "Section 4: Iron"),
        make_page("More gas", "module-1/02-gas/more.md"),
    ]
    named = [find_part_pages(part, pages) for part in ("module 1", "chapter 2", "section 4")]
    assert named == [pages[:1], pages[1:2], pages[2:3]]


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Retriever]:
    """A retriever over three numbered chapters, of which the first names the second often."""
    texts = {
        "one.md": "# Chapter 1: Pots\n\nChapter 2 covers more. What does chapter 2 cover? Lids.",
        "two.md": "# Chapter 2: Lids\n\nA lid keeps the steam in the pot and the bread moist.",
        "three.md": "# Chapter 3: Pans\n\nA pan is flat and wide, so that water leaves quickly.",
    }
    with open_book(tmp_path_factory.mktemp("course"), texts) as opened:
        yield opened


def test_what_a_chapter_covers_is_answered_from_its_page(course: Retriever) -> None:
    asked = Query("what does chapter 2 cover")
    given = Assistant(course).answer(asked)
    assert given.grounding.level is Level.ANSWERED
    assert {passage.doc_path for passage in given.passages} == {"two.md"}
    assert "search_changed" not in {notice.code for notice in given.notices}


def test_filters_of_the_reader_count_before_the_number_of_a_chapter(course: Retriever) -> None:
    asked = Query("what is chapter 2 about", filters=QueryFilters(doc_paths=["three.md"]))
    given = Assistant(course).answer(asked)
    assert {passage.doc_path for passage in given.passages} <= {"three.md"}


RULES = """# Rules

Whoever breaks a rule without a reason has to do it again.

This book has all the rules of the workshop and explains each.

## From credits to points

Each credit counts ten points.

## Credits

Ada and Alan wrote this.

## Our team

Ada sweeps the floor.
"""


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Retriever]:
    """A retriever over a page whose second paragraph says what the book is."""
    with open_book(tmp_path_factory.mktemp("rules"), {"rules.md": RULES}) as opened:
        yield opened


def test_credits_that_are_points_name_no_author(rules: Retriever) -> None:
    given = Assistant(rules).answer(Query("who wrote this book?"))
    assert [place.section for place in given.citations] == ["Credits", "Our team"]


@pytest.mark.parametrize(
    ("path", "text", "begins"),
    [
        ("rules.md", RULES, "This book has all the rules of the workshop and explains each."),
        (
            "index.md",
            "# Rules\n\nA short one.\n\nA robot shall not hurt anybody in the workshop.",
            "A robot shall not hurt anybody in the workshop.",
        ),
        (
            "module-1/index.md",
            "# Rules\n\nA robot shall not hurt anybody in the workshop.",
            "The book has 1 pages.",
        ),
    ],
)
def test_what_the_book_is_about_begins_with_what_its_first_page_says(
    path: str, text: str, begins: str, tmp_path: Path
) -> None:
    with open_book(tmp_path, {path: text}) as opened:
        assert Assistant(opened).answer(Query("what is this about?")).text.startswith(begins)


def test_a_long_text_is_searched_by_the_clause_that_asks(book: Retriever) -> None:
    story = "My messages on the topic and the service of the node are late, and nobody helps. " * 4
    asked = "how do soft fingers close around an egg"
    given = Assistant(book).answer(Query(f"{story}Besides, {asked}?"))
    assert given.passages[0].citation.section == "Soft grippers"
    assert [notice.data for notice in given.notices if notice.code == "search_changed"] == [
        {"question": asked}
    ]


@pytest.mark.parametrize(
    ("question", "searched"),
    [
        ("Which sensors does the book describe?", "Which sensors?"),
        ("What does this textbook say about torque control?", "torque control?"),
        ("Does the course cover SLAM?", "SLAM?"),
        ("How does the documentation define a reducer?", "a reducer?"),
        ("In this course, what is a URDF?", "what is a URDF?"),
        ("According to the book, what is torque?", "what is torque?"),
        ("What is torque according to this guide?", "What is torque?"),
        ("What does the book cover?", "What does the book cover?"),
        ("How is this course graded?", "How is this course graded?"),
        ("What does the book of rules say about it?", "What does the book of rules say about it?"),
        ("How many days do I have in this course?", "How many days do I have in this course?"),
    ],
)
def test_words_that_only_name_the_book_as_the_source_are_not_searched(
    question: str, searched: str
) -> None:
    assert drop_book(question) == searched


ORDERED = [
    make_page("Welcome", "intro.md"),
    make_page("Module 1: Baking", "m1/index.md"),
    make_page("Chapter 1.1: Dough", "m1/1.1/index.md"),
    make_page("Kneading by Hand", "m1/1.1/hand.md"),
    make_page("Chapter 1.2: Sourdough Starters", "m1/1.2/index.md"),
    make_page("Quiz", "m1/1.2/quiz.md"),
    make_page("Module 2: Frying", "m2/index.md"),
    make_page("Quiz", "m2/2.1/quiz.md"),
]


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("Which chapter comes after Dough?", ("book_next", 2, 4)),
        ("what is the next chapter after chapter 1.1?", ("book_next", 2, 4)),
        ("What comes after Welcome?", ("book_next", 0, 1)),
        ("what comes after the sourdough starters", ("book_next", 4, 6)),
        ("what comes after starters?", None),
        ("Which chapter is before starters?", ("book_previous", 4, 2)),
        ("Which page follows Dough?", ("book_next", 2, 3)),
        ("what comes after kneading by hand?", ("book_next", 3, 4)),
        ("What comes right after module 1?", ("book_next", 1, 6)),
        ("What comes before Welcome?", None),
        ("What comes after the quiz?", None),
        ("What comes after the oven is hot?", None),
        ("What happens after kneading?", None),
        ("Which chapter explains dough?", None),
        ("What comes after?", None),
    ],
)
def test_the_neighbor_of_a_chapter_is_read_from_the_contents(
    question: str, found: tuple[str, int, int] | None
) -> None:
    kind, named, other = found or ("", 0, 0)
    expected = (kind, ORDERED[named], ORDERED[other]) if found else None
    assert find_neighbor(question, ORDERED) == expected


def test_a_question_for_the_next_chapter_is_answered_with_its_address(course: Retriever) -> None:
    pages = course.read_index(list_pages)
    given = Assistant(course).answer(Query(f"What comes after {pages[0].title}?"))
    assert given.kind is AnswerKind.REPLY
    assert given.citations[0].url == pages[1].url
    assert pages[1].title in given.text
