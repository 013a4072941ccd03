"""Slurm's scripts by themselves: what the task prolog gives, to whom; what the epilog takes, and as whom."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tarazu import built
from tarazu.config import RunSettings
from tarazu.daemons import slurm
from tarazu.trace.spool import read_spools
from tests.trace.conftest import spool

TASK = {
    "SLURM_JOB_ID": "4711",
    "SLURM_JOB_UID": "1000",
    "SLURM_JOB_USER": "ann",
    "SLURM_JOB_ACCOUNT": "physics",
    "SLURM_JOB_PARTITION": "batch",
    "SLURM_STEP_ID": "2",
    "SLURM_STEP_NUM_NODES": "4",
}
NOBODY = 65534


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm, "EPILOG_S", 120)


@pytest.fixture
def settings(tmp_path: Path) -> RunSettings:
    return RunSettings(
        stop_file=str(tmp_path / "stop"),
        spool_dir=f"{tmp_path}/spools-{{uid}}",
        state_dir=str(tmp_path / "state"),
    )


def prolog(settings: RunSettings, **environ: str) -> dict[str, str]:
    """What the task gets in addition."""
    text = slurm.script("task_prolog", settings)
    env = {"PATH": os.environ["PATH"], **TASK, **environ}
    done = subprocess.run(["sh"], input=text, env=env, capture_output=True, text=True, check=True)
    lines = [line.removeprefix("export ") for line in done.stdout.splitlines()]
    return dict(line.split("=", 1) for line in lines)


def test_a_task_that_nobody_leads_is_recorded(settings: RunSettings, tmp_path: Path) -> None:
    library = str(built.library_path("libtarazu.so"))
    given = prolog(settings, LD_PRELOAD="libother.so")
    assert given["LD_PRELOAD"] == f"{library}:libother.so"
    assert given["TARAZU_SPOOL"] == f"{tmp_path}/spools-1000/{given['TARAZU_STEP']}"
    assert (given["TARAZU_STEP"], given["TARAZU_MODE"]) == ("slurm-4711-2-0-4", "observe")
    assert "TARAZU_MAP" not in given and "TARAZU_ARRAY_JOB" not in given
    array = prolog(settings, SLURM_ARRAY_JOB_ID="4700", SLURM_ARRAY_TASK_ID="7", SLURM_RESTART_COUNT="1")
    assert array["TARAZU_STEP"] == "slurm-4711-2-1-4-4700-7" and array["LD_PRELOAD"] == library
    assert (array["TARAZU_ARRAY_JOB"], array["TARAZU_ARRAY_INDEX"]) == ("4700", "7")


@pytest.mark.parametrize(
    "environ",
    [
        {"TARAZU_STEP": "20261122T101112-1-abcdef-n1"},
        {"TARAZU_DISABLE": "1"},
        {"SLURM_STEP_ID": "4294967290"},
        {"SLURM_STEP_ID": "batch"},
        {"SLURM_STEP_ID": ""},
        {"SLURM_PTY_PORT": "4000"},
        {"SLURM_JOB_ID": "1/../2"},
        {"LD_PRELOAD": "/opt/libtarazu.so"},
        {"LD_PRELOAD": "a\nexport B=c"},
    ],
    ids=lambda environ: "-".join(environ) + f"-{len(next(iter(environ.values())))}",
)
def test_others_get_nothing(settings: RunSettings, environ: dict[str, str]) -> None:
    assert prolog(settings) and prolog(settings, **environ) == {}


@pytest.mark.parametrize(
    ("lists", "recorded"),
    [
        ({"exclude_users": ("ann",)}, False),
        ({"exclude_users": ("1000", "bob")}, False),
        ({"exclude_users": ("an", "100")}, True),
        ({"only_users": ("bob",)}, False),
        ({"only_users": ("bob", "ann")}, True),
        ({"only_users": ("bob",), "only_projects": ("physics",)}, True),
        ({"only_partitions": ("debug",)}, False),
        ({"only_partitions": ("batch",), "exclude_users": ("ann",)}, False),
    ],
    ids=str,
)
def test_the_sites_lists(settings: RunSettings, lists: dict[str, Any], recorded: bool) -> None:
    assert bool(prolog(dataclasses.replace(settings, **lists))) == recorded


def test_a_stopped_site_records_nothing(settings: RunSettings) -> None:
    Path(settings.stop_file).touch()
    assert prolog(settings) == {}


@pytest.fixture
def user(settings: RunSettings) -> int:
    """Whose job it is: somebody else than who runs the epilog, where that can be."""
    uid = NOBODY if os.geteuid() == 0 else os.geteuid()
    top = Path(settings.state_dir).parent
    for path in (top, *top.parents):
        if path.stat().st_uid == os.geteuid() and not path.stat().st_mode & 0o001:
            path.chmod(path.stat().st_mode | 0o711)
    for path in (Path(settings.state_dir), top / f"spools-{uid}"):
        path.mkdir()
        os.chown(path, uid, -1)
        path.chmod(0o700)
    return uid


def step(settings: RunSettings, uid: int, name: str, **files: bytes) -> Path:
    directory = Path(settings.spool_dir.replace("{uid}", str(uid))) / name
    directory.mkdir(mode=0o700)
    os.chown(directory, uid, -1)
    for host, content in files.items():
        path = directory / f"{host}.100.tzs"
        path.write_bytes(content)
        os.chown(path, uid, -1)
    return directory


def epilog(settings: RunSettings, uid: int, job: str = "4711", text: str = "") -> None:
    env = {"SLURM_JOB_ID": job, "SLURM_JOB_UID": str(uid), "SLURMD_NODENAME": "n7"}
    script = text or slurm.script("node_epilog", settings)
    subprocess.run(["sh", "-c", script], env=env, stdin=subprocess.DEVNULL, check=True)


def test_the_epilog_hands_over_as_the_user(settings: RunSettings, user: int) -> None:
    one = step(settings, user, "slurm-4711-0-0-2", a=spool([]), b=spool([], pid=200))
    other = step(settings, user, "slurm-47110-0-0-2", a=spool([]))
    epilog(settings, user)
    handed = Path(settings.state_dir) / "steps" / "slurm-4711-0-0-2" / "n7.tzs"
    assert handed.stat().st_uid == user and handed.stat().st_mode & 0o777 == 0o600
    assert [s.header.pid for s in read_spools(handed)] == [100, 200]
    assert not one.exists() and other.exists()
    epilog(settings, user)
    assert len(list(handed.parent.iterdir())) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, for somebody else's files")
def test_the_epilog_follows_no_link_and_reads_nothing_that_the_user_may_not(
    settings: RunSettings, user: int, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"TZSPOOL1 of root")
    secret.chmod(0o600)
    linked = step(settings, user, "slurm-4711-0-0-1")
    (linked / "n.1.tzs").symlink_to(secret)
    (linked.parent / "slurm-4711-1-0-1").symlink_to(tmp_path)
    epilog(settings, user)
    assert secret.exists() and (linked.parent / "slurm-4711-1-0-1").is_symlink()
    assert not list(Path(settings.state_dir).rglob("*.tzs"))
    # Nor does it write where only root may: the user's directory is a link to it.
    step(settings, user, "slurm-4711-2-0-1", n=b"spool")
    kept = tmp_path / "root"
    kept.mkdir(mode=0o755)
    elsewhere = dataclasses.replace(settings, state_dir=str(tmp_path / "link"))
    (tmp_path / "link").symlink_to(kept)
    epilog(elsewhere, user)
    assert not list(kept.iterdir())


def test_the_epilog_ends_in_time_where_a_spool_is_a_pipe(settings: RunSettings, user: int) -> None:
    directory = step(settings, user, "slurm-4711-0-0-1")
    os.mkfifo(directory / "n.1.tzs")
    os.chown(directory / "n.1.tzs", user, -1)
    text = slurm.script("node_epilog", settings)
    assert f"seconds={slurm.EPILOG_S}\n" in text
    epilog(
        settings,
        user,
        text=text.replace(f"seconds={slurm.EPILOG_S}\n", "seconds=0.3\n").replace(
            "$(((seconds + 2) * 20))", "30"
        ),
    )
    assert not list(Path(settings.state_dir).rglob("*.tzs"))


def test_steps_that_nobody_gathers_fill_no_home(settings: RunSettings, user: int) -> None:
    """By number, by bytes and by age, the oldest first; never the one that is handed over."""
    steps = Path(settings.state_dir) / "steps"
    for number in range(12):
        old = steps / f"slurm-{number}-0-0-1"
        old.mkdir(parents=True)
        (old / "n7.tzs").write_bytes(bytes(200 << 10 if number == 9 else 4 << 10))
        os.utime(old, (1e9, time.time() - (40 * 86400 if number == 11 else 3600 * (12 - number))))
    for path in [steps, *steps.iterdir()]:
        os.chown(path, user, -1)
    own = steps / "ours"
    own.mkdir()
    text = slurm.script("node_epilog", settings)
    for name, of, less in (("kib", slurm.KEPT_KIB, 120), ("steps", slurm.KEPT_STEPS, 8)):
        assert f"kept_{name}={of}\n" in text
        text = text.replace(f"kept_{name}={of}\n", f"kept_{name}={less}\n")
    step(settings, user, "slurm-4711-0-0-2", a=spool([]))
    epilog(settings, user, text=text)
    assert sorted(path.name for path in steps.iterdir()) == ["ours", "slurm-10-0-0-1", "slurm-4711-0-0-2"]
    for number in range(20, 40):
        (steps / f"slurm-{number}-0-0-1").mkdir()
        os.chown(steps / f"slurm-{number}-0-0-1", user, -1)
    step(settings, user, "slurm-4711-1-0-2", a=spool([]))
    epilog(settings, user, text=text)
    assert len(list(steps.iterdir())) == 1 + 8 and (steps / "slurm-4711-1-0-2" / "n7.tzs").exists()


def with_bounds(settings: RunSettings, **least: int) -> str:
    text = slurm.script("node_epilog", settings)
    for name, of in (("kib", slurm.KEPT_KIB), ("steps", slurm.KEPT_STEPS)):
        text = text.replace(f"kept_{name}={of}\n", f"kept_{name}={least.get(name, of)}\n")
    return text


def test_what_a_link_among_the_steps_leads_to_is_not_emptied(
    settings: RunSettings, user: int, tmp_path: Path
) -> None:
    steps, elsewhere = Path(settings.state_dir) / "steps", tmp_path / "elsewhere"
    for path in (steps, elsewhere):
        path.mkdir(parents=True)
        os.chown(path, user, -1)
    (elsewhere / "thesis").write_bytes(bytes(4096))
    os.chown(elsewhere / "thesis", user, -1)
    (steps / "slurm-1-0-0-1").symlink_to(elsewhere)
    step(settings, user, "slurm-4711-0-0-2", a=spool([]))
    epilog(settings, user, text=with_bounds(settings, steps=1, kib=8))
    assert (elsewhere / "thesis").exists() and (steps / "slurm-4711-0-0-2").is_dir()


def test_a_step_of_a_time_to_come_does_not_take_the_place_of_all_others(
    settings: RunSettings, user: int
) -> None:
    """Made while a clock was ahead, and larger than all that is kept."""
    steps = Path(settings.state_dir) / "steps"
    for name, kib, at in (("slurm-1-0-0-1", 400, time.time() + 1e7), ("slurm-2-0-0-1", 4, time.time() - 60)):
        (steps / name).mkdir(parents=True)
        (steps / name / "n7.tzs").write_bytes(bytes(kib << 10))
        os.utime(steps / name, (at, at))
    for path in [steps, *steps.iterdir()]:
        os.chown(path, user, -1)
    for number in (1, 2):
        step(settings, user, f"slurm-4711-{number}-0-2", a=spool([]))
        epilog(settings, user, text=with_bounds(settings, kib=120))
    kept = {path.name for path in steps.iterdir()}
    assert {"slurm-4711-2-0-2"} <= kept and "slurm-1-0-0-1" not in kept, kept


def test_the_nodes_of_a_wide_step_fill_no_home(settings: RunSettings, user: int) -> None:
    """Each node hands over its own file: what the others have handed over counts."""
    steps = Path(settings.state_dir) / "steps"
    name = "slurm-4711-0-0-2"
    (steps / name).mkdir(parents=True)
    for number in range(3):
        (steps / name / f"m{number}.tzs").write_bytes(bytes(50 << 10))
    for path in [steps, steps / name]:
        os.chown(path, user, -1)
    step(settings, user, name, a=spool([]))
    epilog(settings, user, text=with_bounds(settings, kib=120))
    assert not (steps / name / "n7.tzs").exists() and len(list((steps / name).iterdir())) == 3
