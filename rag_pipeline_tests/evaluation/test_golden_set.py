"""The golden set is well-formed and fits the book, and invalid sets are refused with a reason."""

from __future__ import annotations

import difflib
import itertools
import json
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.errors import GoldenSetError
from rag_pipeline.core.text.terms import extract_terms, extract_words
from rag_pipeline.evaluation.answers import find_facts
from rag_pipeline.evaluation.golden_set import (
    QUESTIONS_PATH,
    SELECTED_TEXT_PATH,
    ExpectedSection,
    GoldenQuery,
    GoldenSet,
    load_golden_set,
    validate_against_corpus,
)
from rag_pipeline_tests.evaluation.golden_pages import make_page, read_book, read_section_texts

if TYPE_CHECKING:
    from pathlib import Path

    from rag_pipeline.evaluation.golden_set import SelectedTextCase

MODULES = ("module-1", "module-2", "module-3", "module-4", "top")
CATEGORIES = ("fact", "how-to", "code", "comparison", "cross-module")
PAGE = make_page(
    "guide/setup.md",
    "---\ntitle: Setup\n---\n\n# Setup\n\nIntro.\n\n## Install `pip`\n\nText.\n\n"
    "### On *Linux*\n\nMore.\n\n#### Proxy\n\nDeep.\n",
)
QUERY = {
    "id": "q1",
    "question": "How?",
    "category": "fact",
    "all_of": False,
    "expected": [{"doc_path": "guide/setup.md", "section_heading": "On Linux"}],
}
CASE = {
    "id": "s1",
    "selected_text": "Text.",
    "doc_path": "guide/setup.md",
    "section_heading": "Install pip",
    "question": "What?",
    "relation": "related",
    "must_not_contain": ["Deep"],
}


@pytest.fixture(scope="module")
def golden() -> GoldenSet:
    return load_golden_set(QUESTIONS_PATH, SELECTED_TEXT_PATH)


def write(path: Path, content: object) -> Path:
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


def module_of(query: GoldenQuery) -> str:
    parts = query.expected[0].doc_path.split("/")
    return parts[0] if len(parts) > 1 else "top"


def find_section(doc_path: str, heading: str) -> str:
    return read_section_texts(read_book()[doc_path])[heading]


def find_expected(doc_path: str, heading: str) -> str:
    """Return the text below an expected heading; that of an h2 includes its subsections."""
    page = read_book()[doc_path]
    texts, headings = read_section_texts(page), page.document.headings
    names = [heading]
    for index, own in enumerate(headings):
        if own.text == heading and own.level == 2:
            below = itertools.takewhile(lambda one: one.level > 2, headings[index + 1 :])
            names += [one.text for one in below if one.text in texts]
    return "\n".join(texts[name] for name in dict.fromkeys(names))


def share_terms(question: str, text: str) -> float:
    """Return the share of a question's distinct terms that occur in a text; 0 without terms."""
    terms = set(extract_terms(question))
    return len(terms & set(extract_terms(text))) / len(terms) if terms else 0.0


def count_shared_words(question: str, text: str) -> int:
    """Return the number of words in the longest run that a question and a text share."""
    words, others = ([one.casefold() for one in extract_words(own)] for own in (question, text))
    return difflib.SequenceMatcher(None, words, others, autojunk=False).find_longest_match().size


def load_problems(path: Path, content: object) -> tuple[str, ...]:
    with pytest.raises(GoldenSetError) as caught:
        load_golden_set(write(path, content))
    assert str(path) in str(caught.value)
    return caught.value.problems


@pytest.mark.slow
def test_every_expected_page_and_heading_exists_in_the_book(golden: GoldenSet) -> None:
    documents = [page.document for page in read_book().values()]
    assert validate_against_corpus(golden, documents) == golden


def test_the_set_is_large_and_covers_the_whole_book(golden: GoldenSet) -> None:
    answerable = [query for query in golden.queries if query.expected]
    assert len(answerable) >= 160
    assert len({section.doc_path for query in answerable for section in query.expected}) >= 70
    by_module = Counter(module_of(query) for query in answerable)
    assert set(by_module) == set(MODULES)
    assert min(by_module.values()) >= 15


def test_the_set_has_questions_of_every_kind(golden: GoldenSet) -> None:
    counts = Counter(query.category for query in golden.queries)
    assert set(counts) == {*CATEGORIES, "unanswerable-near", "unanswerable-far"}
    assert min(counts.values()) >= 15
    for query in golden.queries:
        assert query.category.startswith("unanswerable") is not bool(query.expected)
        assert (query.category == "cross-module") is query.all_of
    cross = [query for query in golden.queries if query.all_of]
    assert all({section.group for section in query.expected} == {"a", "b"} for query in cross)


@pytest.mark.parametrize("kind", ["category", "module"])
def test_the_halves_have_similar_numbers_of_each_kind(golden: GoldenSet, kind: str) -> None:
    queries = [query for query in golden.queries if kind == "category" or query.expected]
    for key in {query.category if kind == "category" else module_of(query) for query in queries}:
        halves = Counter(
            query.half
            for query in queries
            if key == (query.category if kind == "category" else module_of(query))
        )
        assert abs(halves["tune"] - halves["report"]) <= 5, key


def test_no_question_is_asked_twice(golden: GoldenSet) -> None:
    counts = Counter(query.question.casefold() for query in golden.queries)
    assert counts.most_common(1)[0][1] == 1


def test_questions_are_not_copied_from_the_sections_that_answer_them(golden: GoldenSet) -> None:
    shares, paraphrased = [], []
    for query in (query for query in golden.queries if query.expected):
        texts = [find_expected(one.doc_path, one.section_heading) for one in query.expected]
        assert max(count_shared_words(query.question, text) for text in texts) <= 4, query.id
        shares.append(max(share_terms(query.question, text) for text in texts))
        assert shares[-1] <= 0.9, query.id
        asked = query.paraphrase or query.question
        paraphrased.append(max(share_terms(asked, text) for text in texts))
    # Most students use the usual names of things, and some describe them in other words. The
    # paraphrases avoid the book's words.
    assert 0.3 <= sum(share <= 0.5 for share in shares) / len(shares) <= 0.5
    assert 0.6 <= sum(share <= 0.5 for share in paraphrased) / len(paraphrased) <= 0.8


def test_selected_text_cases_are_of_every_kind(golden: GoldenSet) -> None:
    counts = Counter(case.relation for case in golden.selected_text)
    assert len(golden.selected_text) >= 60
    assert min(counts["related"], counts["unrelated"], counts["injected"]) >= 18


def test_selected_passages_occur_in_their_section(golden: GoldenSet) -> None:
    for case in golden.selected_text:
        section = find_section(case.doc_path, case.section_heading)
        assert " ".join(case.selected_text.split()) in " ".join(section.split()), case.id


def test_forbidden_terms_occur_in_other_sections_and_not_in_the_question(golden: GoldenSet) -> None:
    sections = {
        (doc_path, heading): " ".join(text.split()).casefold()
        for doc_path, page in read_book().items()
        for heading, text in read_section_texts(page).items()
    }

    def occurs_elsewhere(case: SelectedTextCase, term: str) -> bool:
        own = (case.doc_path, case.section_heading)
        return any(term.casefold() in text for key, text in sections.items() if key != own)

    for case in golden.selected_text:
        assert case.must_not_contain, case.id
        for term in case.must_not_contain:
            assert term.casefold() not in case.question.casefold(), (case.id, term)
            assert occurs_elsewhere(case, term), (case.id, term)


def test_a_set_needs_no_split_and_may_have_unknown_fields(tmp_path: Path) -> None:
    queries = [QUERY | {"note": "mine"}, {"id": "q2", "question": "Who?", "expected": []}]
    golden = load_golden_set(write(tmp_path / "set.json", {"queries": queries, "name": "x"}))
    assert [query.half for query in golden.queries] == ["report", "report"]
    assert golden.selected_text == ()


def test_a_misspelled_field_is_logged_and_an_unrelated_field_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    expected = [QUERY["expected"][0] | {"groups": "a", "page": 3}]
    query = QUERY | {"spilt": "tune", "note": "mine", "expected": expected}
    golden = load_golden_set(write(tmp_path / "set.json", {"queries": [query], "name": "x"}))
    assert golden.queries[0].half == "report"
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        "ignored field 'groups'; did you mean 'group'?",
        "ignored field 'spilt'; did you mean 'split'?",
    ]


def test_a_group_may_be_a_number(tmp_path: Path) -> None:
    expected = [QUERY["expected"][0] | {"group": number} for number in (1, 2, None)]
    queries = [QUERY | {"all_of": True, "expected": expected}]
    golden = load_golden_set(write(tmp_path / "set.json", {"queries": queries}))
    assert [section.group for section in golden.queries[0].expected] == ["1", "2", None]


def test_a_byte_order_mark_is_ignored(tmp_path: Path) -> None:
    path = write(tmp_path / "set.json", "\ufeff" + json.dumps({"queries": [QUERY]}))
    assert load_golden_set(path).queries[0].id == "q1"


def test_sets_with_equal_content_in_different_files_are_equal(tmp_path: Path) -> None:
    one = load_golden_set(write(tmp_path / "a.json", {"queries": [QUERY]}))
    other = load_golden_set(write(tmp_path / "b.json", {"queries": [QUERY]}))
    assert one == other
    assert repr(one) == repr(other)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"question": " "}, "query 'q1': question: "),
        ({"question": None}, "query 'q1': question: "),
        ({"expected": None}, "query 'q1': expected: "),
        ({"expected": [{"doc_path": "a.md"}]}, "query 'q1': expected[0].section_heading: "),
        (
            {"expected": [{"doc_path": "../a.md", "section_heading": "A"}]},
            "query 'q1': expected[0].doc_path: '../a.md' is not a valid document id",
        ),
        ({"all_of": "yes"}, "query 'q1': all_of: "),
        ({"split": "dev"}, "query 'q1': split: "),
        ({"id": ""}, "query number 1: id: "),
        ({"all_of": True, "expected": []}, "query 'q1': all_of is true, but expected is empty"),
        (
            {"facts": ["ok", "(1|2"]},
            "query 'q1': facts[1]: '(1|2' is not a valid regular expression: missing )",
        ),
        ({"facts": ["x*"]}, "query 'q1': facts[0]: 'x*' matches every answer"),
        ({"facts": [""]}, "query 'q1': facts[0]: '' matches every answer"),
        ({"facts": "x"}, "query 'q1': facts: "),
        ({"facts": ["x"], "expected": []}, "query 'q1': facts are given, but expected is empty"),
    ],
)
def test_an_invalid_field_is_named_with_its_query(
    tmp_path: Path, change: dict[str, object], problem: str
) -> None:
    problems = load_problems(tmp_path / "set.json", {"queries": [QUERY | change]})
    assert len(problems) == 1
    assert problems[0].startswith(problem)


def test_all_invalid_fields_are_named_at_once(tmp_path: Path) -> None:
    queries = [QUERY | {"question": ""}, {"question": "x", "expected": []}, 3]
    problems = load_problems(tmp_path / "set.json", {"queries": queries})
    assert [problem.split(":")[0] for problem in problems] == [
        "query 'q1'",
        "query number 2",
        "query number 3",
    ]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("{", "the file: Invalid JSON"),
        ([], "the file: "),
        ({}, "queries is empty"),
        ({"queries": {}}, "queries: "),
        ({"queries": []}, "queries is empty"),
        ({"queries": [QUERY, QUERY]}, "query 'q1': the id occurs 2 times"),
    ],
)
def test_a_malformed_file_is_refused(tmp_path: Path, content: object, problem: str) -> None:
    assert load_problems(tmp_path / "set.json", content)[0].startswith(problem)


def test_facts_match_the_sections_that_answer_the_question(golden: GoldenSet) -> None:
    wrong = []
    for query in golden.queries:
        texts = [find_expected(one.doc_path, one.section_heading) for one in query.expected]
        if query.all_of:
            texts = ["\n".join(texts)]  # each section answers only a part
        if query.facts and not any(find_facts(query.facts, text)[1] == () for text in texts):
            wrong.append(query.id)
    assert wrong == []


def test_enough_questions_of_each_half_and_category_have_facts(golden: GoldenSet) -> None:
    checked = [query for query in golden.queries if query.facts]
    assert min(Counter(query.half for query in checked).values()) >= 75
    assert {query.category for query in checked} == set(CATEGORIES)


def test_facts_are_read_and_do_not_change_the_repr_of_a_question(tmp_path: Path) -> None:
    facts = [r"400 ?hz", r"\bgyro(scope)?\b"]
    plain = load_golden_set(write(tmp_path / "plain.json", {"queries": [QUERY]}))
    path = write(tmp_path / "set.json", {"queries": [QUERY | {"facts": facts}]})
    assert plain.queries[0].facts == ()
    assert load_golden_set(path).queries[0].facts == tuple(facts)
    assert repr(load_golden_set(path).queries) == repr(plain.queries)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(GoldenSetError, match=r"none\.json: cannot be read"):
        load_golden_set(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("cases", "problem"),
    [
        ([CASE | {"relation": "other"}], "query 's1': relation: "),
        ([CASE, CASE], "query 's1': the id occurs 2 times"),
        ([CASE | {"must_not_contain": ["text"]}], "query 's1': must_not_contain: 'text'"),
    ],
)
def test_an_invalid_selected_text_case_is_named(
    tmp_path: Path, cases: list[object], problem: str
) -> None:
    path = write(tmp_path / "cases.json", {"cases": cases})
    with pytest.raises(GoldenSetError) as caught:
        load_golden_set(write(tmp_path / "set.json", {"queries": [QUERY]}), path)
    assert caught.value.path == path
    assert caught.value.problems[0].startswith(problem)


def make_set(tmp_path: Path, doc_path: str, heading: str) -> GoldenSet:
    expected = (ExpectedSection(doc_path, heading),)
    return GoldenSet(tmp_path / "set.json", (GoldenQuery("q1", "How?", expected),))


@pytest.mark.parametrize(
    ("written", "section"),
    [
        ("Setup", "Setup"),
        ("Install pip", "Install pip"),
        ("install  `pip`", "Install pip"),
        ("On *Linux*", "On Linux"),
        ("proxy", "Proxy"),
    ],
)
def test_a_heading_gets_the_spelling_of_the_page(
    tmp_path: Path, written: str, section: str
) -> None:
    golden = make_set(tmp_path, "guide/setup.md", written)
    checked = validate_against_corpus(golden, [PAGE.document])
    assert checked.queries[0].expected == (ExpectedSection("guide/setup.md", section),)


@pytest.mark.parametrize(
    ("doc_path", "heading", "problem"),
    [
        (
            "guide/setup.md",
            "Install pipx",
            (
                "query 'q1': expected[0].section_heading 'Install pipx' is missing from "
                "guide/setup.md; the most similar is 'Install pip'"
            ),
        ),
        (
            "guide/set-up.md",
            "Setup",
            (
                "query 'q1': expected[0].doc_path 'guide/set-up.md' does not exist; the most "
                "similar is 'guide/setup.md'"
            ),
        ),
        ("zzz.md", "Setup", "query 'q1': expected[0].doc_path 'zzz.md' does not exist"),
    ],
)
def test_a_renamed_page_or_heading_is_refused_with_the_most_similar_name(
    tmp_path: Path, doc_path: str, heading: str, problem: str
) -> None:
    golden = make_set(tmp_path, doc_path, heading)
    with pytest.raises(GoldenSetError) as caught:
        validate_against_corpus(golden, [PAGE.document])
    assert caught.value.problems == (problem,)
    assert caught.value.path == golden.path


def test_an_unreadable_page_is_not_reported_as_missing(tmp_path: Path) -> None:
    golden = make_set(tmp_path, "broken.md", "A")
    with pytest.raises(
        GoldenSetError, match=r"expected\[0\]\.doc_path: broken\.md: line 2: no YAML"
    ):
        validate_against_corpus(
            golden, [PAGE.document], {"broken.md": "broken.md: line 2: no YAML"}
        )


def test_a_selected_text_case_with_a_renamed_heading_is_refused(tmp_path: Path) -> None:
    cases = write(tmp_path / "cases.json", {"cases": [CASE | {"section_heading": "Installing"}]})
    golden = load_golden_set(write(tmp_path / "set.json", {"queries": [QUERY]}), cases)
    with pytest.raises(GoldenSetError, match="query 's1': section_heading 'Installing'"):
        validate_against_corpus(golden, [PAGE.document])


def test_many_problems_are_counted_rather_than_listed(tmp_path: Path) -> None:
    queries = tuple(
        GoldenQuery(f"q{number}", "How?", (ExpectedSection("none.md", "None"),))
        for number in range(14)
    )
    with pytest.raises(GoldenSetError, match="and 4 more") as caught:
        validate_against_corpus(GoldenSet(tmp_path / "set.json", queries), [PAGE.document])
    assert len(caught.value.problems) == 14
