"""Names of users, as this node's directory of users has them, and none that is waited for.

A directory of users may hang for minutes (LDAP without its server). Each question is a thread's, which is left behind
where it takes too long; whoever asks the same meanwhile waits for that thread, so that there is one for each question.
"""

from __future__ import annotations

import pwd
import threading
from collections.abc import Callable, Iterable

WAIT_S = 1.0
"""A directory that answers at all does so in less."""

_asked: dict[tuple[str, str | int], _Question] = {}
_lock = threading.Lock()


class _Question(threading.Thread):
    def __init__(self, key: tuple[str, str | int], look_up: Callable[[], str | int | None]) -> None:
        super().__init__(name="tarazu-users", daemon=True)
        self._key, self._look_up = key, look_up
        self.known: tuple[str | int | None, ...] = ()

    def run(self) -> None:
        try:
            self.known = (self._look_up(),)
        except (KeyError, OverflowError, ValueError):
            self.known = (None,)
        except OSError:
            pass  # the directory cannot be read now: nothing is known
        finally:
            with _lock:
                _asked.pop(self._key, None)


def _answer(
    key: tuple[str, str | int], look_up: Callable[[], str | int], wait_s: float
) -> tuple[str | int | None, ...]:
    """(what was found; None: there is none); empty: nobody said."""
    try:
        with _lock:
            question = _asked.get(key)
            if question is None:
                question = _Question(key, look_up)
                question.start()
                _asked[key] = question
    except RuntimeError:  # no thread is to be had
        return ()
    question.join(wait_s)
    return question.known


def need_names(*lists: Iterable[str]) -> bool:
    """Do these lists of users hold more than numbers?"""
    return any(not user.isdecimal() for users in lists for user in users)


def name_of(uid: int) -> str | None:
    """Empty where the user has none (in a container, say); None: that is not known in time."""
    answer = _answer(("name", uid), lambda: pwd.getpwuid(uid).pw_name, WAIT_S)
    return str(answer[0] or "") if answer else None


def uid_of(name: str, wait_s: float) -> int | None:
    """None where no user of that name is known, or it is not known in time."""
    answer = _answer(("uid", name), lambda: pwd.getpwnam(name).pw_uid, wait_s)
    return int(answer[0]) if answer and answer[0] is not None else None
