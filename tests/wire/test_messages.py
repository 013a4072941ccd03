"""Messages between versions: what one side does not know of does not stop the other."""

from __future__ import annotations

import msgspec

from tarazu.wire.messages import FileSpec


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
