"""What is in force now of what this node's agents have set, beside their notes: for `tarazu change list`.

To read may hang, as a directory does whose MDS is away: a process of its own reads, and of what it has not read in time
it is said that it is not known.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
import warnings
from collections.abc import Iterator, Sequence

import msgspec

from tarazu import config
from tarazu.errors import TarazuError
from tarazu.malformed import described
from tarazu.parts.changes.here import Listed, ListedAgent, NodeAgent, State, agents_of
from tarazu.parts.changes.model.held import Held
from tarazu.parts.changes.model.lever import Lever
from tarazu.parts.changes.model.ours import names_of, sort, wanted_of
from tarazu.program import Silent

READ_S = 6.0
"""For all of them: longer than one call of Lustre's tools may take."""
NOTED = ("set", "being changed", "left", "rests")
"""States of what is in the notes."""


class InForce(msgspec.Struct, frozen=True):
    """Of one change."""

    agent: str
    lever: str
    target: str
    theirs: dict[str, str] = {}
    instead: dict[str, str] = {}
    there: bool = True
    """There is something of its target on this node."""
    unknown: str = ""


def with_now(settings: config.Settings, agents: Sequence[ListedAgent]) -> list[ListedAgent]:
    """What the parameters are, not only what they were set to."""
    if not any(one.state in NOTED for each in agents for one in each.changes):
        return list(agents)
    found = {(one.agent, one.lever, one.target): one for one in _in_time(settings)}
    silent = f"not read within {READ_S:g} s"
    return [
        msgspec.structs.replace(
            each,
            changes=tuple(
                _as_it_is(
                    one, found.get((one.agent, one.lever, one.target)) or InForce("", "", "", unknown=silent)
                )
                if one.state in NOTED
                else one
                for one in each.changes
            ),
        )
        for each in agents
    ]


def _as_it_is(one: Listed, now: InForce) -> Listed:
    theirs = {**one.theirs, **now.theirs}
    state: State = one.state
    if theirs:
        state = "left"
    elif state == "set" and not now.unknown and (not now.there or len(now.instead) >= len(one.before)):
        state = "gone"
    return msgspec.structs.replace(one, state=state, theirs=theirs, instead=now.instead, unknown=now.unknown)


def _in_time(settings: config.Settings) -> list[InForce]:
    ours, its = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of other threads: it only reads, and ends
        pid = os.fork()
    if pid == 0:
        try:
            os.close(ours)
            with open(its, "wb", buffering=0) as pipe:
                for each in agents_of(settings):
                    for one in _of_agent(each):
                        pipe.write(msgspec.json.encode(one) + b"\n")
        finally:
            os._exit(0)
    os.close(its)
    data, deadline = b"", time.monotonic() + READ_S
    try:
        while select.select([ours], [], [], max(0.0, deadline - time.monotonic()))[0]:
            if not (more := os.read(ours, 1 << 16)):
                break
            data += more
    finally:
        os.close(ours)
        os.kill(pid, signal.SIGKILL)
        _reap(pid)
    return [msgspec.json.decode(line, type=InForce) for line in data.split(b"\n")[:-1]]


def _reap(pid: int) -> None:
    """One that is in the kernel still is left there."""
    for _ in range(20):
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                time.sleep(0.01)
                continue
        return


def _of_agent(each: NodeAgent) -> Iterator[InForce]:
    if each.agent is None or each.is_others:
        return
    silent: dict[str, str] = {}
    levers = each.agent.engine.levers
    with contextlib.suppress(TarazuError, OSError), each.as_owner():
        each.store.load()
        for held in each.store.held_changes.values():
            name = held.change.lever
            try:
                if name not in levers:
                    unknown = "its lever is not on this node now"
                    yield InForce(each.name, *held.key, unknown=unknown)
                elif name in silent:
                    yield InForce(each.name, *held.key, unknown=silent[name])
                else:
                    yield _of_held(each.name, levers[name], held)
            except (TarazuError, OSError, ValueError) as error:
                if isinstance(error, Silent):
                    silent[name] = str(error)
                yield InForce(each.name, *held.key, unknown=str(error))


def _of_held(agent: str, lever: Lever, held: Held) -> InForce:
    parts = lever.read(held.change.target, names_of(held.change, held))
    wanted = wanted_of(held.change.wanted, parts)
    instead = {
        part.name: part.value
        for part in parts
        if part.name in wanted and not lever.verify(part.value, wanted[part.name])
    }
    theirs = {}
    if lever.apart or not held.theirs:  # else all of it is his already
        theirs = {part.name: part.value for part in sort(lever, held, parts).theirs}
    return InForce(agent, *held.key, theirs, instead, bool(parts))


described(InForce)
