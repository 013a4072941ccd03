"""Which hosts a job step has: what its launcher was told, else what the batch system's environment says."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence

from tarazu.batch import environment
from tarazu.run.command_line import launchers
from tarazu.run.command_line.launchers import Option

HOST_LISTS = frozenset("H host hosts".split())
HOST_FILES = frozenset("hostfile machinefile f machine default-hostfile".split())
RANK_FILES = frozenset("rf rankfile".split())
_BATCH_HOST_FILES = ("PBS_NODEFILE", "LSB_DJOB_HOSTFILE")
_OTHER_HOST_FILES = ("HYDRA_HOST_FILE", "OMPI_MCA_orte_default_hostfile", "PE_HOSTFILE")
"""Files that their launcher finds by itself."""


def any_elsewhere(argv: Sequence[str], environ: Mapping[str, str]) -> bool:
    """Does anything say that the step has other nodes than this?"""
    if environment.slurm_nodes(environ)[0] > 1:
        return True
    return bool(elsewhere(hosts(argv, environ)))


def hosts(argv: Sequence[str], environ: Mapping[str, str]) -> tuple[str, ...]:
    """The hosts of the step that `argv` is, as the launcher or the batch system names them, maybe folded; this one
    where neither names any. Starts nothing.
    """
    if names := environment.slurm_nodes(environ)[1]:
        return (names,)
    line = launchers.parse(argv)
    named = named_hosts([option for part in line.host_options for option in part])
    return named or batch_hosts(environ)[0] or (os.uname().nodename,)


def named_hosts(options: Iterable[Option]) -> tuple[str, ...]:
    """Hosts that a launcher's host options name, each once."""
    hosts: list[str] = []
    for option in options:
        if option.name in HOST_LISTS:
            hosts += [_bare(host) for host in option.value.split(",") if host]
        elif option.name in HOST_FILES:
            hosts += hosts_of_file(option.value)
        elif option.name in RANK_FILES:
            hosts += _hosts_of_rank_file(option.value)
    return tuple(dict.fromkeys(hosts))


def batch_hosts(environ: Mapping[str, str]) -> tuple[tuple[str, ...], str]:
    """Hosts that the environment names, and the file to hand over to a launcher that may not know of it."""
    for name in (*_BATCH_HOST_FILES, *_OTHER_HOST_FILES):
        hosts = hosts_of_file(environ.get(name, ""))
        if elsewhere(hosts):
            return hosts, environ[name] if name in _BATCH_HOST_FILES else ""
    return (), ""


def hosts_of_file(path: str) -> tuple[str, ...]:
    """Hosts of a host file, each once."""
    return tuple(dict.fromkeys(_bare(host) for host in environment.hosts_in_file(path))) if path else ()


def _hosts_of_rank_file(path: str) -> list[str]:
    """Lines of `rank 0=host slot=1`; `+n0` counts in a list of hosts that is elsewhere."""
    text = environment.small_text(path)
    return [_bare(host) for host in re.findall(r"^\s*rank\s+\d+\s*=\s*([^\s+]\S*)", text, re.MULTILINE)]


def _bare(host: str) -> str:
    return re.sub(r":[\d*]+$", "", host.rpartition("@")[2])


def elsewhere(hosts: Sequence[str]) -> list[str]:
    """Those that are other nodes than this."""
    here = {"localhost", "127.0.0.1", "::1", os.uname().nodename.partition(".")[0]}
    return [host for host in hosts if host not in here and host.partition(".")[0] not in here]
