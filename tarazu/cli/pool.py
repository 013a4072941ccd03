"""Keep an OST pool of good OSTs, so that directories whose default names it follow: for programs without the library.

tarazu change pool                            which OSTs are in it, which should come or go, why, and the lctl commands
tarazu change pool --apply                    on the MGS's node only, as root: make it so once
tarazu change pool --keep                     there: keep it so (as tarazu-pool.service does; pool.mode must be apply)
tarazu change pool --undo                     there: the pool is what it was before; what keeps it pauses until --apply

An OST leaves that is dead, refuses objects, is full, sick, degraded (drained) or excluded; it comes back once it was
well for ten minutes and left an hour ago. A user names the pool in a directory of his:

    lfs setstripe -p good /scratch/me/results
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tarazu import config
from tarazu.cli.output import action_options, print_json, print_table
from tarazu.daemons.asking import whole_of

if TYPE_CHECKING:
    from tarazu.daemons.pool.keeper import Done


def configure(parser: argparse.ArgumentParser) -> None:
    action_options(
        parser,
        {
            "--advise": "print what should be changed, and change nothing (the default)",
            "--apply": "change it, on the MGS's node",
            "--keep": "go on doing so, with pool.mode apply; in observe and advise only look",
            "--undo": "make pools what they were before",
        },
    )


def execute(options: argparse.Namespace) -> int:
    from tarazu.daemons.pool.keeper import Keeper

    if options.keep:
        from tarazu.daemons.pool import service

        return service.main([f"--config={options.config}"] if options.config else [])
    settings = config.load(options.config)
    keeper = Keeper(settings)
    if options.undo:
        keeper.notes.hold(True)
        return _undone(keeper.undo(), options.json)
    seen = whole_of(settings)
    if options.apply:
        if keeper.notes.held:
            keeper.notes.hold(False)
        done = keeper.apply(seen, anew=True)
    else:
        done = keeper.look(seen)
    if options.json:
        print_json({"pools": done})
    else:
        for each in done:
            _print(each, options.apply)
    return 1 if any(each.failed for each in done) else 0


def _undone(undone: Sequence[tuple[str, str, bool]], as_json: bool) -> int:
    failed = any(not done for *_, done in undone)
    if as_json:
        print_json({"undone": {pool: text for pool, text, _ in undone}})
        return int(failed)
    for pool, text, done in undone:
        print(f"{pool}: {text}" if done else f"{pool}: failed: {text}")
    if not undone:
        print("nothing to undo: this node has changed no pool")
    print("tarazu-pool changes nothing on this node until tarazu change pool --apply")
    return int(failed)


def _print(done: Done, applied: bool) -> None:
    has = f"{len(done.members)} OSTs" if done.exists else "there is none yet"
    print(f"{done.pool}: {has}")
    if done.failed:
        print(f"  failed: {done.failed}")
        return
    if done.round.nothing:
        print(f"  nothing is changed: {done.round.nothing}")
    if done.held and done.held != done.round.nothing:
        print(f"  nothing is changed now: {done.held}")
    if done.round.nothing and not done.theirs:
        return
    rows = [(c.ost, "leaves", c.why) for c in done.round.remove]
    if done.exists:
        rows += [(c.ost, "comes back", c.why) for c in done.round.add]
    rows += [(c.ost, "waits" if done.members else "stays out", c.why) for c in done.round.waiting]
    rows += [(ost, "not ours", f"somebody else has put it {way}") for ost, way in sorted(done.theirs.items())]
    if rows:
        print_table(("OST", "", "why"), rows, left=3)
    if done.commands:
        print("\n".join(f"  {'done: ' if applied else ''}{command}" for command in done.commands))
    elif done.exists and not done.members:
        print("  it has no OSTs: files of its directories go to any")
    elif done.theirs:
        print("  what somebody else has changed stays so until tarazu change pool --apply")
    elif not rows and not done.round.nothing and not done.held:
        print("  as it should be" if done.exists else "  no OST is well: it is not made")
