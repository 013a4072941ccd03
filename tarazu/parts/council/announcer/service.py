"""tarazu-announcer: tells the council what this node sees of its I/O, and does what it decides.

Publishes: while there is I/O, once a second what was read and written and what is in force, to the council; without I/O
a sign of life now and then. Follows: one council of its own group. Sets a lever of `part.council.levers` only with
`part.council.mode` apply, here and at the council, and never without a note of what was there. It restores that when
the council says so or is silent for half a minute, while the site is stopped or this node is held (`tarazu change tune
--undo`), when this program starts (after a crash) or ends. What fails is said once and tried again later. A process of
its own, with rights of its own: nothing waits for it. Of two on one node the second one waits.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tarazu import config
from tarazu.daemons.service import Service, Wakeup
from tarazu.errors import ConfigError, TarazuError, Unavailable
from tarazu.figures import Family, Histogram, counter, gauge, histogram
from tarazu.parts.changes.agent import Agent, Plan
from tarazu.parts.changes.done import Done
from tarazu.parts.changes.engine import LOOK_S as SHOWN_S
from tarazu.parts.changes.figures import of_agents
from tarazu.parts.changes.model.change import ALL, Change
from tarazu.parts.changes.ordered import Mode
from tarazu.parts.council import exchange
from tarazu.parts.council.agent import agent_of, in_force
from tarazu.parts.council.announcer.following import Following, least
from tarazu.parts.council.counters import SAMPLERS, Kind, Sampler
from tarazu.parts.council.exchange import MODES, AnnouncerEnd, Decided, Observed, Refused
from tarazu.parts.council.levers import levers_of
from tarazu.parts.council.pattern import Observation
from tarazu.parts.council.settings import options_of
from tarazu.parts.drain import agent as drains
from tarazu.parts.drain.lever import DrainLever
from tarazu.stats.params import find
from tarazu.store.stop import SiteWatch
from tarazu.units import GIB
from tarazu.wire.said import SaidOnce

if TYPE_CHECKING:
    from tarazu.wire.sockets import ZmqTransport

log = logging.getLogger("tarazu.announcer")

LOOK_S = 10.0
"""So often it is looked whether what should be set is set, when nothing changes."""
KIND_S = 10.0
"""So often it is looked what this node is, which is another one when a target or a file system is mounted."""
LOCK_S = 1.0
"""So long is waited for a command that looks at the notes; what takes longer is tried later."""
STOP_S = 0.5
"""So often it is looked whether the site is stopped: a stop holds within a second."""
LASTS_S = 3600.0
"""So long what was decided lasts at most, where no announcer is left that would restore what was there."""
SIGNS = 3.0
"""Signs of life in `exchange.SILENT_S`, without I/O."""
PROBLEM_CHARACTERS = 500


_SHOWN: tuple[tuple[Kind, str], ...] = (("oss", "obdfilter.*.stats"), ("client", "llite.*.stats"))


def kind_of(root: str | Path) -> Kind | None:
    """An OSS serves targets, a client mounts a file system; None: neither now, as on a node that has just booted."""
    return next((kind for kind, parameter in _SHOWN if find(Path(root), parameter)), None)


class Announcer(Service):
    """All state of the daemon."""

    USED = ("keys.", "state.", "changes.", "run.stop_file", "part.council.")

    def __init__(
        self, settings: config.Settings, wakeup: Wakeup, kind: Kind | None = None, name: str = ""
    ) -> None:
        """`kind`: what this node is, whatever Lustre shows; `name`: its host's by default. Raises ConfigError,
        BadInput, WireError.
        """
        super().__init__(settings, wakeup, options_of(settings).announcer_metrics)
        self.options = options_of(settings)
        if not self.options.address:
            raise ConfigError("part.council.address", "the address of the council, tcp://mds1:5774", "")
        self.name = name
        self.host = name or socket.gethostname()
        self.kind: Kind | None = None
        """None while Lustre shows nothing here: nothing is seen, and nobody told."""
        self.sequence = 0
        self.transport: ZmqTransport | None = None
        self.end: AnnouncerEnd | None = None
        self.sampler: Sampler | None = None
        self.observed = 0
        """Intervals with I/O that were reported."""
        self.unsent = 0
        self.samples = Histogram()
        self.site = SiteWatch(settings.run.stop_file, every_s=STOP_S)
        self.levers = levers_of(self.options.levers)
        self.agent = agent_of(settings, turn=self.manager.alive, stopped=lambda: self.site.why)
        self.problem = ""
        self._trusted = False
        """What a former run left has been restored."""
        self._held = ""
        """Why nothing is set here, whatever is decided: looked up once an interval."""
        self._mixed = True
        """Not all of this interval had the same in force."""
        self._sent_at = float("-inf")
        self._look_at = 0.0
        self._failing = False
        """The notes cannot be opened."""
        self._acted: tuple[object, ...] = ()
        self._wanted: dict[str, str] = {}
        self._shown: dict[str, str] = {}
        self._shown_until = float("-inf")
        self._said = SaidOnce(log)
        self.following = Following(self.options.group, exchange.SILENT_S, time.monotonic())
        self._told_kind = kind
        self._kind_at = time.monotonic() + KIND_S
        if shown := kind or kind_of(config.root()):
            self._become(shown)
        else:
            log.info("%s serves no target and mounts nothing: it looks again every %g s", self.host, KIND_S)
        self.site.start()
        first_s = exchange.INTERVAL_S * secrets.randbelow(1000) / 1000  # not all nodes at once
        self.every(lambda: exchange.INTERVAL_S, self._tick, first_s)

    @functools.cached_property
    def drains(self) -> Agent:
        """What is drained here is people's; what it gives is seen here, and that its time is over."""
        return drains.agent_of(self.settings, "tarazu-announcer", stopped=lambda: self.site.why)

    def _become(self, kind: Kind) -> None:
        """From now on this node is one of that kind. Raises WireError, and then is what it was."""
        former, was, self.host = self.transport, self.kind, self.name or socket.gethostname()
        self.transport = self.connect("client" if kind == "client" else "oss")
        if was not in (None, kind):
            self._take_back(f"this node is of kind {kind} now, no more {was}", LOCK_S)
        if former is not None:
            former.close()
        self.kind = kind
        self.end = AnnouncerEnd(self.transport, self.options.address)
        self.sampler = SAMPLERS[kind](config.root())
        self.following = Following(self.options.group, exchange.SILENT_S, time.monotonic())
        self._acted, self._mixed = (), True
        self._shown_until = self._sent_at = float("-inf")
        log.info(
            "%s (%s) tells the council at %s every %g s; %s; levers: %s",
            self.host,
            kind,
            self.options.address,
            exchange.INTERVAL_S,
            self.options.mode,
            ", ".join(self.levers) or "none",
        )

    def _look_what_it_is(self, now: float) -> None:
        """Targets and mounts come and go, a name may come late. While nothing is shown it stays what it was: a target
        may only be away.
        """
        self._kind_at = now + KIND_S
        shown = self._told_kind or kind_of(config.root()) or self.kind
        if shown is None or (shown == self.kind and self.host == (self.name or socket.gethostname())):
            return
        try:
            self._become(shown)
        except TarazuError as error:
            self._said.warning(f"this node is of kind {shown} now: {error}", f"kind {error}")

    @property
    def mode(self) -> Mode:
        """What this node allows."""
        if self.claimed is None or not self._trusted or self._held:
            return "observe"
        mode: Mode = self.options.mode  # type: ignore[assignment]
        return mode

    def turn(self, now: float) -> None:
        while self.end and (said := self.end.receive()) is not None:
            self._heard(said, time.monotonic())

    def finish(self) -> None:
        """What was there before is restored."""
        if self.claimed is not None:
            self._take_back("tarazu-announcer ends", 5.0, whatever=True)

    def _take_back(self, why: str, wait_s: float, *, whatever: bool = False) -> bool:
        engine = self.agent.engine
        return self._try(lambda: engine.take_back(why, wait_s=wait_s, anew=whatever))

    def _tick(self, now: float) -> None:
        """Every interval: notice a silent council, set or restore what is due, then report to the council."""
        self._held = self.agent.engine.stopped
        if now >= self._kind_at:
            self._look_what_it_is(now)
        if self.alone(self.agent.store.claim, "sets nothing", self._said):
            if not self._trusted and now >= self._look_at:
                self._trusted = self._take_back("left by a former run", LOCK_S)
                self._look_at = 0.0 if self._trusted else now + LOOK_S
            followed = self.following.council
            if self.following.is_silent(now):
                self._said.warning(
                    f"{followed} does not answer for {exchange.SILENT_S:g} s: the earlier values are restored",
                    "silent",
                )
                self._follow(now)
            elif now >= self._look_at:
                self._follow(now, anew=True)
        before, observation = time.monotonic(), None
        if self.sampler is not None:
            observation = self.sampler.sample(before)
            self.samples.observe(time.monotonic() - before)
        if self._mixed:
            observation, self._mixed = None, False
        if observation is not None and self.claimed is not None:
            self._measure(observation)
        if observation is not None or now - self._sent_at >= exchange.SILENT_S / SIGNS:
            self._tell(observation, now)

    def _measure(self, seen: Observation) -> None:
        """Measures the effect of each lever, or of a drained OST: seconds a GiB."""
        if not seen.is_crowded:
            return
        size = seen.bytes / GIB
        levers = [(self.agent, name) for name in self._in_force()]
        if self.kind == "oss":
            levers.append((self.drains, DrainLever.name))
        for agent, name in levers:
            done = agent.saw(name, {"time": seen.elapsed_s / size}, weight=size, wait_s=LOCK_S)
            if done.restored or done.failed:
                self._see_anew()

    def _tell(self, observation: Observation | None, now: float) -> None:
        if self.claimed is None or self.end is None or self.kind is None:
            return  # another one speaks for this node, or there is nothing to say
        self.sequence += 1
        message = Observed(
            f"{self.sequence}",
            self.options.group,
            self.host,
            self.kind,
            observation,
            self._in_force(),
            self.mode,
            self.problem[:PROBLEM_CHARACTERS],
        )
        self._sent_at = now
        if self.end.send(message):
            self.observed += observation is not None
        else:
            self.unsent += 1

    def _in_force(self) -> dict[str, str]:
        """Lever → its value, of those that may be set and are there; at most SHOWN_S old."""
        now = time.monotonic()
        if now >= self._shown_until:
            self._shown, self._shown_until = {}, now + SHOWN_S
            for name in self.levers:
                with contextlib.suppress(Unavailable):
                    if value := in_force(self.agent.engine.levers[name]):
                        self._shown[name] = value[:120]
        return dict(self._shown)

    def _heard(self, said: object, now: float) -> None:
        if isinstance(said, Refused):
            self._said.warning(f"the council refuses this node's reports: {said.why}", "refused")
            return
        if not isinstance(said, Decided):
            return
        if why := self.following.take(said, now):
            self._said.warning(
                f"a decision of {said.council} is not followed: {why}", f"council {said.council}"
            )
            return
        self._follow(now)

    def _follow(self, now: float, *, anew: bool = False) -> None:
        """Do what is decided, as far as it is allowed. `anew`: also where it is what was done last."""
        decided = self.following.decided
        mode = least(self.mode, decided.mode)
        act = (decided.council, decided.generation, decided.values, mode)
        if act == self._acted and not anew:
            return
        self._acted, self._look_at = act, now + LOOK_S
        if not self._trusted:
            return
        self._try(lambda: drains.end(self.drains, LOCK_S) if self.drains.store.exists else Done())
        wanted = {lever: value for lever, value in decided.values.items() if lever in self.levers}
        why = self._why(decided, mode)
        # What holds this node the agent knows, and says: that is not its mode.
        own: Mode = self.options.mode if self._held and self.claimed is not None else mode  # type: ignore[assignment]
        self._try(lambda: self._make(wanted, decided, least(own, decided.mode), why))
        self.manager.status(f"{mode}; {self._set} levers set")

    def _make(self, wanted: dict[str, str], decided: Decided, mode: Mode, why: str) -> Done:
        """Raises StoreError, Unavailable."""
        before, self._wanted = self._wanted, wanted
        if not wanted and not before and not self.agent.store.exists:
            return Done()
        by = f"council {decided.council}, generation {decided.generation}"
        changes = tuple(
            Change(lever=name, target="", wanted={ALL: value}, why=decided.why, asked_by=by, lasts_s=LASTS_S)
            for name, value in wanted.items()
        )
        return self.agent.follow(Plan(changes), mode, why, wait_s=LOCK_S)

    @property
    def _set(self) -> int:
        """Levers that tarazu has set."""
        return len(self.agent.store.held_changes)

    def _why(self, decided: Decided, mode: Mode) -> str:
        if not decided.council:
            return "no council answers"
        if self.mode != "apply":
            return self._held or f"part.council.mode is {self.options.mode}"
        if mode != "apply":
            return f"the council {decided.council} says {decided.mode}: {decided.why}"
        return f"{decided.council}, generation {decided.generation}: {decided.why}"

    def _try(self, call: Callable[[], Done]) -> bool:
        """True when it was done. What goes wrong with the notes is said once."""
        try:
            done = call()
        except TarazuError as error:
            self.problem, self._mixed, self._failing = str(error), True, True
            self._said.warning(f"{error}; tried again every {LOOK_S:g} s", str(error))
            return False
        wrong = [f"{lever}: {why}" for (lever, _), why in done.wrong]
        wrong += [f"{held.change.lever}: somebody else has set it: {held.left_to}" for held in done.left]
        changed = any((done.set, done.restored, done.left, done.failed))
        if self._failing or wrong or changed or not (self._wanted or self._set):
            self.problem, self._failing = "; ".join(wrong), False
        if changed:
            self._see_anew()
        return True

    def _see_anew(self) -> None:
        """What is seen from now on is of what is in force now alone."""
        self._shown_until = float("-inf")
        if self.sampler is not None:
            self.sampler.sample(time.monotonic())
        self._mixed = False

    def take_over(self, settings: config.Settings) -> None:
        if options_of(settings).mode != self.options.mode:
            log.info("mode: %s", options_of(settings).mode)
        self.options = options_of(settings)
        self.agent.take_over(settings)
        self._follow(time.monotonic(), anew=True)

    def figures(self) -> Iterator[Family]:
        following = self.following
        yield gauge(
            "announcer_mode", "What this node allows: 0 observe, 1 advise, 2 apply.", MODES.index(self.mode)
        )
        yield histogram("announcer_sample_seconds", "Time to read this node's statistics.", self.samples)
        yield counter(
            "announcer_intervals_told", "Intervals with I/O reported to the council.", self.observed
        )
        yield counter("announcer_unsent", "Messages that no council received.", self.unsent)
        yield counter(
            "announcer_decisions_refused",
            "Decisions of other councils or groups.",
            following.refused,
        )
        yield gauge("announcer_followed", "1 while a council is followed.", bool(following.council))
        yield gauge(
            "announcer_council_silent_seconds",
            "Seconds since the council's last message.",
            time.monotonic() - following.heard_at,
        )
        yield gauge("announcer_levers_set", "Levers that tarazu has set.", self._set)
        yield gauge("announcer_problem", "1 while a lever cannot be set as decided.", bool(self.problem))
        yield from of_agents(self.agent)

    def release(self) -> None:
        self.site.end()
