"""On which MDT new subdirectories of directories should be made, where users may not choose one: `lfs setdirstripe -D`.

tarazu change mdt /scratch/projects/*               what would be set, why, what it gives; changes nothing
tarazu change mdt --propose /scratch/projects/*     every ten minutes: propose it once MDTs were uneven for three hours,
                                                    set what people have approved (`tarazu change approve`)
tarazu change mdt --apply /scratch/projects/wrf     set it now
tarazu change mdt --new /scratch/projects/bob       on which MDT a directory that is not there should be made
tarazu change mdt --undo                            take back what is set, and set nothing until `tarazu change apply`

Run it as root on a client. How much is created in directories made below each is known from recorded runs of its owner
(--user). Where Lustre's own balance is as good, or somebody has chosen an MDT, nothing is done. A default moves no
directory that is there. More: docs/without-preload.md.
"""

from __future__ import annotations

import argparse
import os
import pwd
import time
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import msgspec

from tarazu import config
from tarazu.cli.history.chosen import home_of, user_named
from tarazu.cli.output import action_options, number, print_json, print_table, say
from tarazu.cli.stopped import refuse_while_stopped
from tarazu.errors import BadInput
from tarazu.names import quoted, shown
from tarazu.parts.changes import here, now
from tarazu.parts.changes.agent import Agent, Plan
from tarazu.parts.changes.commands import rows, undo
from tarazu.parts.changes.commands.apply import say_done
from tarazu.parts.changes.model.goals import CannotMend
from tarazu.parts.mdt import agent as agents
from tarazu.parts.mdt.asking import mdts_in, mdts_of
from tarazu.parts.mdt.choosing import MdtChoice, MdtDirectory, MdtTimes, choose, choose_new, times_of
from tarazu.predict import RUNS
from tarazu.stats import client
from tarazu.trace.creates import creates_below
from tarazu.trace.history import History
from tarazu.units import counted


class Looked(msgspec.Struct, frozen=True):
    """All that was found, as --json prints it."""

    fs_name: str
    unevenness: float
    """Time of the busiest MDT over the mean."""
    lasted: bool
    times_known: bool
    directories: tuple[MdtDirectory, ...]
    choices: tuple[MdtChoice, ...]
    commands: tuple[str, ...]
    notes: tuple[str, ...]


def configure(parser: argparse.ArgumentParser) -> None:
    action_options(
        parser,
        {
            "--advise": "say what would be set; change nothing (the default)",
            "--propose": "put it among the proposals of `tarazu change list`, and set what is approved",
            "--apply": "set it now",
            "--undo": "take back what is set",
        },
    )
    parser.add_argument("directories", nargs="*", metavar="DIR", help="whose new subdirectories are meant")
    parser.add_argument("--new", action="store_true", help="directories that are to be made (`lfs mkdir -i`)")
    parser.add_argument(
        "--creates",
        type=number(0, 1e9),
        default=0.0,
        metavar="RATE",
        help="with --new: creates in a second that are expected there (default: not known)",
    )
    parser.add_argument(
        "--user",
        action="append",
        default=[],
        metavar="NAME",
        help="whose recorded runs; may be repeated (default: yours and the directories' owners')",
    )
    parser.add_argument(
        "--view",
        metavar="FILE",
        help="the file system as `tarazu status --json` prints it, instead of asking",
    )


def execute(options: argparse.Namespace) -> int:
    settings = config.load(options.config)
    if options.undo:
        each = here.agent_named(settings, agents.NAME)
        return undo.one_agent(each, agents.COMMAND, as_json=options.json, goes_on="tarazu change apply")
    if not options.directories:
        raise BadInput(agents.COMMAND, "a directory", "none")
    acts = options.propose or options.apply
    if os.geteuid() != 0:  # who alone is shown directories' own defaults
        raise BadInput(agents.COMMAND, "root", f"uid {os.geteuid()}")
    if acts:
        refuse_while_stopped(settings)
    agent = agents.agent_of(settings)
    looked, times = _look(settings, options, agent)
    changes = agents.changes_of(looked.choices, agents.NEW if options.new else agents.DEFAULT)
    if acts:
        return _act(options, agent, looked, times, Plan(tuple(changes)))
    commands = [command for change in changes for command in agent.commands(change)]
    looked = msgspec.structs.replace(looked, commands=tuple(commands))
    if options.json:
        print_json(looked)
    else:
        _print(looked)
        print("\n".join(map(shown, commands)), end="\n" if commands else "")
    return 0


def _look(settings: config.Settings, options: argparse.Namespace, agent: Agent) -> tuple[Looked, MdtTimes]:
    """Raises TarazuError."""
    paths = [os.path.abspath(path) for path in options.directories]
    mounts = client.mounts(config.root())
    fs_name = _one_of(paths, mounts)
    mdts = mdts_in(options.view, fs_name) if options.view else mdts_of(settings, fs_name)
    if len(mdts) < 2:
        expected = "two MDTs at least (tarazu-ossd runs on each MDS)"
        raise BadInput(f"file system {fs_name}", expected, counted(len(mdts), "MDT"))
    notes: list[str] = []
    above = sorted({os.path.dirname(path) for path in paths}) if options.new else paths
    found = _directories(settings, options, agent, fs_name, {m.index for m in mdts}, above, mounts, notes)
    threshold = client.mdt_threshold(fs_name, config.root())
    times = times_of(mdts)
    if options.new:
        by_path, choices = {each.path: each for each in found}, []
        for path in paths:
            choice = choose_new(by_path[os.path.dirname(path)], mdts, threshold, options.creates)
            if os.path.lexists(path):
                choice = MdtChoice("", "", "it is there already")
            choices.append(msgspec.structs.replace(choice, directory=path))
    else:
        choices = choose(found, mdts, threshold)
    listed = now.with_now(settings, here.listed(settings, agents.NAME))
    ours = {c.target for each in listed for c in each.changes if c.state == "set"}
    choices = [
        msgspec.structs.replace(c, words="", why="tarazu has set it") if c.directory in ours else c
        for c in choices
    ]
    if not times.known:
        notes.append("no MDT's time of a create is known: one is taken for all")
    lasted = agents.lasted(agent, times, time.time())
    uneven = times.unevenness
    looked = Looked(fs_name, uneven, lasted, times.known, tuple(found), tuple(choices), (), tuple(notes))
    return looked, times


def _one_of(paths: Sequence[str], mounts: Sequence[client.Mount]) -> str:
    """The file system that all of them lie on. Raises BadInput."""
    names = {mount.fs_name if (mount := _mount(path, mounts)) else "" for path in paths}
    if len(names) > 1 or names == {""}:
        listed = ", ".join(sorted({m.path for m in mounts})) or "none"
        raise BadInput(
            agents.COMMAND, f"directories on one Lustre file system (mounted: {listed})", paths[:3]
        )
    return names.pop()


def _mount(path: str, mounts: Sequence[client.Mount]) -> client.Mount | None:
    return next((m for m in mounts if Path(path).is_relative_to(m.path)), None)


def _directories(
    settings: config.Settings,
    options: argparse.Namespace,
    agent: Agent,
    fs_name: str,
    indices: Collection[int],
    paths: Sequence[str],
    mounts: Sequence[client.Mount],
    notes: list[str],
) -> list[MdtDirectory]:
    keys = {}
    for path in paths:
        if not os.path.isdir(path) or os.path.islink(path):
            raise BadInput(path, "a directory", "another file" if os.path.lexists(path) else "nothing")
        mount = _mount(path, mounts)
        assert mount is not None
        keys[path] = mount.subdirectory + path.removeprefix(mount.path.rstrip("/"))
    known = agents.known_of(agent, {path: _mount(path, mounts).path for path in paths})  # type: ignore[union-attr]
    recorded = creates_below(
        (
            run
            for history in _histories(settings, options.user, paths)
            for of_fs, application in history.applications()
            if of_fs == fs_name
            for run in history.runs(of_fs, application, RUNS, problem=lambda error: notes.append(str(error)))
        ),
        keys.values(),
    )
    made = []
    for path in paths:
        each, rate = known[path], recorded[keys[path]]
        by_mdt = agents.by_mdt(rate.moving_per_s, each, indices)
        made.append(msgspec.structs.replace(each, moving=by_mdt, staying_per_s=rate.staying_per_s))
    return made


def _histories(settings: config.Settings, users: Sequence[str], paths: Iterable[str]) -> list[History]:
    """Raises BadInput."""
    homes: list[pwd.struct_passwd | None] = [user_named(name) for name in users]
    if not homes:
        homes = [None]
        for uid in sorted({os.stat(path).st_uid for path in paths} - {os.geteuid()}):
            try:
                homes.append(pwd.getpwuid(uid))
            except KeyError:
                continue
    return [History(home_of(settings.run.history_dir, home)) for home in homes]


def _act(options: argparse.Namespace, agent: Agent, looked: Looked, times: MdtTimes, plan: Plan) -> int:
    if options.apply:
        done = agent.make(plan.changes, f"{agents.COMMAND} --apply")
    else:
        agents.saw(agent, times)
        lasted = agents.lasted(agent, times, time.time())
        looked = msgspec.structs.replace(looked, lasted=lasted)
        if lasted and not plan.changes and not options.new:
            why = f"busiest MDT {looked.unevenness:.3g} times the mean, and no directory's default helps"
            plan = Plan((), (CannotMend(agents.DEFAULT, looked.fs_name, why),))
        elif not lasted and not options.new:
            plan = Plan()
        done = agent.follow(plan, "advise", "", of=lambda held: False)
    listed = here.listed(agent.settings, agents.NAME)
    if options.json:
        print_json({"looked": looked, **done._asdict(), **rows.as_json(listed)})
        return int(bool(done.failed or done.refused))
    _print(looked)
    say_done(done)
    rows.say_changes(listed)
    return int(bool(done.failed or done.refused))


def _print(looked: Looked) -> None:
    for note in looked.notes:
        say(f"# {note}")
    print_table(
        ("directory", "creates/s", "busiest MDT: now", "Lustre", "so", "bound", "lfs", "why"),
        [
            (
                quoted(c.directory),
                f"{c.moves_per_s or sum(d.moving.values()):.3g}",
                *(f"{s:.3g}" if s else "-" for s in (c.before_s, c.lustre_s, c.after_s, c.bound_s)),
                c.words or "-",
                c.why,
            )
            for c, d in zip(looked.choices, _of(looked), strict=True)
        ],
        left=1,
    )
    lasted = "so for three hours" if looked.lasted else "not seen so for three hours (--propose looks)"
    print(f"busiest MDT {looked.unevenness:.3g} times the mean: {lasted}")


def _of(looked: Looked) -> list[MdtDirectory]:
    by_path = {each.path: each for each in looked.directories}
    return [by_path.get(c.directory) or by_path[os.path.dirname(c.directory)] for c in looked.choices]
