"""mdsd's status as the subcommands see it: through clientd where one runs, else asked directly."""

from __future__ import annotations

import uuid
from typing import Any

from tarazu.config import Settings
from tarazu.errors import Unavailable, WireError
from tarazu.wire import local, messages

TIMEOUT_S = 5.0


def mdsd_status(settings: Settings) -> dict[str, Any]:
    """Raises Unavailable when neither clientd nor mdsd answers."""
    try:
        with local.connect(settings.clientd.socket, TIMEOUT_S) as channel:
            answer = channel.ask(local.StatusQuery())
    except Unavailable:
        return _directly(settings)
    if not isinstance(answer, local.StatusAnswer):
        raise Unavailable(f"clientd: expected its status, found {type(answer).__name__}")
    status: dict[str, Any] = answer.status["mdsd"]
    if "unavailable" in status:
        raise Unavailable(str(status["unavailable"]))
    return status


def _directly(settings: Settings) -> dict[str, Any]:
    """As on a server, where no clientd runs: needs a client's key."""
    from tarazu.wire.security import curve_for
    from tarazu.wire.sockets import ZmqTransport

    try:
        curve = curve_for("client", settings.keys.directory, settings.keys.insecure)
        transport = ZmqTransport(curve, insecure=settings.keys.insecure)
    except WireError as error:
        raise Unavailable(f"neither clientd nor mdsd can be asked: {error}") from None
    try:
        question = messages.StatusRequest(uuid.uuid4().hex)
        answer = transport.requester(settings.mdsd.requests).request(question, TIMEOUT_S)
    finally:
        transport.close()
    if not isinstance(answer, messages.StatusReply):
        raise Unavailable(f"mdsd: expected its status, found {type(answer).__name__}")
    return answer.status
