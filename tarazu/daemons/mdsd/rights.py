"""What a peer may do by its key: for which users a client may ask, which targets a server may report.

The lists lie beside the keys (`tarazu.wire.admission`). Without keys everybody may say everything. Besides, whoever
it comes from: an id belongs to the user who asked with it first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import msgspec

from tarazu.daemons.mdsd.limits import MAX_TARGETS
from tarazu.left import MAY_NOT_ASK, NO_ID_OF_ITS_OWN
from tarazu.stats.params import target_name
from tarazu.wire.admission import Admission
from tarazu.wire.messages import (
    AllocationRequest,
    FileClosed,
    StepAlive,
    StepEnded,
    TargetsTold,
)
from tarazu.wire.reports import OssReport, OstReport
from tarazu.wire.said import SaidOnce
from tarazu.wire.transport import Peer

log = logging.getLogger("tarazu.mdsd")

Notice = FileClosed | StepEnded | StepAlive | TargetsTold


class Rights:
    """`owner`: the uid whose allocation an id is; None for an id that nobody has."""

    def __init__(self, uids_required: bool, owner: Callable[[str], int | None]) -> None:
        self.uids_required = uids_required
        self.refused = 0
        self._owner = owner
        self._said = SaidOnce(log)
        self._reporters: dict[str, _Reporter] = {}

    def refusal(self, peer: Peer, message: AllocationRequest) -> str:
        """Why this peer may not ask this; empty when it may."""
        if not self._may_ask_for(peer, message.uid):
            return self._refuse(peer, f"{MAY_NOT_ASK}{peer.key} may ask for, found {message.uid}")
        owner = self._owner(message.id)
        if owner not in (None, message.uid):
            return self._refuse(peer, f"{NO_ID_OF_ITS_OWN}, found one of another user's")
        return ""

    def may_tell(self, peer: Peer, uid: int, what: str) -> bool:
        """Whether this peer may say something of this user's steps; `what`: for the log."""
        if self._may_ask_for(peer, uid):
            return True
        self._refuse(peer, f"the key {peer.key} reported {what} of uid {uid}, which its list does not allow")
        return False

    def heeded(self, peer: Peer, notice: Notice) -> Notice | None:
        """The notice, as far as this peer may give it; None for one that it may not give."""
        ids = notice.ids if isinstance(notice, StepAlive | TargetsTold) else (notice.id,)
        if peer.admission is None or (peer.admission.uids is None and not self.uids_required):
            return notice
        own = tuple(id for id in ids if self._is_own(peer, id))
        if len(own) == len(ids):
            return notice
        self._refuse(
            peer, f"the key {peer.key} reported on an allocation of a user that its list does not allow"
        )
        if not isinstance(notice, StepAlive | TargetsTold) or not own:
            return None
        return msgspec.structs.replace(notice, ids=own)

    def permitted(self, peer: Peer, report: OssReport, now: float) -> OssReport:
        """The report, without OSTs that this peer may not report. What two keys report at a time is noticed."""
        if peer.admission is None:
            return report
        names = [*map(_target, report.osts)]
        if foreign := self._foreign(peer, names):
            osts = tuple(ost for ost in report.osts if _target(ost) not in foreign)
            report = msgspec.structs.replace(report, osts=osts)
        for name in names:
            if name not in foreign:
                self._notice(peer.admission, name, report, now)
        return report

    def may_report(self, peer: Peer, target: str, report: OssReport, now: float) -> bool:
        """Whether a target that a part names may be in the report of this peer."""
        if peer.admission is None:
            return True
        if self._foreign(peer, [target]):
            return False
        self._notice(peer.admission, target, report, now)
        return True

    def _foreign(self, peer: Peer, names: Sequence[str]) -> set[str]:
        """Those that this peer, which has a key, may not report; the first is said."""
        assert peer.admission is not None
        foreign = {name for name in names if not peer.admission.may_report(name)}
        if foreign:
            first = next(name for name in names if name in foreign)
            self._refuse(peer, f"the key {peer.key} reported {first}, which is not in {peer.key}.targets")
        return foreign

    def _notice(self, admission: Admission, target: str, report: OssReport, now: float) -> None:
        known = self._reporters.get(target)
        if known and known.key != admission.name and now < known.until:
            two = f"{known.key} ({known.oss}) and {admission.name} ({report.oss})"
            self._said.warning(f"{target} is reported with two keys: {two}")
        if known or len(self._reporters) < MAX_TARGETS:
            until = now + 2 * max(report.interval_s, 1.0)
            self._reporters[target] = _Reporter(admission.name, report.oss, until)

    def _may_ask_for(self, peer: Peer, uid: int) -> bool:
        return peer.admission is None or peer.admission.may_ask_for(uid, self.uids_required)

    def _is_own(self, peer: Peer, id: str) -> bool:
        owner = self._owner(id)
        return owner is None or self._may_ask_for(peer, owner)

    def _refuse(self, peer: Peer, reason: str) -> str:
        self.refused += 1
        self._said.warning(f"{peer.name}: {reason}", f"{peer.name} {peer.key} {reason[:20]}")
        return reason


class _Reporter(msgspec.Struct, frozen=True):
    """Who reported a target last."""

    key: str
    oss: str
    until: float
    """Two intervals later: until then another's report is odd."""


def _target(of: OstReport) -> str:
    return target_name(of.fs_name, of.index)
