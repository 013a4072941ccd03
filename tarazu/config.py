"""Every setting, declared once: its section, name, type, default, one line of help and its check.

The configuration file (TOML), the environment (`TARAZU_<SECTION>_<NAME>`), `--help` and the table in
`docs/operator-guide.md` all come from these classes. Precedence: environment, file, default.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_type_hints

from tarazu.errors import ConfigError
from tarazu.units import MIB, exact_bytes, parse_bytes

log = logging.getLogger("tarazu.config")

DEFAULT_FILE = Path("/etc/tarazu/tarazu.toml")


@dataclass(frozen=True)
class Check:
    """What a value must be, in words, and the test for it."""

    expected: str
    holds: Callable[[Any], bool]


def one_of(*names: str) -> Check:
    return Check("one of " + ", ".join(names), lambda v: v in names)


POSITIVE = Check("a number above 0", lambda v: v > 0)
NOT_NEGATIVE = Check("0 or more", lambda v: v >= 0)
SHARE = Check("a share between 0 and 1", lambda v: 0 <= v <= 1)
WEIGHT = Check("a number from 0 to 1000000", lambda v: 0 <= v <= 1e6)
ADDRESS = Check(
    "an address such as tcp://mds1:5770", lambda v: re.fullmatch(r"(tcp|ipc|inproc)://\S+", v) is not None
)
ADDRESS_OR_NOTHING = Check(f"{ADDRESS.expected}, or nothing", lambda v: v == "" or ADDRESS.holds(v))

LISTENS = Check("host:port, a port (of loopback), or nothing", lambda v: v == "" or listening(v) is not None)


def listening(address: str) -> tuple[str, int] | None:
    """`host:port`, `[::1]:port` or `port`, of loopback then; None for anything else."""
    found = re.fullmatch(r"(?:(?:\[([\da-fA-F:.]+)\]|([^\s:\[\]]+)):)?(\d{1,5})", address)
    if found is None or not 0 < int(found[3]) < 65536:
        return None
    return found[1] or found[2] or "127.0.0.1", int(found[3])


def setting(default: Any, text: str, check: Check | None = None, *, size: bool = False) -> Any:
    """One setting. `size=True`: a byte size, also written as `64M`."""
    metadata = {"help": text, "check": check, "size": size}
    if isinstance(default, (list, dict)):
        raise TypeError("settings are immutable: use a tuple")
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Keys:
    directory: str = setting("/etc/tarazu/keys", "where `tarazu keys create` put the CURVE keys")
    insecure: bool = setting(False, "allow unauthenticated sockets outside loopback")
    uids: str = setting(
        "optional",
        "a client's key without a list of uids (client-NAME.uids) may ask for: optional: all of them; required: none",
        one_of("optional", "required"),
    )


@dataclass(frozen=True)
class Ossd:
    name: str = setting("", "name of this OSS; empty: its host name")
    interval_s: float = setting(60.0, "seconds between two reports", POSITIVE)
    root: str = setting("/", "root under which /proc and /sys are read")
    exports: bool = setting(
        False, "also publish what each client wrote and read: reads a file a client and OST"
    )
    lnetctl: str = setting(
        "lnetctl", "tarazu-ossd --routers: the program that sets rules of LNet, and words before its own"
    )
    state: str = setting(
        "/var/lib/tarazu-routers",
        "tarazu-ossd --routers: where it notes the rules that it sets, before it sets them",
    )


@dataclass(frozen=True)
class Mdsd:
    statistics: str = setting("tcp://127.0.0.1:5770", "address that receives statistics", ADDRESS)
    requests: str = setting("tcp://127.0.0.1:5771", "address that answers allocation requests", ADDRESS)
    replication: str = setting(
        "",
        "address where the first mdsd meets the second one, tcp://mds1:5772; empty: there is no second one",
        ADDRESS_OR_NOTHING,
    )
    root: str = setting("/", "root under which /proc and /sys are read")
    cpu_limit: float = setting(0.70, "allocate only while the node's CPU share is below this", SHARE)
    memory_limit: float = setting(
        0.50, "allocate only while memory in use (without page cache) is below", SHARE
    )
    stale_after_s: float = setting(180.0, "a target not reported for this long gets no stripes", POSITIVE)
    speed_forget_s: float = setting(
        1800.0, "what made an OST slow is forgotten after this, where it shows nothing new", POSITIVE
    )
    exclude: tuple[str, ...] = setting(
        (), "targets without new stripes: OSTs as scratch:0-3,7, pools as scratch.flash"
    )
    user_share: float = setting(
        0.5, "what one user's promises may hold of the space that is free; beyond, jobs run unplaced", SHARE
    )
    user_requests_per_s: float = setting(
        100.0,
        "allocations one user may ask for in a second, beyond 2000 at once; more are declined",
        POSITIVE,
    )
    audit_log: str = setting("", "file for one line per allocation; empty: standard error")
    state: str = setting(
        "/var/lib/tarazu/mdsd",
        "directory of the ledger, on a local disk; empty: a restart forgets all promises",
    )


@dataclass(frozen=True)
class Standby:
    statistics: str = setting(
        "", "as mdsd.statistics, of the second mdsd (tarazu-mdsd --standby)", ADDRESS_OR_NOTHING
    )
    requests: str = setting("", "as mdsd.requests, of the second mdsd", ADDRESS_OR_NOTHING)


@dataclass(frozen=True)
class Weights:
    """What may be weighed in an OST's level (`tarazu.allocate.marginal_cost`); 1 is the time of a balanced OST."""

    fill: float = setting(
        0.5,
        "how much fuller OSTs are avoided: a full one beside an empty one by this many times the job's time",
        WEIGHT,
    )
    oss_load: float = setting(0.5, "share of an OST's throughput that a fully loaded OSS takes away", SHARE)
    fill_tolerance: float = setting(
        0.17,
        "OSTs may be filled as far as the fullest of today, or above the even fill by this share of what it leaves "
        "free; Lustre's qos_threshold_rr",
        SHARE,
    )
    reserve_share: float = setting(0.02, "share of an OST's total space that placement leaves free", SHARE)


@dataclass(frozen=True)
class Allocate(Weights):
    policy: str = setting(
        "tarazu",
        "allocation policy",
        one_of("tarazu", "tarazu-linear", "lsa", "random", "round-robin", "greedy"),
    )
    seed: int = setting(0, "seed of the rotation among equal OSTs")


@dataclass(frozen=True)
class Clientd:
    name: str = setting("", "name of this client; empty: its host name")
    socket: str = setting("/run/tarazu/clientd.sock", "Unix socket where `tarazu run` finds clientd")
    database: str = setting(
        "/var/lib/tarazu/interaction.db", "interaction database: a file, or mysql://user@host/database"
    )
    password_file: str = setting(
        "",
        "file with the database's password, readable by clientd alone; empty: none, or in clientd.database",
    )
    keep_plans: int = setting(
        1000, "plans of one user's application on one file system kept in the interaction database", POSITIVE
    )
    user_plan_bytes: int = setting(
        512 * MIB,
        "what one user's plans may take in the interaction database; beyond, his oldest ones go",
        POSITIVE,
        size=True,
    )
    forecast_s: float = setting(
        60.0,
        "longest time for a forecast, and for its layouts; a job with a longer one runs unplaced",
        POSITIVE,
    )
    forecast_bytes: int = setting(1024 * MIB, "memory that one forecast may take", POSITIVE, size=True)


@dataclass(frozen=True)
class LayoutSettings:
    stripe_count: str = setting(
        "auto",
        "stripe count of plain layouts: site (as the default), paper (8), auto (the fewest that balance all files "
        "of the step, never worse than the default), curve (by the application's bandwidth curve among the steps that "
        "run; auto where it has none), or n",
        Check(
            "site, paper, auto, curve or a number above 0",
            lambda v: v in ("site", "paper", "auto", "curve") or v.isdecimal(),
        ),
    )
    striping: str = setting(
        "auto",
        "raid0: power-of-two stripe sizes; contiguous: one stripe per object (paper); auto: contiguous "
        "only where history shows one contiguous segment per rank of a shared file",
        one_of("auto", "raid0", "contiguous"),
    )
    pfl_file: str = setting("", "INI file with progressive layouts; empty: plain layouts only")
    lists: str = setting(
        "instantiate",
        "OST lists of late components: instantiate (at creation) or hints (start index only)",
        one_of("instantiate", "hints"),
    )
    min_size: int = setting(64 * MIB, "files forecast below this are left to Lustre", NOT_NEGATIVE, size=True)
    least_object_bytes: int = setting(
        8 * MIB,
        "auto: no more stripes than give objects of this size; writing one takes many times as long as the "
        "requests that it costs",
        POSITIVE,
        size=True,
    )
    foreign_defaults: bool = setting(
        False, "place also in directories whose default layout a user has changed"
    )


@dataclass(frozen=True)
class Predict:
    model: str = setting("arima", "forecast model", one_of("arima", "last", "mean", "drift"))
    runs: int = setting(
        10, "how many past runs the forecast looks at", Check("from 1 to 100", lambda v: 1 <= v <= 100)
    )
    keep_runs: int = setting(100, "how many runs of an application are remembered", POSITIVE)
    look_s: float = setting(
        5.0,
        "how often a running step is looked at, to predict its next steps from itself; 0: never",
        NOT_NEGATIVE,
    )
    horizon_s: float = setting(1800.0, "only files expected within this time get OSTs (rolling)", POSITIVE)


@dataclass(frozen=True)
class Forwarding:
    policy: str = setting(
        "joint",
        "by which policy running jobs get I/O resources: how many, and which",
        Check(
            "the name of a policy, such as joint or ta-gnc", lambda v: re.fullmatch(r"[a-z-]+", v) is not None
        ),
    )
    benchmarks: str = setting(
        "",
        "the site's benchmarks, from which applications' bandwidth curves are estimated (`tarazu benchmarks import`); "
        "readable by everyone; empty: none",
        Check("an absolute path, or nothing", lambda v: v == "" or v.startswith("/")),
    )
    curves: str = setting(
        "",
        "CSV of measured bandwidth curves (application,resources,bytes_per_s), which go before estimated ones; "
        "readable by everyone; empty: none",
        Check("an absolute path, or nothing", lambda v: v == "" or v.startswith("/")),
    )
    router_curves: str = setting(
        "",
        "the same over numbers of LNet routers instead of OSTs; empty: none",
        Check("an absolute path, or nothing", lambda v: v == "" or v.startswith("/")),
    )
    routers: str = setting(
        "observe",
        "LNet routers of jobs: observe: nothing; advise: plan, and show what would be set; apply: OSSs that say so "
        "too set it",
        one_of("observe", "advise", "apply"),
    )
    nids: str = setting(
        "",
        "where hosts' NIDs are known from: a file of lines `HOST NID…`; @NET, such as @tcp1: the name's address on "
        "that net; empty: on the net of the leader's own node, where its name is its address there",
        Check("an absolute path, @ and a net, or nothing", lambda v: v == "" or v[0] in "/@"),
    )
    scheduler: str = setting(
        "",
        "where mdsd learns which nodes are whose job's: slurm (squeue), or a file of lines `JOB UID HOSTS`; empty: "
        "from jobs' leaders alone",
        Check("slurm, an absolute path, or nothing", lambda v: v in ("", "slurm") or v.startswith("/")),
    )
    gain: float = setting(
        0.05,
        "running jobs get other routers only where the mean slowdown of their I/O falls by this share",
        SHARE,
    )
    interval_s: float = setting(
        10.0, "how often an OSS asks mdsd for the rules that it should have", POSITIVE
    )
    rules: int = setting(64, "rules that one OSS sets at most", NOT_NEGATIVE)
    rules_per_minute: int = setting(
        60, "rules that one OSS adds in a minute at most; taking back has no limit", POSITIVE
    )


@dataclass(frozen=True)
class Run:
    mode: str = setting(
        "observe",
        "observe: record only; advise: also plan, and note what would be placed; place: place",
        one_of("observe", "advise", "place"),
    )
    wait_s: float = setting(2.0, "longest wait for the plan before the job starts", NOT_NEGATIVE)
    alive_s: float = setting(
        30.0,
        "how often a running step says that it lives and which files it has closed; what is promised to one "
        "that is silent twice as long ends",
        POSITIVE,
    )
    stop_file: str = setting(
        "/etc/tarazu/stop",
        "while root's file of this name is there, running and new jobs are left alone; on a path that all nodes see",
        Check("an absolute path, or nothing", lambda v: v == "" or v.startswith("/")),
    )
    state_dir: str = setting(
        "~/.local/state/tarazu", "where jobs.log, tarazu.log and reports not delivered yet are kept"
    )
    history_dir: str = setting("~/.local/state/tarazu/history", "where runs are remembered, one file each")
    map_dir: str = setting(
        "~/.local/state/tarazu/maps", "where placement maps are written; best shared by all nodes of the job"
    )
    spool_dir: str = setting(
        "/dev/shm/tarazu-{uid}", "node-local directory of the recorder's spools; %h is the host name"
    )
    spool_limit: int = setting(
        0,
        "what the spools of a step may take on a node; 0: the least of 256 MiB and 1 % of its memory",
        NOT_NEGATIVE,
        size=True,
    )
    gather: str = setting(
        "auto",
        "how other nodes' spools are fetched: auto (srun, mpirun, mpiexec, pbsdsh), none, or a command with "
        "{spool}, {dest}",
    )
    send_map: str = setting(
        "auto",
        "auto: where run.map_dir lies on a file system of the leader's node alone, the first map is sent to the "
        "memory of the job's other nodes before the program starts, within run.wait_s; never",
        one_of("auto", "never"),
    )
    apply: str = setting(
        "direct", "how a layout is set: direct (on the descriptor) or llapi", one_of("direct", "llapi")
    )
    include: tuple[str, ...] = setting((), "globs of paths below the mount that are managed; empty: all")
    exclude: tuple[str, ...] = setting((), "globs of paths below the mount that are left alone")
    exclude_programs: tuple[str, ...] = setting((), "globs of program names that are left alone")
    exclude_users: tuple[str, ...] = setting((), "names of users whose jobs are left alone")


@dataclass(frozen=True)
class Metrics:
    ossd: str = setting(
        "", "where Prometheus finds ossd's metrics, as 127.0.0.1:5775; empty: nowhere", LISTENS
    )
    mdsd: str = setting("", "where it finds mdsd's", LISTENS)
    clientd: str = setting("", "where it finds clientd's", LISTENS)


@dataclass(frozen=True)
class Settings:
    keys: Keys = field(default_factory=Keys)
    ossd: Ossd = field(default_factory=Ossd)
    mdsd: Mdsd = field(default_factory=Mdsd)
    standby: Standby = field(default_factory=Standby)
    allocate: Allocate = field(default_factory=Allocate)
    clientd: Clientd = field(default_factory=Clientd)
    layout: LayoutSettings = field(default_factory=LayoutSettings)
    predict: Predict = field(default_factory=Predict)
    forwarding: Forwarding = field(default_factory=Forwarding)
    run: Run = field(default_factory=Run)
    metrics: Metrics = field(default_factory=Metrics)

    def statistics(self) -> tuple[str, ...]:
        """Where ossds publish: the first mdsd, and the second where there is one."""
        return tuple(filter(None, (self.mdsd.statistics, self.standby.statistics)))

    def requests(self) -> tuple[str, ...]:
        """Where clients ask."""
        return tuple(filter(None, (self.mdsd.requests, self.standby.requests)))


SECTIONS: dict[str, type] = {
    "keys": Keys,
    "ossd": Ossd,
    "mdsd": Mdsd,
    "standby": Standby,
    "allocate": Allocate,
    "clientd": Clientd,
    "layout": LayoutSettings,
    "predict": Predict,
    "forwarding": Forwarding,
    "run": Run,
    "metrics": Metrics,
}

RELOADED = {
    "ossd": {"interval_s", "exports"},
    "mdsd": {
        "cpu_limit",
        "memory_limit",
        "stale_after_s",
        "speed_forget_s",
        "exclude",
        "user_share",
        "user_requests_per_s",
        "audit_log",
    },
    "allocate": {f.name for f in dataclasses.fields(Allocate)},
    "clientd": {"keep_plans", "user_plan_bytes", "forecast_s", "forecast_bytes"},
    "layout": {f.name for f in dataclasses.fields(LayoutSettings)} - {"lists"},
    "predict": {"model", "runs", "horizon_s"},
    "forwarding": {"benchmarks", "curves", "routers", "gain", "interval_s", "rules"},
}
"""Settings that a running daemon takes over on SIGHUP; those of others need its restart."""
READ_EACH_STEP = {
    "layout": {"lists"},
    "predict": {"keep_runs", "look_s"},
    "run": {f.name for f in dataclasses.fields(Run)} - {"stop_file"},
}
"""Settings that no daemon uses: `tarazu run` reads them for each job step."""

FORMER = {
    "mdsd": ("speed_half_life_s",),
    "allocate": ("time", "promise", "idle_load", "oss_balance", "latency", "degraded", "ceiling"),
    "layout": ("shared_stripe_bytes", "private_stripe_bytes"),
}
"""Settings of earlier versions: passed over, with a line in the daemons' logs. An upgrade must not leave them down."""


def load(path: str | os.PathLike[str] | None = None, environ: Mapping[str, str] | None = None) -> Settings:
    """Settings from `path` (else $TARAZU_CONFIG, else /etc/tarazu/tarazu.toml) and the environment.

    Raises ConfigError naming the file and the line or key, what was expected and what was found.
    """
    environ = os.environ if environ is None else environ
    chosen = path or environ.get("TARAZU_CONFIG") or (DEFAULT_FILE if DEFAULT_FILE.exists() else None)
    text, data = _read(Path(chosen)) if chosen else ("", {})
    sections: dict[str, Any] = {}
    for section, values in data.items():
        if section not in SECTIONS:
            pattern = rf"\[\s*{re.escape(section)}\b|{re.escape(section)}\s*="
            where = f"{chosen}{_line_of(text, pattern)}"
            raise ConfigError(where, "a section among " + ", ".join(SECTIONS), section)
        if not isinstance(values, dict):
            raise ConfigError(str(chosen), f"a table [{section}]", values)
    for section, cls in SECTIONS.items():
        sections[section] = _section(cls, section, data.get(section, {}), chosen, text, environ)
    settings = Settings(**sections)
    pair = (settings.mdsd.replication, settings.standby.statistics, settings.standby.requests)
    if any(pair) and not all(pair):
        expected = "mdsd.replication, standby.statistics and standby.requests, or none of them"
        raise ConfigError(f"{chosen or 'environment'}: [standby]", expected, " ".join(filter(None, pair)))
    return settings


def _read(path: Path) -> tuple[str, dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(str(path), "a readable configuration file", error.strerror) from None
    except UnicodeDecodeError:
        raise ConfigError(str(path), "a configuration file in UTF-8", "other bytes") from None
    try:
        return text, tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(str(path), "TOML", str(error)) from None


def _section(
    cls: type, section: str, values: dict[str, Any], path: Any, text: str, environ: Mapping[str, str]
) -> Any:
    known = {f.name: f for f in dataclasses.fields(cls)}
    hints = get_type_hints(cls)
    chosen: dict[str, Any] = {}
    for name, value in values.items():
        line = _line_of(text, rf"{re.escape(name)}\s*=", section)
        where = f"{path}{line}: [{section}] {name}"
        if name in FORMER.get(section, ()):
            log.info("%s: no setting any more, passed over", where)
            continue
        if name not in known:
            raise ConfigError(where, "a setting among " + ", ".join(known), name)
        chosen[name] = _convert(value, hints[name], known[name], where)
    for name, item in known.items():
        variable = f"TARAZU_{section.upper()}_{name.upper()}"
        if variable in environ:
            chosen[name] = _convert(
                _from_text(environ[variable], hints[name]), hints[name], item, f"${variable}"
            )
    return cls(**chosen)


def _from_text(text: str, kind: Any) -> Any:
    if kind is bool:
        return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}.get(
            text.lower(), text
        )
    if kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            return text
    if kind == tuple[str, ...]:
        return [part for part in text.split(":") if part]
    return text


def _convert(value: Any, kind: Any, item: dataclasses.Field[Any], where: str) -> Any:
    found = value
    if item.metadata["size"] and isinstance(value, str):
        try:
            value = parse_bytes(value)
        except ValueError:
            raise ConfigError(where, "a size such as 64M", found) from None
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if kind is str and isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if kind == tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise ConfigError(where, "a list of strings", found)
        value = tuple(value)
    elif not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        words = {int: "a whole number", float: "a number", bool: "true or false", str: "a string"}
        raise ConfigError(where, words[kind], found)
    check: Check | None = item.metadata["check"]
    if check and not check.holds(value):
        raise ConfigError(where, check.expected, found)
    return value


def _line_of(text: str, pattern: str, section: str = "") -> str:
    """`:12`, the line where `pattern` first stands (below `[section]`), or nothing."""
    inside = not section
    for number, line in enumerate(text.splitlines(), 1):
        if section and (header := re.match(r"\s*\[\s*([\w.-]+)\s*\]", line)):
            inside = header[1] == section
        if inside and re.match(rf"\s*(?:{pattern})", line):
            return f":{number}"
    return ""


def override(settings: Settings, section: str, **values: Any) -> Settings:
    """`settings` with those values of one section that are not None: options of a command line."""
    chosen = {name: value for name, value in values.items() if value is not None}
    changed = dataclasses.replace(getattr(settings, section), **chosen)
    return dataclasses.replace(settings, **{section: changed})


def read_at(section: str, name: str) -> str:
    """When a setting is read: `start` of a daemon, also at `SIGHUP`, or by `tarazu run` for each `step`."""
    if name in RELOADED.get(section, ()):
        return "SIGHUP"
    return "step" if name in READ_EACH_STEP.get(section, ()) else "start"


def reloaded(before: Settings, after: Settings) -> tuple[Settings, list[str]]:
    """`before` with what a running daemon may take over of `after`; what else differs, as `mdsd.requests`."""
    sections: dict[str, Any] = {}
    left = []
    for section in SECTIONS:
        old, new = getattr(before, section), getattr(after, section)
        names = [f.name for f in dataclasses.fields(old) if getattr(old, f.name) != getattr(new, f.name)]
        left += [f"{section}.{name}" for name in names if read_at(section, name) == "start"]
        taken = {name: getattr(new, name) for name in names if read_at(section, name) != "start"}
        sections[section] = dataclasses.replace(old, **taken)
    return Settings(**sections), left


def without_password(location: str) -> str:
    """A database's location as it may be shown: `mysql://user:***@host/name`."""
    return re.sub(r"(://[^:/@]*):.*@", r"\1:***@", location)


def toml(value: Any) -> str:
    """A value as the configuration file takes it."""
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(toml, value))}]"
    return json.dumps(value, ensure_ascii=False)


def table() -> str:
    """Markdown table of all settings, for the operator guide; defaults as the configuration file takes them."""
    lines = ["| setting | default | read at | what |", "|---|---|---|---|"]
    for section, cls in SECTIONS.items():
        for item in dataclasses.fields(cls):
            value: Any = item.default
            shown = toml(exact_bytes(value) if item.metadata["size"] and value else value)
            text = item.metadata["help"]
            if item.metadata["check"]:
                text += f" ({item.metadata['check'].expected})"
            lines.append(f"| `{section}.{item.name}` | `{shown}` | {read_at(section, item.name)} | {text} |")
    return "\n".join(lines)
