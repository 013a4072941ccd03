"""Stripe counts by curves, on the testbed with the real daemons."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tarazu.units import GIB
from tests.loop.conftest import iorlike, loop  # noqa: F401
from tests.loop.test_layouts import RANKS, write

if TYPE_CHECKING:
    from tests.loop.conftest import Loop

CHANGES = {"layout": {"stripe_count": "auto"}}


def test_a_job_whose_curve_says_4_gets_4_stripes_beside_auto(
    loop: Loop,  # noqa: F811
    iorlike: Path,  # noqa: F811
) -> None:
    """A job with a curve, and one without, which gets what it had with `auto`."""
    curves = loop.testbed.directory / "etc" / "curves.csv"
    rows = [(1, 1.0), (2, 1.9), (4, 3.6), (8, 3.0), (16, 2.5), (35, 2.0)]
    lines = ["application,resources,bytes_per_s", *(f"curved,{n},{rate * 1e9}" for n, rate in rows)]
    curves.write_text("\n".join(lines))
    loop.configure({"part.forwarding": {"stripe_counts": True, "curves": str(curves)}})
    for run in (1, 2):
        for app in ("curved", "uncurved"):
            write(loop, iorlike, app, GIB, run=run, shared=True)
        if run == 1:
            loop.clear()
            (kept,) = (loop.home / "history").glob("*/curved/*.run")
            ((phase,),) = (one["phases"] for one in loop.json("history", "phases", kept))
            assert (phase["bytes"], phase["sharing"], phase["rank_count"]) == (RANKS * GIB, "shared", RANKS)
    of = {app: loop.testbed.layout(f"{app}/run2/data").layout for app in ("curved", "uncurved")}
    assert [c.stripe_count for c in of["curved"].components] == [4]
    assert [c.stripe_count for c in of["uncurved"].components] == [24], (
        "what its processes keep busy, as with auto"
    )
    told = loop.tarazu("job", "explain", loop.mount() / "curved/run2/data").stdout
    assert "stripes: 4 by joint among 1 running step on 35 OSTs; the curve of curved" in told
    told = loop.tarazu("job", "explain", loop.mount() / "uncurved/run2/data").stdout
    assert "; auto: 24 instead of 1: written in the time that an OST takes for " in told
    first, second = (loop.home / "jobs.log").read_text().splitlines()[-2:]
    assert "hit=1" in first and "stripes='4 by joint" in first
    assert "hit=1" in second and "stripes='as auto: " in second and "no curve of uncurved" in second
    assert loop.json("status")["mdsd"]["parts"]["forwarding"] == {"steps": 0, "counted": 1}
