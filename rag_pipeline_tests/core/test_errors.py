"""All errors can be pickled and copied, whatever arguments their constructors take."""

from __future__ import annotations

import copy
import pickle
from typing import TYPE_CHECKING

import pytest

from rag_pipeline.core.errors import QueryTooLongError, RagPipelineError

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
