"""Roots as the collector reads them: the captured one, and one that replays the captured series."""

from __future__ import annotations

import re
import shutil
import tarfile
from pathlib import Path

import pytest

DATA = Path(__file__).parent.parent / "data" / "lustre"


@pytest.fixture
def data() -> Path:
    return DATA


@pytest.fixture
def oss_root(tmp_path: Path) -> Path:
    """A copy of the captured OSS that a test may change."""
    root = tmp_path / "oss"
    shutil.copytree(DATA / "oss", root)
    return root


class Series:
    """The captured OSS, set to one of the four moments of the series."""

    MOMENTS = range(1, 5)

    def __init__(self, root: Path) -> None:
        self.root = root

    def set(self, moment: int) -> float:
        """Put the files of that moment in place; its Unix time."""

        def text(name: str) -> str:
            return (DATA / "series" / f"{name}.{moment}.txt").read_text()

        debug = self.root / "sys/kernel/debug"
        for device, content in blocks(text("obdfilter.ALL.stats")).items():
            (debug / f"lustre/obdfilter/{device}/stats").write_text(content)
        for device, content in re.findall(
            r"obdfilter\.(\S+)\.kbytesfree=(\d+)", text("obdfilter.ALL.kbytesfree")
        ):
            (self.root / f"sys/fs/lustre/obdfilter/{device}/kbytesfree").write_text(content + "\n")
        for device, content in blocks(text("osd-ALL.ALL.brw_stats")).items():
            (debug / f"lustre/osd-ldiskfs/{device}/brw_stats").write_text(content)
        (self.root / "proc/diskstats").write_text(text("diskstats"))
        (debug / "lustre/ost/OSS/ost_io/stats").write_text(text("ost.OSS.ost_io.stats").partition("=\n")[2])
        (debug / "lnet/stats").write_text(text("lnet_stats"))
        (self.root / "proc/stat").write_text(text("stat"))
        (self.root / "proc/meminfo").write_text(text("meminfo"))
        return float(text("time"))


class SickDisk:
    """Two captured servers during one IOR run: the disk of `oss3` was held at 2 MB/s, that of `oss1` was not.

    24 moments, 6 to 7 s apart. Capacities, which were not captured, are made up.
    """

    MOMENTS = range(1, 25)
    SICK = (0xB, 0xC)
    """Those of the OSTs of the held disk that were written to."""
    USED = (0x1, 0x3, *SICK)

    def __init__(self, directory: Path) -> None:
        with tarfile.open(DATA / "sick.tar.xz") as archive:
            archive.extractall(directory / "captured")  # our own: `filter` is not in every Python 3.11
        self.captured = directory / "captured"
        self.roots = {name: directory / name for name in ("oss1", "oss3")}
        for name, root in self.roots.items():
            devices, osts = [], []
            for line in (self.captured / name / "mntdev.txt").read_text().splitlines():
                if line.startswith("/dev/"):
                    devices.append(line)
                elif line.startswith("osd-ldiskfs."):
                    osts.append(line.split(".")[1])
            for ost, device in zip(osts, devices, strict=True):
                put(root / f"sys/fs/lustre/osd-ldiskfs/{ost}/mntdev", device)
                for size in ("kbytestotal", "kbytesfree", "kbytesavail"):
                    put(root / f"sys/fs/lustre/obdfilter/{ost}/{size}", "1000000")

    def time(self, name: str, moment: int) -> float:
        return float((self.captured / name / f"{moment}.time").read_text())

    def set(self, name: str, moment: int) -> float:
        """Put one server's files of that moment in place; its Unix time."""
        root, base = self.roots[name], self.captured / name
        for kind, parameter in (("obdfilter", "stats"), ("osd-ldiskfs", "brw_stats")):
            captured = base / f"{moment}.{kind.replace('ldiskfs', 'ALL')}.ALL.{parameter}.txt"
            for device, content in blocks(captured.read_text()).items():
                put(root / f"sys/kernel/debug/lustre/{kind}/{device}/{parameter}", content)
        requests = (base / f"{moment}.ost.OSS.ost_io.stats.txt").read_text().partition("=\n")[2]
        put(root / "sys/kernel/debug/lustre/ost/OSS/ost_io/stats", requests)
        put(root / "proc/diskstats", (base / f"{moment}.diskstats.txt").read_text())
        return self.time(name, moment)


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if text.endswith("\n") else text + "\n")


@pytest.fixture
def sick_disk(tmp_path: Path) -> SickDisk:
    return SickDisk(tmp_path / "sick")


def blocks(text: str) -> dict[str, str]:
    """Device → its part of what `lctl get_param` printed."""
    parts = re.split(r"(?m)^\S+?\.(\S+)\.\w+=\n", text)
    return dict(zip(parts[1::2], parts[2::2]))


@pytest.fixture
def series(oss_root: Path) -> Series:
    return Series(oss_root)
