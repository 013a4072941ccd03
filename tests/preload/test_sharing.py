"""Processes of one rank, or of none, share files: not a byte of what any of them writes is lost.

The makers' files have late components with lists; the others poll for the name and write at once, wherever they like.
In the first round of `make soak` the 16 processes share 2,000 files, else 48.
"""

from __future__ import annotations

import os
import shutil
from typing import Any

import pytest

from tarazu import native
from tarazu.model import Layout

Placed = Any
HIT, RACED, PARTLY = 1, 7, 8
PROCESSES, STEP = 16, 1 << 20
FILES = 2000 if os.environ.get("TARAZU_SOAK") else 48
BLOCK = 64
REFUSALS = {
    "nothing": {},
    "no_create": {"no_create": True},
    "inactive": {"active": False},
    "full": {"full": True},
}

pytestmark = pytest.mark.soak


def content() -> bytes:
    data = bytearray((PROCESSES - 1) * STEP + BLOCK)
    for process in range(PROCESSES):
        data[process * STEP : process * STEP + BLOCK] = bytes([ord("a") + process]) * BLOCK
    return bytes(data)


@pytest.mark.parametrize("how", ["excl", "join", "late"])
@pytest.mark.parametrize("rank", ["0", ""], ids=["equal-ranks", "no-ranks"])
@pytest.mark.parametrize("refusal", REFUSALS)
def test_what_processes_of_one_rank_write_into_a_shared_file_is_all_there(
    placed: Placed, compiled: Any, refusal: str, rank: str, how: str
) -> None:
    placed.bed.set_ost(6, **REFUSALS[refusal])
    placed.map(
        *(
            placed.row(f"/shared.{i}", *placed.three_lists, layout=placed.three_parts, rank=int(rank or -1))
            for i in range(FILES)
        )
    )
    ranks = {"SLURM_PROCID": rank} if rank else {}
    argv = [compiled("sharers.c"), PROCESSES, FILES, STEP, how]
    done = placed([str(a) for a in argv], **ranks)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    expected = content()
    damaged = [i for i in range(FILES) if (placed.mount / f"shared.{i}").read_bytes() != expected]
    assert damaged == []
    assert {c.outcome for c in placed.creates if not c.flags & 1} <= {HIT, RACED, PARTLY}
    if refusal == "nothing":  # raced: a poller's open came between the maker's and its layout
        hits = [c.key for c in placed.creates if c.outcome == HIT]
        assert hits and all(placed.osts(key[1:]) == [list(o) for o in placed.three_lists] for key in hits)


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace (Debian: strace)")
@pytest.mark.parametrize("apply", ["direct", "llapi"])
@pytest.mark.parametrize("state", REFUSALS)
@pytest.mark.parametrize("ends", ["eof", "before"])
def test_no_file_is_truncated_or_unlinked(placed: Placed, apply: str, state: str, ends: str) -> None:
    """Rank 3 makes a file that only rank 3 ever made: still nothing that could harm another process."""
    layout, lists = placed.three_parts, placed.three_lists
    if (
        ends == "before"
    ):  # the last component has no list: the one before it ends, and is reserved, not punched
        lists = (*lists[:2], ())
    placed.bed.set_ost(6, **REFUSALS[state])
    placed.map(placed.row("/step.3", *lists, layout=layout, rank=3))
    environ = placed.environ(TARAZU_RANK="3", OMPI_COMM_WORLD_SIZE="4", TARAZU_APPLY=apply)
    preload = environ.pop("LD_PRELOAD")
    trace = placed.work / "trace"
    calls = "trace=ftruncate,truncate,unlink,unlinkat,fallocate,rename,renameat,renameat2"
    argv = ["strace", "-f", "-e", calls, "-o", str(trace), "-E", f"LD_PRELOAD={preload}", "touch", "step.3"]
    assert placed.run(argv, environ).returncode == 0
    lines = [line.split(maxsplit=1)[1] for line in trace.read_text().splitlines() if "(" in line]
    forbidden = ("ftruncate(", "truncate(", "unlink", "rename")
    # The testbed keeps its layouts in files of its own, and the recorder its spool.
    assert [li for li in lines if li.startswith(forbidden) and "mds/" not in li and ".tzs" not in li] == []
    made = placed.osts("step.3")
    assert made[0] == [0]
    if state == "nothing":
        assert made[1] == [5, 6] and made[2] == ([1, 2, 3, 4] if ends == "eof" else [])
    else:
        assert 6 not in made[1] and len(made[1]) == 2  # hints, which fell back


def test_a_limit_on_the_size_of_files_still_gets_lists_below_it(placed: Placed) -> None:
    """Where no hole may be punched far away, a byte is reserved; SIGXFSZ is never risked."""
    placed.map(placed.row("/f", *placed.three_lists, layout=placed.three_parts))
    assert placed(["sh", "-c", "ulimit -f 100000; echo x > f"]).returncode == 0
    assert placed.osts("f") == [list(o) for o in placed.three_lists]
    assert (placed.mount / "f").read_text() == "x\n"


@pytest.mark.long
def test_many_processes_find_that_the_maker_is_gone(placed: Placed, compiled: Any) -> None:
    """It had set a layout that an OST refuses, and died: all of them wait, and none takes away what another mends."""
    count, blob = 6, native.encode_lov(placed.three_parts, placed.three_lists)
    placed.map(
        *(placed.row(f"/shared.{i}", *placed.three_lists, layout=placed.three_parts) for i in range(count))
    )
    make = f"""
import os
for i in range({count}):
    fd = os.open(f"shared.{{i}}", os.O_CREAT | os.O_RDWR | os.O_NOCTTY | 0o20000, 0o644)
    os.setxattr(fd, "lustre.lov", bytes.fromhex("{blob.hex()}"))
"""
    assert placed.bare(["python3", "-c", make]).stderr == ""
    placed.bed.set_ost(6, no_create=True)
    done = placed([str(a) for a in (compiled("sharers.c"), PROCESSES, count, STEP, "join")])
    assert (done.returncode, done.stderr) == (0, "")
    assert all((placed.mount / f"shared.{i}").read_bytes() == content() for i in range(count))


def test_a_maker_that_died_between_two_requests_leaves_no_file_that_cannot_be_written(placed: Placed) -> None:
    """The tail was removed and not added again: who opens the file next adds it."""
    placed.map(placed.row("/s", *placed.three_lists, layout=placed.three_parts))
    cut = Layout(placed.three_parts.components[:1], composite=True)
    blob = native.encode_lov(cut, placed.three_lists[:1])
    make = f"""
import os
fd = os.open("s", os.O_CREAT | os.O_RDWR | os.O_NOCTTY | 0o20000, 0o644)
os.setxattr(fd, "lustre.lov", bytes.fromhex("{blob.hex()}"))
"""
    assert placed.bare(["python3", "-c", make]).stderr == ""
    source = "import os; f = os.open('s', 1); print(os.pwrite(f, b'x', 2 << 20), os.pwrite(f, b'x', 9 << 20))"
    done = placed.python(source)
    assert (done.stdout, done.stderr) == ("1 1\n", "")
