"""An MDT as people see it beside OSTs: in `tarazu status`, in top, on the page."""

from __future__ import annotations

from tarazu.names import quoted
from tarazu.ost_state import Verdict
from tarazu.parts.mdt.model import Mdt
from tarazu.parts.mdt.view import MdtDetails
from tarazu.stats.params import mdt_name
from tarazu.units import human_speed
from tarazu.wire.overview import PartTarget

MOST_JOBS = 3
"""Named of one MDT."""


def target(fs_name: str, mdt: Mdt, of: MdtDetails) -> PartTarget:
    """With what it does, where that is known."""
    state, known = mdt.judged, of.operations is not None
    busiest = ", ".join(f"{job} {rate:.0f}/s" for job, rate in of.jobs[:MOST_JOBS])
    unjudged = f"speed: {mdt.speed_why}" if state.well and mdt.relative_speed is None else ""
    took = "" if mdt.create_s is None else f"{mdt.create_s * 1e3:.1f}"
    name = mdt_name(fs_name, mdt.index)
    return PartTarget(
        kind="MDT",
        fs_name=fs_name,
        index=mdt.index,
        name=name,
        server=mdt.server,
        verdict=state.verdict,
        why=state.why,
        note="; ".join(filter(None, (unjudged, f"busiest {busiest}" if busiest else ""))),
        operations_per_s=mdt.operations_per_s if known else None,
        short=" ".join(
            filter(None, (f"{mdt.operations_per_s:.0f}/s" if known else "", f"{took} ms" if took else ""))
        ),
        cells={
            "inodes": f"{mdt.files_total:,}",
            "used": f"{mdt.fill:.1%}",
            "ops/s": f"{mdt.operations_per_s:.0f}" if known else "-",
            "creates/s": f"{mdt.creates_per_s:.0f}" if known else "-",
            "ms": took or "-",
            "of peers": human_speed(mdt.relative_speed),
        },
        mend=mend(mdt, state.verdict, quoted(name)),
        silent=mdt.stale,
    )


def mend(mdt: Mdt, verdict: Verdict, name: str) -> tuple[str, str, str]:
    """Where to type what, and what it does."""
    match verdict:
        case Verdict.DEAD:
            return (
                "another MDS",
                f"lctl get_param osp.{name}-osp-MDT*.import",
                f"is it mounted on {mdt.server}?",
            )
        case Verdict.REFUSING:
            return "the MDS", f"lctl set_param osp.{name}-osp-MDT*.active=1", "unless somebody wants it so"
        case Verdict.SILENT:
            return mdt.server, "tarazu doctor --problems", "says why"
        case Verdict.FULL | Verdict.NEARLY_FULL:
            return "a client", f"lfs df -i | grep {name}", "directories on it can be moved: lfs migrate -m"
        case _:
            return mdt.server, f"lctl get_param mdt.{name}.md_stats", "then look at its disks"
