"""One transaction of the interaction database: wholly done or not at all, and never twice.

A server may go away, or break a transaction off for another one's sake (deadlock), at any moment. Then it is begun
anew, a few times. Whether a commit whose answer never came was one is told by a mark, a row that is part of it: the
same mark cannot be put a second time, and who puts it waits for whoever did before.
"""

from __future__ import annotations

import contextlib
import random
import time
import uuid
from collections.abc import Callable
from typing import TypeVar

from tarazu.errors import StoreError
from tarazu.store.connection import BrokenOff, Connection, Lost

RETRY_S = (0.05, 0.3, 1.0, 3.0, 6.0)
"""Pauses before a transaction is begun again; a server that is started anew is back within them."""

Result = TypeVar("Result")


def write(db: Connection, body: Callable[[], Result]) -> Result:
    """`body` within a transaction; it may be called several times. Raises StoreError."""
    mark = uuid.uuid4().hex
    done: list[Result] = []
    for pause_s in (*RETRY_S, None):
        try:
            db.begin()
            if not db.mark(mark):  # the commit that was not answered
                db.rollback()
                return done[-1]
            done.append(body())
            db.commit()
            return done[-1]
        except (BrokenOff, Lost):
            with contextlib.suppress(StoreError):
                db.rollback()
            if pause_s is None:
                raise
            time.sleep(pause_s * random.uniform(0.5, 1.0))
        except BaseException:
            with contextlib.suppress(StoreError):
                db.rollback()
            raise
    raise AssertionError("unreachable")
