"""The part of tarazu-burstd that says which nodes jobs should get, where there is no Slurm."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tarazu import config
from tarazu.errors import StoreError
from tarazu.parts.bursts.burstd.answering import AboutJob, JobAnswer
from tarazu.parts.bursts.burstd.node_part import NodeSelection, set_mode
from tarazu.parts.changes import by_hand, ordered


@pytest.fixture(autouse=True)
def no_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commands say so at once; real ones look for a server in the DNS, and outlive the test."""
    for name in ("scontrol", "squeue", "sinfo", "sacct"):
        command = tmp_path / "bin" / name
        command.parent.mkdir(exist_ok=True)
        command.write_text("#!/bin/sh\necho 'Unable to contact slurm controller' >&2\nexit 1\n")
        command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("TARAZU_ROOT", str(tmp_path))  # else the system's directories come first


def settings(directory: Path, **own: object) -> config.Settings:
    (directory / "tarazu-burstd").mkdir(exist_ok=True)
    own = {"socket": str(directory / "socket"), **own}
    found = config.override(config.Settings(state=config.State(str(directory))), "part.bursts", **own)
    return config.override(found, "run", stop_file=str(directory / "stop"))


def test_without_slurm_nothing_is_asked_for_and_it_says_why(tmp_path: Path) -> None:
    part = NodeSelection(settings(tmp_path, nodes="apply"), lambda _: None)
    try:
        assert part.answer(AboutJob(1, "io", 4, 0, "root")) == JobAnswer(1, "", "")
        status = part.status()
        assert status["mode"] == "apply" and not status["may_update"]
        (row,) = status["applications"]
        assert (row["user"], row["name"], row["asked"]) == ("root", "io", 1)
        assert "Slurm" in row["why"] or "scontrol" in row["why"]
        with pytest.raises(StoreError):
            (tmp_path / "tarazu-burstd/changes.json").write_text("?")
            NodeSelection(settings(tmp_path), lambda _: None)
    finally:
        part.close()


@pytest.mark.parametrize(
    ("left_out", "why"),
    [
        ({"exclude_users": ("root",)}, "run.exclude_users names root"),
        ({"exclude_programs": ("lammps*",)}, "run.exclude_programs names lammps-8"),
    ],
)
def test_for_users_and_programs_that_the_site_leaves_out_no_nodes_are_asked_for(
    tmp_path: Path, left_out: dict[str, tuple[str, ...]], why: str
) -> None:
    own = config.override(settings(tmp_path, nodes="apply"), "run", **left_out)
    part = NodeSelection(own, lambda _: None)
    try:
        assert part.answer(AboutJob(1, "lammps-8", 4, 0, "root")) == JobAnswer(1, "", "")
        assert [row["why"] for row in part.status()["applications"]] == [why]
    finally:
        part.close()


def test_what_was_ordered_counts_but_a_stop_file_more(tmp_path: Path) -> None:
    own = settings(tmp_path, nodes="advise")
    assert set_mode(own, "apply", "a test") == "advise" and set_mode(own, "apply", "again") == "apply"
    part = NodeSelection(own, lambda _: None)
    try:
        assert (part.mode, part.why_mode) == ("apply", "again")
        (tmp_path / "tarazu-burstd/nodes-mode").write_text("?")
        part.look(1e9)
        assert part.mode == "observe" and "nodes-mode" in part.why_mode
        (tmp_path / "tarazu-burstd/nodes-mode").unlink()
        part.look(2e9)
        assert (part.mode, part.why_mode) == ("advise", "part.bursts.nodes")
    finally:
        part.close()
    (tmp_path / "stop").write_text("")
    stopped = NodeSelection(own, lambda _: None)
    try:
        assert stopped.mode == "observe" and "stop" in stopped.why_mode
    finally:
        stopped.close()


def test_after_an_undo_of_all_or_of_the_lever_and_a_stop_no_job_was_to_get_nodes_and_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", str(tmp_path / "none"))
    own = settings(tmp_path, nodes="apply")
    part = NodeSelection(own, lambda _: None)
    try:
        list(by_hand.undo_all(own, "ann", lambda each: None))
        part.look(1e9)
        assert part.mode == "observe" and "undo --all, ann; to go on" in part.why_mode
        list(by_hand.go_on(own, "ann"))
        part.look(2e9)
        assert part.mode == "apply" and not part.keeping.no_new()
        list(by_hand.undo(own, [], "nodes", "ann", lambda each: None))
        assert part.keeping.no_new() == "taken back by ann: tarazu change undo; to go on: tarazu change apply"
        list(by_hand.go_on(own, "ann"))
        list(by_hand.stop(own, "ann"))
        assert "stopped by tarazu change stop, ann" in part.keeping.no_new() and part.mode == "apply"
    finally:
        part.close()


def test_an_order_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "new" / "mode"
    assert ordered.ordered(path) is None
    ordered.order(path, "advise", "why")
    found = ordered.ordered(path)
    assert found and (found.mode, found.reason) == ("advise", "why")
