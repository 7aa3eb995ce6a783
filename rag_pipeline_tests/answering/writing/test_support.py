"""Tests of the search for the source that contains a written sentence."""

from __future__ import annotations

import re
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

from rag_pipeline.answering.grounding import apply_grounding_policy
from rag_pipeline.answering.tables import find_blocks, split_units
from rag_pipeline.answering.writing.citing import read_citations
from rag_pipeline.answering.writing.support import Attribution, Attributor
from rag_pipeline_tests.answering.factories import CODE, SENSING, WALKING, make_chunk, make_result
from rag_pipeline_tests.growth import assert_linear

QUESTION = "How does a walking robot keep its balance?"
MOTION = (
    "The controller of the Unitree G1 runs at 1,000 Hz and sends joint torques every 20 ms. "
    "Its battery of 0.5 kg loses 12.5% of its charge in two hours, and it has twenty-five joints. "
    "The zero moment point (ZMP) must stay inside the support polygon. "
    "A Kalman filter joins the measurements of three sensors:\n\n"
    "- the inertial measurement unit,\n- the encoders,\n- the force plates,\n- the camera.\n\n"
    "Set `use_sim_time` to true, and start it with `ros2 launch walker walk.launch.py`. "
    "The gravity is 9.81 m/s², and the drag coefficient is $c_d = 0.47$."
)
SCRIPT = (
    "Create the node before the timer:\n\n```python\nimport rclpy\n\n\nclass Walker(Node):\n"
    "    def __init__(self):\n        super().__init__('walker')\n"
    "        self.timer = self.create_timer(0.02, self.take_step)\n```\n\n"
    "The timer calls `take_step` on Ubuntu 22.04 with ROS 2 Humble."
)
COST = "A seven-token answer costs about 98 ms, and a token takes 14 ms. See rule 9."
SOURCES = (MOTION, SENSING, SCRIPT, COST)


def check(text: str, sources: tuple[str, ...] = SOURCES) -> Attribution:
    """Return the sources that contain a written sentence."""
    chunks = [make_chunk(source, section=f"Part {n}") for n, source in enumerate(sources)]
    grounded = apply_grounding_policy(make_result(QUESTION, chunks), QUESTION)
    read = read_citations(text, range(1, 100))
    return Attributor(grounded.sources, QUESTION).attribute(read.text, read.numbers)


SUPPORTED = [
    "It runs at 1000 Hz [1].",
    "It runs at 1 kHz [1].",
    "Torques are sent every 0.02 s [1].",
    "Torques are sent every 20 milliseconds [1].",
    "The battery has a mass of .5 kg [1].",
    "The battery weighs 500 g [1].",
    "A token takes almost 0.1 s [4].",
    "The battery loses 12.5 percent of its charge [1].",
    "The battery loses about 12% of its charge [1].",
    "The battery loses 0.125 of its charge [1].",
    "It has 25 joints [1].",
    "The filter reads 3 sensors [1].",
    "It loses one eighth of its charge in two hours [1].",
    "The robots' controllers were running at 1,000 Hz [1].",
    "The Unitree G1 sends torques to its joints [1].",
    "The Zero Moment Point has to stay in the polygon [1].",
    "The ZMP has to stay in the polygon [1].",
    "The measurements of the IMU are joined by the filter [1].",
    "A KALMAN filter joins the measurements [1].",
    "Kalman filters join measurements [1].",
    "You have to set `use_sim_time` to `True` [1].",
    "Set *use_sim_time* to **true** [1].",
    "Start it with `ros2 launch walker walk.launch.py` [1].",
    "Start it with `ros2  launch walker  walk.launch.py` [1].",
    "The file `walk.launch.py` belongs to `walker` [1].",
    "Gravity is about 9.8 m/s^2 [1].",
    "The drag coefficient $c_d$ is $0.47$ [1].",
    "From $c_d = 0.47$ follows the drag [1].",
    "The unit reports the angular velocity at 400Hz [2].",
    "The unit reports the angular velocity at 400 hertz [2].",
    "1. The gyroscope drifts [2].\n2. The filter adds the direction of gravity [2].",
    "**Step 7:** The filter adds the direction of gravity [2].",
    "**Key Takeaway:** the gyroscope of an inertial measurement unit drifts [2].",
    "The filter needs it: The gyroscope drifts [2].",
    "It drifts. [2]",
    "- **Gyroscope**: drifts [2]\n- **Accelerometer**: gives the direction of gravity [2]",
    "The timer calls it every 20 ms on Ubuntu 22 [3].",
    "Use ROS2 Humble [3].",
    "```python\nself.timer = self.create_timer(0.02,   self.take_step)\n``` [3]",
    "The class `Walker` derives from `Node` [3].",
    "`create_timer` calls `self.take_step` [3].",
    "The timer calls a step, and the gyroscope drifts [2][3].",
    "It runs at 1 kHz while the unit reports at 400 Hz [1][2].",
    "IMPORTANT: the gyroscope drifts [2].",
    "NOTE that the gyroscope drifts, which the Filter corrects [2].",
    "The Controller reads the unit, and the gyroscope drifts [2].",
    "The gyroscope's drift is corrected [2].",
    "The accelerometer\u2019s gravity direction corrects the gyroscope \u2013 it drifts [2].",
    "> The gyroscope drifts. [2]",
]
"""Sentences that say what their sources say, in other words or in another notation."""

MISSING = [
    ("It runs at 900 Hz [1].", ("900",)),
    ("It runs at 10,000 Hz [1].", ("10,000",)),
    ("It runs at 400 Hz [1].", ("400",)),
    ("Torques are sent every 0.2 s [1].", ("0.2",)),
    ("It loses 15% of its charge in 3.5 hours [1].", ("15%", "3.5")),
    ("It has 29 joints and a mass of 47 kg [1].", ("29", "47")),
    ("The Boston Dynamics controller runs at 1,000 Hz [1].", ("Boston", "Dynamics")),
    ("It was shown by Vukobratović [1].", ("Vukobratović",)),
    ("The Unitree H1 sends torques [1].", ("H1",)),
    ("The filter is part of OpenCV [2].", ("OpenCV",)),
    ("The LQR joins the measurements [1].", ("LQR",)),
    ("Set use_real_time to true [1].", ("use_real_time",)),
    ("Set `use_wall_time` to true [1].", ("`use_wall_time`",)),
    ("Start it with `ros2 run walker` [1].", ("`run`",)),
    ("Start it with `ros2 launch walker --verbose` [1].", ("`--verbose`",)),
    ("Call `spin_once` on the node [3].", ("`spin_once`",)),
    ("```python\nself.timer = self.create_timer(0.05, self.take_step)\n``` [3]", ("0.05",)),
    (
        "```python\nrclpy.spin_until_future_complete(Node)\n``` [3]",
        ("`spin_until_future_complete`",),
    ),
    ("The gravity is $g = 1.62$ [1].", ("1.62",)),
    ("See https://example.org/gait for the gyroscope [2].", ("https://example.org/gait",)),
    ("The timer needs Ubuntu 24.04 [3].", ("24.04",)),
    ("It takes 4 [2].", ("4",)),
    ("A token turns by 90 degrees [4].", ("90",)),
    ("A token needs 9,000 motors and 900 cameras [4].", ("9,000", "900")),
]
"""Sentences with numbers, names or code that their sources do not contain."""


@pytest.mark.parametrize("text", SUPPORTED)
def test_what_a_source_says_in_other_words_stands_in_it(text: str) -> None:
    assert check(text).numbers == read_citations(text, range(1, 100)).numbers


@pytest.mark.parametrize(("text", "missing"), MISSING)
def test_a_sentence_with_another_number_name_or_code_stands_in_no_source(
    text: str, missing: tuple[str, ...]
) -> None:
    source = SOURCES[read_citations(text, range(1, 100)).numbers[0] - 1]
    found = check(re.sub(r"\[\d\]", "[1]", text), (source,))
    assert (found.numbers, found.missing) == ((), missing)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("The gyroscope drifts.", (2,)),
        ("The gyroscope drifts [1].", (2,)),
        ("The gyroscope drifts [2][3].", (2,)),
        ("Bread dough rises overnight in the kitchen [2].", ()),
        ("Bread rises [2].", ()),
        ("A topic is a kind of chocolate cake.", ()),
    ],
)
def test_the_citation_is_the_source_that_contains_the_sentence(
    text: str, numbers: tuple[int, ...]
) -> None:
    assert check(text).numbers == numbers


SCATTERED = (
    "# Launch files\n\nA launch file describes a system of several nodes in one place. It names "
    "the package of each of them. Arguments come first. They have defaults, which a caller "
    "overrides. Remapping replaces the name of a topic. Conditions leave out an entry. Events "
    "react to the end of a process.\n\n"
    "Each node keeps a parameter for every value that an operator tunes:\n\n"
    "- the speed,\n- the frame,\n- the rate,\n- the gain,\n- the timeout,\n- the tolerance.\n\n"
    "| Robot | Sensor | Mass |\n|---|---|---|\n| Digit | depth camera | light |\n"
    "| Atlas | lidar | heavy |\n| Spot | stereo pair | medium |\n\n"
    "```python\nfirst = Node()\nsecond = Timer()\n\nthird = Publisher()\nfourth = Client()\n\n"
    "fifth = Server()\n```\n\n"
    "A robot that fails is halted. The supervisor starts it again after a pause. Logs tell why."
)


@pytest.mark.parametrize(
    "text",
    [
        "A supervisor overrides a package and a process with its parameter [1].",
        "Arguments describe a topic for the supervisor that an operator starts [1].",
        "The package halts a parameter, and logs replace the mass of a caller [1].",
    ],
)
def test_words_that_stand_far_from_each_other_are_no_evidence(text: str) -> None:
    assert check(text, (SCATTERED,)).numbers == ()


@pytest.mark.parametrize(
    "text",
    [
        "A caller can override the defaults of arguments [1].",
        "Conditions drop an entry, and events respond when a process has ended [1].",
        "An operator tunes speed, frame, rate, gain, timeout and tolerance as parameters [1].",
        "The sensor of the robot Spot is a stereo pair [1].",
        "Digit is a light robot with a depth camera, and Atlas a heavy one with a lidar [1].",
        "The code makes a node, a timer, a publisher, a client and a server [1].",
        "The supervisor starts a failed robot again after it was halted [1].",
    ],
)
def test_words_of_neighbouring_sentences_a_list_a_table_or_code_are_evidence(text: str) -> None:
    assert check(text, (SCATTERED,)).numbers == (1,)


def test_words_of_two_sources_are_evidence_for_one_sentence() -> None:
    text = "The supervisor starts a halted robot again, and the gyroscope of its unit drifts."
    assert check(text, (SCATTERED, SENSING)).numbers == (1, 2)


@pytest.mark.parametrize(
    "text",
    [
        "A filter that joins the measurements of sensors the measurements of sensors [1].",
        "The battery and the battery and the battery loses charge [1].",
        "The filter joins three sensors joins three sensors [1].",
    ],
)
def test_a_sentence_in_which_words_follow_themselves_stands_in_no_source(text: str) -> None:
    assert check(text).numbers == ()


def test_words_that_follow_themselves_in_a_source_stand_in_it() -> None:
    source = "The poles come in pairs: plus minus plus minus. The gyroscope drifts."
    assert check("The poles come in pairs: plus minus plus minus [1].", (source,)).numbers == (1,)
    assert check("The battery loses more and more of its charge [1].").numbers == (1,)


def test_words_of_the_question_are_no_evidence() -> None:
    assert check("A walking robot keeps its balance with bananas.").numbers == ()


@pytest.mark.parametrize("text", ["Yes.", "Here:", "So it is."])
def test_a_sentence_without_content_is_no_claim(text: str) -> None:
    assert not check(text).is_claim


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Der Regler des Roboters läuft mit 1.000 Hz und die Batterie wiegt 0,5 kg [1].", (1,)),
        ("Der Regler des Roboters läuft mit 900 Hz und die Batterie wiegt 0,5 kg [1].", ()),
        ("Le contrôleur du robot tourne à 1 000 Hz dans le Polygone [1].", (1,)),
        ("控制器以1000赫兹运行 [1]。", (1,)),
        ("控制器以900赫兹运行 [1]。", ()),
    ],
)
def test_in_another_language_only_numbers_and_identifiers_are_compared(
    text: str, numbers: tuple[int, ...]
) -> None:
    assert check(text).numbers == numbers


def test_ordinary_words_of_a_language_that_writes_nouns_with_capitals_are_not_names() -> None:
    source = (
        "Der Regler des Roboters läuft mit hoher Rate und sendet das Moment an jedes Gelenk. Der "
        "Akku liefert die Energie für den Motor, und die Kamera liefert das Bild der Umgebung."
    )
    assert check("Der Regler sendet an jedes Gelenk das Moment [1].", (source,)).numbers == (1,)


PAGES = sorted((Path(__file__).parents[3] / "website" / "docs").rglob("*.md"))[::9]


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_sentences_copied_from_a_page_stand_in_it(page: Path) -> None:
    text = page.read_text("utf-8").split("---\n", 2)[-1][:6_000]
    chunks = [make_chunk(text), make_chunk(WALKING, section="Other")]
    grounded = apply_grounding_policy(make_result(QUESTION, chunks), QUESTION)
    attributor = Attributor(grounded.sources, QUESTION)
    for unit in split_units(text, find_blocks(text)):
        found = attributor.attribute(text[unit.start : unit.end], ())
        assert found.numbers == (1,) or not found.is_claim


@hypothesis.given(st.text(alphabet=st.sampled_from("aB1.,% '`$_-\n|*5kHz"), max_size=60))
def test_any_text_stands_in_itself(text: str) -> None:
    assert check(text.strip(), (text, CODE)).missing == ()


@pytest.mark.parametrize("unit", ["It runs at 1 kHz on the G1. ", "1 111", "10^", "**a", "10   "])
def test_the_time_grows_with_the_length(unit: str) -> None:
    assert_linear(lambda size: check(f"{unit * size} [1]"), 500)
