"""Which nodes are asked of Slurm for which application's jobs, what became of it, and why.

    tarazu change bursts nodes                 what it would do, or did
    tarazu change bursts nodes --observe       on tarazu-burstd's node, as root: only note what would be asked
    tarazu change bursts nodes --advise        there: also tell the user at submission
    tarazu change bursts nodes --apply         there: ask Slurm
    tarazu change bursts nodes --undo          there: take back what waiting jobs were given, and ask for nothing until
                                        --apply; needs no daemon

The mode ordered last outlives restarts and overrides `part.bursts.nodes`. While the site is stopped it is `observe`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from tarazu import config
from tarazu.cli.output import action_options, print_json, print_table, say
from tarazu.errors import BadInput, Unavailable
from tarazu.parts.bursts.settings import directory_of
from tarazu.parts.changes import here
from tarazu.parts.changes.by_hand import Undone
from tarazu.parts.changes.commands import undo

MODES = ("observe", "advise", "apply")
VERB = "tarazu change bursts nodes"


def configure(parser: argparse.ArgumentParser) -> None:
    action_options(
        parser,
        {
            "--observe": "only note what would be asked",
            "--advise": "and tell the user",
            "--apply": "ask Slurm (again, after --undo)",
            "--undo": "take back what was asked; ask for nothing",
        },
    )


def execute(options: argparse.Namespace) -> int:
    settings = config.load(options.config)
    if options.undo:
        return _undo(settings, as_json=options.json)
    mode = next((mode for mode in MODES if getattr(options, mode)), "")
    if mode:
        return _order(settings, mode, as_json=options.json)
    return _show(settings, as_json=options.json)


def _show(settings: config.Settings, *, as_json: bool) -> int:
    from tarazu.parts.bursts.burstd.kept import BurstsDirectory

    status = BurstsDirectory(directory_of(settings)).told().get("nodes")
    if status is None:
        raise Unavailable(
            f"{directory_of(settings)}: expected what tarazu-burstd says of nodes, found nothing"
        )
    if as_json:
        print_json(status)
        return 0
    say(f"mode: {status['mode']} ({status['why_mode']})")
    if status["slurm"] != "seen":
        say(f"Slurm: {status['slurm']}")
    if status["mode"] == "apply" and not status["may_update"]:
        say(
            "nothing is asked for: tarazu-burstd may not change jobs (it must run as Slurm's user, or be its operator)"
        )
    if not status["applications"]:
        print("no job was submitted yet that it was asked about")
        return 0
    print_table(
        ["user", "application", "nodes", "asked", "would", "given", "started", "back", "why"],
        map(_row, sorted(status["applications"], key=lambda row: -row["asked"])),
        left=2,
    )
    return 0


def _row(row: dict[str, Any]) -> list[object]:
    counts = ("asked", "would", "given", "started", "taken_back")
    return [row["user"], row["name"], row["size"], *(row[name] for name in counts), row["why"]]


def _order(settings: config.Settings, mode: str, *, as_json: bool) -> int:
    from tarazu.parts.bursts.burstd.node_part import set_mode
    from tarazu.parts.bursts.nodes.agent import agent_of

    _here(settings)
    before = set_mode(settings, mode, f"{VERB} --{mode}")  # type: ignore[arg-type]
    held = agent_of(settings).store.nothing_new()
    if as_json:
        print_json({"mode": mode, "was": before})
    else:
        print(f"the mode is {mode} (it was {before}); the daemon sees it within a second")
        if held:
            say(f"nothing is asked for: {held}")
    return 0


def _undo(settings: config.Settings, *, as_json: bool) -> int:
    from tarazu.batch.slurm import Slurm
    from tarazu.parts.bursts.burstd.keeping import Keeping
    from tarazu.parts.bursts.burstd.node_part import set_mode

    _here(settings)
    each = here.agent_named(settings, "nodes")
    # First: what is taken back here it would else ask for again.
    set_mode(settings, "observe", f"{VERB} --undo")
    with each.as_owner():
        done = Keeping(settings, Slurm()).take_back_all(f"{VERB} --undo")
    back, left = (tuple(t.held for t in done if t.outcome == outcome) for outcome in ("taken back", "left"))
    still = tuple((tended.held, tended.why) for tended in done if tended.outcome == "not taken back")
    undone = Undone(each.name, each.unit, back, left, still)
    return undo.tell(undone, f"{VERB} --apply", as_json=as_json)


def _here(settings: config.Settings) -> None:
    if not Path(directory_of(settings)).is_dir():
        raise BadInput("this node", f"tarazu-burstd's ({directory_of(settings)})", "no such directory")
