"""tarazu-ossd --routers: which LNet routers carry running jobs' bulk data, by rules on one OSS.

Follows: mdsd, asked every `INTERVAL_S` with the OSS's key for the rules of the jobs that run now. Publishes
nothing. Sets rules only where `forwarding.routers` is `apply`, here and at mdsd; with `advise` it says what it would
set. A rule is taken back when mdsd names it no more (its job has ended), when its routers are down, when mdsd is silent
for `SILENT_INTERVALS`, when this program starts (after a crash) or ends, and by `tarazu change routers --undo`. When
lnetctl fails it says so once and tries again, later each time. Of two on one server the second one waits. A process
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

from tarazu import config, nids
from tarazu.daemons.routers.keeper import LONGEST_PAUSE_S, Done, keeper_of
from tarazu.daemons.service import Service, Wakeup
from tarazu.errors import BadInput, TarazuError
from tarazu.forwarding.routers import udsp
from tarazu.forwarding.routers.difference import usable
from tarazu.forwarding.routers.udsp import Route, Rule
from tarazu.stats import reading, routing
from tarazu.stats.params import find, ost_target
from tarazu.wire.messages import MAX_MOUNTED, MAX_ROUTERS, RouterRule, RouterRules, RouterState, RulesRequest
from tarazu.wire.said import SaidOnce
from tarazu.wire.transport import Servers

log = logging.getLogger("tarazu.routers")

INTERVAL_S = 10.0
"""Between two questions to mdsd; `ossd.interval_s` where that is shorter."""
SILENT_INTERVALS = 6
"""Without an answer of mdsd for so long, nobody knows whether the jobs still run."""
RESEND_S = 0.2
"""While there is no answer, a look at what is to be sent again."""
RULES_TIMES, MAX_NUMBERS = 4, 400_000
"""Of one answer so many times `udsp.MOST_RULES` are looked at, with so many numbers: mdsd sends those first that are
worth most, and twelve characters may name 65,536 nodes.
"""


class RulesService(Service):
    """All state of the daemon."""

    USED = ("keys.", "state.", "ossd.", "mdsd.requests", "standby.requests", "forwarding.")

    def __init__(self, settings: config.Settings, wakeup: Wakeup, name: str = "") -> None:
        """`name`: its host's by default."""
        super().__init__(settings, wakeup)
        self.options = settings.forwarding
        self.interval_s = min(INTERVAL_S, settings.ossd.interval_s)
        self.root = Path(config.root())
        self.oss = name or socket.gethostname()
        self.keeper = keeper_of(settings, self.manager.alive)
        self.wanted: tuple[Rule, ...] = ()
        """What mdsd said last."""
        self.generation = 0
        self.routes: tuple[Route, ...] | None = None
        """None: they cannot be read."""
        self.heard_at = time.monotonic()
        self.asked = ""
        """Id of the question that has no answer yet."""
        self._why = "mdsd names it no more"
        """Why a rule goes that is wanted no more."""
        self._trusted = False
        """What a former run left has been taken back."""
        self._failures = 0
        self._pause_until = 0.0
        self._said = SaidOnce(log)
        self._advised: tuple[Rule, ...] = ()
        self.requester = self.connect("oss").requester(Servers(settings.requests()))
        self._ticks = self.every(lambda: self.interval_s, self._tick)
        asks = f"asks {self.requester.servers} every {self.interval_s:g} s"
        log.info(
            "%s, routers: %s; %s", self.oss, self.mode, "asks nobody" if self.mode == "observe" else asks
        )

    @property
    def mode(self) -> str:
        return self.options.routers

    def may_wait_s(self, now: float) -> float:
        return RESEND_S if self.asked else math.inf

    def turn(self, now: float) -> None:
        while (reply := self.requester.receive(0.0)) is not None:
            if isinstance(reply, RouterRules) and reply.message_id == self.asked:
                self._take(reply)

    def finish(self) -> None:
        """Everything of ours is taken back."""
        if self.claimed is not None:
            self._try(lambda: self.keeper.take_back("tarazu-ossd --routers ends", wait_s=5.0), whatever=True)

    def _tick(self, now: float) -> None:
        """Every interval: what a former run left goes, dead routers' rules go; then mdsd is asked."""
        if not self.alone(self.keeper.kept.claim, "does nothing", self._said):
            return
        if not self._trusted:
            self._trusted = self._try(lambda: self.keeper.take_back("left by a former run"))
        silent_s = now - self.heard_at
        if self.mode != "apply":
            self.wanted, self._why = (), f"forwarding.routers is {self.mode}"
        elif silent_s > SILENT_INTERVALS * self.interval_s and self.wanted:
            self._said.warning(f"mdsd is silent for {silent_s:.0f} s: its rules are taken back", "silent")
            self.wanted, self._why = (), "mdsd is silent"
        if self.mode != "observe":
            self.routes = self._routes()
            self._ask()
        self._follow()

    def _ask(self) -> None:
        if self.asked:
            self.requester.forget(self.asked)
        self.asked = f"rules-{secrets.token_hex(8)}"
        states = [RouterState(str(r.gateway), r.up, r.net) for r in self.routes or ()]
        ours = self.keeper.kept.rules
        self.requester.submit(
            RulesRequest(
                self.asked,
                self.oss,
                tuple(states[:MAX_ROUTERS]),
                self.keeper.kept.generation if ours else 0,
                tuple(RouterRule(str(rule.dst), str(rule.rte)) for rule in ours),
                "apply" if self.mode == "apply" and not self.keeper.kept.held else "advise",
                self._fs_names(),
            )
        )

    def _take(self, reply: RouterRules) -> None:
        self.asked = ""
        self.heard_at = time.monotonic()
        if reply.mode == "learning":
            return
        rules = self._understood(reply.rules) if reply.mode != "observe" else ()
        if "advise" in (reply.mode, self.mode):
            self._advise(rules)
            rules = ()
        changed = rules != self.wanted
        self.wanted, self.generation = rules, reply.generation
        self._why = "mdsd names it no more" if reply.mode == "apply" else f"mdsd's mode is {reply.mode}"
        if changed:
            self._follow()

    def _follow(self) -> None:
        """Set what is wanted, as far as it can be now."""
        if self.wanted and self.routes is None:
            return
        possible = usable(self.wanted, self.routes or (), udsp.MOST_RULES)
        for rule, reason in possible.refused:
            self._said.warning(f"{rule} is not set: {reason}")
        if self._trusted and (possible.rules or self.keeper.kept.rules):
            why = dict(possible.refused)
            self._try(lambda: self.keeper.apply(possible.rules, self.generation, self._why, why))
        self.manager.status(f"{len(self.keeper.kept.rules)} rules set")

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

    def _advise(self, rules: tuple[Rule, ...]) -> None:
        if rules != self._advised:
            shown = "; ".join(map(str, rules[: udsp.MOST_RULES])) or "no rule"
            log.info("with apply would be set: %s", shown)
        self._advised = rules

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

    def _try(self, call: Callable[[], Done | None], *, whatever: bool = False) -> bool:
        """True when it was done. What fails is said once, and not tried again for a while (`whatever`: it is)."""
        now = time.monotonic()
        if now < self._pause_until and not whatever:
            return False
        try:
            done = call()
        except TarazuError as error:
            self._failures += 1
            pause_s = min(LONGEST_PAUSE_S, self.interval_s * 2.0 ** min(self._failures, 16))
            self._pause_until = now + pause_s
            self._said.warning(f"{error}; the next try in {pause_s:.0f} s, and later each time", str(error))
            return False
        if self._failures and isinstance(done, Done):
            log.info("rules can be set again")
            self._failures = 0
        if done and done.postponed:
            self._said.warning(
                f"{done.postponed} rules wait (so many are added in a minute at most)", "postponed"
            )
        for said in done.refused if done else ():
            self._said.warning(f"{said}; this rule is tried again later, and later each time")
        return True

    def take_over(self, settings: config.Settings) -> None:
        if settings.forwarding.routers != self.mode:
            log.info("routers: %s", settings.forwarding.routers)
        self.options = settings.forwarding
        self.interval_s = min(INTERVAL_S, settings.ossd.interval_s)
        self._ticks.at_once()


def _known(states: Sequence[RouterState]) -> tuple[Route, ...]:
    """Without routers whose NIDs no rule can name, as IPv6 ones."""
    routes = []
    for state in states:
        with contextlib.suppress(BadInput):
            routes.append(Route(nids.net(state.net), nids.parse(state.nid), state.up))
    return tuple(routes)
