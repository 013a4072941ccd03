"""Which file system a log's files are counted to, where their names say less than their layouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarazu.parts.whatif.job import jobs
from tarazu.trace.darshan.read import read
from tests.trace.test_places import DIRECT, LINKED, MISTYPED, MOUNTS, wrote


@pytest.mark.parametrize("linked", LINKED)
def test_files_that_are_named_through_a_link_are_on_the_only_lustre_of_the_log(
    tmp_path: Path, linked: list[str]
) -> None:
    log = wrote(tmp_path / "linked.darshan", [*linked, *DIRECT[len(linked) :]])
    (job,) = jobs(read(log)).jobs
    assert (job.mount, len(job.files)) == ("/scratch", 3)


def test_a_mount_point_may_have_blanks(tmp_path: Path) -> None:
    path = "/scratch/My Project\t\\"
    mounts = (("/scratch/My\\040Project\\011\\134", "lustre"), ("/", "xfs"))
    (job,) = jobs(read(wrote(tmp_path / "x.darshan", [f"{path}/u/a", "/b"], mounts))).jobs
    assert job.mount == path


def test_files_of_one_of_several_lustres_are_left_out_and_named(tmp_path: Path) -> None:
    names = ["/home/u/a", "/home/u/b", "/scratch/c", "/home/notes"]
    found = jobs(read(wrote(tmp_path / "x.darshan", names, (*MOUNTS, ("/scratch2", "lustre")), [1, 2, 3])))
    assert [job.mount for job in found.jobs] == ["/scratch"]
    assert any("2.0 MiB were written to files on Lustre" in note for note in found.notes)


@pytest.mark.parametrize(("mounts", "names"), MISTYPED)
def test_a_layout_says_more_than_the_type_of_a_mount(
    tmp_path: Path, mounts: tuple[tuple[str, str], ...], names: list[str]
) -> None:
    (job,) = jobs(read(wrote(tmp_path / "x.darshan", names, mounts))).jobs
    assert (job.mount, len(job.files)) == ("/scratch", 2)
