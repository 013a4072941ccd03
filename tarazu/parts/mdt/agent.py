"""The agent of directories' MDTs, on a client where root may set them: `tarazu change mdt`.

There is no daemon: a timer runs the command, or people do. What was approved is made in its next round. Nothing goes
back because the MDTs are even by now: that may be what it gave.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping

from tarazu import config
from tarazu.errors import Unavailable
from tarazu.parts.changes.agent import Agent
from tarazu.parts.changes.model.change import ALL, Change
from tarazu.parts.changes.model.outcome import DAY, HOUR_S, LEAST, Hours
from tarazu.parts.changes.store import Store
from tarazu.parts.mdt import DIRECTORY, lmv
from tarazu.parts.mdt.choosing import IDLE_S, UNEVEN, MdtChoice, MdtDirectory, MdtTimes
from tarazu.parts.mdt.lever import MdtLever, MkdirLever
from tarazu.parts.mdt.lmv import DefaultLmv
from tarazu.store import stop

NAME, COMMAND = "directories", "tarazu change mdt"
DEFAULT, NEW = MdtLever.name, MkdirLever.name
_UNEVENNESS = "evenness"


def agent_of(settings: config.Settings, name: str = COMMAND) -> Agent:
    """`name`: who it is, in the trail."""
    existing, new = MdtLever(), MkdirLever()
    return Agent(
        name,
        Store(f"{settings.state.directory}/{DIRECTORY}", name, COMMAND),
        {existing.name: existing, new.name: new},
        settings,
        programs=(existing.program, new.program),
        stopped=lambda: str(stop.site_stop(settings.run.stop_file) or ""),
    )


def known_of(agent: Agent, paths: Mapping[str, str]) -> dict[str, MdtDirectory]:
    """Directory → what Lustre says of it. `paths`: directory → the mount that it lies on. Raises Unavailable."""
    lever = agent.engine.levers[DEFAULT]
    assert isinstance(lever, MdtLever)
    known = {}
    for path, mount in paths.items():
        parts = {part.name: part.value for part in lever.read(path, (mount,))}
        if path not in parts:
            raise Unavailable(f"{path}: no such directory")
        depth = 0 if path == mount else len(os.path.relpath(path, mount).split("/"))
        own, of_root = parts[path], parts.get(mount, "")
        default: DefaultLmv | None = None
        if own and own != lmv.UNKNOWN:
            default = lmv.parsed(own)
        elif not own and of_root and of_root != lmv.UNKNOWN:
            default = lmv.parsed(of_root).at_depth(depth)
        known[path] = MdtDirectory(path, lever.lfs.mdt_of(path), depth, own, default)
    return known


def by_mdt(creates_per_s: float, of: MdtDirectory, mdts: Collection[int]) -> dict[int, float]:
    """Creates in a second by MDT, in directories made below it: as Lustre chooses while space is even."""
    default = of.default
    if default and default.mdt in mdts:
        on: Collection[int] = (default.mdt,)
    elif default and default.max_inherit_rr:
        on = mdts
    else:
        on = (of.mdt,)
    return {mdt: creates_per_s / len(on) for mdt in on} if creates_per_s else {}


def changes_of(choices: Iterable[MdtChoice], lever: str) -> Iterator[Change]:
    for choice in choices:
        if choice.words:
            yield Change(
                lever=lever,
                target=choice.directory,
                wanted={ALL: choice.words},
                why=choice.why,
                asked_by=COMMAND,
                scores=choice.scores if choice.moves_per_s else (),
            )


def saw(agent: Agent, times: MdtTimes) -> None:
    """How busy the busiest MDT is, and how uneven they are: by the hour, beside which changes are measured."""
    measures = {"time": times.busiest_s()}
    if times.busiest_s() >= IDLE_S:
        measures[_UNEVENNESS] = times.unevenness
    agent.saw(DEFAULT, measures)


def lasted(agent: Agent, times: MdtTimes, now_s: float) -> bool:
    """Whether MDTs were uneven in each of the last hours in which somebody saw them at work, and are not even now."""
    hours = agent.store.measures().get(f"{DEFAULT}  {_UNEVENNESS}", Hours()).sums
    now = int(now_s // HOUR_S)
    seen = [total / weights for hour, (total, weights) in sorted(hours.items()) if now - DAY < hour <= now]
    even = times.busiest_s() >= IDLE_S and times.unevenness <= UNEVEN
    return not even and len(seen) >= LEAST and min(seen[-LEAST:]) > UNEVEN
