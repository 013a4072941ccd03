"""What a command line must do, phase by phase: the expectation is made from its words, never from a log."""

from __future__ import annotations

import argparse
import shlex
from collections import Counter
from typing import NamedTuple

from tarazu.units import parse_bytes

HEADER = 24 << 20
"""HACC-IO writes it at the beginning of each of its files."""
VARIABLES = (4,) * 7 + (8, 2)
"""Bytes of a particle: seven floats, an id, a mask; each is one request."""
PAGE = 4096
"""Header of a checkpoint."""


class Expected(NamedTuple):
    """One phase, without its times."""

    operation: str
    api: str
    sharing: str
    spatiality: str
    bytes: int
    requests: int | None
    """None: not to be known from the command."""
    files: int
    processes: int
    sizes: dict[int, int] | None
    """Of the requests."""


def expected(command: str, ranks: int) -> list[Expected]:
    """Phases that are more than a second apart, in order; of IOR, HACC-IO and the checkpoint program."""
    program, *words = shlex.split(command)
    if program == "ior":
        return _ior(words, ranks)
    if program == "ckpt":
        return _checkpoints(words, ranks)
    if program.startswith("hacc_io"):
        return _hacc(program, int(words[0]), ranks)
    raise KeyError(program)


def _ior(words: list[str], ranks: int) -> list[Expected]:
    parser = argparse.ArgumentParser()
    for flag in "wrFmzcCke":
        parser.add_argument(f"-{flag}", action="store_true")
    for option, default in (("a", ""), ("b", "1m"), ("t", "256k"), ("o", "")):
        parser.add_argument(f"-{option}", default=default)
    for option, default in (("s", 1), ("i", 1), ("d", 0)):
        parser.add_argument(f"-{option}", type=int, default=default)
    of = parser.parse_args(words)
    block, transfer = parse_bytes(of.b), parse_bytes(of.t)
    api = {"POSIX": "POSIX", "MPIIO": "MPI-IO", "HDF5": "HDF5"}[of.a]
    each = of.s * block // transfer
    """Requests of a rank in one repetition."""
    if api != "POSIX":
        spatiality = "collective" if of.c else "unknown"
    elif of.z:
        spatiality = "random"
    else:
        # In a shared file the blocks of the other ranks lie between two segments.
        follow = each - 1 if of.F else of.s * (block // transfer - 1)
        spatiality = "contiguous" if follow >= 0.8 * (each - 1) else "sequential"
    apart = of.d > 0
    """Also of repetitions in the same files."""
    times = 1 if apart else of.i
    files = (ranks if of.F else 1) * (times if of.m else 1)
    once = [
        Expected(
            operation,
            api,
            "unique" if of.F else "shared",
            spatiality,
            ranks * of.s * block * times,
            ranks * each * times,
            files,
            1 if of.F else ranks,
            {transfer: ranks * each * times},
        )
        for operation, wanted in (("write", of.w), ("read", of.r))
        if wanted
    ]
    return once * (of.i if apart else 1)


def _hacc(program: str, particles: int, ranks: int) -> list[Expected]:
    unique = "_fpp_" in program
    mpi = program.endswith("mpiio")
    files = ranks if unique else 1
    sizes = Counter({HEADER: files})
    for variable in VARIABLES:
        sizes[variable * particles] += ranks
    return [
        Expected(
            operation,
            "MPI-IO" if mpi else "POSIX",
            "unique" if unique else "shared",
            "unknown" if mpi else "contiguous",
            sum(size * number for size, number in sizes.items()),
            sizes.total(),
            files,
            1 if unique else ranks,
            dict(sizes),
        )
        for operation in ("write", "read")
        if operation == "write" or "_write_" not in program
    ]


def _checkpoints(words: list[str], ranks: int) -> list[Expected]:
    parser = argparse.ArgumentParser()
    for option, default in (
        ("s", "1"),
        ("b", "1m"),
        ("g", "0"),
        ("t", "1m"),
        ("d", "0"),
        ("m", "fpp"),
        ("o", ""),
        ("k", ""),
    ):
        parser.add_argument(f"-{option}", default=default)
    for flag in "er":
        parser.add_argument(f"-{flag}", action="store_true")
    of = parser.parse_args(words)
    transfer = parse_bytes(of.t)
    unique = of.m == "fpp"
    files = ranks if unique else 1
    found = []
    for step in range(int(of.s)):
        size = parse_bytes(of.b) + step * parse_bytes(of.g)
        sizes = Counter({PAGE: files})
        sizes[transfer] += ranks * (size // transfer)
        sizes[size % transfer] += ranks
        del sizes[0]
        total = sum(one * number for one, number in sizes.items())
        found.append(
            Expected(
                *("write", "POSIX", "unique" if unique else "shared", "contiguous"),
                *(total, sizes.total(), files, 1 if unique else ranks, dict(sizes)),
            )
        )
    if of.r:
        found.append(found[-1]._replace(operation="read", requests=None, sizes=None))
    return found
