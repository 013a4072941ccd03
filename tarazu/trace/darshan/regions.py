"""Looks at the outer form of a log before the C library does.

The library trusts what it reads, says what it finds on standard error, and can die of it: so that every compressed
region is there and, by zlib's checksums, whole, is made sure first.
"""

from __future__ import annotations

import mmap
import struct
import zlib

from tarazu.errors import TraceError

MAGIC = 6567223
VERSIONS = ("3.00", "3.10", "3.20", "3.21", "3.41")
_MODULES = {"3.41": 64}
"""Modules in the header by version of the format; before, 16."""
_ZLIB, _BZIP2, _NONE = 0, 1, 2
_PIECE = 1 << 16


def check_regions(where: str) -> None:
    """Raises TraceError, one line, unless the header and all compressed regions of the log are whole."""
    try:
        with open(where, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            _check(where, content)
    except OSError as error:
        raise TraceError(where, "a Darshan log", error.strerror or str(error)) from None
    except ValueError:
        raise TraceError(where, "a Darshan log", "an empty file") from None


def _check(where: str, content: mmap.mmap) -> None:
    version = content[:8].split(b"\0")[0].decode("ascii", "replace")
    if version not in VERSIONS:
        known = f"a Darshan log of format {VERSIONS[0]} to {VERSIONS[-1]}"
        raise TraceError(where, known, content[:8])
    modules = _MODULES.get(version, 16)
    order = "<" if content[8:16] == struct.pack("<q", MAGIC) else ">"
    flag = "Q" if modules > 16 else "I"
    # As the compiler lays out struct darshan_header: the flag stands at a multiple of its size.
    form = struct.Struct(f"{order}8sq{'B7xQ' if flag == 'Q' else 'B3xI'}{2 * (1 + modules)}Q{modules}I")
    if len(content) <= form.size:
        raise TraceError(where, f"a Darshan log of more than {form.size} bytes", len(content))
    _, magic, compression, _, *rest = form.unpack(content[: form.size])
    if magic != MAGIC or compression not in (_ZLIB, _BZIP2, _NONE):
        raise TraceError(where, "a Darshan log with its magic number", (magic, compression))
    # A module without records has an empty region.
    maps = [(rest[2 * i], rest[2 * i + 1]) for i in range(1 + modules) if rest[2 * i + 1]]
    job_end = min((start for start in rest[: 2 + 2 * modules : 2] if start), default=len(content))
    for start, length in [(form.size, job_end - form.size), *maps]:
        if not form.size <= start < start + length <= len(content):
            text = f"bytes {start} to {start + length} of {len(content)}"
            raise TraceError(where, "a Darshan log that is whole", text)
        if compression == _ZLIB:
            _expand(where, content, start, start + length)


def _expand(where: str, content: mmap.mmap, start: int, end: int) -> None:
    """Go through one region: every rank's part of it is a stream of its own."""
    at = start
    try:
        while at < end:
            stream = zlib.decompressobj()
            while not stream.eof:
                if at >= end:
                    raise EOFError("a stream that does not end")
                piece = content[at : min(at + _PIECE, end)]
                stream.decompress(piece)
                at += len(piece) - len(stream.unused_data)
    except (zlib.error, EOFError) as error:
        raise TraceError(where, "a Darshan log that is whole", f"{error} at byte {at}") from None
