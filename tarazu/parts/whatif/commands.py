"""What a job would have gained from tarazu, from its Darshan log, or results of IOR: an answer, a picture, a table.

tarazu whatif --example                       a real job on a Lustre with one slow OST; the log is in the package
tarazu whatif LOG.darshan
tarazu whatif LOG.darshan --picture osts.svg
tarazu whatif *.darshan                       a sentence for each, and the total
tarazu whatif LOG.darshan --osts 64           a log without Lustre records, as if on a Lustre of 64 OSTs
tarazu status --json > fs.json; tarazu whatif LOG.darshan --view fs.json
tarazu whatif RESULTS                         a folder of IO500's, or outputs of IOR: what slow ranks cost

What the job wrote is laid out again, object by object, by tarazu, by a model of Lustre's allocator (over several
seeds: median and range) and at random, with the stripe counts that it had and with more, at the speed that each OST
showed in the log: its bytes over the time in which it was written to. The bound is what no placement can beat. Times
are those of the OSTs alone, all files of a phase at once: what is saved is saved at most. Outputs of IOR name no OSTs:
of them the time is told that was lost to the slowest ranks, of which placement can give back a part at best.

Exit status: 0, 1 where no log could be compared, 2 where one could not be read (the others are compared).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.resources import as_file
from pathlib import Path
from statistics import median

import msgspec

from tarazu import config, ranges
from tarazu.cli.output import Progress, print_json, print_table, say, size, whole
from tarazu.daemons.asking import view_in
from tarazu.errors import BadInput, TarazuError
from tarazu.model import SystemView
from tarazu.names import shown
from tarazu.parts.whatif import picture, stripe_counts, words
from tarazu.parts.whatif.comparison import Comparison
from tarazu.parts.whatif.ior import picture as ior_picture
from tarazu.parts.whatif.ior import results as ior
from tarazu.parts.whatif.ior import words as ior_words
from tarazu.parts.whatif.ior.lost import Lost
from tarazu.parts.whatif.ior_tables import print_phases, print_results
from tarazu.parts.whatif.job import LoggedJobs, jobs
from tarazu.parts.whatif.study import AS_LOGGED, WhatIf, study
from tarazu.parts.whatif.words import APART, seconds
from tarazu.report.placed import NAMES, Placed, Spread
from tarazu.trace.darshan import example
from tarazu.trace.darshan.read import read
from tarazu.units import MIB, counted, human_bytes

MOST_OSTS = 65_535
MOST_LINES = 12
"""OSTs that get a line of their own."""
AS_IT_WAS = "as it was"
"""How `history report` calls it too."""


class Answer(msgspec.Struct):
    """What came of one log."""

    log: str
    logged: LoggedJobs | None = None
    results: list[WhatIf] = []
    error: TarazuError | None = None
    """It cannot be read, or the options do not fit it."""
    ior: ior.Result | None = None
    lost: list[Lost] = []
    """Of each phase of `ior`."""

    @property
    def notes(self) -> list[str]:
        if not self.ior:
            return self.logged.notes if self.logged else []
        return [*self.ior.notes, *(f"{of.phase}: {note}" for of in self.lost for note in of.notes)]

    @property
    def compared(self) -> bool:
        known = any(of.at_most_share is not None for of in self.lost)
        return known or any(of.compared for of in self.results)

    @property
    def sentences(self) -> list[str]:
        if self.ior:
            return ior_words.answer(self.log, self.lost)
        if self.error or not self.logged:
            return []
        if not self.results:
            return [words.nothing(self.log, self.logged)]
        return [line for of in self.results for line in words.answer(of)]


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "logs", nargs="*", metavar="LOG", help="Darshan log; output of IOR, or folder of them"
    )
    parser.add_argument("--example", action="store_true", help="the log that is in the package")
    there = parser.add_mutually_exclusive_group()
    there.add_argument(
        "--osts", type=whole(1, MOST_OSTS), default=0, metavar="N", help="the file system has OSTs 0 to N-1"
    )
    there.add_argument("--view", metavar="FILE", help="the file system as `tarazu status --json` prints it")
    parser.add_argument(
        "--stripe-count",
        type=whole(1, MOST_OSTS),
        metavar="C",
        help="of files in logs without Lustre records, with --osts or --view (default: 1)",
    )
    parser.add_argument("--stripe-size", type=size, metavar="SIZE", help="of the same (default: 1 MiB)")
    parser.add_argument("--picture", metavar="FILE", help="draw what each OST writes (.svg)")
    parser.add_argument("--json", action="store_true", help="as JSON, a list with an object for each log")


def execute(options: argparse.Namespace) -> int:
    settings = config.load(options.config)
    view = view_in(options.view) if options.view else None
    if options.picture:
        picture.check(Path(options.picture))
    with as_file(example()) as inside:
        logs = [*options.logs, *([str(inside)] if options.example else [])]
        if not logs:
            raise BadInput("LOG", "a Darshan log, or results of IOR (or --example)", "none")
        answers = _loaded(logs, options, view)
    with Progress() as progress:
        for answer in answers:
            for job in answer.logged.jobs if answer.logged else ():
                try:
                    answer.results.append(
                        study(
                            job,
                            osts=options.osts,
                            view=view,
                            layout=settings.layout,
                            progress=lambda text, log=answer.log: progress(f"{log}: trying {text}"),  # type: ignore[misc]
                        )
                    )
                except TarazuError as error:
                    answer.error = error
    if options.json:
        print_json([_as_json(answer) for answer in answers])
    for answer in answers:
        if answer.error:
            print(shown(f"tarazu whatif: {answer.error}"), file=sys.stderr)
    drawn = [answer for answer in answers if answer.compared]
    if len(answers) == 1 and not options.json:
        _print_one(answers[0], _draw(drawn, options.picture))
    elif not options.json:
        _print_many(answers, _draw(drawn, options.picture))
    else:
        _draw(drawn, options.picture)
    if any(answer.error for answer in answers):
        return BadInput.exit_status
    return 0 if drawn else 1


def _loaded(logs: Sequence[str], options: argparse.Namespace, view: SystemView | None) -> list[Answer]:
    """The logs, read. Raises BadInput for options that fit none of them."""
    assumed = None
    if options.osts or view:
        assumed = stripe_counts.plain(options.stripe_count or 1, options.stripe_size or MIB)
    given = "--stripe-count" if options.stripe_count else "--stripe-size" if options.stripe_size else ""
    if given and assumed is None:
        raise BadInput(given, "--osts N or --view FILE beside it", "neither")
    known = len(view.osts) if view else options.osts
    if known and (options.stripe_count or 1) > known:
        raise BadInput("--stripe-count", f"at most {known}, the number of OSTs", options.stripe_count)
    answers, of_use = [], False
    for path in logs:
        try:
            if ior.is_ior(path):
                found = ior.read(path)
                answers += [Answer(of.where, ior=of, lost=of.lost) for of in found]
                continue
            log = read(path)
            of_use = of_use or bool(log.gap("no-lustre"))
            logged = jobs(log, assumed)
            highest = max((max(job.osts) for job in logged.jobs if job.osts), default=-1)
            if 0 < options.osts <= highest:
                raise BadInput(path, f"--osts {highest + 1} or more: it names OST {highest}", options.osts)
            answers.append(Answer(path, logged))
        except TarazuError as error:
            answers.append(Answer(path, error=error))
    if (known or given) and all(answer.ior for answer in answers):
        option = given or ("--view" if view else "--osts")
        raise BadInput(option, "a Darshan log", "results of IOR, which name no OSTs")
    if given and not of_use and not all(answer.error for answer in answers):
        raise BadInput(given, "a log without Lustre records", "logs that say how their files were striped")
    return answers


def _as_json(answer: Answer) -> dict[str, object]:
    return {
        "log": answer.log,
        "answer": answer.sentences,
        "error": str(answer.error) if answer.error else None,
        "notes": answer.notes,
        "file_systems": answer.results,
        "phases": answer.lost,
    }


def _draw(answers: Sequence[Answer], path: str | None) -> str:
    """Where the picture is; empty without one."""
    if not path:
        return ""
    if not answers:
        return f"picture: not drawn, for nothing could be compared: {path}"
    drawn = [picture.of_job(of) for answer in answers for of in answer.results if of.compared]
    drawn += [ior_picture.panels(of.log, of.ior.phases, of.lost) for of in answers if of.ior]
    picture.draw(drawn, Path(path))
    return f"picture: {path}"


def _print_one(answer: Answer, picture: str) -> None:
    for line in [*answer.sentences, *([picture] if picture else [])]:
        say(line)
    print_phases(answer.lost)
    for of in answer.results:
        print()
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
            say(f"note: {note}")
    if answer.ior and answer.notes:
        print()
    for note in answer.notes:
        say(f"note: {note}")


def _print_summary(of: WhatIf) -> None:
    where = f" to {of.mount}" if of.mount else ""
    there = f", {of.files - of.new_files} of them there before" if of.files > of.new_files else ""
    say(
        f"{counted(of.ranks, 'rank')} wrote {human_bytes(of.written_bytes)}{where}: "
        f"{counted(of.files, 'file')}{there}, stripe count {of.stripe_count}, on {counted(of.osts, 'OST')}"
    )
    if of.span_s:
        share = (
            f", {of.writing_s / of.run_time_s:.1%} of a run of {seconds(of.run_time_s)} s"
            if of.run_time_s
            else ""
        )
        parts = f" in {counted(of.phases, 'phase')}" if of.phases > 1 else ""
        print(
            f"from the first write to the last return {seconds(of.span_s)} s; "
            f"some file was being written for {seconds(of.writing_s)} s of them{parts}{share}"
        )
    for row in words.slow(of)[:MOST_LINES]:
        rate, took = row.seen_bytes_per_s or 0.0, row.seconds[AS_LOGGED]
        print(
            f"OST {row.ost} wrote {rate / 1e6:.0f} MB/s for {seconds(took)} s: slow, or held up by its writers"
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


def _print_many(answers: Sequence[Answer], picture: str) -> None:
    for answer in answers:
        name = Path(answer.log).name
        if answer.error:
            say(f"{name}: cannot be compared: {str(answer.error).removeprefix(f'{answer.log}: ')}")
        elif answer.ior:
            say(answer.sentences[0])
        elif not answer.results:
            say(answer.sentences[0].replace(answer.log, name, 1))
        for of in answer.results:
            say(f"{name}: {words.answer(of)[0]}")
    if picture:
        say(picture)
    _print_total(answers)
    print_results([(answer.log, answer.lost) for answer in answers])
    _print_doubts(answers)


def _print_doubts(answers: Sequence[Answer]) -> None:
    """Each but once."""
    of: dict[str, list[str]] = {}
    for answer in answers:
        for text in answer.notes if answer.ior else ():
            of.setdefault(text, []).append(answer.log)
    if of:
        print()
    for text, logs in list(of.items())[:MOST_LINES]:
        others = f" and {counted(len(logs) - 1, 'other')}" if len(logs) > 1 else ""
        say(f"note: {logs[0]}{others}: {text}")
    if len(of) > MOST_LINES:
        say(f"note: {counted(len(of) - MOST_LINES, 'further note')}: --json has all")


def _print_total(answers: Sequence[Answer]) -> None:
    """A line for each log of which times are known, and the total."""
    rows: list[tuple[object, ...]] = []
    total = {"logged": 0.0, "lsa": 0.0, "tarazu": 0.0, "bound": 0.0, "run": 0.0, "least": 0.0}
    for log, of in [(answer.log, of) for answer in answers for of in answer.results]:
        if of.gain_s is None or not of.compared or not of.actual or not of.actual.time_s:
            continue
        rows.append((Path(log).name, human_bytes(of.written_bytes), *_line(of)))
        total["logged"] += of.actual.time_s.median
        total["lsa"] += _median(of.compared.of("lsa").time_s)
        total["tarazu"] += of.actual.time_s.median - of.gain_s
        total["bound"] += of.compared.time_bound_s or 0.0
        total["run"] += of.run_time_s
        total["least"] += of.least_run_s or of.run_time_s
    if not rows:
        return
    rows.append((f"total of {len(rows)}", "", *(seconds(value) for value in total.values())))
    print()
    print_table(
        (
            "log",
            "bytes",
            "OST time s: as it was",
            "Lustre",
            "tarazu",
            "bound",
            "run s",
            "with tarazu at least s",
        ),
        rows,
    )


def _line(of: WhatIf) -> tuple[str, ...]:
    assert of.gain_s is not None and of.compared and of.actual and of.actual.time_s
    return (
        seconds(of.actual.time_s.median),
        seconds(_median(of.compared.of("lsa").time_s)),
        seconds(of.actual.time_s.median - of.gain_s),
        _time(of.compared.time_bound_s),
        seconds(of.run_time_s) if of.run_time_s else "-",
        "-" if of.least_run_s is None else seconds(of.least_run_s),
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
