"""Settings that are right one by one and cannot work together. A daemon starts with them; `tarazu config check` and
`tarazu doctor` name them.
"""

from __future__ import annotations

from collections.abc import Iterator

from tarazu.config.check import addresses
from tarazu.config.reading import Examined
from tarazu.config.sections import Settings
from tarazu.errors import ConfigError


def impossible(found: Examined) -> list[ConfigError]:
    """What was expected of each such pair, what was found, and where it stands."""
    return [
        ConfigError(f"{found.where(*names)}{_among(found, names)}", expected, value)
        for names, expected, value in _pairs(found.settings)
    ]


def _among(found: Examined, names: tuple[str, ...]) -> str:
    """Of which settings it is, where the place names only one of them or none."""
    return f" ({', '.join(names)})" if any(name in found.origins for name in names) else ""


def _pairs(s: Settings) -> Iterator[tuple[tuple[str, ...], str, object]]:
    yield from _addresses(s)
    if s.mdsd.stale_after_s < 2 * s.ossd.interval_s:
        expected = f"at least two intervals of reports ({2 * s.ossd.interval_s:g} s), else OSTs come and go"
        yield ("mdsd.stale_after_s", "ossd.interval_s"), expected, s.mdsd.stale_after_s
    if s.mdsd.user_share == 0 or s.mdsd.cpu_limit == 0 or s.mdsd.memory_limit == 0:
        name = next(n for n in ("user_share", "cpu_limit", "memory_limit") if getattr(s.mdsd, n) == 0)
        yield (f"mdsd.{name}",), "more than 0: with it no request is ever answered with OSTs", 0.0
    if s.clientd.password_file and "://" not in s.clientd.database:
        expected = "a database such as mysql://user@host/name where there is a password"
        yield ("clientd.password_file", "clientd.database"), expected, s.clientd.database


def _addresses(s: Settings) -> Iterator[tuple[tuple[str, ...], str, object]]:
    listening = [
        *(("mdsd.statistics", address) for address in addresses(s.mdsd.statistics)),
        *(("mdsd.requests", address) for address in addresses(s.mdsd.requests)),
    ]
    owner: dict[str, str] = {}
    for name, address in listening:
        if address and owner.setdefault(address, name) != name:
            yield (name, owner[address]), f"another address than that of {owner[address]}", address
