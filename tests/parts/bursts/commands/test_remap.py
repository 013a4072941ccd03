"""`tarazu change bursts remap`: what mappings give on the site's own traffic, set and taken away."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tarazu import config
from tarazu.cli import main
from tarazu.parts.bursts.mapping import agent as mapping
from tarazu.parts.bursts.traffic import days
from tarazu.parts.bursts.traffic.machine import regular
from tarazu.parts.changes.model.held import Held
from tarazu.parts.changes.model.outcome import Gave, Hours
from tarazu.parts.routers import mapping_file, udsp
from tests.parts.bursts.mapping.traffic import traffic

MACHINE = regular(64, 8, name="n")
"""n00 to n63; 8 cabinets."""
DAY_S = 86400
Run = Callable[..., tuple[int, str, str]]


def cabinets_in_turn(begin: int, many: int) -> Iterator[dict[int, int]]:
    """One cabinet at a time bursts, another in each interval, and with it four nodes that i % 8 has on one router."""
    service = dict.fromkeys(range(1, 64, 16), 300)
    for number in range(many):
        first = 8 * ((begin + number) % 8)
        yield service | {node: 100 + service.get(node, 0) for node in range(first, first + 8)}


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three days."""
    directory = tmp_path_factory.mktemp("traffic")
    for day in range(3):
        days.append(directory, traffic(MACHINE, cabinets_in_turn(day, 40), (20_000 + day) * DAY_S))
    return directory


@pytest.fixture
def run(tmp_path: Path, kept: Path, capsys: pytest.CaptureFixture[str]) -> Run:
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
        where = [] if "--undo" in words or "--traffic" in words else ["--traffic", str(kept)]
        status = main(
            [
                "change",
                "bursts",
                "remap",
                "--windows",
                "1",
                "--config",
                str(configuration),
                *where,
                *map(str, words),
            ]
        )
        said = capsys.readouterr()
        return status, said.out, said.err

    return made


def test_what_each_mapping_gives_on_the_days_after_those_learned_from(run: Run) -> None:
    status, out, _ = run("--advise", "--json")
    found = json.loads(out)
    offers = {offer["name"]: offer for offer in found["offers"]}
    shares = {name: offer["judged"]["busiest_share"] for name, offer in offers.items()}
    assert status == 0
    assert found["judged_s"] == pytest.approx(found["learned_s"] / 2, rel=0.01)
    # By hand: 1200 bytes of four nodes and 800 of a cabinet; the busiest of 8 routers.
    assert shares["round-robin"] == pytest.approx(1300 / 2000)
    assert shares["present"] == shares["contiguous"] == pytest.approx((1100 + 800) / 2 / 2000)
    assert 400 / 2000 <= max(shares["together"], shares["together-folded"]) < 0.75 * shares["present"]
    assert found["best"] in ("together", "together-folded")
    assert offers["present"]["moved"] == 0 < offers["together"]["moved"] <= 64
    assert {offer["most_nodes"] for offer in offers.values()} == {8}


def test_as_text(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hops = tmp_path / "hops"
    hops.write_text("* * 4\nc0 rtr0 2\n")
    with monkeypatch.context() as few:
        few.setattr(udsp, "MOST_RULES", 7)
        status, out, _ = run("--advise", "--hops", hops)
    assert status == 0
    assert out.startswith("learned on ")
    (line,) = [line for line in out.splitlines() if line.startswith("contiguous ")]
    assert line.split()[1] == "0" and line.split()[-1] == "3.750"
    assert "a server sets 7 rules at most" in out
    none = "none is better than the present one, of those that are judged and have rules for a server"
    assert none in out.splitlines()
    _, out, _ = run("--advise")
    (line,) = [line for line in out.splitlines() if "is best" in line]
    assert line.startswith("together")
    assert "on 1 hours of these days, each learned from the hour before:" in out
    assert "rules of 64 (`--follow`, run hourly)" in out


def test_nodes_that_take_all_routers_alike_need_no_mapping(run: Run, tmp_path: Path) -> None:
    machine = tmp_path / "unbound"
    machine.write_text("n[00-63] cabinet=c0\n")
    status, out, _ = run("--advise", "--machine", machine, "--routers", "rtr[0-7]")
    assert status == 0 and "which no mapping betters" in out
    assert [line.split()[0] for line in out.splitlines()[2:4]] == ["contiguous", "round-robin"]
    status, _, err = run("--advise", "--routers", "rtr[1-7]")
    assert status != 0 and "no rtr0" in err


def test_nodes_without_a_nid_are_told(run: Run, tmp_path: Path) -> None:
    nids = tmp_path / "nids"
    nids.write_text(nids.read_text().replace("n[00-63] 10.77.0.[1-64]", "n[00-59] 10.77.0.[1-60]"))
    nowhere = ["--traffic", tmp_path / "nowhere"]
    _, out, _ = run("--advise", *nowhere)
    assert "4 of 64 nodes have no NID" in out
    assert json.loads(run("--advise", *nowhere, "--json")[1])["nodes_without_nid"] == 4
    assert "4 of 64 nodes have no NID" in run("--apply", "--mapping", "round-robin", *nowhere)[1]


def test_where_nothing_is_judged_none_is_called_better_or_worse(run: Run, tmp_path: Path) -> None:
    _, out, _ = run("--advise", "--traffic", tmp_path / "nowhere")
    assert "no traffic: what mappings give is not known" in out
    assert "best" not in out and "better" not in out


def test_without_nids_it_is_said_that_rules_are_missing(run: Run) -> None:
    """Round-robin is far more even here, and not called worse for want of rules."""
    status, out, _ = run("--advise", nids="")
    assert status == 0 and "no NIDs are known" in out and "better" not in out


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


def test_json_has_no_numbers_that_are_none(run: Run, tmp_path: Path) -> None:
    """No traffic came to an I/O node by the mapping that is there, and of its nodes no cabinet is known."""
    (tmp_path / "machine").write_text("n[64-70] io_node=rtr0\nn[00-63] cabinet=c0\n")
    (tmp_path / "hops").write_text("* * 4\n")
    words = ["--json", "--hops", tmp_path / "hops", "--routers", "rtr[0-7]"]
    status, out, err = run(*words)
    assert status == 0, err
    offers = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))["offers"]
    assert offers[0]["name"] == "present" and offers[0]["judged"] is None and offers[1]["judged"]
    assert (offers[0]["hops"], offers[1]["hops"]) == (None, 4)


def test_a_spoilt_mapping_does_not_spoil_json(run: Run, tmp_path: Path) -> None:
    (tmp_path / "tarazu-mapping").mkdir()
    (tmp_path / "tarazu-mapping" / "mapping.json").write_text("{")
    status, out, err = run("--json", "--traffic", tmp_path / "nowhere")
    assert status == 0 and json.loads(out)["offers"]
    assert "what is in force is not known" in err


def test_few_moves(run: Run) -> None:
    _, out, _ = run("--mapping", "together", "--moves", 8, "--json")
    present, offer = json.loads(out)["offers"]
    assert offer["moved"] <= 8 and offer["judged"]["busiest_share"] < present["judged"]["busiest_share"]


def test_apply_writes_and_undo_takes_away(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "tarazu-mapping" / "mapping.json"
    status, out, _ = run("--apply")
    in_force = mapping_file.read(path)
    assert status == 0 and in_force and in_force.nodes == 64
    assert f"{path}: {in_force.how}: {len(in_force.rules)} rules" in out
    _, out, _ = run("--mapping", in_force.how, "--json")
    present, _ = json.loads(out)["offers"]
    assert present["judged"]["busiest_share"] < 0.75 * 950 / 2000, "what is in force is the present one"
    with monkeypatch.context() as few:
        few.setattr(udsp, "MOST_RULES", 7)
        status, _, err = run("--apply")
    assert status == 1 and "expected a mapping that is better than the present one, in 7 rules" in err
    assert mapping_file.read(path) == in_force
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


def test_follow_is_for_the_jobs_that_run_now(run: Run, tmp_path: Path) -> None:
    """Four nodes that i % 8 has on one router burst together in the last hour; those of the day before do not count."""
    path, fresh = tmp_path / "tarazu-mapping" / "mapping.json", tmp_path / "fresh"
    before = traffic(MACHINE, [dict.fromkeys(range(2, 64, 16), 900)] * 30, int(time.time()) - DAY_S)
    days.append(fresh, before)
    days.append(fresh, traffic(MACHINE, cabinets_in_turn(0, 30), int(time.time()) - 600))
    where = ["--traffic", fresh, "--moves", 16]
    assert run("--follow", *where)[0] == 0
    found = mapping_file.read(path)
    assert found and found.how == "follow" and found.nodes == 64
    router = {str(nid): str(rule.rte) for rule in found.rules for nid in rule.dst.nids()}
    now, then = (
        [router[f"10.77.0.{n + 1}@tcp1"] for n in nodes] for nodes in (range(1, 64, 16), range(2, 64, 16))
    )
    assert len(set(now)) >= 3 and len(set(then)) < 3
    for _ in range(4):  # each may find something better, if only a little
        found = mapping_file.read(path)
        status, out, _ = run("--follow", *where)
    assert status == 0 and "; another router for 0 nodes" in out and mapping_file.read(path) == found


def test_what_a_followed_mapping_gives_is_measured_each_hour(run: Run, tmp_path: Path) -> None:
    """The busiest share was only looked at when somebody asked for the mapping. What made it more comes back."""
    settings = config.Settings(state=config.State(str(tmp_path)))
    path, fresh = Path(mapping_file.path_of(settings)), tmp_path / "fresh"
    days.append(fresh, traffic(MACHINE, cabinets_in_turn(0, 30), int(time.time()) - 600))
    where = ["--traffic", fresh, "--moves", 16]
    run("--follow", *where)
    (held,) = _noted(settings)
    (score,) = held.change.scores
    assert score.after < score.before
    assert score.before == pytest.approx((1100 + 800) / 2 / 2000), "as --advise says of contiguous"
    assert held.gave == Gave("evenness", score.before, score.after)
    (hours,) = mapping.agent_of(settings).store.measures().values()
    ((total, _),) = hours.sums.values()
    assert total == pytest.approx(score.before)
    hour = int(time.time() // 3600)
    store = mapping.agent_of(settings).store
    seen = {at: (0.2 if at < hour - 9 else 0.4, 1.0) for at in range(hour - 72, hour)}
    store.measured({"mapping  evenness": Hours(seen)})
    with store.locked():
        store.note_all([msgspec.structs.replace(held, since_s=(hour - 9) * 3600.0)])
    assert "it made things worse than before" in run("--follow", *where)[1] and not path.exists()


def _noted(settings: config.Settings) -> list[Held]:
    store = mapping.agent_of(settings).store
    store.load()
    return list(store.held_changes.values())


def test_that_no_mapping_is_better_is_listed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was an error of that moment, and nobody who looked later knew."""
    with monkeypatch.context() as few:
        few.setattr(udsp, "MOST_RULES", 7)
        assert run("--apply")[0] == 1
    store = mapping.agent_of(config.Settings(state=config.State(str(tmp_path)))).store
    (cannot,) = store.proposals().cannot_mend
    assert cannot.lever == "mapping" and "better than the present one, in 7 rules" in cannot.why
    assert run("--apply")[0] == 0 and not store.proposals().cannot_mend


def test_follow_without_fresh_traffic_goes_back_to_folded(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "tarazu-mapping" / "mapping.json"
    assert "no traffic of the last two hours" in run("--follow")[1], "what is kept is years old"
    found = mapping_file.read(path)
    assert found and len(found.rules) == 8


def test_follow_writes_nothing_after_undo(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "tarazu-mapping" / "mapping.json"
    assert run("--follow")[0] == 0 and path.exists()
    assert run("--undo")[0] == 0 and not path.exists()
    status, out, _ = run("--follow")
    assert status == 0 and not path.exists()
    assert out.startswith(f"{path}: held by tarazu change bursts remap --undo")
    assert out.endswith("; to go on: tarazu change apply\n")
    assert run("--apply", "--mapping", "folded")[0] == 0
    assert "another router for " in run("--follow")[1]


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
    assert f"{path}: somebody else has set it: his until --apply" in run("--follow")[1]
    assert (undone := run("--undo"))[0] == 0 and "somebody else has set" in undone[1]
    found = mapping_file.read(path)
    assert found and found.how == "his"
    path.write_text("{")
    status, _, err = run("--apply", "--mapping", "folded")
    assert status == 1 and "this file could not be restored; remove it" in err and path.read_text() == "{"


def test_in_advise_follow_proposes_the_same_until_it_is_approved(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "tarazu-mapping" / "mapping.json"
    said = [run("--follow", mode="advise")[1] for _ in range(2)]
    assert said[0] == said[1] and "waits for approval" in said[0] and not path.exists()


def test_without_traffic_what_learns_nothing_can_be_set(run: Run, tmp_path: Path) -> None:
    nowhere = ["--traffic", tmp_path / "nowhere"]
    status, out, _ = run("--apply", "--mapping", "round-robin", *nowhere)
    assert status == 0 and "no traffic" in out
    found = mapping_file.read(tmp_path / "tarazu-mapping" / "mapping.json")
    assert found and str(found.rules[0]) == "--dst 10.77.0.[1-57/8]@tcp1 --rte 10.1.0.1@tcp"
    status, _, err = run("--apply", *nowhere)
    assert status == 1 and "expected traffic, found none" in err and err.count("\n") == 1


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
        (["--machine", "/nowhere"], {}, "expected a readable file"),
        (
            ["--routes", "nodes", "--mapping", "contiguous"],
            {"nids": ""},
            "part.routers.nids: expected a file",
        ),
    ],
    ids=["observe", "nids", "stopped", "machine", "routes"],
)
def test_what_cannot_be_is_one_line(run: Run, words: list[str], own: dict[str, Any], says: str) -> None:
    status, _, err = run(*words, **own)
    assert status != 0 and says in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("nodes", 'options lnet routes="tcp 10.77.9.1@tcp1"'),
        ("networks", "      gateway: 10.77.9.1@tcp100"),
    ],
)
def test_options_of_lnet_instead(run: Run, tmp_path: Path, what: str, line: str) -> None:
    status, out, _ = run("--mapping", "round-robin", "--routes", what)
    assert status == 0 and line in out.splitlines()
    assert not (tmp_path / "set").exists()


def test_a_mapping_of_too_many_rules_is_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(udsp, "MOST_RULES", 7)
    status, _, err = run("--apply", "--mapping", "contiguous")
    assert status != 0 and "expected rules, at most 7 on a server" in err and err.count("\n") == 1
