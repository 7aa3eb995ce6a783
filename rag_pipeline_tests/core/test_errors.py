"""All errors can be pickled and copied, and have a message that shows no path of the machine."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_pipeline.core.errors import (
    CollectionMissingError,
    ConfigurationError,
    DocsFolderError,
    QueryError,
    QueryTooLongError,
    QuestionLogError,
    RagPipelineError,
    SectionMissingError,
    SpaceMismatchError,
    StoreError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def list_errors(base: type[RagPipelineError]) -> Iterator[type[RagPipelineError]]:
    yield base
    for kind in base.__subclasses__():
        yield from list_errors(kind)


def send(error: RagPipelineError) -> RagPipelineError:
    """Return the error as another process would receive it."""
    received: RagPipelineError = pickle.loads(pickle.dumps(error))  # noqa: S301  # pickled here
    return received


@pytest.mark.parametrize("duplicate", [send, copy.copy, copy.deepcopy])
@pytest.mark.parametrize(
    "kind", list(list_errors(RagPipelineError)), ids=lambda kind: kind.__name__
)
def test_every_error_can_be_pickled_and_copied(
    kind: type[RagPipelineError], duplicate: Callable[[RagPipelineError], RagPipelineError]
) -> None:
    error = kind.__new__(kind, "one line")
    error.retry_after_s = 3.0
    found = duplicate(error)
    assert type(found) is kind
    assert (str(found), found.args, found.__dict__) == ("one line", error.args, error.__dict__)


def test_an_error_keeps_its_attributes_when_it_is_pickled() -> None:
    error = QueryTooLongError(5_001, 5_000)
    error.position = 7
    found = send(error)
    assert isinstance(found, QueryTooLongError)
    assert str(found) == str(error)
    assert (found.length, found.position) == (5_001, 7)


@pytest.mark.parametrize(
    "kind",
    [
        kind
        for kind in list_errors(RagPipelineError)
        if not issubclass(kind, QueryError | QuestionLogError)
    ],
    ids=lambda kind: kind.__name__,
)
@pytest.mark.parametrize(
    "shown",
    [
        "/srv/jane/book/store",
        "/srv/Jane Doe/book/store",
        "'/srv/jane/my book'",
        "C:\\data\\jane\\book",
        "sqlite:////srv/jane/log.sqlite",
        "file:///srv/jane/book",
        "\\\\server\\jane\\book",
    ],
)
def test_the_public_message_of_an_error_has_no_absolute_path(
    kind: type[RagPipelineError], shown: str
) -> None:
    message = kind.__new__(kind, f"cannot read {shown}. Check it (see {shown})").public_message
    assert message == f"cannot read {kind.path_name}. Check it (see {kind.path_name})"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            CollectionMissingError("book", Path("/srv/All Books")),
            str(CollectionMissingError("book", "DATA_DIR")),
        ),
        (
            DocsFolderError(Path("/srv/All Books"), "is missing"),
            str(DocsFolderError(Path("DOCS_DIR"), "is missing")),
        ),
        (
            ConfigurationError("DATA_DIR", "/srv/x is not a folder", "Choose another"),
            "DATA_DIR: the given path is not a folder. Choose another",
        ),
        (
            StoreError("http://me:secret@host:6333/x is slow; see module-1/intro.md or text/html"),
            "http://host:6333/x is slow; see module-1/intro.md or text/html",
        ),
        (
            StoreError("http://me:s@cret@host:6333/x is slow"),
            "http://host:6333/x is slow",
        ),
        (
            QuestionLogError('server at "10.1.2.3" failed for user "tutor"'),
            "The question log cannot be used now. Try again later.",
        ),
    ],
)
def test_the_public_message_names_the_setting_and_keeps_the_rest(
    error: RagPipelineError, message: str
) -> None:
    assert error.public_message == message


def test_the_public_message_keeps_what_the_caller_has_sent() -> None:
    error = SectionMissingError("/book/docs/nowhere")
    assert error.public_message == str(error)
    assert "/book/docs/nowhere" in error.public_message


@given(st.text())
def test_a_message_without_slashes_is_public_as_it_is(text: str) -> None:
    message = text.replace("/", "").replace("\\", "")
    assert StoreError(message).public_message == message


@pytest.mark.parametrize("kind", [CollectionMissingError, SpaceMismatchError])
def test_a_collection_that_has_to_be_built_makes_a_service_unavailable_for_a_time(
    kind: type[RagPipelineError],
) -> None:
    assert (kind.http_status, kind.retry_after_s, kind.transient) == (503, 30.0, False)
