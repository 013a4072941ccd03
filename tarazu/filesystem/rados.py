"""A connection to the monitors of a Ceph cluster: commands and their answers, as JSON, by librados.

`ceph` does the same, in 0.4 s of a processor for each command; over a connection that is kept an answer takes 1 ms.
The name, key and addresses are found as every client of Ceph finds them: $CEPH_CONF or /etc/ceph/ceph.conf, $CEPH_ARGS.
"""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Mapping
from typing import Any

from tarazu.errors import TarazuError

LIBRARY = "librados.so.2"
ANSWER_BYTES = 64 << 20
"""An answer of more is refused: that of `osd dump` of 10,000 OSDs has 10 MB."""


class RadosError(TarazuError):
    """librados is missing, the cluster does not answer, or it refused: in one line."""


class Rados:
    """`name`: the client, such as client.tarazu; `conf`: its ceph.conf (None: where Ceph looks for it).

    `patience_s` bounds the connection and each command. RadosError: no library, no configuration, no key, no answer.
    """

    def __init__(self, name: str, conf: str | None = None, patience_s: float = 10.0) -> None:
        self._library = _library()
        self._cluster = ctypes.c_void_p()
        made = self._library.rados_create2(
            ctypes.byref(self._cluster), b"ceph", name.encode(), ctypes.c_uint64(0)
        )
        self._check(made, f"a client called {name}")
        try:
            path = None if conf is None else conf.encode()
            self._check(
                self._library.rados_conf_read_file(self._cluster, path), f"reading {conf or 'ceph.conf'}"
            )
            self._check(self._library.rados_conf_parse_env(self._cluster, None), "reading $CEPH_ARGS")
            for option in ("client_mount_timeout", "rados_mon_op_timeout", "rados_osd_op_timeout"):
                value = str(max(1, round(patience_s))).encode()
                self._check(self._library.rados_conf_set(self._cluster, option.encode(), value), option)
            self._check(self._library.rados_connect(self._cluster), f"connecting as {name}")
        except RadosError:
            self.close()
            raise

    def command(self, prefix: str, **arguments: Any) -> Any:
        """The answer of `ceph <prefix>`, read as JSON; what is no JSON as text. RadosError: refused, or no answer."""
        words: Mapping[str, Any] = {"prefix": prefix, "format": "json", **arguments}
        line = (ctypes.c_char_p * 1)(json.dumps(words).encode())
        out, said = ctypes.c_void_p(), ctypes.c_void_p()
        out_bytes, said_bytes = ctypes.c_size_t(), ctypes.c_size_t()
        done = self._library.rados_mon_command(
            self._cluster, line, ctypes.c_size_t(1), None, ctypes.c_size_t(0),
            ctypes.byref(out), ctypes.byref(out_bytes), ctypes.byref(said), ctypes.byref(said_bytes),
        )  # fmt: skip
        answer, message = self._taken(out, out_bytes.value), self._taken(said, said_bytes.value)
        self._check(done, f"ceph {prefix}", message.decode(errors="replace"))
        if len(answer) < out_bytes.value:
            raise RadosError(
                f"ceph {prefix}: expected an answer of at most {ANSWER_BYTES} bytes, found {out_bytes.value}"
            )
        return answer_of(answer)

    def close(self) -> None:
        """Ends the connection and librados' threads; once only."""
        if self._cluster:
            self._library.rados_shutdown(self._cluster)
            self._cluster = ctypes.c_void_p()

    def _taken(self, buffer: ctypes.c_void_p, size: int) -> bytes:
        if not buffer:
            return b""
        try:
            return ctypes.string_at(buffer, size) if size <= ANSWER_BYTES else b""
        finally:
            self._library.rados_buffer_free(buffer)

    def _check(self, done: int, what: str, message: str = "") -> None:
        if done < 0:
            reason = message.strip().partition("\n")[0] or os.strerror(-done)
            raise RadosError(f"{what}: {reason}")


def answer_of(answer: bytes) -> Any:
    """JSON, or the text that it is instead."""
    try:
        return json.loads(answer)
    except (ValueError, RecursionError):
        return answer.decode(errors="replace")


def _library() -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        raise RadosError(f"{LIBRARY}: {error}") from None
    library.rados_shutdown.restype = library.rados_buffer_free.restype = None
    return library
