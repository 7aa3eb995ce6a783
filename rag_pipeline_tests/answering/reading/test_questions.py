"""Tests of the kind and the subject of a question."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.answering.reading.questions import (
    MAX_CLAUSES,
    QuestionKind,
    ReadQuestion,
    drop_order,
    find_asking_clauses,
    read_question,
)

DEFINITION, CODE = QuestionKind.DEFINITION, QuestionKind.CODE
HOW_TO, COMPARISON, OTHER = QuestionKind.HOW_TO, QuestionKind.COMPARISON, QuestionKind.OTHER
PROBLEM = QuestionKind.PROBLEM


@pytest.mark.parametrize(
    ("question", "subject"),
    [
        ("What is URDF?", "URDF"),
        ("what is a urdf", "urdf"),
        ("What's the zero moment point?", "zero moment point"),
        ("What\u2019s a webhook", "webhook"),
        ("What are quaternions?", "quaternions"),
        ("What exactly is a Docker image?", "Docker image"),
        ("What is the center of mass?", "center of mass"),
        ("What is hardware in the loop?", "hardware in the loop"),
        ("What is drift in odometry?", "drift"),
        ("What is a slot, in simple terms?", "slot"),
        ("What is sim-to-real transfer in this book?", "sim-to-real transfer"),
        ("Hello, what is a URDF?", "URDF"),
        ("Hi! Could you please tell me what a URDF is?", "URDF"),
        ("Tell me what closures are", "closures"),
        ("Do you know what an action server is?", "action server"),
        ("I don't understand what backpropagation is.", "backpropagation"),
        ("Can you explain what ZMP means?", "ZMP"),
        ("Define inertia", "inertia"),
        ("define the term 'idempotent'", "idempotent"),
        ("Definition of a rigid body", "rigid body"),
        ("Please give me a definition of sampling rate.", "sampling rate"),
        ("What is the definition of torque?", "torque"),
        ("What is the meaning of QoS?", "QoS"),
        ("Meaning of DDS?", "DDS"),
        ("inverse kinematics meaning", "inverse kinematics"),
        ("affordance definition?", "affordance"),
        ("What is a message definition?", "message definition"),
        ("Dependency injection explained", "Dependency injection"),
        ("slam explained simply", "slam"),
        ("what is covered in module 2", "module 2"),
        ("What does chapter 4.1 cover?", "chapter 4.1"),
        ("Give me a short summary of module 1", "module 1"),
        ("summarize inverse kinematics", "inverse kinematics"),
        ("What does IMU stand for?", "IMU"),
        ("What does `use_sim_time` mean?", "use_sim_time"),
        ("what do the letters SDF mean", "letters SDF"),
        ('What does "event loop" mean in JavaScript?', "event loop"),
        ("What is a decorator in Python?", "decorator"),
        ("What is meant by latency?", "latency"),
        ("What do you mean by backpressure?", "backpressure"),
        ("Explain the term covariance", "covariance"),
        ("Explain the concept of a digital twin.", "digital twin"),
        ("Explain closures", "closures"),
        ("Please explain inverse kinematics.", "inverse kinematics"),
        ("What is C++?", "C++"),
        ("What is ROS 2?", "ROS 2"),
        ("What is help text?", "help text"),
        ("What is .env?", ".env"),
        ("URDF?", "URDF"),
        ("quaternion", "quaternion"),
    ],
)
def test_a_question_for_a_meaning_names_its_subject(question: str, subject: str) -> None:
    assert read_question(question) == ReadQuestion(DEFINITION, subject)


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Show me the code for a publisher", CODE),
        ("Show me an example of a launch file.", CODE),
        ("python function for the confidence interval of a success rate", CODE),
        ("How do I read a file in Python?", CODE),
        ("How do I do that in code?", CODE),
        ("Show me a function that removes duplicates.", CODE),
        ("Simple Python particle filter example", CODE),
        ("What does recursion look like in Python?", CODE),
        ("send a goal with python", CODE),
        ("ros2 publisher node python", CODE),
        ("Which command lists all topics?", CODE),
        ("What is the command to start the server?", CODE),
        ("Command for building one package", CODE),
        ("What does the XML for a laser scanner look like?", CODE),
        ("What script estimates inertia from motor data?", CODE),
        ("Write a node that stops the robot", CODE),
        ("Give me a Python function for the variance.", CODE),
        ("Give me a code example of a retry loop", CODE),
        ("How do I implement a Kalman filter?", CODE),
        ("I'd like a tiny program that sorts a list", CODE),
        ("Minimal example of a Flask app?", CODE),
        ("What is the syntax of a list comprehension?", CODE),
        ("How do I install the package?", HOW_TO),
        ("How to calibrate a camera", HOW_TO),
        ("How to debug a node in VS Code", HOW_TO),
        ("How can we avoid overheating?", HOW_TO),
        ("How should I choose the gains?", HOW_TO),
        ("What are the steps to deploy a site?", HOW_TO),
        ("What do I have to do before the first start?", HOW_TO),
        ("Please walk me through the setup.", HOW_TO),
        ("I can't log in. How do I fix it?", HOW_TO),
        ("Steps for a clean shutdown", HOW_TO),
        ("record a bag", HOW_TO),
        ("install the package on Windows", HOW_TO),
        ("send messages between threads", HOW_TO),
        ("Mock the clock", HOW_TO),
        ("My node crashes. What should I do?", HOW_TO),
        ("What is the best way to store secrets?", HOW_TO),
        ("What is the difference between a service and an action?", COMPARISON),
        ("ROS 1 vs ROS 2", COMPARISON),
        ("ROS 2 vs. ROS 1 DDS?", COMPARISON),
        ("Compare PID and MPC", COMPARISON),
        ("When should I use a tuple instead of a list?", COMPARISON),
        ("How does UDP differ from TCP?", COMPARISON),
        ("Which is better, a lidar or a camera?", COMPARISON),
        ("Should I use a list or a tuple?", COMPARISON),
        ("Strain wave gear or quasi-direct drive: which one is better?", COMPARISON),
        ("What are the advantages of Rust over C?", COMPARISON),
        ("How do I choose between a topic and a service?", COMPARISON),
        ("Differences of threads and processes", COMPARISON),
        ("zmp or capture point whats the difference", COMPARISON),
        ("formula for the capture point", QuestionKind.FORMULA),
        ("what is the equation of motion", QuestionKind.FORMULA),
        ("python code for the equation of motion", CODE),
        ("Why does the robot fall?", OTHER),
        ("How does a robot keep its balance?", OTHER),
        ("How is a bill of materials structured?", OTHER),
        ("What is a lease? Why is it renewed?", OTHER),
        ("Please tell me how do bees find a flower", OTHER),
        ("How much memory does it need?", OTHER),
        ("How long do I have to wait?", OTHER),
        ("What is wrong with my controller?", OTHER),
        ("What is the purpose of a namespace?", OTHER),
        ("What is the maximum speed of a robot arm?", OTHER),
        ("What is a quadratic program used for?", OTHER),
        ("What is this about?", OTHER),
        ("What is a spare motor in an arm good for if six are enough?", OTHER),
        ("What is it?", OTHER),
        ("What is my next task?", OTHER),
        ("What happens if a node dies?", OTHER),
        ("What error code does the server return?", OTHER),
        ("Explain how the robot walks", OTHER),
        ("Explain this", OTHER),
        ("Explain why it drifts", OTHER),
        ("What does the controller do?", OTHER),
        ("What does it mean?", OTHER),
        ("Is a robot allowed to touch people?", OTHER),
        ("When was the library first released?", OTHER),
        ("What is the function of the cerebellum?", OTHER),
        ("Was ist ein URDF?", OTHER),
        ("stop category 0 1 2", OTHER),
        ("After the import the robot is stiff", OTHER),
        ("?", OTHER),
        ("", OTHER),
        ("a " * 5_000, OTHER),
    ],
)
def test_a_question_without_a_subject_has_only_a_kind(question: str, kind: QuestionKind) -> None:
    assert read_question(question) == ReadQuestion(kind, "")


@given(st.text(max_size=200))
def test_any_text_is_read_and_only_a_definition_has_a_subject(question: str) -> None:
    read = read_question(question)
    assert bool(read.subject) == (read.kind is QuestionKind.DEFINITION)
    assert read.subject in " ".join(question.split())


@given(st.from_regex(r"[A-Za-z]{2,12}[0-9]? [a-z]{3,9}", fullmatch=True))
def test_case_white_space_and_a_question_mark_do_not_change_the_kind(question: str) -> None:
    read = read_question(f"What is {question}")
    assert read_question(f"  WHAT   is\n{question} ??").kind is read.kind


@pytest.mark.parametrize(
    ("question", "subject"),
    [
        ("list the sensors of a humanoid", "sensors"),
        ("Please list all account types", "account types"),
        ("name the parts of a robot", "parts"),
        ("Can you list the modes of the planner?", "modes"),
        ("a list of all supported devices", "supported devices"),
        ("which import formats are supported", "import formats"),
        ("What types of joints are there?", "joints"),
        ("types of gaits", "gaits"),
        ("What are the three laws of motion?", "laws"),
        ("what sensors does a humanoid have", "sensors"),
    ],
)
def test_a_question_for_all_things_of_a_kind_names_them(question: str, subject: str) -> None:
    assert read_question(question) == ReadQuestion(QuestionKind.LIST, subject)


@pytest.mark.parametrize(
    "question",
    [
        "list files in a bag",
        "what does this class do",
        "what process does it use",
        "What are topics?",
    ],
)
def test_other_questions_with_such_words_ask_for_no_list(question: str) -> None:
    assert read_question(question).kind is not QuestionKind.LIST


@pytest.mark.parametrize(
    ("question", "searched"),
    [
        ("list the sensors of a humanoid", "sensors of a humanoid"),
        ("Please name all the joints", "joints"),
        ("list files in a bag", "list files in a bag"),
    ],
)
def test_an_order_to_list_things_is_not_searched(question: str, searched: str) -> None:
    assert drop_order(question) == searched


STORY = (
    "We went to the lab, and after three hours of work on the arm nothing was as it should be. " * 3
)


def test_the_clauses_of_a_long_text_that_may_be_its_question_are_found() -> None:
    asked = "why does the solver fail near a singularity"
    assert find_asking_clauses(f"{STORY} My friend asked me what it is, and {asked}? Thanks!") == (
        asked,
    )
    assert find_asking_clauses(f"I wonder {asked}") == ()
    assert len(find_asking_clauses(f"{STORY} {asked}. " * 9)) <= MAX_CLAUSES


@pytest.mark.parametrize(
    "question",
    [
        "why does my location not update",
        "Why is my simulation so slow?",
        "why won't the server start",
        "Why does the page not load?",
        "my viewer shows nothing",
        "the app doesn't connect",
        "server does not start",
        "widget not updating",
        "the build fails with an error",
        "build failed",
        "cannot find package",
        "error: no module named foo",
        "the picture is empty",
        "the app keeps crashing on startup",
        "my widget stopped updating",
        "no module named foo",
        "I get an error when I build it",
        "permission denied when I open the camera",
        "robot drifts to the left",
        "the simulator is too slow",
        "gripper drops the object",
        "robot falls over when it walks",
        "simulation runs slower than real time",
    ],
)
def test_a_report_that_something_does_not_work_is_read_as_a_problem(question: str) -> None:
    assert read_question(question).kind is PROBLEM


@pytest.mark.parametrize(
    "question",
    [
        "Why is a low error not the whole story of a calibration?",
        "Why can't I make the gains arbitrarily high?",
        "why should I not use this mode",
        "error budget of a grasp",
        "what happens if the robot does not stop",
        "how do I find out why my node fails",
        "Is the robot not allowed to move?",
        "my robot is slow enough to be safe",
        "steady-state error of a controller",
        "no free lunch theorem",
        "add sensors to the robot",
        "a node is a process",
        "sensors when to use them",
        "changes to the interface",
        "repeat failed steps",
    ],
)
def test_other_questions_with_a_negation_are_no_report(question: str) -> None:
    assert read_question(question).kind is not PROBLEM
