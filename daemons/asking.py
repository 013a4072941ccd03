"""What the daemons know, for who shows it: through clientd where one runs, else mdsd is asked directly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tarazu.config import Settings
from tarazu.errors import Unavailable, WireError
from tarazu.model import SystemView
from tarazu.wire import local
from tarazu.wire.messages import ViewReply
from tarazu.wire.overview import Overview, overview

if TYPE_CHECKING:
    from tarazu.daemons.questions import Questions

TIMEOUT_S = 5.0


def status_of(settings: Settings) -> Mapping[str, Any]:
    """What clientd says of itself (`clientd`), and of what it was told by mdsd (`mdsd`, `mdsds`). On a node without
    clientd mdsd is asked directly, and `clientd` is `{"unavailable": why}`. Raises Unavailable when neither answers.
    """
    try:
        channel = local.connect(settings.clientd.socket, TIMEOUT_S)
    except Unavailable as error:
        found = _mdsd(settings).everyone()
        if why := found["mdsd"].get("unavailable"):
            raise Unavailable(f"{error}; and mdsd: {why}") from None
        return {"clientd": {"unavailable": str(error)}, **found}
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
    try:
        channel = local.connect(settings.clientd.socket, TIMEOUT_S)
    except Unavailable:
        answer: object = _directly(settings, fs_name)
    else:
        with channel:
            answer = channel.ask(local.ViewQuery(fs_name))
    if not isinstance(answer, ViewReply):
        raise Unavailable(f"mdsd: expected its view, found {type(answer).__name__}")
    if answer.view is None:
        wanted = f"a file system that an OSS reports ({', '.join(answer.fs_names) or 'none yet'})"
        raise Unavailable(f"mdsd: expected {wanted}, found {fs_name or 'no choice of one'}")
    return answer.view, answer


def _directly(settings: Settings, fs_name: str) -> object:
    """As on a server, where no clientd runs: needs a client's key."""
    asker = _mdsd(settings)
    with asker.connection() as mdsd:
        return asker.view(mdsd, fs_name)


def _mdsd(settings: Settings) -> Questions:
    from tarazu.daemons.questions import Questions

    try:
        return Questions(settings)
    except WireError as error:
        raise Unavailable(f"neither clientd nor mdsd can be asked: {error}") from None
