"""What `tarazu change routers` prints of mdsd's plan, to root and to others."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from tarazu.parts.routers import PART
from tarazu.parts.routers import commands as routers


def job(uid: int, **more: Any) -> dict[str, Any]:
    known = {"job": f"j{uid}", "uid": uid, "fs": "lustre", "nodes": 4, "why": "", "known": True, "count": 1}
    return {**known, "routers": "10.0.0.1@tcp", "slowdown": 1.02, "alike": 1.5, **more}


PLAN: dict[str, Any] = {
    "mode": "apply",
    "policy": "joint",
    "learning": False,
    "steps": 3,
    "scheduler": {"source": "slurm", "jobs": 0, "problem": "squeue: no answer"},
    "routers": {"tcp to tcp1": "10.0.0.[1-2]@tcp"},
    "osses": {
        name: {
            "age_s": 1.0,
            "mode": "apply",
            "up": 2,
            "down": [],
            "rules_set": 1,
            "rules": ["--dst 10.7.0.[1-4]@tcp1 --rte 10.0.0.1@tcp"],
        }
        for name in ("oss1", "oss2")
    },
    "jobs": [job(1000), job(1001, known=False, count=0, routers="", slowdown=None, alike=None)],
}


def test_root_sees_every_job_and_the_rules_of_each_server_once(capsys: pytest.CaptureFixture[str]) -> None:
    routers._print_planned(PLAN, rules=True)
    shown = capsys.readouterr().out
    assert (
        "3 steps told, 1 with routers of their own; asked by 2 OSSs, 2 rules set; scheduler: squeue" in shown
    )
    assert "j1000" in shown and "1.02" in shown and "its I/O is unknown" in shown
    assert shown.count("lnetctl udsp add --dst 10.7.0.[1-4]@tcp1 --rte 10.0.0.1@tcp") == 1
    assert "# on oss1, oss2:" in shown


def test_a_user_sees_his_own_jobs_and_nobodys_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    routers._print_planned(PART.of_user(PLAN, 1001), rules=True)
    shown = capsys.readouterr().out
    assert "j1001" in shown and "j1000" not in shown and "10.7.0" not in shown
    assert "only root sees the rules" in shown


def test_notes_that_cannot_be_read_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    notes = tmp_path / "tarazu-routers"
    notes.mkdir()
    (notes / "changes.json").write_text('{"form')
    configuration = tmp_path / "tarazu.toml"
    configuration.write_text(f'[state]\ndirectory = "{tmp_path}"\n[clientd]\nsocket = "{tmp_path}/none"\n')
    options = argparse.ArgumentParser()
    routers.configure(options)
    chosen = options.parse_args([], argparse.Namespace(config=str(configuration)))
    assert routers.execute(chosen) == 0
    said = capsys.readouterr().out
    assert (
        f"routers: not shown, or not all: {notes}/changes.json" in said
        and "cannot tell what mdsd plans" in said
    )
