"""Who does not want to be placed is not: excluded names and programs, layouts that someone chose, modes, the switch."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tarazu import built

Placed = Any
UNMANAGED, HIT, MISS, ADVISED, SKIPPED, RACED = 0, 1, 3, 5, 6, 7
OSTS = (3, 1, 5)


def default_layout(placed: Placed, name: str) -> bool:
    return len(placed.osts(name)[0]) == 1


@pytest.mark.parametrize("apply", ["direct", "llapi"])
@pytest.mark.parametrize(
    "setting",
    [
        {"TARAZU_EXCLUDE": "/keep/*"},
        {"TARAZU_EXCLUDE": "*.tmp:/keep/*:/other"},
        {"TARAZU_INCLUDE": "/elsewhere/*:/place*"},
        {"TARAZU_EXCLUDE_PROGRAMS": "python*"},
        {"TARAZU_EXCLUDE_PROGRAMS": "dd:*thon?*:pyth*"},
        {"TARAZU_DISABLE": "1"},
        {"TARAZU_DISABLE": "yes"},
    ],
    ids=lambda s: next(iter(s.values())),
)
def test_excluded(placed: Placed, setting: dict[str, str], apply: str) -> None:
    placed.map(placed.row("/keep/f", OSTS), placed.row("/placed", OSTS))
    source = "import os; os.mkdir('keep'); open('keep/f', 'w').close(); open('placed', 'w').close()"
    assert placed.python(source, TARAZU_APPLY=apply, **setting).stderr == ""
    assert default_layout(placed, "keep/f")
    assert [c.key for c in placed.creates if c.key == "/keep/f"] == []
    whole_program = "TARAZU_INCLUDE" not in setting and "TARAZU_EXCLUDE" not in setting
    assert default_layout(placed, "placed") == whole_program


def test_a_list_that_is_too_long_to_keep_switches_the_library_off(placed: Placed) -> None:
    """Half of it must not be obeyed: what stands at the end may be what matters."""
    placed.map(placed.row("/f", OSTS))
    many = ":".join(f"/directory{i}/*" for i in range(5000))
    assert placed(["touch", "f"], TARAZU_EXCLUDE=f"{many}:/f").returncode == 0
    assert default_layout(placed, "f") and placed.spools == []


@pytest.mark.parametrize("apply", ["direct", "llapi"])
def test_an_mpi_io_hint_wins(placed: Placed, compiled: Any, apply: str) -> None:
    """What ROMIO and OMPIO do with striping hints: O_LOV_DELAY_CREATE and the ioctl."""
    placed.map(placed.row("/f", OSTS))
    assert placed([compiled("hinted.c"), "f"], TARAZU_APPLY=apply).returncode == 0
    (component,) = placed.decode(placed.bed.mds.layout_blob(placed.mount / "f"))
    assert (component.component.stripe_size_bytes, len(component.osts), component.osts[0]) == (2 << 20, 2, 5)
    made = placed.create("/f")
    assert (made.outcome, made.layout) == (SKIPPED, b"")


LLAPI = """
import ctypes
api = ctypes.CDLL("liblustreapi.so.1")
api.llapi_layout_alloc.restype = ctypes.c_void_p
layout = ctypes.c_void_p(api.llapi_layout_alloc())
assert api.llapi_layout_stripe_count_set(layout, ctypes.c_uint64(2)) == 0
assert api.llapi_layout_ost_index_set(layout, 0, ctypes.c_uint64(6)) == 0
assert api.llapi_layout_file_create(b"f", 1, 0o644, layout) >= 0
"""


@pytest.mark.parametrize("apply", ["direct", "llapi"])
def test_a_program_that_uses_liblustreapi_itself_wins(placed: Placed, apply: str) -> None:
    placed.map(placed.row("/f", OSTS))
    done = placed.python(LLAPI, TARAZU_APPLY=apply)
    assert (done.returncode, done.stderr) == (0, "")
    assert placed.osts("f")[0][0] == 6 and len(placed.osts("f")[0]) == 2
    assert placed.create("/f").outcome == SKIPPED


@pytest.mark.parametrize("apply", ["direct", "llapi"])
def test_a_file_made_in_advance_keeps_its_layout(placed: Placed, apply: str) -> None:
    """`lfs setstripe FILE` before the run, in a script."""
    placed.map(placed.row("/f", OSTS))
    assert placed.bare([sys.executable, "-c", LLAPI]).returncode == 0
    before = placed.osts("f")
    assert placed.python("f = open('f', 'w'); f.write('x')", TARAZU_APPLY=apply).stderr == ""
    assert placed.osts("f") == before and before[0][0] == 6
    made = placed.create("/f")
    assert made.outcome == RACED and made.flags & 1
    assert [c.osts for c in placed.decode(made.layout)] == [tuple(before[0])]


def test_a_directory_default_is_the_leaders_business_and_names_it_left_out_are_untouched(
    placed: Placed,
) -> None:
    """The leader puts no file of such a directory into the map: here is what a program sees then."""
    (placed.mount / "own").mkdir()
    placed.bed.set_default_layout("2@2M", placed.mount / "own")
    placed.map(placed.row("/other", OSTS))
    assert placed(["touch", "own/f"]).returncode == 0
    (component,) = placed.decode(placed.bed.mds.layout_blob(placed.mount / "own" / "f"))
    assert (component.component.stripe_count, component.component.stripe_size_bytes) == (2, 2 << 20)
    assert placed.create("/own/f").outcome == MISS


@pytest.mark.parametrize(("mode", "outcome"), [("observe", UNMANAGED), ("advise", ADVISED), ("place", HIT)])
@pytest.mark.parametrize("apply", ["direct", "llapi"])
def test_modes(placed: Placed, compiled: Any, mode: str, outcome: int, apply: str) -> None:
    placed.map(placed.row("/open", OSTS), placed.row("/fopen", OSTS))
    assert placed([compiled("every.c")], TARAZU_MODE=mode, TARAZU_APPLY=apply).returncode == 0
    for name in ("open", "fopen"):
        assert placed.create(f"/{name}").outcome == outcome
        assert default_layout(placed, name) == (mode != "place")
    assert bool(placed.create("/open").layout) == (mode == "place")


@pytest.mark.parametrize("mode", ["Place", "PLACE", "yes", ""])
def test_an_unknown_mode_only_observes(placed: Placed, mode: str) -> None:
    placed.map(placed.row("/f", OSTS))
    assert placed(["touch", "f"], TARAZU_MODE=mode).returncode == 0
    assert default_layout(placed, "f") and placed.create("/f").outcome == UNMANAGED


def test_another_mount_of_the_name_is_none_of_its_business(placed: Placed) -> None:
    placed.map(placed.row("/f", OSTS))
    assert placed(["touch", "f"], TARAZU_MOUNTS="/somewhere=lustre").returncode == 0
    assert default_layout(placed, "f") and placed.spools == []
    assert built.library_path("libtarazu.so").exists()
