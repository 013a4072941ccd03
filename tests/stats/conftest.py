"""Roots as the collector reads them: the captured one, and one that replays the captured series."""

from __future__ import annotations

import re
import shutil
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
    """The captured OSS, set to one of the eight moments of the series."""

    MOMENTS = range(1, 9)

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
        (debug / "lustre/ost/OSS/ost_io/stats").write_text(text("ost.OSS.ost_io.stats").partition("=\n")[2])
        (debug / "lnet/stats").write_text(text("lnet_stats"))
        (self.root / "proc/stat").write_text(text("stat"))
        (self.root / "proc/meminfo").write_text(text("meminfo"))
        return float(text("time"))


def blocks(text: str) -> dict[str, str]:
    """Device → its part of what `lctl get_param` printed."""
    parts = re.split(r"(?m)^\S+?\.(\S+)\.\w+=\n", text)
    return dict(zip(parts[1::2], parts[2::2]))


@pytest.fixture
def series(oss_root: Path) -> Series:
    return Series(oss_root)
