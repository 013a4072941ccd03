"""The other nodes of a job step, for its leader: how they are reached, what they got and sent, what to say of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tarazu.config import RunSettings
from tarazu.errors import TarazuError
from tarazu.model import JobStep
from tarazu.run import directories
from tarazu.run.nodes import hosts
from tarazu.run.program import StartedProgram
from tarazu.units import counted

if TYPE_CHECKING:
    from tarazu.run.nodes import gather
    from tarazu.run.nodes.each_node import EachNode
    from tarazu.run.nodes.framed import NodeAnswer

EASILY_READ = 4 << 20
"""Bytes of this node's spools that may be read twice, to find that no other node has any."""
SHORTEST_S = 0.1
"""Less time is not enough to send a map."""


class OtherNodes(msgspec.Struct, eq=False):
    """Of one step. Without any, or when nobody knows how to reach them, nothing is started."""

    run: RunSettings
    mode: str
    argv: Sequence[str]
    environ: Mapping[str, str]
    maps: Path
    """`run.map_dir`."""
    sends: bool = False
    """The map is to be sent, and lies beside the spools."""
    program: StartedProgram | None = None
    """Whose end is waited for; signals to it shorten what is done then."""
    _each: EachNode | None = None
    _looked: bool = False
    """For the nodes; where nothing is placed only when their spools are wanted."""
    _sent: int = 0
    """Generation of the map that was sent."""
    _unsent: str = ""
    """Why it was not."""
    _tried: bool = False
    """Nodes may have something of it."""
    _asked: gather.FromNodes | None = None
    """None: nobody was asked."""

    def find(self, *, have_spool: bool) -> None:
        """Find out how they are reached. `have_spool`: this node's spool directory was made."""
        if self.mode == "observe":
            return
        self._look()
        self.sends = bool(
            self._each
            and self._each.answers
            and have_spool
            and "%h" not in self.run.spool_dir
            and directories.on_this_node_alone(self.maps)
        )

    def _look(self) -> None:
        if self.run.gather == "auto" and not self._looked and hosts.any_elsewhere(self.argv, self.environ):
            from tarazu.run.nodes import reach

            self._each = reach.each_node(self.argv, self.environ)
        self._looked = True

    def send(self, spool: str, map_dir: Path, maps_here: Path, generation: int, seconds: float) -> None:
        """Send a map that has come, in the time that is left before the program is to start. Raises TarazuError.

        `map_dir`: its name on all nodes; `maps_here`: how it is reached on this one.
        """
        from tarazu.run.nodes import send_map

        assert self._each
        self._unsent = "no plan came in time to be sent"
        if not generation:
            return
        try:
            if seconds < SHORTEST_S:
                raise TarazuError("no time was left to send the plan")
            self._tried = True
            send_map.send(self._each, spool, map_dir, maps_here, generation, self.environ, seconds)
        except (TarazuError, OSError) as error:
            self._unsent = str(error)
            raise
        self._sent = generation
        self._unsent = ""

    def gather(
        self, spool: str, here: Path | None, map_dir: Path, dest: Path, step: JobStep
    ) -> tuple[list[Path], str]:
        """All spool files of the step, and what went wrong (empty: nothing).

        `here` holds this node's, which is left alone; the others' come into `dest`, which lies in `map_dir`.
        """
        problem = ""
        self._look()
        if self.run.gather not in ("auto", "none"):
            from tarazu.run.nodes import gather

            name = map_dir / dest.name
            problem = gather.run_site_command(self.run.gather, spool, name, self.environ, self.program)
        elif self._each and (self._tried or not _all_here(here, step)):
            from tarazu.run.nodes import gather

            if here:
                (here / gather.LEADERS).touch()
            self._asked = gather.gather(self._each, spool, map_dir, dest, self.environ, self.program)
            problem = self._asked.problem
        return sorted(dest.glob("*.tzs")) + (sorted(here.glob("*.tzs")) if here else []), problem

    def problems(self, generation: int, lost_ranks: int) -> list[str]:
        """What the job's line has to say of maps that did not reach a node.

        `generation`: of the newest map; `lost_ranks`: of which no spool came.
        """
        if not generation:
            return []
        from tarazu.run.nodes import gather

        said, where = [], f"{self.maps} is not shared by"
        without: list[str] = []
        reached: list[str] = []
        if self._asked:
            without = self._asked.recorded(with_map=False)
            reached = self._asked.recorded(with_map=True)
        if without:
            why = f", {self._unsent}" if self._unsent else ""
            said.append(f"{where} {gather.folded(without)} (run.map_dir){why}")
        elif lost_ranks and not self._answers and directories.on_this_node_alone(self.maps):
            named = hosts.elsewhere(self._each.hosts) if self._each else ()
            whom = gather.folded(named) if named else f"the nodes of {counted(lost_ranks, 'rank')}"
            said.append(f"{where} {whom} (run.map_dir)")
        if self._sent and generation > self._sent and reached:
            said.append(f"later plans did not reach {gather.folded(reached)}: {where} them (run.map_dir)")
        return said

    @property
    def _answers(self) -> Sequence[NodeAnswer]:
        return self._asked.answers if self._asked else ()

    def lost(self, ranks: int) -> str:
        """What the job's line says of ranks whose spools did not come."""
        from tarazu.run.nodes import gather

        silent = [answer.node for answer in self._answers if answer.kind == "none"]
        where = f": {gather.folded(silent)} recorded nothing" if silent else ""
        return f"spools of {counted(ranks, 'rank')} are lost{where}"


def _all_here(here: Path | None, step: JobStep) -> bool:
    """Do this node's spools tell of all ranks that they say there are?"""
    spools = list(here.glob("*.tzs")) if here else []
    if not spools or sum(path.lstat().st_size for path in spools) > EASILY_READ:
        return False
    from tarazu.trace.parser import parse_files

    run = parse_files(spools, step, exit_status=0, problem=lambda _damaged: None)
    return run.ranks_seen > 1 and run.ranks_seen >= run.ranks_expected
