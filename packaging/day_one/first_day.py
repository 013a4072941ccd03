"""The newcomer's path, as an administrator and a user type it: install, keys, settings, units, observe, report, place,
off, upgrade, uninstall.

What stands for Lustre is the testbed of the package itself. It is named in one place: a drop-in of each unit says where
its node's /proc and /sys are.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from pathlib import Path

import contents
import traces
from machine import Failed, Machine

USER = "alice"
FILES = "/srv/lustre"
TESTBED = f"{FILES}/testbed"
SERVICES = ("tarazu-ossd", "tarazu-mdsd", "tarazu-clientd")
ALL = " ".join(package.name for package in contents.PACKAGES)
STAYS = f"/home/{USER}/.local"
"""What the user's own jobs have left: histories and jobs.log are theirs."""

SITE = """\
[mdsd]
statistics = "tcp://127.0.0.1:5770"
requests = "tcp://127.0.0.1:5771"
audit_log = "/var/log/tarazu/audit.log"
[ossd]
interval_s = 1
"""
ROOTS = {"tarazu-ossd": "oss/oss1", "tarazu-mdsd": "mds/root", "tarazu-clientd": "clients/client1"}
"""Daemon → its node's root on the testbed."""
JOB = 'tarazu run --app hello -- "$IORLIKE" -F -n 6 -b 96m -t 4m -r %s -o "$TESTBED_MOUNT/%s/out"'
AS_CLIENT = f'eval "$(tarazu sim testbed env {TESTBED})"; unset TARAZU_CONFIG TARAZU_CLIENTD_SOCKET; '
AS_CLIENT += "IORLIKE=$(echo /usr/lib/tarazu/lib/python3*/*-packages/tarazu/lib/testbed/iorlike); "


def walk(there: Machine, dist: Path) -> None:
    _step("a machine that was never touched", "and what is on it")
    there.run(
        f"useradd --create-home --uid 1000 {USER} && install -d /root/packages && install -d -o {USER} {FILES}"
    )
    for package in dist.glob("*.deb"):
        shutil.copy2(package, there.root / "root" / "packages")
    before = traces.of(there)
    _install(there)
    _lustre(there)
    _keys_and_settings(there)
    _units(there)
    _observe(there)
    _place(there)
    _off(there)
    _rotate(there)
    _upgrade(there)
    _uninstall(there)
    left = [line for line in traces.left(before, traces.of(there)) if f" {STAYS}" not in line]
    if left:
        raise SystemExit("day-one: left behind:\n" + "\n".join(left[:40]))
    _step("nothing is left", f"but what is {USER}'s own: {STAYS}/state/tarazu")


SINCE = time.monotonic()


def _step(name: str, text: str) -> None:
    print(f"{time.monotonic() - SINCE:4.0f} s  {name}: {text}", flush=True)


def _expect(what: object, text: str) -> None:
    if not what:
        raise SystemExit(f"day-one: expected {text}")


def _install(there: Machine) -> None:
    _step("install", "dpkg -i; nothing is enabled or started")
    names = " ".join(f"{package.name}_*.deb" for package in contents.PACKAGES)
    there.run(f"cd packages && dpkg -i {names}")
    units = there.run("systemctl list-unit-files --no-legend 'tarazu*'").splitlines()
    _expect(
        len(units) >= 7 and all(line.split()[1] == "disabled" for line in units), f"units, disabled: {units}"
    )
    active = there.run("systemctl list-units --no-legend --state=active 'tarazu*'")
    _expect(
        not active and "tarazu" not in there.run("ps -e -o args= | grep -v 'grep\\|ps -e' || :"),
        "no processes",
    )
    _step("units", "systemd-analyze verify finds nothing; security at most 4.0 each")
    names = " ".join(line.split()[0] for line in units)
    _expect(
        not there.run(f"systemd-analyze verify --man=no {names} 2>&1"), "no word of systemd-analyze verify"
    )
    for name in names.split():
        there.run(f"systemd-analyze security --threshold=40 --no-pager {name}")
    there.run("getent passwd tarazu && logrotate --debug /etc/logrotate.d/tarazu")


def _lustre(there: Machine) -> None:
    _step("Lustre", "the testbed stands for it: one OSS, 6 OSTs, one of them slow")
    up = f"tarazu sim testbed up {TESTBED} --no-daemons --osss 1 --osts-per-oss 6 --ost-size 40G --slow 4=8"
    there.run(f"{up} --fill 0.1,0.1,0.6,0.1,0.1,0.1", user=USER)


def _write(there: Machine, path: str, text: str) -> None:
    file = there.root / path.lstrip("/")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def _keys_and_settings(there: Machine) -> None:
    _step("init", "tarazu init: settings, keys, the next command")
    init = "tarazu init --role mdsd --mdsd 127.0.0.1"
    said = there.run(init)
    _expect(
        said.endswith("next:      systemctl enable --now tarazu-mdsd\n"), f"the next command, found {said}"
    )
    _expect(
        there.run(f"{init} && stat -c %U /etc/tarazu/keys/server.key").endswith("\ntarazu\n"),
        "keys of tarazu's",
    )
    there.run("tarazu config keys list")
    _step("settings", "conf.d, tarazu config check")
    _write(there, "/etc/tarazu/conf.d/site.toml", SITE.replace("interval_s", "intervall_s"))
    wrong = there.run("tarazu config check", fails=True)
    _expect(
        "site.toml" in wrong and "interval_s" in wrong, f"the file and the name that was meant, found {wrong}"
    )
    _write(there, "/etc/tarazu/conf.d/site.toml", SITE)
    for name, root in ROOTS.items():
        text = f"[Service]\nEnvironment=TARAZU_ROOT={TESTBED}/{root}\n"
        _write(there, f"/etc/systemd/system/{name}.service.d/testbed.conf", text)
    there.run("systemctl daemon-reload && tarazu config check")


def _units(there: Machine) -> None:
    _step("start", f"systemctl enable --now {' '.join(SERVICES)}: each says that it is ready")
    there.run(f"systemctl enable --now {' '.join(SERVICES)}")
    for name in SERVICES:
        pid = _pid(there, name)
        _expect(there.run(f"ps -o user= -p {pid}").strip() == "tarazu", f"{name} as the user tarazu")
        _expect(there.run(f"ps -o comm= -p {pid}").strip() == name[:15], f"its name in ps: {name}")
    there.run("systemctl reload tarazu-mdsd tarazu-clientd")
    _expect(_usable(there) == 6, "6 OSTs in `tarazu status`")


def _pid(there: Machine, name: str) -> int:
    shown = there.run(f"systemctl show -P ActiveState -P MainPID {name}").split()
    _expect(
        shown[0] == "active" or shown[1] == "active", f"{name} active, found {shown}: {_log(there, name)}"
    )
    return int(next(word for word in shown if word.isdecimal()))


def _log(there: Machine, name: str) -> str:
    return there.run(f"journalctl --no-pager -n 20 -u {name} || :")


def _usable(there: Machine) -> int:
    """How many OSTs mdsd has heard of, once it has heard of all six."""
    known = 0
    for _ in range(60):
        with contextlib.suppress(Failed):  # mdsd has just been started
            systems = json.loads(there.run("tarazu status --json"))["mdsd"]["file_systems"]
            known = sum(len(system["osts"]) for system in systems.values())
        if known == 6:
            break
        time.sleep(0.5)
    return known


def _job(there: Machine, number: int) -> None:
    there.run(AS_CLIENT + JOB % (number, f"run{number}"), user=USER)


def _observe(there: Machine) -> None:
    _step("observe", f"three jobs of {USER} are recorded, none is placed")
    for number in range(3):
        _job(there, number)
    history = there.run(f"{AS_CLIENT} tarazu history list hello --json", user=USER)
    _expect(
        len(json.loads(history)) >= 1 and "placed" not in there.run("cat /var/log/tarazu/audit.log || :"),
        history,
    )
    _step("report", "what placement would have brought")
    report = json.loads(there.run(f"{AS_CLIENT} tarazu history report --since 1d --json", user=USER))
    _expect(report, "a report")


def _allocated(there: Machine) -> int:
    return int(there.run("grep -hc status=allocated /var/log/tarazu/audit.log || :").strip() or 0)


def _place(there: Machine) -> None:
    _step("place", "run.mode = place; the fourth job is planned, allocated and placed")
    _write(
        there,
        "/etc/tarazu/conf.d/mode.toml",
        '[run]\nmode = "place"\n# Two seconds are enough where a machine has nothing else to do.\nwait_s = 30\n',
    )
    there.run("tarazu config check")
    _job(there, 3)
    said = there.run("tail -n 3 .local/state/tarazu/jobs.log", user=USER) + _log(there, "tarazu-clientd")
    _expect(_allocated(there) == 1, f"one line of the audit log with status=allocated, found {said}")
    said = there.run(f"{AS_CLIENT} tarazu job explain $TESTBED_MOUNT/run3/out.0", user=USER)
    _expect("outcome: hit" in said, f"the file's reason, found {said}")


def _off(there: Machine) -> None:
    _step("off", "tarazu disable --site; the next job is left alone; enable --site")
    there.run("tarazu disable --site --reason 'first day'")
    _job(there, 4)
    _expect(_allocated(there) == 1, "no allocation while tarazu is off")
    there.run("tarazu enable --site")
    for _ in range(50):  # clientd and mdsd look twice a second
        time.sleep(0.2)
        if "stopped by" not in there.run("tarazu status --json || :"):
            break
    time.sleep(1.0)


def _rotate(there: Machine) -> None:
    _step("logs", "logrotate; the next allocation is in the new file")
    there.run(
        "logrotate --force /etc/logrotate.d/tarazu && rm -f /var/lib/logrotate/status && ls /var/log/tarazu/audit.log.1"
    )
    _job(there, 5)
    _expect(_allocated(there) == 1, "one allocation in the new audit log")


OVER = "/var/tmp/over"
"""What a job that runs over the upgrade waits for, and has said."""
LONG = f'echo one >"$TESTBED_MOUNT/over.1"; while ! test -e {OVER}.go; do sleep 0.2; done; '
LONG += 'echo two >"$TESTBED_MOUNT/over.2"'


def _begin_long_job(there: Machine) -> None:
    """Goes on in the background, with the library of the version that is there now."""
    led = f"tarazu run --app over -- sh -c '{LONG}'"
    there.run(f"{AS_CLIENT} ({led}; echo $? >{OVER}.status) >{OVER}.said 2>&1 </dev/null &", user=USER)
    _wait(there, "grep -l /usr/lib/tarazu/libtarazu.so /proc/[0-9]*/maps", "a job with the library")


def _end_long_job(there: Machine) -> None:
    gone = "grep -l 'libtarazu.so (deleted)' /proc/[0-9]*/maps"
    _wait(there, gone, "a job with the library of before, whose file is gone")
    there.run(f"touch {OVER}.go")
    _wait(there, f"cat {OVER}.status", "the end of the job that ran over the upgrade")
    said = there.run(f"cat {OVER}.status {OVER}.said")
    _expect(said == "0\n", f"status 0 and no word of the job that ran over the upgrade, found {said}")
    run = there.run(f"{AS_CLIENT} tarazu history show over --json", user=USER)
    _expect(json.loads(run)["files"] == 2, f"both of its files in the history, found {run}")
    there.run(f"rm -f {OVER}.*")


def _wait(there: Machine, command: str, text: str) -> None:
    for _ in range(100):
        with contextlib.suppress(Failed):
            there.run(command)
            return
        time.sleep(0.2)
    raise SystemExit(f"day-one: expected {text}")


def _upgrade(there: Machine) -> None:
    _step("upgrade", "what runs is started anew, what does not run is not; the administrator's settings stay")
    _begin_long_job(there)
    old = [_pid(there, name) for name in SERVICES]
    there.run("echo '# ours' >>/etc/tarazu/tarazu.toml; cd packages && dpkg -i *.deb")
    new = [_pid(there, name) for name in SERVICES]
    _expect(not set(old) & set(new), f"other processes, found {old} and {new}")
    _expect("# ours" in there.run("tail -1 /etc/tarazu/tarazu.toml"), "the changed tarazu.toml")
    _expect(
        there.run("systemctl is-active tarazu-burstd || :").strip() == "inactive", "tarazu-burstd not started"
    )
    _expect(_usable(there) == 6, "6 OSTs in `tarazu status`")
    _step("upgrade", "a job that ran meanwhile kept its library, and is in the history")
    _end_long_job(there)


def _uninstall(there: Machine) -> None:
    _step("uninstall", "dpkg -r keeps settings, keys and what was learned; dpkg -P takes them too")
    there.run(f"tarazu sim testbed down {TESTBED}", user=USER)
    there.run(f"dpkg -r {ALL}")
    _expect("tarazu" not in there.run("ps -e -o args= | grep -v 'grep\\|ps -e' || :"), "no processes")
    there.run("test -d /etc/tarazu/keys && test -d /var/lib/tarazu/mdsd && ! test -e /usr/lib/tarazu")
    there.run(f"dpkg -P {ALL}")
    there.run("rm -rf /etc/systemd/system/tarazu-*.service.d && systemctl daemon-reload")
