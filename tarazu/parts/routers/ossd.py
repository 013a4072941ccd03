"""tarazu-ossd --routers: which LNet routers carry running jobs' bulk data, by rules on one OSS.

Follows: mdsd, asked every `INTERVAL_S` with the OSS's key for the rules of the jobs that run now. Publishes
nothing. Sets rules only where `part.routers.mode` is `apply`, here and at mdsd; with `advise` it says what it would
set. A rule is taken back when mdsd no longer plans it (its job has ended), when its routers are down, when mdsd is
silent for `SILENT_INTERVALS`, while the site is stopped, when this program starts (after a crash) or ends, and by
`tarazu change routers --undo`. One that somebody else has deleted is left to him. When lnetctl fails it says so once
and tries again, later each time. Of two on one server the second one waits. A process
of its own, with rights of its own: the statistics, which `tarazu-ossd` publishes, wait for nothing here.
"""

from __future__ import annotations

import contextlib
import logging
import math
import secrets
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from tarazu import config, nids
from tarazu.daemons.service import Service, Wakeup
from tarazu.errors import BadInput, TarazuError, WireError
from tarazu.malformed import MALFORMED
from tarazu.parts.changes.agent import Plan
from tarazu.parts.changes.model.change import Change
from tarazu.parts.changes.model.goals import CannotMend
from tarazu.parts.routers import udsp
from tarazu.parts.routers.agent import agent_of
from tarazu.parts.routers.lever import SET, RoutersLever
from tarazu.parts.routers.messages import RouterRule, RouterRules, RulesRequest
from tarazu.parts.routers.present import usable
from tarazu.parts.routers.settings import Routers
from tarazu.parts.routers.udsp import Route, Rule
from tarazu.stats import reading, routing
from tarazu.stats.params import find, ost_target
from tarazu.store.stop import SiteWatch
from tarazu.wire.bounds import MAX_MOUNTED, MAX_ROUTERS
from tarazu.wire.messages import PartReply, PartRequest
from tarazu.wire.reports import RouterState
from tarazu.wire.said import SaidOnce
from tarazu.wire.transport import Servers

log = logging.getLogger("tarazu.routers")

INTERVAL_S = 10.0
"""Between two questions to mdsd; `ossd.interval_s` where that is shorter."""
SILENT_INTERVALS = 6
"""Without an answer of mdsd for so long, nobody knows whether the jobs still run."""
RESEND_S = 0.2
"""While there is no answer, a look at what is to be sent again."""
STOP_S = 0.5
"""So often it is looked whether the site is stopped."""
LOCK_S = 1.0
"""So long a round waits for a command that changes something."""
RULES_TIMES, MAX_NUMBERS = 4, 400_000
"""Of one answer so many times `udsp.MOST_RULES` are looked at, with so many numbers: mdsd sends those first that are
worth most, and twelve characters may name 65,536 nodes.
"""


class RulesService(Service):
    """All state of the daemon."""

    USED = (
        *("keys.", "state.", "ossd.", "mdsd.requests", "part.routers.", "changes."),
        "run.stop_file",
    )

    def __init__(self, settings: config.Settings, wakeup: Wakeup, name: str = "") -> None:
        """`name`: its host's by default."""
        super().__init__(settings, wakeup)
        self.options = settings.part.of("routers", Routers)
        self.interval_s = min(INTERVAL_S, settings.ossd.interval_s)
        self.root = Path(config.root())
        self.name = name
        self.site = SiteWatch(settings.run.stop_file, every_s=STOP_S)
        self.agent = agent_of(settings, turn=self.manager.alive, stopped=lambda: self.site.why)
        self.wanted: tuple[Rule, ...] = ()
        """What mdsd said last."""
        self.generation = 0
        self.routes: tuple[Route, ...] | None = None
        """None: they cannot be read."""
        self.heard_at = time.monotonic()
        self.asked = ""
        """Id of the question that has no answer yet."""
        self._why = "mdsd no longer plans it"
        """Why a rule goes that is wanted no more."""
        self._trusted = False
        """What a former run left has been taken back."""
        self._mdsds: Literal["observe", "advise", "apply"] = "observe"
        """mdsd's mode."""
        self._applied = 0
        """Generation of the rules that were set last."""
        self._stopped = ""
        self._said = SaidOnce(log)
        self.requester = self.connect("oss").requester(Servers(settings.requests()))
        self.site.start()
        self._ticks = self.every(lambda: self.interval_s, self._tick)
        self.every(lambda: STOP_S, self._look_at_stop)
        asks = f"asks {self.requester.servers} every {self.interval_s:g} s"
        log.info(
            "%s, routers: %s; %s", self.oss, self.mode, "asks no mdsd" if self.mode == "observe" else asks
        )

    @property
    def oss(self) -> str:
        """As tarazu-ossd says it; at boot it may come later."""
        return self.name or socket.gethostname()

    @property
    def mode(self) -> str:
        return self.options.mode

    def may_wait_s(self, now: float) -> float:
        return RESEND_S if self.asked else math.inf

    def turn(self, now: float) -> None:
        while (reply := self.requester.receive(0.0)) is not None:
            if isinstance(reply, PartReply) and reply.message_id == self.asked:
                self._take(_rules_of(reply))

    def finish(self) -> None:
        """Everything of ours is taken back."""
        self.site.end()
        if self.claimed is not None:
            why = "tarazu-ossd --routers ends"
            self._try(lambda: self.agent.engine.take_back(why, wait_s=5.0, anew=True))

    @property
    def _silent_s(self) -> float:
        return SILENT_INTERVALS * self.interval_s

    def _tick(self, now: float) -> None:
        """Every interval: what a former run left goes, dead routers' rules go; then mdsd is asked."""
        if not self.alone(self.agent.store.claim, "does nothing", self._said):
            return
        if not self._trusted:
            done = self._try(lambda: self.agent.engine.take_back("left by a former run"))
            self._trusted = done and not self.agent.store.held_changes
        silent_s = now - self.heard_at
        if self.mode == "observe":
            self.wanted, self._why = (), "part.routers.mode is observe"
        elif silent_s > self._silent_s and self.wanted:
            self._said.warning(f"mdsd is silent for {silent_s:.0f} s: its rules are taken back", "silent")
            self.wanted, self._why = (), "mdsd is silent"
        if self.mode != "observe":
            self.routes = self._routes()
            self._ask()
        self._follow()

    def _look_at_stop(self, now: float) -> None:
        if self.claimed is not None and self.site.why != self._stopped:
            self._follow()

    def _ask(self) -> None:
        if self.asked:
            self.requester.forget(self.asked)
        self.asked = f"rules-{secrets.token_hex(8)}"
        states = [RouterState(str(r.gateway), r.up, r.net) for r in self.routes or ()]
        ours = self._set()
        request = RulesRequest(
            self.oss,
            tuple(states[:MAX_ROUTERS]),
            self._applied if ours else 0,
            tuple(RouterRule(str(rule.dst), str(rule.rte)) for rule in ours),
            "apply" if self.mode == "apply" and not self.agent.engine.stopped else "advise",
            self._fs_names(),
        )
        self.requester.submit(PartRequest(self.asked, "routers", msgspec.msgpack.encode(request)))

    def _take(self, reply: RouterRules) -> None:
        self.asked = ""
        self.heard_at = time.monotonic()
        if reply.mode == "learning":
            return
        rules = self._understood(reply.rules) if reply.mode != "observe" else ()
        changed = (rules, reply.mode) != (self.wanted, self._mdsds)
        self.wanted, self.generation, self._mdsds = rules, reply.generation, reply.mode
        self._why = "mdsd no longer plans it" if reply.mode == "apply" else f"mdsd's mode is {reply.mode}"
        if changed:
            self._follow()

    def _follow(self) -> None:
        """Set what is wanted, as far as it can be now."""
        self._stopped = self.site.why
        if not self._trusted or (self.wanted and self.routes is None and not self.agent.engine.stopped):
            return
        possible = usable(self.wanted, self.routes or (), udsp.MOST_RULES)
        for reason in dict.fromkeys(reason for _, reason in possible.refused):
            self._give_up(reason, {str(rule) for rule, why in possible.refused if why == reason})
        plan = Plan(
            tuple(map(self._change, possible.rules)),
            tuple(CannotMend(RoutersLever.name, str(rule), reason) for rule, reason in possible.refused),
        )
        why = self._why if self.mode == "apply" else f"part.routers.mode is {self.mode}"
        if self._try(lambda: self.agent.follow(plan, self._allowed, why, wait_s=LOCK_S)):
            self._applied = self.generation
        self.manager.status(f"{len(self._set())} rules set")

    @property
    def _allowed(self) -> str:
        """What both this server's setting and mdsd's allow."""
        modes = (self.mode, self._mdsds)
        return next(mode for mode in ("observe", "advise", "apply") if mode in modes)

    def _change(self, rule: Rule) -> Change:
        return Change(
            lever=RoutersLever.name,
            target=str(rule),
            wanted={str(rule): SET},
            why=f"mdsd's rules of generation {self.generation}",
            asked_by="mdsd",
            lasts_s=self._silent_s,
        )

    def _give_up(self, reason: str, targets: set[str]) -> None:
        """Those of these that are set are taken back."""
        if targets & {target for _, target in self.agent.store.held_changes}:
            engine = self.agent.engine
            self._try(lambda: engine.take_back(reason, of=lambda held: held.change.target in targets))

    def _set(self) -> list[Rule]:
        """Ours that are set."""
        held = self.agent.store.held_changes.values()
        return [
            udsp.parsed(each.change.target)
            for each in held
            if not each.theirs and not any(part.value for part in each.before)
        ]

    def _understood(self, rules: Sequence[RouterRule]) -> tuple[Rule, ...]:
        valid: list[Rule] = []
        left = MAX_NUMBERS
        for each in rules[: RULES_TIMES * udsp.MOST_RULES]:
            try:
                rule = udsp.rule(each.dst, each.rte)
            except BadInput as error:
                self._said.warning(f"a rule of mdsd is not set: {error}")
                continue
            left -= sum(len(place) for pattern in rule for place in pattern.places)
            if left < 0:
                self._said.warning(
                    f"rules of mdsd are not set: expected at most {MAX_NUMBERS} numbers in them"
                )
                break
            valid.append(rule)
        return tuple(valid)

    def _routes(self) -> tuple[Route, ...] | None:
        """As debugfs says; `lnetctl route show` would need CAP_NET_ADMIN for the same. None: it cannot be read."""
        try:
            path = find(self.root, "lnet.routes").get("")
            if path:
                return _known(routing.parse_routes(reading.text(path)))
            why = "expected debugfs to be mounted and LNet to be loaded, found no such file"
        except (OSError, ValueError) as error:
            why = str(error)
        self._said.warning(f"lnet.routes: {why}; no rule is set without it", "lnet.routes")
        return None

    def _fs_names(self) -> tuple[str, ...]:
        targets = (ost_target(device) for device in find(self.root, "obdfilter.*.kbytestotal"))
        return tuple(sorted({target[0] for target in targets if target}))[:MAX_MOUNTED]

    def _try(self, call: Callable[[], object]) -> bool:
        """What goes wrong with the notes is said once."""
        try:
            call()
        except TarazuError as error:
            self._said.warning(str(error))
            return False
        return True

    def take_over(self, settings: config.Settings) -> None:
        options = settings.part.of("routers", Routers)
        if options.mode != self.mode:
            log.info("routers: %s", options.mode)
        self.options = options
        self.agent.take_over(settings)
        self.interval_s = min(INTERVAL_S, settings.ossd.interval_s)
        self._ticks.at_once()


def _rules_of(reply: PartReply) -> RouterRules:
    """Raises WireError."""
    try:
        return msgspec.msgpack.decode(reply.body, type=RouterRules)
    except MALFORMED as error:
        raise WireError("mdsd", "rules", str(error)) from None


def _known(states: Sequence[RouterState]) -> tuple[Route, ...]:
    """Without routers whose NIDs no rule can name, as IPv6 ones."""
    routes = []
    for state in states:
        with contextlib.suppress(BadInput):
            routes.append(Route(nids.net(state.net), nids.parse(state.nid), state.up))
    return tuple(routes)
