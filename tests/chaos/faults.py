"""What is done to a site: each fault is made, lasts a while under load, and is mended."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.chaos.site import Site

FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
OFFSET = ("unshare", "--time", "--monotonic", "{offset}", "--boottime", "{offset}", "--")
"""A time namespace: the clocks of what is started in it count from elsewhere."""


class Fault(NamedTuple):
    make: Callable[[Site, random.Random], None]
    needs: tuple[str, ...] = ()
    """Where `Site.without` names one of these, it cannot be made."""


def kill(site: Site, chance: random.Random, name: str) -> bool:
    """SIGKILL, and started again as systemd does; False when it was not there."""
    killed = site.kill(name)
    time.sleep(chance.choice((0.0, 0.1, chance.uniform(0.0, 1.0))))
    site.start(name)
    return killed


def _cut(
    site: Site, chance: random.Random, cables: Sequence[tuple[str, str]], longest_s: float = 4.0
) -> None:
    assert site.network
    end = chance.randrange(2)
    for one, other in cables:
        site.network.cut(one, other, end)
    try:
        time.sleep(chance.uniform(1.0, longest_s))
    finally:
        for one, other in cables:
            site.network.heal(one, other)


def cut_clients(site: Site, chance: random.Random) -> None:
    _cut(site, chance, [("client", mds) for mds in site.mdss])


def cut_servers(site: Site, chance: random.Random) -> None:
    """Sometimes for so long that their OSTs are no longer trusted."""
    _cut(site, chance, [("oss", mds) for mds in site.mdss], 8.0)


def cut_first(site: Site, chance: random.Random) -> None:
    """The host of the first mdsd is off the network: clients go on to the second."""
    _cut(site, chance, [("client", "mds1"), ("oss", "mds1")], 8.0)


def cut_first_from_clients(site: Site, chance: random.Random) -> None:
    """Clients reach the second mdsd only, while the first one is well and knows what it promised."""
    _cut(site, chance, [("client", "mds1")], 8.0)


def kill_both(site: Site, chance: random.Random) -> None:
    """A power cut."""
    names = site.names("mdsd")
    for name in names:
        site.kill(name)
    time.sleep(chance.uniform(0.0, 1.0))
    for name in chance.sample(names, len(names)):
        site.start(name)
        time.sleep(chance.choice((0.0, 0.5)))


def _fill(directory: Path) -> Path:
    """As full as it gets: not a byte is left."""
    ballast = directory / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for block in (bytes(1 << 16), bytes(512), b"\0"):
            try:
                while file.write(block):
                    pass
            except OSError:
                continue
    return ballast


def full_state(site: Site, chance: random.Random) -> None:
    number = chance.randrange(len(site.states))
    _full(site, chance, site.states[number], [site.names("mdsd")[number]])


def full_database(site: Site, chance: random.Random) -> None:
    _full(site, chance, site.database, site.names("clientd"))


def _full(site: Site, chance: random.Random, directory: Path, names: list[str]) -> None:
    ballast = _fill(directory)
    try:
        time.sleep(chance.uniform(0.5, 2.0))
        if chance.random() < 0.5:
            # Killed and started again on a full disk.
            for name in names:
                site.kill(name)
                site.start(name)
            time.sleep(chance.uniform(0.5, 2.0))
    finally:
        ballast.unlink()
    site.start()


def stopped(site: Site, chance: random.Random) -> None:
    """A daemon that stands still for a while: suspended, swapping."""
    name = chance.choice(site.names(chance.choice(("mdsd", "ossd", "clientd"))))
    site.signal(name, signal.SIGSTOP)
    try:
        time.sleep(chance.uniform(1.0, 4.0))
    finally:
        site.signal(name, signal.SIGCONT)


def wall_clock(site: Site, chance: random.Random) -> None:
    """The time of day jumps while a daemon runs, an hour or a year, forward and back."""
    name = chance.choice(site.names(chance.choice(("mdsd", "ossd", "clientd"))))
    jumps = site.directory / "jumps"
    jumps.write_text("+0\n")
    env = {
        **site.daemons[name].env,
        "LD_PRELOAD": str(FAKETIME),
        "FAKETIME_TIMESTAMP_FILE": str(jumps),
        "FAKETIME_NO_CACHE": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }
    site.kill(name)
    site.start(name, env=env)
    for _ in range(3):
        time.sleep(chance.uniform(0.7, 1.5))
        new = jumps.with_suffix(".new")
        new.write_text(f"{chance.choice((3600, -3600, 366 * 86_400, -366 * 86_400, 30, -30)):+d}\n")
        new.rename(jumps)
    time.sleep(chance.uniform(0.5, 1.0))
    kill(site, chance, name)


def monotonic_clock(site: Site, chance: random.Random) -> None:
    """A daemon comes back to clocks that count from elsewhere, as after a reboot, and once more."""
    name = chance.choice(site.names(chance.choice(("mdsd", "ossd", "clientd"))))
    offset = chance.choice((3000, -3000, 500, -20))
    site.kill(name)
    site.start(
        name, before=["unshare", "--time", "--monotonic", str(offset), "--boottime", str(offset), "--"]
    )
    time.sleep(chance.uniform(1.5, 2.5))
    kill(site, chance, name)


def without() -> dict[str, str]:
    """What faults need and is not here → why."""
    found = {}
    if FAKETIME is None:
        found["wall clocks"] = "libfaketime is missing (Debian: libfaketime)"
    try:
        command = [*(word.format(offset=1) for word in OFFSET), "true"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            found["monotonic clocks"] = f"no time namespaces: {done.stderr.strip()}"
    except OSError as error:
        found["monotonic clocks"] = f"no time namespaces: {error}"
    return found


FAULTS = {
    "clients cut off": Fault(cut_clients, ("partitions",)),
    "servers cut off": Fault(cut_servers, ("partitions",)),
    "first mdsd cut off from clients": Fault(cut_first_from_clients, ("partitions", "a second mdsd")),
    "first mdsd cut off from all": Fault(cut_first, ("partitions", "a second mdsd")),
    "both mdsds killed": Fault(kill_both, ("a second mdsd",)),
    "disk full under mdsd": Fault(full_state, ("full disks",)),
    "disk full under the database": Fault(full_database, ("full disks",)),
    "standing still": Fault(stopped),
    "wall clock jumps": Fault(wall_clock, ("wall clocks",)),
    "monotonic clock jumps": Fault(monotonic_clock, ("monotonic clocks",)),
}
