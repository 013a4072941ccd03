"""The stand-in for lctl answers as Lustre's did, and follows its source where nothing was captured."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tarazu.sim.testbed import lctl, tunables
from tarazu.sim.testbed.daemons import LCTL

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


def test_as_a_process_it_answers_the_same(tmp_path: Path) -> None:
    tunables.make_oss(tmp_path)
    command = [sys.executable, "-I", "-S", str(LCTL), str(tmp_path), "set_param"]
    done = subprocess.run(
        [*command, "ost.OSS.ost_io.nrs_policies=nonsense"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2 and "nrs_policies=nonsense: No such file or directory" in done.stderr


IO = "ost.OSS.ost_io"


def test_a_quantum_of_the_regular_queue_alone_cannot_be_read(tmp_path: Path) -> None:
    """The second queue's answer is the file's (nrs_crr.c, nrs_orr.c)."""
    tunables.make_oss(tmp_path)
    assert asked(tmp_path, f"set_param {IO}.nrs_policies=crrn reg")[0] == 0
    assert asked(tmp_path, f"get_param {IO}.nrs_crrn_quantum")[0] == 19
    assert asked(tmp_path, f"set_param {IO}.nrs_crrn_quantum=reg_quantum:4")[0] == 0
    assert asked(tmp_path, f"set_param {IO}.nrs_crrn_quantum=hp_quantum:4")[0] == 19
    assert asked(tmp_path, f"set_param {IO}.nrs_policies=crrn hp")[0] == 0
    assert asked(tmp_path, f"get_param {IO}.nrs_crrn_quantum") == (
        0,
        f"{IO}.nrs_crrn_quantum=\nreg_quantum:4    \nhp_quantum:8    \n",
    )
    assert asked(tmp_path, f"set_param {IO}.nrs_policies=fifo reg")[0] == 0
    assert asked(tmp_path, f"get_param {IO}.nrs_crrn_quantum")[1].endswith("=\nhp_quantum:8    \n")


def test_of_several_parameters_the_status_is_that_of_the_last(tmp_path: Path) -> None:
    tunables.make_client(tmp_path, "lustre", 0, 1)
    status, text = run(tmp_path, "set_param", "osc.*.max_rpcs_in_flight=0", "llite.*.max_read_ahead_mb=64")
    assert status == 0 and "Numerical result out of range" in text and "max_read_ahead_mb=64" in text


@pytest.mark.parametrize(
    ("commands", "status"),
    [
        (["nrs_tbf_rule=start r jobid={a} rate=5"], 19),
        (["nrs_policies=tbf jobid", "nrs_tbf_rule=start r nid={10.0.0.1@tcp} rate=5"], 22),
        (["nrs_policies=tbf jobid", "nrs_tbf_rule=start r jobid={a} rate=0"], 22),
        (["nrs_policies=tbf", *["nrs_tbf_rule=start r jobid={a} rate=5"] * 2], 17),
        (["nrs_policies=tbf projid", "nrs_tbf_rule=start r projid={1000} rate=5"], 0),
        (["nrs_policies=tbf jobid+projid", "nrs_tbf_rule=start r jobid={a}&projid={1 2},jobid={b} rate=5"], 0),
        (["nrs_policies=tbf jobid+projid", "nrs_tbf_rule=start r uid={1} rate=5"], 22),
        (["nrs_policies=tbf projid", "nrs_tbf_rule=start r projid={x} rate=5"], 22),
        (["nrs_policies=tbf", "nrs_tbf_rule=start r nodemap={default} rate=5"], 0),
        (["nrs_policies=tbf", "nrs_tbf_rule=start r nodemap={nowhere} rate=5"], 22),
        (["nrs_policies=tbf project"], 22),
        (["nrs_policies=tbf", "nrs_tbf_rule=stop r"], 2),
        (["nrs_policies=tbf", "nrs_tbf_rule=start r jobid={a} rate=5", "nrs_policies=fifo", "nrs_policies=tbf",
          "nrs_tbf_rule=stop r"], 2),
        (["nrs_policies=orr", "nrs_orr_supported=nothing"], 22),
        (["nrs_policies=crrn hp", "nrs_policies=crrn hp"], 0),
    ],
)  # fmt: skip
def test_statuses_of_nrs(tmp_path: Path, commands: list[str], status: int) -> None:
    tunables.make_oss(tmp_path)
    found = [asked(tmp_path, f"set_param {IO}.{command}")[0] for command in commands]
    assert found == [0] * (len(commands) - 1) + [status]


def test_a_policy_that_still_stops_cannot_be_started(tmp_path: Path) -> None:
    tunables.make_oss(tmp_path)
    (tmp_path / "nrs" / "draining").write_text("crrn\n")
    status, text = asked(tmp_path, f"set_param {IO}.nrs_policies=crrn")
    assert status == 11 and "Resource temporarily unavailable" in text
