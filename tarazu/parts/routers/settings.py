"""The section of the part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tarazu.config.check import ABSOLUTE, ABSOLUTE_OR_NOTHING, Check, one_of, setting

if TYPE_CHECKING:
    from dataclasses import dataclass as section
else:
    from tarazu.config.check import section


DIRECTORY = "tarazu-routers"
"""Below `state.directory`: rules are noted there before they are set."""


@section(frozen=True)
class Routers:
    RELOADED = ("mode",)

    mode: str = setting(
        "observe",
        "LNet routers of jobs: observe: nothing; advise: set what people approve; apply: set all, on "
        "OSSs that also say apply",
        one_of("observe", "advise", "apply"),
    )
    curves: str = setting(
        "",
        "CSV of measured bandwidth curves by number of LNet routers (application,resources,bytes_per_s), used before "
        "those estimated from part.forwarding.benchmarks; readable by everyone; empty: none",
        ABSOLUTE_OR_NOTHING,
    )
    scheduler: str = setting(
        "",
        "where mdsd learns which nodes a job has: slurm (squeue), or a file of lines `JOB UID HOSTS`; "
        "empty: from jobs' leaders alone",
        Check("slurm, an absolute path, or nothing", lambda v: v in ("", "slurm") or ABSOLUTE.holds(v)),
    )
    nids: str = setting(
        "",
        "where hosts' NIDs come from: a file of lines `HOST NID…`; or @NET, such as @tcp1: the address of"
        " the host's name on that net; empty: on the net of the leader's own node, if its name has its "
        "address there",
        Check("an absolute path, @ and a net, or nothing", lambda v: v == "" or v[0] in "/@"),
    )
