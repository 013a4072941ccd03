"""Hosts as network namespaces, and a cable of its own between any two of them that talk: each can be cut alone."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterable

CLONE_NEWNET = 0x40000000


def why_not() -> str:
    """Why there can be no namespaces here; empty where there can."""
    if os.geteuid() != 0:
        return "only root can make network namespaces"
    if not shutil.which("ip") or not shutil.which("nsenter"):
        return "ip or nsenter is missing (Debian: iproute2, util-linux)"
    probe = f"tz{os.getpid()}-probe"
    done = _try("ip", "netns", "add", probe)
    _try("ip", "netns", "del", probe)
    return "" if not done.returncode else f"ip netns: {done.stderr.strip()}"


def _try(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False)


class Network:
    def __init__(self, hosts: Iterable[str], pairs: Iterable[tuple[str, str]]) -> None:
        self._tag = f"tz{os.getpid()}"
        self.addresses = {host: f"10.213.7.{number}" for number, host in enumerate(hosts, 1)}
        self._cables: dict[frozenset[str], tuple[tuple[str, str], tuple[str, str]]] = {}
        self.cut_now: set[frozenset[str]] = set()
        try:
            for host in self.addresses:
                self._ip("netns", "add", self._space(host))
                self._ip("-n", self._space(host), "link", "set", "lo", "up")
            for number, (one, other) in enumerate(pairs):
                self._lay(number, one, other)
        except BaseException:
            self.close()
            raise

    def _lay(self, number: int, one: str, other: str) -> None:
        ends = (one, f"a{number}"), (other, f"b{number}")
        (_, first), (_, second) = ends
        here, there = self._space(one), self._space(other)
        self._ip("link", "add", first, "netns", here, "type", "veth", "peer", "name", second, "netns", there)
        for (host, device), peer in zip(ends, (other, one)):
            own, far = self.addresses[host], self.addresses[peer]
            self._ip("-n", self._space(host), "addr", "add", f"{own}/32", "peer", f"{far}/32", "dev", device)
            self._ip("-n", self._space(host), "link", "set", device, "up")
        self._cables[frozenset((one, other))] = ends

    def _space(self, host: str) -> str:
        return f"{self._tag}-{host}"

    def _ip(self, *words: str) -> None:
        done = _try("ip", *words)
        if done.returncode:
            raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")

    def prefix(self, host: str) -> list[str]:
        """What stands before the command of a process on that host."""
        return ["nsenter", f"--net=/run/netns/{self._space(host)}", "--"]

    def enter(self, host: str) -> None:
        """The calling thread, and all threads and processes that it starts, are on that host from now on."""
        with open(f"/run/netns/{self._space(host)}") as space:
            libc = ctypes.CDLL(None, use_errno=True)
            if libc.setns(space.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")

    def cut(self, one: str, other: str, end: int = 0) -> None:
        """Take the cable out at one of its ends: there the network is gone, at the other one all is silent."""
        host, device = self._cables[frozenset((one, other))][end]
        self._ip("-n", self._space(host), "link", "set", device, "down")
        self.cut_now.add(frozenset((one, other)))

    def heal(self, one: str, other: str) -> None:
        for host, device in self._cables[frozenset((one, other))]:
            self._ip("-n", self._space(host), "link", "set", device, "up")
        self.cut_now.discard(frozenset((one, other)))

    def close(self) -> None:
        for host in self.addresses:
            _try("ip", "netns", "del", self._space(host))
