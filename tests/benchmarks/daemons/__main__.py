"""Benchmarks of the daemons: `python -m tests.benchmarks.daemons [--only NAME...] [--short] [--json]`.

Each module of this folder with a `measure(short)` is one. The exit status is 1 when a figure is beyond its limit.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

from tests.benchmarks.daemons.figure import Figure

Measure = Callable[[bool], list[Figure]]


def benchmarks() -> dict[str, tuple[str, Measure]]:
    """Name → (what it is, its function)."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if not path.stem.startswith("_"):
            module = importlib.import_module(f"tests.benchmarks.daemons.{path.stem}")
            if hasattr(module, "measure"):
                found[path.stem] = ((module.__doc__ or "").partition("\n")[0], module.measure)
    return found


def main() -> int:
    known = benchmarks()
    parser = argparse.ArgumentParser(prog="make bench-daemons", description="Measure the daemons.")
    parser.add_argument("--only", action="append", choices=sorted(known), help="this one; may be given again")
    parser.add_argument("--short", action="store_true", help="a tenth of the size, to see that it works")
    parser.add_argument("--json", action="store_true", help="figures as JSON")
    options = parser.parse_args()
    results: dict[str, list[Figure]] = {}
    for name in options.only or known:
        what, measure = known[name]
        if not options.json:
            load = os.getloadavg()[0]
            print(f"\n{name}: {what}\n  ({os.cpu_count()} processors, load {load:.1f} before)", flush=True)
        results[name] = measure(options.short)
        if not options.json:
            print("\n".join(map(str, results[name])), flush=True)
    if options.json:
        print(
            json.dumps({name: [f._asdict() for f in figures] for name, figures in results.items()}, indent=2)
        )
    return 0 if all(figure.holds for figures in results.values() for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
