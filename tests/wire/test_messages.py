"""Messages between versions: what one side does not know of does not stop the other."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from tarazu.wire import messages
from tarazu.wire.messages import Answer, FileSpec, Reply


class FileSpecBefore(msgspec.Struct, frozen=True, array_like=True):
    """As it was before files had waves."""

    size_bytes: int
    layout: int


def test_a_file_of_an_older_peer_is_of_the_only_wave() -> None:
    data = msgspec.msgpack.encode(FileSpecBefore(7, 1))
    assert msgspec.msgpack.decode(data, type=FileSpec) == FileSpec(7, 1, wave=0)


def test_an_older_peer_passes_over_the_wave() -> None:
    data = msgspec.msgpack.encode((FileSpec(7, 1, wave=3),))
    assert msgspec.msgpack.decode(data, type=tuple[FileSpecBefore, ...]) == (FileSpecBefore(7, 1),)


ANSWERS = {
    "allocation": messages.AllocationReply("a", "later", "full"),
    "an allocation with all": messages.AllocationReply(
        "a", "allocated", "x", osts=(((1,),),), policy="p", ost_cost=1.0, ost_cost_bound=1.0, mdts=(1,)
    ),
    "targets": messages.TargetsChanged("a", "lustre", ("b",), ((1, "c"),), 1),
    "acknowledged": messages.Acknowledged("a"),
    "count": messages.CountReply("a", 3),
    "rules": messages.RouterRules("a", 1, "apply"),
    "view": messages.ViewReply("a"),
    "then": messages.ThenReply("a"),
    "not active": messages.NotActive("a"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_each_answer_carries_the_term_that_it_is_stamped_with(name: str) -> None:
    """However many fields it has: a client takes no answer of a reign that is over."""
    answer = ANSWERS[name]
    data = messages.encode(answer)
    for term in (1, 127, 128, 70_000):
        assert messages.decode(messages.stamped(data, term)) == msgspec.structs.replace(answer, term=term)
    assert messages.stamped(data, 0) == data


def test_every_kind_of_answer_is_tried() -> None:
    tried = {type(answer) for answer in ANSWERS.values()}
    assert {kind for kind in get_args(Reply) if issubclass(kind, Answer)} <= tried
