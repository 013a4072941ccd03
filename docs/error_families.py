"""Families of errors: what they have in common, a command that provokes one, its cause and what to do."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from tarazu.allocate.eligible import candidates
from tarazu.config import Settings
from tarazu.daemons import service
from tarazu.daemons.clientd.forecasts.pool import Forecasts
from tarazu.lustre import EOF
from tarazu.model import Component, Ost, SystemView
from tarazu.program import Program
from tarazu.run.step import Step
from tarazu.wire import local
from tarazu.wire.channel import Channel

CLIENTD = '[clientd]\nsocket = "clientd.sock"\n'


class Family(NamedTuple):
    title: str
    classes: tuple[str, ...]
    rooms: tuple[str, ...]
    """How the paths below tarazu/ begin from which they are raised; the first family that fits counts."""
    command: str
    files: Mapping[str, str]
    """Where the command is run: name → content. tarazu.toml is the configuration."""
    cause: str
    cure: str
    around: Callable[[], AbstractContextManager[object]] | None = None
    """What else there is while it runs."""
    raises: Callable[[], object] | None = None
    """Instead of a command: it raises the error."""


@contextlib.contextmanager
def _busy() -> Iterator[None]:
    """A clientd that has no room."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind("clientd.sock")
        listening.listen()

        def answer() -> None:
            with contextlib.closing(Channel(listening.accept()[0])) as channel:
                channel.receive()
                channel.send(local.Busy(2.0))

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield
        thread.join(10)


def _without(package: str, user: str) -> Callable[[], AbstractContextManager[object]]:
    """As where `package` is not installed, also when its `user` has been imported before."""

    @contextlib.contextmanager
    def missing() -> Iterator[None]:
        with mock.patch.dict(sys.modules):
            for name in [name for name in sys.modules if name == user or name.startswith(f"{package}.")]:
                del sys.modules[name]
            sys.modules[package] = None  # type: ignore[assignment]
            yield

    return missing


@contextlib.contextmanager
def _another() -> Iterator[None]:
    """Another tarazu-page."""
    with open(service.claim(Path("state/tarazu-page"), "")):
        yield


def _no_program() -> object:
    return Program("lctl", "lctl").call(("pool_list", "scratch"))


def _no_lustre() -> object:
    return Step(Settings(), ["true"], {}, root=os.curdir)


def _few_osts() -> object:
    view = SystemView(
        "scratch", 0.0, tuple(Ost(index, "oss1", 1 << 40, 1 << 39, 1 << 39) for index in range(2))
    )
    return candidates(view, Component(0, EOF, 1 << 20, 4))


def _no_forecasts() -> object:
    forecasts = Forecasts()
    forecasts.close()
    with forecasts.process(0, False) as forecast:
        return forecast


EVERYWHERE = ("",)
COMMANDS = (
    Family(
        "An option or argument is not valid",
        ("BadInput",),
        ("cli/", "sim/cli/"),
        "tarazu history report --since yesterday",
        {},
        "A misspelled command or option, or a value that it does not take.",
        "`tarazu COMMAND --help`",
    ),
    Family(
        "A setting is not valid",
        ("ConfigError",),
        EVERYWHERE,
        "tarazu history list",
        {"tarazu.toml": '[run]\nmode = "fast"\n'},
        "The configuration file or a `TARAZU_…` variable; the message names file and line.",
        "`tarazu config check` names all mistakes at once; [settings](settings.md)",
    ),
    Family(
        "A layout or PFL file is not valid",
        ("LayoutError", "LayoutRefused"),
        EVERYWHERE,
        "tarazu config check",
        {"tarazu.toml": '[layout]\npfl_file = "site.pfl"\n', "site.pfl": "[big]\nmatch = *.nc\n"},
        "`layout.pfl_file`, a `lustre.lov` attribute, or a layout that Lustre would refuse.",
        "Correct the file; the sections are those of [settings](settings.md) and `lfs setstripe`.",
    ),
    Family(
        "A log, run or spool cannot be read",
        ("TraceError", "TooLarge"),
        EVERYWHERE,
        "tarazu history phases job.darshan",
        {"job.darshan": "# darshan log version: 3.41\n"},
        "It is no Darshan log (the output of `darshan-parser` is none), or it is cut short or damaged.",
        "Copy it again. A damaged run: `tarazu history forget APP --run ID`.",
    ),
    Family(
        "Any other input is not valid",
        ("BadInput",),
        EVERYWHERE,
        "tarazu sim forward allocate nowhere.toml",
        {},
        "A file is missing, closed to the user or of another form; a NID, a list of OSTs, a CSV column.",
        "The message says what was expected, and where.",
    ),
    Family(
        "A key or message is not valid",
        ("WireError",),
        EVERYWHERE,
        "tarazu config keys list",
        {"tarazu.toml": '[keys]\ndirectory = "/nowhere/keys"\n'},
        "Keys are missing, damaged or not admitted, or a peer is no tarazu, or of an incompatible version.",
        "`tarazu doctor`; [keys and versions](security.md)",
    ),
    Family(
        "A file of tarazu's own is damaged",
        ("StoreError", "Damaged", "Lost", "_Unreachable", "BrokenOff"),
        EVERYWHERE,
        "tarazu job map show map.3",
        {"map.3": "not a map\n"},
        "A state directory, the interaction database or a placement map cannot be read or written.",
        "Check its disk and rights (`tarazu doctor`). Move a damaged file away: tarazu begins a new one.",
    ),
    Family(
        "Nothing of that name is known",
        ("TarazuError",),
        ("cli/", "report/"),
        "tarazu history show ior",
        {},
        "No such application, run, job or plan, or it is another user's.",
        "`tarazu history list`; run the program by `tarazu run` first.",
    ),
    Family(
        "A part of tarazu is not installed",
        ("Unavailable",),
        ("cli/check_app.py", "drawing.py", "table.py"),
        "tarazu job check-app ./ior",
        {},
        "An optional Python package is missing.",
        "Install what the message names ([packages](packages.md)).",
        _without("elftools", "tarazu.escapes"),
    ),
    Family(
        "A daemon has no room now",
        ("Busy",),
        EVERYWHERE,
        "tarazu history db show",
        {"tarazu.toml": CLIENTD},
        "clientd or mdsd serves too many others.",
        "Try again. `tarazu run` does so by itself.",
        _busy,
    ),
    Family(
        "A change is refused",
        ("Unavailable", "Refused", "TakenOtherwise", "_Changeable", "Silent"),
        ("changes/", "daemons/changes/", "daemons/noted.py", "tune/", "trusted.py"),
        "tarazu change drain --apply",
        {},
        "This node has nothing to set, somebody else has set it, the site is stopped, or a limit is reached.",
        "`tarazu change list`; [what tarazu may change](changes.md)",
    ),
    Family(
        "Another program fails",
        ("CannotRun", "Silent"),
        EVERYWHERE,
        "",
        {},
        "`lctl`, `lnetctl`, `lfs` or a command of Slurm is not there, or hangs.",
        "Install it, or put it in root's PATH; run the command of the message by hand.",
        raises=_no_program,
    ),
    Family(
        "A daemon does not answer",
        ("Unavailable",),
        EVERYWHERE,
        "tarazu history db show",
        {"tarazu.toml": CLIENTD},
        "It does not run here, is not reached, or takes too long.",
        "`tarazu status`; `systemctl status tarazu-clientd` (`-mdsd`, `-burstd`)",
    ),
    Family(
        "Something that it needs is missing, or fails",
        ("TarazuError", "StandsStill", "WorkerDied", "CaseFailed"),
        EVERYWHERE,
        "",
        {},
        "No Lustre is mounted, a library is not built, a simulation stands still, a study's process died.",
        "`tarazu doctor`. With `--debug` a command prints where the error comes from: report that as a fault.",
        raises=_no_lustre,
    ),
)
DAEMONS = (
    Family(
        "A setting is not valid",
        (),
        (),
        "tarazu-mdsd",
        {"tarazu.toml": '[mdsd]\nstale_after_s = "soon"\n'},
        "As for commands. At SIGHUP the daemon keeps its settings, and logs the mistake.",
        "`tarazu config check`",
    ),
    Family(
        "A key is not valid",
        (),
        (),
        "tarazu-mdsd",
        {"tarazu.toml": '[keys]\ndirectory = "keys"\n', "keys/server.key": "damaged\n"},
        "The key file is damaged, or not the daemon's to read.",
        "`tarazu doctor`; copy the key again ([security](security.md))",
    ),
    Family(
        "An address is reached from outside, and there are no keys",
        (),
        (),
        "tarazu-mdsd",
        {"tarazu.toml": '[mdsd]\nrequests = "tcp://0.0.0.0:5771"\n'},
        "Without keys a daemon listens on loopback alone.",
        "`tarazu config keys create`; or `keys.insecure = true` on a network of its own",
    ),
    Family(
        "The state directory cannot be used",
        (),
        (),
        "tarazu-page",
        {"tarazu.toml": '[state]\ndirectory = "HERE/tarazu.toml/state"\n'},
        "It is not there, full, or not the daemon's.",
        "`tarazu doctor`: space and limits",
    ),
    Family(
        "Another daemon of the kind runs here",
        (),
        (),
        "tarazu-page",
        {"tarazu.toml": '[state]\ndirectory = "HERE/state"\n'},
        "Two daemons must not share a state directory.",
        "Stop the other, or give this one a `state.directory` of its own.",
        _another,
    ),
    Family(
        "No forecast can be made",
        ("ForecastFailed",),
        EVERYWHERE,
        "",
        {},
        "A forecast process of clientd died, took too long, or clientd is stopping. The job runs without a plan.",
        "clientd's log says which.",
        raises=_no_forecasts,
    ),
    Family(
        "The OSTs cannot serve a layout",
        ("InfeasibleRequest", "InsufficientResources"),
        EVERYWHERE,
        "",
        {},
        "Too few OSTs are there (mdsd's answer is `never`), or usable and with room now (`later`).",
        "`tarazu top` shows the OSTs; or lower the stripe count.",
        raises=_few_osts,
    ),
)
