"""The page's first sentence: all is well, or which problems there are, since when, and the command that mends each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from tarazu.names import quoted
from tarazu.ost_state import Verdict
from tarazu.part import installed
from tarazu.parts.page import links
from tarazu.parts.page.changes import known
from tarazu.parts.page.markup import Markup, count, element, join
from tarazu.parts.page.results import SavedResult
from tarazu.parts.page.seen import SystemState, amiss, deaf
from tarazu.parts.page.times import moment, span, zone
from tarazu.wire.overview import Overview, Server, Target

MOST_ROWS = 200
NAMED = 3
"""So many stand in the sentence itself."""
TOGETHER = 4
"""So many OSTs of a server with the same verdict for the same reason are one problem, as in `tarazu top`."""
CHANGES = ("failed", "cannot mend")
"""States of changes that are problems."""


class Problem(NamedTuple):
    what: Markup
    """`scratch-OST000a is dead`, with links."""
    why: str
    since_s: float | None
    where: str
    """The node on which the command is to be typed."""
    command: str
    note: str = ""
    """What it does, or what to do besides."""
    oss: str = ""
    """Whose it is; empty: no server's."""


def problems(seen: SystemState, saved: Sequence[SavedResult] = (), top: str = "") -> list[Problem]:
    """The gravest first. `saved`: lists of changes of other nodes among them; `top`: the way to the first page."""
    found = [*_of_mdsd(seen)]
    if seen.overview is not None:
        found += _of_servers(seen.overview, top)
        found += _of_osts(seen.overview, top)
        found += _of_others(seen.overview)
    for node, one in known(seen.here, saved):
        if one.state in CHANGES:
            what = join(f"{one.lever} {one.target}".rstrip(), f": {one.state}")
            command = f"tarazu change show {one.id}" if one.id else "tarazu change list"
            found.append(Problem(what, one.why_not or one.why, one.since_s or None, node, command))
    if seen.no_history:
        command = "journalctl -u tarazu-page"
        what = join("this page keeps no history")
        found.append(Problem(what, seen.no_history, None, "this node", command))
    return found


def _of_mdsd(seen: SystemState) -> Iterator[Problem]:
    if seen.problem:
        note = "jobs write as they would without tarazu meanwhile"
        what = join("mdsd does not answer")
        yield Problem(what, seen.problem, seen.since_s, "mdsd's node", "systemctl restart tarazu-mdsd", note)
    if (overview := seen.overview) is None:
        return
    if overview.site_stopped:
        what = join("tarazu is switched off on the whole site")
        command = "tarazu enable --site"
        yield Problem(what, overview.site_stopped, None, "any node, as root", command)
    if overview.gate_closed:
        what = join("mdsd places no files now")
        note = "mdsd.cpu_limit and mdsd.memory_limit say from which load on"
        yield Problem(what, overview.gate_closed, None, "mdsd's node", "tarazu status", note)
    for common in overview.common_causes:
        note = "look at what they share: network, jobs, what was changed"
        yield Problem(join("most OSTs are slower than usual"), common, None, "a client", "tarazu top", note)
    if not overview.servers:
        what = join("mdsd has heard no server yet")
        yield Problem(what, "", None, "each OSS", "systemctl start tarazu-ossd")


def _of_servers(overview: Overview, top: str) -> Iterator[Problem]:
    for s in deaf(overview.servers):
        what = links.server(s.name, top)
        if s.stale:
            since_s = overview.taken_s - s.age_s
            dead = sum(t.oss == s.name and t.verdict is Verdict.DEAD for t in overview.targets)
            also = f", and {count(dead, 'OST')} of it dead" if dead else ""
            note = "if it is up at all; tarazu doctor --problems there says more"
            command = "systemctl restart tarazu-ossd"
            yield Problem(join(what, " is silent", also), "no report", since_s, s.name, command, note, s.name)
        else:
            yield _unread(s, what)


def _unread(s: Server, what: Markup) -> Problem:
    why = "; ".join(
        [f"cannot read {name}" for name in s.unreadable]
        + [f"impossible values of {name}" for name in s.impossible]
    )
    said = join(what, " cannot be read in full")
    return Problem(said, why, None, s.name, "tarazu doctor collect --dump", "says why", s.name)


def _of_osts(overview: Overview, top: str) -> Iterator[Problem]:
    silent = {s.name for s in overview.servers if s.stale}
    with_it = (Verdict.SILENT, Verdict.DEAD)
    bad = [t for t in amiss(overview.targets) if not (t.verdict in with_it and t.oss in silent)]
    alike = sorted(bad, key=lambda t: (-t.verdict.weight, t.oss, t.fs_name, t.verdict, t.why, t.index))
    for _, group in groupby(alike, key=lambda t: (t.oss, t.fs_name, t.verdict, t.why)):
        targets = list(group)
        if len(targets) < TOGETHER:
            yield from (_of_ost([t], top) for t in targets)
        else:
            yield _of_ost(targets, top)


def _of_ost(targets: Sequence[Target], top: str) -> Problem:
    first = targets[0]
    where, command, note = mend(first, targets)
    if len(targets) == 1:
        what = join(links.ost(first, top), f" is {first.verdict}")
    else:
        what = join(f"{len(targets)} OSTs of ", links.server(first.oss, top), f" are {first.verdict}")
    since = [t.since_s for t in targets if t.since_s]
    return Problem(what, first.why, min(since, default=None), where, command, note, first.oss)


def _of_others(overview: Overview) -> Iterator[Problem]:
    silent = {s.name for s in overview.servers if s.stale}
    bad = [of for of in overview.others if of.verdict.amiss and not (of.silent and of.server in silent)]
    for of in sorted(bad, key=lambda of: (-of.verdict.weight, of.name)):
        where, command, note = of.mend
        yield Problem(join(f"{of.name} is {of.verdict}"), of.why, None, where, command, note, of.server)


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


def opening(seen: SystemState, found: Sequence[Problem], now_s: float) -> Markup:
    """One sentence and one colour."""
    overview = seen.overview
    parts: list[object] = []
    if seen.problem:
        parts += ["mdsd has not answered since ", moment(seen.since_s), f" ({span(now_s - seen.since_s)}): "]
        parts += [seen.problem, ". "]
        if overview is None:
            parts.append("Nothing is known yet.")
        else:
            parts += ["What follows is of ", moment(overview.taken_s), "."]
        others = found[1:]
        if others:
            verb = "were" if len(others) > 1 else "was"
            parts.append(f" Then there {verb} {count(len(others), 'problem')}.")
    elif overview is None:
        parts.append("mdsd has not been asked yet.")
    elif found:
        parts.append(f"{count(len(found), 'problem')}: ")
        for number, problem in enumerate(found[:NAMED]):
            parts += ["; " if number else "", problem.what]
        parts.append(f"; and {len(found) - NAMED:,} more." if len(found) > NAMED else ".")
    else:
        parts.append(
            f"All well: {count(len(overview.targets), 'OST')} on {count(len(overview.servers), 'server')}."
        )
    well = overview is not None and not found
    return element("p", *parts, class_=f"headline {'good' if well else 'bad'}")


def age(seen: SystemState, now_s: float) -> Markup:
    """How old it is."""
    if seen.overview is None:
        return zone()
    age_s = now_s - seen.overview.taken_s
    said = join("As mdsd said at ", moment(seen.overview.taken_s), f", {span(age_s)} ago.")
    return join(element("p", said, class_="note old" if age_s > seen.old_after_s else "note"), zone())


def listed(found: Sequence[Problem]) -> Markup:
    """Each with why, since when, and what mends it."""
    if not found:
        return join()
    rows = [
        element(
            "li",
            element("b", problem.what),
            f": {problem.why}" if problem.why else "",
            join(", since ", moment(problem.since_s)) if problem.since_s else "",
            element(
                "p",
                element("code", problem.command),
                f" on {problem.where}",
                f": {problem.note}" * bool(problem.note),
            ),
        )
        for problem in found[:MOST_ROWS]
    ]
    more = len(found) - MOST_ROWS
    return element(
        "section",
        element("h2", "Problems", id="problems"),
        element("p", "The gravest first, each with the command that mends it.", class_="note"),
        element("ul", *rows, class_="problems"),
        element("p", f"and {more:,} more: see the JSON.", class_="note") if more > 0 else None,
        aria_labelledby="problems",
    )
