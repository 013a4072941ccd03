"""A map directory whose files other nodes replace unseen, as on NFS: a mapped page there stays what it was.

The "NFS" is a ramfs of its own mount namespace, a type of which the library knows nothing. A copy of the
leader's directory is brought there by rename, so that nothing that was mapped ever changes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from typing import Any

import pytest

from tarazu.store.control import announce

Placed = Any
UNMANAGED, HIT, LATE = 0, 1, 2

MOUNTS = ["unshare", "--mount", "sh", "-c", 'mount -t ramfs none "$0" && exec "$@"']

pytestmark = pytest.mark.skipif(
    subprocess.run([*MOUNTS, "/mnt", "true"], capture_output=True, check=False).returncode != 0,
    reason="needs the right to mount",
)

NODE = """
import os, shutil, sys, time
from tarazu.store.control import announce, stop
leader, here = sys.argv[1:]

def sync():
    for name in os.listdir(leader):
        shutil.copyfile(f"{leader}/{name}", f"{here}/.{name}")
        os.rename(f"{here}/.{name}", f"{here}/{name}")
    for name in set(os.listdir(here)) - set(os.listdir(leader)):
        os.unlink(f"{here}/{name}")

def make(name):
    open(name, "x").close()

sync(); make("early")
announce(leader, 1); sync(); time.sleep(0.5); make("first")
os.unlink(f"{leader}/map.1"); announce(leader, 2); sync(); make("between")
time.sleep(1.3); make("second")
stop(leader); sync(); time.sleep(1.3); make("stopped")
maps = open("/proc/self/maps").read()
print("/control" in maps, "/map." in maps)
"""


def test_a_rank_that_saw_no_plan_looks_again_and_sees_later_ones_and_the_stop(placed: Placed) -> None:
    names = ("first", "between", "second", "stopped")
    for _ in (1, 2):
        placed.map(*(placed.row(f"/{name}", (3, 1)) for name in names))
    announce(placed.map_directory, 0)
    here = placed.work / "nfs"
    here.mkdir()
    done = placed(
        [*MOUNTS, here, sys.executable, "-c", NODE, placed.map_directory, here], TARAZU_MAP=str(here)
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "False False\n")
    made = {c.key[1:]: (c.outcome, c.generation) for c in placed.creates}
    assert made.pop("between") in ((HIT, 1), (HIT, 2)), "the map that is gone is still whole here"
    assert made == {  # when stopped it is not even recorded
        "early": (LATE, 0),
        "first": (HIT, 1),
        "second": (HIT, 2),
    }


@pytest.mark.skipif(not shutil.which("strace"), reason="needs strace")
@pytest.mark.parametrize("mounted", [False, True])
def test_many_creates_cost_few_looks(placed: Placed, mounted: bool) -> None:
    """Where mappings are kept up to date one open in all; elsewhere one a second."""
    placed.map(placed.row("/none", (3, 1)))
    here = placed.map_directory
    if mounted:
        here = placed.work / "nfs"
        here.mkdir()
    fill = f"for f in {placed.map_directory}/*; do cp $f {here}; done;" if mounted else ""
    source = "import os\nfor i in range(1000): os.close(os.open(f'f{i}', os.O_CREAT | os.O_WRONLY, 0o644))"
    trace = placed.work / "trace"
    program = [
        "sh", "-c", f"{fill} exec strace -qq -e trace=openat -P {here}/control -o {trace} $0 -c \"$1\"",
        sys.executable, source,
    ]  # fmt: skip
    started = time.monotonic()
    done = placed([*MOUNTS, here, *program] if mounted else program, TARAZU_MAP=str(here))
    assert done.returncode == 0, done.stderr
    looks = trace.read_text().count("control")
    assert 1 <= looks <= (2 + time.monotonic() - started if mounted else 1)


def test_a_process_keeps_one_map_in_memory_not_each_that_it_has_seen(placed: Placed) -> None:
    """Where maps are copied every rank would have two."""
    source = """
import sys
from tarazu.store.control import announce
for n in (1, 2, 3):
    announce(sys.argv[1], n)
    open(f'f{n}', 'x').close()
    print([line.rpartition('/')[2].strip() for line in open('/proc/self/maps') if '/map.' in line])
"""
    for _ in (1, 2, 3):
        placed.map(*(placed.row(f"/f{n}", (3, 1)) for n in (1, 2, 3)))
    done = placed.python(source, str(placed.map_directory))
    assert (done.stderr, done.stdout) == ("", "['map.1']\n['map.2']\n['map.3']\n")
    assert [c.generation for c in placed.creates] == [1, 2, 3]
