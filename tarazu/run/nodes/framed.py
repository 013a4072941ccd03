"""What a node answers through its launcher's standard output: lines of text that survive the way.

A launcher merges the output of several nodes piece by piece, and may put a label before each line. So a line always
has 512 bytes, for pieces are as long as pipes and the launchers' messages are, multiples of that. It begins with a
mark, its sender's own random number and its place:

    tarazu1 <sender> <number of the line> <480 characters of base64>
    tarazu1 <sender> end <lines> <bytes> <sha256> <kind> <answer> <node>

Sending takes a shell and coreutils. Whatever else comes is not ours and is passed over.
"""

from __future__ import annotations

import binascii
import gzip
import itertools
import os
import re
import shutil
import zlib
from pathlib import Path

import msgspec

LINE = 512
"""Bytes, with the newline."""
_CHARACTERS = 480
_CHUNK = _CHARACTERS // 4 * 3
_DATA = re.compile(rb"tarazu1 ([0-9a-f]{8}) (\d{8}) ([A-Za-z0-9+/=]{480}) {5}\s*$")
_END = re.compile(
    rb"tarazu1 ([0-9a-f]{8}) end (\d{1,9}) (\d{1,12}) ([0-9a-f]{64}|-) (\w{1,9}) (\w{1,9}) (\S{1,300})\s*$"
)

SHELL = f"""\
LC_ALL=C; export LC_ALL
from=$(od -An -N4 -tx4 /dev/urandom | tr -d ' ')
finish() {{ printf '%-{LINE - 1}s\\n' "tarazu1 $from end $*"; }}
answer() {{ finish "0 0 - $1 $2 $(uname -n)"; }}
send() {{ # send FILE KIND ANSWER; pads the file
    size=$(wc -c < "$1") && sum=$(sha256sum < "$1") || return 1
    lines=$(( (size + {_CHUNK - 1}) / {_CHUNK} ))
    head -c $(( lines * {_CHUNK} - size )) /dev/zero >> "$1" || return 1
    base64 -w {_CHARACTERS} "$1" | nl -ba -nrz -w8 -s' ' | sed "s/^/tarazu1 $from /;s/\\$/     /" || return 1
    finish "$lines $((size)) ${{sum%% *}} $2 $3 $(uname -n)"
}}
"""


class NodeAnswer(msgspec.Struct, frozen=True):
    """What one process on a node said at its end."""

    node: str
    kind: str
    answer: str
    file: Path | None = None
    """What it sent, whole."""


class _Sender(msgspec.Struct):
    path: Path
    file: int
    seen: set[int]


class Frames:
    """Collects the answers; what is sent lands in files of `directory`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.answers: list[NodeAnswer] = []
        self.damaged: list[str] = []
        """Nodes whose data did not come whole."""
        self._senders: dict[bytes, _Sender] = {}
        self._begun = itertools.count()

    def take(self, line: bytes) -> None:
        """One line of output, ours or not. Raises OSError when it cannot be kept."""
        if data := _DATA.search(line):
            self._keep(data[1], int(data[2]), data[3])
        elif end := _END.search(line):
            self._end(end)

    def _keep(self, sender: bytes, number: int, text: bytes) -> None:
        try:
            chunk = binascii.a2b_base64(text, strict_mode=True)
        except binascii.Error:
            return
        if sender not in self._senders:
            path = self.directory / f"{next(self._begun)}.part"
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            self._senders[sender] = _Sender(path, descriptor, set())
        known = self._senders[sender]
        known.seen.add(number)
        os.pwrite(known.file, chunk, (number - 1) * _CHUNK)

    def _end(self, end: re.Match[bytes]) -> None:
        sender, lines, size, digest, kind, answer, node = (
            part.decode(errors="replace") for part in end.groups()
        )
        file = None
        if int(lines):
            file = self._whole(sender.encode(), int(lines), int(size), digest, kind)
            if file is None:
                self.damaged.append(node)
        self.answers.append(NodeAnswer(node, kind, answer, file))

    def _whole(self, sender: bytes, lines: int, size: int, digest: str, kind: str) -> Path | None:
        """The file that a sender has sent; None when a part of it is missing or differs."""
        known = self._senders.pop(sender, None)
        if known is None:
            return None
        os.ftruncate(known.file, size)
        os.close(known.file)
        if known.seen != set(range(1, lines + 1)):
            return None
        import hashlib  # loads OpenSSL, which a job that runs on one node has no use for

        with open(known.path, "rb") as packed:
            if hashlib.file_digest(packed, "sha256").hexdigest() != digest:
                return None
        path = known.path.with_suffix(".tzs")
        if kind != "gz":
            return known.path.rename(path)
        try:
            with gzip.open(known.path) as packed, open(path, "xb") as whole:
                shutil.copyfileobj(packed, whole, 1 << 20)
        except (OSError, EOFError, zlib.error):
            return None
        known.path.unlink()
        return path

    def close(self) -> None:
        """What has not come to its end is given up."""
        for known in self._senders.values():
            os.close(known.file)
        self._senders.clear()
