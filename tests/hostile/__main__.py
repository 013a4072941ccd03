"""Malformed and mutated messages to each socket of real daemons, and malformed files to what reads them:
`python -m tests.hostile [--messages N] [--only NAME]`.

One line for each: what was sent, how long it took, memory after a warm-up and once all was read, and how long honest
peers waited meanwhile. Exit status 1 when a daemon died, memory grew, or an honest peer waited longer than its
deadline.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import logging
import multiprocessing
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.hostile import flood
from tests.hostile.of_part import of_parts
from tests.hostile.site import DEADLINE_S, Attacked, Waits, honest

MESSAGES = 1_000_000
WARM_UP = 0.2
"""Share of the messages after which memory is measured first."""
MIN_WARM_UP = 10_000
"""Of fewer messages none are for the warm-up."""
GROWTH, GROWTH_BYTES = 1.15, 48 << 20
"""What counts as flat: allocators keep what they once had."""
READING_S = 30.0


@dataclass(frozen=True)
class Target:
    """One socket: who listens there, how it is attacked, and with what share of the messages."""

    daemon: str
    attack: Callable[[str, str, int, int], None]
    address: Callable[[Attacked], str]
    share: float = 1.0


TARGETS = {
    "requests": Target("mdsd", flood.requests, lambda site: site.requests),
    "statistics": Target("mdsd", flood.statistics, lambda site: site.statistics),
    "clientd": Target("clientd", flood.clientd, lambda site: str(site.socket)),
    **{name: Target(name, daemon.attack, daemon.address) for name, daemon in of_parts().items()},
    # A connection for each message: a tenth as many take as long.
    "tcp-requests": Target("mdsd", flood.tcp, lambda site: site.requests, 0.1),
    "tcp-statistics": Target("mdsd", flood.tcp, lambda site: site.statistics, 0.1),
}
FILES = {"statistics-files": "statistics", "database": "database", "files": "files"}
"""Name → module here, with `mutate_<module>(n, seed)`, which raises what the product must not, and returns figures."""
FILES_SHARE = 0.01
"""Of the number of messages: each is a whole look at a node, or at a database."""


def attack(site: Attacked, name: str, number: int, seed: int) -> list[str]:
    """Attack one socket; what went wrong. Prints a line."""
    target = TARGETS[name]
    number = max(100, int(number * target.share))
    before = site.rss_bytes(target.daemon)
    begin = time.monotonic()
    with honest(site) as waits:
        first = int(number * WARM_UP) if number >= MIN_WARM_UP else 0
        if first:
            _send(target, site, first, seed)
        warm = site.rss_bytes(target.daemon)
        _send(target, site, number - first, seed + 1)
        took_s = time.monotonic() - begin
        after = _once_read(site, target.daemon, warm * GROWTH + GROWTH_BYTES)
    wrong = [f"{daemon} died: {site.log(daemon)[-2000:]}" for daemon in site.dead()]
    if after > warm * GROWTH + GROWTH_BYTES:
        wrong.append(f"{target.daemon} grew from {warm >> 20} to {after >> 20} MiB")
    for who, found in waits.items():
        wrong += [f"an honest peer of {who}: {text}" for text in found.failed[:3]]
        if found.s and max(found.s) > DEADLINE_S:
            wrong.append(f"an honest peer of {who} waited {max(found.s):.1f} s")
    if wrong:
        slow = [line for line in site.audit.read_text().splitlines() if 'id="honest-' in line][-3:]
        wrong += [f"mdsd's audit: {line}" for line in slow]
        wrong.append(f"mdsd's log: {site.log('mdsd')[-1500:]}")
    shown = "  ".join(_shown(who, found) for who, found in waits.items())
    print(
        f"{name:<15} {number:>9} {took_s:7.0f} s  RSS {before >> 20:4} {warm >> 20:4} {after >> 20:4} MiB  {shown}  "
        f"{'FAILED' if wrong else 'ok'}",
        flush=True,
    )
    return wrong


def _once_read(site: Attacked, daemon: str, most_bytes: float) -> int:
    """Memory once what was sent has been read, but not later than after `READING_S`."""
    ends_at = time.monotonic() + READING_S
    while True:
        time.sleep(1.0)
        found = site.rss_bytes(daemon)
        if found <= most_bytes or time.monotonic() > ends_at:
            return found


def _shown(who: str, found: Waits) -> str:
    return (
        f"{who} p50 {found.at(0.5) * 1e3:.0f} p99 {found.at(0.99) * 1e3:.0f} max {found.at(1.0) * 1e3:.0f} ms"
    )


def _send(target: Target, site: Attacked, number: int, seed: int) -> None:
    process = multiprocessing.get_context("spawn").Process(
        target=target.attack, args=(target.address(site), str(site.keys), number, seed)
    )
    process.start()
    process.join()
    if process.exitcode != 0:
        raise SystemExit(f"hostile: the attacker failed with {process.exitcode}")


def files(name: str, number: int, seed: int) -> list[str]:
    """Malformed files; what went wrong. Prints a line."""
    module = importlib.import_module(f"tests.hostile.{FILES[name]}")
    begin = time.monotonic()
    try:
        found = getattr(module, f"mutate_{FILES[name]}")(number, seed)
    except Exception as error:
        print(f"{name:<15} {number:>9}  FAILED", flush=True)
        return [f"{name}: {type(error).__name__}: {error}"]
    print(f"{name:<15} {number:>9} {time.monotonic() - begin:7.0f} s  {found}  ok", flush=True)
    return []


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__)
    parser.add_argument(
        "--messages", type=int, default=MESSAGES, help="to each socket (default: %(default)s)"
    )
    parser.add_argument(
        "--only", choices=[*TARGETS, *FILES], action="append", help="this one; may be repeated"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    # What is refused is said in a line each.
    logger = logging.getLogger("tarazu")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        return _run(options)
    finally:
        logger.setLevel(level)


def _run(options: argparse.Namespace) -> int:
    # Told to end, it ends the daemons that it started, as with ^C.
    with contextlib.suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, _interrupt)
    chosen = options.only or [*TARGETS, *FILES]
    wrong: list[str] = []
    if sockets := [name for name in chosen if name in TARGETS]:
        with tempfile.TemporaryDirectory() as directory:
            site = Attacked(Path(directory))
            try:
                for name in sockets:
                    wrong += attack(site, name, options.messages, options.seed)
            finally:
                site.stop()
    for name in chosen:
        if name in FILES:
            wrong += files(name, max(1, int(options.messages * FILES_SHARE)), options.seed)
    for text in wrong:
        print(f"hostile: {text}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
