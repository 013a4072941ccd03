"""Lever `nrs`: the policy that orders the requests of an OSS (`ost.OSS.ost_io.nrs_policies`), with its quantum.

A service has two queues, regular and high-priority requests, each with a policy of its own: a part each. Both get the
same: a quantum cannot be read while its policy is started in the regular queue alone (nrs_crr.c, nrs_orr.c: the answer
of the second queue, "No such device", is that of the file), so it could not be restored. What lies in force is restored
queue by queue. A policy's parameters exist only while it is started, and start anew each time: CRR-N with 8, ORR and
TRR with 256, physical offsets and reads.

Values: `fifo`; `crrn 16`; `orr 256`, `trr 256`, and for these two `logical` (offsets in the file instead of those on
the disk) and `writes` or `reads_and_writes` (what is ordered at all; the rest goes through FIFO). What is in force and
none of these, TBF or delay, limits on purpose: it is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from tarazu.errors import BadInput, Unavailable
from tarazu.parts.changes import files
from tarazu.parts.changes.lctl import commands_of
from tarazu.parts.changes.model.change import Part
from tarazu.parts.council.levers.listed import ListedLever

SERVICE = "ost.OSS.ost_io"
POLICIES = f"{SERVICE}.nrs_policies"
QUEUES = ("reg", "hp")
SECTIONS = {"regular_requests:": "reg", "high_priority_requests:": "hp"}
QUANTA = {"crrn": 8, "orr": 256, "trr": 256}
"""Policies with a quantum → what they start with."""
TUNABLES = {"crrn": ("quantum",), **dict.fromkeys(("orr", "trr"), ("quantum", "offset_type", "supported"))}
MAX_QUANTUM = 65535
OFFSETS = ("physical", "logical")
SUPPORTED = ("reads", "writes", "reads_and_writes")
UNKNOWN = "?"
"""A quantum that Lustre does not show."""
VALUES = ("fifo", "crrn 8", "crrn 32", "orr 64", "orr 256", "trr 64", "trr 256")


class NrsPolicy(NamedTuple):
    """What orders one queue."""

    name: str
    quantum: str = ""
    offset_type: str = ""
    supported: str = ""

    def __str__(self) -> str:
        """Without what Lustre starts with."""
        words = [self.name, self.quantum]
        words += [w for w in (self.offset_type, self.supported) if w not in (OFFSETS[0], SUPPORTED[0])]
        return " ".join(filter(None, words))


def parse(value: str) -> NrsPolicy:
    """Raises BadInput for a policy that the lever does not set."""
    name, *words = value.split() or [""]
    wanted = "fifo, or a policy and its quantum such as crrn 16, orr 256, trr 256 reads_and_writes"
    if (name == "fifo") != (not words):
        raise BadInput("part.council.levers: nrs", wanted, value)
    if name == "fifo":
        return NrsPolicy(name)
    quantum, *more = words
    offset_type = next((w for w in more if w in OFFSETS), OFFSETS[0])
    supported = next((w for w in more if w in SUPPORTED), SUPPORTED[0])
    known = name in QUANTA and re.fullmatch(r"[0-9]{1,5}", quantum) and 0 < int(quantum) <= MAX_QUANTUM
    if not known or set(more) - {offset_type, supported} or (more and name == "crrn"):
        raise BadInput("part.council.levers: nrs", wanted, value)
    if name == "crrn":
        return NrsPolicy(name, str(int(quantum)))
    return NrsPolicy(name, str(int(quantum)), offset_type, supported)


def read_policies(text: str) -> dict[str, str]:
    """Queue → the policy in force with its argument (`fifo`, `crrn`, `tbf jobid`), from `nrs_policies`.

    Raises BadInput.
    """
    policies: dict[str, str] = {}
    queue = name = ""
    for line in text.splitlines():
        key, _, value = line.strip().removeprefix("- ").partition(":")
        if line.strip() in SECTIONS:
            queue = SECTIONS[line.strip()]
            policies[queue] = ""
        elif key == "name" and queue:
            name = value.strip()
        elif key == "state" and queue and value.strip() in ("started", "starting"):
            # The fallback is always started; the primary one, where there is one, comes before it in force.
            if name == "fifo":
                policies[queue] = policies[queue] or name
            else:
                policies[queue] = name
    if "reg" not in policies or not all(policies.values()):
        raise BadInput(POLICIES, "policies of regular_requests, one of them started", text[:80])
    return policies


def read_by_queue(text: str, what: str) -> dict[str, str]:
    """`reg_quantum:8    \\nhp_quantum:8    ` → queue → value."""
    pairs = (line.strip().partition(":") for line in text.splitlines())
    return {queue: value for key, _, value in pairs for queue in QUEUES if key == f"{queue}_{what}"}


def policies_shown(read: Callable[[str], str | None], text: str) -> dict[str, NrsPolicy]:
    """Queue → what orders it, as far as it is shown; `text`: of `nrs_policies`, `read`: of any other parameter.

    Raises BadInput.
    """

    def of(queue: str, policy: str, what: str) -> str:
        by_queue = read_by_queue(read(f"{SERVICE}.nrs_{policy}_{what}") or "", what)
        return by_queue.get(queue, UNKNOWN)

    return {
        queue: NrsPolicy(name, *(of(queue, name, what) for what in TUNABLES.get(name, ())))
        for queue, name in read_policies(text).items()
    }


def is_between(value: str, steps: Sequence[str]) -> bool:
    """Of the same policy: with what it starts with, what cannot be read, or part of what was to be set."""
    policy, ends = NrsPolicy(*_words(value)), [NrsPolicy(*_words(step)) for step in steps]
    ends = [end for end in ends if end.name == policy.name]
    start = NrsPolicy(policy.name, str(QUANTA.get(policy.name, "")), OFFSETS[0], SUPPORTED[0])
    return bool(ends) and all(
        each in (UNKNOWN, begun, *said)
        for each, begun, *said in zip(policy[1:], start[1:], *(end[1:] for end in ends), strict=True)
    )


def is_as_set(value: str, step: str) -> bool:
    """Where somebody has changed the other queue, Lustre does not show the quantum of this one: taken for ours."""
    return value == step or (UNKNOWN in value.split() and is_between(value, (step,)))


def settings_of(wanted: Mapping[str, NrsPolicy], now: Mapping[str, str]) -> list[tuple[str, str]]:
    """(parameter, value) in the order in which they are set; both by queue, `now`: the names of the policies in force.

    A policy that starts has what it starts with: the rest is set after it.
    """
    one = {*wanted.values()}
    if len(one) == 1 and {*wanted} == {*now}:
        return _settings("", one.pop(), [*now.values()])
    return [
        each for queue, policy in wanted.items() for each in _settings(queue, policy, [now.get(queue, "")])
    ]


def _settings(queue: str, policy: NrsPolicy, now: Sequence[str]) -> list[tuple[str, str]]:
    """`queue` empty: all that there are."""
    begins = policy.name not in now
    begun = (str(QUANTA.get(policy.name, "")), OFFSETS[0], SUPPORTED[0])
    settings = [(POLICIES, f"{policy.name} {queue}".rstrip())] if {*now} != {policy.name} else []
    for what, value, start in zip(TUNABLES.get(policy.name, ()), policy[1:], begun, strict=False):
        if not (begins and value == start):
            settings.append(
                (f"{SERVICE}.nrs_{policy.name}_{what}", f"{queue}_{what}:{value}" if queue else value)
            )
    return settings


def _words(value: str) -> tuple[str, str, str, str]:
    """Of any text that may be shown, with what Lustre starts with."""
    name, *words = value.split()
    if name not in QUANTA or not words:
        return value, "", "", ""
    if name == "crrn":
        return name, words[0], "", ""
    offset_type = next((w for w in words[1:] if w in (*OFFSETS[1:], UNKNOWN)), OFFSETS[0])
    supported = next((w for w in words[1:] if w in SUPPORTED), SUPPORTED[0])
    return name, words[0], offset_type, supported


class NrsLever(ListedLever):
    def read(self, target: str, parts: Collection[str] = ()) -> tuple[Part, ...]:
        file = files.find(self.root, POLICIES)
        try:
            shown = policies_shown(partial(files.read, self.root), file.text) if file else {}
        except BadInput as error:
            raise Unavailable(str(error)) from None
        return tuple(
            Part(f"{POLICIES} {queue}", str(policy), file.of if file else "")
            for queue, policy in shown.items()
        )

    def may_change(self, target: str, parts: Sequence[Part]) -> None:
        super().may_change(target, parts)
        for part in parts:
            try:
                parse(part.value)
            except BadInput:
                raise Unavailable(f"{part.name}: {part.value} is in force: left alone") from None

    def set(self, target: str, wanted: Mapping[str, str]) -> None:
        for each in _of_lever(wanted, self.read(target)):
            self.lctl.set([each])  # what failed is not gone on with

    def commands(self, target: str, wanted: Mapping[str, str], parts: Sequence[Part]) -> list[str]:
        return commands_of(_of_lever(wanted, parts))

    def is_so(self, value: str, wanted: str) -> bool:
        return value == wanted

    def same(self, value: str, step: str) -> bool:
        return is_as_set(value, step)

    def between(self, value: str, steps: Sequence[str]) -> bool:
        return is_between(value, steps)


def _of_lever(wanted: Mapping[str, str], parts: Sequence[Part]) -> list[tuple[str, str]]:
    now = {part.name.rpartition(" ")[2]: part.value.split(maxsplit=1)[0] for part in parts}
    return settings_of({name.rpartition(" ")[2]: parse(value) for name, value in wanted.items()}, now)
