"""The way to a Dask scheduler: an address that can be one, something that answers as one, a client in bounded time."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from tarazu.errors import BadInput, Unavailable

CONNECT_S = 8.0
"""That a scheduler has to answer."""
CLOSE_S = 2.0

_ADDRESS = re.compile(r"(?:tcp|tls)://(?:\[[0-9A-Fa-f:.%]+\]|[^\s/:\[\]]+):(\d{1,5})")


def checked(address: str) -> None:
    """Raises BadInput for what is no address of a scheduler, without asking anybody."""
    matched = _ADDRESS.fullmatch(address)
    if matched is None or not 0 < int(matched[1]) < 65536:
        raise BadInput("--scheduler", "tcp://HOST:PORT or tls://HOST:PORT", address)


def connect(address: str) -> Any:
    """A `distributed.Client` of the scheduler there. Raises BadInput, Unavailable."""
    checked(address)
    try:
        import distributed
    except ImportError:
        raise Unavailable("--scheduler: expected distributed (pip install distributed), found none") from None
    # Asked before a Client is made: one whose peer is no scheduler is never done, not even with closing.
    _ask(address)
    try:
        return distributed.Client(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, ValueError) as error:
        raise _nobody(address, line(error)) from None


def close(client: Any) -> None:
    client.close(timeout=CLOSE_S)


def _ask(address: str) -> None:
    try:
        kind = asyncio.run(_identity(address))
    except TimeoutError:
        raise _nobody(address, f"none that answers within {CONNECT_S:g} s") from None
    except Exception as error:  # whatever another program's bytes mean to Dask's reader
        raise _nobody(address, line(error)) from None
    if kind != "Scheduler":
        raise _nobody(address, f"a Dask {kind.lower()}")


async def _identity(address: str) -> str:
    """What answers there calls itself."""
    from distributed.core import rpc
    from distributed.security import Security

    arguments = Security().get_connection_args("client")
    peer = rpc(address, timeout=CONNECT_S, connection_args=arguments)
    try:
        async with asyncio.timeout(CONNECT_S):
            answer = await peer.identity()
        return str(answer.get("type", "nothing")) if isinstance(answer, dict) else "nothing"
    finally:
        async with asyncio.timeout(CLOSE_S):
            await peer.close_rpc()


def _nobody(address: str, found: str) -> Unavailable:
    return Unavailable(f"--scheduler: expected a Dask scheduler at {address}, found: {found}")


def line(error: object) -> str:
    """The first line of what an error says."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
