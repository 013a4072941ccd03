"""Runs benchmarks: `python -m tests.benchmarks [name...]`, a name being a subfolder; all of them without one."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

HERE = Path(__file__).parent


def modules() -> dict[str, list[str]]:
    """The benchmark modules of each subfolder."""
    found: dict[str, list[str]] = {}
    for path in sorted(HERE.glob("*/bench_*.py")):
        found.setdefault(path.parent.name, []).append(f"tests.benchmarks.{path.parent.name}.{path.stem}")
    return found


def main() -> int:
    known, chosen = modules(), sys.argv[1:]
    sys.argv[1:] = []  # the benchmarks read their own options
    unknown = [name for name in chosen if name not in known]
    if unknown:
        print(f"benchmarks: one of {', '.join(known)} expected, {unknown[0]} found", file=sys.stderr)
        return 2
    for name in chosen or known:
        for module in known[name]:
            print(f"\n== {name}: {module.rsplit('.', 1)[1]}", flush=True)
            importlib.import_module(module).main()
    return 0


if __name__ == "__main__":
    sys.exit(main())
