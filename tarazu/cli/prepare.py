"""Set the default layout of the directories into which a program will write, run it, and take that back.

For programs that the library does not reach, such as static ones. The directories come from the application's history,
or you name them; new files there avoid OSTs that are sick, full, drained or away:

tarazu change prepare solver -- srun ./solver             which directories, which layouts, why; the program is not run
tarazu change prepare solver --apply -- srun ./solver     set them, run it, take them back; it exits as the program does
tarazu change prepare solver --directory /scratch/me/out --apply -- srun ./solver
tarazu change prepare --undo                              take back what killed jobs have left

Directories with a default layout of their own are left alone. Where the site keeps a pool of good OSTs
(`tarazu change pool`), directories get that.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import logging
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from tarazu import config
from tarazu.changes.change import ALL, Score
from tarazu.changes.held import Held
from tarazu.cli.output import action_options, print_json
from tarazu.config import own_path
from tarazu.daemons.asking import Whole, whole_of
from tarazu.daemons.changes.agents.layouts import Layouts
from tarazu.daemons.changes.done import Done
from tarazu.errors import BadInput, TarazuError
from tarazu.lustre import EOF
from tarazu.model import Component, Layout
from tarazu.names import did_you_mean, one_line, quoted, shown
from tarazu.predict import RUNS
from tarazu.prepare import directories
from tarazu.prepare.choosing import DirectoryChoice, Expected, choose
from tarazu.prepare.scoring import scores
from tarazu.stats import client
from tarazu.units import MIB


class Prepared(msgspec.Struct, frozen=True):
    """One directory, and what is to become of it."""

    directory: str
    fs_name: str
    expected: Expected
    choice: DirectoryChoice
    words: str
    """Options of `lfs setstripe`; empty: nothing is done."""
    scores: tuple[Score, ...] = ()


def configure(parser: argparse.ArgumentParser) -> None:
    parser.usage = "tarazu change prepare [OPTIONS] [APP] [OPTIONS] [-- PROGRAM [ARGS…]]"
    parser.set_defaults(application="", command=[])
    action_options(
        parser,
        {
            "--advise": "print what would be set (the default)",
            "--apply": "set it, run the program, take it back",
            "--undo": "take back what ended jobs left",
        },
    )
    parser.add_argument(
        "--directory",
        action="append",
        default=[],
        metavar="DIR",
        help="a directory of output; may be repeated",
    )
    parser.add_argument(
        "--lists", action="store_true",
        help="also name lists of OSTs; creating files fails there if one of them goes away meanwhile",
    )  # fmt: skip
    parser.add_argument(
        "words", nargs=argparse.REMAINDER, action=_Words, metavar="APP -- PROGRAM",
        help="the application, as `tarazu history list` names it, and after -- what to run",
    )  # fmt: skip


class _Words(argparse.Action):
    """`APP`, options behind it, and after `--` the program, whose options are its own."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        words = [str(word) for word in values] if isinstance(values, list) else []
        if not words:
            return
        at = words.index("--") if "--" in words else len(words)
        if at:
            namespace.application = words[0]
        parser.parse_args(words[1:at], namespace)
        namespace.command = words[at + 1 :]


def execute(options: argparse.Namespace) -> int:
    argv = options.command
    # It is said here, in words of its own.
    logging.getLogger("tarazu.changes").addHandler(logging.NullHandler())
    if options.undo:
        return _undo(Layouts(config.load(options.config)), options.json)
    if options.apply and not argv:
        raise BadInput("command line", "a program to run after --, found none")
    if not options.apply:
        return _print(_prepared(config.load(options.config), options), options.json)
    try:
        settings = config.load(options.config)
        why = _off(settings)
        prepared = [] if why else _prepared(settings, options)
    except Exception as error:
        # The application comes first: it runs as it would have, whatever this is.
        why, settings, prepared = _text(error), config.Settings(), []
    if why:
        print(f"tarazu change prepare: nothing is set: {why}", file=sys.stderr)
        from tarazu.run import program

        return program.become(argv, "tarazu change prepare")
    return _around(settings, options.application, prepared, argv)


def _off(settings: config.Settings) -> str:
    from tarazu.cli.run import _stopped, left_alone

    if os.environ.get("TARAZU_DISABLE", "0") not in ("", "0"):
        return "$TARAZU_DISABLE"
    if why := left_alone(settings.run):
        return why
    return settings.run.stop_file if _stopped(settings.run.stop_file) else ""


def _around(
    settings: config.Settings, application: str, prepared: Sequence[Prepared], argv: Sequence[str]
) -> int:
    from tarazu.run import program

    layouts: Layouts | None = None
    try:
        layouts = Layouts(settings)
        cannot = {p.directory: p.choice.why for p in prepared if p.choice.stuck}
        done = layouts.begin(
            [(p.directory, p.words) for p in prepared if p.words],
            application,
            scores={p.directory: p.scores for p in prepared},
            cannot=cannot,
        )
        _say(layouts.held, done)
        for directory, why in cannot.items():
            print(f"tarazu change prepare: {one_line(directory)}: nothing is set: {why}", file=sys.stderr)
    except Exception as error:  # what was set until then is noted
        print(f"tarazu change prepare: {_text(error)}", file=sys.stderr)
    program.restore_environment()
    try:
        running = program.StartedProgram(argv, os.environ)
        with layouts.watched() if layouts else contextlib.nullcontext():
            status = running.wait()
    except OSError as error:
        print(f"tarazu change prepare: {argv[0]}: {error.strerror}", file=sys.stderr)
        status = program.status_of_error(error)
    finally:
        try:
            for directory, why in _left(layouts.end()) if layouts else ():
                print(f"tarazu change prepare: {one_line(directory)}: {why}", file=sys.stderr)
        except Exception as error:
            print(
                f"tarazu change prepare: {_text(error)}; `tarazu change prepare --undo` takes it back",
                file=sys.stderr,
            )
    return program.end_like(status)


def _text(error: Exception) -> str:
    return str(error) if isinstance(error, TarazuError) else f"{type(error).__name__}: {error}"


def _say(held: Iterable[Held], done: Done) -> None:
    for each in held:
        if not each.theirs and not each.before[0].value:
            words, directory = each.change.wanted[ALL], quoted(each.change.target)
            print(f"tarazu change prepare: lfs setstripe {words} {directory}", file=sys.stderr)
    for directory, why in _left(done):
        print(f"tarazu change prepare: {one_line(directory)}: left alone: {why}", file=sys.stderr)


def _left(done: Done) -> list[tuple[str, str]]:
    """(directory, why it is as somebody else has it, or as it was)."""
    theirs = [
        (path, "has a default layout that somebody else has set since")
        for h in done.left
        for path in h.theirs
    ]
    return [*theirs, *((f.key[1], f.why) for f in done.wrong)]


def _undo(layouts: Layouts, as_json: bool) -> int:
    from tarazu.cli.change import undo
    from tarazu.daemons.changes.by_hand import Undone

    done, noted = layouts.clean(), layouts.agent.store.held_changes
    still = tuple((noted.get(failure.key), failure.why) for failure in done.wrong)
    undone, running = Undone("layouts", "", done.restored, done.left, still), layouts.running()
    if as_json:
        print_json({**undone._asdict(), "running": running})
        return 0
    undo.tell(undone)
    for directory, who in running:
        print(f"{shown(directory)}: {who} still runs and will take it back")
    return 0


def _print(prepared: Sequence[Prepared], as_json: bool) -> int:
    if as_json:
        print_json({"directories": prepared})
        return 0
    for each in prepared:
        if each.words:
            print(f"lfs setstripe {each.words} {quoted(each.directory)}\n    # {each.choice.why}")
        else:
            print(f"{shown(each.directory)}: nothing: {each.choice.why}")
    if not prepared:
        print("no directory of output is known: name one with --directory")
    return 0


def _prepared(settings: config.Settings, options: argparse.Namespace) -> list[Prepared]:
    """Raises TarazuError."""
    root = config.root()
    mounts = client.mounts(root)
    if not mounts:
        raise TarazuError("no Lustre file system is mounted on this node")
    expected = _expected(settings, options, mounts)
    if not expected:
        return []
    system = whole_of(settings)
    if options.apply and system.stopped:
        raise TarazuError(f"the whole site is {system.stopped}")
    prepared: list[Prepared] = []
    for (fs_name, directory), of in sorted(expected.items()):
        prepared.append(_one(settings, fs_name, directory, of, system, mounts, root, lists=options.lists))
    return prepared


def _expected(
    settings: config.Settings, options: argparse.Namespace, mounts: Sequence[client.Mount]
) -> Mapping[tuple[str, str], Expected]:
    """(file system, directory that is there now) → what is expected below it."""
    by_directory: dict[tuple[str, str], Expected] = {}

    def add(mount: client.Mount, path: Path, files: int, size_bytes: int) -> None:
        directory = directories.existing(path, Path(mount.path))
        if directory is not None:
            before = by_directory.get((mount.fs_name, str(directory)), Expected())
            more = Expected(before.files + files, before.size_bytes + size_bytes)
            by_directory[mount.fs_name, str(directory)] = more

    for name in options.directory:
        path = Path(os.path.abspath(name))
        whole = [p for p in (path, Path(os.path.realpath(path))) for m in mounts if p.is_relative_to(m.path)]
        if not whole:
            raise BadInput(name, "a directory on Lustre", f"mounts {', '.join(m.path for m in mounts)}")
        mount = next(m for m in mounts if whole[0].is_relative_to(m.path))
        add(mount, whole[0], 0, 0)
    if options.application and not options.directory:
        for fs_name, forecasts in _forecasts(settings, options.application):
            shown = [m for m in mounts if m.fs_name == fs_name]
            for key, size_bytes in forecasts if shown else ():
                mount = shown[0]
                if mount.subdirectory and not key.startswith(f"{mount.subdirectory}/"):
                    continue
                below = key.removeprefix(mount.subdirectory).lstrip("/")
                add(mount, (Path(mount.path) / below).parent, 1, size_bytes)
    return by_directory


def _forecasts(settings: config.Settings, application: str) -> list[tuple[str, list[tuple[str, int]]]]:
    """File system → (key, bytes) of the files of the next run. Raises TarazuError where there is no history."""
    from tarazu.predict import aipa
    from tarazu.trace.history import History

    history = History(own_path(settings.run.history_dir))
    named = [fs for fs, app in history.applications() if app == application]
    if not named:
        where = f"{application}: expected a history in {history.directory}, or directories (--directory)"
        meant = did_you_mean(application, {app for _, app in history.applications()})
        raise TarazuError(f"{where}, found none{meant}")
    forecasts = []
    for fs_name in named:
        runs = history.runs(fs_name, application)[-RUNS:]
        if runs:
            step = msgspec.structs.replace(runs[-1].step, job_id="")
            prediction = aipa.forecast(runs, step)
            forecasts.append((fs_name, [(f.name.key, f.size_bytes) for f in prediction.files]))
    return forecasts


def _one(
    settings: config.Settings,
    fs_name: str,
    directory: str,
    expected: Expected,
    system: Whole,
    mounts: Sequence[client.Mount],
    root: str,
    *,
    lists: bool,
) -> Prepared:
    def nothing(why: str) -> Prepared:
        return Prepared(directory, fs_name, expected, DirectoryChoice(None, why), "")

    mount = next(m for m in mounts if m.fs_name == fs_name and Path(directory).is_relative_to(m.path))
    key = mount.subdirectory + directory.removeprefix(mount.path)
    run = settings.run
    if any(fnmatch.fnmatchcase(key, glob) or fnmatch.fnmatchcase(f"{key}/x", glob) for glob in run.exclude):
        return nothing("run.exclude")
    if directories.own_default(directory):
        return nothing("has a default layout of its own")
    fs = client.file_system(fs_name, root)
    osts = [ost for view in system.views if view.fs_name == fs_name for ost in view.osts]
    pool = settings.pool.name
    base = _base([m for m in mounts if m.fs_name == fs_name], fs)
    if isinstance(base, str):
        return nothing(base)
    chosen = choose(base, expected, osts, pool, sorted(fs.pools.get(pool, ())), lists=lists)
    words = ""
    if chosen.layout:
        words = directories.words_of(chosen.layout, chosen.osts, start=chosen.method == "start")
    return Prepared(directory, fs_name, expected, chosen, words, tuple(scores(base, chosen, osts, fs.pools)))


def _base(mounts: Sequence[client.Mount], fs: client.FileSystem) -> Layout | str:
    """What files get in a directory without a default of its own, or why nothing is set instead of that."""
    from tarazu.run.plan import default_layouts

    blob, _ = default_layouts.default_layouts(mounts, (), default_layouts.own_default(fs))
    if not blob:
        return Layout((Component(0, EOF, 4 * MIB, 1),))
    return directories.template(blob) or f"the file system has {directories.UNKNOWN}"
