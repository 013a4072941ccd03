"""The doctor's look at a node's files: roles, Lustre, units, stop file, settings, left-overs, space."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
from pathlib import Path

import pytest

from tarazu import built, config
from tarazu.daemons.ossd.service import as_text
from tarazu.doctor.examine import TOPICS, Topic, _guarded
from tarazu.doctor.node import roles_of
from tarazu.errors import ConfigError
from tarazu.stats.collector import Collector
from tarazu.store import schema
from tests.doctor.conftest import DATA, Tree, verdicts

ROOT = Path(__file__).parents[2]
UNIT = (ROOT / "tarazu/daemons/systemd/tarazu-ossd.service").read_text()


def test_roles_are_seen_by_what_lustre_shows_by_keys_and_by_units(tree: Tree) -> None:
    assert roles_of(tree.root, tree.root, tree.settings) == set()
    tree.with_keys("server.key")
    assert roles_of(tree.root, tree.root, tree.settings) == {"mdsd"}
    tree.with_keys("server.key", "oss.key", "client.key")  # where `tarazu config keys create` was run
    assert roles_of(tree.root, tree.root, tree.settings) == {"mdsd"}
    tree.write("sys/kernel/debug/lnet/routes", "Routing enabled\nnet hops priority state router\n")
    tree.write("proc/fs/lustre/mgs/MGS/uuid", "MGS\n")
    assert roles_of(tree.root, tree.root, tree.settings) == {"mdsd", "router", "mgs"}
    wants = tree.root / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True)
    (wants / "tarazu-clientd.service").symlink_to("/nowhere")
    assert "launch" in roles_of(tree.root, tree.root, tree.settings)
    assert "oss" in roles_of(DATA / "oss", tree.root, config.Settings(keys=config.Keys(directory="/nowhere")))


def test_an_oss_with_a_clients_key_is_no_launch_node_and_a_councils_node_not_mdsds(tree: Tree) -> None:
    tree.with_keys("oss.key", "client.key", "server.pub")
    assert roles_of(DATA / "oss", tree.root, tree.settings) == {"oss"}, "installed without packages"
    tree.write("usr/lib/systemd/system/tarazu-ossd.service", UNIT)  # installed: tarazu-oss alone
    assert roles_of(tree.root, tree.root, tree.settings) == {"oss"}
    tree.write("usr/lib/systemd/system/tarazu-clientd.service", "")  # with the package tarazu
    assert roles_of(tree.root, tree.root, tree.settings) == {"oss", "launch"}, "nothing is enabled yet"
    enabled = tree.write("etc/systemd/system/multi-user.target.wants/tarazu-ossd.service", "")
    assert roles_of(tree.root, tree.root, tree.settings) == {"oss"}
    tree.write("usr/lib/systemd/system/tarazu-mdsd.service", "")
    tree.with_keys("server.key")
    enabled.rename(enabled.with_name("tarazu-council.service"))
    assert roles_of(tree.root, tree.root, tree.settings) == set()
    # Started by Pacemaker, which enables nothing.
    tree.write("run/systemd/units/invocation:tarazu-mdsd.service", "")
    assert roles_of(tree.root, tree.root, tree.settings) == {"mdsd"}


def test_lustre_its_version_and_its_statistics(tree: Tree) -> None:
    assert tree.look("Lustre", "launch")["Lustre"].verdict == "ok"
    assert tree.look("Lustre", "oss")["Lustre"].verdict == "fail"
    shutil.copytree(DATA / "oss", tree.root, dirs_exist_ok=True)
    found = tree.look("Lustre", "router")
    assert found["debugfs"].verdict == ("ok" if (tree.root / "sys/kernel/debug/lustre").is_dir() else "fail")
    for version, verdict in (("2.15.7", "ok"), ("2.10.8", "fail"), ("2.18.0", "warn"), ("", "warn")):
        tree.write("sys/fs/lustre/version", f"lustre: {version}\n")
        assert tree.look("Lustre", "launch")["version"].verdict == verdict, version
    shutil.rmtree(tree.root / "sys/kernel", ignore_errors=True)
    assert tree.look("Lustre", "router")["debugfs"].verdict == "fail"
    tree.write("proc/mounts", "debugfs /sys/kernel/debug debugfs rw 0 0\n")
    assert tree.look("Lustre", "router")["debugfs"].verdict == "ok"


def test_statistics_are_tried_as_the_daemon_reads_them(tree: Tree) -> None:
    shutil.copytree(DATA / "oss", tree.root, dirs_exist_ok=True)
    gone = next(p for p in tree.root.rglob("brw_stats"))
    gone.unlink()
    gone.mkdir()
    found = tree.look("Lustre", "oss")["statistics"]
    assert found.verdict == "fail" and "brw_stats" in found.found
    if os.geteuid() == 0 and shutil.which("setpriv"):
        assert "as tarazu with dac_read_search" in found.found


def test_a_malformed_statistic_is_not_called_one_that_this_user_may_not_read(tree: Tree) -> None:
    shutil.copytree(DATA / "oss", tree.root, dirs_exist_ok=True)
    tree.write("sys/fs/lustre/obdfilter/lustre-OST0001/kbytestotal", "many\n")
    found = tree.look("Lustre", "oss")["statistics"]
    assert found.verdict == "fail" and found.found.startswith("malformed ")
    assert "kbytestotal (expected a whole number, found 'many')" in found.found
    assert "cannot be read" not in found.found


def test_a_node_copied_by_tar_is_as_the_node_itself(tree: Tree) -> None:
    """tar believes that a file of sysfs has 4,096 bytes, and fills it up with NULs."""
    shutil.copytree(DATA / "oss", tree.root, dirs_exist_ok=True)
    tree.write("sys/fs/lustre/jobid_var", "disable\n")
    usual = tree.look("Lustre", "oss", "client"), as_text(Collector(tree.root, "oss").collect(0.0))
    for path in (tree.root / "sys").rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            path.write_bytes(content + bytes(-len(content) % 4096))
    assert (tree.look("Lustre", "oss", "client"), as_text(Collector(tree.root, "oss").collect(0.0))) == usual
    assert usual[0]["statistics"].verdict == "ok" and "5 OSTs" in usual[1]


def test_job_ids_that_servers_do_not_get(tree: Tree) -> None:
    tree.write("sys/fs/lustre/jobid_var", "disable\n")
    tree.write("proc/mounts", "10.0.0.1@tcp:/scratch /scratch lustre rw 0 0\n")
    found = tree.look("Lustre", "client")
    assert found["jobid_var"].verdict == "warn"
    tree.write("sys/fs/lustre/jobid_var", "SLURM_JOB_ID\n")
    assert tree.look("Lustre", "client")["jobid_var"].verdict == "ok"


def test_units_that_are_missing_not_enabled_or_start_nothing(tree: Tree) -> None:
    assert "not installed" in tree.look("units", "oss")["tarazu-ossd"].found
    tree.write("usr/lib/systemd/system/tarazu-ossd.service", UNIT)
    assert "does not exist" in tree.look("units", "oss")["tarazu-ossd"].found
    tree.write("usr/bin/tarazu-ossd", "", 0o755)
    found = tree.look("units", "oss")["tarazu-ossd"]
    assert (found.verdict, found.found[:11]) == ("warn", "not enabled")
    wants = tree.root / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True)
    (wants / "tarazu-ossd.service").symlink_to("/usr/lib/systemd/system/tarazu-ossd.service")
    assert verdicts(tree.look("units", "oss")) == {"tarazu-ossd": "skip"}
    tree.write("etc/passwd", "root:x:0:0::/:/bin/sh\n")
    assert tree.look("units", "oss")["user tarazu"].verdict == "fail"
    tree.write(
        "etc/systemd/system/tarazu-ossd.service.d/user.conf",
        "[Service]\nUser=\nUser=root\nExecStart=\nExecStart=/x\n",
    )
    found = tree.look("units", "oss")
    assert "user tarazu" not in found and "/x" in found["tarazu-ossd"].found


def test_what_systemd_says_and_what_a_running_daemon_has(tree: Tree) -> None:
    for unit in ("tarazu-ossd", "tarazu-mdsd"):
        tree.write(
            f"usr/lib/systemd/system/{unit}.service",
            (ROOT / f"tarazu/daemons/systemd/{unit}.service").read_text(),
        )
        tree.write(f"usr/bin/{unit}", "", 0o755)
        tree.write(f"etc/systemd/system/multi-user.target.wants/{unit}.service", "")
    (tree.root / "run/systemd/system").mkdir(parents=True)
    said = tree.write("state", "active")
    systemctl = str(
        tree.write(
            "systemctl", f"#!/bin/sh\ncase $1 in is-active) cat {said};; show) echo 77;; esac\n", 0o755
        )
    )
    tree.write("proc/77/status", "Name:\tx\nCapEff:\t0000000000000004\n")
    tree.write(
        "proc/77/limits", "Max open files            65536                65536                files\n"
    )
    found = tree.look("units", "oss", "mdsd", systemctl=systemctl)
    assert verdicts(found) == {"tarazu-ossd": "ok", "tarazu-mdsd": "ok"}
    tree.write("proc/77/status", "Name:\tx\nCapEff:\t0000000000000000\n")
    tree.write(
        "proc/77/limits", "Max open files            1024                 65536                files\n"
    )
    found = tree.look("units", "oss", "mdsd", systemctl=systemctl)
    assert found["tarazu-ossd capabilities"].verdict == found["tarazu-mdsd capabilities"].verdict == "fail"
    assert found["tarazu-mdsd open files"].verdict == "warn"
    said.write_text("failed")
    found = tree.look("units", "oss", systemctl=systemctl)["tarazu-ossd"]
    assert found.verdict == "fail" and "installed and failed" in found.found


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the file counts when it is root's")
def test_the_stop_file(tree: Tree) -> None:
    path = Path(tree.settings.run.stop_file)
    assert tree.look("stop file")["run.stop_file"].verdict == "ok"
    path.parent.mkdir()
    assert tree.look("stop file")["run.stop_file"].verdict == "ok"
    path.write_text("disks are replaced\n")
    found = tree.look("stop file")["run.stop_file"]
    assert found.verdict == "warn" and "disks are replaced" in found.found
    path.chmod(0o666)
    assert "is ignored" in tree.look("stop file")["run.stop_file"].found
    path.unlink()
    path.parent.chmod(0o777)
    assert tree.look("stop file")["run.stop_file"].verdict == "fail"
    tree.put("run", stop_file="")
    assert tree.look("stop file")["run.stop_file"].verdict == "warn"


def test_settings_with_mistakes_and_files_that_others_change_or_nobody_reads(tree: Tree) -> None:
    file = tree.directory / "tarazu.toml"
    file.write_text("")
    file.chmod(0o644)
    assert verdicts(tree.look("settings", files=(file,))) == {"settings": "ok"}
    wrong = ConfigError(f"{file}:3", "a number", "x")
    found = tree.look("settings", files=(file,), mistakes=(wrong,))
    assert verdicts(found) == {f"{file}:3": "fail"}
    for mode in (0o666, 0o640):
        file.chmod(mode)
        assert tree.look("settings", files=(file,))[str(file)].verdict == "fail"
    (tree.directory / "conf.d").mkdir()
    (tree.directory / "conf.d/site.conf").touch()
    assert "site.conf" in tree.look("settings", files=(file,))[str(tree.directory / "conf.d")].found


def test_a_missing_pfl_file_is_named_where_clientd_would_not_start(tree: Tree) -> None:
    tree.put("layout", pfl_file="/nowhere/pfl.ini")
    assert tree.look("settings", "launch")["layout.pfl_file"].verdict == "fail"
    assert "layout.pfl_file" not in tree.look("settings", "oss")


def test_what_is_left_behind(tree: Tree) -> None:
    assert verdicts(tree.look("left behind")) == {"left behind": "ok"}
    library = tree.write("usr/lib64/libtarazu.so", "old")
    assert tree.look("left behind")["libtarazu.so"].verdict == "fail"
    library.write_bytes(built.library_path("libtarazu.so").read_bytes())
    tree.write("usr/lib/systemd/system/tarazu-ossd.service", UNIT)
    tree.write("etc/systemd/system/tarazu-ossd.service", "[Service]\n")
    tree.write("etc/tarazu/tarazu.toml.rpmsave", "")
    assert verdicts(tree.look("left behind")) == {"tarazu-ossd": "warn", "/etc/tarazu": "warn"}


def test_databases_that_are_none(tree: Tree) -> None:
    path = Path(tree.settings.clientd.database)
    assert "does not exist yet" in tree.look("space and limits", "launch")["clientd.database"].found
    path.write_text("no database at all, but text of some length" * 10)
    assert tree.look("space and limits", "launch")["clientd.database"].verdict == "fail"
    for owner, version, verdict in (
        (schema.APPLICATION_ID, schema.VERSION, "ok"),
        (schema.APPLICATION_ID, schema.VERSION + 1, "fail"),
        (schema.APPLICATION_ID, schema.VERSION - 1, "fail"),
        (4711, 1, "fail"),
    ):
        path.unlink()
        connection = sqlite3.connect(path)
        connection.execute(f"PRAGMA application_id = {owner}")
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("CREATE TABLE t (x)")
        connection.close()
        before = sorted(p.name for p in path.parent.iterdir())
        assert tree.look("space and limits", "launch")["clientd.database"].verdict == verdict
        assert sorted(p.name for p in path.parent.iterdir()) == before


def test_a_full_disk_is_named(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    Path(tree.settings.state.mdsd).mkdir(parents=True)
    real = os.statvfs(tree.directory)
    full = (4096, 4096, 1 << 30, 100, 100, *tuple(real)[5:8])
    for flags, verdict in ((0, "warn"), (os.ST_RDONLY, "fail")):
        found = os.statvfs_result((*full, flags, 255))
        monkeypatch.setattr(os, "statvfs", lambda _, found=found: found)
        assert tree.look("space and limits", "mdsd")["tarazu-mdsd state"].verdict == verdict
    assert "free on" in tree.look("directories", "launch")["run.spool_dir"].found

    def broken(_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "statvfs", broken)
    assert tree.look("space and limits", "mdsd")["tarazu-mdsd state"].verdict == "fail"


def test_limits_of_processes(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        assert "256 open files" in tree.look("space and limits", "launch")["limits"].found
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1 << 30, 1 << 30))
    assert "1.0 GiB of addresses" in tree.look("space and limits", "launch")["limits"].found


def test_a_check_that_stumbles_says_so_and_the_others_go_on(tree: Tree) -> None:
    def broken(_: object) -> list[object]:
        raise RuntimeError("oops")

    [found] = _guarded(Topic("x", broken), tree.node())  # type: ignore[arg-type]
    assert found.verdict == "warn" and "RuntimeError: oops" in found.found
    assert len({topic.name for topic in TOPICS}) == len(TOPICS)
