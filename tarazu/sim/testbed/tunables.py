"""What can be set on a testbed's nodes by the stand-in for lctl: NRS of OSSs, tunables of clients,
what users may do on MDTs.

Written once, when a testbed is made, with the values with which Lustre starts; from then on whoever sets them has them.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from tarazu.sim.testbed import lctl
from tarazu.sim.testbed.roots import target_name

OSC = {"max_rpcs_in_flight": 8, "max_pages_per_rpc": 1024, "max_dirty_mb": 490}
LLITE = {
    "max_read_ahead_mb": 256,
    "hybrid_io": 1,
    "hybrid_io_read_threshold_bytes": 8 << 20,
    "hybrid_io_write_threshold_bytes": 2 << 20,
}
LMV = {"qos_maxage": "60", "qos_prio_free": "90%", "qos_threshold_rr": "5%"}
LMV_DEBUG = {"qos_exclude_patterns": "_temporary\n_temporary.*", "qos_exclude_prefixes": "_temporary"}
MDT = {"enable_remote_dir": 1, "enable_remote_dir_gid": 0, "enable_striped_dir": 1, "enable_dir_migration": 1}
MEMORY_KB = 4_012_968
"""Of such a client: an eighth of it are 490 MiB, rounded up."""


def instance(number: int) -> str:
    """llite's id of the mount of client `number`, from 0."""
    return f"{0xFF << 56 | number + 1:016x}"


def make_oss(root: Path) -> None:
    """NRS with FIFO in force. Of a server that has been up before: as after its boot."""
    io = root / lctl.IO
    if io.is_dir():
        # The new one is another directory, as in debugfs, while the old one has its place.
        gone = root / "nrs" / f"{io.name}.gone"
        shutil.rmtree(gone, ignore_errors=True)
        gone.parent.mkdir(exist_ok=True)
        io.rename(gone)
        (root / "nrs" / "state").unlink(missing_ok=True)
        (root / "nrs" / "draining").unlink(missing_ok=True)
        io.mkdir(parents=True, exist_ok=True)  # the servers may have written there again meanwhile
        for each in gone.iterdir():
            if not each.name.startswith("nrs_"):
                shutil.copy2(each, io / each.name)
    io.mkdir(parents=True, exist_ok=True)
    lctl.Nrs(str(root)).save()


def make_client(root: Path, fs_name: str, number: int, osts: int) -> None:
    mount = instance(number)
    parameters = root / "sys" / "fs" / "lustre"
    devices: tuple[tuple[str, Mapping[str, object]], ...] = (
        *((f"osc/{target_name(fs_name, i)}-osc-{mount}", OSC) for i in range(osts)),
        (f"llite/{fs_name}-{mount}", LLITE),
        (f"lmv/{fs_name}-clilmv-{mount}", LMV),
    )
    for device, values in devices:
        (parameters / device).mkdir(parents=True, exist_ok=True)
        for name, value in values.items():
            (parameters / device / name).write_text(f"{value}\n")
    lmv = root / "sys" / "kernel" / "debug" / "lustre" / "lmv" / f"{fs_name}-clilmv-{mount}"
    lmv.mkdir(parents=True, exist_ok=True)
    for name, value in LMV_DEBUG.items():
        (lmv / name).write_text(f"{value}\n")
    memory = root / "proc" / "meminfo"
    if not memory.exists():
        memory.parent.mkdir(parents=True, exist_ok=True)
        memory.write_text(f"MemTotal:        {MEMORY_KB} kB\n")


def make_mdt(root: Path, fs_name: str, index: int) -> None:
    """Who may say on which MDT directories lie."""
    directory = root / "sys" / "fs" / "lustre" / "mdt" / f"{fs_name}-MDT{index:04x}"
    directory.mkdir(parents=True, exist_ok=True)
    for name, value in MDT.items():
        (directory / name).write_text(f"{value}\n")


def parameter(root: Path, name: str) -> str:
    """What is in force of `ost.OSS.ost_io.nrs_policies`, as a file below `root` has it. Raises OSError."""
    files = lctl.find(str(root), name.replace(".", "/"))
    return (root / files[0]).read_text() if files else ""
