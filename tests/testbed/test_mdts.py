"""Directories on several MDTs, beside what a real Lustre with two of them answered (control/dne.txt) and the rules of
its source.
"""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tarazu.cli import main
from tarazu.errors import BadInput
from tarazu.sim.testbed import Testbed, down, lctl, up
from tarazu.sim.testbed.library import library_directory
from tarazu.sim.testbed.usage import metadata_done, metadata_time

CAPTURED = (Path(__file__).parents[1] / "data" / "lustre" / "control" / "dne.txt").read_text()
ROOT = os.geteuid() == 0
USER: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []} if ROOT else {}


def sh(bed: Testbed, command: str, client: int = 0, **options: Any) -> tuple[str, int]:
    """What a command prints, on either stream, and its exit status."""
    done = bed.exec(
        client,
        ["sh", "-c", command],
        cwd=bed.client_mount(client),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **options,
    )
    return done.stdout, done.returncode


def on_mds(bed: Testbed, *words: str) -> str:
    environment = os.environ | bed.node_environment("mds")
    return subprocess.run(
        ["lctl", *words], env=environment, check=True, capture_output=True, text=True
    ).stdout


def made(bed: Testbed, *names: str, client: int = 0) -> list[int]:
    """The MDTs on which directories of these names come to lie."""
    assert sh(bed, "mkdir " + " ".join(names), client) == ("", 0)
    return [bed.mdt(name) for name in names]


@pytest.fixture(scope="module")
def shared(memory_directory: Path) -> Iterator[Testbed]:
    bed = up(memory_directory / "mdts", osss=1, osts_per_oss=2, clients=2, mdts=4, interval_s=60)
    yield bed
    down(bed.directory)


@pytest.fixture
def bed(shared: Testbed) -> Iterator[Testbed]:
    """4 MDTs, empty; all as fast and as full."""
    for number in (1, 2):
        shared.mds.set_mdt("rr_index", 1, number)
    yield shared
    shared.clear()
    (shared.directory / "mds" / "lmv" / str(shared.mount.stat().st_ino)).unlink(missing_ok=True)
    shared.set_mdt_wait(0)
    for index in range(4):
        shared.set_mdt(index, slower=1, filled=0, inodes_used=0, away=False, inactive=False, no_create=False)
    on_mds(shared, "set_param", "mdt.*.enable_remote_dir_gid=0", "mdt.*.enable_remote_dir=1")


def commands() -> list[tuple[str, str, int]]:
    """Those of the capture's first session, an ordinary user's: command, answer, exit status."""
    text = CAPTURED[CAPTURED.index("# lfs mkdir -i 1 u1") : CAPTURED.index("0 0 0 0 0 0")]
    found = re.findall(r"^# ((?!rc ).*)\n((?:(?!# ).*\n)*)# rc (\d+)$", text, re.MULTILINE)
    return [(command, answer, int(status)) for command, answer, status in found]


def test_an_ordinary_user_gets_the_captured_answers(bed: Testbed) -> None:
    assert len(commands()) == 10
    for index in (1, 2, 3):  # the second one had been there for 17 s only: no directory was placed there yet
        bed.set_mdt(index, no_create=True)
    sh(bed, "mkdir dne; chmod 777 dne")
    for command, answer, status in commands():
        if "plain/a" in command:
            sh(bed, "mkdir dne/plain/a dne/plain/b dne/rr", **USER)
        assert sh(bed, f"cd dne; {command}", **USER) == (answer, status), command


def test_root_says_where_a_directory_lies(bed: Testbed) -> None:
    assert sh(bed, "lfs mkdir -i 1 r1; lfs getdirstripe -m r1") == ("1\n", 0)
    assert sh(bed, "lfs mkdir -i 1 r1") == (
        "lfs mkdir: dirstripe error on 'r1': stripe already set\n"
        "lfs setdirstripe: cannot create dir 'r1': File exists\n",
        errno.EEXIST,
    )
    assert sh(bed, "lfs mkdir -i 4 r2")[1] == errno.ENODEV
    assert not (bed.mount / "r2").exists()


def test_mdts_are_listed_as_captured(bed: Testbed) -> None:
    bed.refresh()
    lines = sh(bed, "lfs mdts; lfs df; lfs df -i")[0].splitlines()
    captured = CAPTURED.splitlines()
    assert lines[:3] == captured[captured.index("MDTS:") :][:3]
    form = re.compile(r"lustre-MDT0001_UUID +\d+ +\d+ +\d+ +\d+%  \S+\[MDT:1\] $")
    assert len([line for line in lines if form.match(line)]) == 2
    assert [len(line.split("/")[0]) for line in lines if form.match(line)] == [
        len(captured[6].split("/")[0])
    ] * 2
    shown = on_mds(bed, "get_param", "mdt.*.enable_remote_dir", "mdt.*.enable_remote_dir_gid").splitlines()
    assert {*captured[captured.index("mdt.lustre-MDT0000.enable_remote_dir=1") :][:4]} <= {*shown}
    parameters = re.sub(r"clilmv-\w+", "", sh(bed, "lctl get_param lmv.*.qos_*")[0])
    at = CAPTURED.index("lmv.lustre-clilmv-ffff88810f466800.qos_maxage")
    assert parameters == re.sub(r"clilmv-\w+", "", CAPTURED[at : CAPTURED.index("# rc 0", at)])


def test_near_the_root_directories_go_round_and_below_they_stay(bed: Testbed) -> None:
    assert made(bed, "a", "b", "c", "d", "e") == [1, 2, 3, 0, 1]
    assert made(bed, "a/1", "a/2", "a/3") == [2, 3, 0]
    assert made(bed, "a/1/1", "a/1/2") == [1, 2]
    assert made(bed, "a/1/1/1", "a/1/1/2") == [1, 1]
    assert sh(bed, "lfs getdirstripe -D a a/1 a/1/1")[0].split("\n")[:3] == [
        f"lmv_stripe_count: 1 lmv_stripe_offset: -1 lmv_hash_type: none lmv_max_inherit: -1 lmv_max_inherit_rr: {n}"
        for n in (2, 1, 0)
    ]


def test_each_client_goes_round_by_itself(bed: Testbed) -> None:
    assert made(bed, "a", "b") == [1, 2]
    assert made(bed, "c", client=1) == [1]


def test_excluded_names_stay_with_their_parent(bed: Testbed) -> None:
    assert made(bed, "_temporary", "_temporary.1", "other") == [0, 0, 1]
    sh(bed, "lctl set_param lmv.*.qos_exclude_prefixes=+scratch")
    try:
        assert made(bed, "scratch", "scratch.x", "scratched") == [0, 0, 2]
    finally:
        sh(bed, "lctl set_param lmv.*.qos_exclude_prefixes=-scratch")


def test_excluded_names_are_set_as_in_the_kernel() -> None:
    assert lctl.excluded(["a"], "+b:-a", False) == ["b"]
    assert lctl.excluded(["a"], "c:d", False) == ["c", "d"]
    assert lctl.excluded(["a"], "+b", True) == ["a", "b", "b.*"]
    with pytest.raises(lctl.No):
        lctl.excluded([], "x" * 256, False)


def test_where_space_differs_the_emptier_get_more(bed: Testbed) -> None:
    """By weight: free space times free inodes; MDT 0 is 70 % full, so an even choice of four gives it 25 %."""
    bed.set_mdt(0, filled=0.7)
    lie = Counter(made(bed, *(f"d{i}" for i in range(200))))
    assert 0 < lie[0] < 35
    assert min(lie[mdt] for mdt in (1, 2, 3)) > 35


def test_deep_down_only_a_full_parent_is_left(bed: Testbed) -> None:
    sh(bed, "mkdir -p deep/1/2/3/4/5")
    parent = bed.mdt("deep/1/2/3/4/5")
    bed.set_mdt((parent + 1) % 4, filled=0.5)  # unequal: space counts, yet the parent has more than the mean
    assert {*made(bed, *(f"deep/1/2/3/4/5/d{i}" for i in range(20)))} == {parent}
    bed.set_mdt(parent, filled=0.95)
    assert len({*made(bed, *(f"deep/1/2/3/4/5/e{i}" for i in range(20)))}) > 1


def test_threshold_and_priority_are_the_clients_parameters(bed: Testbed) -> None:
    bed.set_mdt(0, filled=0.7)
    sh(bed, "lctl set_param lmv.*.qos_threshold_rr=90")
    try:
        assert made(bed, "a", "b", "c", "d") == [1, 2, 3, 0]
    finally:
        sh(bed, "lctl set_param lmv.*.qos_threshold_rr=5")


def test_no_directory_is_placed_where_none_may_be_made(bed: Testbed) -> None:
    bed.set_mdt(2, inactive=True)
    bed.set_mdt(3, no_create=True)
    assert made(bed, "a", "b", "c", "d") == [1, 0, 1, 0]
    assert sh(bed, "lfs mkdir -i 2 x")[1] == errno.ENODEV
    assert sh(bed, "lfs mkdir -i 3 y")[1] == 0
    assert bed.mdt("y") in (0, 1)


def test_a_default_is_inherited_as_deep_as_it_says(bed: Testbed) -> None:
    sh(bed, "mkdir -p p/q; lfs setdirstripe -D -i 2 -X 3 p/q")
    assert sh(bed, "lfs getdirstripe -D p/q")[0] == (
        "lmv_stripe_count: 0 lmv_stripe_offset: 2 lmv_hash_type: none lmv_max_inherit: 3 lmv_max_inherit_rr: 0\n"
    )
    sh(bed, "mkdir -p p/q/1/2/3/4")
    assert [bed.mdt(f"p/q/{path}") for path in ("1", "1/2", "1/2/3")] == [2, 2, 2]
    assert "lmv_max_inherit: 1 " in sh(bed, "lfs getdirstripe -D p/q/1/2")[0]
    assert "lmv_stripe_offset: -1 " in sh(bed, "lfs getdirstripe -D p/q/1/2/3")[0]
    sh(bed, "lfs setdirstripe -d p/q")
    assert "lmv_stripe_offset: -1 " in sh(bed, "lfs getdirstripe -D p/q")[0]


def test_a_directory_with_max_inherit_rr_spreads_what_is_made_below(bed: Testbed) -> None:
    sh(bed, "mkdir -p deep/1/2/3")
    stays = bed.mdt("deep/1/2/3")
    assert {*made(bed, "deep/1/2/3/a", "deep/1/2/3/b")} == {stays}
    answer = sh(bed, "lfs setdirstripe -D -i -1 -c 1 -X 3 --max-inherit-rr 1 deep/1/2/3")
    assert answer == ("", 0)
    assert sorted(made(bed, *(f"deep/1/2/3/r{i}" for i in range(4)))) == [0, 1, 2, 3]
    assert len({*made(bed, *(f"deep/1/2/3/r0/{i}" for i in range(4)))}) == 1


def test_a_striped_directory_spreads_its_names(bed: Testbed) -> None:
    sh(bed, "lfs mkdir -i 1 -c 3 striped")
    assert sh(bed, "lfs getdirstripe -c striped; lfs getdirstripe -m striped")[0] == "3\n1\n"
    before = metadata_done(bed)
    sh(bed, "cd striped; for i in $(seq 60); do : > f$i; done")
    files = [new["mknod"] - old["mknod"] for new, old in zip(metadata_done(bed), before, strict=True)]
    assert files[0] == 0
    assert sum(files) == 60
    assert min(files[1:]) > 5


def test_the_root_has_one_default_that_can_be_changed(bed: Testbed) -> None:
    sh(bed, "lfs setdirstripe -D -i 3 .")
    assert made(bed, "a", "b") == [3, 3]
    assert made(bed, "a/1") == [3]  # not inherited: as the parent


def test_each_mdt_counts_what_is_done_on_it(bed: Testbed) -> None:
    bed.refresh()
    before = [bed.mds.mdt_done(i) for i in range(4)]
    sh(
        bed,
        "lfs mkdir -i 2 d; cd d; for i in 1 2 3; do : > f$i; done; cat f1; rm f1; mv f2 f4; mkdir s; rmdir s",
    )
    done = bed.mds.mdt_done(2)
    grown = {name: value - before[2][1][name] for name, value in done[1].items()}
    directory = grown.pop("open") - 4  # of the directory, by programs that list it
    assert directory >= 0
    assert grown == {
        "close": 4,
        "mknod": 3,
        "unlink": 1,
        "mkdir": grown["mkdir"],
        "rmdir": grown["rmdir"],
        "rename": 1,
    }
    assert sum(sum(new.values()) for new in done[2:]) == sum(sum(old.values()) for old in before[2][2:])


def test_md_stats_and_the_like_are_made_of_the_counts(new_bed: Any) -> None:
    bed = new_bed(osss=1, osts_per_oss=1, clients=2, mdts=2, slow_mdts={1: 3})
    bed.set_job(1, "4711")
    sh(bed, "lfs mkdir -i 0 a; lfs mkdir -i 1 b; : > a/f", client=1)
    sh(bed, ": > b/f")
    bed.refresh()
    text = on_mds(bed, "get_param", "mdt.*.md_stats")
    means = dict(re.findall(r"^(mkdir|mknod) +\d+ samples \[usecs\] (\d+)", text, re.MULTILINE))
    assert means == {"mkdir": str(3 * 6329), "mknod": str(3 * 3935)}
    assert "mkdir                               1 samples [usecs] 6329 6329 6329 " in text
    jobs = on_mds(bed, "get_param", "mdt.*MDT0000.job_stats")
    assert re.findall("job_id: +(.*)", jobs) == ["4711"]
    assert "  mkdir:           { samples:           1, unit: usecs, min:     6329, " in jobs
    exports = on_mds(bed, "get_param", "mdt.*MDT0001.exports.*.stats")
    assert len(re.findall(r"exports\..*\.stats=", exports)) == 2
    free = on_mds(bed, "get_param", "osd-*.*MDT*.filesfree")
    assert free.splitlines() == [f"osd-ldiskfs.lustre-MDT000{i}.filesfree={(1 << 20) - 2}" for i in (0, 1)]


def test_what_it_takes_is_the_slowest_mdts_time_and_beside_it_the_bound(bed: Testbed) -> None:
    bed.set_mdt(3, slower=4)
    sh(bed, "for i in 0 1 2 3; do lfs mkdir -i $i d$i; done")
    before = metadata_done(bed)
    sh(bed, "for i in 0 1 2 3; do for j in $(seq 10); do : > d$i/$j; done; done")
    taken = metadata_time(bed, before)
    one = 10 * (3935 + 756) / 1e6
    assert taken.creates == [10] * 4
    assert taken.seconds == pytest.approx([one, one, one, 4 * one])
    assert taken.completion_s == pytest.approx(4 * one)
    assert taken.bound_s == pytest.approx(4 * one / 3.25)


def test_the_command_shows_what_mdts_did(bed: Testbed, capsys: Any) -> None:
    sh(bed, "lfs mkdir -i 3 d")
    assert main(["sim", "testbed", "usage", str(bed.directory)]) == 0
    said = capsys.readouterr().out
    assert len(re.findall(r"^  MDT [0-3] +\d+ created +[\d.]+ s$", said, re.MULTILINE)) == 4
    assert main(["sim", "testbed", "usage", "--json", str(bed.directory)]) == 0
    assert len(json.loads(capsys.readouterr().out)["metadata"]["seconds"]) == 4


def test_what_reaches_an_mdt_that_is_away_waits_for_it(bed: Testbed) -> None:
    sh(bed, "lfs mkdir -i 1 d")
    bed.set_mdt(1, away=True)
    answers: list[tuple[str, int]] = []
    calls = ["mkdir d/x", ": > d/f", "lfs mkdir -i 1 e", "rmdir d/none", "mv d/a d/b"]
    threads = [threading.Thread(target=lambda call=call: answers.append(sh(bed, call))) for call in calls]
    for thread in threads:
        thread.start()
    try:
        assert sh(bed, "lfs mkdir -i 2 there; : > there/f") == ("", 0)
        time.sleep(0.5)
        assert not answers
        bed.refresh()
        assert "MDT0001" not in on_mds(bed, "get_param", "mdt.*.enable_remote_dir")
    finally:
        bed.set_mdt(1, away=False)
    for thread in threads:
        thread.join(30)
    assert len(answers) == 5
    assert [status for _, status in answers].count(0) == 3
    assert bed.mdt("e") == 1
    assert "MDT0001" in on_mds(bed, "get_param", "mdt.*.enable_remote_dir")


def test_the_wait_can_be_bounded(bed: Testbed) -> None:
    bed.set_mdt(1, away=True)
    bed.set_mdt_wait(0.2)
    assert sh(bed, "lfs mkdir -i 1 e")[1] == errno.EIO
    assert not (bed.mount / "e").exists()


def test_of_many_that_make_one_directory_one_does(bed: Testbed) -> None:
    before = metadata_done(bed)
    race = "for i in $(seq 64); do mkdir one 2>/dev/null && echo made & done; wait"
    assert sh(bed, race) == ("made\n", 0)
    grown = [new["mkdir"] - old["mkdir"] for new, old in zip(metadata_done(bed), before, strict=True)]
    assert sum(grown) == 1
    assert grown[bed.mdt("one")] == 1


def test_a_directory_keeps_its_mdt_when_it_is_renamed(bed: Testbed) -> None:
    sh(bed, "lfs mkdir -i 2 a; mv a b; mkdir a")
    assert bed.mdt("b") == 2


def test_an_mdt_is_forgotten_with_its_directory(bed: Testbed) -> None:
    sh(bed, "mkdir -p deep/1/2/3; lfs mkdir -i 3 deep/1/2/3/a; rmdir deep/1/2/3/a")
    parent = bed.mdt("deep/1/2/3")
    assert {*made(bed, *(f"deep/1/2/3/{i}" for i in range(8)))} == {parent}


def test_what_libc_makes_and_removes_by_itself_counts_too(bed: Testbed) -> None:
    before = metadata_done(bed)
    source = (
        "import ctypes, os; libc = ctypes.CDLL(None); libc.mkdtemp.restype = ctypes.c_char_p; "
        "name = libc.mkdtemp(ctypes.create_string_buffer(b'dXXXXXX')); print(name.decode()); "
        "libc.close(libc.mkstemp(ctypes.create_string_buffer(name + b'/fXXXXXX'))); "
        "[libc.remove(name + b'/' + os.fsencode(each)) for each in os.listdir(name)]"
    )
    name, _ = sh(bed, f'{sys.executable} -c "{source}"')
    lies = bed.mdt(name.strip())
    assert lies == 1
    done = metadata_done(bed)[lies]
    grown = {each: done[each] - before[lies][each] for each in ("mkdir", "mknod", "unlink")}
    assert grown == {"mkdir": 1, "mknod": 1, "unlink": 1}


def test_a_static_program_makes_directories_by_the_same_rules(bed: Testbed) -> None:
    program = library_directory() / "testbed" / "iorlike-static"
    if not program.exists():
        pytest.skip("no static libc here")
    answer = sh(bed, f"{program} -F -n 1 -t 64k -b 64k -o out/deeper/f")
    assert answer[1] == 0, answer[0]
    assert [bed.mdt("out"), bed.mdt("out/deeper")] == [1, 2]


def test_one_mdt_keeps_nothing(new_bed: Any) -> None:
    bed = new_bed(osss=1, osts_per_oss=1)
    sh(bed, "mkdir -p a/b; : > a/f; lfs mkdir -i 0 c")
    assert bed.mdt("a/b") == 0
    assert sh(bed, "lfs mkdir -i 1 d")[1] == errno.ENODEV


def test_what_makes_no_sense_is_refused(bed: Testbed, tmp_path: Path) -> None:
    for options in ({"mdts": 0}, {"mdts": 17}, {"mdts": 2, "slow_mdts": {2: 4}}, {"slow_mdts": {0: 0}}):
        with pytest.raises(BadInput):
            up(tmp_path / "none", **options)
    for index, changes in ((4, {}), (0, {"slow": True}), (0, {"filled": 2.0}), (0, {"slower": 0.0})):
        with pytest.raises(BadInput):
            bed.set_mdt(index, **changes)
