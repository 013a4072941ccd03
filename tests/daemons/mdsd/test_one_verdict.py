"""mdsd makes one verdict on each OST: top, status, doctor say the same word."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from tarazu import config
from tarazu.allocate.ledger import Ledger
from tarazu.cli import status as status_command
from tarazu.cli.top.choice import TopChoice
from tarazu.cli.top.rows import TargetTable
from tarazu.daemons.asking import whole
from tarazu.daemons.mdsd.filling import Filling
from tarazu.daemons.mdsd.health import Health
from tarazu.daemons.mdsd.status import _file_system
from tarazu.daemons.mdsd.system import System
from tarazu.doctor import peers
from tarazu.model import SystemView
from tarazu.ost_state import OstState, Verdict
from tarazu.stats import osp
from tarazu.stats.slow_osts import SpeedEstimate
from tarazu.units import GIB
from tarazu.wire import messages
from tarazu.wire.messages import ViewReply
from tarazu.wire.overview import Overview, overview
from tarazu.wire.reports import OssReport, OstReport
from tarazu.wire.transport import Counts

FS = "lustre"
EXPECTED = {
    0: "ok",
    1: "sick",
    2: "nearly-full",
    3: "degraded",
    4: "refusing",
    5: "dead",
    6: "full",
    7: "excluded",
    8: "slow",
    9: "degraded",
    10: "sick",
    11: "refusing",
    12: "impossible",
    13: "dead",
    14: "silent",
    15: "impossible",
}
SPEEDS = {1: 0.4, 8: 0.7, 9: 0.7, 10: 0.002}
REPORTED: dict[int, dict[str, Any]] = {
    2: {"free_bytes": 40 * GIB, "avail_bytes": 30 * GIB},
    3: {"degraded": True},
    4: {"no_create": True},
    6: {"free_bytes": 0, "avail_bytes": 0},
    9: {"degraded": True},
    10: {"free_bytes": 40 * GIB, "degraded": True},
    12: {"avail_bytes": -1},
    13: {"no_create": True},
    15: {"avail_bytes": -1},
}
CONNECTIONS = osp.TargetTrouble(
    frozenset((FS, index) for index in range(16) if index != 14),
    {(FS, 5): "CONNECTING", (FS, 13): "DISCONN"},
    frozenset(),
    {(FS, 11): "max_create_count 0", (FS, 15): "inactive"},
)


class Speeds:
    """What the times of I/Os have shown."""

    def common(self) -> float:
        return 1.0

    def estimates(self, *_: object) -> dict[int, SpeedEstimate]:
        return {
            i: SpeedEstimate(1e9 * SPEEDS.get(i, 1), 0.01, SPEEDS.get(i, 1.0), "brw_stats") for i in EXPECTED
        }

    def update_server(self, *_: object) -> None: ...

    def forget(self, index: int) -> None: ...


def report(oss: str, osts: Sequence[int], reported: Mapping[int, dict[str, Any]]) -> OssReport:
    each = (
        OstReport(FS, i, **{"total_bytes": 1000 * GIB, "free_bytes": 900 * GIB, "avail_bytes": 900 * GIB}
                  | reported.get(i, {}))
        for i in osts
    )  # fmt: skip
    return OssReport(oss, 1, 1e9, 1.0, 0.1, 0.1, 0.0, tuple(each), incarnation=len(reported) + 1)


class Mdsd:
    """What mdsd's loop holds of the system."""

    def __init__(self, root: Path) -> None:
        settings = config.override(config.Settings(), "mdsd", exclude=(f"{FS}:7",))
        os.environ["TARAZU_ROOT"] = str(root)
        self.health = Health(str(root))
        self.book = SimpleNamespace(ledger=Ledger())
        self.system = System(settings, self.book.ledger, Counts(), self.health, Filling(""))
        self.system.views.finders[FS] = cast(Any, Speeds())
        self.system.take_in(report("oss3", (14,), {}), 0.0)
        now = 10.0 + self.system.views.stale_after_s
        self.system.take_in(report("oss1", range(8), {}), now)
        self.system.take_in(report("oss2", (*range(8, 14), 15), {}), now)
        self.system.take_in(report("oss1", range(8), REPORTED), now + 1)
        self.system.take_in(report("oss2", (*range(8, 14), 15), REPORTED), now + 1)
        self.now = now + 1
        self.health.looker.seen = CONNECTIONS
        for seconds in (1, 2, 3):
            self.health.looker.count += 1
            views = [self.system.views.view(FS, self.now)]
            self.health.update(lambda views=views: views, 100.0 + 10 * seconds, promised=True)

    def view(self) -> SystemView:
        return self.system.view(FS, self.now)

    def status(self) -> dict[str, Any]:
        servers = self.system.views.servers()
        made = {
            "osses": {
                name: {
                    "age_s": self.now - at_s, "stale": name == "oss3", "interval_s": 1.0, "cpu_load": 0.1,
                    "memory_load": 0.1, "lnet_bytes_per_s": 0.0, "queue_wait_s": 0.0,
                    "impossible": list(self.system.views.impossible.get(name, ())),
                }
                for name, (_, at_s) in servers.items()
            },
            "file_systems": {FS: _file_system(cast(Any, self), FS, self.now)},
        }  # fmt: skip
        return cast("dict[str, Any]", msgspec.msgpack.decode(msgspec.msgpack.encode(made)))


@pytest.fixture
def mdsd(tmp_path: Path) -> Mdsd:
    return Mdsd(tmp_path)


@pytest.fixture
def view(mdsd: Mdsd) -> SystemView:
    """As it comes over the wire."""
    sent = messages.encode(ViewReply("1", mdsd.view(), fs_names=(FS,), stopped=""))
    reply = messages.decode(sent)
    assert isinstance(reply, ViewReply)
    system = whole(lambda _: reply)
    assert system.stopped == "" and system.fs_names == (FS,)
    return system.views[0]


@pytest.fixture
def seen(mdsd: Mdsd) -> Overview:
    return overview(mdsd.status())


def test_mdsd_says_one_word_of_each_with_why_since_when_and_by_whom(view: SystemView) -> None:
    assert {o.index: str(o.verdict) for o in view.osts} == EXPECTED
    states = {o.index: o.state for o in view.osts if o.state}
    assert len(states) == len(EXPECTED)
    assert all(s.why and s.source for s in states.values() if not s.well)
    since = {i for i, s in states.items() if s.since_s}
    assert since == set(EXPECTED) - {0, 7, 12, 15}, "of settings, and of values that cannot be, nobody knows"
    told = {i: (states[i].source, states[i].why) for i in (1, 2, 4, 5, 11)}
    assert told == {
        1: ("brw_stats", "0.4 of its peers' speed"),
        2: ("oss", "96% of its space is used"),
        4: ("oss", "no_create"),
        5: ("mds", "CONNECTING"),
        11: ("mds", "max_create_count 0"),
    }


def test_what_takes_no_objects_is_left_out_of_plans_and_nothing_else(view: SystemView) -> None:
    assert [o.index for o in view.osts if not o.usable] == [4, 5, 6, 7, 11, 13, 14, 15]


def test_top_status_and_doctor_show_it(seen: Overview, mdsd: Mdsd) -> None:
    rows = TargetTable(seen, seen.targets, TopChoice(sort="target")).rows(0, 100)
    assert [str(row.verdict) for row in rows] == list(EXPECTED.values())
    texts = [status_command._state(target, ()) for target in seen.targets]
    assert [text.split(" ")[0].lower() for text in texts] == list(EXPECTED.values())
    (finding,) = peers._osts(mdsd.status())
    for index in (5, 13, 14, 12, 15, 4, 11, 6):  # the gravest eight
        assert f"{FS}-OST{index:04x} {EXPECTED[index]}" in finding.found
    assert finding.verdict == "warn" and finding.found.startswith("15 of 16 have a problem")


def test_of_several_file_systems_each_is_asked_for(view: SystemView) -> None:
    def ask(fs_name: str) -> ViewReply:
        one = msgspec.structs.replace(view, fs_name=fs_name) if fs_name else None
        return ViewReply("1", one, fs_names=("a", "b"), stopped="")

    assert whole(ask).fs_names == ("a", "b")


def test_a_word_of_a_later_version_is_no_knowledge() -> None:
    later = msgspec.msgpack.encode({"verdict": "haunted", "why": "?"})
    assert msgspec.msgpack.decode(later, type=OstState).verdict is Verdict.SILENT
