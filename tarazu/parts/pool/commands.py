"""Keep an OST pool of good OSTs, for programs without the library: directories can name it in their default layout.

tarazu change pool                            which OSTs are in it, which should come or go, why, and the lctl commands
tarazu change pool --apply                    on the MGS's node only, as root: make it so once
tarazu change pool --keep                     there: keep it so (as tarazu-pool does; part.pool.mode must be apply)
tarazu change pool --undo                     there: the pool is what it was before, until --apply

OSTs leave that are dead, refuse objects, are full, sick, degraded (drained) or excluded; they come back after ten good
minutes, an hour after they left. A user names the pool in his directory:

    lfs setstripe -p good /scratch/me/results
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from tarazu import config
from tarazu.cli.output import action_options, print_json, print_table
from tarazu.daemons.asking import whole_of
from tarazu.parts.changes import here
from tarazu.parts.changes.commands import rows, undo
from tarazu.store.stop import site_stop
from tarazu.units import counted

if TYPE_CHECKING:
    from tarazu.parts.pool.planner import Look

AGENT, NAME = "pools", "tarazu change pool"


def configure(parser: argparse.ArgumentParser) -> None:
    action_options(
        parser,
        {
            "--advise": "print what should be changed, and change nothing (the default)",
            "--apply": "change it, on the MGS's node",
            "--keep": "go on doing so, with part.pool.mode apply; in observe and advise only look",
            "--undo": "make pools what they were before",
        },
    )


def execute(options: argparse.Namespace) -> int:
    from tarazu.parts.pool import service
    from tarazu.parts.pool.agent import agent_of
    from tarazu.parts.pool.planner import Planner

    if options.keep:
        return service.main([f"--config={options.config}"] if options.config else [])
    settings = config.load(options.config)
    if options.undo:
        return undo.one_agent(here.agent_named(settings, AGENT), NAME, as_json=options.json)
    seen = whole_of(settings)
    agent = agent_of(settings, NAME, stopped=lambda: str(site_stop(settings.run.stop_file) or seen.stopped))
    planner = Planner(settings, agent)
    looks, failed = planner.apply(seen) if options.apply else (planner.look(seen, guess=True), {})
    failed |= {look.pool: look.failed for look in looks if look.failed}
    stopped, listed = agent.engine.stopped, here.listed(settings, AGENT)
    if options.json:
        print_json({"pools": looks, "failed": failed, "stopped": stopped, **rows.as_json(listed)})
        return int(bool(failed))
    for look in looks:
        print_look(look, failed.get(look.pool, ""), applied=options.apply and not stopped, stopped=stopped)
    rows.say_changes(listed)
    return int(bool(failed))


def print_look(look: Look, failed: str = "", *, applied: bool = False, stopped: str = "") -> None:
    print(f"{look.pool}: " + (counted(len(look.members), "OST") if look.exists else "it does not exist yet"))
    if failed:
        print(f"  failed: {failed}")
        return
    if look.round.nothing:
        print(f"  nothing is changed: {look.round.nothing}")
    if stopped:
        print(f"  nothing is changed now: {stopped}")
    if look.cannot_mend:
        print(f"  nothing within the limits helps: {look.cannot_mend.why}")
    if look.round.nothing and not look.theirs:
        return
    osts = [(c.ost, "leaves", c.why) for c in look.round.remove]
    if look.exists:
        osts += [(c.ost, "comes back", c.why) for c in look.round.add]
    osts += [(c.ost, "waits" if look.members else "stays out", c.why) for c in look.round.waiting]
    osts += [(int(ost), "not ours", f"somebody else has put it {way}") for ost, way in look.theirs.items()]
    if osts:
        print_table(("OST", "", "why"), osts, left=3)
    if look.commands:
        print("\n".join(f"  {'done: ' if applied else ''}{command}" for command in look.commands))
    elif look.exists and not look.members:
        print("  the pool has no OSTs: files of its directories go to any OST")
    elif look.theirs:
        print("  what somebody else has changed stays so until tarazu change pool --apply")
    elif not osts and not look.round.nothing and not stopped:
        print("  as it should be" if look.exists else "  no OST without a problem: the pool is not created")
