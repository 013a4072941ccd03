"""Messages of earlier versions mean the same to this one, and this one's mean the same to them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, get_args

import msgspec
import pytest

from tarazu.errors import WireError
from tarazu.wire import local, messages
from tarazu.wire.bounds import PROTOCOL
from tests.compat.make_golden import escaped, of_kinds
from tests.compat.old_tree import versions
from tests.compat.samples import missing, plain
from tests.compat.schema import decoder, describe


class Socket(NamedTuple):
    """What travels on one kind of socket, and how."""

    kinds: tuple[type, ...]
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


SOCKETS = {
    "wire": Socket(get_args(messages.Message), messages.encode, messages.decode),
    "local": Socket(get_args(local.LocalMessage), local.encode, local.decode),
}
GONE: dict[tuple[str, str], str] = {}
"""(version, kind) that this one does not know any more → why nobody misses it."""
NO_FIELD = {
    ("1-0761086", f"{of}.fill"): "a weight of earlier placements, shown and not acted upon by who asked"
    for of in ("ViewReply.weights", "Weights")
}
"""(version, field) that is not sent any more → why nobody misses it."""

each_version = pytest.mark.parametrize("version", versions("wire.json"), ids=lambda path: path.name)
each_socket = pytest.mark.parametrize("socket", SOCKETS)


def book(version: Path, socket: str) -> dict[str, Any]:
    return json.loads((version / f"{socket}.json").read_text())


def as_seen(value: Any, structs: dict[str, Any]) -> Any:
    """What an earlier version's decoder found, with that version's defaults where nothing was sent."""
    if isinstance(value, msgspec.Struct):
        return {
            field["name"]: field["default"] if found is msgspec.UNSET else as_seen(found, structs)
            for field in structs[type(value).__name__]["fields"]
            for found in [getattr(value, field["name"])]
        }
    if isinstance(value, list | tuple):
        return [as_seen(each, structs) for each in value]
    if isinstance(value, dict):
        return {str(key): as_seen(each, structs) for key, each in value.items()}
    return plain(value)


def _missed(version: Path, found: list[str]) -> list[str]:
    return [of for of in found if (version.name, of.removesuffix(" is gone")) not in NO_FIELD]


def _changed(before: dict[str, Any], now: dict[str, Any], where: str) -> list[str]:
    was, is_ = before.get("default", "required"), now.get("default", "required")
    if isinstance(was, dict) and isinstance(is_, dict):
        return missing(was, is_, where)
    return [] if was == is_ else [f"{where} was {was}, is {is_}"]


@each_version
@each_socket
def test_messages_of_an_earlier_version_mean_what_they_meant(version: Path, socket: str) -> None:
    """Every field that was sent has its value; fields that came later have their defaults."""
    entries, seen = book(version, socket)["messages"], 0
    for entry in entries:
        if (version.name, entry["kind"]) in GONE:
            continue
        found = SOCKETS[socket].decode(bytes.fromhex(entry["hex"]))
        assert type(found).__name__ == entry["kind"]
        assert not _missed(version, missing(entry["value"], plain(found), entry["kind"]))
        seen += 1
    assert seen > 50


@each_version
@each_socket
def test_an_earlier_version_understands_what_is_sent_today(version: Path, socket: str) -> None:
    """By that version's own types and limits; kinds that came later it refuses, and takes for no other."""
    written = book(version, socket)
    theirs, structs = decoder(written), written["structs"]
    for message in of_kinds(SOCKETS[socket].kinds):
        data, kind = SOCKETS[socket].encode(message), type(message).__name__
        if kind not in written["kinds"]:
            with pytest.raises(msgspec.ValidationError, match="Invalid value"):
                theirs.decode(data)
            continue
        found = theirs.decode(data)
        assert type(found).__name__ == kind
        assert not _missed(version, missing(as_seen(found, structs), plain(message), kind))


@each_version
@each_socket
def test_what_is_left_out_means_the_same_to_both(version: Path, socket: str) -> None:
    """A default may be left out of a message: it must never change. What was optional stays optional."""
    before, now = book(version, socket), describe(SOCKETS[socket].kinds)
    for name, struct in before["structs"].items():
        if name not in now["structs"]:
            assert (version.name, name) in GONE, f"{name} is gone"
            continue
        fields = {field["name"]: field for field in now["structs"][name]["fields"]}
        order = [field["name"] for field in now["structs"][name]["fields"]]
        assert (struct["tag"], struct["array"]) == (
            now["structs"][name]["tag"],
            now["structs"][name]["array"],
        )
        for place, field in enumerate(struct["fields"]):
            if (version.name, f"{name}.{field['name']}") in NO_FIELD:
                continue
            today = fields.pop(field["name"])
            assert not _missed(version, _changed(field, today, f"{name}.{field['name']}"))
            assert not struct["array"] or order[place] == field["name"], f"{name}: places have changed"
        later = [each["name"] for each in fields.values() if "default" not in each]
        assert not later, f"{name}: an earlier version does not send {later}"


@each_version
def test_the_earlier_decoder_is_as_strict_as_it_was(version: Path) -> None:
    """Else the tests above would show nothing: bounds, types and literals of the version are in the data."""
    theirs = decoder(book(version, "wire"))
    reply = {"type": "allocation", "id": "a", "status": "allocated"}
    assert theirs.decode(msgspec.msgpack.encode(reply)).status == "allocated"
    for wrong in (
        {**reply, "status": "partly"},
        {**reply, "osts": [[["0"]]]},
        {"type": "allocation", "id": "a"},
        {"type": "step-ended", "id": "i" * 129, "message_id": "m"},
        {"type": "closed", "id": "i", "message_id": "m", "files": [[1, 2, 3]]},
        {"type": "view?", "message_id": "m", "pools": {"lustre": {"flash": [65536]}}},
    ):
        with pytest.raises(msgspec.ValidationError):
            theirs.decode(msgspec.msgpack.encode(wrong))


def test_names_that_are_no_text_reach_todays_clientd() -> None:
    for message in escaped():
        assert local.decode(local.encode(message)) == message


def test_another_protocol_is_refused_by_its_number() -> None:
    data = msgspec.msgpack.encode({"type": "ack", "message_id": "m", "protocol": PROTOCOL + 1})
    with pytest.raises(WireError, match=f"protocol {PROTOCOL}"):
        messages.decode(data)
