"""The agent of drained OSTs, `tarazu change drain`: they get no new files for a while.

Each parameter of each OST is a target of lever `drain`. A drain ends by itself after a week: an OST that is still sick
then is drained again by whoever looks at it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from tarazu import config
from tarazu.errors import StoreError, TarazuError, Unavailable
from tarazu.model import Ost, SystemView
from tarazu.parts.changes.agent import Agent, Plan
from tarazu.parts.changes.done import Done
from tarazu.parts.changes.lctl import Lctl
from tarazu.parts.changes.model.change import Change, Score
from tarazu.parts.changes.model.goals import CannotMend
from tarazu.parts.changes.model.held import Held
from tarazu.parts.changes.model.trail import event
from tarazu.parts.changes.noted import LOCK_S
from tarazu.parts.changes.store import Proposals, Store
from tarazu.parts.drain import PART
from tarazu.parts.drain.choosing import DEFAULT, PARAMETERS, Candidate, as_set, limit, too_full
from tarazu.parts.drain.lever import DrainLever
from tarazu.stats.params import find, ost_target, target_name
from tarazu.store import stop

COMMAND = "tarazu change drain"
LOCK = "drain"
LASTS_S = 7 * 86400.0


def agent_of(
    settings: config.Settings,
    name: str = COMMAND,
    *,
    root: str = "",
    stopped: Callable[[], str] | None = None,
) -> Agent:
    """`name`: who it is, in the trail; `stopped` instead of a look at the site's stop file, which may hang."""
    lctl = Lctl()
    return Agent(
        name,
        Store(PART.agents["drains"].place(settings), COMMAND, COMMAND),
        {DrainLever.name: DrainLever(lctl, root or config.root())},
        settings,
        programs=(lctl.program,),
        stopped=stopped or (lambda: str(stop.site_stop(settings.run.stop_file) or "")),
    )


def end(agent: Agent, wait_s: float = LOCK_S) -> Done:
    """Those whose week is over. Raises StoreError, Unavailable."""
    return agent.engine.make((), "", of=lambda held: False, wait_s=wait_s)


def here(root: str | Path, names: Collection[str] = DEFAULT) -> dict[str, str]:
    """Parameter → the value that drains, of OSTs that this node serves (OSS) or knows (MDS).

    Raises Unavailable where there are none: no server, or nothing mounted.
    """
    kinds = [PARAMETERS[name] for name in names]
    found = {
        kind.parameter.replace("*", device): str(kind.drains)
        for kind in kinds
        for device in sorted(find(root, kind.parameter))
    }
    if not found:
        wanted = " or ".join(kind.parameter for kind in kinds)
        raise Unavailable(f"{root}: expected {wanted} of a Lustre server, found none")
    return found


def alone(agent: Agent) -> contextlib.AbstractContextManager[int]:
    """One at a time on this node: what one counts, another one may be setting. Raises StoreError, Unavailable."""
    return agent.store.one_of(LOCK)


def with_here(agent: Agent, view: SystemView, root: str | Path) -> SystemView:
    """The view with what is drained on this node now, and what it holds as drained."""
    values = {}
    for kind in PARAMETERS.values():
        for device, path in find(root, kind.parameter).items():
            with contextlib.suppress(OSError, ValueError):
                values[kind.parameter.replace("*", device)] = path.read_text()
    held: list[str] = []
    with contextlib.suppress(TarazuError):  # another user's, who asks for advice alone
        agent.store.load()
        its = of(view.fs_name)
        held = [
            each.change.target for each in agent.store.held_changes.values() if its(each) and not each.theirs
        ]
    return as_set(view, values, held)


def plan_of(
    fs_name: str,
    candidates: Sequence[Candidate],
    parameters: dict[str, str],
    share: float,
    osts: Sequence[Ost] = (),
) -> Plan:
    """`parameters`: as `here`; `osts`: all of the file system."""
    chosen = {each.ost: each for each in candidates if not each.held_back}
    changes, scores, out = [], {}, set[int]()
    for index, one in chosen.items():
        scores[index] = tuple(_scores(one, too_full(osts, out), too_full(osts, {*out, index})))
        out.add(index)
    for name, value in parameters.items():
        target = ost_target(name.split(".")[1])
        if target and target[0] == fs_name and (each := chosen.get(target[1])):
            changes.append(
                Change(
                    lever="drain",
                    target=name,
                    wanted={name: value},
                    why=each.why,
                    asked_by=f"{COMMAND} --apply",
                    scores=scores[each.ost],
                    lasts_s=LASTS_S,
                    mends=True,
                )
            )
    cannot = (
        CannotMend("drain", target_name(fs_name, each.ost), f"{each.why}, but {limit(share, len(osts))}")
        for each in candidates
        if each.held_back
    )
    return Plan(tuple(changes), tuple(cannot))


def _scores(each: Candidate, before: float, after: float) -> Iterator[Score]:
    """None of an OST that somebody names: he knows why. `before`, `after`: as `too_full`."""
    if each.severity:
        yield Score("dead", 1.0, 0.0, f"{each.why.partition(':')[0]} OSTs that get new files")
        yield Score("space", before, after, "share of space beyond nearly full, of OSTs that get new files")


def apply(agent: Agent, plan: Plan) -> Done:
    """What is so already is somebody else's. As `Agent.make`."""
    with agent.store.locked():
        held = {*agent.store.held_changes}
    changes = [change for change in plan.changes if change.key in held or not _is_so(agent, change)]
    done = agent.make(changes, f"{COMMAND} --apply")
    if done.left:  # somebody has set it back since, and is asked for it anew
        done = done.and_(agent.make(changes, f"{COMMAND} --apply", anew=True))
    refused = (CannotMend("drain", each.key[1], each.why) for each in done.refused)
    tell(agent, (*plan.cannot_mend, *refused))
    return done


def tell(agent: Agent, cannot: tuple[CannotMend, ...]) -> None:
    """`tarazu change list` shows it until the next one is told; the trail has it when it begins."""
    known: tuple[CannotMend, ...] = ()
    with agent.store.locked(), contextlib.suppress(StoreError):
        with contextlib.suppress(StoreError):  # what cannot be read is written anew
            known = agent.store.proposals().cannot_mend
        if cannot != known:
            agent.store.propose(Proposals(cannot_mend=cannot))
    for each in cannot:
        if (each.lever, each.target) not in {(one.lever, one.target) for one in known}:
            agent.trail.add(
                event("cannot mend", agent.name, lever=each.lever, target=each.target, why=each.why)
            )


def _is_so(agent: Agent, change: Change) -> bool:
    """One that cannot be read is not: that will be said."""
    with contextlib.suppress(Unavailable):
        parts = agent.engine.levers[change.lever].read(change.target)
        return bool(parts) and all(change.wanted[part.name] == part.value for part in parts)
    return False


def of(fs_name: str = "", osts: Collection[int] = ()) -> Callable[[Held], bool]:
    """Which are of this file system and these OSTs, where they are given."""

    def its(held: Held) -> bool:
        target = ost_target(held.change.target.partition(".")[2]) or ("", -1)
        named = (not fs_name or target[0] == fs_name) and (not osts or target[1] in osts)
        return named

    return its
