"""The turns of conversations in memory."""

from __future__ import annotations

from rag_pipeline.answering import Turn
from rag_pipeline.serving.conversations import MAX_AGE_S, MAX_CONVERSATIONS, Conversations

TURN = Turn("What is a node?", "A program.")


def test_turns_are_kept_in_order_and_the_oldest_are_dropped() -> None:
    conversations = Conversations()
    for number in range(25):
        conversations.add("c", f"a{number}", Turn(str(number)))
    assert [turn.question for turn in conversations.read("c")] == [str(n) for n in range(5, 25)]


def test_the_least_recent_conversation_is_dropped() -> None:
    conversations = Conversations()
    for number in range(MAX_CONVERSATIONS):
        conversations.add(f"c{number}", f"a{number}", TURN)
    conversations.add("c0", "b", TURN)
    conversations.add("new", "c", TURN)
    assert len(conversations.read("c0")) == 2
    assert conversations.read("c1") == ()


def test_old_conversations_expire() -> None:
    now = 0.0
    conversations = Conversations(lambda: now)
    conversations.add("c", "a", TURN)
    now = MAX_AGE_S
    assert conversations.read("c")
    now += 1
    assert conversations.read("c") == ()


def test_an_answer_and_a_conversation_can_be_deleted() -> None:
    conversations = Conversations()
    conversations.add("c", "a1", TURN)
    conversations.add("c", "a2", Turn("Why?"))
    assert conversations.delete_answer("a1")
    assert not conversations.delete_answer("a1")
    assert conversations.read("c") == (Turn("Why?"),)
    assert conversations.delete("c")
    assert not conversations.delete("c")
    assert not conversations.delete_answer("a2")
