"""Files of a Darshan log whose names say less of where they lay than their layouts: links, odd tables of mounts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("darshan")

from tarazu.cli import main
from tarazu.sim.workloads.darshan import workload
from tarazu.trace.darshan.read import read
from tarazu.trace.history import History
from tarazu.trace.places import Place
from tests.trace.darshan import writer
from tests.trace.darshan.test_read import posix
from tests.trace.test_training import take

MOUNTS = (("/scratch", "lustre"), ("/home", "nfs4"), ("/", "xfs"))
DIRECT = [f"/scratch/u/run/out.{n}" for n in (1, 2, 3)]
LINKED = (
    ["/home/u/run/out.1", "/home/u/run/out.2"],
    ["/home/u/run/out.1", "/home/u/run/out.2", "/home/u/run/out.3"],
    ["/home/links/run/out.1", "/projects/x/run/../run/out.2"],
    ["//home//u/run/out.1"],
    ["/net/mds1/scratch/u/run/out.1", "/net/mds1/scratch/u/run/out.2", "/net/mds1/scratch/u/run/out.3"],
)
"""Names of files of a job, through links; the last numbers are as in DIRECT."""
MISTYPED = [
    ((("/scratch", "dvs"), ("/", "xfs")), ["/scratch/u/a", "/scratch/u/b"]),
    ((("/scratch", "lustre"), ("/scratch/home", "nfs"), ("/", "xfs")), ["/scratch/u/a", "/scratch/home/u/b"]),
]
"""Mounts, and names of two files on Lustre."""
Captured = pytest.CaptureFixture[str]


def wrote(
    path: Path,
    names: Sequence[str],
    mounts: Sequence[tuple[str, str]] = MOUNTS,
    laid: Sequence[int] | None = None,
) -> Path:
    """A log of a job that wrote 1 MiB to each of these files; `laid`: those with a Lustre layout, else all."""
    numbers = range(1, len(names) + 1)
    modules = {
        "POSIX": b"".join(
            posix(n, n - 1, F_WRITE_START_TIMESTAMP=1.0, F_WRITE_END_TIMESTAMP=9.0) for n in numbers
        ),
        "LUSTRE": b"".join(writer.plain(n, [n % 3]) for n in (numbers if laid is None else laid)),
    }
    return writer.write(
        path, modules, dict(zip(numbers, names, strict=True)), ranks=len(names), mounts=mounts
    )


def keys(history: Path, log: Path, **rules: object) -> dict[str, list[str]]:
    """File system → keys of the files of the run that the log is imported as."""
    taken = take(history, [log], any_user=True, **{"named": (("", "fs"),)} | rules)
    assert {t.outcome for t in taken} <= {"imported", "empty"}, taken
    return {
        fs: sorted(file.key for run in History(history).runs(fs, app) for file in run.files)
        for fs, app in History(history).applications()
    }


@pytest.mark.parametrize("linked", LINKED)
def test_files_that_are_named_through_a_link_are_on_the_only_lustre_of_the_log(
    tmp_path: Path, linked: list[str]
) -> None:
    of_direct = wrote(tmp_path / "direct.darshan", DIRECT)
    of_linked = wrote(tmp_path / "linked.darshan", [*linked, *DIRECT[len(linked) :]])
    known = keys(tmp_path / "direct", of_direct)
    assert known == {"fs": ["/u/run/out.1", "/u/run/out.2", "/u/run/out.3"]}
    assert keys(tmp_path / "linked", of_linked) == known
    assert keys(tmp_path / "named", of_linked, named=(("/scratch", "fs"),)) == known
    assert len(workload(read(of_linked), mount="/scratch").files) == 3


@pytest.mark.parametrize("linked", ["/projects/job/rank0/o", "/home/jobs/job/rank0/o"])
@pytest.mark.parametrize("mounts", [MOUNTS, (("/scratch", "autofs"), ("/scratch", "lustre"), *MOUNTS)])
def test_a_linked_directory_is_the_only_one_of_its_name_or_of_that_of_one_above(
    tmp_path: Path, linked: str, mounts: Sequence[tuple[str, str]]
) -> None:
    log = wrote(tmp_path / "x.darshan", [linked, "/scratch/u/job/rank1/o", "/scratch/u/in/o"], mounts)
    assert keys(tmp_path / "history", log) == {"fs": ["/u/in/o", "/u/job/rank0/o", "/u/job/rank1/o"]}


def test_a_link_of_this_node_tells_the_name_on_lustre(tmp_path: Path) -> None:
    (tmp_path / "lustre/deep/here").mkdir(parents=True)
    (tmp_path / "project").symlink_to(tmp_path / "lustre/deep/here")
    log = wrote(
        tmp_path / "x.darshan",
        [f"{tmp_path}/project/a", "/scratch/b", "/scratch2/c"],
        mounts=(*MOUNTS, ("/scratch2", "lustre")),
    )
    here = (Place(str(tmp_path / "lustre"), "two"), Place("/scratch", "one"), Place("/scratch2", "two"))
    assert keys(tmp_path / "history", log, here=here, named=()) == {
        "one": ["/b"],
        "two": ["/c", "/deep/here/a"],
    }


def test_files_of_one_of_several_lustres_are_left_out_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setenv("TARAZU_RUN_STATE_DIR", str(tmp_path))
    mounts = (*MOUNTS, ("/scratch2", "lustre"))
    log = wrote(
        tmp_path / "x.darshan", ["/home/u/a", "/home/u/b", "/scratch/c", "/home/notes"], mounts, [1, 2, 3]
    )
    words = ["history", "import", str(log), "--any-user", "--fs", "fs"]
    assert main(words) == 0
    shown = capsys.readouterr()
    assert "1 imported" in shown.out
    assert f"left out: {log}: 2 files with a Lustre layout (/home/u/a, ...)" in shown.err
    assert "/scratch2" in shown.err and "add --mount DIR --fs NAME" in shown.err
    assert main([*words, "--mount", "/home", "--mount", "/scratch"]) == 0
    assert "left out" not in capsys.readouterr().err


@pytest.mark.parametrize(("mounts", "names"), MISTYPED)
def test_a_layout_says_more_than_the_type_of_a_mount(
    tmp_path: Path, mounts: Sequence[tuple[str, str]], names: list[str]
) -> None:
    log = wrote(tmp_path / "x.darshan", names, mounts)
    assert keys(tmp_path / "history", log) == {"fs": ["/u/a", "/u/b"]}


def test_files_without_a_layout_stay_where_their_mount_is(tmp_path: Path) -> None:
    log = wrote(tmp_path / "x.darshan", ["/home/u/a", "/scratch/u/b"], laid=[2])
    assert keys(tmp_path / "history", log) == {"fs": ["/u/b"]}
    alone = wrote(tmp_path / "y.darshan", ["/home/u/a", "/tmp/b"], mounts=(("/", "xfs"),), laid=[1])
    (taken,) = take(tmp_path / "none", [alone], any_user=True, named=())
    assert taken.outcome == "refused" and "or --mount DIR --fs NAME" in taken.why


def test_files_with_a_layout_whose_directory_is_not_logged_are_named(tmp_path: Path) -> None:
    log = wrote(tmp_path / "x.darshan", ["a", "/scratch/u/b"])
    (taken,) = take(tmp_path / "history", [log], any_user=True, named=(("", "fs"),))
    assert (taken.files, taken.left_out.split(" below")[0]) == (1, "1 file with a Lustre layout (./a)")


@pytest.mark.parametrize(
    ("logged", "path"),
    [
        ("/scratch/My Project", "/scratch/My Project"),
        ("/scratch/two  blanks and\ta tab", "/scratch/two  blanks and\ta tab"),
        ("/scratch/My\\040Project\\011\\134", "/scratch/My Project\t\\"),
    ],
)
def test_a_mount_point_may_have_blanks(tmp_path: Path, logged: str, path: str) -> None:
    log = read(wrote(tmp_path / "x.darshan", [f"{path}/u/a", "/b"], ((logged, "lustre"), ("/", "xfs"))))
    assert [mount.path for mount in log.mounts] == [path, "/"]
