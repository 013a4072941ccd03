"""What the daemons know, for the subcommands: through clientd where one runs, else mdsd is asked directly."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from tarazu.config import Settings
from tarazu.errors import Unavailable, WireError
from tarazu.model import SystemView
from tarazu.wire import local
from tarazu.wire.messages import ViewReply, ViewRequest

TIMEOUT_S = 5.0


def status_of(settings: Settings) -> Mapping[str, Any]:
    """What clientd says of itself, and of what it was told by mdsd. Raises Unavailable."""
    with local.connect(settings.clientd.socket, TIMEOUT_S) as channel:
        answer = channel.ask(local.StatusQuery())
    if not isinstance(answer, local.StatusAnswer):
        raise Unavailable(f"clientd: expected its status, found {type(answer).__name__}")
    found: Mapping[str, Any] = answer.status
    return found


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
    from tarazu.wire.security import curve_for
    from tarazu.wire.sockets import ZmqTransport
    from tarazu.wire.transport import Servers

    try:
        curve = curve_for("client", settings.keys.directory, settings.keys.insecure)
        transport = ZmqTransport(curve, insecure=settings.keys.insecure)
    except WireError as error:
        raise Unavailable(f"neither clientd nor mdsd can be asked: {error}") from None
    try:
        question = ViewRequest(uuid.uuid4().hex, fs_name)
        return transport.requester(Servers(settings.requests())).request(question, TIMEOUT_S)
    finally:
        transport.close()
