"""What a process has taken so far."""

from __future__ import annotations

import os
from pathlib import Path


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
