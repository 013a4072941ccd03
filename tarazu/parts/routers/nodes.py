"""Which job steps run on which nodes, as their leaders report: soft state, reported again and again, within bounds.

A step ends when its leader says so, or has not reported for twice as long as it promised to.
"""

from __future__ import annotations

import math

import msgspec

from tarazu import nids
from tarazu.daemons.mdsd.request_rate import Rate
from tarazu.daemons.shares import Share
from tarazu.errors import BadInput
from tarazu.nids import Nid
from tarazu.parts.forwarding.application import Application
from tarazu.parts.forwarding.messages import StepProfile
from tarazu.parts.forwarding.profile import as_told
from tarazu.parts.routers.messages import StepNodes

MAX_STEPS = 20_000
MAX_NODES = 200_000
"""Of all steps; a user has as many as he leaves free, at most half."""
MAX_NODES_OF_STEP = 50_000
NODES_AT_ONCE, NODES_PER_S = 200_000, 5_000
"""New nodes, and characters that name them, of one user: 5,000 nodes take mdsd 0.03 s."""
LEAST_ALIVE_S, LONGEST_ALIVE_S = 2.0, 3600.0
SILENT_TIMES = 2.0


class RoutedStep(msgspec.Struct, frozen=True):
    """One job step on one file system."""

    id: str
    uid: int
    job_id: str
    fs_name: str
    told: frozenset[Nid]
    """Its nodes, as its leader says."""
    application: Application | None
    profile: StepProfile | None
    text: str
    """Of `told`, folded."""


class Nodes:
    """All of them. `changed` is set when something is not what it was; who looks takes it back."""

    def __init__(self) -> None:
        self.changed = False
        self.refused = 0
        self._steps: dict[str, RoutedStep] = {}
        self._until: dict[str, float] = {}
        self._room = Share(MAX_STEPS)
        self._nodes = Share(MAX_NODES)
        self._rate = Rate(NODES_PER_S, NODES_AT_ONCE)

    def __len__(self) -> int:
        return len(self._steps)

    def steps(self) -> tuple[RoutedStep, ...]:
        """In the order of their first reports."""
        return tuple(self._steps.values())

    def take(self, uid: int, message: StepNodes, now: float) -> str:
        """A leader of this user says where its step runs; why it cannot be taken, empty when it was. `now`: monotonic
        seconds.
        """
        known = self._steps.get(message.id)
        if known and known.uid != uid:
            return self._refused("expected a step of this user's own, found another's")
        if message.ended:
            self.ended(message.id)
            return ""
        try:
            told = known.told if known and known.text == message.nids else self._told(uid, message, now)
        except BadInput as error:
            return self._refused(str(error))
        if not known and not self._room.take(uid):
            return self._refused(f"uid {uid} tells of too many steps: of {MAX_STEPS} half is left free")
        more = len(told) - (len(known.told) if known else 0)
        if more > 0 and not self._nodes.take(uid, more):
            if not known:
                self._room.give(uid)
            return self._refused(f"uid {uid} tells of too many nodes: of {MAX_NODES} half is left free")
        if more < 0:
            self._nodes.give(uid, -more)
        application = (
            known.application
            if known and known.profile == message.profile
            else application_of(message.id, message.profile)
        )
        step = RoutedStep(
            message.id,
            uid,
            message.job_id,
            message.fs_name,
            told,
            application,
            message.profile,
            message.nids,
        )
        self.changed |= step != known
        self._steps[message.id] = step
        alive_s = message.alive_s if math.isfinite(message.alive_s) else LONGEST_ALIVE_S
        self._until[message.id] = now + SILENT_TIMES * min(max(alive_s, LEAST_ALIVE_S), LONGEST_ALIVE_S)
        return ""

    def ended(self, id: str) -> None:
        """The step is over. Any id may be asked for."""
        if step := self._steps.pop(id, None):
            del self._until[id]
            self._room.give(step.uid)
            self._nodes.give(step.uid, len(step.told))
            self.changed = True

    def pass_time(self, now: float) -> list[RoutedStep]:
        """Forget the steps that fell silent; which those are."""
        silent = [self._steps[id] for id, until in self._until.items() if until <= now]
        for step in silent:
            self.ended(step.id)
        return silent

    def excuse(self, paused_s: float) -> None:
        """We did not listen for so long: that was no silence of theirs."""
        self._until = {id: until + paused_s for id, until in self._until.items()}

    def _told(self, uid: int, message: StepNodes, now: float) -> frozenset[Nid]:
        """Raises BadInput, also for a user who tells of ever other nodes: few characters name many."""
        if self._rate.take(uid, now, len(message.nids)):
            patterns = nids.few(message.nids, MAX_NODES_OF_STEP)
            if self._rate.take(uid, now, sum(each.size for each in patterns)):
                return frozenset(nid for each in patterns for nid in each.nids())
        raise BadInput(f"uid {uid}", f"at most {NODES_PER_S} new nodes a second", "more")

    def _refused(self, why: str) -> str:
        self.refused += 1
        return why


def application_of(name: str, profile: StepProfile | None) -> Application | None:
    """None where nothing, or nothing possible, is told."""
    try:
        return as_told(name, profile) if profile else None
    except ValueError:
        return None
