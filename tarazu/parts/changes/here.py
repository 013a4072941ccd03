"""All agents of this node, and what each has set, proposes, left to others or cannot mend: for `tarazu change`.

An agent is here when its directory is. One that cannot be made, or whose directory cannot be read, is named with why,
and keeps no other from being listed or undone.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pwd
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec

from tarazu import config
from tarazu.errors import BadInput, TarazuError, Unavailable
from tarazu.part import setting_agents
from tarazu.parts.changes.agent import Agent, unapproved
from tarazu.parts.changes.model.change import Part, Score
from tarazu.parts.changes.model.held import Held
from tarazu.parts.changes.model.lever import Lever
from tarazu.parts.changes.model.outcome import Gave
from tarazu.parts.changes.model.trail import Event
from tarazu.parts.changes.settings import directory_of
from tarazu.parts.changes.store import Approval, Decisions, Proposal, Store
from tarazu.parts.changes.trail import NAME as TRAIL
from tarazu.parts.changes.trail import read

State = Literal[
    "set", "being changed", "left", "rests", "gone", "proposed", "waits", "refused", "failed", "cannot mend"
]


class NodeAgent(NamedTuple):
    name: str
    unit: str
    store: Store
    agent: Agent | None
    why_not: str = ""
    """Why there is no `agent`."""
    is_others: bool = False
    """Another user's, that this one may not read."""

    @contextlib.contextmanager
    def as_owner(self) -> Iterator[None]:
        """root reads and writes another user's directory as that user, so that nothing there leads root anywhere."""
        status = _status(str(self.store.directory))
        if status is None or os.geteuid() != 0 or status.st_uid == 0:
            yield
            return
        group = os.getegid()
        os.setegid(status.st_gid)
        os.seteuid(status.st_uid)
        try:
            yield
        finally:
            os.seteuid(0)
            os.setegid(group)


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """One change, or what cannot be mended, as `tarazu change list --json` gives it."""

    agent: str
    id: str = ""
    lever: str
    target: str
    state: State
    wanted: dict[str, str] = {}
    """Part → value; the empty part: all of them."""
    before: dict[str, str] = {}
    """Part → what was there before tarazu."""
    theirs: dict[str, str] = {}
    """Part → what somebody else has set since."""
    instead: dict[str, str] = {}
    """Part → what is in force, where that is not what was set (`tarazu change list` looks)."""
    unknown: str = ""
    """Why it is not known what is in force."""
    why: str = ""
    by: str = ""
    since_s: float = 0.0
    """Unix time: when it was set, or proposed first."""
    ends_s: float = 0.0
    """Unix time; 0: never by itself."""
    why_not: str = ""
    """Why it is not made now."""
    commands: tuple[str, ...] = ()
    scores: tuple[Score, ...] = ()
    approvals: tuple[Approval, ...] = ()
    gave: Gave | None = None


class ListedAgent(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    unit: str
    directory: str
    mode: str
    """Of the daemon, when it looked last; empty: there is none."""
    held: str
    """Why nothing is set at all; empty: it is."""
    changes: tuple[Listed, ...]
    problem: str
    """Why this is not all."""
    is_others: bool


def agents_of(settings: config.Settings) -> list[NodeAgent]:
    """Those that are here, whether they can be made or not."""
    found = []
    for name, declared in setting_agents().items():
        directory, unit = declared.place(settings), declared.unit
        try:
            status = _status(directory)
        except OSError as error:
            # An ordinary user may not even look where another one's directory is.
            is_others = isinstance(error, PermissionError) and os.geteuid() != 0
            why = f"{directory}: {error.strerror}"
            found.append(NodeAgent(name, unit, Store(directory), None, why, is_others))
            continue
        if status is None:
            continue
        owner = status.st_uid
        if os.geteuid() not in (0, owner):
            readers = "root" if owner == 0 else f"{_user(owner)} and root"
            why = f"{directory}: only {readers} may read it"
            found.append(NodeAgent(name, unit, Store(directory), None, why, is_others=True))
            continue
        try:
            agent = _made(settings, name)
            found.append(NodeAgent(name, unit, agent.store, agent))
        except Exception as error:
            why = str(error) if isinstance(error, TarazuError) else f"{type(error).__name__}: {error}"
            found.append(NodeAgent(name, unit, Store(directory), None, why))
    return found


def counted(settings: config.Settings) -> dict[str, list[str]]:
    """Agent → `3 set`, `1 left`, why nothing is set; without those of which nothing is there, or is readable."""
    found = {}
    for each in listed(settings):
        counts = Counter(one.state for one in each.changes)
        words = [f"{count} {state}" for state, count in sorted(counts.items())]
        words += [f"nothing is set here: {each.held}"] if each.held else []
        words += [f"incomplete: {each.problem}"] if each.problem else []
        if words and not each.is_others:
            found[each.name] = words
    return found


def agent_named(settings: config.Settings, name: str) -> NodeAgent:
    """Also where nothing of it is here yet. Raises Unavailable where it is another user's."""
    for each in agents_of(settings):
        if each.name == name:
            if each.is_others:
                raise Unavailable(each.why_not)
            return each
    agent = _made(settings, name)
    return NodeAgent(name, setting_agents()[name].unit, agent.store, agent)


def _made(settings: config.Settings, name: str) -> Agent:
    agent: Agent = importlib.import_module(setting_agents()[name].module).agent_of(settings)
    return agent


def _status(place: str) -> os.stat_result | None:
    """None: it is not there. Raises OSError."""
    try:
        return os.stat(place)
    except FileNotFoundError:
        return None


def listed(settings: config.Settings, only: str = "") -> list[ListedAgent]:
    """All agents, or one, with all that they have; `problem` says what cannot be read."""
    return [_listed(each, settings) for each in agents_of(settings) if only in ("", each.name)]


def _listed(each: NodeAgent, settings: config.Settings) -> ListedAgent:
    mode = held = ""
    changes: list[Listed] = []
    problems = [each.why_not] if each.why_not else []
    if not each.is_others:
        try:
            with each.as_owner():
                mode, held = _read(each, changes, settings)
        except (TarazuError, OSError) as error:
            problems.append(str(error))
    return ListedAgent(
        name=each.name,
        unit=each.unit,
        directory=str(each.store.directory),
        mode=mode,
        held=held,
        changes=tuple(changes),
        problem="; ".join(problems),
        is_others=each.is_others,
    )


def _read(each: NodeAgent, changes: list[Listed], settings: config.Settings) -> tuple[str, str]:
    """Adds to `changes` what can be read; mode, and why nothing is made. Raises TarazuError after that."""
    store = each.store
    held = store.why_held if store.held else store.stopped_by()
    failed: TarazuError | None = None
    decisions = Decisions()
    try:
        decisions = store.decisions()
    except TarazuError as error:
        failed = error
    try:
        store.load()
        changes += [
            _of_held(each.name, one, decisions)
            for one in sorted(store.held_changes.values(), key=lambda h: h.key)
        ]
    except TarazuError as error:
        failed = error
    proposals = store.proposals()
    made = {change.id for change in changes if change.state == "set"}
    changes += [
        _of_proposal(each.name, one, decisions, _why_not(one, proposals.mode, held, decisions, settings))
        for one in proposals.proposals
        if one.state != "proposed" or one.change.id not in made
    ]
    changes += [
        Listed(agent=each.name, lever=one.lever, target=one.target, state="cannot mend", why=one.why)
        for one in proposals.cannot_mend
    ]
    if failed:
        raise failed
    return proposals.mode, held


def _of_held(agent: str, held: Held, decisions: Decisions) -> Listed:
    state: State = (
        "rests" if held.resting else "left" if held.theirs else "being changed" if held.half_set else "set"
    )
    change = held.change
    return Listed(
        agent=agent,
        id=held.id,
        lever=change.lever,
        target=change.target,
        state=state,
        wanted=change.wanted,
        before={part.name: part.value for part in held.before},
        theirs=held.theirs,
        why=change.why,
        by=change.asked_by,
        since_s=held.since_s,
        ends_s=held.ends_s(),
        scores=change.scores,
        approvals=decisions.approvals.get(held.id, ()),
        gave=held.gave,
    )


def _why_not(
    proposal: Proposal, mode: str, held: str, decisions: Decisions, settings: config.Settings
) -> str:
    """As it is now: the daemon wrote in its last round what it knew then."""
    if veto := decisions.veto(proposal.change):
        return f"taken back by {veto.by} until tarazu change apply"
    if held and proposal.state in ("proposed", "waits"):
        return held
    if proposal.state == "proposed" and mode == "advise":
        missing = unapproved(proposal.change.id, decisions, settings, time.time())
        return missing or "approved: set in the next round"
    return proposal.why_not


def _of_proposal(agent: str, proposal: Proposal, decisions: Decisions, why_not: str) -> Listed:
    change = proposal.change
    return Listed(
        agent=agent,
        id=change.id,
        lever=change.lever,
        target=change.target,
        state=proposal.state,
        wanted=change.wanted,
        why=change.why,
        by=change.asked_by,
        since_s=proposal.at_s,
        why_not=why_not,
        commands=proposal.commands,
        scores=change.scores,
        approvals=decisions.approvals.get(change.id, ()),
    )


class Now(NamedTuple):
    """What is in force of one change's target, and the commands that would take it back, or make it."""

    parts: tuple[Part, ...]
    commands: tuple[str, ...]


def now_of(settings: config.Settings, one: Listed) -> Now:
    """Raises TarazuError where it is not available now."""
    each = next(each for each in agents_of(settings) if each.name == one.agent)
    if each.agent is None:
        raise BadInput(one.agent, "a daemon or command of tarazu that keeps notes on this node", each.why_not)
    lever: Lever | None = each.agent.engine.levers.get(one.lever)
    if lever is None:
        raise BadInput(one.lever, "a lever of this node", "none now")
    with each.as_owner():
        parts = lever.read(one.target, list(dict.fromkeys([*filter(None, one.wanted), *one.before])))
        each.store.load()
        held = each.store.held_changes.get((one.lever, one.target))
        if held is None or held.id != one.id:
            return Now(parts, one.commands)
        shown = {part.name: part.value for part in parts}
        back = {
            name: value
            for name, value in lever.back(held, parts, for_good=True).items()
            if name in shown and name not in held.theirs and not lever.same(shown[name], value)
        }
        return Now(parts, tuple(lever.commands(one.target, back, parts)) if back else ())


def found(agents: list[ListedAgent], id: str) -> Listed:
    """The change whose ID is this, or begins so. Raises BadInput where there is none, or several."""
    all_ = [change for agent in agents for change in agent.changes if change.id]
    fitting = [change for change in all_ if change.id == id] or [
        c for c in all_ if id and c.id.startswith(id)
    ]
    if len({(change.agent, change.id) for change in fitting}) != 1:
        none = "none that you may read (try sudo)" if any(agent.is_others for agent in agents) else "none"
        count = f"{len(fitting)} that begin with it" if fitting else none
        raise BadInput(id, "the ID of one change that `tarazu change list` shows on this node", count)
    return fitting[0]


def events(settings: config.Settings, most: int | None = None) -> list[Event]:
    """The trails of this node's agents that this user may read, oldest first; the last `most`. Raises BadInput."""
    paths = {Path(directory_of(settings)) / TRAIL}
    for each in agents_of(settings):
        if each.agent:
            paths.add(each.agent.trail.path)
    lines: list[Event] = []
    for path in sorted(paths):
        try:
            for one in (path.with_name(f"{TRAIL}.1"), path):  # as logrotate leaves the one before
                lines += read(one, most)
        except PermissionError:
            if len(paths) == 1:
                raise BadInput(str(path), "a file that this user may read: root's", "another user") from None
        except OSError as error:
            raise BadInput(str(path), "a file that can be read", error.strerror) from None
    lines.sort(key=lambda one: one.time)
    return lines if most is None else lines[-most:]


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
