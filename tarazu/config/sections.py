"""Every setting, declared once: its section, name, type, default, one line of help and its check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from tarazu.config.check import (
    ABSOLUTE,
    ABSOLUTE_OR_NOTHING,
    ADDRESSES,
    NOT_NEGATIVE,
    OWN_PATH,
    PATH,
    POSITIVE,
    SHARE,
    Check,
    addresses,
    items,
    made_by,
    one_of,
    setting,
)
from tarazu.config.parts import PartTables
from tarazu.units import MIB

if TYPE_CHECKING:
    from dataclasses import dataclass as section
else:
    from tarazu.config.check import section


class Weights(msgspec.Struct, frozen=True):
    """What is weighed in an OST's level (`tarazu.allocate.marginal_cost`); 1 is the time of a balanced OST."""

    fill_budget: float = 0.02
    """Share of a job's time that evening out the fill of OSTs may cost where they differ by `fill_tolerance`."""
    oss_load: float = 0.5
    """Share of an OST's throughput that a fully loaded OSS takes away."""
    fill_tolerance: float = 0.17
    """Share of space by which OSTs may differ before evening out may cost all of it; Lustre's qos_threshold_rr."""
    reserve_share: float = 0.02
    """Share of an OST's total space that placement leaves free."""


@section(frozen=True)
class Keys:
    directory: str = setting("/etc/tarazu/keys", "where `tarazu config keys create` put the CURVE keys", PATH)
    insecure: bool = setting(False, "allow unauthenticated sockets outside loopback")
    uids: str = setting(
        "optional",
        "a client's key without a list of uids (client-NAME.uids): optional: it may ask for all uids; "
        "required: for none",
        one_of("optional", "required"),
    )


@section(frozen=True)
class State:
    directory: str = setting(
        "/var/lib",
        "where daemons keep their state, each in its folder: tarazu/mdsd, and those of parts",
        ABSOLUTE,
    )

    @property
    def mdsd(self) -> str:
        """How the system was, and how full OSTs were."""
        return f"{self.directory}/tarazu/mdsd"


@section(frozen=True)
class OssdSettings:
    interval_s: float = setting(60.0, "seconds between two reports of an OSS", POSITIVE)
    exports: bool = setting(
        False, "also publish what each client wrote and read; reads one more file for each client and OST"
    )


@section(frozen=True)
class MdsdSettings:
    statistics: str = setting(
        "tcp://127.0.0.1:5770",
        "address that receives statistics; of several nodes that may run mdsd: all, with commas between",
        ADDRESSES,
    )
    requests: str = setting(
        "tcp://127.0.0.1:5771",
        "address that answers allocation requests; of several the first that answers is asked",
        ADDRESSES,
    )
    cpu_limit: float = setting(
        0.70, "allocate only while this share of the node's CPU, or less, is busy; 1: always", SHARE
    )
    memory_limit: float = setting(
        0.50,
        "allocate only while this share of memory, or less, is in use (without page cache); 1: always",
        SHARE,
    )
    stale_after_s: float = setting(
        180.0, "an OST that was not reported for this many seconds gets no stripes", POSITIVE
    )
    exclude: tuple[str, ...] = setting(
        (), "OSTs that get no new stripes: scratch:0-3,7; or pools: scratch.flash"
    )
    user_share: float = setting(
        0.5, "share of the free space that one user may be promised; beyond it jobs run unplaced", SHARE
    )
    audit_log: str = setting("", "file for one line per allocation; empty: standard error", PATH)


@section(frozen=True)
class Allocate:
    fill_budget: float = setting(
        Weights().fill_budget,
        "share of a job's time that evening out the fill of OSTs may cost, where fills differ by 17 % of "
        "their space",
        SHARE,
    )
    reserve_share: float = setting(
        Weights().reserve_share, "share of an OST's total space that placement leaves free", SHARE
    )
    least_gain: float = setting(
        0.01,
        "place files only if that writes them faster by this share than Lustre's own allocator; -1: always",
        Check("a number from -1 to 1", lambda v: -1 <= v <= 1),
    )
    control: float = setting(
        0.125,
        "share of an application's runs that are left to Lustre, to measure what placing gains; one in fifty once "
        "that is clear; 0: none, and all runs are placed",
        Check("a number from 0 to 0.5", lambda v: 0 <= v <= 0.5),
    )

    @property
    def weights(self) -> Weights:
        """What mdsd weighs OSTs by."""
        return Weights(fill_budget=self.fill_budget, reserve_share=self.reserve_share)


@section(frozen=True)
class ClientdSettings:
    socket: str = setting("/run/tarazu/clientd.sock", "Unix socket where `tarazu run` finds clientd", PATH)
    database: str = setting(
        "/var/lib/tarazu/interaction.db",
        "interaction database: a file, or mysql://user@host/database",
        Check(f"{PATH.expected}, or mysql://…", lambda v: v.startswith("mysql://") or PATH.holds(v)),
    )
    password_file: str = setting(
        "",
        "file with the database's password, readable by clientd alone; empty: none, or in clientd.database",
        PATH,
    )


@section(frozen=True)
class LayoutSettings:
    stripe_count: str = setting(
        "auto",
        "stripe count of plain layouts: site (the default's), paper (8), auto (the fewest that balance "
        "all files of the step; a part may say another number), or n",
        Check(
            "site, paper, auto or a number above 0",
            lambda v: v in ("site", "paper", "auto") or v.isdecimal(),
        ),
    )
    striping: str = setting(
        "auto",
        "raid0: power-of-two stripe sizes; contiguous: one stripe an object (paper); auto: contiguous "
        "only for shared files that each rank wrote in one segment, else raid0",
        one_of("auto", "raid0", "contiguous"),
    )
    pfl_file: str = setting("", "INI file with progressive layouts; empty: plain layouts only", PATH)
    lists: str = setting(
        "instantiate",
        "OSTs of late components of a progressive file: instantiate: fixed at creation; hints: start "
        "index only",
        one_of("instantiate", "hints"),
    )
    min_size: int = setting(64 * MIB, "files forecast below this are left to Lustre", NOT_NEGATIVE, size=True)
    foreign_defaults: bool = setting(
        False,
        "place also in directories whose default layout a user has changed, unless it names OSTs",
    )


@section(frozen=True)
class Predict:
    look_s: float = setting(
        5.0,
        "seconds between two looks at a running step, which predict its next files; 0: never",
        NOT_NEGATIVE,
    )
    horizon_s: float = setting(
        1800.0, "only files expected within this many seconds get OSTs (rolling)", POSITIVE
    )


@section(frozen=True)
class RunSettings:
    mode: str = setting(
        "observe",
        "observe: record only; advise: also plan, and note what would be placed; place: place",
        one_of("observe", "advise", "place"),
    )
    wait_s: float = setting(2.0, "longest wait for the plan before the job starts", NOT_NEGATIVE)
    alive_s: float = setting(
        30.0,
        "seconds between two signs of life of a step; if it is silent twice as long its promises end",
        POSITIVE,
    )
    stop_file: str = setting(
        "/etc/tarazu/stop",
        "while root's file of this name exists, running and new jobs are left alone; use a path that all "
        "nodes see",
        ABSOLUTE_OR_NOTHING,
    )
    state_dir: str = setting(
        "~/.local/state/tarazu",
        "where jobs.log, tarazu.log, undelivered reports and the history of runs are kept",
        OWN_PATH,
    )
    map_dir: str = setting(
        "~/.local/state/tarazu/maps",
        "where placement maps are written; should be shared by all nodes of the job",
        OWN_PATH,
    )
    spool_dir: str = setting(
        "/dev/shm/tarazu-{uid}",
        "node-local directory of the recorder's spools",
        OWN_PATH,
    )
    gather: str = setting(
        "auto",
        "how spools of other nodes are fetched: auto (srun, mpirun, mpiexec, pbsdsh; also sends the first"
        " map if run.map_dir is this node's alone), none, or a command with {spool}, {dest}",
    )
    apply: str = setting(
        "direct", "how a layout is set: direct (on the descriptor) or llapi", one_of("direct", "llapi")
    )
    include: tuple[str, ...] = setting((), "globs of paths below the mount that are managed; empty: all")
    exclude: tuple[str, ...] = setting((), "globs of paths below the mount that are left alone")
    exclude_programs: tuple[str, ...] = setting((), "globs of program names that are left alone")
    exclude_users: tuple[str, ...] = setting((), "names or numbers of users whose jobs are left alone")
    only_users: tuple[str, ...] = setting(
        (),
        "names or numbers of users whose jobs take part; if any run.only_… is set, all others are left alone",
    )
    only_projects: tuple[str, ...] = setting(
        (), "accounts of the batch system (Slurm's account, LSF's project) whose jobs take part"
    )
    only_partitions: tuple[str, ...] = setting((), "partitions or queues whose jobs take part")

    @property
    def history_dir(self) -> str:
        return f"{self.state_dir}/history"


@section(frozen=True)
class Settings:
    keys: Keys = made_by(Keys)
    state: State = made_by(State)
    ossd: OssdSettings = made_by(OssdSettings)
    mdsd: MdsdSettings = made_by(MdsdSettings)
    allocate: Allocate = made_by(Allocate)
    clientd: ClientdSettings = made_by(ClientdSettings)
    layout: LayoutSettings = made_by(LayoutSettings)
    predict: Predict = made_by(Predict)
    run: RunSettings = made_by(RunSettings)
    part: PartTables = made_by(PartTables)

    def statistics(self) -> tuple[str, ...]:
        """Where mdsds hear what ossds publish."""
        return addresses(self.mdsd.statistics)

    def requests(self) -> tuple[str, ...]:
        """Where clients ask, in this order."""
        return addresses(self.mdsd.requests)


SECTIONS: dict[str, type] = {
    "keys": Keys,
    "state": State,
    "ossd": OssdSettings,
    "mdsd": MdsdSettings,
    "allocate": Allocate,
    "clientd": ClientdSettings,
    "layout": LayoutSettings,
    "predict": Predict,
    "run": RunSettings,
}

RELOADED = {
    "ossd": {"interval_s", "exports"},
    "mdsd": {
        "cpu_limit",
        "memory_limit",
        "stale_after_s",
        "exclude",
        "user_share",
        "audit_log",
    },
    "allocate": set(items(Allocate)),
    "layout": set(items(LayoutSettings)) - {"lists"},
    "predict": {"horizon_s"},
}
"""Settings that a running daemon takes over on SIGHUP; those of others need its restart."""
READ_EACH_STEP = {
    "layout": {"lists"},
    "predict": {"look_s"},
    "run": set(items(RunSettings)) - {"stop_file"},
}
"""Settings that no daemon uses: `tarazu run` reads them for each job step."""
