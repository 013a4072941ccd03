"""Say which remembered runs would have gained by placement, how much, and why not the others.

tarazu history report --since 7d
tarazu history report --since 2026-11-01 --until 2026-11-08 --application ior
tarazu history report --since 24h --user alice --audit /var/log/tarazu/audit.log     as root

Each run is forecast again from the runs before it, and placed by tarazu and by a model of Lustre's allocator on the
OSTs as they are now. OST cost is max / mean of the bytes per OST; time is that of the slowest OST over the best that
all usable OSTs could do: 1 is perfect. Where files still lie where they were written, their real OSTs count.
"""

from __future__ import annotations

import argparse
import re
import time
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tarazu import config
from tarazu.cli.history.chosen import home_of, user_named
from tarazu.cli.output import Progress, print_json, print_table
from tarazu.daemons.asking import view_in, view_of
from tarazu.errors import BadInput
from tarazu.part import installed
from tarazu.run.job_log import Audit, Steps
from tarazu.units import counted, figure, human_bytes, human_time

if TYPE_CHECKING:
    from tarazu.report.report import Report

UNITS_S = {"m": 60.0, "h": 3600.0, "d": 86400.0, "w": 7 * 86400.0}
MOST_REASONS = 15


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--since", default="7d", metavar="TIME", help="7d, 24h, 2w, or a date (default: 7d)")
    parser.add_argument("--until", default="", metavar="TIME", help="the same (default: now)")
    parser.add_argument("--application", default="", metavar="NAME", help="as `tarazu history list` names it")
    parser.add_argument("--fs", default="", metavar="NAME", help="this file system only")
    parser.add_argument(
        "--user", default="", metavar="NAME", help="whose runs (default: yours), where readable"
    )
    parser.add_argument("--view", metavar="FILE", help="the file system as `tarazu status --json` prints it")
    parser.add_argument("--audit", metavar="FILE", help="mdsd's audit log (default: mdsd.audit_log)")
    parser.add_argument("--picture", metavar="FILE", help="draw the applications (.png, .svg, .pdf)")
    parser.add_argument("--json", action="store_true", help="as JSON, with every run")


def execute(options: argparse.Namespace) -> int:
    from tarazu.report import report as reports

    settings = config.load(options.config)
    now_s = time.time()
    wanted = reports.ReportScope(
        moment("--since", options.since, now_s),
        moment("--until", options.until, now_s) if options.until else now_s,
        options.application,
        options.fs,
    )
    user = user_named(options.user) if options.user else None
    if options.picture:
        from tarazu.report.picture import draw
    audit = options.audit or settings.mdsd.audit_log
    if options.view:
        view = view_in(options.view)
        views = reports.asked(lambda _fs: view)
    else:
        views = reports.asked(lambda fs_name: view_of(settings, fs_name)[0])
    with Progress() as progress:
        report = reports.report(
            settings,
            wanted,
            history=home_of(settings.run.history_dir, user),
            state=home_of(settings.run.state_dir, user),
            audit=Path(audit) if audit else None,
            uid=user.pw_uid if user else None,
            views=views,
            root=config.root(),
            progress=progress,
        )
    if options.picture:
        draw(report, Path(options.picture))
    if options.json:
        print_json(report)
    else:
        _print(report)
    return 0


def moment(option: str, text: str, now_s: float) -> float:
    """`7d`, `24h`: so long ago; else a date, or a date and a time, local. Raises BadInput."""
    if ago := re.fullmatch(r"(\d{1,6})([mhdw])", text):
        return now_s - int(ago[1]) * UNITS_S[ago[2]]
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        raise BadInput(option, "7d, 24h, 2w, 30m, or a date such as 2026-11-01", text) from None


def _print(found: Report) -> None:
    wanted = found.wanted
    begin, end = (human_time(at_s, "%Y-%m-%d %H:%M") for at_s in (wanted.since_s, wanted.until_s))
    print(f"{begin} to {end}: {counted(len(found.runs), 'run')}")
    if found.applications:
        print()
        print_table(
            (
                "application", "fs", "runs", "gain", "files", "bytes", "placed",
                "OST cost: as it was", "Lustre", "tarazu", "bound", "OST time: Lustre", "tarazu", "bound",
            ),
            [
                (
                    of.application, of.fs_name, of.runs, of.gaining, of.files, human_bytes(of.bytes),
                    f"{of.placed_bytes / of.bytes:.0%}" if of.bytes else "-",
                    *map(figure, (of.seen_cost, of.lustre_cost, of.tarazu_cost, of.bound_cost)),
                    *map(figure, (of.lustre_time, of.tarazu_time, of.bound_time)),
                )
                for of in found.applications
            ],
            left=2,
        )  # fmt: skip
        print(
            "\ngain: runs that would have been faster; placed: share of the bytes that would have been placed"
        )
    if measured := [of for of in found.applications if of.measured]:
        print("\nmeasured:")
        for one in measured:
            print(f"  {one.application} on {one.fs_name}: {one.measured}")
    if found.not_placed:
        print()
        print_table(
            ("not placed, because", "runs", "files", "bytes"),
            [(of.why, of.runs, of.files, human_bytes(of.bytes)) for of in found.not_placed],
        )
    if found.reasons:
        print()
        shown = found.reasons[:MOST_REASONS]
        print_table(
            ("would not be placed now, because", "runs", "files", "bytes"),
            [(of.why, of.runs, of.files, human_bytes(of.bytes)) for of in shown],
        )
        if len(found.reasons) > len(shown):
            print(f"{len(found.reasons) - len(shown)} further reasons: --json has all")
    for name, said in found.parts.items():
        print()
        for line in installed()[name].report_lines(said):
            print(line)
    print()
    for line in _rests(found):
        print(line)


def _rests(found: Report) -> list[str]:
    known = sum(run.known_bytes for run in found.runs)
    total = sum(run.bytes for run in found.runs)
    lines = [f"rests on {of}" for of in found.rests_on]
    if total and any(run.lsa for run in found.runs):
        lines.append(
            f"real OSTs known of {known / total:.0%} of the bytes; for the rest a model of Lustre's allocator stands"
        )
    lines.append(_steps(found.steps))
    if found.audit:
        lines.append(_audit(found.audit))
    else:
        lines.append("mdsd's audit log: not looked at (mdsd.audit_log is not set; --audit FILE)")
    lines += [f"left out: {text}" for text in found.damaged[:5]]
    if len(found.damaged) > 5:
        lines.append(f"left out: {len(found.damaged) - 5} further runs that cannot be read")
    return lines


def _steps(of: Steps) -> str:
    if of.problem and not of.lines:
        return f"{of.path}: {of.problem}"
    modes = ", ".join(f"{count} {mode}" for mode, count in of.modes.most_common())
    text = f"{of.path}: {counted(of.lines, 'step')} ({modes or 'none'}){_damaged(of.damaged)}"
    return text + "".join(f"\n  {why} ({count})" for why, count in of.why.most_common(MOST_REASONS))


def _audit(of: Audit) -> str:
    if of.problem and not of.lines:
        return f"mdsd's audit log {of.path}: {of.problem}"
    answers = ", ".join(f"{count} {status}" for status, count in of.status.most_common())
    text = (
        f"mdsd's audit log {of.path}: {counted(of.lines, 'line')} ({answers or 'none'}){_damaged(of.damaged)}"
    )
    if of.ost_cost is not None and of.ost_cost_bound is not None:
        text += f"; as planned: {human_bytes(of.bytes)}, OST cost {of.ost_cost:.3f}, bound {of.ost_cost_bound:.3f}"
    return text + "".join(f"\n  {why} ({count})" for why, count in of.why.most_common(MOST_REASONS))


def _damaged(numbers: list[int]) -> str:
    if not numbers:
        return ""
    shown = ", ".join(map(str, numbers[:5])) + (" ..." if len(numbers) > 5 else "")
    return f"; {counted(len(numbers), 'line')} that cannot be read: {shown}"
