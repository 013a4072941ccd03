"""`tarazu change bursts remap`: what mappings give on the site's own traffic, set and taken away."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tarazu.cli import main
from tarazu.parts.bursts.traffic import days
from tarazu.parts.bursts.traffic.machine import regular
from tarazu.parts.routers import mapping_file, udsp
from tests.parts.bursts.mapping.traffic import traffic

MACHINE = regular(64, 8, name="n")
"""n00 to n63; 8 cabinets."""
DAY_S = 86400
Run = Callable[..., tuple[int, str, str]]


def cabinets_in_turn(begin: int, many: int) -> Iterator[dict[int, int]]:
    """One cabinet at a time bursts, another in each interval."""
    for number in range(many):
        first = 8 * ((begin + number) % 8)
        yield dict.fromkeys(range(first, first + 8), 100)


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    kept = tmp_path / "tarazu-burstd" / "traffic"
    for day in range(3):
        days.append(kept, traffic(MACHINE, cabinets_in_turn(day, 40), (20_000 + day) * DAY_S))
    lines = [f"{name} cabinet=c{n // 8} io_node=rtr{n // 8}\n" for n, name in enumerate(MACHINE.nodes)]
    (tmp_path / "machine").write_text("".join(lines))
    (tmp_path / "nids").write_text(
        "n[00-63] 10.77.0.[1-64]@tcp1\nrtr[0-7] 10.1.0.[1-8]@tcp 10.77.9.[1-8]@tcp1\n"
    )

    def made(
        *words: object, nids: str = str(tmp_path / "nids"), mode: str = "apply", stopped: bool = False
    ) -> tuple[int, str, str]:
        if stopped:
            (tmp_path / "stop").touch()
        configuration = tmp_path / "tarazu.toml"
        configuration.write_text(
            f"[state]\ndirectory = '{tmp_path}'\n[part.bursts]\nmachine = '{tmp_path / 'machine'}'\n"
            f"[run]\nstop_file = '{tmp_path / 'stop'}'\n"
            f"[part.routers]\nnids = '{nids}'\nmode = '{mode}'\n"
        )
        status = main(["change", "bursts", "remap", "--config", str(configuration), *map(str, words)])
        said = capsys.readouterr()
        return status, said.out, said.err

    return made


def test_what_each_mapping_gives(run: Run) -> None:
    status, out, _ = run("--advise", "--json")
    found = json.loads(out)
    offers = {offer["name"]: offer for offer in found["offers"]}
    shares = {name: offer["judged"]["busiest"]["mean"] for name, offer in offers.items()}
    assert status == 0 and found["judged_s"] == pytest.approx(2 * DAY_S + 400)
    assert shares == {"present": 1.0, "contiguous": 1.0, "round-robin": 0.125, "folded": 0.125}
    assert offers["present"]["moved"] == 0 < offers["folded"]["moved"] <= 64
    assert {offer["most_nodes"] for offer in offers.values()} == {8}


def test_as_text(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as few:
        few.setattr(udsp, "MOST_RULES", 7)
        status, out, _ = run("--advise")
    assert status == 0 and out.startswith("judged on 2")
    (line,) = [line for line in out.splitlines() if line.startswith("contiguous ")]
    assert line.split()[1] == "0"
    assert "a server sets 7 rules at most" in out
    (tmp_path / "tarazu-burstd" / "traffic").rename(tmp_path / "gone")
    assert "no traffic: what mappings give is not known" in run("--advise")[1]


def test_nodes_without_a_nid_are_told(run: Run, tmp_path: Path) -> None:
    nids = tmp_path / "nids"
    nids.write_text(nids.read_text().replace("n[00-63] 10.77.0.[1-64]", "n[00-59] 10.77.0.[1-60]"))
    assert "4 of 64 nodes have no NID" in run("--advise")[1]
    assert json.loads(run("--advise", "--json")[1])["nodes_without_nid"] == 4
    assert "4 of 64 nodes have no NID" in run("--apply", "--mapping", "round-robin")[1]


def test_without_nids_it_is_said_that_rules_are_missing(run: Run) -> None:
    status, out, _ = run("--advise", nids="")
    assert status == 0 and "no NIDs are known" in out and "\nfolded" not in out


def test_what_mdsd_would_not_take_is_not_written(run: Run, tmp_path: Path) -> None:
    """Two hosts with one NID: no rule could tell them apart."""
    nids = tmp_path / "nids"
    nids.write_text(
        nids.read_text().replace("n[00-63] 10.77.0.[1-64]", "n[00-63] 10.77.[0-31].[1-2]")
        + "n00 10.77.0.2@tcp1\n"
    )
    status, _, err = run("--apply", "--mapping", "round-robin")
    assert status != 0 and err.count("\n") == 1 and "each node once" in err
    assert not (tmp_path / "tarazu-mapping" / "mapping.json").exists()


def test_apply_writes_and_undo_takes_away(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tarazu-mapping" / "mapping.json"
    status, out, _ = run("--apply")
    in_force = mapping_file.read(path)
    assert status == 0 and in_force and in_force.nodes == 64
    assert f"{path}: {in_force.how}: {len(in_force.rules)} rules" in out
    present = json.loads(run("--json")[1])["offers"][0]
    assert present["judged"]["busiest"]["mean"] == 0.125, "what is in force is the present one"
    assert (undone := run("--undo"))[0] == 0 and undone[1].startswith(f"restored: mapping {path} [")
    assert not path.exists()
    if os.geteuid() == 0:  # only root's stop file counts
        (tmp_path / "etc").mkdir()
        (tmp_path / "etc" / "stop").write_text("maintenance\n")
        monkeypatch.setenv("TARAZU_RUN_STOP_FILE", str(tmp_path / "etc" / "stop"))
        status, _, err = run("--apply")
        assert status == 1 and "maintenance: nothing is set (undo: tarazu enable --site)" in err
        assert not path.exists()
    assert (undone := run("--undo"))[0] == 0 and undone[1].startswith("mapping: nothing to restore\n")


def test_what_was_in_force_before_comes_back_and_what_somebody_edits_stays(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "tarazu-mapping" / "mapping.json"
    his = (udsp.rule("10.77.0.[1-9]@tcp1", "10.1.0.1@tcp"),)
    mapping_file.write(path, "by-hand", his)
    assert run("--apply", "--mapping", "folded")[0] == 0
    assert run("--undo")[1].startswith(f"restored: mapping {path} [")
    found = mapping_file.read(path)
    assert found and (found.how, found.rules) == ("by-hand", his)
    assert run("--apply", "--mapping", "folded")[0] == 0
    mapping_file.write(path, "his", his)
    assert (undone := run("--undo"))[0] == 0 and "somebody else has set" in undone[1]
    found = mapping_file.read(path)
    assert found and found.how == "his"
    path.write_text("{")
    status, _, err = run("--apply", "--mapping", "folded")
    assert status == 1 and "this file could not be restored; remove it" in err and path.read_text() == "{"


def test_without_traffic_one_that_is_named_can_be_set(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tarazu-burstd" / "traffic").rename(tmp_path / "gone")
    status, out, _ = run("--apply", "--mapping", "round-robin")
    assert status == 0 and "round-robin: 8 rules" in out
    found = mapping_file.read(tmp_path / "tarazu-mapping" / "mapping.json")
    assert found and str(found.rules[0]) == "--dst 10.77.0.[1-57/8]@tcp1 --rte 10.1.0.1@tcp"


@pytest.mark.parametrize(
    ("words", "own", "says"),
    [
        (["--apply"], {"mode": "observe"}, "part.routers.mode: expected apply"),
        (["--apply", "--mapping", "contiguous"], {"nids": ""}, "part.routers.nids: expected a file"),
        pytest.param(
            ["--apply", "--mapping", "contiguous"],
            {"stopped": True},
            "the whole site is stopped",
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="only root's file stops the site"),
        ),
        (["--networks", "--mapping", "contiguous"], {"nids": ""}, "part.routers.nids: expected a file"),
    ],
    ids=["observe", "nids", "stopped", "networks"],
)
def test_what_cannot_be_is_one_line(run: Run, words: list[str], own: dict[str, Any], says: str) -> None:
    status, _, err = run(*words, **own)
    assert status != 0 and says in err and err.count("\n") == 1


def test_networks_of_lnet_instead(run: Run, tmp_path: Path) -> None:
    status, out, _ = run("--networks", "--mapping", "round-robin")
    assert status == 0 and "      gateway: 10.77.9.1@tcp100" in out.splitlines()
    assert not (tmp_path / "tarazu-mapping" / "mapping.json").exists()


def test_a_mapping_of_too_many_rules_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(udsp, "MOST_RULES", 7)
    status, _, err = run("--apply", "--mapping", "contiguous")
    assert status != 0 and "expected rules, at most 7 on a server" in err and err.count("\n") == 1
