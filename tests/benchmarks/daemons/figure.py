"""What a benchmark of the daemons gives: figures, some of them with the most that they may be."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple


class Figure(NamedTuple):
    what: str
    value: float
    unit: str
    most: float | None = None
    """None: a figure to know, not one to hold."""

    @property
    def holds(self) -> bool:
        return self.most is None or self.value <= self.most

    def __str__(self) -> str:
        limit = "" if self.most is None else f"   at most {self.most:g}{'' if self.holds else ': NOT HELD'}"
        return f"  {self.what:<64} {self.value:>12,.4g} {self.unit:<8}{limit}"


def cpu_s(pid: int) -> float:
    """Processor time of a process and its threads so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_bytes(pid: int, most: bool = False) -> int:
    """Resident memory of a process now, or the most that it ever had."""
    name = "VmHWM:" if most else "VmRSS:"
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise ValueError(f"/proc/{pid}/status: expected {name}, found none")
