"""Signal handlers on stacks of their own, as crash reporters have: 8 KiB, of which the kernel's frame takes some 3."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tarazu.store.control import announce, write_control
from tarazu.store.placement_map import write_map
from tests.map_rows import map_row

Runs = Any
Placed = Any
HIT = 1
FIRST_BYTES, LATER_BYTES = 2304, 1280
"""What calls may need on the stack beside the program's own: the first one makes the spool, or reads the map."""


@pytest.fixture
def program(compiled: Any) -> Path:
    """Bound when it is loaded, so that its own look-ups hide nothing."""
    return Path(compiled("stack.c", "-Wl,-z,now"))


def begin(directory: Path) -> None:
    for path in sorted(directory.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (directory / "below").mkdir(exist_ok=True)


def used(done: Any) -> list[tuple[str, int]]:
    assert (done.returncode, done.stderr) == (0, "")
    return [(name, int(size)) for name, size in (line.split() for line in done.stdout.splitlines())]


def check_sums(runs: Runs, program: Path, **environ: str) -> None:
    begin(runs.mount)
    bare = used(runs.bare([program, "measure"]))
    begin(runs.mount)
    under = used(runs([program, "measure"], **environ))
    assert [name for name, _ in under] == [name for name, _ in bare]
    more = [(name, size - alone) for (name, size), (_, alone) in zip(under, bare, strict=True)]
    assert max(size for _, size in more) <= FIRST_BYTES, more
    assert max(size for _, size in more[1::2]) <= LATER_BYTES, more


def check_crash(runs: Runs, program: Path, **environ: str) -> None:
    """On a stack that has little more room than the program needs by itself."""
    begin(runs.mount)
    alone = max(size for _, size in used(runs.bare([program, "measure"])))
    argv = [program, "crash", str(alone + FIRST_BYTES + 256)]
    begin(runs.mount)
    bare = runs.bare(argv)
    made = sorted(p.name for p in runs.mount.rglob("*"))
    begin(runs.mount)
    done = runs(argv, **environ)
    assert (done.returncode, done.stdout, done.stderr) == (bare.returncode, "", "") == (0, "", "")
    assert sorted(p.name for p in runs.mount.rglob("*")) == made and len(made) == 5


@pytest.mark.parametrize("record", ["light", "full"])
def test_a_crash_reporter_of_a_recorded_program_ends_as_without(
    plain: Runs, program: Path, record: str
) -> None:
    check_crash(plain, program, TARAZU_RECORD=record)
    assert {"/by-open", "/by-creat", "/below/by-openat", "/kept"} <= {c.key for c in plain.creates}


def test_what_a_recorded_call_needs_on_the_stack(plain: Runs, program: Path) -> None:
    check_sums(plain, program, TARAZU_RECORD="full")
    check_sums(plain, program, TARAZU_INCLUDE="/by*:/below/*:/kept", TARAZU_EXCLUDE="*.tmp:/[xyz]*")


@pytest.fixture
def mapped(plain: Runs) -> Runs:
    """A map whose rows are found, on a file system that turns out to take no layouts."""
    names = ("/by-open", "/by-creat", "/below/by-openat", "/kept")
    maps = plain.work / "maps"
    maps.mkdir()
    write_control(maps)
    rows = [map_row(name, (i, i + 1)) for i, name in enumerate(names)]
    write_map(maps / "map.1", generation=1, hash_key=bytes(16), ost_counts={"lustre": 8}, rows=rows)
    announce(maps, 1)
    stop = plain.work / "stop"
    plain.environment |= {"TARAZU_MODE": "place", "TARAZU_MAP": str(maps), "TARAZU_STOP": str(stop)}
    return plain


@pytest.mark.parametrize("mode", ["place", "advise"])
def test_a_crash_reporter_of_a_program_with_a_map_ends_as_without(
    mapped: Runs, program: Path, mode: str
) -> None:
    check_crash(mapped, program, TARAZU_MODE=mode)
    if mode == "advise":
        assert {c.generation for c in mapped.creates} == {1}


@pytest.mark.parametrize("mode", ["place", "advise"])
def test_what_a_call_with_a_map_needs_on_the_stack(mapped: Runs, program: Path, mode: str) -> None:
    check_sums(mapped, program, TARAZU_MODE=mode)


@pytest.mark.parametrize("apply", ["direct", "llapi"])
def test_files_of_a_signal_handler_are_placed(placed: Placed, program: Path, apply: str) -> None:
    names = ("by-open", "by-creat", "below/by-openat")
    rows = [placed.row(f"/{name}", (i, i + 1)) for i, name in enumerate(names)]
    placed.map(*rows, placed.row("/kept", *placed.three_lists, layout=placed.three_parts))
    check_crash(placed, program, TARAZU_APPLY=apply)
    outcomes = {c.key: c.outcome for c in placed.creates}
    assert {outcomes[name] for name in ("/by-open", "/by-creat", "/below/by-openat", "/kept")} == {HIT}
