"""Malformed statistics files, of every version, given to every parser and the whole collector."""

from __future__ import annotations

import logging
import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tarazu.stats import mds
from tarazu.stats.collector import Collector
from tarazu.stats.mds_load import MdsCollector
from tarazu.stats.sources import survey
from tarazu.stats.view import ViewBuilder
from tarazu.wire import messages

DATA = Path(__file__).parent.parent / "data" / "lustre"
SLOWEST_S = 5.0
"""CPU of one look at a small node, whatever lies there."""
NUMBERS = (
    b"0",
    b"-1",
    b"18446744073709551615",
    b"9" * 30,
    b"9" * 5000,
    b"1e999",
    b"nan",
    b"\xd9\xa3",
    b"0x10",
)
LUMPS = (
    b"\x00",
    b"\xff\xfe",
    b" " * 5000,
    b"{" * 3000,
    b"a " * 3000,
    b"\n" * 1000,
    b"\r",
    b"\x85\xe2\x80\xa8",
    b"% cum % |",
    b" samples [",
    b"\n- job_id:",
    b"hist: { ",
    b"-OST0000_UUID\n",
)


class Result(NamedTuple):
    files: int
    looks: int
    slowest_s: float
    grown_bytes: int
    """Memory, after the first tenth."""


def roots() -> list[Path]:
    found = [DATA / "oss", DATA / "mds"]
    return found + sorted(
        p / node for p in (DATA / "versions").iterdir() if (p / "oss").is_dir() for node in ("oss", "mds")
    )


def mutate(data: bytes, rng: random.Random) -> bytes:
    """One to four changes: bytes, numbers, lines, lumps, an early end."""
    for _ in range(rng.randint(1, 4)):
        rng.choice(CHANGES)(data_of := bytearray(data), rng)
        data = bytes(data_of)
    return data


def _bytes(data: bytearray, rng: random.Random) -> None:
    for _ in range(rng.randint(1, 8)):
        if data:
            data[rng.randrange(len(data))] = rng.randrange(256)


def _number(data: bytearray, rng: random.Random) -> None:
    places = [i for i in range(1, len(data)) if data[i - 1 : i].isspace() and data[i : i + 1].isdigit()]
    if places:
        begin = end = rng.choice(places)
        while end < len(data) and chr(data[end]).isdigit():
            end += 1
        data[begin:end] = rng.choice(NUMBERS)


def _lump(data: bytearray, rng: random.Random) -> None:
    place = rng.randint(0, len(data))
    data[place:place] = rng.choice(LUMPS) * rng.choice((1, 1, 1, 20))


def _lines(data: bytearray, rng: random.Random) -> None:
    lines = bytes(data).split(b"\n")
    change = rng.randrange(4)
    if change == 0:
        rng.shuffle(lines)
    elif change == 1:
        del lines[rng.randrange(len(lines)) :: rng.randint(2, 5)]
    elif change == 2:
        lines *= rng.choice((2, 50))
    else:
        lines = [b" ".join(lines)]
    data[:] = b"\n".join(lines)[: 1 << 20]


def _end(data: bytearray, rng: random.Random) -> None:
    del data[rng.randint(0, len(data)) :]


CHANGES: tuple[Callable[[bytearray, random.Random], None], ...] = (
    _bytes,
    _number,
    _number,
    _lump,
    _lines,
    _end,
)


def mutate_statistics(n: int, seed: int = 0) -> Result:
    """Change `n` files, a few at a time, and look at the node as ossd, mdsd and `tarazu doctor` do after each.

    Raises what the product raises, which is to be nothing; and AssertionError when a look takes too long.
    """
    rng = random.Random(seed)
    logging.getLogger("tarazu.stats").setLevel(logging.CRITICAL)
    nodes = []
    slowest_s, looks, changed, base_bytes = 0.0, 0, 0, 0
    with tempfile.TemporaryDirectory(prefix="tarazu-statistics-") as directory:
        for number, original in enumerate(roots()):
            root = Path(shutil.copytree(original, Path(directory) / str(number)))
            files = {path: path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}
            nodes.append((root, files, Collector(root, f"oss{number}", exports=True), MdsCollector(root)))
        while changed < n:
            root, files, collector, mds_collector = nodes[looks % len(nodes)]
            several = rng.sample(sorted(files), min(rng.choice((1, 3, 20)), len(files)))
            for path in several:
                path.write_bytes(mutate(files[path], rng))
            changed += len(several)
            begin = time.process_time()
            _look(root, collector, mds_collector, looks)
            slowest_s = max(slowest_s, time.process_time() - begin)
            assert slowest_s < SLOWEST_S, f"one look took {slowest_s:.1f} s with {several}"
            looks += 1
            for path in several:
                path.write_bytes(files[path])
            if changed <= n // 10:
                base_bytes = _memory_bytes()
    return Result(changed, looks, slowest_s, _memory_bytes() - base_bytes)


def _look(root: Path, collector: Collector, mds_collector: MdsCollector, now: float) -> None:
    report = collector.collect(1000.0 * now, 60.0 * now)
    assert messages.decode(messages.encode(report)) == report
    # What could be read of it is what mdsd takes in, but for targets with impossible values.
    views = ViewBuilder(180, root)
    if views.update(report, 60.0 * now):
        for fs_name in views.fs_names():
            messages.encode(messages.ViewReply("", views.view(fs_name, 60.0 * now)))
            views.details(fs_name, 60.0 * now)
    mds.read(root)
    load = mds_collector.collect(60.0 * now)
    assert load.interval_s >= 0
    if now % 8 == 0:
        survey(root)


def _memory_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
