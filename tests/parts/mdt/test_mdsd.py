"""mdsd's word on MDTs is the same in the status, top and its figures; its connections and keys count."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tarazu.cli import status
from tarazu.cli.top.screen import _others, text_of
from tarazu.config import Settings
from tarazu.part import MdsdFacts
from tarazu.parts.mdt.mdsd import InMdsdMdt
from tarazu.parts.mdt.model import Mdt
from tarazu.parts.mdt.view import MdtDetails
from tarazu.wire.overview import Overview, overview
from tests.daemons.conftest import DATA, PATIENCE_S, Site

OST: Mapping[str, Any] = {
    "index": 0,
    "oss": "oss1",
    "total_bytes": 100,
    "free_bytes": 90,
    "avail_bytes": 80,
    "usable": True,
}
SERVER: Mapping[str, Any] = {
    "age_s": 1.0,
    "stale": False,
    "interval_s": 60.0,
    "cpu_load": 0.1,
    "memory_load": 0.1,
    "lnet_bytes_per_s": 0.0,
    "queue_wait_s": 0.0,
}


def mdt(index: int, **fields: Any) -> Mdt:
    return Mdt(index, "mds1", 100, 50, 1000, 900, **fields)


VIEW = (
    mdt(0, operations_per_s=12.0, creates_per_s=4.0, create_s=0.002, relative_speed=1.0),
    mdt(1, relative_speed=0.2, speed_why="50 operations"),
)
DETAILS = {0: MdtDetails({"mkdir": (3.0, 0.004), "open": (1.0, None)}, ()), 1: MdtDetails(None, ())}


class Told(InMdsdMdt):
    """With these MDTs, of one file system."""

    def __init__(self, *mdts: Mdt) -> None:
        super().__init__(MdsdFacts(Settings(), lambda _: None, lambda: None, str, lambda _: 0))
        self.told = mdts
        self.views.fs_names = lambda: ("scratch",) if mdts else ()  # type: ignore[method-assign]
        self.views.view = lambda *_: mdts  # type: ignore[method-assign]

    def details(self, fs_name: str, now: float) -> dict[int, MdtDetails]:
        return DETAILS


def shown(*mdts: Mdt) -> Overview:
    status = {
        "osses": {"oss1": SERVER, "mds1": SERVER},
        "file_systems": {"scratch": {"osts": [OST]}},
        "parts": {"mdt": Told(*mdts).status(0.0)},
    }
    return overview(status, 0.0)


def test_figures_carry_the_labels_of_lustres_exporters() -> None:
    families = {f.name: f for f in Told(*VIEW).families()}

    def values(name: str) -> dict[str, Any]:
        return {target: value for (_, target, _), value in families[f"mdt_{name}"].samples.items()}

    both, first = {"scratch-MDT0000", "scratch-MDT0001"}, "scratch-MDT0000"
    assert values("relative_speed_ratio") == {first: 1.0, "scratch-MDT0001": 0.2}
    assert values("files_free").keys() == both and values("operations_per_second") == {first: 12.0}
    assert values("create_seconds") == {first: 0.002}
    kinds = {labels[-1]: value for labels, value in families["mdt_operation_rate"].samples.items()}
    assert kinds == {"mkdir": 3.0, "open": 1.0}
    timed = families["mdt_operation_seconds"]
    assert timed.labels == ("component", "target", "fs", "operation")
    assert [*timed.samples] == [("mdt", first, "scratch", "mkdir")]


def test_without_mdts_there_are_no_figures_of_them() -> None:
    assert not list(Told().families())


def test_top_names_what_is_wrong_and_what_each_does() -> None:
    screen = text_of(_others(shown(*VIEW).others)[0])
    assert screen == "MDTs     1 sick  0 12/s 2.0 ms"


def test_status_names_what_each_does_and_the_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    status._print_others("scratch", shown(*VIEW).others)
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line]
    assert rows[0] == "scratch MDT server inodes used ops/s creates/s ms of peers state".split()
    assert rows[1] == "0 mds1 1,000 50.0% 12 4 2.0 1 ok".split()
    assert rows[2][:2] == ["1", "mds1"] and "SICK" in rows[2]


def test_an_mdt_that_the_mds_has_lost_is_not_usable() -> None:
    part = Told(*VIEW)
    part._away = {("scratch", 1): "dead: DISCONN", ("other", 0): "inactive"}
    well, lost = part.view("scratch", 0.0)
    assert well == VIEW[0] and (lost.active, lost.health, lost.usable) == (False, "dead: DISCONN", False)
    assert shown(well, lost).others[1].verdict == "dead"


def test_requests_take_what_creates_take_on_those_that_can_be_used() -> None:
    assert Told(*VIEW).request_s("scratch") == 0.002 and Told(mdt(0)).request_s("scratch") is None
    assert Told(VIEW[0], mdt(1, create_s=9.0, no_create=True)).request_s("scratch") == 0.002


def mdts_of(status: Mapping[str, Any]) -> list[tuple[int, str, bool]]:
    known = status["parts"]["mdt"]["file_systems"].get("lustre", ())
    return [(m["index"], m["server"], m["stale"]) for m in known]


def test_a_real_ossd_on_the_mds_and_a_failover(site: Site, tmp_path: Path) -> None:
    other = Path(shutil.copytree(DATA / "mds", tmp_path / "other"))
    for path in sorted(other.rglob("lustre-MDT0000"), reverse=True):
        path.rename(path.with_name("lustre-MDT0001"))
    site.mdsd()
    site.ossd("oss1")
    first = site.ossd("mds1", DATA / "mds")
    site.ossd("mds2", other)
    site.wait_status(lambda status: mdts_of(status) == [(0, "mds1", False), (1, "mds2", False)])
    first.terminate()
    assert first.wait(PATIENCE_S) == 0
    site.ossd("mds3", DATA / "mds")
    told = site.wait_status(lambda status: mdts_of(status) == [(0, "mds3", False), (1, "mds2", False)])
    assert told["osses"]["mds3"]["unreadable"] == []
    assert told["parts"]["mdt"]["file_systems"]["lustre"][0]["files_free"] == 838456


@pytest.mark.parametrize("allowed", ["lustre-OST*", "lustre-*"])
def test_a_keys_list_holds_for_mdts(site: Site, allowed: str) -> None:
    (site.keys / "oss.targets").write_text(allowed + "\n")
    site.mdsd()
    site.ossd("oss1")
    site.ossd("mds1", DATA / "mds")
    told = site.wait_status(lambda status: "mds1" in status["osses"] and "lustre" in status["file_systems"])
    if allowed == "lustre-*":
        site.wait_status(lambda status: mdts_of(status) == [(0, "mds1", False)])
    else:
        assert mdts_of(told) == [] and "reported lustre-MDT0000, which is not in oss.targets" in site.log(
            "mdsd"
        )
