"""Spools on their way through a launcher's standard output."""

from __future__ import annotations

import gzip
import random
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu.run.nodes.framed import LINE, SHELL, Frames


def sent(data: bytes, kind: str = "raw") -> list[bytes]:
    """The lines that one node sends."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        script = f'{SHELL}\nsend "$1" {kind} yes'
        done = subprocess.run(["sh", "-c", script, "sh", file.name], capture_output=True, check=True)
    lines = done.stdout.splitlines(keepends=True)
    assert done.stderr == b"" and {len(line) for line in lines} == {LINE}
    return lines


def received(lines: list[bytes]) -> tuple[list[bytes | None], list[str]]:
    with tempfile.TemporaryDirectory() as directory:
        frames = Frames(Path(directory))
        for line in lines:
            frames.take(line.rstrip(b"\n"))
        frames.close()
        return [a.file.read_bytes() if a.file else None for a in frames.answers], frames.damaged


@pytest.fixture(scope="module")
def two() -> tuple[bytes, bytes, list[bytes], list[bytes]]:
    a, b = random.Random(1).randbytes(7000), bytes(359) + b"b"
    return a, b, sent(a), sent(b)


@pytest.mark.parametrize("size", [1, 359, 360, 361, 100_000])
def test_any_length_comes_as_it_was(size: int) -> None:
    data = random.Random(size).randbytes(size)
    assert received(sent(data)) == ([data], [])


@settings(deadline=None, max_examples=50)
@given(st.randoms(use_true_random=False), st.sampled_from([b"", b"0: ", b"[1,0]<stdout>:", b"[n2:3] "]))
def test_nodes_mixed_labelled_and_amid_other_output(
    two: tuple[bytes, bytes, list[bytes], list[bytes]], order: random.Random, label: bytes
) -> None:
    a, b, of_a, of_b = two
    mixed = [*of_a[:-1], *of_b[:-1], b"Welcome to n2\n", b"tarazu1 and nothing else\n", b"\xff" * 511 + b"\n"]
    order.shuffle(mixed)
    files, damaged = received([label + line for line in (*mixed, of_b[-1], of_a[-1])])
    assert (files, damaged) == ([b, a], [])


@pytest.mark.parametrize("kind", ["raw", "gz"])
def test_a_node_that_begins_when_another_has_ended_loses_nothing(kind: str) -> None:
    """Its file had the name of the first one's: nodes that answered one after the other counted as damaged."""
    parts = [gzip.compress(data) if kind == "gz" else data for data in (b"a" * 900, b"b" * 500)]
    assert received([*sent(parts[0], kind), *sent(parts[1], kind)]) == ([b"a" * 900, b"b" * 500], [])


@pytest.mark.parametrize("damage", ["lost", "cut", "changed", "joined"])
def test_what_did_not_come_whole_is_not_used(
    two: tuple[bytes, bytes, list[bytes], list[bytes]], damage: str
) -> None:
    lines = list(two[2])
    if damage == "lost":
        del lines[3]
    elif damage == "cut":
        lines[3] = lines[3][:300]
    elif damage == "changed":
        lines[3] = lines[3].replace(lines[3][40:44], b"AAAA", 1)
    else:
        lines[3:5] = [lines[3][:300] + lines[4][300:], lines[4][:300] + lines[3][300:]]
    files, damaged = received(lines)
    assert files == [None] and len(damaged) == 1


def test_a_lie_about_the_packing_is_damage() -> None:
    files, damaged = received(sent(b"no gzip at all", "gz"))
    assert files == [None] and len(damaged) == 1
