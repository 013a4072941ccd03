"""The council: from what all nodes of a group see to what all of them should have in force (paper, section IV-A).

Pure: no clock, no sockets, no files. The daemon and the simulator give it observations and ask it to decide.

A round: every node with I/O has spoken since the last choice, or the first that did is `round_s` ago: one that is
silent delays nobody. Then the learner of one lever chooses (the majority of the nodes with I/O, or to explore). One
lever moves at a time, for a turn of some choices, and rests on a value that was not chosen to explore. A value stays
for `dwell_s`, unless it makes the same pattern worse: then the one before comes back at once, and it is not tried
again for a while.
"""

from __future__ import annotations

import math
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

from tarazu.errors import BadInput, TarazuError
from tarazu.malformed import MALFORMED, described
from tarazu.parts.changes.ordered import Mode
from tarazu.parts.council.learning.learner import Learner
from tarazu.parts.council.learning.ours import Tarazu
from tarazu.parts.council.pattern import PHASE, Observation, Pattern, impossible
from tarazu.parts.council.pattern import detect as detect_pattern
from tarazu.parts.council.trial import PATTERNS, Before, LearnedLever, Trial, TrialRewards, Verdict

FORMAT = 2
ROUND_S = 1.5
"""Once and a half the interval of announcers."""
TRIAL_DWELLS, TRIAL_ROUNDS = 3.0, 20.0
"""The longer of both: so long a value that has come is compared with the one before."""
CHOICES_PER_VALUE = 3
"""Of a lever's turn, while other levers wait for theirs."""
OWN_INTERVALS = 3
"""So often a client must have a value that is not listed before it is its own, and not one that just changes."""
REFUSED_ROUNDS = 10.0
"""A value that no node has so long after it was decided is one that they refuse."""

Detect = Callable[[Observation], Pattern | None]


class Decision(msgspec.Struct, frozen=True):
    """What the nodes of the group should have in force."""

    values: dict[str, str] = {}
    """Lever → value; a lever that is not here has what was there before."""
    generation: int = 0
    """Counts up with each change."""
    why: str = "nothing is decided yet"
    explored: bool = False
    """The last change was made to learn."""
    taken_back: bool = False
    """The last change undid one that made things worse."""


class _Host(msgspec.Struct):
    """What is known of one node."""

    in_force: Mapping[str, str] = {}
    pattern: Pattern | None = None
    epoch: int = 0
    before: Before = {}
    now: Before = {}
    """Since the last change, which was number `epoch`; `before` that."""


class _Knowledge(msgspec.Struct, omit_defaults=True):
    """Of one lever, on disk."""

    values: tuple[str, ...]
    learner: str
    knowledge: msgspec.Raw
    own: str = ""


class _File(msgspec.Struct):
    format: int
    generation: int
    values: dict[str, str]
    levers: dict[str, _Knowledge]


class Rules(NamedTuple):
    """When a value changes."""

    dwell_s: float = 10.0
    """So long it stays."""
    worse: float = 0.2
    """It is taken back if it is worse than the one before by this share; 1 takes nothing back."""
    round_s: float = ROUND_S


USUAL = Rules()


class Council:
    """Decides for one group."""

    def __init__(
        self,
        levers: Mapping[str, Sequence[str]],
        learner: type[Learner] = Tarazu,
        rules: Rules = USUAL,
        *,
        seed: int = 0,
        mode: Mode = "apply",
        detect: Detect = detect_pattern,
        alone: bool = False,
    ) -> None:
        """`levers`: each with its values. `alone`: this is the council of one client."""
        self.rules = rules
        self.mode: Mode = mode
        """`observe` and `advise` change no value; what is in force is learned."""
        self.decision = Decision()
        self.learner = learner.name
        self.taken_back = 0
        self.choices = 0
        self.explored = 0
        self.impossible = 0
        """Observations that no node can have made."""
        self._detect = detect
        self._alone = alone
        self._levers = {
            name: LearnedLever(values, partial(learner, seed=seed + number))
            for number, (name, values) in enumerate(levers.items())
        }
        self._hosts: dict[str, _Host] = {}
        self._active: OrderedDict[str, float] = OrderedDict()
        """Nodes with I/O that do what is decided, or would: when they spoke last, the one that spoke first first."""
        self._heard: set[str] = set()
        self._patterns: Counter[Pattern] = Counter()
        """Of the active nodes."""
        self._chosen_for: Pattern | None = None
        self._phase: Pattern | None = None
        self._run = 0
        """Intervals of one pattern, of a client."""
        self._round_at = -math.inf
        self._chosen_at: float | None = None
        self._changed_at = -math.inf
        self._epoch = 0
        self._trial: Trial | None = None
        self._moving = 0
        """Number of the lever whose turn it is."""
        self._left = 0
        """Choices of its turn."""

    @property
    def active(self) -> int:
        """Nodes with I/O."""
        return len(self._active)

    def receive(
        self,
        host: str,
        observation: Observation | None,
        in_force: Mapping[str, str],
        now: float,
        mode: Mode = "apply",
    ) -> str:
        """What a node saw in one interval in which `in_force` was in force; None, and one without I/O: it is there.

        `mode`: what the node allows. Returns why it is not taken; empty when it is.
        """
        known = self._hosts.setdefault(host, _Host())
        known.in_force = in_force
        seen = observation if observation is not None and observation.bytes else None
        why = impossible(seen) if seen is not None else ""
        self.impossible += bool(why)
        pattern = self._detect(seen) if seen is not None and not why else None
        if seen is None or pattern is None or (self.mode == "apply" and mode != "apply"):
            self._rests(host)  # a node that does not do what is decided has no voice
        else:
            self._learn(host, known, pattern, seen, now)
        return why

    def _learn(self, host: str, known: _Host, pattern: Pattern, observation: Observation, now: float) -> None:
        self._speaks(host, known, pattern, now)
        # Demand is what a client's levers change themselves.
        reward, demand = observation.bytes_per_s, 0.0 if self._alone else observation.demand
        self._compare(host, known, pattern, reward, demand)
        for number, name in enumerate(self._levers):
            lever = self._with_own(name, known.in_force.get(name, ""))
            # While one lever moves, what the others seem to do is its doing.
            if self.mode == "apply" and number != self._moving:
                continue
            arm = lever.arms.get(known.in_force.get(name, ""))
            if arm is not None:
                lever.fresh = True
                lever.learner.observe(host, pattern, arm, reward, demand=demand)

    def _with_own(self, name: str, value: str) -> LearnedLever:
        """A client's own value becomes one of the lever's, the measure of all others, once it is sure to be that."""
        lever = self._levers[name]
        if not self._alone or value in lever.arms or name in self.decision.values:
            value = ""
        if lever.seen_strange(value) >= OWN_INTERVALS:
            lever = self._levers[name] = lever.with_own(value)
        return lever

    def _speaks(self, host: str, known: _Host, pattern: Pattern, now: float) -> None:
        if host not in self._active or known.pattern != pattern:
            if host in self._active and known.pattern is not None:
                self._forget_pattern(known.pattern)
            self._patterns[pattern] += 1
        if self._alone:
            self._run = self._run + 1 if pattern == known.pattern else 1
            if self._run >= PHASE or self._phase is None:
                self._phase = pattern
        known.pattern = pattern
        self._active[host] = now
        self._active.move_to_end(host)
        if not self._heard:
            self._round_at = now
        self._heard.add(host)
        if self._chosen_at is None:
            # What is there is looked at for a dwell before anything is tried.
            self._chosen_at = self._changed_at = now

    def _compare(self, host: str, known: _Host, pattern: Pattern, reward: float, demand: float) -> None:
        if known.epoch != self._epoch:
            known.before = known.now if known.epoch == self._epoch - 1 else {}
            known.now, known.epoch = {}, self._epoch
        trial = self._trial
        if trial is not None:
            if known.in_force.get(trial.lever) != trial.value:
                return  # not there yet
            if host not in trial.had and (before := known.before.get(pattern)):
                trial.add(pattern, before, reward, demand)
        seen = known.now.get(pattern)
        if seen is None:
            if len(known.now) >= PATTERNS:
                known.now.pop(next(iter(known.now)))
            seen = known.now[pattern] = TrialRewards()
        seen.add(reward, demand)

    def _rests(self, host: str) -> None:
        """It has no I/O now, and no voice."""
        if self._active.pop(host, None) is None:
            return
        self._heard.discard(host)
        pattern = self._hosts[host].pattern
        if pattern is not None:
            self._forget_pattern(pattern)

    def _forget_pattern(self, pattern: Pattern) -> None:
        self._patterns[pattern] -= 1
        if self._patterns[pattern] <= 0:
            del self._patterns[pattern]

    def silent(self, host: str) -> None:
        """Its announcer is gone."""
        if host in self._hosts:
            self._rests(host)
            del self._hosts[host]

    def decide(self, now: float) -> Decision:
        """What should be in force now. Cheap while there is nothing to decide; call it after each `receive`."""
        while self._active:
            host, spoke_at = next(iter(self._active.items()))
            if now - spoke_at <= 2 * self.rules.round_s:
                break
            self._rests(host)
        if self.mode != "apply":
            return self.decision
        if self._trial is not None:
            if (verdict := self._trial.worse(self.rules.worse)) is not None:
                return self._take_back(self._trial, verdict, now)
            if now > self._trial.since + max(
                TRIAL_DWELLS * self.rules.dwell_s, TRIAL_ROUNDS * self.rules.round_s
            ):
                self._trial = None  # what is slower from now on has other reasons
        if not self._due(now):
            return self.decision
        return self._choose(now)

    def _due(self, now: float) -> bool:
        if not self._heard or self._chosen_at is None:
            return False
        if now < self._changed_at + self.rules.dwell_s:
            return False
        if len(self._heard) < len(self._active) and now < self._round_at + self.rules.round_s:
            return False
        # Between choices that changed nothing as between those that did: else what is tried is tried too often. But
        # what is new is answered in the next round.
        return now >= self._chosen_at + self.rules.dwell_s or self._main_pattern() != self._chosen_for

    def _main_pattern(self) -> Pattern | None:
        """Of most nodes; a client's is the one that it stays in."""
        if self._alone:
            return self._phase
        return max(self._patterns, key=lambda pattern: self._patterns[pattern], default=None)

    def _choose(self, now: float) -> Decision:
        self._chosen_at, self._chosen_for = now, self._main_pattern()
        self._heard.clear()
        name = self._whose_turn()
        if name is None:
            return self.decision
        lever, before = self._levers[name], self.decision.values.get(name)
        if before is not None and self._is_refused(name, before, now):
            return self._back(name, before, None, now, "no node has come to have it", refused=True)
        refused = lever.refused(now)
        if len(refused) == len(lever.values):
            self._left = 0
            return self.decision
        if not lever.fresh and self._is_seen(name):
            return self.decision  # its turn has just begun: what is there is looked at first
        lever.learner.without, lever.fresh = refused, False
        choice = lever.learner.choose()
        self.choices += 1
        self._left = max(0, self._left - 1)
        value = lever.values[choice.arm]
        bar, wanted = lever.barred.get(value), None if value == lever.own else value
        if wanted == before:
            self._resting = self._resting or not choice.explored
            return self.decision
        if bar is not None and now < bar.until:
            return self.decision
        if self._alone and before is None and self._have(name, value):
            return self.decision  # what is there is best: nothing need be set
        self.explored += choice.explored
        self._resting = not choice.explored
        had = {host for host, known in self._hosts.items() if known.in_force.get(name) == value}
        former = (
            before
            or Counter(self._hosts[h].in_force.get(name, "") for h in self._active).most_common(1)[0][0]
        )
        self._trial = Trial(
            name,
            before,
            value,
            now,
            had,
            lambda pattern: lever.earlier(value, former, pattern, max(1, self._patterns[pattern])),
        )
        why = f"{name} {value if wanted else 'as it was before'}: " + (
            "tried, to learn"
            if choice.explored
            else "thought the best for what this client does"
            if self._alone
            else f"thought the best for most of the nodes with I/O ({len(self._active)})"
        )
        return self._change(name, wanted, now, why, explored=choice.explored)

    def _is_seen(self, name: str) -> bool:
        """Whether what is there of a lever is, or will be, one of its values, of which its learner hears."""
        arms = self._levers[name].arms
        return self._alone or any(self._hosts[host].in_force.get(name) in arms for host in self._active)

    _resting = True
    """What is in force was not chosen to explore: another lever may move."""

    def _whose_turn(self) -> str | None:
        """The lever that may move; None where no node has any."""
        names = list(self._levers)
        if not names:
            return None
        if self._left == 0 and self._resting:
            for step in range(1, len(names) + 1):
                number = (self._moving + step) % len(names)
                if self._present(names[number]):
                    self._moving = number
                    self._left = CHOICES_PER_VALUE * len(self._levers[names[number]].values)
                    break
        return names[self._moving] if self._present(names[self._moving]) else None

    def _present(self, lever: str) -> bool:
        return any(lever in self._hosts[host].in_force for host in self._active)

    def _have(self, lever: str, value: str) -> bool:
        return all(self._hosts[host].in_force.get(lever) == value for host in self._active)

    def _is_refused(self, lever: str, value: str, now: float) -> bool:
        """A node may refuse what another one takes; what none has is nothing to learn from, and would be for ever."""
        if now < self._changed_at + max(self.rules.dwell_s, REFUSED_ROUNDS * self.rules.round_s):
            return False
        return not any(host.in_force.get(lever) == value for host in self._hosts.values())

    def _take_back(self, trial: Trial, verdict: Verdict, now: float) -> Decision:
        self._chosen_at = now
        self._heard.clear()
        why = (
            f"{1 - verdict.share:.0%} slower than {trial.before or 'what was there before'} "
            f"({verdict.intervals} intervals of the same patterns, and what was known of both)"
        )
        return self._back(trial.lever, trial.value, trial.before, now, why, refused=False)

    def _back(
        self, lever: str, value: str, to: str | None, now: float, why: str, *, refused: bool
    ) -> Decision:
        self._levers[lever].bar(value, now, self.rules.dwell_s, refused=refused)
        self.taken_back += 1
        self._trial, self._resting = None, True
        return self._change(lever, to, now, f"{lever} {value} is taken back: {why}", taken_back=True)

    def _change(self, lever: str, value: str | None, now: float, why: str, **how: bool) -> Decision:
        values = {name: each for name, each in self.decision.values.items() if name != lever}
        return self._decided(values if value is None else {**values, lever: value}, now, why, **how)

    def _decided(self, values: dict[str, str], now: float, why: str, **how: bool) -> Decision:
        self._epoch += 1
        self._changed_at = now
        self.decision = Decision(values, self.decision.generation + 1, why, **how)
        return self.decision

    def set_mode(self, mode: Mode, now: float, why: str) -> Decision:
        """Without `apply` nothing is decided: what was set is taken back by the nodes."""
        if mode == self.mode:
            return self.decision
        self.mode = mode
        self._trial, self._resting, self._left = None, True, 0
        for host in list(self._active):
            self._rests(host)
        self._chosen_at, self._chosen_for = None, None
        return self._decided({}, now, f"{mode}: {why}")

    def advice(self) -> dict[str, str]:
        """What most of the nodes with I/O would have by what is known, for `advise`: nothing is tried."""
        values: dict[str, str] = {}
        for name, lever in self._levers.items():
            votes: Counter[int] = Counter()
            for pattern, nodes in self._patterns.items():
                beliefs = lever.learner.beliefs(pattern)
                seen = [arm for arm, belief in enumerate(beliefs) if belief.seen > 0]
                if seen:
                    votes[max(seen, key=lambda arm: beliefs[arm].mean)] += nodes
            if votes and (value := lever.values[votes.most_common(1)[0][0]]) != lever.own:
                values[name] = value
        return values

    def explain(self) -> list[dict[str, Any]]:
        """A row for each lever, pattern and value: what was learned, with counts and 95 % intervals (bytes/s)."""
        rows: list[dict[str, Any]] = []
        for name, lever in self._levers.items():
            for pattern in lever.learner.patterns():
                beliefs = lever.learner.beliefs(pattern)
                tried = [arm for arm, belief in enumerate(beliefs) if belief.seen > 0]
                best = max(tried, key=lambda arm: beliefs[arm].mean, default=-1)
                rows += [
                    {
                        "lever": name,
                        "pattern": str(pattern),
                        "nodes_now": self._patterns.get(pattern, 0),
                        "value": value,
                        "bytes_per_s": belief.mean,
                        "low": belief.low,
                        "high": None if math.isinf(belief.high) else belief.high,
                        "seen": belief.seen,
                        "best": arm == best,
                        "decided": self.decision.values.get(name) == value,
                    }
                    for arm, (value, belief) in enumerate(zip(lever.values, beliefs, strict=True))
                ]
        return rows

    def in_force(self) -> dict[str, dict[str, int]]:
        """Lever → value → nodes that said they have it."""
        counts: dict[str, Counter[str]] = {}
        for host in self._hosts.values():
            for lever, value in host.in_force.items():
                counts.setdefault(lever, Counter())[value] += 1
        return {lever: dict(values) for lever, values in counts.items()}

    def knowledge(self, **more: Any) -> bytes:
        """All that was learned and is decided, as JSON of bounded size: what `restore` takes. `more` is beside it."""
        levers = {
            name: _Knowledge(lever.listed, self.learner, lever.learner.knowledge(), lever.own)
            for name, lever in self._levers.items()
        }
        file = _File(FORMAT, self.decision.generation, self.decision.values, levers)
        return msgspec.json.encode({**msgspec.structs.asdict(file), **more})

    def restore(self, knowledge: bytes, *, values: bool = True) -> tuple[str, ...]:
        """Go on from there (`values`: with what was decided, too). Returns what of it is of no use here any more: a
        lever with other values, another learner. Raises BadInput for what is no council's knowledge.
        """
        try:
            file = msgspec.json.decode(knowledge, type=_File)
        except MALFORMED as error:
            raise BadInput("knowledge", "what a council has learned", str(error)) from None
        if file.format != FORMAT:
            raise BadInput("knowledge", f"format {FORMAT}", file.format)
        left = []
        for name, lever in self._levers.items():
            known = file.levers.get(name)
            if known is None:
                continue
            if known.values != lever.listed or known.learner != self.learner:
                left.append(f"{name}: it was learned by {known.learner} for {', '.join(known.values)}")
                continue
            if self._alone and known.own and known.own not in lever.listed:
                self._levers[name] = lever.with_own(known.own)
            try:
                self._levers[name].learner.restore(known.knowledge)
            except TarazuError as error:
                raise BadInput(f"knowledge of {name}", "what its learner wrote", str(error)) from None
        kept = {
            name: value
            for name, value in file.values.items()
            if name in self._levers and value in self._levers[name].listed
        }
        if values and kept and self.mode == "apply":
            self.decision = Decision(
                kept, max(0, file.generation) + 1, "as decided before the council restarted"
            )
        return tuple(left)


described(_File)
