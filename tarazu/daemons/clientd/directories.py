"""The expected directories of one plan on their way: which are asked for, stored, and told to the leader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from tarazu.config import RunSettings
from tarazu.left import MAY_NOT_CHOOSE
from tarazu.model import ANY_RANK, DirectoryForecast, DirectorySpec, FileName
from tarazu.plan.directories import WantedDirectory, parents_outside, wanted
from tarazu.store.database import InteractionDatabase
from tarazu.wire import local, messages


class PlannedDirectories:
    """Of one plan."""

    def __init__(self, expected: Sequence[DirectoryForecast], may_not_choose: bool) -> None:
        """`may_not_choose`: the last run was refused it, so nothing is asked."""
        self.expected = list(expected)
        self.wanted: list[WantedDirectory] = []
        self._may_not_choose = may_not_choose
        self._asks = False
        self._row_ids: dict[int, int] = {}
        """Of each expected directory, by its identity."""

    @property
    def specs(self) -> tuple[DirectorySpec, ...]:
        """What mdsd is asked."""
        return tuple(each.spec for each in self.wanted)

    def outlined(self, reply: local.PlanReply) -> local.PlanReply:
        """The answer as far as the forecast goes."""
        return msgspec.structs.replace(
            reply,
            forecast_directories=len(self.expected),
            forecast_creates=sum(d.creates for d in self.expected),
            mdt_reason=MAY_NOT_CHOOSE if self.expected and self._may_not_choose else "",
        )

    def to_look_at(self, request: local.PlanRequest, known: messages.ViewReply | None) -> tuple[str, ...]:
        """Directories of which the leader is asked how things lie there; none where no MDT is to be chosen: there are
        fewer than two, or this user may not, or nothing is placed at all.
        """
        mdts = known.view.mdts if known is not None and known.view is not None else ()
        several = min(len(request.mdts), sum(mdt.usable for mdt in mdts)) >= 2
        self._asks = bool(self.expected) and several and request.place and not self._may_not_choose
        return parents_outside(self.expected) if self._asks else ()

    def want(self, run: RunSettings, places: Mapping[str, local.DirectoryPlace]) -> None:
        """Choose what mdsd is asked for."""
        if self._asks:
            of_wave = [0] * len(self.expected)
            self.wanted = wanted(run, self.expected, places, of_wave)

    def store(self, database: InteractionDatabase, plan_id: int) -> None:
        """Their rows."""
        if self.expected:
            ids = database.add_directories(plan_id, self.expected)
            self._row_ids = {id(d): row_id for d, row_id in zip(self.expected, ids, strict=True)}
            if self._may_not_choose:
                database.set_mdts(plan_id, {}, reason=MAY_NOT_CHOOSE)
        self._plan_id = plan_id

    def placed(
        self,
        database: InteractionDatabase,
        reply: local.PlanReply,
        answer: messages.AllocationReply,
        mdts: Sequence[int],
    ) -> local.PlanReply:
        """The plan with the directories that got an MDT, which is one of `mdts`; they are stored."""
        if not self.wanted or len(answer.mdts) != len(self.wanted):
            return reply
        exist = set(mdts)
        chosen = [(d.forecast, mdt) for d, mdt in zip(self.wanted, answer.mdts, strict=True) if mdt in exist]
        names = _apart([d.name for d, _ in chosen], [d.name for d in self.expected])
        directories = tuple(
            local.PlannedDirectory(self._row_ids[id(d)], name, mdt)
            for (d, mdt), name in zip(chosen, names, strict=True)
        )
        database.set_mdts(
            self._plan_id,
            {d.row_id: d.mdt for d in directories},
            cost=answer.mdt_cost,
            cost_bound=answer.mdt_cost_bound,
            reason=answer.mdt_reason,
        )
        return msgspec.structs.replace(
            reply,
            directories=directories,
            mdt_cost=answer.mdt_cost,
            mdt_cost_bound=answer.mdt_cost_bound,
            mdt_reason=answer.mdt_reason,
        )


def _apart(placed: Sequence[FileName], expected: Sequence[FileName]) -> list[FileName]:
    """Those that are placed, without the loose template where it would also find one that is left to Lustre: processes
    that do not know their rank each make their first directory of the same form.
    """
    keys = {name.key for name in placed}
    left = {(n.loose, n.nth_loose, rank) for n in expected if n.key not in keys for rank in (n.rank, None)}
    return [
        msgspec.structs.replace(n, loose="")
        if (n.loose, n.nth_loose, None if n.rank == ANY_RANK else n.rank) in left
        else n
        for n in placed
    ]
