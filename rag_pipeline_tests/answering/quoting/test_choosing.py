"""Tests of the choice of passages that answer a question without a chat model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_pipeline.answering.models import Source
from rag_pipeline.answering.quoting.choosing import (
    MAX_PASSAGES,
    MAX_WORDS,
    choose_passages,
    lists_things,
    measure_definition,
    share_out,
)
from rag_pipeline.answering.quoting.passages import find_parts
from rag_pipeline.answering.tables import find_blocks
from rag_pipeline.core.models import Figure
from rag_pipeline.retrieval.models import Citation
from rag_pipeline_tests.answering.factories import CODE, SENSING, WALKING
from rag_pipeline_tests.growth import assert_linear

TABLE = "Both pots bake bread.\n\n| Pot | Crust |\n|---|---|\n| iron | thin |\n| clay | thick |"


def make_source(text: str, *headings: str, kind: str = "prose", score: float = 0.5) -> Source:
    """Return a source with the blocks of its text, the given headings and content type."""
    headings = headings or ("Page", "Section")
    citation = Citation(headings[0], headings[-1], "", "", "")
    blocks = tuple(find_blocks(text))
    return Source(1, text[:20], text, citation, blocks, "p.md", headings, kind, score)


def choose(question: str, *sources: Source) -> list[str]:
    """Return the texts of the passages that are chosen from sources, numbered in their order."""
    numbered = [replace(source, number=at) for at, source in enumerate(sources, 1)]
    return [choice.text for choice in choose_passages(question, numbered, {})]


def test_the_main_passage_covers_the_words_of_the_question() -> None:
    found = choose("How fast does the gyroscope drift?", make_source(WALKING), make_source(SENSING))
    assert found[0] == SENSING


def test_the_better_source_is_preferred_if_words_do_not_decide() -> None:
    assert choose("Explain this please", make_source(WALKING), make_source(SENSING))[0] == WALKING


def test_the_weight_of_a_word_decides_which_part_is_the_best() -> None:
    parts = "\n\n".join(f"The {word} moves. {'It counts. ' * 60}" for word in ("ankle", "wrist"))
    for term, first in (("ankl", "The ankle"), ("wrist", "The wrist")):
        (choice, *_) = choose_passages("ankle wrist", [make_source(parts)], {term: 9.0})
        assert choice.text.startswith(first)


def test_a_passage_that_begins_with_a_pronoun_is_extended_to_the_part_before() -> None:
    filler = "Nothing of note. " * 60
    text = f"{filler}\n\nA starter is a dough.\n\nIt floats on water when ripe.\n\n{filler}"
    assert choose("When does something float on water?", make_source(text))[0].startswith("A star")


def test_a_short_section_is_quoted_as_a_whole_without_its_heading() -> None:
    text = "## Feed\n\nFeed it daily.\n\nDiscard half of it first."
    assert choose("How often do I feed it?", make_source(text)) == [text[9:]]


def test_all_passages_together_are_limited_but_one_part_is_always_whole() -> None:
    long = "The starter floats on cold water. " * 30
    sources = [make_source(f"{long}{n}.", "Page", f"Part {n}") for n in range(6)]
    found = choose_passages("Does a starter float on cold water?", sources, {})
    assert sum(choice.words for choice in found) <= MAX_WORDS
    code = "Run it:\n\n```py\n" + "x = 1\n" * 300 + "```"
    assert choose("Show the code", make_source(code)) == [code]


def test_at_most_three_passages_are_chosen_and_none_is_a_repetition() -> None:
    texts = [f"The gear number {n} turns the {n} wheel of gears." for n in range(9)]
    sources = [make_source(text, "Gears", f"Gear {n}") for n, text in enumerate(texts)]
    assert len(choose("Which gear turns a wheel?", *sources)) <= MAX_PASSAGES
    assert choose("capture point", make_source(WALKING), make_source(WALKING, "Other")) == [WALKING]


def test_each_half_of_a_compound_question_gets_a_passage() -> None:
    filler = [
        make_source(f"Nothing else of note stands in this text {n}.", score=0.49) for n in range(3)
    ]
    question = "How does the ankle torque correct errors, and why do gyroscopes drift?"
    found = choose(question, make_source(WALKING), *filler, make_source(SENSING, score=0.3))
    assert found[:2] == [WALKING, SENSING]


@pytest.mark.parametrize(
    ("question", "main"),
    [
        ("Show me code that starts the walker node", CODE),
        ("Compare iron and clay pots", TABLE),
        ("How do I start the walker node?", CODE),
    ],
)
def test_a_question_gets_the_form_that_it_asks_for(question: str, main: str) -> None:
    prose = make_source("A walker node exists, and so do iron pots and clay pots.")
    assert choose(question, prose, make_source(main))[0] == main


def test_a_quiz_question_is_not_the_main_passage_if_another_section_answers() -> None:
    quiz = make_source(
        "Which pot gives a thin crust?\n\n- iron\n- clay\n\nAnswer\n\nThe iron pot does.",
        kind="quiz",
        score=0.6,
    )
    prose = make_source("An iron pot gives a thin crust because it keeps the steam in.")
    assert choose("Which pot gives a thin crust?", quiz, prose)[0] == prose.text
    assert "Which pot" not in "".join(choose("Which pot gives a thin crust?", quiz, prose)[1:])
    assert choose("Which pot gives a thin crust?", quiz) == ["Answer\n\nThe iron pot does."]


def test_a_list_of_pages_is_not_the_main_passage_if_another_section_answers() -> None:
    lessons = "Lessons:\n\n1. [Sourdough](a.md): how starters work\n2. [Steam](b.md): how it works"
    contents = make_source(lessons, "Chapter", "Lessons", score=0.6)
    page = make_source("A sourdough starter rises slowly by wild yeast.", "Sourdough")
    assert choose("How do sourdough starters work?", contents, page)[0] == page.text


HEADED = "| | Yeast | Sourdough |\n|---|---|---|\n| Time | 2 h | 12 h |"
LISTED = (
    "| Leaven | Time |\n|---|---|\n| Yeast | 2 h |\n| Baking powder | 0 h |\n| Sourdough | 12 h |"
)


@pytest.mark.parametrize("table", [HEADED, LISTED, f"How long they take:\n\n{HEADED}"])
@pytest.mark.parametrize(
    "question",
    ["What is the difference between yeast and sourdough?", "sourdough vs yeast"],
)
def test_a_table_that_names_both_things_compares_them(question: str, table: str) -> None:
    near = [
        make_source(f"Yeast and a sourdough rise, says recipe {n}. {'It is warm. ' * n}")
        for n in range(7)
    ]
    assert choose(question, *near, make_source(table, score=0.4))[0] == table


@pytest.mark.parametrize(
    "table",
    [
        "| Yeast | Time |\n|---|---|\n| fresh | 2 h |",
        "| Yeast and sourdough | Time |\n|---|---|\n| both | 2 h |",
        "| Time | Note |\n|---|---|\n| 2 h | yeast |\n| 12 h | sourdough |",
    ],
)
def test_a_table_that_does_not_name_both_things_compares_nothing(table: str) -> None:
    near = make_source("Yeast is faster than a sourdough. The difference is the taste.")
    found = choose("Difference between yeast and sourdough", near, make_source(table, score=0.4))
    assert found[0] == near.text


def test_a_table_that_names_two_words_of_one_thing_compares_nothing() -> None:
    near = make_source("Milk bread is softer than a bread soup.")
    table = make_source("| Part | Time |\n|---|---|\n| Milk | 1 h |\n| Bread | 2 h |", score=0.4)
    assert choose("milk bread vs bread soup", near, table)[0] == near.text


def test_a_passage_that_the_reader_has_seen_is_not_the_main_passage_again() -> None:
    sources = [replace(make_source(text), number=at) for at, text in enumerate([WALKING, SENSING])]
    question = "What is the capture point? How is it measured?"
    assert choose_passages(question, sources, {})[0].text == WALKING
    seen = f"**Balance** [1]\n\n{WALKING}"
    assert choose_passages(question, sources, {}, seen)[0].text == SENSING
    assert choose_passages(question, sources[:1], {}, seen)[0].text == WALKING


def test_sources_without_text_give_no_passage() -> None:
    assert choose("x") == []
    assert choose("x", make_source("  "), make_source("## Only a heading")) == []


def test_a_text_in_a_script_without_spaces_can_be_quoted() -> None:
    text = "机器人用两条腿走路并保持平衡。它每一步都会摔倒并接住自己。"
    assert choose("机器人?", make_source(text)) == [text]


ENTRY_LIST = "Terms:\n\n" + "\n".join(
    f"- **{name}**: {'it is a long explanation of the word ' * 12}" for name in ("Crumb", "Crust")
)


@pytest.mark.parametrize(
    ("subject", "text", "heading", "least"),
    [
        ("crust", "The outer part of a loaf.", "Crust", 0.85),
        ("crusts", "The outer part of a loaf.", "Crust", 0.85),
        ("MPC", "It plans ahead.", "Model predictive control (MPC)", 0.85),
        ("model predictive control", "It plans.", "Model predictive control (MPC)", 0.85),
        ("STP protocol", "It cuts loops.", "Spanning tree protocol (STP)", 0.85),
        ("ROS", "A set of libraries.", "ROS 2", 0.85),
        ("crust", "The outer part.", "Crust overview", 0.85),
        ("crust", "The outer part.", "Introduction to crusts", 0.85),
        ("crust", "Crusts are what you hear.", "Crust", 1.0),
        ("crust", "**The crust** (rind) breaks.", "Crust", 1.0),
        ("crust", "Bake it. The crust is the outer part.", "Crust", 1.0),
        ("crust", "- **Crust**: the outer part.", "Glossary", 0.9),
        ("crust", "Crust — the outer part.", "Glossary", 0.9),
        ("DDS", "Data Distribution Service (DDS) is a standard.", "Parts", 0.9),
        ("DDS", "DDS (Data Distribution Service) is a standard.", "Parts", 0.9),
        ("crust", "| Term | Meaning |\n|---|---|\n| **Crust** | the outer part |", "Words", 0.8),
        ("crust", "Bake it. The crust is the outer part of a loaf.", "Baking", 0.6),
        ("ROS", "They talk. ROS 2 is the set of libraries for it.", "Parts", 0.6),
        ("crust", "Crusts protect the crumb.", "How a crust forms", 0.5),
        ("module 2", "Robots fall.", "Module 2: Sensors", 0.85),
        ("crust", "Crusts break.", "Crust: the outer part", 0.8),
    ],
)
def test_a_definition_is_recognised(subject: str, text: str, heading: str, least: float) -> None:
    (part,) = find_parts(make_source(text, "Page", heading))
    assert measure_definition(part, subject) == least


@pytest.mark.parametrize(
    ("subject", "text", "heading"),
    [
        ("crust", "The crust forms late.", "Baking"),
        ("crust", "Bake it. A *crust* forms.", "Baking"),
        ("crust", "A thick crust is hard.", "Crust thickness"),
        ("crust", "A thick crust is hard.", "Crust()thickness"),
        ("crust", "The crust isn't the crumb.", "How a crust forms"),
        ("crust", "It breaks.", "Crust: when it is too dry"),
        ("crust", "Crust\n\n```\nbake(crust)\n```", "Crust"),
        ("tree protocol", "It cuts loops.", "Spanning tree protocol (STP)"),
        ("oven.heat", "It tells if the oven is hot.", "oven.isHot(heat)"),
        ("art", "Starting is the hardest.", "Party"),
        ("the", "The thing: it is.", "Page"),
        ("crust", "| Pot | Part |\n|---|---|\n| iron | crust |", "Pots"),
    ],
)
def test_another_mention_is_not_a_definition(subject: str, text: str, heading: str) -> None:
    (part,) = find_parts(make_source(text, "Page", heading))
    assert measure_definition(part, subject) == 0


def test_what_is_x_is_answered_by_the_entry_of_a_long_glossary_list() -> None:
    chapters = make_source("Crust and crumb: the crust of bread, the crumb of bread.", score=0.9)
    glossary = make_source(ENTRY_LIST, "Glossary", score=0.5)
    assert choose("What is a crust?", chapters, glossary)[0].startswith("- **Crust**")


def test_the_word_for_its_kind_may_be_missing_from_the_definition_of_a_term() -> None:
    used = make_source("Bake with a banneton basket on a shelf.", "Bread", "Tools")
    entry = make_source("Wood or cane, in which a loaf rises.", "Glossary", "Banneton", score=0.4)
    sources = [replace(one, number=at) for at, one in enumerate((used, entry))]
    for rarer, first in (("banneton", entry), ("basket", used)):
        weights = {"banneton": 2.0, "basket": 2.0, rarer: 5.0}
        assert choose_passages("a banneton basket", sources, weights)[0].text == used.text
        found = choose_passages("What is a banneton basket?", sources, weights)
        assert found[0].text == first.text


def test_an_entry_of_a_glossary_of_paragraphs_is_quoted_alone() -> None:
    glossary = "**Crumb**: The inner part.\n\n**Crust**: The outer part.\n\n**Dough**: Not baked."
    found = choose("What is a crust?", make_source(glossary, "Glossary"))
    assert found == ["**Crust**: The outer part."]


def test_a_text_need_not_repeat_the_words_of_its_heading() -> None:
    why = make_source("- It keeps a loaf moist\n- It tastes", "Bread", "Why a crust")
    other = make_source("A crust forms late. That is why.", "Bread", "Baking", score=0.45)
    assert choose("why a crust", why, other)[0] == why.text
    option = "Type: number. Default: 3\n\nBread, crust and more: see the rise."
    found = choose("default of rise", make_source(f"{option} {'It rises. ' * 60}", "Oven", "rise"))
    assert found[0].startswith("Type")


def test_a_heading_with_words_of_a_report_does_not_make_up_for_its_text() -> None:
    names = make_source("Two frames meet here.", "Oven", "A loaf that leans to the left")
    table = "| Symptom | Check |\n|---|---|\n| The loaf is on the left | the level |"
    symptoms = make_source(table, "Oven", "Symptoms", score=0.3)
    assert choose("loaf leans to the left", names, symptoms)[0] == table


def test_the_title_of_a_note_is_quoted_with_its_text() -> None:
    note = f"Which pots are best, and when to choose one\n\n{'Iron keeps the heat. ' * 60}"
    assert choose("which pots are best", make_source(note, "Oven")) == [note]


def test_the_label_of_a_tab_is_no_heading_that_defines_a_term() -> None:
    tab = make_source("Crust\n\nSet the oven first.", "Oven", "Settings", "Crust", score=0.4)
    text = make_source("When a loaf is done, its crust sounds hollow.", "Bread", "Baking")
    assert choose("What is a crust?", text, tab)[0] == text.text


def test_a_list_with_code_does_not_say_what_a_term_means() -> None:
    steps = "1. Bake the crust:\n\n   ```\n   bake(crust)\n   ```\n\n2. Wait for the crust."
    text = make_source("Bread dries from the crust inwards.", "Bread", "Storing", score=0.45)
    assert choose("What is a crust?", make_source(steps), text)[0] == text.text


def test_the_text_below_the_name_of_a_function_may_be_code() -> None:
    uses = make_source("`oven.heat(to)` is a shorthand of `oven.set(to)`.", "Oven", "oven.set(to)")
    text = "Heats the oven. For example:\n\n```js\noven.heat(180);\n```"
    named, other = make_source(text, "Oven", "oven.heat(to)"), make_source("A door.", "Door")
    assert choose("oven.heat", other, named, other, uses)[0] == text


def test_a_question_in_code_and_a_list_of_lessons_answer_nothing() -> None:
    prompt = "Ask an assistant:\n\n```\nWhy does a loaf need a crust?\n```"
    lessons = "You know now:\n\n- Why a loaf needs a crust (Lesson 2)\n- How to bake (Lesson 3)"
    text = make_source("A loaf needs a crust to keep it moist.", "Bread", "Baking")
    for other in (prompt, lessons):
        assert choose("Why does a loaf need a crust?", make_source(other), text)[0] == text.text


def test_a_section_on_mistakes_answers_a_question_about_an_error() -> None:
    text = make_source("The oven shows numbers, and error 3 is one of them.", "Oven", "Display")
    fix = make_source("Error 3 of the oven: the door is open.", "Oven", "Mistakes")
    assert choose("oven error 3", fix, text)[0] == fix.text
    debug = make_source("Open the door of the oven.", "Oven", "Debugging")
    other = make_source("Debug the oven.", "Oven", "Display", score=0.49)
    assert choose("how to debug the oven", debug, other)[0] == debug.text


def test_a_list_of_links_below_a_heading_does_not_define_the_heading() -> None:
    links = make_source("- [Ovens](ovens.md)\n- [Pots](pots.md)", "Reading", "Sourdough")
    text = make_source("In a sourdough, wild yeast makes the bread rise.", "Bread", "Rising")
    assert choose("What is a sourdough?", links, text)[0] == text.text


@pytest.mark.slow
@pytest.mark.parametrize(
    "mark",
    [
        "a ",
        "(",
        "word (x ",
        "| ",
        "*",
        "\n",
        "[",
        "crust ",
        "crust (",
        "- crust\n",
        "A.\n\n",
        "***\n",
    ],
)
def test_repeated_marks_take_linear_time(mark: str) -> None:
    assert_linear(
        lambda size: choose("What is a crust?", make_source("x " + mark * (size // len(mark)))),
        5_000,
    )


def test_without_a_common_word_the_first_source_is_quoted() -> None:
    sources = [replace(make_source(text), number=at) for at, text in enumerate((WALKING, SENSING))]
    assert choose_passages("Say something about wheels", sources, {})[0].text == WALKING


def test_a_part_that_is_added_and_refers_back_takes_the_part_before_it_along() -> None:
    first = "The motor spins a wheel. " * 20
    asked = f"The brake stops the flywheel. {'Slowly. ' * 80}"
    text = f"{first.strip()}\n\nIt also spins a fan.\n\n{asked}"
    (found,) = choose("What does the brake of the flywheel do?", make_source(text))
    assert not found.startswith("It also")


def test_sources_without_a_score_are_quoted() -> None:
    text = "# A\n\nLions hunt antelopes.\n\n# B\n\nFish swim quickly."
    assert choose("zebra?", make_source(text, score=0.0))


@pytest.mark.parametrize(
    ("text", "subject", "defined"),
    [
        ("C++: a compiled language.", "C++", True),
        ("C: an old language.", "C++", False),
        ("C#: a language of Microsoft.", "C#", True),
        ("C++: a compiled language.", "C", False),
    ],
)
def test_a_sign_after_a_term_belongs_to_it(text: str, subject: str, *, defined: bool) -> None:
    (part,) = find_parts(make_source(text))
    assert (measure_definition(part, subject) >= 0.8) is defined


def test_a_far_source_is_quoted_only_if_it_clearly_defines_the_term() -> None:
    near = [
        make_source(f"A dough with {what} rises well.", "Bread", what)
        for what in ("rye", "wheat", "oats", "spelt", "corn")
    ]
    entry = make_source("Dough: flour and water, before it is baked.", "Glossary")
    row = make_source("| Kind | Time |\n|---|---|\n| Dough | a day |", "Plan")
    assert choose("What is a dough?", *near, entry)[0] == entry.text
    assert row.text in choose("What is a dough?", row, *near)
    assert row.text not in choose("What is a dough?", *near, row)


def test_steps_answer_a_question_how_to_do_something_before_a_short_entry_of_the_subject() -> None:
    entry = make_source("A vessel for baking, with a lid.", "Glossary", "Pot", score=0.6)
    steps = "Bake in a pot like this:\n\n1. Heat the pot.\n2. Put the loaf in."
    recipe = make_source(steps, "Recipes", "Baking")
    assert choose("How do I bake in a pot?", entry, recipe)[0] == steps
    assert choose("bake a loaf in a pot", entry, recipe)[0] == steps
    assert choose("pot", entry, recipe)[0] == entry.text


def test_steps_are_quoted_from_the_first_one() -> None:
    steps = [f"{n}. Step {n}. {'Knead it well. ' * 25}".rstrip() for n in range(1, 4)]
    steps[1] += "\n\n   ```\n   bake --pot loaf\n   ```"
    found = choose("How do I bake a loaf in a pot?", make_source("\n\n".join(steps), "Bread"))
    assert found[0].startswith("1. Step 1")
    assert "3. Step 3" in found[0]


def test_a_list_without_numbers_is_no_list_of_steps() -> None:
    text = make_source("A loaf bakes in a pot below a lid.", "Bread", "Baking in a pot")
    items = "**Iron** bakes a loaf.\n{} **Clay** pots need an hour.\n{} **Steel** is light."
    for mark, first in (("-", text.text), ("1.", "1. **Iron**")):
        pots = make_source(f"{mark} {items.format(mark, mark)}", "Bread", "Pots")
        assert choose("How do I bake a loaf in a pot?", text, pots)[0].startswith(first)


def test_a_list_that_asks_the_reader_is_no_list_of_steps() -> None:
    text = make_source("In a pot, a loaf bakes below a lid that keeps the steam.", "Bread", "Pots")
    asks = "1. Heat a pot and bake a loaf. How thick is its crust?\n2. Repeat it without a lid."
    exercise = make_source(asks, "Bread", "Check your understanding", score=0.45)
    assert choose("How do I bake a loaf in a pot?", text, exercise)[0] == text.text


KINDS = "| Pot | Crust |\n|---|---|\n| iron | thin |\n| clay | thick |"


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        (KINDS, ("Page", "Baking")),
        ("Three pots bake bread:\n\n- iron\n- clay\n- glass", ("Page", "Baking")),
        ("- iron\n- clay\n- glass", ("Page", "Pots for bread")),
    ],
)
@pytest.mark.parametrize("question", ["list the pots for bread", "which pots are there for bread?"])
def test_a_list_or_table_of_the_things_answers_a_question_for_them(
    question: str, text: str, headings: tuple[str, ...]
) -> None:
    prose = make_source("Bread bakes in a pot.")
    far = [make_source(f"Loaf {n}.", "Page", f"Part {n}", score=0.4) for n in range(4)]
    listing = make_source(text, *headings, score=0.45)
    assert choose(question, prose, *far, listing)[0] == text


@pytest.mark.parametrize(
    "text",
    [
        "Some pots:\n\n- iron\n- clay",
        "| Crust | Pot |\n|---|---|\n| thin | iron |",
        "Pots:\n\n- iron https://a.example\n- clay https://b.example\n- glass https://c.example",
    ],
)
def test_other_lists_are_no_list_of_the_things(text: str) -> None:
    (part,) = find_parts(make_source(text))
    assert not lists_things(part, "pots", {"pot": 1.0})


@pytest.mark.parametrize(
    ("things", "introduction"),
    [
        ("grasps", "Mistakes in grasping:"),
        ("tile types", "The types of complications:"),
        ("tiles", "What a tile shows:"),
    ],
)
def test_words_with_the_same_stem_or_only_the_last_word_name_other_things(
    things: str, introduction: str
) -> None:
    (part,) = find_parts(make_source(f"{introduction}\n\n- iron\n- clay\n- glass"))
    assert not lists_things(part, things, share_out(things, {}))


def test_a_number_of_the_things_answers_how_many_there_are() -> None:
    when = make_source("In weeks 7 to 10 the course bakes. Weeks have days.", "Plan", "Plan")
    long = make_source("The course takes sixteen weeks.", "Plan", "Length", score=0.4)
    assert choose("how many weeks does it take", when, long)[0].endswith("sixteen weeks.")


@pytest.mark.parametrize(
    "text",
    [
        "Two chapters: baking and eating bread. Bread falls.",
        "Bread falls. This chapter explains why bread falls.",
        "You will learn why bread falls.",
        "| Week | Read |\n|---|---|\n| 4 | why bread falls |",
    ],
)
def test_a_text_that_says_what_pages_contain_is_not_the_main_passage(text: str) -> None:
    answering = make_source(
        "Bread falls because it cools too fast.", "Bread", "Cooling", score=0.45
    )
    about = make_source(text, "Overview", "Baking")
    assert choose("why does bread fall", about, answering)[0].startswith("Bread falls because")
    assert choose("what does this course say about why bread falls", about, answering)[0] == text


def test_a_formula_answers_a_question_for_one() -> None:
    entry = make_source("Rise: how far dough rises.", "Glossary", "Rise")
    formula = make_source("Dough rises by\n\n$$\nr = 2 t\n$$", "Dough", "Growth", score=0.45)
    assert choose("formula for the rise of dough", entry, formula)[0] == formula.text
    assert choose("what is the rise", entry, formula)[0] == entry.text


def test_a_text_about_mistakes_answers_only_a_question_about_them() -> None:
    mistakes = make_source("- Add salt to bread late.\n- Add it twice.", "Bread", "Common mistakes")
    salt = make_source("To add salt to bread, weigh it.", "Bread", "Salt")
    assert choose("how do i add salt to bread", mistakes, salt)[0] == salt.text
    assert choose("common mistakes with salt in bread", mistakes, salt)[0] == mistakes.text


def test_the_part_with_the_fact_that_is_asked_is_the_main_passage() -> None:
    about = make_source("The oven has memory for bread.", "Oven", "Memory")
    fact = make_source("By default the oven takes 2 GB of memory.", "Oven", "Memory", score=0.45)
    assert choose("how much memory does the oven need", about, fact)[0] == fact.text


def test_the_description_of_an_image_is_not_quoted() -> None:
    text = "A photo of a loaf.\n\nBake the loaf.\n\nA photo of a loaf."
    figure = Figure("image", "/loaf.png", "A photo of a loaf.", "", 1)
    pictured = replace(make_source(text), figures=(figure,))
    assert choose("how to bake a loaf", pictured) == ["Bake the loaf."]


def test_a_page_about_the_whole_book_answers_a_question_that_names_it() -> None:
    part = make_source("The exam of this part takes two weeks.", "Part exam")
    inner = replace(part, doc_path="part-1/exam.md")
    plan = make_source("Sixteen weeks in all.", "Plan", score=0.45)
    assert choose("how many weeks does the course take", inner, plan)[0] == plan.text


def test_a_list_whose_items_are_the_compared_things_compares_them() -> None:
    both = "- Iron pots: heavy\n- **Clay pots**: slow"
    first = make_source("Iron or clay, pots are hot.")
    assert choose("iron vs clay", first, make_source(both, "Page", "Kinds"))[0] == both


def test_a_list_whose_items_only_mention_the_things_compares_nothing() -> None:
    mistakes = "- Too much iron: heavy\n- Too much clay: slow"
    first = make_source("Iron or clay, pots are hot.")
    assert choose("iron vs clay", first, make_source(mistakes, "Page", "Mistakes"))[0] == first.text


def test_both_sides_of_a_comparison_get_the_section_that_is_named_after_them() -> None:
    filler = "Rinse it, dry it and put it away. " * 20
    iron = make_source(f"Iron pots are heavy. {filler}", "Iron", "Iron pots")
    mixed = make_source(f"Clay cracks next to iron. {filler}", "Repairs", "Cracks")
    clay = make_source("Clay pots are slow.", "Clay", "Clay pots", score=0.45)
    assert clay.text in choose("iron vs clay", iron, mixed, clay)


REPAIRS = "| Symptom | Remedy |\n|---|---|\n| The oven stays cold | Turn the switch |"


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        (REPAIRS, ("Oven", "Parts")),
        ("Turn the switch of the oven.", ("Oven", "Troubleshooting")),
        ("If the oven does not heat, turn the switch.", ("Oven", "Parts")),
        ("Turn the switch.", ("Oven", "The oven will not heat")),
    ],
)
@pytest.mark.parametrize("question", ["why does my oven not heat", "the oven doesn't heat"])
def test_a_report_of_a_problem_is_answered_by_a_text_about_troubles(
    question: str, text: str, headings: tuple[str, ...]
) -> None:
    echo = make_source("The oven can heat bread.", "Oven", "Heat of the oven", score=0.55)
    assert choose(question, echo, make_source(text, *headings))[0] == text
    assert choose("what does the oven do to heat", echo, make_source(text, *headings))[0] != text


def test_a_text_about_other_troubles_does_not_answer_a_report() -> None:
    source = make_source("Turn the switch.", "Bread", "Troubleshooting")
    assert choose("my oven is broken", make_source("The oven is hot."), source)[0] != source.text
