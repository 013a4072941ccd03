"""What every daemon does the same way: options, signals, reading settings again, one line for an error."""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import functools
import logging
import os
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Protocol

from tarazu import config
from tarazu.daemons.log_lines import log_to_stderr
from tarazu.daemons.secrets import keep_memory_private
from tarazu.daemons.service_manager import ServiceManager
from tarazu.errors import TarazuError

log = logging.getLogger("tarazu.daemons")

ISOLATED = ["-I"] if sys.flags.isolated else []
"""For Python processes of ours, as the packages' programs are: no PYTHONPATH of somebody reaches them."""


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
        self.install()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def install(self) -> None:
        """Take over the process's signals; from the main thread only."""
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        signal.signal(signal.SIGHUP, self._reload)

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


def parser(name: str, summary: str) -> argparse.ArgumentParser:
    """An option parser with what all daemons share."""
    options = argparse.ArgumentParser(prog=name, description=summary)
    options.add_argument("--config", metavar="FILE", help="configuration (default: /etc/tarazu/tarazu.toml)")
    options.add_argument("--root", metavar="DIR", help="read /proc and /sys below this directory")
    options.add_argument("--keys", metavar="DIR", help="directory of the CURVE keys")
    options.add_argument("--verbose", action="store_true", help="log more")
    options.add_argument("--debug", action="store_true", help="show a traceback for an error")
    return options


@functools.cache
def installed_version() -> str:
    """Of tarazu, as the daemon runs it; also after another one was installed over it."""
    try:
        return metadata.version("tarazu")
    except metadata.PackageNotFoundError:
        return ""


class Reread:
    """A daemon's settings, read again when it is told to (SIGHUP)."""

    def __init__(
        self, settings: config.Settings, read: Callable[[], config.Settings], used: Sequence[str]
    ) -> None:
        """`read`: the file and the command line anew; `used`: beginnings of the settings that this daemon looks at."""
        self.settings = settings
        """In force."""
        self._read = read
        self._used = tuple(used)

    def __call__(self, manager: ServiceManager, take_over: Callable[[config.Settings], None]) -> None:
        """Hand what may change to `take_over`, which changes nothing if it raises a TarazuError. One line each."""
        manager.reloading()
        try:
            settings, left = config.reloaded(self.settings, self._read())
            take_over(settings)
        except TarazuError as error:
            log.error("settings stay as they were: %s", error)
        else:
            self.settings = settings
            left = [name for name in left if name.startswith(self._used)]
            log.info("settings read again%s", f"; after a restart only: {', '.join(left)}" if left else "")
        manager.ready()


class Service(Protocol):
    """A daemon that is one object."""

    def loop(self) -> None:
        """Until `Wakeup.stopping`."""

    def close(self) -> None: ...


def serve(
    name: str,
    options: argparse.Namespace,
    read: Callable[[], config.Settings],
    make: Callable[[config.Settings, Wakeup, Reread], Service],
    used: Sequence[str],
) -> int:
    """The life of a daemon that `make` makes of its settings; `read` and `used` as `Reread` has them."""

    def body() -> int:
        settings = read()
        with (
            Wakeup() as wakeup,
            contextlib.closing(make(settings, wakeup, Reread(settings, read, used))) as service,
        ):
            service.loop()
        log.info("stopped")
        return 0

    return run(name, options, body)


def run(name: str, options: argparse.Namespace, body: Callable[[], int]) -> int:
    """`body()` with logging to standard error; an error becomes one line and its exit status."""
    log_to_stderr(name, verbose=options.verbose)
    installed_version()
    # Killed by the watchdog (SIGABRT) or by a fault in a library, it says where each thread was.
    faulthandler.enable()
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
