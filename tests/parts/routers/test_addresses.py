"""Which NIDs the hosts of a step have."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

import pytest

from tarazu.errors import TarazuError
from tarazu.parts.routers import addresses
from tarazu.run.nodes import hosts

HERE = os.uname().nodename


def nis(root: Path, *own: str) -> Path:
    directory = root / "sys" / "kernel" / "debug" / "lnet"
    directory.mkdir(parents=True)
    lines = [
        "nid                      status alive refs peer  rtr   max    tx   min",
        "0@lo  up 0 2 0 0 0 0 0",
    ]
    lines += [f"{nid} up -1 1 8 0 256 256 219" for nid in own]
    (directory / "nis").write_text("\n".join(lines) + "\n")
    return root


def test_by_a_file_of_folded_lines(tmp_path: Path) -> None:
    file = tmp_path / "nids"
    file.write_text(
        "# rack 1\nn[001-100] 10.77.0.[31-130]@tcp1, 10.78.0.[31-130]@o2ib\nlogin1 10.77.0.2@tcp1\n"
    )
    assert addresses.folded(["n[001-002,100]"], str(file)) == (
        "10.78.0.[31-32,130]@o2ib, 10.77.0.[31-32,130]@tcp1"
    )
    assert (
        addresses.folded(["login1.site.org", "n003"], str(file)) == "10.78.0.33@o2ib, 10.77.0.[2-33/31]@tcp1"
    )
    with pytest.raises(TarazuError, match="expected a line of host n101, found 'none, of 2 of 3 hosts'"):
        addresses.folded(["n[100-102]"], str(file))
    file.write_text("n[1-3] 10.77.0.[31-32]@tcp1\n")
    with pytest.raises(TarazuError, match=re.escape(f"{file}:1: expected 3 NIDs, one for each host")):
        addresses.folded(["n1"], str(file))
    file.write_text("n1 *.*.*.*@tcp1\n")  # a slip of the pen, which would fill the memory
    with pytest.raises(TarazuError, match="at most 400000 NIDs"):
        addresses.folded(["n1"], str(file))


def test_by_names_on_a_net() -> None:
    address = socket.gethostbyname(HERE)
    assert addresses.folded([HERE, "localhost", "127.0.0.9"], "@tcp1").startswith("127.0.0.")
    assert addresses.folded([HERE], "@o2ib2") == f"{address}@o2ib2"
    with pytest.raises(TarazuError, match=r"expected an address of host no-such\.invalid"):
        addresses.folded([HERE, "no-such.invalid"], "@tcp1")


def test_by_this_nodes_own_net_where_names_are_addresses_there(tmp_path: Path) -> None:
    address = socket.gethostbyname(HERE)
    good = nis(tmp_path / "good", "10.1.1.1@o2ib", f"{address}@tcp3")
    assert addresses.folded(["localhost", "10.9.9.9"], "", str(good)).endswith("@tcp3")
    strange = nis(tmp_path / "strange", "10.1.1.1@o2ib")
    with pytest.raises(TarazuError, match=r"among its NIDs, found 10\.1\.1\.1@o2ib: names say no NIDs"):
        addresses.folded(["localhost"], "", str(strange))
    with pytest.raises(TarazuError, match="found none that can be read"):
        addresses.folded(["localhost"], "", str(tmp_path / "none"))


def test_the_hosts_of_a_step_without_starting_anything(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("a slots=4\nb\nb\n")
    slurm = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[1-3]"}
    assert hosts.hosts(["srun", "./app"], slurm) == ("n[1-3]",)
    assert hosts.hosts(["mpirun", "--host", "c:2,d", "./app"], {"PBS_NODEFILE": str(file)}) == ("c", "d")
    assert hosts.hosts(["mpirun", "./app"], {"PBS_NODEFILE": str(file)}) == ("a", "b")
    assert hosts.hosts(["./app"], {}) == (socket.gethostname(),)
