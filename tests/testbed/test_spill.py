"""A pool that spills over: the testbed makes files as Lustre does then, and none is planned in the full pool."""

from __future__ import annotations

import time

from tarazu import left
from tarazu.layout.manager import ConfigurationManager, LayoutPolicy, UsableOsts
from tarazu.layout.setstripe import parse_layout
from tarazu.model import ANY_RANK, FileName, Forecast
from tarazu.stats import mds
from tarazu.stats.collector import Collector
from tarazu.stats.view import ViewBuilder

GIB = 1 << 30
FULL_PCT = 50


def test_files_were_planned_on_osts_of_a_pool_that_spilled_over(new_bed, make_agent):
    bed = new_bed(osss=1, osts_per_oss=4)
    bed.mds.add_pool("flash", [0, 1])
    bed.mds.add_pool("disk", [2, 3])
    bed.mds.set_spill("flash", "disk", FULL_PCT)
    agent = make_agent(bed)

    def made(osts, name):
        return agent(f"""
            os.close(create('{name}', plain(2, osts={osts}, pool='flash')))
            made = lov.decode(os.getxattr('{name}', 'lustre.lov'))
            result = [made.layout.components[0].pool, osts('{name}')[0]]
        """)

    assert made([0, 1], "before") == ["flash", [0, 1]] and not spills(bed)
    for ost in (0, 1):
        bed.mds.set("base", bed.mds.get("total", ost) * 6 // 10, ost)
    assert made([0, 1], "after") == ["disk", [0, 1]], "another pool's name beside the full pool's OSTs"
    assert spills(bed) == {"flash": "disk"}
    bed.mds.set_spill("disk", "flash", 0)
    bed.mds.set_spill("flash", "disk", 0)
    assert made([0, 1], "again") == ["flash", [0, 1]] and not spills(bed)


def spills(bed):
    """As mdsd sees it, on the MDS."""
    bed.refresh()
    view = ViewBuilder(60.0, bed.mds_root)
    view.update(Collector(bed.oss_root("oss1"), "oss1").collect(time.time()), time.monotonic())
    (fs_name,) = view.fs_names()
    seen = view.view(fs_name, time.monotonic())
    planned = ConfigurationManager(
        LayoutPolicy(min_size_bytes=0),
        UsableOsts(4, {"flash": 2, "disk": 2}, {}, seen.spills),
        parse_layout("-c 2 -p flash")[0],
    )
    (choice,) = planned.choose([Forecast(FileName("/f", "/f", "/f", False, ANY_RANK, 0, 0), GIB)])
    assert (choice.layout is None) == ("flash" in seen.spills)
    if choice.layout is None:
        assert left.of_text(choice.left_because) == left.NO_ROOM
        assert "makes its files in pool disk" in choice.left_because
    active = {pool for (_, pool), spill in mds.read(bed.mds_root).spills.items() if spill.active}
    assert active == set(seen.spills)
    return seen.spills


def test_a_pool_that_promises_will_fill_counts_as_spilling(new_bed):
    bed = new_bed(osss=1, osts_per_oss=4)
    bed.mds.add_pool("flash", [0, 1])
    bed.mds.set_spill("flash", "", FULL_PCT)
    bed.refresh()
    view = ViewBuilder(60.0, bed.mds_root)
    view.update(Collector(bed.oss_root("oss1"), "oss1").collect(time.time()), time.monotonic())
    (fs_name,) = view.fs_names()
    assert not view.view(fs_name, time.monotonic()).spills
    total = view.view(fs_name, time.monotonic()).osts[0].total_bytes
    assert view.view(fs_name, time.monotonic(), {0: total, 1: total // 2}).spills == {"flash": ""}
