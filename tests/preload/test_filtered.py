"""Programs that allow themselves but some system calls (seccomp): they end as without the library."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tarazu.escapes import ESCAPES, MAY, check
from tarazu.escapes import _of_this_session as of_this_session
from tests.preload.conftest import Runs

WAYS = ("prctl", "seccomp", "raw", "thread")
MOMENTS = ("start", "later", "fork", "exec")


@pytest.fixture(scope="module")
def program(compiled: Any) -> Path:
    path: Path = compiled("filtered.c")
    return path


@pytest.mark.parametrize("what", ["kill", "trap", "errno"])
@pytest.mark.parametrize("how", WAYS)
def test_a_program_behind_a_list_of_system_calls_ends_as_without_the_library(
    plain: Runs, program: Path, how: str, what: str
) -> None:
    for when in MOMENTS:
        if how == "raw" and when == "later":
            continue  # past libc, after the first look: nothing tells (docs/limitations.md)
        files = [f"{when}.{n}" for n in range(3)]
        for extra in ({}, {"TARAZU_RECORD": "full"}):
            done = plain([program, how, what, when, *files], **extra)
            case = (when, extra, done.stderr)
            assert (done.returncode, done.stdout) == (0, "done\n"), case
            assert all((plain.mount / name).stat().st_size == 4 for name in files[: 1 + (how != "thread")]), (
                case
            )
            before = ["/later.0"] if when == "later" else []
            assert [c.key for c in plain.creates] == before, case
            assert {c.key: c.size for c in plain.closes} == dict.fromkeys(before, 4), case
            assert all(spool.ended for spool in plain.spools), case


def test_a_program_in_strict_mode_ends_as_without_the_library(plain: Runs, program: Path) -> None:
    for when in ("start", "later"):
        done = plain([program, "strict", "kill", when, "strict.0"])
        assert (done.returncode, done.stdout) == (0, "done\n"), when
        assert [c.key for c in plain.creates] == (["/strict.0"] if when == "later" else [])


def test_asking_whether_a_list_could_be_set_switches_nothing_off(plain: Runs) -> None:
    """As libseccomp does: with none."""
    asks = (
        "import ctypes; c = ctypes.CDLL(None); assert c.prctl(22, 2, None) == -1; assert c.prctl(21) == 0\n"
        "assert c.syscall(317 if 'x86' in __import__('platform').machine() else 277, 1, 0, None) == -1\n"
        "open('asked', 'w').write('x')"
    )
    assert plain.python(asks).returncode == 0
    assert [c.key for c in plain.creates] == ["/asked"]


def test_check_app_tells_a_program_behind_a_list(program: Path, compiled: Any, tmp_path: Path) -> None:
    told = [f.what for f in check(str(program), {}).findings if f.level == MAY]
    assert ["seccomp" in what and "nothing of it is recorded" in what for what in told] == [True]
    assert not any("seccomp" in f.what for f in check(str(compiled("every.c")), {}).findings)
    status = tmp_path / "status"
    status.write_text("Name:\tx\nSeccomp:\t2\n")
    (finding,) = of_this_session(str(status))
    assert finding.level == ESCAPES and "seccomp" in finding.what
    status.write_text("Name:\tx\nSeccomp:\t0\n")
    assert not list(of_this_session(str(status)))
