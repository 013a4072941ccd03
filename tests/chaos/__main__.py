"""Faults under load, with invariants: `python -m tests.chaos [--kills N] [--only NAME] [--seed S] [--json]`.

Real daemons on an emulated Lustre, each host in a network namespace of its own (as root). Exit status 0 when everything
held: every file of every job is there, and what living steps were promised is in the book of the mdsd that answers.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time

import msgspec

from tests.chaos.faults import FAULTS
from tests.chaos.run import Plan, lines, run


def interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def main() -> int:
    words = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    words.add_argument(
        "--kills", type=int, default=200, metavar="N", help="kill -9 so often in all (default 200)"
    )
    words.add_argument("--seed", type=int, default=int(time.time()), help="of all that is left to chance")
    words.add_argument(
        "--only", default="", metavar="NAME", help=f"N faults whose name contains it: {', '.join(FAULTS)}"
    )
    words.add_argument("--alone", action="store_true", help="one mdsd, without a second")
    words.add_argument("--short", action="store_true", help="fewer clients and checks, as in the tests")
    words.add_argument("--json", action="store_true", help="one JSON object instead of lines")
    options = words.parse_args()
    signal.signal(signal.SIGTERM, interrupt)
    plan = Plan(options.kills, options.seed, not options.alone, options.only)
    if options.short:
        plan = msgspec.structs.replace(
            plan,
            clients=4,
            jobs=1,
            kills_a_fault=6,
            rounds_a_check=1000,
            longest_wait_s=0.3,
            longest_lull_s=2.5,
        )
    begin = time.monotonic()
    outcome = run(
        plan, lambda text: print(f"{time.monotonic() - begin:6.1f} s  {text}", file=sys.stderr, flush=True)
    )
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(outcome)).decode())
    else:
        print(f"seed {options.seed}")
        print("\n".join(lines(outcome)))
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
