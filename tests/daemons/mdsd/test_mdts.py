"""mdsd's word on MDTs is the same in the status, top, the page and the metrics; its connections and keys count."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tarazu.daemons.mdsd import metrics
from tarazu.daemons.mdsd.health import Health
from tarazu.daemons.page import document
from tarazu.daemons.page.problems import problems
from tarazu.daemons.page.seen import SystemState
from tarazu.model import Mdt, SystemView
from tarazu.stats import osp
from tarazu.stats.mdt_view import MdtDetails
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


VIEW = SystemView(
    "scratch",
    0.0,
    (),
    mdts=(
        mdt(0, operations_per_s=12.0, creates_per_s=4.0, create_s=0.002, relative_speed=1.0),
        mdt(1, relative_speed=0.2, speed_why="50 operations"),
    ),
)


def shown(view: SystemView) -> Overview:
    rows = [{**msgspec.to_builtins(m), "index": m.index, "operations": None} for m in view.mdts]
    status = {
        "osses": {"oss1": SERVER, "mds1": SERVER},
        "file_systems": {"scratch": {"osts": [OST], "mdts": rows}},
    }
    return overview(status, 0.0)


def test_metrics_carry_the_labels_of_lustres_exporters() -> None:
    details = {0: MdtDetails({"mkdir": (3.0, 0.004), "open": (1.0, None)}, ()), 1: MdtDetails(None, ())}
    families = {f.name: f for f in metrics._mdts([VIEW], [details])}

    def values(name: str) -> dict[str, float]:
        return {s.labels["target"]: s.value for s in families[f"tarazu_mdt_{name}"].samples}

    both, first = {"scratch-MDT0000", "scratch-MDT0001"}, "scratch-MDT0000"
    assert values("relative_speed_ratio") == {first: 1.0, "scratch-MDT0001": 0.2}
    assert values("files_free").keys() == both and values("operations_per_second") == {first: 12.0}
    assert values("create_seconds") == {first: 0.002}
    kinds = {s.labels["operation"]: s.value for s in families["tarazu_mdt_operation_rate"].samples}
    assert kinds == {"mkdir": 3.0, "open": 1.0}
    (timed,) = families["tarazu_mdt_operation_seconds"].samples
    assert timed.labels == {"component": "mdt", "target": first, "fs": "scratch", "operation": "mkdir"}


def test_without_mdts_there_are_no_metrics_of_them() -> None:
    assert not list(metrics._mdts([SystemView("scratch", 0.0, ())], [{}]))


def test_the_page_shows_them_and_names_what_mends_the_slow_one() -> None:
    seen = SystemState(shown(VIEW))
    (problem,) = problems(seen)
    assert str(problem.what) == "scratch-MDT0001 is sick" and problem.oss == "mds1"
    assert problem.command == "lctl get_param mdt.scratch-MDT0001.md_stats"
    page = document.overview(seen, {}, (), "", now_s=0.0, every_s=60)
    assert "MDTs of scratch" in page and "scratch-MDT0001" in page
    one = document.one("servers", seen, "mds1", None, (), now_s=0.0, every_s=60)
    assert one is not None and "MDTs of mds1" in one


def test_an_mdt_that_the_mds_has_lost_is_not_usable(tmp_path: Path) -> None:
    health = Health(str(tmp_path))
    health.looker.seen = osp.NOTHING._replace(
        mdts={("scratch", 1): "dead: DISCONN", ("other", 0): "inactive"}
    )
    well, lost = health.apply(VIEW).mdts
    assert well == VIEW.mdts[0] and (lost.active, lost.health, lost.usable) == (False, "dead: DISCONN", False)
    assert shown(health.apply(VIEW)).mdts[1].verdict == "dead"


def mdts_of(status: Mapping[str, Any]) -> list[tuple[int, str, bool]]:
    known = status["file_systems"].get("lustre", {})
    return [(m["index"], m["server"], m["stale"]) for m in known.get("mdts", ())]


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
    status = site.wait_status(lambda status: mdts_of(status) == [(0, "mds3", False), (1, "mds2", False)])
    assert status["osses"]["mds3"]["unreadable"] == []
    assert status["file_systems"]["lustre"]["mdts"][0]["files_free"] == 838456


@pytest.mark.parametrize("allowed", ["lustre-OST*", "lustre-*"])
def test_a_keys_list_holds_for_mdts(site: Site, allowed: str) -> None:
    (site.keys / "oss.targets").write_text(allowed + "\n")
    site.mdsd()
    site.ossd("oss1")
    site.ossd("mds1", DATA / "mds")
    status = site.wait_status(lambda status: "mds1" in status["osses"] and "lustre" in status["file_systems"])
    if allowed == "lustre-*":
        site.wait_status(lambda status: mdts_of(status) == [(0, "mds1", False)])
    else:
        assert mdts_of(status) == [] and "reported lustre-MDT0000, which is not in oss.targets" in site.log(
            "mdsd"
        )
