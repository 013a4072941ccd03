"""`tarazu whatif` on outputs of IOR: real ones of 4.1, and written ones for what these do not have."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarazu.cli import main
from tarazu.errors import BadInput
from tarazu.parts.whatif.ior import output, results, table
from tarazu.parts.whatif.ior.lost import lost
from tarazu.parts.whatif.ior.output import Phase, Stonewall

IO500 = Path(__file__).parents[2] / "data" / "ior" / "io500"
HEADER = "access,rank,runtime-with-openclose,runtime,throughput-withopenclose,throughput\n"
ROW_3_2 = "access    bw(MiB/s)  block(KiB) xfer(KiB)  open(s)    wr/rd(s)   close(s)   total(s)   iter\n"
Capture = pytest.CaptureFixture[str]


def whatif(capsys: Capture, *words: object, status: int = 0) -> str:
    assert main(["whatif", *map(str, words)]) == status
    return capsys.readouterr().out


def phases(capsys: Capture, *words: object, status: int = 0) -> dict[str, Any]:
    """By name, of the only result."""
    (of,) = json.loads(whatif(capsys, *words, "--json", status=status))
    return {phase["phase"]: phase for phase in of["phases"]}


def ranks_csv(path: Path, *seconds: float, operation: str = "write") -> Path:
    rows = [f"{operation},{n},9.0,{s:.10e},1.0e8,{1e8 / s:.10e}\n" for n, s in enumerate(seconds)]
    path.write_text(HEADER + "".join(rows))
    return path


def text(
    *lines: str,
    command: str = "ior -w -F -D 300 -O stoneWallingWearOut=1",
    tasks: int = 4,
    version: str = "3.2.0",
) -> str:
    return "".join([
        f"IOR-{version}: MPI Coordinated Test of Parallel I/O\n", f"Command line        : {command}\n",
        "access              : file-per-process\n", f"tasks               : {tasks}\n",
        "clients per node    : 2\n", "xfersize            : 1 MiB\n", "\n", ROW_3_2, *lines,
    ])  # fmt: skip


def wall(least: int, most: int, mean_gib: float, at_s: float = 300.0) -> str:
    return (
        f"stonewalling pairs accessed min: {least} max: {most} -- min data: {least / 1024:.1f} GiB "
        f"mean data: {mean_gib:.1f} GiB time: {at_s:.1f}s\n"
    )


def test_a_folder_of_io500(capsys: Capture, tmp_path: Path) -> None:
    lines = whatif(capsys, IO500, "--picture", tmp_path / "p.svg").splitlines()
    assert lines[0] == (
        f"{IO500}: ior-easy-write lost 16.2% of its time to its slowest ranks, ior-hard-write 0.2%."
    )
    assert "at best" in lines[1] and "a limit" in lines[1]
    assert "Which OSTs" in lines[2] and "not in IOR's output" in lines[2]
    assert lines[3].startswith(
        "Of ior-easy-read nothing can be said, because the comparison of data (-R, -W)"
    )
    picture = (tmp_path / "p.svg").read_text()
    ElementTree.fromstring(picture)
    assert picture.count("<polygon") == 2


def test_what_was_lost_is_what_the_table_of_ranks_says(capsys: Capture) -> None:
    seconds = np.loadtxt(IO500 / "ior-easy-write.csv", delimiter=",", skiprows=1, usecols=3)
    of = phases(capsys, IO500)["ior-easy-write"]
    assert of["lost_share"] == pytest.approx(1 - seconds.mean() / seconds.max())
    assert of["at_most_share"] == pytest.approx(1 - seconds.min() / seconds.max())
    assert (of["ranks"], of["seen_by"]) == (4, "ranks")


def test_an_output_takes_the_table_that_its_command_names(capsys: Capture, tmp_path: Path) -> None:
    alone = phases(capsys, IO500 / "ior-easy-write.txt")["ior-easy-write"]
    assert alone["seen_by"] == "ranks"
    assert phases(capsys, IO500 / "ior-easy-write.csv")["ior-easy-write"]["lost_share"] == alone["lost_share"]
    shutil.copy(IO500 / "ior-easy-write.txt", tmp_path)
    (of,) = phases(capsys, tmp_path / "ior-easy-write.txt").values()
    assert of["seen_by"] == "deadline" and of["at_most_share"] == pytest.approx(1 - 2.1 / 3.99, abs=0.01)


def test_of_a_deadline_the_speed_of_all_together_goes_on() -> None:
    (phase,) = output.phases(text(wall(1024, 4096, 2.0), "write 100 1 1 0.1 500.0 0.1 500.2 0\n"), "x", "x")
    of = lost(phase)
    # The mean rank had half: at that speed all would have had theirs after 600 s; they took 500.
    assert of.at_most_share == pytest.approx(0.4) and of.lost_share == 0
    (phase,) = output.phases(text(wall(2048, 4096, 3.0), "write 100 1 1 0.1 500.0 0.1 500.2 0\n"), "x", "x")
    assert lost(phase).lost_share == pytest.approx(1 - 400 / 500)


def test_pairs_of_each_rank_are_finer_than_gib() -> None:
    pairs = [f"{n}: stonewalling pairs accessed: {p}\n" for n, p in enumerate((100, 150, 150, 200))]
    (phase,) = output.phases(
        text(*pairs, wall(100, 200, 0.1), "write 9 1 1 0.1 500.0 0.1 500.2 0\n"), "x", "x"
    )
    assert phase.stonewall and phase.stonewall.mean_share == pytest.approx(0.75)
    (coarse,) = output.phases(text(wall(100, 200, 0.1), "write 9 1 1 0.1 500.0 0.1 500.2 0\n"), "x", "x")
    of = lost(coarse)
    assert of.lost_share is None and of.at_most_share == pytest.approx(0.4) and "coarsely" in of.notes[0]


def test_ranks_that_all_were_done_before_the_deadline_tell_nothing() -> None:
    (phase,) = output.phases(text(wall(4096, 4096, 4.0), "write 9 1 1 0.1 330.0 0.1 331.0 0\n"), "x", "x")
    assert "all ranks had done their part" in lost(phase).why_not


@pytest.mark.parametrize("version", ["3.1.0", "3.2.0", "3.3.0+dev", "3.4.0+dev", "4.1.0+dev"])
def test_columns_go_by_their_names(version: str) -> None:
    made = text(wall(2048, 4096, 3.0), "write 100 1 1 0.1 500.0 0.1 500.2 0\n", version=version)
    if version >= "3.4":
        made = made.replace("bw(MiB/s)  block", "bw(MiB/s)  IOPS  Latency(s)  block").replace(
            "write 100 ", "write 100 7 8 "
        )
    (phase,) = output.phases(made, "x", "x")
    assert (phase.version, phase.moved_s, phase.tasks, phase.tasks_per_node) == (version, 500.0, 4, 2)


def test_options_as_3_1_wrote_them() -> None:
    made = (
        "IOR-3.1.0: MPI Coordinated Test of Parallel I/O\n\tclients            = 1200 (12 per node)\n"
        "\tapi                = MPIIO (version=2, subversion=1)\n\taccess             = single-shared-file\n"
        f"{ROW_3_2}write     41897      20971520   2048.00    0.362494   586.15     0.174346   586.58     0   \n"
    )
    (phase,) = output.phases(made, "x", "x")
    assert (phase.tasks, phase.tasks_per_node, phase.shared) == (1200, 12, True)


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (text(wall(1, 2, 3.0)), "its output ends before a result"),
        (text("ERROR: write() failed, errno 28, No space left\n"), "IOR stopped: ERROR: write() failed"),
        ("IOR-3.2.0: MPI Coordinated Test of Parallel I/O\nBegan", "its output ends before a result"),
    ],
)
def test_an_output_that_ends_early_is_a_sentence(
    capsys: Capture, tmp_path: Path, made: str, why: str
) -> None:
    (tmp_path / "a.txt").write_text(made)
    assert f"cannot be compared, because {why}" in whatif(capsys, tmp_path / "a.txt", status=1)
    ranks_csv(tmp_path / "b.csv", 10, 20)
    lines = whatif(capsys, tmp_path).splitlines()
    assert lines[0].startswith(f"{tmp_path}: b lost 25.0% of its time")
    assert any(line.startswith("Of a nothing can be said, because") for line in lines)


def test_a_table_that_lacks_ranks_is_left_out(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(text(wall(2048, 4096, 3.0), "write 9 1 1 0.1 500.0 0.1 500.2 0\n"))
    ranks_csv(tmp_path / "a.csv", 10, 20)
    out = whatif(capsys, tmp_path)
    assert "note: a.csv: has 2 of 4 ranks, and is left out" in out and "deadline" in out
    whole = (IO500 / "ior-easy-write.csv").read_text()
    (tmp_path / "cut.csv").write_text(whole[:-30])
    assert "ends in the middle of a line" in whatif(capsys, tmp_path / "cut.csv", status=1)


def test_clocks_that_differ_are_told_apart_from_slow_ranks(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(text(wall(2048, 4096, 3.0), "write 9 1 1 0.1 751.0 0.1 752.0 0\n"))
    ranks_csv(tmp_path / "a.csv", 300, 380, 400, 413)
    out = whatif(capsys, tmp_path)
    assert "lost 9.6% of its time" in out and "the nodes' clocks differ" in out


def test_a_slow_node_is_told_apart_from_slow_ranks(capsys: Capture, tmp_path: Path) -> None:
    seconds = [300 + (100 if n // 8 == 3 else 0) + n % 3 for n in range(64)]
    phase = Phase(
        "a", "write", command="ior -w", tasks=64, tasks_per_node=8, ranks_s=tuple(map(float, seconds))
    )
    between = lost(phase).between_nodes
    assert between and between.share > 0.99 and between.dealt == "in blocks"
    phase.ranks_s = tuple(float(s) for s in np.array(seconds).reshape(8, 8).T.ravel())
    between = lost(phase).between_nodes
    assert between and between.dealt == "in turn"
    phase.ranks_s = tuple(np.random.default_rng(1).permutation(np.array(seconds, float)).tolist())
    between = lost(phase).between_nodes
    assert between and between.share < 0.2


def test_collective_calls_hold_all_ranks_together() -> None:
    phase = Phase(
        "a", "write", command="ior -c", collective=True, tasks=2, ranks_s=(400.0, 400.1), moved_s=400.1
    )
    assert "collective calls" in lost(phase).why_not
    phase.stonewall = Stonewall(300.0, 0.9)
    assert lost(phase).seen_by == "deadline"


def test_several_results_are_a_sentence_each_and_a_table(capsys: Capture, tmp_path: Path) -> None:
    for name, slow in (("one", 20), ("two", 30), ("three", 40)):
        (tmp_path / name).mkdir()
        ranks_csv(tmp_path / name / "ior-easy-write.csv", 10, slow)
    (tmp_path / "three" / "._ior-easy-write.csv").write_bytes(b"\0\1")
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "a.txt").write_text(text("write 9 1 1 0.1 330.0 0.1 331.0 0\n", command="ior -w -F"))
    lines = whatif(capsys, tmp_path).splitlines()
    assert sum("of its time to its slowest ranks" in line for line in lines) == 3
    assert f"{tmp_path}/old: cannot be compared" in "\n".join(lines)
    assert re.search(r"^median of 3 +ior-easy-write +33\.3% +66\.7%", "\n".join(lines), re.MULTILINE)
    assert whatif(capsys, tmp_path / "one", tmp_path / "two").count("of its time to its slowest") == 2


def test_what_a_batch_job_printed_once_more_counts_once(tmp_path: Path) -> None:
    shutil.copy(IO500 / "ior-easy-write.txt", tmp_path / "a.txt")
    (tmp_path / "slurm-7.out").write_text("starting\n" * 100 + (IO500 / "ior-easy-write.txt").read_text())
    (result,) = results.read(str(tmp_path))
    assert len(result.phases) == 1


def test_runs_in_one_output_are_told_apart(capsys: Capture, tmp_path: Path) -> None:
    runs = [
        text(wall(2048, 4096, mean), f"write 9 1 1 0.1 {last} 0.1 500.2 0\n")
        for mean, last in ((3, 500), (2, 700))
    ]
    (tmp_path / "all.out").write_text("".join(runs))
    assert list(phases(capsys, tmp_path)) == ["all: write 1", "all: write 2"]


def test_an_output_of_many_runs_is_read_in_time_and_told_in_a_line(capsys: Capture, tmp_path: Path) -> None:
    one = text(wall(2048, 4096, 3.0), "write 9 1 1 0.1 {last} 0.1 500.2 0\n")
    (tmp_path / "a.out").write_text("".join(one.replace("{last}", f"{500 + n}") for n in range(12)))
    assert [name.split()[-1] for name in phases(capsys, tmp_path)] == [str(n) for n in range(1, 13)]
    assert "a: write 9 21.3% and 3 others." in whatif(capsys, tmp_path).splitlines()[0]
    (tmp_path / "a.out").write_text("IOR-3.3.0: MPI Coordinated Test of Parallel I/O\n" * 30_000)
    began = time.process_time()
    assert "its output ends before a result" in whatif(capsys, tmp_path, status=1)
    assert time.process_time() - began < 10


def test_of_several_results_each_doubt_is_told_once(capsys: Capture, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        coarse = text(wall(100, 200, 0.1), "write 9 1 1 0.1 500.0 0.1 500.2 0\n")
        (tmp_path / name / "a.txt").write_text(coarse)
        shutil.copy(IO500 / "mdtest-easy-write.txt", tmp_path / name)
    notes = [line for line in whatif(capsys, tmp_path).splitlines() if line.startswith("note: ")]
    assert len(notes) == 1 and notes[0].startswith(f"note: {tmp_path}/one and 1 other: a: below 1 GiB a rank")


def test_a_folder_that_cannot_be_read_is_named(capsys: Capture) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        ranks_csv(folder / "ior-easy-write.csv", 10, 20)
        whatif(capsys, folder)  # root has imported what an ordinary user may not
        (folder / "shut").mkdir(mode=0)
        if was_root := os.geteuid() == 0:
            os.seteuid(65534)
        try:
            assert f"note: {folder}/shut: Permission denied" in whatif(capsys, folder)
        finally:
            if was_root:
                os.seteuid(0)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.csv", HEADER + "write,0,1,1,1,1\nwrite,5,1,1,1,1\n", "a.csv:3: expected rank 1, found 5"),
        ("a.csv", HEADER + "write,0,1,nan,1,1\nwrite,1,1,1,1,1\n", "a.csv:2: expected a row of IOR's table"),
        ("a.csv", HEADER, "expected a table of ranks with rows"),
    ],
)
def test_what_is_not_ior_s_is_one_line(
    capsys: Capture, tmp_path: Path, name: str, content: str, problem: str
) -> None:
    (tmp_path / name).write_text(content)
    assert main(["whatif", str(tmp_path / name)]) == 2
    assert re.search(problem, capsys.readouterr().err)


def test_a_folder_without_ior_and_options_for_darshan_logs(capsys: Capture, tmp_path: Path) -> None:
    assert main(["whatif", str(tmp_path)]) == 2
    assert "expected a folder with outputs of IOR or IO500" in capsys.readouterr().err
    assert main(["whatif", str(IO500), "--osts", "8"]) == 2
    assert (
        "--osts: expected a Darshan log, found 'results of IOR, which name no OSTs'"
        in capsys.readouterr().err
    )


def test_a_pipe_is_not_waited_for(capsys: Capture, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    assert main(["whatif", str(tmp_path / "pipe.txt")]) == 2
    shutil.copy(IO500 / "ior-easy-write.csv", tmp_path)
    assert "lost 16.2%" in whatif(capsys, tmp_path)


def test_a_darshan_log_beside_results_of_ior(capsys: Capture, tmp_path: Path) -> None:
    pytest.importorskip("darshan")
    from tests.parts.whatif.logs import job

    log = job(tmp_path / "log.darshan", [1 << 30] * 8, [[n] for n in range(8)], ends=[20.0] * 8)
    out = whatif(capsys, IO500, log, "--picture", tmp_path / "p.svg")
    assert "log.darshan: app: would have gained nothing" in out and "ior-easy-write lost 16.2%" in out
    ElementTree.fromstring((tmp_path / "p.svg").read_text())


@given(st.lists(st.floats(0.001, 1e6), min_size=1, max_size=50), st.integers(0, 8))
def test_shares_stay_between_none_and_all(seconds: list[float], per_node: int) -> None:
    of = lost(Phase("a", "write", command="ior -w", tasks_per_node=per_node, ranks_s=tuple(seconds)))
    assert of.lost_share is not None and of.at_most_share is not None
    assert -1e-9 <= of.lost_share <= of.at_most_share + 1e-9 <= 1 + 1e-9
    assert not of.between_nodes or 0 <= of.between_nodes.share <= 1 + 1e-9


@given(st.text(max_size=300))
def test_any_text_is_read_or_refused(made: str) -> None:
    for whole in (made, text(made), HEADER + made):
        try:
            groups = table.groups(whole, "x") if table.is_table(whole) else []
            found = [] if table.is_table(whole) else output.phases(whole, "x", "x")
        except BadInput:
            continue
        assert all(math.isfinite(s) for group in groups for s in group.ranks_s)
        assert all(lost(phase).phase for phase in found)
