"""What lies where: bytes per OST and OSS of the files in the mount, from their actual layouts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from tarazu.layout.objects import object_bytes
from tarazu.sim.testbed import lov
from tarazu.sim.testbed.directory import Directory
from tarazu.sim.testbed.library import MD_OPERATIONS
from tarazu.sim.testbed.mdt_server import MEAN_US


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


class MetadataTime(msgspec.Struct, frozen=True):
    """What MDTs have done, and how long each works on it; lists are indexed by MDT."""

    creates: list[int]
    """Files and directories made there."""
    seconds: list[float]
    """One operation after another, each as long as its mean on a real MDT times this one's factor. A real one works on
    many at once: only how the MDTs compare is to be read from it.
    """
    completion_s: float
    """The longest of them."""
    bound_s: float
    """The same operations shared out so that all MDTs end at once: nobody does better."""


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


def metadata_done(testbed: Directory) -> list[dict[str, int]]:
    """What each MDT has done since the testbed was made, by operation."""
    count = testbed.config.mdts
    rows = [testbed.mds.mdt_done(i) for i in range(count)]
    return [{name: sum(client[name] for client in of_mdt) for name in MD_OPERATIONS} for of_mdt in rows]


def metadata_time(testbed: Directory, before: Sequence[Mapping[str, int]] = ()) -> MetadataTime:
    """Of what was done since `before`, an earlier `metadata_done`."""
    zero = dict.fromkeys(MD_OPERATIONS, 0)
    work, creates = [], []
    for index, done in enumerate(metadata_done(testbed)):
        earlier = before[index] if before else zero
        grown = {name: done[name] - earlier[name] for name in MD_OPERATIONS}
        creates.append(grown["mknod"] + grown["mkdir"])
        grown["open"] = max(0, grown["open"] - grown["mknod"])
        work.append(sum(MEAN_US[name] * times for name, times in grown.items()) / 1e6)
    slower = testbed.mdt_factors()
    seconds = [each * factor for each, factor in zip(work, slower, strict=True)]
    return MetadataTime(creates, seconds, max(seconds), sum(work) / sum(1 / factor for factor in slower))
