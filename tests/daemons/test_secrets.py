"""Secrets stay where they are: not in logs, statuses, command lines, dumps, or tracebacks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tarazu import config
from tarazu.cli import main
from tarazu.daemons.secrets import check_option, with_password
from tarazu.errors import ConfigError
from tarazu.wire import keys
from tarazu.wire.security import curve_for
from tests.daemons.conftest import Site, allocation, ask

PASSWORD = "pw+of/the:data@base"


def settings(tmp_path: Path, mode: int = 0o600, text: str = PASSWORD + "\n") -> config.Settings:
    file = tmp_path / "password"
    file.write_text(text)
    file.chmod(mode)
    return config.override(
        config.Settings(), "clientd", database="mysql://tarazu@db:3307/t?socket=/s", password_file=str(file)
    )


def test_a_password_comes_from_its_own_file(tmp_path: Path) -> None:
    from urllib.parse import unquote, urlsplit

    location = with_password(settings(tmp_path)).clientd.database
    parts = urlsplit(location)
    assert (parts.username, unquote(parts.password or ""), parts.hostname, parts.port) == (
        "tarazu",
        PASSWORD,
        "db",
        3307,
    )
    assert config.without_password(location) == "mysql://tarazu:***@db:3307/t?socket=/s"


@pytest.mark.parametrize(
    ("mode", "text"), [(0o644, PASSWORD), (0o600, ""), (0o600, "a\nb\n"), (0o600, "x" * 2000)]
)
def test_a_password_file_that_others_read_or_that_is_none_is_refused(
    tmp_path: Path, mode: int, text: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        with_password(settings(tmp_path, mode, text))
    assert PASSWORD not in str(caught.value) and "\n" not in str(caught.value)


def test_a_password_on_the_command_line_is_refused_and_not_repeated() -> None:
    with pytest.raises(ConfigError, match="no password on the command line") as caught:
        check_option("mysql://u:secret@db/t")
    assert "secret" not in str(caught.value)
    check_option("mysql://u@db/t")
    command = [sys.executable, "-m", "tarazu.daemons.clientd.service", "--database", "mysql://u:secret@db/t"]
    refused = subprocess.run(command, check=False, capture_output=True, text=True)
    assert refused.returncode == 2 and "secret" not in refused.stdout + refused.stderr


def test_a_key_does_not_show_its_secret_when_it_is_printed(tmp_path: Path) -> None:
    for role in keys.ROLES:
        keys.create(tmp_path, role)
    curve = curve_for("oss", tmp_path)
    assert curve and curve.own.secret
    assert curve.own.secret.decode() not in f"{curve!r} {curve} {curve.own}"


def test_a_run_with_keys_shows_no_secret_anywhere(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    started = {"mdsd": site.mdsd(), "ossd": site.start("ossd", "--verbose", "--name", "oss1")}
    status = site.wait_status(lambda status: status["osses"])
    ask(site.client(), allocation())
    main(["config", "--config", str(site.config)])
    main(["config", "keys", "list", "--directory", str(site.keys)])
    shown = (
        str(status) + capsys.readouterr().out + site.log("mdsd") + site.log("ossd") + site.audit.read_text()
    )
    for process in started.values():
        shown += Path(f"/proc/{process.pid}/cmdline").read_text()
        limits = Path(f"/proc/{process.pid}/limits").read_text()
        assert next(line for line in limits.splitlines() if "core" in line).split()[4:6] == ["0", "0"]
    for role in keys.ROLES:
        secret = keys.load(site.keys / f"{role}.key").secret
        assert secret and secret.decode() not in shown


def test_a_daemons_memory_is_not_dumped() -> None:
    code = (
        "import ctypes, resource, sys\n"
        "from tarazu.daemons.secrets import keep_memory_private\n"
        "before = ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)\n"  # PR_GET_DUMPABLE
        "keep_memory_private()\n"
        "print(before, ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), resource.getrlimit(resource.RLIMIT_CORE))"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert said.stdout == "1 0 (0, 0)\n"


def test_a_password_in_a_file_that_others_read_is_warned_of_with_that_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    main, more = tmp_path / "tarazu.toml", tmp_path / "conf.d/db.toml"
    more.parent.mkdir()
    main.write_text("[run]\nmode = 'place'\n")
    more.write_text("[clientd]\ndatabase = 'mysql://u:secret@db/t'\n")
    more.chmod(0o640)
    with_password(config.load(main, {}), str(main))
    assert not caplog.records
    more.chmod(0o644)
    with_password(config.load(main, {}), str(main))
    [record] = caplog.records
    assert record.getMessage().startswith(f"{more}: others can read") and "secret" not in record.getMessage()
