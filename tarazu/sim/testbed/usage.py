"""What lies where: bytes per OST and OSS of the files in the mount, from their actual layouts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from tarazu.layout.objects import object_bytes
from tarazu.sim.testbed import lov
from tarazu.sim.testbed.directory import Directory


class Usage(msgspec.Struct, frozen=True):
    """Where the bytes of a testbed's files are; lists are indexed by OST."""

    files: int
    total_bytes: int
    ost_bytes: list[int]
    oss_bytes: dict[str, int]
    ost_fill: list[float]
    """Used share of each OST, with what filled it before, 0-1."""
    ost_cost: float
    """max/mean of the bytes on each OST (paper, equation 4); 0 without files."""
    oss_cost: float
    fill_cost: float
    """max/mean of `ost_fill`."""
    completion_s: float
    """Time that the slowest OST needs for its bytes at its emulated speed."""


def max_over_mean(values: Sequence[float]) -> float:
    total = sum(values)
    return max(values) * len(values) / total if total else 0.0


def regular_files(root: Path) -> Iterator[str]:
    """Every regular file below `root`, each inode once."""
    seen: set[int] = set()
    for directory, _, names in os.walk(root):
        for name in names:
            path = os.path.join(directory, name)
            try:
                status = os.lstat(path)
            except OSError:
                continue
            if (status.st_mode & 0o170000) == 0o100000 and status.st_ino not in seen:
                seen.add(status.st_ino)
                yield path


def usage(testbed: Directory) -> Usage:
    """Reads every file's layout back and adds up its objects."""
    count = len(testbed.oss_of_ost)
    ost_bytes, files, total = [0] * count, 0, 0
    paths = list(regular_files(testbed.mount))
    testbed.mds.account(paths)  # a program that ended without close() may have left components uninstantiated
    for path in paths:
        size = os.lstat(path).st_size
        blob = testbed.mds.layout_blob(Path(path))
        files, total = files + 1, total + size
        if blob is None:
            continue
        actual = lov.decode(blob)
        for osts, objects in zip(actual.osts, object_bytes(actual.layout, size), strict=True):
            for ost, amount in zip(osts, objects, strict=False):
                ost_bytes[ost] += amount
    oss_bytes = dict.fromkeys(testbed.oss_names, 0)
    for ost, amount in enumerate(ost_bytes):
        oss_bytes[testbed.oss_of_ost[ost]] += amount
    capacity = [testbed.mds.get("total", i) for i in range(count)]
    fill = [(testbed.mds.get("base", i) + ost_bytes[i]) / capacity[i] for i in range(count)]
    speeds = testbed.speeds()
    return Usage(
        files,
        total,
        ost_bytes,
        oss_bytes,
        fill,
        max_over_mean(ost_bytes),
        max_over_mean(list(oss_bytes.values())),
        max_over_mean(fill),
        max(amount / speed for amount, speed in zip(ost_bytes, speeds, strict=True)),
    )
