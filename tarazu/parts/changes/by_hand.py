"""What people do with changes: approve one, make it now, take back, stop, let go on. Needs neither daemon nor mdsd."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import msgspec

from tarazu import config
from tarazu.errors import BadInput, TarazuError, Unavailable
from tarazu.parts.changes import agent as agents
from tarazu.parts.changes.agent import Agent
from tarazu.parts.changes.done import Done
from tarazu.parts.changes.here import Listed, NodeAgent, agent_named, agents_of
from tarazu.parts.changes.model.change import Change
from tarazu.parts.changes.model.held import Held
from tarazu.parts.changes.model.trail import What, event
from tarazu.parts.changes.noted import LOCK_S
from tarazu.parts.changes.store import EVERY, Approval, Key, Veto
from tarazu.store.stop import site_stop

Of = Callable[[Held], bool]
Watch = Callable[[NodeAgent], None]
"""Called before each agent's turn: from then on its `store.held_changes` get fewer."""


class Undone(NamedTuple):
    """What was taken back of one agent."""

    agent: str
    unit: str
    restored: tuple[Held, ...] = ()
    left: tuple[Held, ...] = ()
    """Of which somebody else has set something since."""
    still_set: tuple[tuple[Held | None, str], ...] = ()
    """And why; without a change: whether anything is set is not known."""
    not_held: str = ""
    """Why the daemon may set it again, though it should not."""

    @property
    def failed(self) -> bool:
        return bool(self.still_set or self.not_held)


def approve(settings: config.Settings, one: Listed, by: str, reason: str) -> str:
    """Noted. Why it is not made all the same, or empty. Raises StoreError, Unavailable, BadInput."""
    each = _agent(settings, one)
    with each.as_owner():
        return _approve(settings, each, one, by, reason)


def _approve(settings: config.Settings, each: NodeAgent, one: Listed, by: str, reason: str) -> str:
    agent = _made(each)
    with agent.store.locked(LOCK_S):
        decisions = agent.store.decisions()
        proposals = agent.store.proposals()
        before = tuple(a for a in decisions.approvals.get(one.id, ()) if a.by != by)
        known = {p.change.id for p in proposals.proposals} | {h.id for h in agent.store.held_changes.values()}
        # What is neither proposed nor set any more needs no approval.
        kept = {id: of for id, of in decisions.approvals.items() if id in known}
        kept[one.id] = (*before, Approval(by, reason, time.time()))
        decisions = msgspec.structs.replace(decisions, approvals=kept)
        agent.store.decide(decisions)
        agent.trail.add(event("approved", agent.name, _change(agent, one), by=by, why=reason))
        made = any(held.id == one.id for held in agent.store.held_changes.values())
        why = agents.unapproved(one.id, decisions, settings, time.time(), made=made)
        veto = decisions.veto(_change(agent, one))
    if why:
        return why
    if veto:
        return f"it was taken back by {veto.by}: tarazu change apply {one.id}"
    return f"the mode is {proposals.mode}" if proposals.mode == "observe" else ""


def apply(settings: config.Settings, one: Listed, by: str, reason: str) -> Done:
    """Approve a change, forget that it was taken back or left to others, and make it now, within limits and goals.

    Raises Unavailable where nothing is set now, or another person's approval is missing.
    """
    each = _agent(settings, one)
    with each.as_owner():
        agent = _made(each)
        if stop := site_stop(settings.run.stop_file):
            raise Unavailable(f"the whole site is {stop}: nothing is set (undo: tarazu enable --site)")
        if why := agent.store.nothing_new():
            raise Unavailable(f"{why}, without an ID")
        lever = agent.engine.levers.get(one.lever)
        if agent.store.proposals().mode == "observe" and not (lever and lever.by_hand):
            raise Unavailable(f"{each.unit or each.name} is in mode observe, and would take it back")
        _approve(settings, each, one, by, reason)
        if missing := agents.unapproved(one.id, agent.store.decisions(), settings, time.time()):
            raise Unavailable(missing)
        change = _change(agent, one)
        _decide(each, lambda veto: veto.lever != change.lever or veto.target not in (change.target, EVERY))
        return agent.engine.make(
            [change],
            f"tarazu change apply, {by}",
            of=lambda held: False,
            wait_s=LOCK_S,
            anew=True,
        )


def go_on(settings: config.Settings, by: str, only: str = "") -> Iterator[tuple[str, str]]:
    """After an undo, a stop: agents, or `only` this one, may set again, also what was taken back by hand or is left to
    others. (agent, what became of it) of each; what went wrong begins with `failed: `.
    """
    for each in [agent_named(settings, only)] if only else _own(settings):
        try:
            with each.as_owner():
                agent, was = each.agent, []
                with each.store.locked(LOCK_S):
                    if each.store.held:
                        was.append(each.store.why_held)
                        each.store.hold(False)
                    if stopped := each.store.stopped_by():
                        was.append(stopped)
                        each.store.stop(False)
                if count := _decide(each, lambda veto: veto.by == agents.BY_ITSELF):
                    was.append(f"{count} taken back by hand")
                if agent and (theirs := [h for h in each.store.held_changes.values() if h.theirs]):
                    was.append(f"{len(theirs)} left to somebody else")
                    agent.engine.forget_theirs(wait_s=LOCK_S)
                if was:
                    _tell(each, "resumed", f"tarazu change apply: was {', '.join(was)}", by)
                yield each.name, ", ".join(was)
        except (TarazuError, OSError) as error:
            yield each.name, f"failed: {error}"


def stop(settings: config.Settings, by: str) -> Iterator[tuple[str, str]]:
    """Nothing new is made on this node; what is set stays. As `go_on`."""
    for each in _own(settings):
        try:
            with each.as_owner():
                each.store.stop(True, by)
                _tell(each, "held", "tarazu change stop", by)
            yield each.name, ""
        except (TarazuError, OSError) as error:
            yield each.name, f"failed: {error}"


def undo_all(settings: config.Settings, by: str, watch: Watch) -> Iterator[Undone]:
    """Hold every agent first, then take back what each has set, one after the other."""
    own, words = list(_own(settings)), f"tarazu change undo --all, {by}"
    not_held = {each.name: _held(each, words) for each in own}
    for each in own:
        yield _undo(each, lambda held: True, words, not_held[each.name], watch)


def undo_agent(each: NodeAgent, words: str, of: Of, watch: Watch, *, hold: bool = True) -> Undone:
    """Likewise of one agent, and of what it has only what `of` says; `words`: the command, and who typed it. Not
    `hold`: what nobody but people sets; what is left to others is forgotten.
    """
    done = _undo(each, of, words, _held(each, words, first=True) if hold else "", watch)
    if done.left and each.agent and not hold:
        with each.as_owner():
            each.agent.engine.forget_theirs({held.key for held in done.left}, LOCK_S)
    return done


def undo(
    settings: config.Settings, chosen: Sequence[Listed], lever: str, by: str, watch: Watch
) -> Iterator[Undone]:
    """Take back these changes, or all of a lever, and let them not be made again before `apply`."""
    for each in _own(settings):
        keys = {(one.lever, one.target) for one in chosen if one.agent == each.name}
        vetoed = keys or ({(lever, EVERY)} if lever and _has(each, lever) else set())
        if vetoed:
            of = partial(_is_of, vetoed)
            yield _undo(each, of, f"tarazu change undo, {by}", _veto(each, vetoed, by), watch)


def _is_of(keys: Collection[Key], held: Held) -> bool:
    """`keys`: with EVERY for all targets of a lever."""
    return held.key in keys or (held.change.lever, EVERY) in keys


def _undo(each: NodeAgent, of: Of, words: str, not_held: str, watch: Watch) -> Undone:
    done, why, store = Done(), each.why_not, each.store
    try:
        with each.as_owner():
            try:
                if each.agent:
                    watch(each)
                    done = each.agent.engine.take_back(words, of=of, wait_s=LOCK_S, anew=True, for_good=True)
            except Exception as error:  # whatever is wrong with one lever keeps no other agent from its turn
                why = _text(error)
                store.load()
            if each.agent is None:
                store.load()
    except (TarazuError, OSError) as error:
        unknown = ((None, why or str(error)),)
        return Undone(each.name, each.unit, done.restored, done.left, unknown, not_held)
    failed = {failure.key: failure.why for failure in done.failed}
    left, still = [], []
    for held in filter(of, store.held_changes.values()):
        if held.theirs and held.key not in failed and not why:
            left.append(held)
        else:
            still.append((held, failed.get(held.key) or why or "it is still in the notes"))
    parts_left = [held for held in done.left if held.key not in {one.key for one in left}]
    return Undone(each.name, each.unit, done.restored, (*left, *parts_left), tuple(still), not_held)


def _text(error: Exception) -> str:
    return str(error) if isinstance(error, TarazuError) else f"{type(error).__name__}: {error}"


def _held(each: NodeAgent, words: str, *, first: bool = False) -> str:
    """Why it is not held; empty: it is. Without any lock: the lctl of another one may hang with it. `first`: who held
    it before stays named, since more may be held by him.
    """
    try:
        with each.as_owner():
            if not (first and each.store.held):
                each.store.hold_by(words)
    except Exception as error:  # as in `_undo`
        return _text(error)
    return ""


def _veto(each: NodeAgent, keys: Iterable[Key], by: str) -> str:
    """Likewise."""
    new = tuple(Veto(lever, target, by, "tarazu change undo", time.time()) for lever, target in sorted(keys))
    try:
        with each.as_owner():
            _decide(each, lambda veto: (veto.lever, veto.target) not in keys, new)
    except Exception as error:  # as in `_undo`
        return _text(error)
    return ""


def _has(each: NodeAgent, lever: str) -> bool:
    """Whether this agent sets it, or has something of it."""
    if each.agent and lever in each.agent.engine.levers:
        return True
    try:
        with each.as_owner():
            each.store.load()
    except (TarazuError, OSError):
        return each.agent is None
    return any(held.change.lever == lever for held in each.store.held_changes.values())


def _decide(each: NodeAgent, keeps: Callable[[Veto], bool], new: tuple[Veto, ...] = ()) -> int:
    """How many vetoes are gone. Raises StoreError, Unavailable."""
    with each.store.locked(LOCK_S):
        decisions = each.store.decisions()
        kept = tuple(filter(keeps, decisions.vetoes))
        if kept != decisions.vetoes or new:
            each.store.decide(msgspec.structs.replace(decisions, vetoes=(*kept, *new)))
        return len(decisions.vetoes) - len(kept)


def _own(settings: config.Settings) -> Iterator[NodeAgent]:
    return (each for each in agents_of(settings) if not each.is_others)


def _agent(settings: config.Settings, one: Listed) -> NodeAgent:
    return next(each for each in agents_of(settings) if each.name == one.agent)


def _made(each: NodeAgent) -> Agent:
    if each.agent is None:
        raise BadInput(each.name, "a daemon or command of tarazu that keeps notes on this node", each.why_not)
    return each.agent


def _change(agent: Agent, one: Listed) -> Change:
    """Raises Unavailable where it is wanted no more."""
    for proposal in agent.store.proposals().proposals:
        if proposal.change.id == one.id:
            return proposal.change
    for held in agent.store.held_changes.values():
        if held.id == one.id:
            return held.change
    raise Unavailable(f"{one.id}: no longer proposed")


def _tell(each: NodeAgent, what: What, why: str, by: str) -> None:
    if each.agent:
        each.agent.trail.add(event(what, each.agent.name, why=why, by=by))
