"""Every validation of the simulator in its full form, each in a process of its own, with its time and memory.

    make bench-sim                                       all of them, as tables
    make bench-sim BENCH_ARGS="--json"                   as JSON
    make bench-sim BENCH_ARGS="--only table-6 --short"   one, in the form that the tests run

Ends with status 1 when a comparison is beyond its limit. docs/validation.md has the results.
"""

from __future__ import annotations

import argparse
import math
import sys
from multiprocessing import get_context

from tarazu.cli.output import print_json, print_table
from tarazu.sim.validation import checks


def tell(text: str) -> None:
    print(f"  {text}", file=sys.stderr, flush=True)


def measured(task: tuple[str, bool]) -> checks.Checked:
    name, full = task
    (check,) = checks.chosen([name])
    return checks.run(check, full, tell)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", default=[], metavar="NAME", choices=checks.NAMES)
    parser.add_argument("--short", action="store_true", help="the forms that the tests run: seconds")
    parser.add_argument("--json", action="store_true", help="as JSON")
    options = parser.parse_args()
    found = []
    for check in checks.chosen(options.only):
        print(f"{check.name}: {check.about}", file=sys.stderr, flush=True)
        with get_context("spawn").Pool(1) as pool:
            found.append(pool.apply(measured, ((check.name, not options.short),)))
    if options.json:
        print_json(found)
    else:
        show(found)
    return 0 if all(done.passed for done in found) else 1


def show(found: list[checks.Checked]) -> None:
    for done in found:
        took = f"{done.seconds:.1f} s, {done.peak_bytes / 2**20:.0f} MiB"
        print(f"\n== {done.name}: {done.about} ({done.unavailable or took})\n")
        judged = {True: "", False: "FAILED"}
        print_table(
            ("comparison", "quantity", "expected", "found", "error", "limit", ""),
            [
                (
                    *(row.name, row.quantity, f"{row.expected:.5g}", f"{row.found:.5g}", f"{row.error:.3g}"),
                    *("-" if math.isinf(row.limit) else f"{row.limit:.3g}", judged[row.passed]),
                )
                for row in done.rows
            ],
            left=2,
        )


if __name__ == "__main__":
    sys.exit(main())
