"""Switch tarazu off, in jobs that run as well: nothing is recorded or placed from the next file on, within a second.

tarazu disable                         your running job steps, all of them
tarazu disable --job RUN               one of them, as `tarazu status` and jobs.log name it, or the first part of that
tarazu disable --site --reason TEXT    every job of the site, new ones too: writes run.stop_file, which must be root's

Nodes that see run.stop_file also take back what levers have set there; drained OSTs stay so (`tarazu change drain`).
`tarazu enable`, with the same options, undoes it: files are recorded and placed again. What lies where stays there.
"""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path

import msgspec

from tarazu import config, trusted
from tarazu.cli.output import print_json
from tarazu.config import own_path
from tarazu.errors import BadInput, StoreError, TarazuError
from tarazu.run import leftovers
from tarazu.run.directories import here, place
from tarazu.store import control, stop
from tarazu.units import counted


class RunningStep(msgspec.Struct, frozen=True):
    """One running job step; the reasons are None where nobody has stopped it."""

    run: str
    stopped: str | None
    """By its owner."""
    site_stopped: str | None


def configure(parser: argparse.ArgumentParser) -> None:
    add_options(parser)
    parser.add_argument("--reason", default="", metavar="TEXT", help="shown by `tarazu status` and jobs.log")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Which jobs are meant, for `enable` as well."""
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--job", metavar="RUN", help="one running job step (default: all of yours)")
    what.add_argument("--site", action="store_true", help="all jobs on all nodes that see run.stop_file")
    parser.add_argument("--directory", metavar="DIR", help="the steps' maps (default: run.map_dir)")
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(options: argparse.Namespace) -> int:
    settings = config.load(options.config)
    if options.site:
        done = stop.stop_site(settings.run.stop_file, options.reason)
        if options.json:
            print_json({"site": done._asdict(), "undo": "tarazu enable --site"})
        else:
            print(
                f"{done}\nWhat runs on nodes that see this file obeys within seconds; drained OSTs stay drained."
            )
            print("undo: tarazu enable --site")
        return 0
    chosen = select(running(settings.run, options.directory), options.job)
    for directory in chosen.values():
        control.stop(directory, " ".join(options.reason.split()))
    undo = "tarazu enable" + (f" --job {options.job}" if options.job else "")
    report(options, "stopped", chosen, undo)
    return 0


def running(run: config.RunSettings, directory: str | None = None) -> dict[str, Path]:
    """Running step → directory of its control page: in `run.map_dir`, or beside the spools of this node."""
    maps = own_path(directory or run.map_dir)
    directories = {path.parent.name: path.parent for path in sorted(maps.glob("*/control"))}
    if directory is None:
        for name, step in sorted(leftovers.steps(Path(here(place(run)))).items()):
            with contextlib.suppress(OSError, TarazuError), trusted.opened(step / "map") as its:
                if (its / "control").exists():
                    directories[name] = step / "map"
    return directories


def select(running: dict[str, Path], wanted: str | None) -> dict[str, Path]:
    """The running steps that are meant. Raises BadInput for one that is not there, or not clearly named."""
    if wanted is None:
        return running
    names = [name for name in running if name == wanted] or [n for n in running if n.startswith(wanted)]
    if len(names) != 1:
        known = ", ".join(names or running) or "none runs"
        raise BadInput("--job", f"one of your running job steps ({known})", wanted)
    return {names[0]: running[names[0]]}


def steps(chosen: dict[str, Path]) -> list[RunningStep]:
    """Those of the steps whose control page can be read."""
    readable = []
    for name, directory in chosen.items():
        try:
            page = control.read_control(directory)
        except StoreError:
            continue  # it has just ended
        readable.append(RunningStep(name, page.stopped, page.site_stopped))
    return readable


def report(options: argparse.Namespace, word: str, chosen: dict[str, Path], undo: str) -> None:
    if options.json:
        print_json({"jobs": steps(chosen), "undo": undo})
        return
    if not chosen:
        print("nothing was done: none of your job steps runs where this node can see it")
        return
    for name in chosen:
        print(f"{word}: {name}")
    print(f"{counted(len(chosen), 'running job step')}\nundo: {undo}")
