"""A folder of benchmarks as one command: each module with a `measure(short)`, its docstring's first line says what."""

from __future__ import annotations

import argparse
import importlib
import json
import os
from collections.abc import Callable
from pathlib import Path

from tests.benchmarks.figure import Figure

Measure = Callable[[bool], list[Figure]]


def benchmarks(package: str) -> dict[str, tuple[str, Measure]]:
    """Name → (what it is, its function), of `tests.benchmarks.<package>`."""
    found = {}
    for path in sorted((Path(__file__).parent / package).glob("*.py")):
        if not path.stem.startswith("_"):
            module = importlib.import_module(f"tests.benchmarks.{package}.{path.stem}")
            if hasattr(module, "measure"):
                found[path.stem] = ((module.__doc__ or "").partition("\n")[0], module.measure)
    return found


def main(package: str, program: str, description: str) -> int:
    """Status 1 when a figure is beyond its limit."""
    known = benchmarks(package)
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument("--only", action="append", choices=sorted(known), help="this one; may be given again")
    parser.add_argument("--short", action="store_true", help="a small part of it, to see that it works")
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
        figures = {name: [f._asdict() for f in found] for name, found in results.items()}
        print(json.dumps(figures, indent=2))
    return 0 if all(figure.holds for found in results.values() for figure in found) else 1
