"""What the daemons know, for who shows it: through clientd where one runs, else mdsd is asked directly."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tarazu.config import Settings
from tarazu.errors import BadInput, Unavailable, WireError
from tarazu.malformed import MALFORMED, described
from tarazu.model import SystemView
from tarazu.then import System
from tarazu.units import counted
from tarazu.wire import local
from tarazu.wire.channel import connect
from tarazu.wire.messages import ThenReply, ViewReply
from tarazu.wire.overview import Overview, overview

if TYPE_CHECKING:
    from tarazu.daemons.questions import Questions

TIMEOUT_S = 5.0
LATE_S = 5.0
"""So much later than it is due a report of a server that is alive may come."""


class Whole(NamedTuple):
    """All file systems as mdsd's allocator sees them, for programs that change something by it."""

    views: tuple[SystemView, ...]
    """By name."""
    stopped: str = ""
    """Why, where the site has switched tarazu off."""

    @property
    def fs_names(self) -> tuple[str, ...]:
        return tuple(view.fs_name for view in self.views)


def status_of(settings: Settings) -> Mapping[str, Any]:
    """clientd's status (`clientd`), and that of mdsd as clientd has it (`mdsd`). On a node without
    clientd mdsd is asked directly, and `clientd` is `{"unavailable": why}`. Raises Unavailable when neither answers.
    """
    try:
        channel = connect(settings.clientd.socket, TIMEOUT_S)
    except Unavailable as error:
        status = _mdsd(settings).status_or_why()
        if why := status["mdsd"].get("unavailable"):
            raise Unavailable(f"{error}; and mdsd: {why}") from None
        return {"clientd": {"unavailable": str(error)}, **status}
    with channel:
        answer = channel.ask(local.StatusQuery())
    if not isinstance(answer, local.StatusAnswer):
        raise Unavailable(f"clientd: expected its status, found {type(answer).__name__}")
    return answer.status


def overview_of(settings: Settings) -> Overview:
    """All servers and OSTs. Raises Unavailable when nobody can be asked, or mdsd does not answer."""
    mdsd = status_of(settings)["mdsd"]
    if "unavailable" in mdsd:
        raise Unavailable(str(mdsd["unavailable"]))
    return overview(mdsd)


def view_of(settings: Settings, fs_name: str) -> tuple[SystemView, ViewReply]:
    """The view of one file system (empty: the only one), and what came with it.

    Raises Unavailable when neither clientd nor mdsd answers, and when no OSS has reported that file system.
    """
    answer = _view(settings, fs_name)
    if answer.view is None:
        wanted = f"a file system that an OSS reports ({', '.join(answer.fs_names) or 'none yet'})"
        raise Unavailable(f"mdsd: expected {wanted}, found {fs_name or 'no choice of one'}")
    return answer.view, answer


def view_since_now(settings: Settings, fs_name: str, waits: Callable[[], None]) -> SystemView:
    """As `view_of`, once all servers have reported since the call: what was set elsewhere just before is in it. Of one
    that is silent the last report counts. `waits` is called meanwhile.
    """
    began, most_s = time.monotonic(), 1.5 * settings.ossd.interval_s + LATE_S
    while True:
        asked = time.monotonic()
        view, reply = view_of(settings, fs_name)
        if reply.age_s <= asked - began or asked - began > most_s:
            return view
        waits()
        time.sleep(min(1.0, settings.ossd.interval_s / 5))


def then_of(
    settings: Settings, fs_name: str, osts: Sequence[int], from_s: float, to_s: float
) -> System | None:
    """How these OSTs and their servers were between two Unix times of this node; None: mdsd knows nothing of then.

    Raises Unavailable when neither clientd nor mdsd answers.
    """
    now_s = time.time()
    ago = max(0.0, now_s - from_s), max(0.0, now_s - to_s)
    try:
        channel = connect(settings.clientd.socket, TIMEOUT_S)
    except Unavailable:
        answer: object = _mdsd(settings).then(fs_name, osts, *ago)
    else:
        with channel:
            answer = channel.ask(local.ThenQuery(fs_name, tuple(osts), *ago))
    return answer.system if isinstance(answer, ThenReply) else None


def whole_of(settings: Settings) -> Whole:
    """All file systems. Raises Unavailable when neither clientd nor mdsd answers."""
    return whole(lambda fs_name: _view(settings, fs_name))


def whole(ask: Callable[[str], ViewReply]) -> Whole:
    """By asking for one view after the other."""
    first = ask("")
    replies = [ask(name) for name in first.fs_names] if first.view is None else [first]
    return Whole(tuple(reply.view for reply in replies if reply.view is not None), first.stopped)


def _view(settings: Settings, fs_name: str) -> ViewReply:
    try:
        channel = connect(settings.clientd.socket, TIMEOUT_S)
    except Unavailable:
        answer: object = _directly(settings, fs_name)
    else:
        with channel:
            answer = channel.ask(local.ViewQuery(fs_name))
    if not isinstance(answer, ViewReply):
        raise Unavailable(f"mdsd: expected its view, found {type(answer).__name__}")
    return answer


def view_in(path: str) -> SystemView:
    """The view that a file has as JSON: one itself, or what `tarazu status --json` printed. Raises BadInput."""
    expected = "a SystemView in JSON, or the output of `tarazu status --json`"
    try:
        value = msgspec.json.decode(Path(path).read_bytes())
    except OSError as error:
        raise BadInput(path, "a readable file with a SystemView", error.strerror) from None
    except MALFORMED as error:
        raise BadInput(path, expected, str(error)) from None
    if isinstance(value, dict) and "mdsd" in value:
        systems = value["mdsd"].get("file_systems", {}) if isinstance(value["mdsd"], dict) else {}
        if len(systems) != 1:
            raise BadInput(path, "the status of one file system", ", ".join(systems) or "none")
        ((name, known),) = systems.items()
        value = {"fs_name": name, "taken_s": 0.0, "osts": known.get("osts")}
    try:
        view = msgspec.convert(value, SystemView)
    except msgspec.ValidationError as error:
        raise BadInput(path, expected, str(error)) from None
    indices = [o.index for o in view.osts]
    if not indices or indices != sorted(set(indices)) or indices[0] < 0:
        raise BadInput(path, "OSTs sorted by index, each once", counted(len(indices), "OST"))
    return view


def _directly(settings: Settings, fs_name: str) -> object:
    """As on a server, where no clientd runs: with the key that is there."""
    asker = _mdsd(settings)
    with asker.connection() as mdsd:
        return asker.view(mdsd, fs_name)


def _mdsd(settings: Settings) -> Questions:
    from tarazu.daemons.questions import Questions

    try:
        return Questions(settings)
    except WireError as error:
        raise Unavailable(f"neither clientd nor mdsd can be asked: {error}") from None


described(SystemView)
