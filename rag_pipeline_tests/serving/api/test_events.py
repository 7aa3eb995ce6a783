"""The encoding of server-sent events and its decoder."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.serving.api.bodies import KEEP_ALIVE, describe_events, encode_event
from rag_pipeline_tests.serving.event_decoder import EventDecoder

ANY_TEXT = st.text(st.characters(exclude_categories=()))  # with unpaired surrogates
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["start", "delta", "done"]), st.dictionaries(ANY_TEXT, ANY_TEXT, max_size=3)
    ),
    max_size=4,
)


def _decode(*pieces: bytes) -> list[tuple[str, dict[str, object]]]:
    decoder = EventDecoder()
    return [event for piece in pieces for event in decoder.feed(piece)]


@given(events=EVENTS, cuts=st.lists(st.integers(0, 400), max_size=6))
def test_any_text_survives_in_pieces_of_any_size(
    events: list[tuple[str, dict[str, str]]], cuts: list[int]
) -> None:
    encoded = KEEP_ALIVE.join(encode_event(name, data) for name, data in events)
    places = [0, *sorted(cuts), len(encoded)]
    pieces = [encoded[start:end] for start, end in pairwise(places)]
    assert _decode(*pieces) == events


@given(text=st.text(), end=st.sampled_from(["\n", "\r", "\r\n"]))
def test_streams_of_other_encoders_are_read_byte_by_byte(text: str, end: str) -> None:
    data = json.dumps({"text": text}, ensure_ascii=False, indent=1)
    lines = ["\ufeff: a comment", "id: 7", "event:delta", *_prefix(data), "", ""]
    encoded = end.join(lines).encode()
    assert _decode(*(bytes([byte]) for byte in encoded)) == [("delta", {"text": text})]


def _prefix(data: str) -> list[str]:
    return [f"data: {line}" for line in data.split("\n")]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b'data: {"a": 1}\n\n', [("message", {"a": 1})]),
        (b'event: done\ndata: {"a": 1}\n', []),
        (b"event: done\n\n", []),
        (b'event: lost\n\ndata: {"a": 1}\n\n', [("message", {"a": 1})]),
        (b'data:{"a"\ndata::1}\n\n', [("message", {"a": 1})]),
        (b'data\ndata: {"a": "\xff"}\n\n', [("message", {"a": "\ufffd"})]),
    ],
)
def test_the_decoder_follows_the_standard(
    stream: bytes, events: list[tuple[str, dict[str, object]]]
) -> None:
    assert _decode(stream) == events


def test_the_events_are_documented_without_references() -> None:
    described = describe_events()
    names = [entry["properties"]["event"]["const"] for entry in described["itemSchema"]["oneOf"]]
    assert names == ["start", "sources", "delta", "refusal", "done", "error"]
    assert "$ref" not in json.dumps(described)
