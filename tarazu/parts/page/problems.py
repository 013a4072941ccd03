"""The page's first sentence: all is well, or which problems there are, since when, and the command that mends each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from tarazu.names import quoted
from tarazu.ost_state import Verdict
from tarazu.part import installed
from tarazu.parts.changes.here import Listed
from tarazu.parts.page.seen import SystemState
from tarazu.parts.page.words import count, span
from tarazu.wire.overview import Overview, Target

NAMED = 3
"""So many stand in the first sentence."""
TOGETHER = 4
"""So many OSTs of a server with the same verdict for the same reason are one problem, as in `tarazu top`."""


class Problem(NamedTuple):
    what: str
    """`scratch-OST000a is dead`."""
    why: str
    since_s: float | None
    where: str
    """The node on which the command is to be typed."""
    command: str
    note: str = ""
    """What it does, or what to do besides."""
    oss: str = ""
    """Whose it is; empty: no server's."""
    ost: str = ""
    """Its name, where it is one's."""


def problems(seen: SystemState, changes: Sequence[tuple[str, Listed]] = ()) -> list[Problem]:
    """The gravest first. `changes`: (node, change)."""
    found = [*_of_mdsd(seen)]
    if seen.overview is not None:
        found += _of_servers(seen.overview)
        found += _of_osts(seen.overview)
        found += _of_others(seen.overview)
    for node, one in changes:
        if one.state in ("failed", "cannot mend"):
            what = f"{one.lever} {one.target}".rstrip() + f": {one.state}"
            command = f"tarazu change show {one.id}" if one.id else "tarazu change list"
            found.append(Problem(what, one.why_not or one.why, one.since_s or None, node, command))
    if seen.no_history:
        command = "journalctl -u tarazu-page"
        found.append(Problem("this page keeps no history", seen.no_history, None, "this node", command))
    return found


def _of_mdsd(seen: SystemState) -> Iterator[Problem]:
    if seen.problem:
        note = "jobs write as they would without tarazu meanwhile"
        what, command = "mdsd does not answer", "systemctl restart tarazu-mdsd"
        yield Problem(what, seen.problem, seen.since_s, "mdsd's node", command, note)
    if (overview := seen.overview) is None:
        return
    if overview.site_stopped:
        what, command = "tarazu is switched off on the whole site", "tarazu enable --site"
        yield Problem(what, overview.site_stopped, None, "any node, as root", command)
    if overview.gate_closed:
        what, note = "mdsd places no files now", "mdsd.cpu_limit and mdsd.memory_limit say from which load on"
        yield Problem(what, overview.gate_closed, None, "mdsd's node", "tarazu status", note)
    for common in overview.common_causes:
        note = "look at what they share: network, jobs, what was changed"
        yield Problem("most OSTs are slower than usual", common, None, "a client", "tarazu top", note)
    if not overview.servers:
        yield Problem("mdsd has heard no server yet", "", None, "each OSS", "systemctl start tarazu-ossd")


def _of_servers(overview: Overview) -> Iterator[Problem]:
    for s in overview.servers:
        if s.stale:
            since_s = overview.taken_s - s.age_s
            dead = sum(t.oss == s.name and t.verdict is Verdict.DEAD for t in overview.targets)
            what = f"{s.name} is silent" + (f", and {count(dead, 'OST')} of it dead" if dead else "")
            note = "if it is up at all; tarazu doctor --problems there says more"
            yield Problem(what, "no report", since_s, s.name, "systemctl restart tarazu-ossd", note, s.name)
        elif wrong := [f"cannot read {name}" for name in s.unreadable] + [
            f"impossible values of {name}" for name in s.impossible
        ]:
            what, command = f"{s.name} cannot be read in full", "tarazu doctor collect --dump"
            yield Problem(what, "; ".join(wrong), None, s.name, command, "says why", s.name)


def _of_osts(overview: Overview) -> Iterator[Problem]:
    silent = {s.name for s in overview.servers if s.stale}
    with_it = (Verdict.SILENT, Verdict.DEAD)
    bad = [t for t in overview.targets if t.verdict.amiss and not (t.verdict in with_it and t.oss in silent)]
    alike = sorted(bad, key=lambda t: (-t.verdict.weight, t.oss, t.fs_name, t.verdict, t.why, t.index))
    for _, group in groupby(alike, key=lambda t: (t.oss, t.fs_name, t.verdict, t.why)):
        targets = list(group)
        if len(targets) < TOGETHER:
            yield from (_of_ost([t]) for t in targets)
        else:
            yield _of_ost(targets)


def _of_ost(targets: Sequence[Target]) -> Problem:
    first = targets[0]
    where, command, note = mend(first, targets)
    what, ost = f"{len(targets)} OSTs of {first.oss} are {first.verdict}", ""
    if len(targets) == 1:
        what, ost = f"{first.name} is {first.verdict}", first.name
    since = [t.since_s for t in targets if t.since_s]
    return Problem(what, first.why, min(since, default=None), where, command, note, first.oss, ost)


def _of_others(overview: Overview) -> Iterator[Problem]:
    silent = {s.name for s in overview.servers if s.stale}
    bad = [of for of in overview.others if of.verdict.amiss and not (of.silent and of.server in silent)]
    for of in sorted(bad, key=lambda of: (-of.verdict.weight, of.name)):
        where, command, note = of.mend
        yield Problem(f"{of.name} is {of.verdict}", of.why, None, where, command, note, of.server)


def mend(t: Target, targets: Sequence[Target] = ()) -> tuple[str, str, str]:
    """Where to type what, and what it does, of one OST or of several that are alike."""
    name = quoted(t.name)
    osp = f"osp.{name}-osc-MDT*"
    osts = ",".join(str(each.index) for each in targets or (t,))
    these = f"--fs {quoted(t.fs_name)} --ost {osts}"
    drain = f"tarazu change drain --apply {these}"
    match t.verdict:
        case Verdict.DEAD:
            return "the MDS", f"lctl get_param {osp}.import", f"says why; is it mounted on {t.oss}?"
        case Verdict.SILENT:
            return t.oss, "tarazu doctor --problems", "says why"
        case Verdict.IMPOSSIBLE:
            return t.oss, "tarazu doctor collect --dump", "shows them"
        case Verdict.REFUSING if t.no_create:
            return t.oss, f"lctl set_param obdfilter.{name}.no_create=0", "unless somebody wants it so"
        case Verdict.REFUSING if t.readonly:
            return t.oss, f"dmesg | grep {name}", "says why; it needs e2fsck, or zpool status"
        case Verdict.REFUSING if not t.active:
            return "the MDS", f"lctl set_param {osp}.active=1", "unless somebody wants it so"
        case Verdict.REFUSING:
            parameters = f"{osp}.max_create_count {osp}.prealloc_status"
            return "the MDS", f"lctl get_param {parameters}", "0 for the first: somebody has set it"
        case Verdict.FULL | Verdict.NEARLY_FULL if "rebalance" not in installed():
            return "any node", "tarazu top --once --problems", "says which have no room: remove files there"
        case Verdict.FULL | Verdict.NEARLY_FULL:
            command = f"tarazu change rebalance --advise --fs {quoted(t.fs_name)} --goal space DIR"
            return "a client", command, "says which files of DIR to move"
        case Verdict.EXCLUDED:
            return "mdsd's node", "systemctl reload tarazu-mdsd", "once mdsd.exclude no longer names it"
        case Verdict.DEGRADED:
            return t.oss, f"tarazu change drain --undo {these}", "if it is drained; else wait for the rebuild"
        case Verdict.SICK:
            return t.oss, drain, "keeps new files off it; then look at its disks"
        case _:
            return t.oss, drain, "keeps new files off it; plans give it less already"


def opening(seen: SystemState, found: Sequence[Problem], now_s: float) -> str:
    """One sentence."""
    overview, number = seen.overview, count(len(found), "problem")
    if seen.problem:
        then = (
            f"What follows is of {span(now_s - overview.taken_s)} ago."
            if overview
            else "Nothing is known yet."
        )
        return f"mdsd has not answered for {span(now_s - seen.since_s)}: {seen.problem}. {then}"
    if overview is None:
        return "mdsd has not been asked yet."
    if not found:
        return f"All well: {count(len(overview.targets), 'OST')} on {count(len(overview.servers), 'server')}."
    more = f"; and {len(found) - NAMED:,} more" if len(found) > NAMED else ""
    return f"{number}: {'; '.join(one.what for one in found[:NAMED])}{more}."
