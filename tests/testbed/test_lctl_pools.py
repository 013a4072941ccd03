"""The stand-in for lctl pool_*: what Lustre's own answered, and what follows from it."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from tarazu.sim.testbed import Testbed

CAPTURED = Path(__file__).parents[1] / "data" / "lustre" / "control" / "pools.txt"


def lctl(bed: Testbed, *words: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | bed.node_environment("mds")
    return subprocess.run(
        ["lctl", *words], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )  # fmt: skip


@pytest.fixture
def pool_bed(bed: Testbed) -> Testbed:
    for name, osts in bed.pools.items():
        if name != "flash":
            if osts:
                lctl(bed, "pool_remove", f"lustre.{name}", *(f"OST{i:04x}" for i in osts))
            lctl(bed, "pool_destroy", f"lustre.{name}")
    return bed


def test_answers_are_those_that_were_captured(pool_bed: Testbed) -> None:
    said = []
    for command in re.findall(r"(?m)^# lctl (.*)$", CAPTURED.read_text()):
        done = lctl(pool_bed, *command.split())
        said.append(f"# lctl {command}\n{done.stdout}# rc {done.returncode}\n")
    # The captured file system had no other pool.
    assert "".join(said).replace("lustre.flash\n", "") == CAPTURED.read_text()


def test_errors_are_those_of_the_mgs(pool_bed: Testbed) -> None:
    for words, status, text in [
        (("pool_add", "lustre.none", "OST0001"), 123, "lctl pool_add: pool lustre.none not found"),
        (("pool_new", "lustre.flash"), 17, "lctl pool_new: pool lustre.flash already exists"),
        (("pool_add", "lustre.flash", "OST0001"), 17, "OST0001_UUID is already in pool lustre.flash"),
        (("pool_remove", "lustre.flash", "OST0007"), 2, "OST0007_UUID not found in pool lustre.flash"),
        (("pool_add", "lustre.flash", "OST0099"), 19, "OST0099_UUID is not part of the 'lustre' fs."),
        (("pool_destroy", "lustre.flash"), 39, "not empty, please remove all members"),
        (("pool_add", "lustre.flash", "OSTx"), 22, "Wrong format for OST list"),
    ]:
        done = lctl(pool_bed, *words)
        assert (done.returncode, text in done.stdout) == (status, True), done.stdout


def test_a_directorys_pool_is_followed_and_an_empty_one_refuses_nothing(pool_bed: Testbed) -> None:
    def created(count: int) -> set[int]:
        done = pool_bed.exec(0, ["sh", "-c", f"cd {mount}/d; for i in $(seq {count}); do : > f$i; done"])
        assert done.returncode == 0
        found = {i for n in range(1, count + 1) for i in pool_bed.layout(f"d/f{n}").osts[0]}
        pool_bed.exec(0, ["sh", "-c", f"rm {mount}/d/*"])
        return found

    mount = pool_bed.client_mount()
    lctl(pool_bed, "pool_new", "lustre.good")
    lctl(pool_bed, "pool_add", "lustre.good", "OST[2-4]")
    (mount / "d").mkdir()
    assert pool_bed.exec(0, ["lfs", "setstripe", "-p", "good", mount / "d"]).returncode == 0
    assert created(6) == {2, 3, 4}
    lctl(pool_bed, "pool_remove", "lustre.good", "OST0003")
    assert created(6) == {2, 4}
    lctl(pool_bed, "pool_remove", "lustre.good", "OST[2,4]")
    assert created(8) == set(range(8))
    assert pool_bed.pools["good"] == []


def test_a_call_takes_as_long_as_is_said(pool_bed: Testbed) -> None:
    pool_bed.set_pool_delay(0.2)
    started = time.monotonic()
    lctl(pool_bed, "pool_new", "lustre.good")
    pool_bed.set_pool_delay(0.0)
    assert time.monotonic() - started >= 0.2
