"""Thousands of drawn histories of each lever: `python -m tests.parts.changes.many [--count N] [LEVER…]`.

Says how many were run and each that left something else than it should; exit status 1 then.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import time

from .cases import CASES
from .histories import drawn, run


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    options.add_argument("levers", nargs="*", metavar="LEVER", help=f"of {', '.join(CASES)} (default: all)")
    options.add_argument(
        "--count", type=int, default=2000, metavar="N", help="histories of each (default 2000)"
    )
    options.add_argument("--seed", type=int, default=0, metavar="S")
    chosen = options.parse_args()
    logging.disable()
    wrong = 0
    for name in chosen.levers or sorted(CASES):
        begun, bad = time.monotonic(), 0
        for seed in range(chosen.seed, chosen.seed + chosen.count):
            steps = drawn(random.Random(seed))
            found, expected = run(CASES[name], steps)
            if found != expected:
                bad += 1
                left = {n: v for n, v in found.items() if expected.get(n) != v}
                print(
                    f"{name}, seed {seed}: found {left}, expected { ({n: expected.get(n) for n in left}) }: {steps}"
                )
            if sys.stderr.isatty():
                print(f"\r{name}: {seed - chosen.seed + 1}", end="", file=sys.stderr)
        wrong += bad
        print(f"{name}: {chosen.count} histories, {bad} wrong, {time.monotonic() - begun:.0f} s", flush=True)
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
