"""Types every command of the documentation: `python -m tests.docs [--only PAGE…] [--show] [--json]`.

Blocks of code as they stand, page by page, then each whole command of the prose, in a root of its own (as root): on an
emulated Lustre with the real daemons. Exit status 0 when all of them ended as they should. What is not typed is in
tests/docs/not_run.toml, with the reasons.
"""

from __future__ import annotations

import argparse
import json
import sys

from tests.docs import not_run, overlay
from tests.docs.reading import PAGES


def main() -> int:
    parser = argparse.ArgumentParser(prog="make try-docs", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="PAGE", help="such as quickstart.md")
    parser.add_argument("--show", action="store_true", help="also what the commands print")
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.inside:
        if why := overlay.missing():
            # What this host does not allow says nothing of the pages; it is said, and no failure.
            print(f"tests.docs: {why}; the commands were NOT typed", file=sys.stderr)
            return 0
        return overlay.inside(["-m", "tests.docs", "--inside", *sys.argv[1:]])

    from tests.docs import scene, typing_in

    env = scene.build()
    client = scene.client(env)
    typing_in.look_at_each()
    found = []
    for page in PAGES:
        if options.only and page.name not in options.only:
            continue
        done = typing_in.page(page, env, client)
        found.append(done)
        if done.typed and not options.json:
            failed = f"{len(done.failed)} failed"
            print(
                f"{done.page:<24} {done.typed:3d} commands, {failed:>9}, {done.seconds:5.1f} s",
                *done.failed,
                sep="\n  ",
                flush=True,
            )
    if options.show:
        for log in sorted((scene.SITE / "log").iterdir()):
            print(f"--- {log.name}", *log.read_text().splitlines()[-5:], sep="\n")
    if options.json:
        print(json.dumps([done._asdict() for done in found], indent=2))
    else:
        print(
            f"{sum(done.typed for done in found)} commands; {len(not_run.entries())} entries in {not_run.FILE.name}"
        )
    return 1 if any(done.failed for done in found) else 0


if __name__ == "__main__":
    sys.exit(main())
