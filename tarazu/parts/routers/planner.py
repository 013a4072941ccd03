"""Which routers each running job gets, and the rules that OSSs get. Nodes without one of a job's have those of
the site's mapping (`mapped`), where there is one.

Follows: `StepNodes` of leaders, `RulesRequest`s of OSSs, which say what routers there are. All of it is soft state: a
mdsd that has just begun answers `learning` until every leader has had the time to speak, so that no OSS takes back what
it has. Plans are made in a thread, one at a time. The rules are no promise: without them all routes are taken alike.
"""

from __future__ import annotations

import json
import logging
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from tarazu import config, nids
from tarazu.batch.jobs import JobNodes
from tarazu.daemons.mdsd.limits import MAX_SERVERS
from tarazu.errors import BadInput, ConfigError
from tarazu.nids import Nid
from tarazu.parts.forwarding.application import Application
from tarazu.parts.forwarding.joint.policy import Joint
from tarazu.parts.routers import placing
from tarazu.parts.routers.confirmed import Confirmed, by_leaders, by_scheduler
from tarazu.parts.routers.hosts import Hosts
from tarazu.parts.routers.mapped import Followed
from tarazu.parts.routers.mapped import rules_of as rules_of_mapping
from tarazu.parts.routers.mapping_file import InForce, path_of
from tarazu.parts.routers.messages import MAX_RULES, RouterRule, RouterRules, RulesRequest, StepNodes
from tarazu.parts.routers.nodes import MAX_NODES, MAX_NODES_OF_STEP, Nodes, RoutedStep
from tarazu.parts.routers.scheduler import Scheduler
from tarazu.parts.routers.settings import Routers
from tarazu.parts.routers.udsp import MOST_RULES, Rule
from tarazu.wire.bounds import MAX_ROUTERS
from tarazu.wire.said import SaidOnce

log = logging.getLogger("tarazu.mdsd")

LEARN_INTERVALS = 2
"""A leader whose clientd was asked again has spoken within so many `run.alive_s`."""
GAIN = 0.05
"""Running jobs get other routers only where the mean slowdown of their I/O falls by this share."""
RETURNS_S = 30.0
"""A router that was down is used again after it was up for so long."""
PLAN_S, PLAN_TIMES = 1.0, 10.0
"""Plans begin so far apart at least, and so many times as long as one takes."""
LOOK_S = 15.0
"""So often what the scheduler says is looked at."""
MAX_PLANNED = 2_000
"""Steps of which something is known; the data of further ones take all routes."""
MAX_SHOWN = 1_000

Way = tuple[str, str]
"""(the servers' network, the nodes' network)."""


class _Oss(NamedTuple):
    request: RulesRequest
    heard: float


class _Task(NamedTuple):
    """What a plan is made of."""

    steps: tuple[RoutedStep, ...]
    listed: Mapping[str, JobNodes] | None
    """None: there is no scheduler."""
    routers: Mapping[Way, tuple[Nid, ...]]
    current: Mapping[Way, placing.Placed]
    before: Mapping[Nid, frozenset[Nid]]
    """Node → routers, as OSSs had it set when they first asked."""
    policy: Joint
    gain: float


class Result(NamedTuple):
    confirmed: tuple[Confirmed, ...] = ()
    plans: Mapping[Way, placing.RouterPlan] = {}
    rules: Mapping[Way, Mapping[str, tuple[Rule, ...]]] = {}
    """By file system."""
    mapping: InForce | None = None
    """What nodes follow that have no rule of a job's."""
    mapped: Mapping[Way, tuple[Rule, ...]] = {}


class RouterPlan:
    """All of it. `wake` ends mdsd's sleep, from any thread. Times are monotonic seconds."""

    def __init__(
        self,
        settings: config.Settings,
        own: Routers,
        note: Callable[[Mapping[str, object]], None],
        wake: Callable[[], None],
    ) -> None:
        """`note` writes a line of the audit log. Raises ConfigError."""
        self.mode, self.most = own.mode, MOST_RULES
        self.nodes = Nodes()
        self._learn_s = LEARN_INTERVALS * settings.run.alive_s
        self.learn_until = time.monotonic() + self._learn_s
        self._learned = False
        """A plan was made of all that leaders have said."""
        self.result = Result()
        self.plans = 0
        self.scheduler = Scheduler(own.scheduler) if own.scheduler else None
        self.mapping = Followed(path_of(settings))
        self._note, self._wake = note, wake
        self._osses: dict[str, _Oss] = {}
        self._forget_s = settings.mdsd.stale_after_s
        self._down: dict[tuple[str, str], float] = {}
        """(router, network) → when it was last seen down."""
        self._sort_at = 0.0
        """When the usable routers may be others than they were."""
        self._routers: dict[Way, tuple[Nid, ...]] = {}
        self._before: dict[Nid, frozenset[Nid]] = {}
        self._due = self._look = 0.0
        self._running: Future[Result] | None = None
        self._began = 0.0
        self._worker = ThreadPoolExecutor(1, "tarazu-routers")
        self._said = SaidOnce(log)
        self._started = False
        self._policy = Joint() if own.mode != "observe" else None
        try:
            self._hosts = Hosts(own.nids)
        except BadInput as error:
            raise ConfigError("part.routers.nids", error.expected, error.found) from None

    def take_over(self, own: Routers) -> None:
        """New settings; another mode has its effect at once."""
        self._policy = Joint() if own.mode != "observe" else None
        if self.mode == "observe":
            self.learn_anew(time.monotonic())
        self.mode = own.mode
        self.nodes.changed = True

    def learn_anew(self, now: float) -> None:
        """What runs, and what servers have, is not known yet."""
        self.learn_until, self._learned = now + self._learn_s, False
        self._osses.clear()

    def tell(self, uid: int, message: StepNodes, now: float) -> str:
        """A leader of this user says where its step runs; why that is not taken."""
        why = self.nodes.take(uid, message, now)
        if why:
            self._said.warning(f"nodes of a step: {why}")
        return why

    def answer(self, request: RulesRequest, now: float, stopped: bool = False) -> RouterRules:
        """What one OSS should have set now. `stopped`: the site has stopped tarazu."""
        if request.oss not in self._osses and len(self._osses) >= MAX_SERVERS:
            return RouterRules(1, "observe")
        known = self._osses.get(request.oss)
        self._osses[request.oss] = _Oss(request, now)
        if known is None or known.request.routers != request.routers:
            self._sort_at = 0.0
        if self.mode == "observe" or stopped:
            return RouterRules(1, "observe")
        ways = {(_net_of(state.nid), state.net) for state in request.routers}
        if not self._learned or any(all(way) and way not in self.result.plans for way in ways):
            # Also an OSS that speaks late: as long as nothing was planned for its routers, it keeps what it has.
            if known is None:
                self._remember(request)
            return RouterRules(1, "learning")
        rules = self.rules_of(request)
        sent = tuple(RouterRule(str(rule.dst), str(rule.rte)) for rule in rules)
        number = zlib.crc32(msgspec.msgpack.encode(sent)) or 1
        return RouterRules(number, "apply" if self.mode == "apply" else "advise", sent)

    def rules_of(self, request: RulesRequest) -> tuple[Rule, ...]:
        """Those of the routers that it sees, for the steps on its file systems; then the mapping's."""
        ways = {(_net_of(state.nid), state.net) for state in request.routers}
        rule_set: dict[Rule, None] = {}
        for way, by_fs in self.result.rules.items():
            if way not in ways:
                continue
            for fs_name, rules in by_fs.items():
                if not request.fs_names or fs_name in request.fs_names:
                    rule_set.update(dict.fromkeys(rules))
        for way, rules in self.result.mapped.items():
            if way in ways:
                rule_set.update(dict.fromkeys(rules))
        return tuple(rule_set)[:MAX_RULES]

    def look(self, now: float) -> None:
        """Take what the thread has done; let it plan when there is something new, and time for it."""
        if self._policy and self.scheduler and not self._started:
            self._started = True
            self.scheduler.start()
        if self._running and self._running.done():
            self._finish(self._running, now)
            self._running = None
        if self._policy is None:
            self.result, self.nodes.changed = Result(), False
            return
        if self._running or now < self._due:
            return
        routers = self._usable(now)
        again = self.scheduler is not None and now >= self._look and len(self.nodes) > 0
        again |= not self._learned and now >= self.learn_until
        again |= self.mapping.look(now)
        if not (self.nodes.changed or again or routers != self._routers):
            return
        self.nodes.changed = False
        self._routers, self._look, self._began = routers, now + LOOK_S, now
        task = _Task(
            self.nodes.steps(),
            self.scheduler.jobs if self.scheduler else None,
            routers,
            {way: plan.placed for way, plan in self.result.plans.items()},
            dict(self._before),
            self._policy,
            GAIN,
        )
        self._running = self._worker.submit(self._plan, task)
        self._running.add_done_callback(lambda _: self._wake())

    def next_s(self, now: float) -> float:
        """When `look` may have something to do, on the monotonic clock."""
        return self._due if self.nodes.changed and not self._running else now + 60.0

    def pass_time(self, now: float) -> None:
        """Once a second."""
        for step in self.nodes.pass_time(now):
            log.info(
                "job step %s on %s stopped reporting: it loses its routers",
                step.job_id,
                step.fs_name,
            )
        if any(now - oss.heard >= self._forget_s for oss in self._osses.values()):
            self._osses = {n: oss for n, oss in self._osses.items() if now - oss.heard < self._forget_s}
            self._sort_at = 0.0
        if self._before and now > self.learn_until + RETURNS_S:
            self._before = {}

    @property
    def servers(self) -> int:
        """OSSs that ask."""
        return len(self._osses)

    @property
    def placed(self) -> int:
        """Steps with routers of their own."""
        return len({id for plan in self.result.plans.values() for id in plan.placed})

    def close(self) -> None:
        if self.scheduler:
            self.scheduler.close()
        self._worker.shutdown(wait=True)

    def _usable(self, now: float) -> dict[Way, tuple[Nid, ...]]:
        """Routers that most OSSs with routes to that network see up, and did for a while."""
        if now < self._sort_at:
            return self._routers
        up: Counter[tuple[str, str]] = Counter()
        asking: Counter[Way] = Counter()
        named: set[tuple[str, str]] = set()
        # Most OSSs see the same.
        for states, osses in Counter(oss.request.routers for oss in self._osses.values()).items():
            named.update((state.nid, state.net) for state in states)
            for key in {(state.nid, state.net) for state in states if state.up}:
                up[key] += osses
            for way in {(_net_of(state.nid), state.net) for state in states}:
                asking[way] += osses
        by_way: dict[Way, set[Nid]] = {way: set() for way in asking if all(way)}
        down = dict.fromkeys(named, now)
        for key, osses in up.items():
            way = (_net_of(key[0]), key[1])
            if 2 * osses > asking[way]:
                del down[key]
                router = _parsed(key[0])
                if way in by_way and router and now - self._down.get(key, -RETURNS_S) >= RETURNS_S:
                    by_way[way].add(router)
        self._down = {key: at for key, at in self._down.items() if now - at < RETURNS_S} | down
        waiting = [at + RETURNS_S for key, at in self._down.items() if key not in down]
        self._sort_at = min(waiting, default=now + LOOK_S)
        return {way: tuple(sorted(routers)) for way, routers in by_way.items()}

    def _remember(self, request: RulesRequest) -> None:
        """What an OSS has set tells which routers jobs had."""
        room = MAX_NODES_OF_STEP
        for rule in request.rules:
            try:
                nodes, routers = nids.unfold(rule.dst, room), frozenset(nids.unfold(rule.rte, MAX_ROUTERS))
            except BadInput:
                return  # ours can be read: the others are no better, and reading them all takes long
            room -= len(nodes)
            if len(self._before) < MAX_NODES:
                self._before.update(dict.fromkeys(nodes, routers))

    def _plan(self, task: _Task) -> Result:
        """In the thread."""
        if task.listed is None:
            confirmed = by_leaders(task.steps)
        else:
            confirmed = by_scheduler(task.steps, task.listed, self._hosts)
        plans: dict[Way, placing.RouterPlan] = {}
        rules: dict[Way, dict[str, tuple[Rule, ...]]] = {}
        for way, routers in task.routers.items():
            jobs = [
                (one.step.fs_name, placing.RunningJob(one.step.id, nodes, _on(one.step.application, nodes)))
                for one in confirmed
                if one.step.application
                and (nodes := frozenset(node for node in one.nodes if node.net == way[1]))
            ][:MAX_PLANNED]
            current = dict(task.current.get(way, {}))
            for _, job in jobs:
                had = {task.before.get(node) for node in job.nodes}
                if job.id not in current and len(had) == 1 and (set_before := had.pop()):
                    current[job.id] = tuple(sorted(set_before))
            plan = placing.plan([job for _, job in jobs], routers, task.policy, current, task.gain)
            plans[way] = plan
            rules[way] = {
                fs_name: placing.rules([job for of, job in jobs if of == fs_name], plan, routers)
                for fs_name in dict.fromkeys(of for of, _ in jobs)
            }
        # Nodes of a job on another file system than an OSS's are left to that job's rules there too: they are few.
        taken = {way: [rule for its in by_fs.values() for rule in its] for way, by_fs in rules.items()}
        mapping = self.mapping.read()
        mapped = rules_of_mapping(mapping, task.routers, taken)
        return Result(tuple(confirmed), plans, rules, mapping, mapped)

    def _finish(self, done: Future[Result], now: float) -> None:
        self._due = now + max(PLAN_S, PLAN_TIMES * (now - self._began))
        try:
            new = done.result()
        except Exception:
            log.exception("planning routers failed")
            self._due = now + LOOK_S
            return
        before, self.result = self.result, new
        self._learned |= self._began >= self.learn_until
        self.plans += 1
        for one in new.confirmed:
            if one.why:
                self._said.warning(f"routers of job {one.step.job_id} of uid {one.step.uid}: {one.why}")
        if new.mapping != before.mapping:
            self._note(_mapping_fields(self.mode, new.mapping))
        self._write_down(before, new)

    def _write_down(self, before: Result, now: Result) -> None:
        """A line for each step whose routers have changed, with the I/O-SlowDown expected, and that with all alike."""
        steps = {one.step.id: one for one in (*before.confirmed, *now.confirmed)}
        for way in {**before.plans, **now.plans}:
            was = before.plans[way].placed if way in before.plans else {}
            plan = now.plans.get(way)
            placed = plan.placed if plan else {}
            for id in {**was, **placed}:
                if was.get(id) == placed.get(id):
                    continue
                one = steps[id]
                expected = (plan.slowdown[id], plan.alike[id]) if plan and id in placed else None
                routers = nids.text(nids.fold(placed.get(id, ())))
                step = one.step
                fields = {
                    "what": "routers",
                    "mode": self.mode,
                    "fs": json.dumps(step.fs_name),
                    "uid": step.uid,
                    "job": json.dumps(step.job_id),
                    "nodes": len(one.nodes),
                    "routers": json.dumps(routers),
                }
                if expected:
                    fields |= {"slowdown": f"{expected[0]:.3f}", "alike": f"{expected[1]:.3f}"}
                self._note(fields)

    def status(self, now: float) -> dict[str, Any]:
        """For people; who may see which of it is up to clientd."""
        return {
            "mode": self.mode,
            "policy": self._policy.name if self._policy else "",
            "learning": not self._learned and self.mode != "observe",
            "steps": len(self.nodes),
            "refused": self.nodes.refused,
            "plans": self.plans,
            "scheduler": self._status_of_scheduler(),
            "routers": {
                f"{servers} to {net}": nids.text(nids.fold(routers))
                for (servers, net), routers in self._routers.items()
            },
            "osses": {
                name: {
                    "age_s": now - oss.heard,
                    "mode": oss.request.mode,
                    "up": sum(state.up for state in oss.request.routers),
                    "down": [state.nid for state in oss.request.routers if not state.up],
                    "rules_set": len(oss.request.rules),
                    "rules": rules,
                }
                for name, oss, rules in self._shown()
            },
            "jobs": self._status_of_jobs(),
            "mapping": self._status_of_mapping(),
        }

    def _shown(self) -> Iterator[tuple[str, _Oss, list[str]]]:
        """OSSs with as many of their rules as they set, most of them alike."""
        alike: dict[tuple[Any, ...], list[str]] = {}
        for name, oss in sorted(self._osses.items())[:MAX_SHOWN]:
            key = oss.request.routers, oss.request.fs_names
            if key not in alike:
                alike[key] = [str(rule) for rule in self.rules_of(oss.request)[: min(self.most, MAX_SHOWN)]]
            yield name, oss, alike[key]

    def _status_of_scheduler(self) -> dict[str, Any] | None:
        if not self.scheduler:
            return None
        return {
            "source": self.scheduler.source,
            "jobs": len(self.scheduler.jobs),
            "problem": self.scheduler.problem,
        }

    def _status_of_mapping(self) -> dict[str, Any] | None:
        """None where none is followed."""
        mapping = self.result.mapping
        if mapping is None:
            return {"problem": self.mapping.problem} if self.mapping.problem else None
        return {
            "how": mapping.how,
            "made": mapping.made,
            "nodes": mapping.nodes,
            "rules": {
                f"{servers} to {net}": len(rules) for (servers, net), rules in self.result.mapped.items()
            },
            "mapped": {
                f"{servers} to {net}": sum(rule.dst.size for rule in rules)
                for (servers, net), rules in self.result.mapped.items()
            },
            "problem": self.mapping.problem,
        }

    def _status_of_jobs(self) -> list[dict[str, Any]]:
        jobs = []
        for one in self.result.confirmed[:MAX_SHOWN]:
            its = [(plan, way) for way, plan in self.result.plans.items() if one.step.id in plan.placed]
            routers = [router for plan, _ in its for router in plan.placed[one.step.id]]
            jobs.append(
                {
                    "job": one.step.job_id,
                    "uid": one.step.uid,
                    "fs": one.step.fs_name,
                    "nodes": len(one.nodes),
                    "why": one.why,
                    "known": one.step.application is not None,
                    "count": len(routers),
                    "routers": nids.text(nids.fold(routers)),
                    "slowdown": max((p.slowdown[one.step.id] for p, _ in its), default=None),
                    "alike": max((p.alike[one.step.id] for p, _ in its), default=None),
                }
            )
        return jobs


def _mapping_fields(mode: str, mapping: InForce | None) -> dict[str, object]:
    """Of the audit's line: nodes follow another mapping to routers than they did; None: none any more."""
    fields: dict[str, object] = {
        "what": "mapping",
        "mode": mode,
        "how": json.dumps(mapping.how if mapping else ""),
    }
    if mapping:
        fields |= {
            "made": mapping.made,
            "uid": mapping.uid,
            "nodes": mapping.nodes,
            "rules": len(mapping.rules),
        }
    return fields


def _on(application: Application, nodes: frozenset[Nid]) -> Application:
    """With as many nodes as count, whatever its profile says: they are its weight among the others."""
    return msgspec.structs.replace(application, nodes=len(nodes))


@lru_cache(4096)
def _parsed(text: str) -> Nid | None:
    try:
        return nids.parse(text)
    except BadInput:
        return None


def _net_of(text: str) -> str:
    router = _parsed(text)
    return router.net if router else ""
