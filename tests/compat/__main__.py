"""This version beside an earlier one of tests/data/golden: `python -m tests.compat [--json] [--only TEXT]`.

Builds the earlier version from the repository's history. Exit status 0 when every crossing worked; 2 where the history
is not there.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from tests.compat.crossing import CROSSINGS, run
from tests.compat.old_tree import NoHistory, build, commit_of, versions


def options_of(arguments: list[str] | None = None) -> argparse.Namespace:
    words = argparse.ArgumentParser(prog="make compat", description=__doc__)
    words.add_argument("--json", action="store_true", help="one list of objects instead of lines")
    words.add_argument("--only", default="", metavar="TEXT", help="crossings whose name contains it")
    words.add_argument(
        "--version", default="", metavar="NAME", help="of tests/data/golden (default: the newest)"
    )
    words.add_argument(
        "--build",
        nargs=2,
        metavar=("COMMIT", "DIRECTORY"),
        help="build that version there, leave it, run nothing",
    )
    return words.parse_args(arguments)


def main() -> int:
    options = options_of()
    if options.build:
        print(build(options.build[0], Path(options.build[1])))
        return 0
    version = [path for path in versions("wire.json") if options.version in path.name][-1]
    rows = []
    with tempfile.TemporaryDirectory(prefix="tarazu-earlier-") as directory:
        try:
            earlier = build(commit_of(version), Path(directory) / version.name)
        except NoHistory as error:
            print(f"compat: expected the commit of {version.name}, found {error}", file=sys.stderr)
            return 2
        for crossing in CROSSINGS:
            if options.only not in crossing.name:
                continue
            begin = time.monotonic()
            result = run(crossing, earlier)
            rows.append({"version": version.name, **result._asdict()})
            if not options.json:
                said = result.trouble or "ok"
                print(
                    f"{version.name}  {crossing.name}: {said} ({time.monotonic() - begin:.0f} s)", flush=True
                )
    if options.json:
        print(json.dumps(rows, indent=1))
    return 0 if rows and not any(row["trouble"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
