"""The lever of a job of Slurm's that waits: the nodes that it named (`ReqNodeList`); and its agent, tarazu-burstd's.

slurmctld keeps them. Of a job that runs, has ended or is not known any more nothing is anybody's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from tarazu import config
from tarazu.batch.node_set import is_same
from tarazu.batch.slurm import Slurm
from tarazu.errors import BadInput, Unavailable
from tarazu.parts.bursts.settings import directory_of
from tarazu.parts.changes.agent import Agent
from tarazu.parts.changes.model.change import Part
from tarazu.parts.changes.model.lever import Lever
from tarazu.parts.changes.model.limits import Limits
from tarazu.parts.changes.store import Store
from tarazu.store import stop

NODES = "ReqNodeList"
_UNSET = ("ReqNodeList", "ExcNodeList", "Features")
_OWN = {"Prefer", "Switches", "Reservation", "ArrayJobId", "HetJobId"}


class NodesLever(Lever):
    """Targets are USER/NAME+TEXT, for a job that was just being submitted; `jobs` says which it is."""

    name = "nodes"
    lasting = True

    def __init__(self, slurm: Slurm, known: Callable[[str], str]) -> None:
        """`known`: which job it is by the notes."""
        self.slurm = slurm
        self.known = known
        self.jobs: dict[str, str] = {}
        self._words: dict[str, dict[str, str]] = {}

    def job(self, target: str) -> str:
        """Empty: it is not known."""
        return self.jobs.get(target) or self.known(target)

    def read(self, target: str, parts: Collection[str] = ()) -> tuple[Part, ...]:
        id = self.job(target)
        if not id:
            raise Unavailable("the job is not in the queue yet")
        try:
            text = self.slurm.job(id)
        except BadInput as error:
            if "Invalid job id" in str(error):
                return ()
            raise
        words = self._words[target] = dict(word.split("=", 1) for word in text.split() if "=" in word)
        if words.get("JobState") != "PENDING":
            return ()
        return tuple(Part(name, words.get(name, "").replace("(null)", "")) for name in parts)

    def check(self, target: str, wanted: Mapping[str, str]) -> None:
        for name in wanted:
            if name != NODES:
                raise BadInput(target, NODES, name)

    def may_change(self, target: str, parts: Sequence[Part]) -> None:
        """Only of a job that says nothing of its nodes but how many."""
        words = self._words.get(target, {})
        unset = all(words.get(name) == "(null)" for name in _UNSET) and words.get("Contiguous") == "0"
        if not parts or not unset or _OWN & set(words):
            raise Unavailable("the job is not waiting, or names its nodes itself")

    def set(self, target: str, wanted: Mapping[str, str]) -> None:
        self.slurm.update(self.job(target), **wanted)

    def commands(self, target: str, wanted: Mapping[str, str], parts: Sequence[Part]) -> list[str]:
        return [f"scontrol update JobId={self.job(target)} {name}={value}" for name, value in wanted.items()]

    def same(self, value: str, step: str) -> bool:
        return is_same(value, step)


MOST = 1000
"""Jobs that nodes were asked for; more are asked for nobody until some are gone."""
A_MINUTE = 600
"""Jobs that wait: each is changed by itself, and nothing else with it."""


def agent_of(
    settings: config.Settings,
    name: str = "tarazu-burstd",
    *,
    slurm: Slurm | None = None,
    stopped: Callable[[], str] | None = None,
) -> Agent:
    directory = directory_of(settings)
    store = Store(directory, name, "tarazu change bursts nodes")

    def known(target: str) -> str:
        held = store.held_changes.get((NodesLever.name, target))
        return held.askers[0] if held and held.askers else ""

    slurm = slurm or Slurm()
    lever = NodesLever(slurm, known)
    agent = Agent(
        name,
        store,
        {lever.name: lever},
        settings,
        programs=(slurm.changing,),
        stopped=stopped or (lambda: str(stop.site_stop(settings.run.stop_file) or "")),
        trail=directory,
    )
    agent.engine.limits = Limits(MOST, A_MINUTE, 60 * A_MINUTE)
    return agent
