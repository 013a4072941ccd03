"""Whose jobs the site lets tarazu touch, and which directories."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarazu import cli
from tarazu.batch import environment
from tarazu.config import RunSettings
from tarazu.config.taking_part import Who, matches, user_of, why_not, why_not_key
from tarazu.daemons.mdsd.allocating import UserLists

ALICE = Who(1000, "alice", "chem", "batch", "ior")


@pytest.mark.parametrize(
    ("lists", "why"),
    [
        ({}, ""),
        ({"exclude_users": ("alice",)}, "run.exclude_users names alice"),
        ({"exclude_users": ("1000",)}, "run.exclude_users names 1000"),
        ({"exclude_users": ("bob", "100")}, ""),
        ({"exclude_programs": ("io*",)}, "run.exclude_programs names ior"),
        ({"only_users": ("alice",)}, ""),
        ({"only_users": ("bob",)}, "run.only_users: not one of them names this job"),
        ({"only_users": ("bob",), "only_projects": ("chem",)}, ""),
        ({"only_projects": ("bio",), "only_partitions": ("batch",)}, ""),
        (
            {"only_projects": ("bio",), "only_partitions": ("test",)},
            "run.only_projects, run.only_partitions: not",
        ),
        # Exclusions go first.
        ({"only_projects": ("chem",), "exclude_users": ("alice",)}, "run.exclude_users names alice"),
    ],
)
def test_who_takes_part(lists: dict[str, Any], why: str) -> None:
    found = why_not(RunSettings(**lists), ALICE)
    assert found.startswith(why) and bool(found) == bool(why)


def test_what_is_not_known_of_a_job_is_in_no_list() -> None:
    assert why_not(RunSettings(only_projects=("chem",)), Who(1000)) != ""
    assert why_not(RunSettings(exclude_programs=("*",)), Who(1000)) == ""


def test_of_whom_it_is_not_known_who_he_is_a_list_of_names_may_mean_him() -> None:
    nobody_says = Who(1000, None)
    assert "does not say who uid 1000 is" in why_not(RunSettings(exclude_users=("bob",)), nobody_says)
    assert why_not(RunSettings(exclude_users=("1001",)), nobody_says) == ""
    assert why_not(RunSettings(only_users=("bob",)), nobody_says) != ""
    assert why_not(RunSettings(only_users=("bob", "1000")), nobody_says) == ""


def test_directories() -> None:
    run = RunSettings(include=("/data/*",), exclude=("*/tmp/*",))
    assert [why_not_key(run, key) for key in ("/data/a", "/data/x/tmp/a", "/home/a")] == [
        "",
        "run.exclude names it",
        "run.include does not name it",
    ]


TEXT = st.text("ab/.*?", max_size=8)


@settings(max_examples=40)
@given(TEXT, TEXT)
def test_globs_are_judged_as_the_library_does(glob: str, text: str) -> None:
    found = ctypes.CDLL(None).fnmatch(glob.encode(), text.encode(), 0) == 0
    assert matches((glob,), text) == found


def test_what_batch_systems_say_of_project_and_partition() -> None:
    slurm = {"SLURM_JOB_ACCOUNT": "chem", "SLURM_JOB_PARTITION": "batch", "QUEUE": "x"}
    assert (environment.project(slurm), environment.partition(slurm)) == ("chem", "batch")
    assert environment.partition({"PBS_QUEUE": "workq"}) == "workq"
    assert (environment.project({}), environment.partition({})) == ("", "")


def test_mdsd_judges_only_whom_it_knows(caplog: pytest.LogCaptureFixture) -> None:
    assert (
        UserLists(RunSettings(exclude_users=("root", "4711"))).why_not(0) == "run.exclude_users names uid 0"
    )
    assert (
        UserLists(RunSettings(only_users=("root",))).why_not(4711) == "run.only_users does not name uid 4711"
    )
    unknown = UserLists(RunSettings(only_users=("root", "nobody-of-this-name")))
    assert unknown.why_not(4711) == "" and "nobody-of-this-name" in caplog.text
    with_projects = UserLists(RunSettings(only_users=("root",), only_projects=("chem",)))
    assert with_projects.why_not(4711) == ""


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[object]]:
    """A directory of users that does not answer; what it was asked."""
    over, asked = threading.Event(), list[object]()

    def look_up(what: object) -> object:
        asked.append(what)
        assert over.wait(120)
        raise KeyError(what)

    monkeypatch.setattr("pwd.getpwuid", look_up)
    monkeypatch.setattr("pwd.getpwnam", look_up)
    monkeypatch.setattr("tarazu.config.users.WAIT_S", 0.1)
    monkeypatch.setattr("tarazu.daemons.mdsd.allocating.LOOK_UP_S", 0.1)
    yield asked
    over.set()
    for thread in threading.enumerate():  # else the next test's question would be answered by this one's
        if thread.name == "tarazu-users":
            thread.join(120)


def test_a_hanging_directory_of_users_delays_nobody_and_is_asked_once(hanging: list[object]) -> None:
    run = RunSettings(exclude_users=("bob", "4711"))
    assert [user_of(run, 1000), user_of(run, 1000)] == [None, None]
    assert UserLists(run).why_not(4711) == "run.exclude_users names uid 4711"
    assert hanging == [1000, "bob"]
    assert user_of(RunSettings(only_users=("1000",)), 1000) == "" and len(hanging) == 2, "no name is needed"


def test_a_user_without_a_name_is_not_one_of_whom_nothing_is_known() -> None:
    assert user_of(RunSettings(exclude_users=("bob",)), 2**31 - 7) == ""
    assert user_of(RunSettings(exclude_users=("bob",)), 0) == "root"


@pytest.mark.parametrize("of", ["TARAZU_RUN_ONLY_USERS", "TARAZU_RUN_EXCLUDE_USERS"])
def test_tarazu_run_runs_the_program_while_the_directory_of_users_hangs(
    monkeypatch: pytest.MonkeyPatch, hanging: list[object], of: str
) -> None:
    monkeypatch.setenv(of, "alice")
    done: list[str] = []
    monkeypatch.setattr("tarazu.cli.run._lead", lambda *_: done.append("led") or 0)
    monkeypatch.setattr("tarazu.run.program.become", lambda *_: done.append("as it is") or 0)
    assert cli.main(["run", "--", "true"]) == 0
    assert done == ["as it is"] and hanging == [os.getuid()]


@pytest.mark.parametrize(
    ("environ", "led"),
    [
        ({"TARAZU_RUN_ONLY_PROJECTS": "chem"}, False),
        ({"TARAZU_RUN_ONLY_PROJECTS": "chem", "SLURM_JOB_ACCOUNT": "chem"}, True),
        ({"TARAZU_RUN_ONLY_USERS": "nobody-of-this-name"}, False),
        ({"TARAZU_RUN_EXCLUDE_USERS": str(os.getuid())}, False),
        ({}, True),
    ],
)
def test_tarazu_run_leads_only_whom_the_site_wants(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], led: bool
) -> None:
    for name, value in {"TARAZU_RUN_STOP_FILE": "", **environ}.items():
        monkeypatch.setenv(name, value)
    done: list[str] = []
    monkeypatch.setattr("tarazu.cli.run._lead", lambda *_: done.append("led") or 0)
    monkeypatch.setattr("tarazu.run.program.become", lambda *_: done.append("as it is") or 0)
    assert cli.main(["run", "--", "true"]) == 0
    assert done == ["led" if led else "as it is"]
