"""The seam: what a part of tarazu may do, how it is found, and what becomes of one that fails.

A part is a capability in one folder, `tarazu/parts/NAME/`, or anywhere else. The entry points "tarazu.parts" of
pyproject.toml lead to an object of a subclass of `Part`. It declares, and its methods import what else there is of it:
who does not use a part loads none of that. The core knows parts by this file alone.
"""

from __future__ import annotations

import functools
import logging
import math
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Literal, NamedTuple, TypeVar

import msgspec

from tarazu.config import PART, Settings
from tarazu.errors import ConfigError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from tarazu.figures import Family
    from tarazu.model import JobStep
    from tarazu.trace.records import KnownRun, RunRecord

log = logging.getLogger("tarazu.parts")
log.addHandler(logging.NullHandler())  # nothing of it comes to a program that is led

GROUP = "tarazu.parts"
T = TypeVar("T")
R = TypeVar("R")
Role = Literal["client", "oss"]


class Later:
    """An answer that comes by `Asker.reply`."""


LATER: Final = Later()


class Asker(NamedTuple):
    """Who has sent a part of mdsd a message."""

    name: str
    """Its address."""
    uid: int
    """The user in whose name a client speaks, which its key may; -1: an OSS."""
    reply: Callable[[msgspec.Struct], None]
    """Answers what was LATER, in the loop."""


class MdsdFacts(NamedTuple):
    """What mdsd hands to a part of it."""

    settings: Settings
    note: Callable[[Mapping[str, object]], None]
    """Writes a line of the audit log."""
    wake: Callable[[], None]
    """Ends the loop's wait, from any thread."""
    stopped: Callable[[], str]
    """Why the site is stopped; empty: it is not."""
    usable_osts: Callable[[str], int]
    """File system → OSTs on which files may be placed now."""


class Reported(NamedTuple):
    """A server's report."""

    server: str
    received_s: float
    """On the monotonic clock."""
    seconds: float
    """Since the one before it; 0: that is not known."""
    may: Callable[[str], bool]
    """Whether its key may report this target."""


class InReport:
    """A part in ossd, which reports on a server."""

    def read(self, of: Any) -> bytes | None:
        """What it says now, a message of its own; None: nothing. `of`: `tarazu.stats.collector.Collector`, which reads
        and names what cannot be read.
        """

    def families(self) -> Iterator[Family]:
        """What it counts."""
        yield from ()


class InDaemon:
    """A part beside the loop of a daemon, whichever. All is called by that loop, and must not wait."""

    def turn(self) -> None:
        """Once in each turn."""

    def close(self) -> None: ...


class InMdsd:
    """A part in mdsd. All is called by the loop, whose times are on the monotonic clock, and must not wait."""

    asks: Mapping[type[msgspec.Struct], Role] = {}
    """Its messages, tagged structs → the role whose key may send each."""

    def answer(self, asker: Asker, message: Any, now: float) -> msgspec.Struct | Later | None:
        """The answer, or LATER; None: the message was something to be told."""
        return None

    def owner(self, id: str) -> int | None:
        """The user to whose allocation (`PlanFacts.id`) it keeps something; None: it keeps nothing. Nobody else can
        end it.
        """

    def alive(self, ids: Sequence[str], now: float) -> None:
        """Signs of life of these allocations."""

    def ended(self, id: str) -> None:
        """An allocation's step did, or nobody wants it any more."""

    reports: type[msgspec.Struct] | None = None
    """What it says in the reports of servers (`InReport.read`)."""

    def reported(self, said: Any, of: Reported) -> None:
        """In a server's new report, which mdsd has taken in."""

    def request_s(self, fs_name: str) -> float | None:
        """Seconds of a request to the MDS, by which placing is judged; None: it does not know them."""

    def look(self) -> None:
        """In a thread, now and then: at files of this node, which may hang."""

    def turn(self, now: float, listening: bool) -> float:
        """Once the core's answers are out; when it wants the next turn. `listening`: who is silent now has said
        nothing.
        """
        return math.inf

    def excuse(self, paused_s: float) -> None:
        """Nobody was listened to for so long."""

    def take_over(self, settings: Settings) -> None:
        """Settings were read again."""

    def status(self, now: float) -> dict[str, Any]:
        """Of `tarazu status --json`: plain values. What it has in `targets`, rows of `tarazu.wire.overview.PartTarget`,
        people see beside OSTs.
        """
        return {}

    def families(self) -> Iterator[Family]:
        """What it counts."""
        yield from ()

    def close(self) -> None: ...


class PlanFacts(NamedTuple):
    """What clientd hands to a part that says how many stripes a step's files get."""

    settings: Settings
    step: JobStep
    id: str
    """Of its allocation to come."""
    alive_s: float
    """Seconds of silence after which the step counts as dead; 0: nothing will be placed."""
    made: bytes
    """By `Part.plan`."""
    ask: Callable[[bytes], bytes]
    """Its half in mdsd, for a second at most: message → answer. Raises TarazuError."""


class StepFacts(NamedTuple):
    """What a leader hands to a part of a job step."""

    settings: Settings
    job_id: str
    """The batch system's, else the step's own."""
    argv: Sequence[str]
    environ: Mapping[str, str]
    root: str
    over: threading.Event
    """The program has ended."""
    stopped: Callable[[], str]
    """Why the site is stopped; empty: it is not."""
    log: Callable[[str], None]
    """Of what goes wrong."""
    plans: Callable[[], Mapping[str, bytes]]
    """File system → what the newest plan has of the part (`Part.plan`), empty where it has nothing."""
    tell: Callable[[str, bytes], None]
    """(id of what it is about, message): to the part in mdsd; the newest of an id goes before older ones that still
    wait. Raises TarazuError.
    """


class InStep:
    """A part in the leader of a job step."""

    def during(self) -> None:
        """The body of a thread, from the program's start on; it ends soon after `StepFacts.over`."""

    def end(self) -> None:
        """The program has ended: it may `tell` something still. Nobody waits long for that."""


class Unit(NamedTuple):
    """A systemd unit of a part; it lies in the part's folder."""

    name: str
    role: str
    """Of nodes (`tarazu.doctor.node`); empty: of all."""
    wanted: Callable[[Settings], bool]
    tools: tuple[str, ...] = ()
    """Programs of Lustre that it calls."""


class SettingAgent(NamedTuple):
    """What of a part changes a system, by the engine of changes."""

    module: str
    """Has `agent_of(settings)`."""
    unit: str
    """That sets by it; empty: a command does."""
    directory: str
    """Below `state.directory`: what is set is noted there."""
    daemon: str
    """Whose notes they are; empty: a command's."""

    def place(self, settings: Settings) -> str:
        """Where it notes them."""
        return f"{settings.state.directory}/{self.directory}"


class Part:
    """One part: what it declares, and what it makes. What it does not have stays as it is here."""

    name: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()
    """Other parts without which it is not."""
    settings: ClassVar[type | None] = None
    """The class of its section, `[part.NAME]`; `RELOADED` in it names those that a running daemon takes over."""
    commands: ClassVar[Mapping[str, tuple[str, str]]] = {}
    """As `tarazu.cli.COMMANDS`."""
    programs: ClassVar[Mapping[str, str]] = {}
    """Daemons of its own, as `tarazu.daemons.programs.CORE`; pyproject.toml has their names, too."""
    heading: ClassVar[str] = ""
    """Of `tarazu --help`, for its commands of one word (`tarazu.cli.GROUPS`)."""
    extra: ClassVar[str] = ""
    """Of pyproject.toml, what commands of it need; the package tarazu-analysis has it, and those of the part's files
    that `packaging/contents.py` names, never this declaration.
    """
    ossd: ClassVar[Mapping[str, str]] = {}
    """Options of tarazu-ossd, without `--`, that make another daemon of it → what that does, in a line."""
    units: ClassVar[tuple[Unit, ...]] = ()
    agents: ClassVar[Mapping[str, SettingAgent]] = {}

    @property
    def folder(self) -> Path:
        """Where it lies, its units too."""
        return Path(str(sys.modules[type(self).__module__].__file__)).parent

    def own(self, settings: Settings) -> Any:
        """Its section. Raises ConfigError."""
        assert self.settings is not None
        return settings.part.of(self.name, self.settings)

    def problems(self, settings: Settings) -> Iterator[ConfigError]:
        """What a daemon would refuse at its start, beside values that are wrong one by one."""
        yield from ()

    def in_daemon(self, daemon: Any) -> InDaemon | None:
        """Just before a daemon's loop (`tarazu.daemons.service.Service`). None: there is nothing to do there."""
        return None

    def in_mdsd(self, mdsd: MdsdFacts) -> InMdsd | None:
        """None: there is nothing to do there. Raises ConfigError."""
        return None

    def in_report(self) -> InReport | None:
        """None: it says nothing of servers."""
        return None

    def lines_of(self, said: bytes) -> list[str]:
        """What it says of a server, for `tarazu-ossd --once`."""
        return []

    def in_ossd(self, option: str) -> Any:
        """The daemon of this option: a `Service` made of (settings, wakeup, name)."""

    def hears(self, settings: Settings) -> Mapping[str, str]:
        """Addresses where it hears, as mdsd does, what OSSs publish → the daemon there, without `tarazu-`."""
        return {}

    def in_step(self, step: StepFacts) -> InStep | None:
        """None: there is nothing to do in this step."""
        return None

    def planned_by(self, settings: Settings) -> bytes:
        """What `plan` has to know, of clientd's settings; empty: it plans nothing."""
        return b""

    def plan(self, by: bytes, runs: Sequence[KnownRun], step: JobStep) -> bytes:
        """What comes of the runs before, oldest first, for the step's leader. In the process of a forecast."""
        return b""

    def stripe_count(self, plan: PlanFacts) -> tuple[int, str]:
        """In clientd, of a step of which `plan` has made something, where `layout.stripe_count` is auto: the stripes
        of its files, and why; 0: those of auto.
        """
        return 0, ""

    def of_user(self, status: dict[str, Any], uid: int) -> dict[str, Any]:
        """What of its status this user may see, who is not root."""
        return {}

    def status_lines(self, status: Mapping[str, Any]) -> list[str]:
        """Of `tarazu status`."""
        return []

    def here(self, settings: Settings) -> dict[str, Any]:
        """Of `tarazu status --json`, about the node where that runs: plain values."""
        return {}

    def lines_here(self, here: Mapping[str, Any]) -> list[str]:
        """The same as lines."""
        return []

    def examine(self, node: Any) -> Iterator[Any]:
        """Of `tarazu doctor`: what it finds on a node (`tarazu.doctor.node`)."""
        yield from ()

    def job_lines(self, status: Mapping[str, Any], job: str) -> list[str]:
        """Of `tarazu job show`."""
        return []

    def run_line(self, settings: Settings, run: Any) -> str:
        """Of the same, about one of the job's newest runs that ended (`tarazu.cli.job.own.Ended`)."""
        return ""

    def report(
        self, runs: Mapping[tuple[str, str], Sequence[RunRecord]], since_s: float, until_s: float
    ) -> Any:
        """Of `tarazu history report --json`: of (file system, application) → all its runs, oldest first, those that
        began then; None: nothing.
        """

    def report_lines(self, said: Any) -> list[str]:
        """The same as lines."""
        return []

    def testbed_settings(self, testbed: Any) -> dict[str, Any]:
        """What its section says on a `tarazu.sim.testbed`."""
        return {}

    def testbed_daemons(self, testbed: Any) -> list[Any]:
        """Its daemons on a `tarazu.sim.testbed`, beside the core's."""
        return []


@functools.cache
def installed() -> Mapping[str, Part]:
    """All parts that are here, each after those that it needs.

    Raises ConfigError for parts that need one another in a circle.
    """
    return ordered(found())


@functools.cache
def found() -> Mapping[str, Part]:
    """Those too that need one that is not there. One that cannot be loaded is not; that is logged."""
    from importlib.metadata import entry_points  # takes half as long as Python's own start

    parts: dict[str, Part] = {}
    for entry in sorted(entry_points(group=GROUP)):
        try:
            if (part := _loaded(entry)) is not None:
                parts.setdefault(entry.name, part)
        except Exception:
            log.exception("part %s: cannot be loaded", entry.name)
    return parts


def _loaded(entry: EntryPoint) -> Any:
    """None: the part was taken away."""
    try:
        return entry.load()
    except ModuleNotFoundError as error:
        if f"{entry.module}.".startswith(f"{error.name}."):
            return None
        raise


def ordered(parts: Mapping[str, Part]) -> dict[str, Part]:
    """Each after those that it needs; without those that need one that is not there. Raises ConfigError."""
    there: dict[str, Part] = {}
    left = dict(parts)
    while left:
        ready = [name for name, part in left.items() if not left.keys() & {*part.needs}]
        if not ready:
            raise ConfigError("parts", "parts that do not need one another in a circle", ", ".join(left))
        for name in ready:
            part = left.pop(name)
            if missing := [need for need in part.needs if need not in there]:
                log.error("part %s: expected the parts that it needs, found no %s", name, ", ".join(missing))
            else:
                there[name] = part
    return there


def hearers(settings: Settings) -> dict[str, str]:
    """Where OSSs publish → the daemon there, without `tarazu-`: every mdsd, and those of parts."""
    return dict.fromkeys(settings.statistics(), "mdsd") | {
        address: daemon for part in installed().values() for address, daemon in part.hears(settings).items()
    }


def setting_agents() -> dict[str, SettingAgent]:
    """Of the parts that are here."""
    return {name: agent for part in installed().values() for name, agent in part.agents.items()}


def sections() -> dict[str, type]:
    """`part.NAME` → the class of its section, of the parts that are here."""
    return {f"{PART}.{name}": of for name, part in installed().items() if (of := part.settings)}


class Live(Generic[T]):
    """What a process has of parts. One that fails is off until the next start, and the core goes on."""

    def __init__(self, make: Callable[[Part], T | None], parts: Mapping[str, Part] | None = None) -> None:
        """`make` may raise ConfigError, as a daemon's own start does."""
        self.failed: dict[str, str] = {}
        """Part → why it is off."""
        self._live: dict[str, T] = {}
        for name, part in (installed() if parts is None else parts).items():
            try:
                if (made := make(part)) is not None:
                    self._live[name] = made
            except ConfigError:
                raise
            except Exception as error:
                self._fail(name, error)

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._live))

    def get(self, name: str) -> T | None:
        """None: it is off, or was never here."""
        return self._live.get(name)

    def call(self, name: str, hook: Callable[[T], R]) -> R | None:
        """What a hook of one part says; None: it is off, or is so now."""
        if (part := self._live.get(name)) is None:
            return None
        try:
            return hook(part)
        except Exception as error:
            self._fail(name, error)
            return None

    def each(self, hook: Callable[[T], R]) -> dict[str, R]:
        """Part → what its hook says; without those that fail."""
        said = {name: self.call(name, hook) for name in self}
        return {name: of for name, of in said.items() if of is not None}

    def _fail(self, name: str, error: Exception) -> None:
        log.error("part %s failed, and is off until the next start", name, exc_info=error)
        self.failed[name] = f"{type(error).__name__}: {error}"
        self._live.pop(name, None)
