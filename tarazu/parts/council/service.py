"""tarazu-council: what the nodes of one group should have in force, learned from what they see.

Follows: announcers, which say once a second what their node saw while it has I/O; each is answered at once, and all
are told when a decision changes. Publishes nothing. Decides only with mode `apply`; with `observe`, the default, it
learns what is in force, with `advise` it also says what it would decide. What it has learned is on disk, and is
written beside the loop. A node that is silent delays nobody. While the site's stop file is there its mode is
`observe`: nodes take back what they have set; so they do when this program is silent. SIGTERM and SIGINT end it,
SIGHUP makes it read its settings again.
"""

from __future__ import annotations

import argparse
import json
import logging
import secrets
import socket
import sys
import time
from collections.abc import Collection, Iterator
from typing import Any

from tarazu import config
from tarazu.daemons.service import Service, Wakeup, claim, parser, serve
from tarazu.daemons.writer import Writer
from tarazu.errors import ConfigError, TarazuError
from tarazu.figures import Family, Histogram, counter, counters, gauge, histogram
from tarazu.parts.changes.ordered import Mode
from tarazu.parts.council import exchange
from tarazu.parts.council.council import ROUND_S, Decision, Rules
from tarazu.parts.council.councils import Councils
from tarazu.parts.council.exchange import (
    MODES,
    Asked,
    CouncilEnd,
    Decided,
    Observed,
    Refused,
    TuneStatus,
    encode,
)
from tarazu.parts.council.here import CouncilDirectory
from tarazu.parts.council.levers import USUAL, levers_of
from tarazu.parts.council.nodes import CouncilNodes
from tarazu.parts.council.settings import council_of, options_of
from tarazu.store.stop import SiteWatch
from tarazu.units import counted
from tarazu.wire.said import SaidOnce
from tarazu.wire.transport import Peer, of_sockets

log = logging.getLogger("tarazu.council")

NAME = "tarazu-council"
AT_ONCE, BATCH_S = 1024, 0.02
"""After so many messages, or so long, those are answered: of many that report at once most get one answer."""
LOOK_S = 1.0
"""So often it is looked which mode was ordered, and who is silent."""
SAVE_S = 5.0
"""So much learning a crash costs at most."""
WHY_CHARACTERS = 500
"""Characters of a reason in the status: people may have written more."""
TELL_AGAIN_S, SHARE = 0.2, 0.02
"""How it is, and what was learned, is put together so often at most, and for no more than a fiftieth of the time. Who
asks meanwhile has no answer, and asks again.
"""
WORSE = 0.2
"""A value under which the same pattern is slower by this share is taken back at once."""


class CouncilService(Service):
    """All state of the daemon."""

    USED = ("keys.", "state.", "run.stop_file", "part.council.")

    def __init__(self, settings: config.Settings, wakeup: Wakeup) -> None:
        """Raises ConfigError, BadInput, StoreError, WireError; Unavailable where there is another one."""
        super().__init__(settings, wakeup, options_of(settings).metrics)
        self.options = options_of(settings)
        if not self.options.address:
            raise ConfigError(
                "part.council.address", "the address at which this council listens, tcp://mds1:5774", ""
            )
        self.name = socket.gethostname()
        self.levers = levers_of(self.options.levers) or USUAL
        self.kept = CouncilDirectory(council_of(settings))
        self.claimed = claim(self.kept.directory, "another tarazu-council has its knowledge here")
        self.writer = Writer()
        self.refused = 0
        self.answers = Histogram()
        """From the receipt of a message to the answers of all that were there with it."""
        self.changed_at = time.monotonic()
        self._said = SaidOnce(log)
        self._save_at = self._save_free_at = self.changed_at
        """When what was learned is written next; before when it is not, because to put it together takes a while."""
        self._ask_free_at = self.changed_at
        """When the next one who asks how it is is answered."""
        self.site = SiteWatch(settings.run.stop_file)
        self.site.start()
        self.why_mode = ""
        self.council = Councils(
            self.levers,
            Rules(exchange.DWELL_S, WORSE, ROUND_S * exchange.INTERVAL_S),
            seed=secrets.randbits(32),
            mode=self._mode(),
        )
        self._remember()
        self.nodes = CouncilNodes(self.options.group, exchange.INTERVAL_S, exchange.SILENT_S)
        self._decision = self.council.group.decision
        self._advised: dict[str, str] = {}
        self.transport = self.connect("server")
        self.end = CouncilEnd(self.transport, self.options.address)
        log.info(
            "council of group %s at %s (%s): %s (%s); levers: %s",
            json.dumps(self.options.group),
            self.end.address,
            "with keys" if self.transport.curve else "without keys",
            self.council.mode,
            self.why_mode,
            ", ".join(self.levers) or "none",
        )
        self._looks = self.every(lambda: LOOK_S, self._look)

    def _remember(self) -> None:
        """Go on from what was learned. A damaged file is renamed and ignored: that costs learning, never the daemon."""
        try:
            knowledge = self.kept.knowledge()
            if knowledge is None:
                return
            data, age_s = knowledge
            left = self.council.restore(data, values=age_s < exchange.SILENT_S)
        except TarazuError as error:
            self.kept.set_aside()
            log.error("%s: renamed to unreadable.json; learning starts from nothing", error)
            return
        for text in left:
            log.warning("no longer used: what was learned of %s", text)
        log.info("continues from what was learned %.0f s ago", age_s)

    def _mode(self) -> Mode:
        """What was ordered, or the setting; `observe` while the site is stopped, or nobody knows what was ordered."""
        if self.site.why:
            self.why_mode = self.site.why
            return "observe"
        try:
            ordered = self.kept.ordered()
        except TarazuError as error:
            self._said.warning(f"{error}: mode observe is used", "mode")
            self.why_mode = str(error)
            return "observe"
        if ordered is not None:
            self.why_mode = ordered.reason or "ordered by tarazu change tune"
            return ordered.mode
        self.why_mode = "part.council.mode"
        mode: Mode = self.options.mode  # type: ignore[assignment]
        return mode

    def begin(self) -> None:
        self._audit("mode", mode=self.council.mode, why=self.why_mode)

    def may_wait_s(self, now: float) -> float:
        return exchange.INTERVAL_S / 2  # a round may be over

    def turn(self, now: float) -> None:
        self._hear()
        self._decide(time.monotonic())

    def finish(self) -> None:
        """What was learned is written."""
        self._save(whole=True)

    def _hear(self) -> None:
        """All that is there; each is answered with what is decided by then."""
        answered: dict[bytes, str] = {}
        begin = time.monotonic()
        for _ in range(AT_ONCE):
            if (got := self.end.receive()) is None:
                break
            peer, message = got
            now = time.monotonic()
            if isinstance(message, Asked):
                if now >= self._ask_free_at:
                    self.end.send(peer.route, self._status(message, now))
            elif self._listens(peer, message, now):
                if peer.route in answered:
                    self.end.send(peer.route, self._decided(answered[peer.route], peer.route))
                answered[peer.route] = message.message_id
            if now > begin + BATCH_S:
                break
        if not answered:
            return
        self._decide(time.monotonic(), answered)
        for route, message_id in answered.items():
            self.end.send(route, self._decided(message_id, route))
        self.answers.observe(time.monotonic() - begin)

    def _listens(self, peer: Peer, message: Observed, now: float) -> bool:
        """False for an announcer that is refused."""
        why = self.nodes.refusal(peer, message, now, self._gone)
        if why:
            self.refused += 1
            who = f"{message.host} at {peer.name}"
            self._said.warning(
                f"the reports of {who} are refused: {why}", f"{peer.name} {peer.key} {why[:24]}"
            )
            self.end.send(peer.route, encode(Refused(message.message_id, why)))
            return False
        if self.nodes.take(message, now):
            if message.problem:
                self._said.warning(f"{message.host}: {message.problem}", f"{message.host} {message.problem}")
            why, decided = self.council.receive(
                message.host, message.kind, message.observation, message.in_force, now, message.mode
            )
            if decided is not None:  # it is told with the answer
                self._audit_decision(decided, node=message.host)
            if why:
                self._said.warning(
                    f"{message.host} reports impossible values: {why}", f"impossible {message.host}"
                )
        return True

    def _gone(self, route: bytes) -> bool:
        """Whether a silent announcer has disconnected. One that is there only gets what it has already."""
        return not self.end.send(route, self._decided("", route))

    def _decide(self, now: float, answered: Collection[bytes] = ()) -> None:
        """It is sent to all when it changes, except to those that are about to be answered."""
        decision = self.council.group.decide(now)
        if decision is not self._decision:
            self._decision = decision
            self._tell_all(answered)
            self._audit_decision(decision, nodes=self.council.group.active)

    def _tell_all(self, answered: Collection[bytes] = ()) -> None:
        for node in self.nodes.of.values():
            if node.route not in answered:
                self.end.send(node.route, self._decided("", node.route))

    def _audit_decision(self, decision: Decision, **whose: object) -> None:
        self.changed_at = now = time.monotonic()
        kind = "taken-back" if decision.taken_back else "tried" if decision.explored else "decided"
        self._audit(
            kind,
            generation=decision.generation,
            values=" ".join(f"{lever}={value}" for lever, value in decision.values.items()),
            why=decision.why,
            **whose,
        )
        self._save_at = max(now, self._save_free_at)

    def _decided(self, message_id: str, route: bytes) -> bytes:
        """What the node on this route should have."""
        host, mode = self.nodes.host(route), self.council.mode
        decision, values = self.council.of(host), self._advised
        if mode != "advise":
            values = decision.values
        elif host in self.council.clients:
            values = self.council.advice(host)
        return encode(
            Decided(
                message_id,
                self.name,
                self.nodes.group,
                decision.generation,
                mode,
                values,
                decision.why[:WHY_CHARACTERS],
            )
        )

    def _look(self, now: float) -> None:
        """Once a second: orders, silence, what is to be written."""
        mode = self._mode()
        if mode != self.council.mode:
            self._audit("mode", mode=mode, was=self.council.mode, why=self.why_mode)
            self.council.set_mode(mode, now, self.why_mode)
            self._decide(now)
        self._advised = self.council.group.advice() if mode == "advise" else {}
        for host in self.nodes.silent(now):
            self.nodes.forget(host)
            self.council.silent(host)
        if now >= self._save_at:
            self._save()
        if self.writer.trouble:
            self._said.warning(f"what was learned cannot be written: {self.writer.trouble}")
        self.manager.status(
            f"{counted(len(self.nodes), 'node')}, {self.council.sum('active')} with I/O; {mode}"
        )

    def _save(self, *, whole: bool = False) -> None:
        begin = time.monotonic()
        data = self.council.knowledge(whole=whole)
        took_s = time.monotonic() - begin
        self._save_free_at = begin + took_s / SHARE
        self._save_at = begin + max(SAVE_S, took_s / SHARE)
        self.writer.write(self.kept.write_knowledge, lambda: data)

    def _how(self, now: float) -> dict[str, Any]:
        """How it is, for people (`tarazu change tune show`): plain values only; `now` is on the monotonic clock."""
        council, nodes = self.council, self.nodes
        decision, group = council.group.decision, council.group
        return {
            "council": self.name,
            "group": nodes.group,
            "mode": council.mode,
            "why_mode": self.why_mode,
            "learner": group.learner,
            "keys": self.transport.curve is not None,
            "decision": {
                "generation": decision.generation,
                "values": decision.values,
                "why": decision.why,
                "since_s": now - self.changed_at,
            },
            "advice": group.advice() if council.mode == "advise" else {},
            "in_force": council.in_force(),
            "choices": council.sum("choices"),
            "explored": council.sum("explored"),
            "taken_back": council.sum("taken_back"),
            "nodes_with_io": council.sum("active"),
            "nodes": {
                host: {
                    "kind": node.observed.kind,
                    "age_s": now - node.heard_at,
                    "mode": node.mode,
                    "in_force": node.observed.in_force,
                    "bytes_per_s": node.observed.observation.bytes_per_s
                    if node.observed.observation
                    else 0.0,
                    "problem": node.observed.problem,
                    **self._of_client(host),
                }
                for host, node in nodes.of.items()
                if node.observed
            },
        }

    def _of_client(self, host: str) -> dict[str, Any]:
        """What is decided for it alone."""
        if host not in self.council.clients:
            return {}
        decision = self.council.of(host)
        advice = self.council.advice(host) if self.council.mode == "advise" else {}
        return {"decided": decision.values, "why": decision.why, "advice": advice}

    def _status(self, asked: Asked, now: float) -> bytes:
        status = encode(TuneStatus(asked.message_id, {**self._how(now), "learned": self.council.explain()}))
        self._ask_free_at = now + max(TELL_AGAIN_S, (time.monotonic() - now) / SHARE)
        return status

    def take_over(self, settings: config.Settings) -> None:
        self.options = options_of(settings)
        self._looks.at_once()

    def _audit(self, what: str, **fields: object) -> None:
        """A line of `name=value`, as mdsd's."""
        shown = " ".join(
            f"{name}={json.dumps(value) if isinstance(value, str) else value}"
            for name, value in fields.items()
        )
        log.info("time=%s tune=%s %s", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), what, shown)

    def figures(self) -> Iterator[Family]:
        council, nodes = self.council, self.nodes
        yield gauge("council_mode", "0 observe, 1 advise, 2 apply.", MODES.index(council.mode))
        yield gauge("council_nodes", "Nodes with an announcer.", len(nodes))
        yield gauge("council_nodes_with_io", "Nodes with I/O, which have a vote.", council.sum("active"))
        yield counter("council_choices", "Rounds in which a learner chose.", council.sum("choices"))
        yield counter("council_explored", "Rounds that tried a value to learn.", council.sum("explored"))
        yield counter(
            "council_taken_back",
            "Values that were taken back because they made things worse.",
            council.sum("taken_back"),
        )
        yield histogram(
            "council_answer_seconds",
            "Time from a node's message to the answers to all nodes.",
            self.answers,
        )
        by_reason = {
            "refused": self.refused,
            "too_often": nodes.too_often,
            "impossible": council.sum("impossible"),
        }
        yield counters(
            "council_not_learned", "Messages that were not learned from, by reason.", "reason", by_reason
        )
        decided = Family(
            "gauge", "council_in_force", "Nodes on which a lever has this value.", ("lever", "value")
        )
        for lever, values in council.in_force().items():
            for value, count in values.items():
                if value in self.levers.get(lever, ()):
                    decided.samples[lever, value] = count
        yield decided
        yield gauge(
            "council_knowledge_writable", "0 while knowledge cannot be written.", not self.writer.trouble
        )
        yield from of_sockets("council", {"announcers": self.end.counts})

    def release(self) -> None:
        self.site.end()
        self.writer.close()


def command_line() -> argparse.ArgumentParser:
    """Its options."""
    return parser(
        NAME, "Learn which values of parameters serve access patterns, and decide for a group of nodes."
    )


def main(argv: list[str] | None = None) -> int:
    chosen = command_line().parse_args(argv)

    def read() -> config.Settings:
        """The configuration with the command line's options on top. Raises ConfigError."""
        return config.override(config.load(chosen.config), "keys", directory=chosen.keys)

    return serve(NAME, chosen, read, CouncilService)


if __name__ == "__main__":
    sys.exit(main())
