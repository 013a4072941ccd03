"""The file of one run: a JSON header (everything but the files) in the first line, then the CSV of the files.

Each distinct layout stands once, in the header.
A file is written by its user: it is read up to a limit, whatever it is, without blocking.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import stat
from typing import Any, NamedTuple, TextIO

import msgspec

from tarazu.errors import TraceError
from tarazu.native import without_identity
from tarazu.trace.recorded import LONGEST_HEADER, sharing
from tarazu.trace.records import RunRecord, why_absurd, why_impossible
from tarazu.trace.table import read_rows, to_csv

FORMAT = "tarazu-run"
VERSION = 3
MAX_RUN_BYTES = 64 << 20
"""About a quarter of a million files."""
MOST_LAYOUTS = 4096
MOST_LAYOUT_BYTES = 1 << 20
"""Of all layouts in one header. Files with further layouts are kept without: no forecast looks at them."""
_BUFFER = 1 << 18


class Header(NamedTuple):
    """The first line of a run file."""

    files: int
    """How many follow."""
    fields: dict[str, Any]
    """Of the RunRecord, but its files."""
    layouts: tuple[bytes, ...]

    def run(self, where: str) -> RunRecord:
        """The run without its files. Raises TraceError."""
        try:
            run = msgspec.convert({**self.fields, "files": ()}, RunRecord, str_keys=True)
        except (msgspec.ValidationError, TypeError, ValueError, OverflowError) as error:
            raise TraceError(f"{where}:1", "the header of a run", str(error)) from None
        absurd = why_absurd(run.step) or why_impossible(run.phases)
        if absurd:
            raise TraceError(f"{where}:1", "the header of a run", absurd)
        return run


class _Layouts:
    """Numbers the distinct layouts of a run."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._number: dict[bytes, str] = {b"": ""}
        self._bytes = 0

    def text(self, blob: bytes) -> str:
        """The layout's number; empty when the list is full."""
        known = self._number.get(blob)
        if known is not None:
            return known
        plain = without_identity(blob)
        number = self._number.get(plain)
        if number is None:
            if len(self.texts) >= MOST_LAYOUTS or self._bytes + len(plain) > MOST_LAYOUT_BYTES:
                return ""
            self.texts.append(plain.hex())
            self._bytes += len(plain)
            number = self._number[plain] = str(len(self.texts))
        return number


def encode_run(run: RunRecord) -> bytes:
    """The content of a run file."""
    layouts = _Layouts()
    rows = to_csv(run.files, layouts.text)
    header: dict[str, Any] = {"format": FORMAT, "version": VERSION, "files": len(run.files)}
    fields = msgspec.to_builtins(msgspec.structs.replace(run, files=()), str_keys=True)
    header.update({k: v for k, v in fields.items() if k != "files"})
    header |= {"outcomes": run.outcomes, "shared": sharing(run.files), "layouts": layouts.texts}
    text = json.dumps(header, ensure_ascii=True, allow_nan=False) + "\n" + rows
    return text.encode("utf-8", "surrogateescape")


def read_run(path: str | os.PathLike[str] | int) -> RunRecord:
    """The inverse of `encode_run`, from a path or an open descriptor (closed afterwards).

    Raises TraceError naming the file and the line.
    """
    where = f"descriptor {path}" if isinstance(path, int) else os.fspath(path)
    try:
        with reader(path, MAX_RUN_BYTES) as file:
            header = read_header(file, where)
            run = header.run(where)
            files = tuple(read_rows(file, where, first_line=2, layouts=header.layouts))
    except OSError as error:
        raise TraceError(where, "a readable run", str(error)) from None
    check_count(header, len(files), where)
    return msgspec.structs.replace(run, files=files)


def check_count(header: Header, count: int, where: str) -> None:
    """Raises TraceError for a file that was cut off between two rows."""
    if count != header.files:
        raise TraceError(where, f"{header.files} files, as the header says", count)


def read_header(file: TextIO, where: str) -> Header:
    """The first line. Raises TraceError."""
    place = f"{where}:1"
    line = file.readline(LONGEST_HEADER)
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise TraceError(place, "a JSON header", str(error)) from None
    if not isinstance(fields, dict) or fields.pop("format", None) != FORMAT:
        raise TraceError(place, f'a JSON header with "format": "{FORMAT}"', line[:60])
    version = fields.pop("version", None)
    if version != VERSION:
        raise TraceError(place, f"run format version {VERSION}", version)
    count = fields.pop("files", None)
    if not isinstance(count, int):
        raise TraceError(place, "the number of files", count)
    layouts = fields.pop("layouts", None)
    for name in ("outcomes", "shared"):  # for `tarazu.trace.recorded`; the files say it too
        fields.pop(name, None)
    try:
        return Header(count, fields, tuple(map(bytes.fromhex, layouts)))
    except (TypeError, ValueError) as error:
        raise TraceError(place, "a list of layouts", str(error)) from None


def reader(source: str | os.PathLike[str] | int, most_bytes: int, where: str = "") -> TextIO:
    """A regular file as text, from its beginning; a descriptor is closed with it.

    Raises TraceError for anything else, TooLarge when more than `most_bytes` would be read, else OSError.
    """
    raw = _Bounded(source, most_bytes, where)
    buffered = io.BufferedReader(raw, _BUFFER)
    return io.TextIOWrapper(buffered, encoding="utf-8", errors="surrogateescape", newline="")


def bytes_read(file: TextIO) -> int:
    """How much a `reader` has read from its file."""
    buffered: Any = file
    return int(buffered.buffer.raw.offset)


class TooLarge(TraceError):
    """More bytes than the reader was allowed to read."""


class _Bounded(io.RawIOBase):
    """Reads a descriptor at an offset of its own: the sender of the descriptor shares the file's.

    What is read counts, not the size that the file has now: it may grow.
    """

    def __init__(self, source: str | os.PathLike[str] | int, most_bytes: int, where: str) -> None:
        self._where = where or (f"descriptor {source}" if isinstance(source, int) else os.fspath(source))
        # A FIFO would wait for its writer.
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
        self._descriptor = source if isinstance(source, int) else os.open(source, flags)
        self._most_bytes = most_bytes
        self._expected = f"a file of at most {most_bytes} bytes"
        self.offset = 0
        try:
            status = os.fstat(self._descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise TraceError(self._where, "a file", "no regular file")
            if status.st_size > most_bytes:
                raise TooLarge(self._where, self._expected, f"{status.st_size} bytes")
        except BaseException:
            self.close()
            raise

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = os.preadv(self._descriptor, [buffer], self.offset)
        self.offset += count
        if self.offset > self._most_bytes:
            raise TooLarge(self._where, self._expected, "more")
        return count

    def close(self) -> None:
        if not self.closed:
            super().close()
            with contextlib.suppress(OSError):
                os.close(self._descriptor)
