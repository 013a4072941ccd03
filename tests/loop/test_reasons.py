"""The reason that is told of files that were not placed is what happened, and all five who tell it tell the same."""

from __future__ import annotations

import os
import re
import shlex
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tarazu.left import SKIPPED
from tarazu.units import MIB
from tests.loop.reasons import (
    Counted,
    children,
    everybody_says,
    last_line,
    pid_of,
    running,
    site_of,
    stopped,
    until,
    words,
)

if TYPE_CHECKING:
    from tests.loop.conftest import Loop


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Loop, Counted]]:
    yield from site_of(tmp_path_factory.mktemp("reasons") / "tb", {})


def test_a_first_run_has_no_forecast_and_the_second_no_reason(site: tuple[Loop, Counted]) -> None:
    loop, counted = site
    before = counted.of("no forecast")
    loop.run(*words(loop, "first"), app="first")
    why = "no forecast: no earlier run of first on lustre"
    everybody_says(loop, "first", why, files=1, of=1, path=loop.mount() / "first")
    counted.wait("no forecast", before + 1)
    loop.run(*words(loop, "first"), app="first")
    line = last_line(loop, "first")
    assert " hit=1 " in line and " why=" not in line and " left=" not in line
    assert "not placed" not in loop.tarazu("job", "explain", loop.mount() / "first").stdout


def test_a_run_that_was_only_observed(site: tuple[Loop, Counted]) -> None:
    """It was not counted where it ended before it had a plan."""
    loop, counted = site
    before = counted.of("observing")
    loop.run(*words(loop, "seen"), app="seen", mode="observe")
    everybody_says(loop, "seen", "observing: run.mode is observe", files=1, of=1, path=loop.mount() / "seen")
    counted.wait("observing", before + 1)


def test_small_and_unexpected_and_existing_files_have_each_their_reason(site: tuple[Loop, Counted]) -> None:
    loop, counted = site
    before = {word: counted.of(word) for word in ("too small", "not expected", "overtaken", "own layout")}
    small = words(loop, "small.a", "small.b", size=1 * MIB)
    smalls = shlex.join(small)
    loop.run("sh", "-c", f"{shlex.join(words(loop, 'large'))} && {smalls}", app="mixed")
    (loop.mount() / "there").write_bytes(b"x" * 10)
    large = shlex.join(words(loop, "large", "extra"))
    frozen = shlex.join(words(loop, "frozen", mode="444"))
    for name in ("small.a", "small.b"):
        (loop.mount() / name).unlink()
    loop.run(
        "sh", "-c", f"{large} && {smalls} && {frozen} && echo y >> {loop.mount() / 'there'}", app="mixed"
    )
    line = last_line(loop, "mixed")
    assert " files=6 " in line and " hit=1 " in line and " left=5 " in line, line
    for name, why in {
        "small.a": "too small: smaller than layout.min_size",
        "extra": "not expected: none of the 1 that were planned",
        "there": "overtaken: they were there before the run opened them",
        "frozen": f"own layout: {SKIPPED[2]}",
    }.items():
        everybody_says(loop, "mixed", why, files=5, of=6, path=loop.mount() / name)
    counted.wait("overtaken", before["overtaken"] + 1)
    assert counted.of("own layout") == before["own layout"] + 1
    assert counted.of("not expected") == before["not expected"] + 1


def test_a_plan_that_comes_too_late_is_said_with_its_seconds(
    site: tuple[Loop, Counted], tmp_path: Path
) -> None:
    """`no forecast: no earlier run of the application …`, on a busy machine, where the database held all of it."""
    loop, counted = site
    before = counted.of("too late")
    loop.run(*words(loop, "late"), app="late")
    program = words(loop, "late", go=tmp_path / "go")
    with stopped(*children(pid_of(loop, "mdsd"))) as _, running(loop, "late", program, tmp_path / "go", 0.2):
        for pid in children(pid_of(loop, "mdsd")):
            os.kill(pid, signal.SIGCONT)
        until(lambda: loop.json("job", "show", "late")["running"][0]["map_generation"] > 0)
    line = last_line(loop, "late")
    match = re.search(
        r"too late: the plan came \d+\.\d s after the program began, run\.wait_s is 0\.2 s", line
    )
    assert match and " late=1 " in line, line
    everybody_says(loop, "late", match[0], files=1, of=1, path=loop.mount() / "late")
    counted.wait("too late", before + 1)


def test_a_plan_that_has_not_come_when_the_job_ends_is_late_too(
    site: tuple[Loop, Counted], tmp_path: Path
) -> None:
    loop, counted = site
    loop.run(*words(loop, "never"), app="never")
    before = counted.of("too late")
    program = words(loop, "never", go=tmp_path / "go")
    with stopped(*children(pid_of(loop, "mdsd"))):
        with running(loop, "never", program, tmp_path / "go", 0.2):
            until(lambda: loop.json("status")["mdsd"]["requests"]["running"])
        line = last_line(loop, "never")
        match = re.search(r"too late: no plan within \d+\.\d s: \w+ has been [\w ]+ for \d+\.\d s", line)
        assert match and " plan='none' because='too late: no plan" in line, line
        everybody_says(loop, "never", match[0], files=1, of=1, path=loop.mount() / "never")
        counted.wait("too late", before + 1)


def test_a_job_that_starts_while_mdsd_hangs_says_so(site: tuple[Loop, Counted], tmp_path: Path) -> None:
    """Its line had no `plan=`, and the reason `no forecast`."""
    loop, counted = site
    loop.run(*words(loop, "hung"), app="hung")
    before = counted.of("daemon silent")
    with stopped(pid_of(loop, "mdsd")):
        loop.run(*words(loop, "hung"), app="hung")  # which waits for its answer
        line = last_line(loop, "hung")
        match = re.search(r"daemon silent: \S+: expected an answer within 3 s, found none", line)
        assert match and " plan='unavailable' because=" in line, line
        everybody_says(loop, "hung", match[0], files=1, of=1, path=loop.mount() / "hung")
        counted.wait("daemon silent", before + 1)


def test_a_silent_clientd_is_said_and_counted_later(site: tuple[Loop, Counted], tmp_path: Path) -> None:
    loop, counted = site
    loop.run(*words(loop, "mute"), app="mute")
    before = counted.of("daemon silent")
    program = words(loop, "mute", go=tmp_path / "go")
    with stopped(pid_of(loop, "clientd-client1")), running(loop, "mute", program, tmp_path / "go", 0.2):
        time.sleep(1.2)  # so long nobody is called silent
    line = last_line(loop, "mute")
    match = re.search(
        r"daemon silent: no plan within \d+\.\d s: clientd has not answered for \d+\.\d s", line
    )
    assert match and " plan='none' because=" in line, line
    everybody_says(loop, "mute", match[0], files=1, of=1, path=loop.mount() / "mute")
    loop.run(*words(loop, "mute"), app="mute")
    counted.wait("daemon silent", before + 1, twice=True)


def test_a_clientd_that_is_not_there_is_said_and_counted_later(site: tuple[Loop, Counted]) -> None:
    loop, counted = site
    loop.run(*words(loop, "alone"), app="alone")
    before = counted.of("daemon silent")
    loop.run(*words(loop, "alone"), app="alone", env={"TARAZU_CLIENTD_SOCKET": str(loop.home / "none.sock")})
    line = last_line(loop, "alone")
    match = re.search(r"daemon silent: clientd at \S+/none\.sock: No such file or directory", line)
    assert match and " plan='none' because=" in line, line
    everybody_says(loop, "alone", match[0], files=1, of=1, path=loop.mount() / "alone")
    loop.run(*words(loop, "alone"), app="alone")
    counted.wait("daemon silent", before + 1)


def test_a_clientd_whose_database_cannot_be_opened_says_so(site: tuple[Loop, Counted]) -> None:
    loop, counted = site
    loop.run(*words(loop, "stored"), app="stored")
    before = counted.of("daemon silent")
    state = loop.testbed.client_root() / "state"
    state.rename(state.with_name("elsewhere"))
    state.touch()
    try:
        loop.run(*words(loop, "stored"), app="stored")
    finally:
        state.unlink()
        state.with_name("elsewhere").rename(state)
    line = last_line(loop, "stored")
    match = re.search(r"daemon silent: [^'\"]*interaction\.db[^'\"]*", line)
    assert match, line
    everybody_says(loop, "stored", match[0], files=1, of=1, path=loop.mount() / "stored")
    counted.wait("daemon silent", before + 1)


def test_planned_files_of_which_none_was_seen_are_named(site: tuple[Loop, Counted]) -> None:
    """As of a static program: nothing in jobs.log."""
    loop, counted = site
    names = [f"unseen.{n}" for n in range(6)]
    loop.run(*words(loop, *names), app="unseen")
    before = counted.of("not seen")
    loop.run("env", "-u", "LD_PRELOAD", *words(loop, *names), app="unseen")
    why = "not seen: planned 6 files, saw none"
    everybody_says(loop, "unseen", why, files=6, of=0, path=loop.mount() / "unseen.0")
    counted.wait("not seen", before + 6)
