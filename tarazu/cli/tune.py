"""Parameters that learn: what is in force, what the council has learned of which access pattern, and why.

    tarazu tune                  what is set on this node; what this node's council has decided, and why
    tarazu tune show             what the council has learned: pattern by pattern each value's rate, how sure, how often
    tarazu tune --observe        on the council's node, as root: learn only, and have all nodes restore what was there
    tarazu tune --advise         likewise; say what would be set
    tarazu tune --apply          on the council's node: have it set, on nodes that say so too; on a node: again, after --undo
    tarazu tune --undo           on a node: restore what was there, now, and set nothing until --apply; needs neither
                                 daemon nor council. On the council's node: all of its nodes restore, and stay so

For example, when an OSS behaves oddly, on that OSS: `tarazu tune --undo`. When all do, on the council's node the same,
or `tarazu disable --site`. Nothing is ever set while `tune.mode` is not `apply`, on the node and at the council.
Rates are of one node in one interval; intervals in brackets hold the mean with 95 %.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from tarazu import config
from tarazu.cli.output import action_options, print_json, print_table, say
from tarazu.errors import BadInput, TarazuError, Unavailable


def learned_lines(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """What the council has learned, a paragraph for each lever and pattern, the patterns that are seen now first."""
    lines: list[str] = []
    of_pattern = [(key, list(found)) for key, found in groupby(rows, key=lambda r: (r["lever"], r["pattern"]))]
    of_pattern.sort(key=lambda each: -each[1][0]["nodes_now"])
    for (lever, pattern), found in of_pattern:
        now = found[0]["nodes_now"]
        seen = f"; seen on {now} node{'s' * (now != 1)} now" if now else ""
        lines += ["", f"{pattern} ({lever}{seen})"]
        wide = max(len(row["value"]) for row in found)
        lines += [f"  {row['value']:<{wide}}  {_belief(row)}".rstrip() for row in found]
    return lines[1:]


def _belief(row: Mapping[str, Any]) -> str:
    """Of one value: rate, interval, count; whether it is the best, or decided."""
    if not row["seen"]:
        return "not tried" + (", decided" if row["decided"] else "")
    high = f"{row['high'] / 1e6:.1f}" if row["high"] is not None else "?"
    notes = [word for word in ("best", "decided") if row[word]]
    told = f"{row['bytes_per_s'] / 1e6:9.1f} MB/s [{row['low'] / 1e6:.1f}, {high}]  {row['seen']:.0f} intervals"
    return told + (f"  {', '.join(notes)}" if notes else "")
