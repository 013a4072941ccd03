"""The testbed's `qos_ost_weights` as a real MDS prints it, and the model of Lustre's allocator beside it."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from tarazu.doctor.allocator import comparisons
from tarazu.stats import qos_weights

CAPTURED = Path(__file__).parents[1] / "data/lustre/mds/sys/kernel/debug/lustre/lod/lustre-MDT0000-mdtlov"


def create(agent, count: int, stripes: int = 1) -> None:
    agent(f"""
        os.setxattr('.', 'lustre.lov', plain({stripes}))
        for i in range({count}):
            os.close(os.open('w{stripes}-%d' % i, os.O_CREAT | os.O_WRONLY))
    """)


def unequal(new_bed, **options):
    return new_bed(fill=[(i % 7) / 10 for i in range(35)], **options)


def test_the_file_is_printed_as_a_real_mds_does(new_bed):
    bed = new_bed(pools={"flash": [3, 4, 5]})
    bed.refresh()
    of_all, of_pool = (
        qos_weights.files(bed.mds_root)[(f"{bed.fs_name}-MDT0000-mdtlov", p)] for p in ("", "flash")
    )
    real = (CAPTURED / "qos_ost_weights").read_text().splitlines()[0]

    def form(line: str) -> str:
        return re.sub(r"svr_nid: \S+", "svr_nid: N", re.sub(r"\b\d+\b", "0", line))

    assert {form(line) for line in of_all.read_text().splitlines()} == {form(real)}
    assert [w.ost for w in qos_weights.read(of_pool)] == [3, 4, 5]


def test_before_a_draw_there_are_no_weights(new_bed, make_agent):
    bed = new_bed()
    create(make_agent(bed), 5)
    bed.refresh()
    (found,) = comparisons(bed.mds_root, time.time())
    assert found.agrees and found.round_robin
    assert found.drawn_s is None and found.weight_apart is None
    assert {row.weight for row in found.rows} == {None} and {row.share for row in found.rows} == {1 / 35}
    assert all(row.per_object == row.model_per_object > 0 for row in found.rows)
    assert all(row.server_per_object == row.model_server_per_object > 0 for row in found.rows)


@pytest.mark.parametrize("stripes", [1, 4])
def test_the_model_weighs_as_the_emulated_mds(new_bed, make_agent, stripes):
    bed = unequal(new_bed)
    create(make_agent(bed), 40, stripes)
    bed.refresh()
    (found,) = comparisons(bed.mds_root, time.time())
    assert found.agrees and not found.round_robin
    assert found.weight_apart == found.per_object_apart == 0
    assert all(row.weight == row.model_weight is not None for row in found.rows)
    assert all(row.per_object == row.model_per_object for row in found.rows)
    assert found.elsewhere == pytest.approx(0, abs=1e-9)
    assert sum(row.share for row in found.rows) == pytest.approx(1)
    # What was used lately is avoided: at rest the shares are others.
    assert sum(abs(row.rest_share - row.model_share) for row in found.rows) > 0.01


@pytest.mark.slow
def test_the_allocator_sees_what_is_used_every_ten_seconds(new_bed, make_agent):
    """`lod_qos_statfs_update`: 2 x `qos_maxage` after the last time."""
    bed = new_bed(osss=2, osts_per_oss=2, ost_bytes=1 << 30)
    agent = make_agent(bed)
    create(agent, 1)
    bed.mds.set("used", 500 << 20, 0)
    create(agent, 10, 2)
    assert not any(bed.mds.get("weighed", ost) for ost in range(4)), "round robin until then"
    time.sleep(10.5)
    create(agent, 10, 3)
    assert all(bed.mds.get("weighed", ost) for ost in range(4))


def test_refusing_osts_and_tunables_are_taken_from_the_mds(new_bed, make_agent):
    bed = unequal(new_bed)
    for ost, flags in ((0, {"inactive": True}), (7, {"no_create": True}), (8, {"degraded": True})):
        bed.mds.set_flags(ost, flags)
    bed.mds.set("prio_free", 50 * 256 // 100)
    create(make_agent(bed), 30, 2)
    bed.refresh()
    (found,) = comparisons(bed.mds_root, time.time())
    assert found.tunables["qos_prio_free"] == 50
    assert found.weight_apart == found.per_object_apart == 0
    shares = {row.ost: row.share for row in found.rows}
    assert shares[0] == shares[7] == shares[8] == 0


def test_a_pool_is_weighed_by_itself(new_bed, make_agent):
    members = [1, 2, 9, 10, 20, 30]
    bed = unequal(new_bed, pools={"flash": members})
    agent = make_agent(bed)
    create(agent, 10)
    agent("""
        os.mkdir('pool')
        os.setxattr('pool', 'lustre.lov', plain(1, pool='flash'))
        for i in range(20):
            os.close(os.open('pool/%d' % i, os.O_CREAT | os.O_WRONLY))
    """)
    bed.refresh()
    of = {each.pool: each for each in comparisons(bed.mds_root, time.time())}
    assert [row.ost for row in of["flash"].rows] == members
    for each in of.values():
        assert each.agrees and each.weight_apart == each.per_object_apart == 0
        assert all(row.per_object == row.model_per_object for row in each.rows)
