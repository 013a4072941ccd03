"""What other placements of a job's files would have given: from Darshan logs with Lustre records.

tarazu history whatif LOG.darshan
tarazu history whatif LOG.darshan --picture ost.png
tarazu history whatif *.darshan                       a line each, and the total
tarazu status --json > fs.json; tarazu history whatif LOG.darshan --view fs.json

What the job wrote is laid out again, object by object, by tarazu, by a model of Lustre's allocator (over several
seeds: median and range) and at random, with the stripe counts that it had and with more, at the speed that each OST
showed in the log: its bytes over the time in which it was written to. The bound is what no placement can beat. Times
are those of the OSTs alone, all files of a phase at once: what is saved is saved at most.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from tarazu import config, ranges
from tarazu.cli.output import Progress, print_json, print_table, size, whole
from tarazu.daemons.asking import view_in
from tarazu.errors import TarazuError
from tarazu.report.placed import NAMES, Placed, Spread
from tarazu.sim.whatif import stripe_counts
from tarazu.sim.whatif.comparison import Comparison
from tarazu.sim.whatif.job import jobs
from tarazu.sim.whatif.study import AS_LOGGED, WhatIf, study
from tarazu.trace.darshan.read import read
from tarazu.units import MIB, human_bytes

MOST_OSTS = 65_535
MOST_LINES = 12
"""OSTs that get a line of their own."""
APART = 1.5
"""An OST that took so many times longer than the usual one gets one."""
FAR_BELOW = 0.25
"""An OST below this share of the usual speed is named. No verdict: a log has its writers' pauses in its time, too."""
AS_IT_WAS = "as it was"
"""How `history report` calls it too."""
WORTH = 0.01
"""Share of the run below which a gain is no gain."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("logs", nargs="+", metavar="LOG", help="Darshan log")
    parser.add_argument(
        "--osts", type=whole(1, MOST_OSTS), default=0, metavar="N", help="the file system has OSTs 0 to N-1"
    )
    parser.add_argument("--view", metavar="FILE", help="the file system as `tarazu status --json` prints it")
    parser.add_argument(
        "--stripe-count",
        type=whole(1, MOST_OSTS),
        default=1,
        metavar="C",
        help="of files in logs without Lustre records, compared on --osts N (default: 1)",
    )
    parser.add_argument(
        "--stripe-size", type=size, default=MIB, metavar="SIZE", help="of the same (default: 1 MiB)"
    )
    parser.add_argument(
        "--picture", metavar="FILE", help="draw bytes and time of each OST (.png, .svg, .pdf)"
    )
    parser.add_argument("--json", action="store_true", help="as JSON, a list with an object for each log")


def execute(options: argparse.Namespace) -> int:
    settings = config.load(options.config)
    view = view_in(options.view) if options.view else None
    assumed = None
    if options.osts or view:
        assumed = stripe_counts.plain(options.stripe_count, options.stripe_size)
    answers: list[tuple[str, list[WhatIf], list[str]]] = []
    with Progress() as progress:
        for path in options.logs:
            progress(path)
            logged_jobs, notes = jobs(read(path), assumed)
            results = [
                study(
                    job,
                    osts=options.osts,
                    view=view,
                    layout=settings.layout,
                    progress=lambda text, path=path: progress(f"{path}: {text}"),  # type: ignore[misc]
                )
                for job in logged_jobs
            ]
            answers.append((path, results, notes))
    if options.picture:
        _draw([of for _, results, _ in answers for of in results], options.picture)
    if options.json:
        print_json([{"log": path, "notes": notes, "file_systems": of} for path, of, notes in answers])
    elif len(answers) == 1:
        _print_one(*answers[0])
    else:
        _print_many(answers)
    return 0 if any(of.compared for _, results, _ in answers for of in results) else 1


def _draw(results: Sequence[WhatIf], path: str) -> None:
    from tarazu.sim.whatif import picture

    drawn = [of for of in results if of.compared]
    if not drawn:
        raise TarazuError(f"{path}: expected a log whose files can be placed, found none: nothing to draw")
    picture.draw(drawn, Path(path))
    print(f"{path}: drawn", file=sys.stderr)


def _print_one(path: str, results: Sequence[WhatIf], notes: Sequence[str]) -> None:
    for number, of in enumerate(results):
        print("\n" * (number > 0), end="")
        _print_summary(of)
        if of.compared:
            print()
            _print_policies(of)
            print()
            _print_wider(of)
            print()
            _print_osts(of)
        if of.notes:
            print()
        for note in of.notes:
            print(f"note: {note}")
    if not results:
        print(f"{path}: wrote nothing to Lustre that could be placed")
    for note in notes:
        print(f"note: {note}")


def _print_summary(of: WhatIf) -> None:
    where = f" to {of.mount}" if of.mount else ""
    there = f", {of.files - of.new_files} of them there before" if of.files > of.new_files else ""
    print(
        f"{of.application or of.log}: {of.ranks} ranks wrote {human_bytes(of.written_bytes)}{where}: "
        f"{of.files} files{there}, stripe count {of.stripe_count}, on {of.osts} OSTs"
    )
    if of.why_no_figures:
        print(f"as it was: unknown: {of.why_no_figures}")
    elif of.why_no_times:
        print(f"times: unknown: {of.why_no_times}")
    if of.span_s:
        share = (
            f", {of.writing_s / of.run_time_s:.1%} of a run of {_seconds(of.run_time_s)} s"
            if of.run_time_s
            else ""
        )
        parts = f" in {of.phases} phases" if of.phases > 1 else ""
        print(
            f"from the first write to the last return {_seconds(of.span_s)} s; "
            f"some file was being written for {_seconds(of.writing_s)} s of them{parts}{share}"
        )
    for line in slow(of):
        print(line)
    print(gain(of))


def slow(of: WhatIf) -> list[str]:
    """OSTs that held the job up: below a quarter of the usual speed, and busy for longer than the others."""
    rows = [row for row in of.rows if row.seen_bytes_per_s and AS_LOGGED in row.seconds]
    if len(rows) < 2:
        return []
    speed = median(row.seen_bytes_per_s or 0.0 for row in rows)
    usual_s = median(row.seconds[AS_LOGGED] for row in rows)
    stragglers = [
        r
        for r in rows
        if (r.seen_bytes_per_s or 0.0) < FAR_BELOW * speed and r.seconds[AS_LOGGED] > APART * usual_s
    ]
    return [
        f"OST {row.ost} wrote {rate / 1e6:.0f} MB/s, 1/{speed / rate:.0f} of the usual one, for "
        f"{_seconds(row.seconds[AS_LOGGED])} s: sick, or held up by its writers"
        for row in stragglers[:MOST_LINES]
        if (rate := row.seen_bytes_per_s)
    ]


def gain(of: WhatIf) -> str:
    """What a site may expect of tarazu for this job, in one line."""
    if of.compared is None:
        return "nothing to compare: " + (
            "all files were there before" if of.files and not of.new_files
            else "one OST is known; --osts N or --view FILE tells how many there are" if of.osts == 1
            else of.why_no_figures or "which OSTs there are is not known"
        )  # fmt: skip
    if of.gain_s is None or of.actual is None or of.actual.time_s is None:
        ours, lustre = of.compared.of("tarazu").ost_cost, of.compared.of("lsa").ost_cost
        if ours is None or lustre is None:
            return "these files cannot be placed on the OSTs that are known"
        costs = f"OST cost: tarazu {ours.median:.3f}, Lustre's allocator {lustre.median:.3f}"
        return f"{costs}; how much time that is, the log cannot say"
    before, after = of.actual.time_s.median, of.actual.time_s.median - of.gain_s
    text = f"tarazu: OST time {_seconds(before)} s -> {_seconds(after)} s"
    if of.least_run_s is None or not of.run_time_s:
        return text + "; the run time is not known"
    saved = of.run_time_s - of.least_run_s
    if saved < WORTH * of.run_time_s:
        return text + ": no gain to speak of, other OSTs would not have shortened this run"
    return text + (
        f"; the run, {_seconds(of.run_time_s)} s, takes {_seconds(of.least_run_s)} s at least: "
        f"at most {of.run_time_s / of.least_run_s:.2f} times as fast"
        if of.least_run_s > 0
        else f"; the run was nothing but writing, and would take {_seconds(after)} s at least"
    )


def _print_policies(of: WhatIf) -> None:
    assert of.compared
    rows = [_policy(AS_IT_WAS, of.actual)] if of.actual else [(AS_IT_WAS, "unknown", "unknown", "-", "")]
    rows += [_policy(NAMES[p.policy], p) for p in of.compared.placed]
    rows.append(
        (
            "bound: nothing can beat it",
            _number(of.compared.ost_cost_bound),
            _time(of.compared.time_bound_s),
            "-",
            "",
        )
    )
    print_table(("placement", "OST cost", "OST time s", "slowest OST", "seeds"), rows)


def _policy(name: str, placed: Placed) -> tuple[object, ...]:
    if placed.why_not:
        return (name, "impossible", placed.why_not, "-", "")
    slowest = "-" if placed.slowest_ost is None else placed.slowest_ost
    return (
        name,
        _spread(placed.ost_cost, 3),
        _spread(placed.time_s, 1),
        slowest,
        placed.seeds if placed.policy in ("lsa", "random") else "",
    )


def _print_wider(of: WhatIf) -> None:
    rows: list[tuple[object, ...]] = []
    for wider in of.wider:
        if wider.compared is None:
            rows.append(
                (wider.name, wider.stripe_count, "more stripes than are tried", "", "", "", "", "", "")
            )
            continue
        rows.append(
            (
                wider.name,
                wider.stripe_count,
                *_cells(wider.compared, "lsa"),
                *_cells(wider.compared, "tarazu"),
                _time(wider.compared.time_bound_s),
            )
        )
    if rows:
        print_table(
            (
                "more stripes",
                "count",
                "Lustre: OST cost",
                "OST time s",
                "slowest OST",
                "tarazu: OST cost",
                "OST time s",
                "slowest OST",
                "bound",
            ),
            rows,
        )


def _cells(compared: Comparison, policy: str) -> tuple[object, ...]:
    placed = compared.of(policy)
    if placed.why_not or placed.ost_cost is None:
        return ("impossible", "-", "-")
    return (
        f"{placed.ost_cost.median:.3f}",
        _time(placed.time_s.median if placed.time_s else None),
        "-" if placed.slowest_ost is None else placed.slowest_ost,
    )


def _print_osts(of: WhatIf) -> None:
    """The OSTs that matter, a line each; the others folded into one."""
    first = AS_LOGGED if of.actual else "lsa"
    names = [name for name in (AS_LOGGED, "lsa", "tarazu") if name in of.rows[0].bytes]

    def weight(place: int) -> float:
        row = of.rows[place]
        return row.seconds.get(first, float(row.bytes.get(first, 0)))

    order = sorted(range(len(of.rows)), key=lambda place: -weight(place))
    usual = median(map(weight, order))
    apart = [place for place in order if weight(place) > APART * usual][: MOST_LINES - 1]
    shown = order if len(order) <= MOST_LINES else apart
    rest = [] if len(order) <= MOST_LINES else [place for place in order if place not in set(apart)]
    titles = [title for name in names for title in ((NAMES_SHORT[name]), "s")]
    lines = [_ost_line(of, [place], names) for place in sorted(shown)]
    lines += [_ost_line(of, sorted(rest), names)] if rest else []
    print_table(("OST", "MB/s seen", *titles), lines)


NAMES_SHORT = {AS_LOGGED: AS_IT_WAS, "lsa": "Lustre", "tarazu": "tarazu"}


def _ost_line(of: WhatIf, places: Sequence[int], names: Sequence[str]) -> tuple[object, ...]:
    rows = [of.rows[place] for place in places]
    label = ranges.fold(sorted(row.ost for row in rows))
    label = label if len(label) <= 24 else f"{len(rows)} others"
    rates = [row.seen_bytes_per_s / 1e6 for row in rows if row.seen_bytes_per_s]
    cells: list[object] = []
    for name in names:
        cells.append(
            _range([human_bytes(b) for _, b in sorted((row.bytes[name], row.bytes[name]) for row in rows)])
        )
        cells.append(
            _range([f"{s:.1f}" for s in sorted(row.seconds[name] for row in rows if name in row.seconds)])
        )
    return (label, _range([f"{rate:.0f}" for rate in sorted(rates)]) if rates else "unknown", *cells)


def _range(ordered: Sequence[str]) -> str:
    if not ordered:
        return "-"
    return ordered[0] if ordered[0] == ordered[-1] else f"{ordered[0]}-{ordered[-1]}"


def _print_many(answers: Sequence[tuple[str, Sequence[WhatIf], Sequence[str]]]) -> None:
    rows: list[tuple[object, ...]] = []
    total = {"logged": 0.0, "lsa": 0.0, "tarazu": 0.0, "bound": 0.0, "run": 0.0, "least": 0.0}
    counted = 0
    for path, results, notes in answers:
        name = Path(path).name
        if not results:
            rows.append((name, "", "-", "-", "-", "-", "-", "-", (notes or ["wrote nothing to Lustre"])[0]))
        for of in results:
            cells, word = _line(of), of.why_no_figures or of.why_no_times or ("" if of.compared else gain(of))
            rows.append((name, human_bytes(of.written_bytes), *cells, word))
            if of.gain_s is not None and of.compared and of.actual and of.actual.time_s:
                counted += 1
                total["logged"] += of.actual.time_s.median
                total["lsa"] += _median(of.compared.of("lsa").time_s)
                total["tarazu"] += of.actual.time_s.median - of.gain_s
                total["bound"] += of.compared.time_bound_s or 0.0
                total["run"] += of.run_time_s
                total["least"] += of.least_run_s or of.run_time_s
    if counted:
        figures = [_seconds(total[name]) for name in ("logged", "lsa", "tarazu", "bound", "run", "least")]
        rows.append((f"total of {counted}", "", *figures, ""))
    print_table(
        ("log", "bytes", "OST time s: as it was", "Lustre", "tarazu", "bound", "run s", "at least s", ""),
        rows,
    )


def _line(of: WhatIf) -> tuple[str, ...]:
    if of.gain_s is None or of.compared is None or of.actual is None or of.actual.time_s is None:
        return ("-",) * 6
    return (
        _seconds(of.actual.time_s.median),
        _seconds(_median(of.compared.of("lsa").time_s)),
        _seconds(of.actual.time_s.median - of.gain_s),
        _time(of.compared.time_bound_s),
        _seconds(of.run_time_s) if of.run_time_s else "-",
        "-" if of.least_run_s is None else _seconds(of.least_run_s),
    )


def _median(spread: Spread | None) -> float:
    return spread.median if spread else 0.0


def _spread(spread: Spread | None, digits: int) -> str:
    if spread is None:
        return "unknown"
    low, middle, high = (f"{v:.{digits}f}" for v in (spread.lowest, spread.median, spread.highest))
    return middle if low == high else f"{middle} ({low}-{high})"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"


def _time(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1f}"


def _seconds(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"
