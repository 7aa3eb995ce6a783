"""The turns of conversations in memory."""

from __future__ import annotations

from rag_pipeline.answering import Turn
from rag_pipeline.serving.conversations import (
    MAX_AGE_S,
    MAX_CONVERSATION_CHARS,
    MAX_CONVERSATIONS,
    MAX_TOTAL_CHARS,
    Conversations,
)

TURN = Turn("What is a node?", "A program.")


def read(conversations: Conversations, conversation_id: str) -> tuple[Turn, ...]:
    """Return the turns of a conversation; empty if it is not remembered."""
    return conversations.resume(conversation_id)[1]


def test_turns_are_kept_in_order_and_the_oldest_are_dropped() -> None:
    conversations = Conversations()
    for number in range(25):
        conversations.add("c", f"a{number}", Turn(str(number)))
    assert [turn.question for turn in read(conversations, "c")] == [str(n) for n in range(5, 25)]


def test_the_least_recent_conversation_is_dropped() -> None:
    conversations = Conversations()
    for number in range(MAX_CONVERSATIONS):
        conversations.add(f"c{number}", f"a{number}", TURN)
    conversations.add("c0", "b", TURN)
    conversations.add("new", "c", TURN)
    assert len(read(conversations, "c0")) == 2
    assert read(conversations, "c1") == ()


def test_old_conversations_expire() -> None:
    now = 0.0
    conversations = Conversations(lambda: now)
    conversations.add("c", "a", TURN)
    now = MAX_AGE_S
    assert read(conversations, "c")
    now += 1
    assert read(conversations, "c") == ()


def test_an_answer_and_a_conversation_can_be_deleted() -> None:
    conversations = Conversations()
    conversations.add("c", "a1", TURN)
    conversations.add("c", "a2", Turn("Why?"))
    assert conversations.delete_answer("a1")
    assert not conversations.delete_answer("a1")
    assert read(conversations, "c") == (Turn("Why?"),)
    assert conversations.delete("c")
    assert not conversations.delete("c")
    assert not conversations.delete_answer("a2")


def test_the_oldest_turns_beyond_the_size_are_dropped() -> None:
    conversations = Conversations()
    for number in range(4):
        conversations.add("c", f"a{number}", Turn(str(number), "x" * (MAX_CONVERSATION_CHARS // 3)))
    assert [turn.question for turn in read(conversations, "c")] == ["2", "3"]
    conversations.add("c", "large", Turn("?", "x" * MAX_CONVERSATION_CHARS))
    assert read(conversations, "c") == ()


def test_turns_about_one_selection_share_its_text() -> None:
    conversations = Conversations()
    half = MAX_CONVERSATION_CHARS // 2
    for number in range(3):
        selection = "".join(["s"] * half)  # an equal text, but another object each time
        conversations.add("c", f"a{number}", Turn(str(number), selected_text=selection))
    turns = read(conversations, "c")
    assert len(turns) == 3
    assert len({id(turn.selected_text) for turn in turns}) == 1


def test_all_conversations_together_have_a_size() -> None:
    conversations = Conversations()
    fitting = MAX_TOTAL_CHARS // MAX_CONVERSATION_CHARS
    turn = Turn("", "x" * MAX_CONVERSATION_CHARS)
    for number in range(fitting + 1):
        conversations.add(f"c{number}", f"a{number}", turn)
    assert read(conversations, "c0") == ()
    assert read(conversations, "c1")
    for number in range(1, 11):
        assert conversations.delete_answer(f"a{number}")
    for number in range(10):
        conversations.add(f"d{number}", f"b{number}", turn)
    assert read(conversations, "c11")  # the deleted turns had made room


def test_an_unknown_id_begins_a_conversation_with_a_new_id() -> None:
    conversations = Conversations()
    made, _ = conversations.resume("chosen-by-a-client")
    assert made != "chosen-by-a-client"
    assert len(made) == 32
    assert conversations.resume(None)[0] != conversations.resume(None)[0]
    conversations.add(made, "a", TURN)
    assert conversations.resume(made) == (made, (TURN,))
