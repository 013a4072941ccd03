"""What `tarazu change tune` does where there is no daemon: on the council's node, on an announcer's, on neither."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tarazu import config
from tarazu.cli import main
from tarazu.parts.changes.agent import Plan
from tarazu.parts.changes.model.change import ALL, Change
from tarazu.parts.council import here
from tarazu.parts.council.agent import agent_of
from tarazu.parts.council.council import Council
from tarazu.parts.council.here import CouncilDirectory
from tarazu.parts.council.pattern import Direction, Observation
from tarazu.sim.testbed import tunables
from tarazu.sim.testbed.daemons import lctl_command, stand_ins

Tune = Callable[..., tuple[int, str, str]]
AHEAD = "max_read_ahead_mb"


@pytest.fixture
def tune(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Tune:
    """`tarazu change tune WORDS`: status, standard output, standard error. `mode`: the node's; `more`: beside it."""

    def run(*words: str, mode: str = "observe", more: str = "") -> tuple[int, str, str]:
        configuration = tmp_path / "tarazu.toml"
        configuration.write_text(
            f'[part.council]\nmode = "{mode}"\n{more}\n'
            f'[state]\ndirectory = "{tmp_path}"\n[run]\nstop_file = "{tmp_path}/stop"\n'
        )
        os.environ["TARAZU_ROOT"] = f"{tmp_path}/root"
        status = main(["change", "tune", *words, "--config", str(configuration)])
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


@pytest.fixture
def council(tmp_path: Path) -> CouncilDirectory:
    kept = CouncilDirectory(tmp_path / "tarazu-council")
    kept.directory.mkdir()
    return kept


@pytest.fixture
def node(tmp_path: Path) -> Path:
    state = tmp_path / "tarazu-announcer"
    state.mkdir()
    return state


def learned() -> bytes:
    """Of a council that has seen strided reads under two quanta."""
    council = Council({"nrs": ("fifo", "crrn 8")}, mode="observe")
    read = Direction(8 << 20, 256, 0.9)
    for second, value in enumerate(("fifo", "fifo", "crrn 8")):
        elapsed_s = 0.5 if value == "crrn 8" else 1.0
        council.receive("oss1", Observation(elapsed_s, read=read), {"nrs": value}, float(second))
    return council.knowledge()


@pytest.mark.parametrize("words", [(), ("show",), ("--undo",), ("--apply",), ("--advise",)])
def test_a_node_of_nothing_is_told_in_one_line(tune: Tune, words: tuple[str, ...]) -> None:
    status, out, error = tune(*words)
    assert status == 2 and not out
    assert "expected tarazu-council or tarazu-announcer" in error and error.count("\n") == 1


def test_the_councils_mode_is_ordered_and_undone(tune: Tune, council: CouncilDirectory) -> None:
    status, out, _ = tune("--apply")
    ordered = council.ordered()
    assert status == 0 and ordered is not None and ordered.mode == "apply"
    assert "mode is apply (it was observe)" in out and "undo: tarazu change tune --observe" in out
    status, out, _ = tune("--undo")
    ordered = council.ordered()
    assert status == 0 and ordered is not None and ordered.mode == "observe"
    assert "it was apply" in out and "restored" not in out
    assert json.loads(tune("--advise", "--json")[1]) == {"council_was": "observe", "here": {}}


def test_what_was_learned_is_shown_without_a_daemon(tune: Tune, council: CouncilDirectory) -> None:
    council.write_knowledge(learned())
    more = 'levers = ["nrs=fifo | crrn 8"]'
    status, out, error = tune("show", more=more)
    assert (status, error) == (0, "")
    assert "does not answer (part.council.address is empty" in out
    lines = [line.split() for line in out.splitlines()]
    assert ["read", "strided,", "32768", "B", "nrs", "fifo", "8.4", "1.4", "15.4", "1"] in lines
    assert ["read", "strided,", "32768", "B", "nrs", "crrn", "8", "best", "16.8", "9.8", "23.8", "1"] in lines
    rows = json.loads(tune("show", "--json", more=more)[1])["council"]["learned"]
    assert [(row["value"], row["seen"], row["best"]) for row in rows] == [
        ("fifo", 1, False),
        ("crrn 8", 1, True),
    ]
    assert "learned" not in json.loads(tune("--json", more=more)[1])["council"]


def test_an_order_that_cannot_be_read_is_replaced_in_need(tune: Tune, council: CouncilDirectory) -> None:
    (council.directory / "mode").write_text('{"mo')
    status, out, _ = tune("--undo")
    ordered = council.ordered()
    assert status == 0 and ordered is not None and ordered.mode == "observe", out


def test_undo_on_a_node_holds_until_apply_there(tune: Tune, node: Path) -> None:
    status, out, _ = tune("--undo", mode="apply")
    assert status == 0 and "nothing to restore" in out and "nothing is set again until" in out
    assert "held by tarazu change tune --undo" in tune(mode="apply")[1]
    assert (
        "parameters: goes on (before: held by tarazu change tune --undo" in tune("--apply", mode="apply")[1]
    )
    assert "parameters: was not stopped" in tune("--apply", mode="apply")[1]
    found: dict[str, Any] = json.loads(tune("--json", mode="apply")[1])
    assert found["changes"] == [] and [each["held"] for each in found["agents"]] == [""]
    assert "part.council.address is empty" in found["problem"]


def test_a_node_is_not_told_to_apply_against_its_own_mode(tune: Tune, node: Path) -> None:
    status, _, error = tune("--apply", mode="advise")
    assert status == 2 and "part.council.mode: expected apply on this node" in error
    status, _, error = tune("--observe")
    assert status == 2 and "the council's node; a node's own mode is part.council.mode" in error


def test_a_node_that_is_a_council_too_undoes_both(tune: Tune, node: Path, council: CouncilDirectory) -> None:
    tune("--apply", mode="apply")
    status, out, _ = tune("--undo")
    assert status == 0 and "the council's mode is observe (it was apply)" in out
    assert (
        "nothing is set again until" in out
        and "part.council.mode of this node is observe" in tune("--apply")[1]
    )


def test_status_says_what_is_on_this_node(
    tune: Tune, node: Path, council: CouncilDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tune("--undo")
    main(["status", "--config", str(tmp_path / "tarazu.toml")])
    out = capsys.readouterr().out
    assert "a council of parameters that learn: observe (tarazu change tune --undo)" in out
    assert "nothing is set here: held by tarazu change tune --undo" in out


def set_here(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A parameter that an announcer has set: the file."""
    mount = f"llite/lustre-{tunables.instance(0)}/max_read_ahead_mb"
    tunables.make_client(root / "root", "lustre", 0, 1)
    monkeypatch.setenv("PATH", stand_ins(root / "root", lctl=lctl_command(root / "root"))["PATH"])
    monkeypatch.setenv("TARAZU_ROOT", str(root / "root"))
    site = config.Settings(state=config.State(str(root)), run=config.RunSettings(stop_file=""))
    settings = config.override(site, "part.council", levers=(AHEAD,))
    change = Change(lever=AHEAD, target="", wanted={ALL: "64"}, why="it reads", asked_by="council mds1")
    assert agent_of(settings).follow(Plan((change,)), "apply", "").set
    return root / "root/sys/fs/lustre" / mount


def test_what_is_set_is_shown_and_undone(
    tune: Tune, node: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where `part.council.levers` is written wrongly."""
    path = set_here(tmp_path, monkeypatch)
    assert f"set             {AHEAD}: 64 (was 256)" in tune(mode="apply", more=f"levers = ['{AHEAD}']")[1]
    wrong = f"levers = ['{AHEAD}', 'nsr']"
    assert tune("--undo", mode="apply", more=wrong)[0] == 0 and path.read_text() == "256\n"


@pytest.mark.parametrize("told", [{}, {"mode": "apply", "why_mode": "", "nodes": 3, "group": ""}])
def test_a_council_of_another_version_is_an_error_in_one_line(
    tune: Tune, node: Path, told: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(here, "ask", lambda _: told)
    status, out, error = tune(more='address = "tcp://127.0.0.1:5774"')
    assert status == 1 and "this node:" in out
    assert "expected this version's form" in error and error.count("\n") == 1
