"""What came of a comparison, in plain words: what the job would have gained, and why, or why that cannot be said."""

from __future__ import annotations

from statistics import median

from tarazu import ranges
from tarazu.parts.whatif.job import NO_RECORDS, UNNAMED, LoggedJobs
from tarazu.parts.whatif.study import AS_LOGGED, OstRow, WhatIf, Wider
from tarazu.units import counted, human_bytes

APART = 1.5
"""An OST that took so many times longer than the usual one held the job up."""
FAR_BELOW = 0.25
"""An OST below this share of the usual speed is named. No verdict: a log has its writers' pauses in its time, too."""
WORTH = 0.01
"""Share of a time below which a gain is no gain."""
EVEN = 1.1
"""Up to this max / mean of the bytes per OST they lay evenly."""
MORE_STRIPES = 0.9
"""More stripes are named where they take less than this share of the time."""


def seconds(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def answer(of: WhatIf) -> list[str]:
    """Sentences; the first is the answer."""
    name = of.application or of.log
    if of.compared is None:
        return [f"{name}: {_nothing_to_compare(of)}."]
    if of.actual is None and of.why_no_figures == NO_RECORDS:
        return [f"{name}: {_as_if(of)}."]
    if of.actual is None:
        return [
            f"{name}: what it would have gained cannot be said, because {of.why_no_figures}.",
            _by_evenness(of),
        ]
    if of.gain_s is None or of.actual.time_s is None:
        why = of.why_no_times or of.compared.of("tarazu").why_not
        return [
            f"{name}: how much time it would have gained cannot be said, because {why}.",
            _by_evenness(of),
        ]
    before_s = of.actual.time_s.median
    after_s = before_s - of.gain_s
    saved_s = of.run_time_s - of.least_run_s if of.least_run_s is not None else of.gain_s
    if of.gain_s < WORTH * before_s or saved_s < WORTH * of.run_time_s:
        return [
            f"{name}: would have gained nothing, because {_why_nothing(of)}.",
            *_more_stripes(of, before_s),
        ]
    lines = [
        f"{name}: writing would have taken {seconds(after_s)} s instead of {seconds(before_s)} s at best "
        f"({of.gain_s / before_s:.0%} less), because {_why(of)}.",
    ]
    if of.least_run_s is None:
        lines.append("How long the run took is not in the log.")
    else:
        least_s = max(of.least_run_s, after_s)
        lines.append(
            f"The whole run would have taken {seconds(least_s)} s or more instead of {seconds(of.run_time_s)} s: "
            "what is not writing stays as it was."
        )
    return [*lines, *_more_stripes(of, after_s)]


def slow(of: WhatIf) -> list[OstRow]:
    """OSTs that held the job up: below a quarter of the usual speed, and busy for longer than the others."""
    rows = [row for row in of.rows if row.seen_bytes_per_s and AS_LOGGED in row.seconds]
    if len(rows) < 2:
        return []
    speed = median(row.seen_bytes_per_s or 0.0 for row in rows)
    usual_s = median(row.seconds[AS_LOGGED] for row in rows)
    return [
        r
        for r in rows
        if (r.seen_bytes_per_s or 0.0) < FAR_BELOW * speed and r.seconds[AS_LOGGED] > APART * usual_s
    ]


def _why(of: WhatIf) -> str:
    assert of.actual and of.compared and of.actual.ost_cost
    rows = slow(of)
    if rows:
        speed = median(row.seen_bytes_per_s or 0.0 for row in of.rows if row.seen_bytes_per_s)
        times = sorted(speed / (row.seen_bytes_per_s or speed) for row in rows)
        which = ranges.fold(sorted(row.ost for row in rows))
        by = f"{times[0]:.0f}" if times[0] == times[-1] else f"{times[0]:.0f} to {times[-1]:.0f}"
        osts, were = ("OST", "was") if len(rows) == 1 else ("OSTs", "were")
        return f"{osts} {which} {were} {by} times slower than the rest"
    if of.actual.ost_cost.median > EVEN:
        most = max(row.bytes.get(AS_LOGGED, 0) for row in of.rows)
        full = [row.ost for row in of.rows if row.bytes.get(AS_LOGGED, 0) >= (1 - WORTH) * most]
        which, their = (
            (f"OST {full[0]}", "its") if len(full) == 1 else (f"{len(full)} of {of.osts} OSTs", "their")
        )
        return f"{which} got {of.actual.ost_cost.median:.2g} times {their} share of the bytes"
    return f"OST {of.actual.slowest_ost} took longest, and others would have been faster"


def _why_nothing(of: WhatIf) -> str:
    assert of.actual and of.actual.time_s and of.actual.ost_cost
    if (of.gain_s or 0.0) >= WORTH * of.actual.time_s.median:
        return f"it was writing for only {seconds(of.writing_s)} s of its {seconds(of.run_time_s)} s"
    if of.actual.ost_cost.median <= EVEN:
        return "its bytes already lay evenly on its OSTs"
    return "other OSTs would not have been faster, at the speeds that the log shows"


def _more_stripes(of: WhatIf, beside_s: float) -> list[str]:
    """That more stripes are worth more than other OSTs, where they are."""

    def time_s(wider: Wider) -> float:
        time = wider.compared.of("tarazu").time_s if wider.compared else None
        return time.median if time else float("inf")

    best = min(of.wider, key=time_s, default=None)
    if best is None or time_s(best) > MORE_STRIPES * beside_s:
        return []
    took = f"with stripe count {best.stripe_count} writing would have taken {seconds(time_s(best))} s"
    return [f"More stripes would have helped: {took}."]


def _as_if(of: WhatIf) -> str:
    """Of a log without Lustre records."""
    assert of.compared
    ours, lustre = of.compared.of("tarazu"), of.compared.of("lsa")
    if ours.ost_cost is None or lustre.ost_cost is None:
        return f"its files cannot be placed on {counted(of.osts, 'OST')}: {ours.why_not or lustre.why_not}"
    return (
        f"on {counted(of.osts, 'OST')} the fullest would get {ours.ost_cost.median:.2f} times its share of the bytes "
        f"from tarazu, {lustre.ost_cost.median:.2f} times from Lustre's allocator; times cannot be said, because the "
        "log does not say where its files lay"
    )


def _by_evenness(of: WhatIf) -> str:
    """What can be said without times."""
    assert of.compared
    ours, lustre = of.compared.of("tarazu"), of.compared.of("lsa")
    if ours.ost_cost is None or lustre.ost_cost is None:
        return f"Its files cannot be placed on the OSTs that are known: {ours.why_not or lustre.why_not}."
    there = f", it was {of.actual.ost_cost.median:.2f} times" if of.actual and of.actual.ost_cost else ""
    return (
        f"On {counted(of.osts, 'OST')} the fullest would get {ours.ost_cost.median:.2f} times its share of the bytes "
        f"from tarazu, {lustre.ost_cost.median:.2f} times from Lustre's allocator{there}."
    )


def _nothing_to_compare(of: WhatIf) -> str:
    if of.files and not of.new_files:
        return "would have gained nothing, because all its files were there before, and only new files can be placed"
    if of.osts == 1 and of.why_no_figures in ("", NO_RECORDS):
        return "cannot be compared, because only one OST is known (--osts N or --view FILE says which others there are)"
    hint = " (--osts N compares it on a Lustre of N OSTs)" if of.why_no_figures == NO_RECORDS else ""
    return f"cannot be compared, because {of.why_no_figures or 'which OSTs there are is not known'}{hint}"


def nothing(path: str, logged: LoggedJobs) -> str:
    """One sentence on a log of which nothing can be placed."""
    if not logged.elsewhere:
        return f"{path}: wrote nothing, as far as its log counts."
    where = ", ".join(f"{human_bytes(size)} to {kind or UNNAMED}" for kind, size in logged.elsewhere.items())
    hint = "; --osts N compares it as if on a Lustre of N OSTs" if logged.need_assumed else ""
    return f"{path}: wrote nothing to Lustre ({where}){hint}."
