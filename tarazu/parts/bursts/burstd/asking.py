"""tarazu-burstd as `tarazu change bursts` asks it, at its Unix socket."""

from __future__ import annotations

import socket
import time
from typing import TypeVar

import msgspec

from tarazu.errors import Unavailable, WireError
from tarazu.malformed import MALFORMED
from tarazu.parts.bursts.burstd.asked import MAX_ANSWER, AboutAll, AboutJob, JobAnswer, Told

Kind = TypeVar("Kind", JobAnswer, Told)


def ask(path: str, question: AboutJob | AboutAll, kind: type[Kind], timeout_s: float) -> Kind:
    """Raises Unavailable, WireError."""
    deadline = time.monotonic() + timeout_s
    heard = bytearray()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        try:
            sock.settimeout(timeout_s)
            sock.connect(path)
            sock.sendall(msgspec.json.encode(question) + b"\n")
            while not heard.endswith(b"\n"):
                sock.settimeout(max(0.001, deadline - time.monotonic()))
                got = sock.recv(65536)
                if not got:
                    raise Unavailable(
                        f"{path}: expected an answer, found none (tarazu-burstd's log says why)"
                    )
                heard += got
                if len(heard) > MAX_ANSWER:
                    raise WireError(path, f"an answer of at most {MAX_ANSWER} bytes", "more")
        except TimeoutError:
            raise Unavailable(f"{path}: expected an answer within {timeout_s:g} s, found none") from None
        except OSError as error:
            raise Unavailable(f"{path}: expected tarazu-burstd to listen: {error.strerror}") from None
    try:
        return msgspec.json.decode(heard, type=kind)
    except MALFORMED as error:
        raise WireError(path, "an answer of this version's tarazu-burstd", str(error)) from None
