"""What every daemon is: a `Service`, whose life is written here once.

Settings are read, signals taken over, the daemon is made, its loop turns until SIGTERM or SIGINT, its last word is
said, and all is closed; SIGHUP reads the settings again. An error becomes one line and the exit status.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import functools
import logging
import math
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tarazu import config, locks
from tarazu.daemons.secrets import keep_memory_private
from tarazu.daemons.service_manager import ServiceManager, log_to_stderr
from tarazu.errors import StoreError, TarazuError, Unavailable
from tarazu.figures import Family
from tarazu.part import InDaemon, Live, sections

if TYPE_CHECKING:
    from tarazu.wire.said import SaidOnce
    from tarazu.wire.sockets import ZmqTransport

log = logging.getLogger("tarazu.daemons")

ISOLATED = ["-I"] if sys.flags.isolated else []
"""For Python processes of ours, as the packages' programs are: no PYTHONPATH of somebody reaches them."""
LONGEST_WAIT_S = 3600.0
STARTING_S, STARTING_TURN_S = 300.0, 1.0
"""So long systemd is asked for more time while a daemon loads what it needs; how often it is looked at meanwhile."""


class Wakeup:
    """A pipe that ends the main loop's wait: written by signals and by worker threads.

    As a context it takes over the process's signals: SIGTERM and SIGINT set `stopping`, SIGHUP `reload`.
    Enter it before anything that a signal must not catch half made.
    """

    def __init__(self) -> None:
        self.stopping = False
        self.reload = False
        self.fd, self._writer = os.pipe()
        os.set_blocking(self.fd, False)
        os.set_blocking(self._writer, False)

    def __enter__(self) -> Wakeup:
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        signal.signal(signal.SIGHUP, self._reload)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def wake(self) -> None:
        """End the current or the next wait; from any thread."""
        # A full pipe wakes anyway; a closed one has nobody left to wake.
        with contextlib.suppress(OSError):
            os.write(self._writer, b"\0")

    def drain(self) -> None:
        """Forget what woke us; call after each wait."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.fd, 4096):
                pass

    def _stop(self, _number: int, _frame: object) -> None:
        self.stopping = True

    def _reload(self, _number: int, _frame: object) -> None:
        self.reload = True

    def close(self) -> None:
        """Give the signals back to whoever comes next."""
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        os.close(self.fd)
        os.close(self._writer)


class Every:
    """Periodic work. It keeps its phase; a turn that was missed (suspend, overload) is skipped."""

    def __init__(
        self, interval_s: Callable[[], float], work: Callable[[float], object], first_s: float
    ) -> None:
        self._interval_s = interval_s
        self._work = work
        self.due = time.monotonic() + first_s

    def look(self) -> None:
        """Do the work if it is due."""
        now = time.monotonic()
        if now < self.due:
            return
        self._work(now)
        interval_s = self._interval_s()
        self.due += (math.floor((time.monotonic() - self.due) / interval_s) + 1) * interval_s

    def no_later(self) -> None:
        """The interval may have changed: a shorter one holds from now on."""
        self.due = min(self.due, time.monotonic() + self._interval_s())

    def at_once(self) -> None:
        """It is due now."""
        self.due = time.monotonic()


class Service:
    """A daemon: all its state is in one object of a subclass, made of its settings.

    A subclass overrides `begin`, `may_wait_s`, `turn`, `take_over`, `finish`, `release` where it needs to.
    Its constructor registers periodic work with `every` and descriptors with `watch`; its ZeroMQ sockets belong to the
    transport of `connect`. Times are on the monotonic clock.
    """

    USED: ClassVar[tuple[str, ...]]
    """Settings that it looks at, or their beginnings."""

    def __init__(self, settings: config.Settings, wakeup: Wakeup, figures_at: str = "") -> None:
        """`figures_at`: the address where a part may show `figures`; empty: nowhere."""
        self.settings = settings
        """In force."""
        self.wakeup = wakeup
        self.figures_at = figures_at
        self.manager = ServiceManager()
        self.read: Callable[[], config.Settings] | None = None
        """The configuration and the command line anew."""
        self.claimed: int | None = None
        """A lock's descriptor, held: there is no other such daemon."""
        self.waited_s = 0.0
        """The last wait was for so long at most."""
        self._told_ready = False
        self._due: list[Every] = []
        self._transport: ZmqTransport | None = None
        self._watched: dict[int, Callable[[], None]] = {}
        self._beside: Live[InDaemon] | None = None

    def begin(self) -> None:
        """Just before its loop."""

    def starting(self) -> str:
        """What it loads still before it is ready, although it answers; empty: nothing."""
        return ""

    def may_wait_s(self, now: float) -> float:
        """So long it may sleep if nothing comes and no periodic work is due."""
        return math.inf

    def turn(self, now: float) -> None:
        """Take in what has come, without waiting for more."""

    def take_over(self, settings: config.Settings) -> None:
        """Settings were read again. Changes nothing if it raises a TarazuError."""

    def figures(self) -> Iterator[Family]:
        """Of a part's daemon: what it counts; called in the loop."""
        yield from ()

    def finish(self) -> None:
        """It was told to stop: the last word, while everything is still open."""

    def release(self) -> None:
        """Close what is this daemon's own."""

    def every(
        self, interval_s: Callable[[], float], work: Callable[[float], object], first_s: float = 0.0
    ) -> Every:
        """Call `work(now)` in `first_s`, then each interval."""
        self._due.append(Every(interval_s, work, first_s))
        return self._due[-1]

    def watch(self, descriptor: int, handle: Callable[[], None]) -> None:
        """Call `handle` when it can be read; for daemons without a transport."""
        self._watched[descriptor] = handle

    def connect(self, role: str) -> ZmqTransport:
        """The transport that the loop waits for, with the keys of this role."""
        from tarazu.wire.security import curve_for
        from tarazu.wire.sockets import ZmqTransport

        keys = self.settings.keys
        curve = curve_for(role, keys.directory, keys.insecure)
        self._transport = ZmqTransport(curve, insecure=keys.insecure, wake_fd=self.wakeup.fd)
        return self._transport

    def alone(self, claim: Callable[[], int], nothing: str, said: SaidOnce) -> bool:
        """Whether there is no other such daemon. While there is, this one does `nothing`, and says so once."""
        if self.claimed is None:
            try:
                self.claimed = claim()
            except TarazuError as error:
                said.warning(f"{error}: this one {nothing}, and tries again", "claim")
                self.manager.status(f"{nothing}: its state cannot be opened")
                return False
        return True

    def loop(self) -> None:
        """Until `Wakeup.stopping`."""
        self.begin()
        self._beside = Live(lambda part: part.in_daemon(self))
        begin = time.monotonic()
        while not self.wakeup.stopping:
            if not self._told_ready:
                self._tell_ready(time.monotonic() - begin)
            self.do_due()
            now = time.monotonic()
            longest_s = LONGEST_WAIT_S if self._told_ready else STARTING_TURN_S
            wait_s = min([longest_s, self.may_wait_s(now), *(each.due - now for each in self._due)])
            self.waited_s = max(0.0, self.manager.longest_wait_s(wait_s))
            ready = self.wait(self.waited_s)
            self.wakeup.drain()
            self.manager.alive()
            if self.wakeup.reload:
                self.wakeup.reload = False
                self._reread()
            for handle in ready:
                handle()
            self.turn(time.monotonic())
            self._beside.each(lambda part: part.turn())
        self.manager.stopping()
        self.finish()

    def _tell_ready(self, since_s: float) -> None:
        """systemd, once: it is ready, or that takes longer."""
        if not self.starting():
            self._told_ready = self.manager.ready()
        elif since_s < STARTING_S:
            self.manager.busy()

    def do_due(self) -> None:
        """Periodic work that is due."""
        for each in self._due:
            each.look()

    def wait(self, timeout_s: float) -> Sequence[Callable[[], None]]:
        """Until something comes, `wakeup` is written to, or the time is over; handlers of what was watched and came."""
        if self._transport is not None:
            self._transport.wait(timeout_s)
            return ()
        poll = select.poll()
        for descriptor in (self.wakeup.fd, *self._watched):
            poll.register(descriptor, select.POLLIN)
        ready = poll.poll(math.ceil(timeout_s * 1000))
        return [self._watched[descriptor] for descriptor, _ in ready if descriptor in self._watched]

    def _reread(self) -> None:
        """Take over what may change. One line says how that went."""
        if self.read is None:
            return
        if self._told_ready:
            self.manager.reloading()
        try:
            settings, left = config.reloaded(self.settings, self.read(), sections())
            self.take_over(settings)
        except TarazuError as error:
            log.error("settings stay as they were: %s", error)
        else:
            self.settings = settings
            for each in self._due:
                each.no_later()
            left = [name for name in left if name.startswith(self.USED)]
            log.info("settings read again%s", f"; after a restart only: {', '.join(left)}" if left else "")
        if self._told_ready:
            self.manager.ready()

    def close(self) -> None:
        """Parts first, which look at all the rest."""
        if self._beside is not None:
            self._beside.each(lambda part: part.close())
        self.release()
        if self._transport is not None:
            self._transport.close()
        if self.claimed is not None:
            os.close(self.claimed)
            self.claimed = None
        self.manager.close()


def claim(directory: Path, other: str) -> int:
    """A descriptor that locks out others until it is closed; what a crash left half written is removed.

    `other`: what is said of the one that is there. Raises StoreError, Unavailable.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(directory / "daemon", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(str(directory), "a directory that can be written", error.strerror) from None
    try:
        locks.need(descriptor, directory)
    except BlockingIOError:
        os.close(descriptor)
        raise Unavailable(f"{directory}: {other}") from None
    except StoreError:
        os.close(descriptor)
        raise
    for left in directory.glob(".*.part"):
        left.unlink(missing_ok=True)
    return descriptor


@functools.cache
def installed_version() -> str:
    """Of tarazu, as the daemon runs it; also after another one was installed over it."""
    try:
        return metadata.version("tarazu")
    except metadata.PackageNotFoundError:
        return ""


def parser(name: str, summary: str) -> argparse.ArgumentParser:
    """An option parser with what all daemons share."""
    options = argparse.ArgumentParser(prog=name, description=summary)
    options.add_argument("--config", metavar="FILE", help="configuration (default: /etc/tarazu/tarazu.toml)")
    options.add_argument("--root", metavar="DIR", help="read /proc and /sys below this directory")
    options.add_argument("--keys", metavar="DIR", help="directory of the CURVE keys")
    options.add_argument("--verbose", action="store_true", help="log more")
    options.add_argument("--debug", action="store_true", help="show a traceback for an error")
    return options


def serve(
    name: str,
    options: argparse.Namespace,
    read: Callable[[], config.Settings],
    make: Callable[[config.Settings, Wakeup], Service],
) -> int:
    """The life of a daemon that `make` makes of its settings; its exit status.

    `read`: the configuration with the command line's options on top.
    """

    def life() -> int:
        settings = read()
        with Wakeup() as wakeup, contextlib.closing(make(settings, wakeup)) as service:
            service.read = read
            service.loop()
        log.info("stopped")
        return 0

    return run(name, options, life)


def run(name: str, options: argparse.Namespace, body: Callable[[], int]) -> int:
    """`body()` with logging to standard error; an error becomes one line and its exit status."""
    log_to_stderr(name, verbose=options.verbose)
    if options.root:
        os.environ["TARAZU_ROOT"] = options.root
    installed_version()
    # Killed by the watchdog (SIGABRT) or by a fault in a library, it says where the thread was that this met: of the
    # watchdog's the main one, as a rule. To walk through the others while they run would be a fault of its own.
    faulthandler.enable(all_threads=False)
    keep_memory_private()
    try:
        return body()
    except TarazuError as error:
        if options.debug:
            raise
        log.critical("%s", error)
        return error.exit_status
    except Exception as error:
        if options.debug:
            raise
        log.critical("ended by %s: %s", type(error).__name__, error, exc_info=True)
        return 1
