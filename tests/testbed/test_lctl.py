"""The stand-in for lctl answers as Lustre's did, and follows its source where nothing was captured."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from tarazu.sim.testbed import lctl, tunables

CAPTURED = Path(__file__).parents[1] / "data" / "lustre" / "control"


def answers(name: str) -> list[tuple[str, str, int]]:
    pairs = re.findall(
        r"^# lctl (.*)\n((?:(?!# ).*\n)*?)# rc (\d+)$", (CAPTURED / name).read_text(), re.MULTILINE
    )
    return [(words, text, int(status)) for words, text, status in pairs]


def run(root: Path, *words: str) -> tuple[int, str]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        status = lctl.main([str(root), *words])
    return status, printed.getvalue()


def asked(root: Path, words: str) -> tuple[int, str]:
    command, _, rest = words.partition(" ")
    return run(root, command, *([rest] if command == "set_param" else rest.split()))


@pytest.mark.parametrize(("name", "count"), [("nrs-default.txt", 12), ("nrs-set.txt", 39)])
def test_nrs_answers_as_captured(tmp_path: Path, name: str, count: int) -> None:
    tunables.make_oss(tmp_path)
    captured = answers(name)
    assert len(captured) == count
    for words, text, status in captured:
        assert asked(tmp_path, words) == (status, text), words


def test_an_oss_has_the_captured_parameters_of_nrs() -> None:
    listed = (CAPTURED / "list-ost_io.txt").read_text().split()
    assert lctl.Nrs.names() == sorted(n.rpartition(".")[2] for n in listed if ".nrs_" in n)


def test_a_clients_tunables_answer_as_captured(tmp_path: Path) -> None:
    """The node was an MDS, too: its MDT's devices take other ranges."""
    mount, mdt = "ffff88810f466800", "MDT0000"
    osc = {**tunables.OSC, "checksums": 1}
    values: dict[str, dict[str, int]] = {f"mdc/lustre-{mdt}-mdc-{mount}": {}}
    for i in range(8):
        values[f"osc/lustre-OST{i:04x}-osc-{mdt}"] = {"max_rpcs_in_flight": 8}
        values[f"osc/lustre-OST{i:04x}-osc-{mount}"] = osc
    values[f"mdc/lustre-{mdt}-mdc-{mount}"] = {"max_rpcs_in_flight": 8, "max_mod_rpcs_in_flight": 7}
    ahead = {"max_read_ahead_mb": 256, "max_read_ahead_per_file_mb": 64, "max_read_ahead_whole_mb": 4}
    values[f"llite/lustre-{mount}"] = {**ahead, "statahead_max": 128}
    for device, parameters in values.items():
        (tmp_path / "sys/fs/lustre" / device).mkdir(parents=True)
        for name, value in parameters.items():
            (tmp_path / "sys/fs/lustre" / device / name).write_text(f"{value}\n")
    captured = answers("client-tunables.txt")
    assert len(captured) == 9
    for words, text, status in captured:
        assert run(tmp_path, *words.split()) == (status, text), words


IO = "ost.OSS.ost_io"
