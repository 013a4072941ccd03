"""Man pages and completion: made from the parsers, and as man and bash want them."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
from pathlib import Path

import manual
import pytest

from tarazu import config
from tarazu.cli import below, command
from tarazu.daemons.programs import programs
from tarazu.part import sections

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("share")
    manual.write(directory)
    return directory


def test_there_is_a_page_for_each_command_each_daemon_and_the_settings(share: Path) -> None:
    wanted = {f"tarazu-{name}.1" for name in below("")} | {"tarazu.1", "tarazu.toml.5"}
    wanted |= {f"{name}.8" for name in programs()}
    assert {path.name for path in share.glob("man/*/*")} == wanted
    assert all(path.parent.name == f"man{path.suffix[1:]}" for path in share.glob("man/*/*"))


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_groff_has_nothing_against_a_page(share: Path, tmp_path: Path) -> None:
    command = ["groff", "-man", "-ww", "-z", "-Tutf8"]
    done = subprocess.run(
        [*command, *sorted(share.glob("man/*/*"))], check=False, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    broken = tmp_path / "broken.1"
    broken.write_text((share / "man/man1/tarazu.1").read_text() + ".NOSUCH\n\\[nosuch]\n")
    assert "NOSUCH" in subprocess.run([*command, broken], check=False, capture_output=True, text=True).stderr


@pytest.mark.skipif(shutil.which("groff") is None, reason="needs groff")
def test_a_page_says_what_help_says(share: Path) -> None:
    done = subprocess.run(
        ["groff", "-man", "-Tascii", "-P-c", "-P-b", "-P-u", "-rLL=300n", share / "man/man1/tarazu-config.1"],
        capture_output=True,
        text=True,
        check=True,
    )
    text = " ".join(done.stdout.split())
    parsers = list(manual.walk(command("config")))
    assert {"tarazu config check", "tarazu config keys revoke"} <= {parser.prog for parser in parsers}
    for parser in parsers:
        assert parser.prog in text
        for action in parser._actions:
            assert all(flag in text for flag in action.option_strings if flag not in ("-h", "--help"))
            assert (action.help or "") in text or "--help" in action.option_strings
    assert "tarazu config keys create client --name login1 --uids 1000-1999,2500" in text


def test_the_page_of_settings_has_each_with_its_default(share: Path) -> None:
    text = (share / "man/man5/tarazu.toml.5").read_text()
    names = re.findall(r"^#(\w+) = .", text, re.MULTILINE)
    known = {**config.SECTIONS, **sections()}
    assert names == [name for cls in known.values() for name in cls.__dataclass_fields__]
    assert re.findall(r"^\[([\w.]+)\]", text, re.MULTILINE) == list(known)


def test_no_text_becomes_a_request(share: Path) -> None:
    known = {*"TH SH SS TP B RS RE nf fi nh ad br".split()}
    for path in share.glob("man/*/*"):
        text = path.read_text()
        assert text.isascii() and set(re.findall(r"^[.'] *(\w*)", text, re.MULTILINE)) <= known, path


def complete(script: Path, home: Path, *words: str) -> list[str]:
    """What bash offers for the last of the words."""
    text = (
        'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _shtab_tarazu; '
        '[[ ${#COMPREPLY[@]} -gt 0 ]] && printf "%s\\n" "${COMPREPLY[@]}"; true'
    )
    command = ["bash", "--norc", "-c", text, "bash", str(script), "tarazu", *words]
    done = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        cwd=home,
        env={"HOME": str(home), "PATH": "/bin"},
    )
    assert done.returncode == 0 and done.stderr == "", done.stderr
    return sorted(done.stdout.splitlines())


def test_bash_offers_commands_verbs_options_choices_files_and_names(share: Path, tmp_path: Path) -> None:
    script = share / "bash-completion/completions/tarazu"
    (tmp_path / ".local/state/tarazu/history/scratch/ior-easy").mkdir(parents=True)
    (tmp_path / ".local/state/tarazu/history/scratch/wrf.exe").mkdir()
    (tmp_path / ".local/state/tarazu/maps/20261122-ab").mkdir(parents=True)
    (tmp_path / "site one.toml").touch()
    (tmp_path / "keys").mkdir()
    for words, wanted in {
        ("doc",): ["doctor"],
        ("job", "che"): ["check-app"],
        ("config", "ke"): ["keys"],
        ("history", "list", "--js"): ["--json"],
        ("run", "--mode", ""): ["advise", "observe", "place"],
        ("run", "--app", "io"): ["ior-easy"],
        ("history", "predict", ""): ["ior-easy", "wrf.exe"],
        ("disable", "--job", ""): ["20261122-ab"],
        ("status", "--config", "si"): ["site one.toml"],
        ("config", "keys", "list", "--directory", "k"): ["keys"],
        ("run", "--", "bas"): ["bash", "bashbug"],
        ("run", "--", "ls", "si"): ["site one.toml"],
        ("nosuch", ""): sorted(below("")),
    }.items():
        offered = complete(script, tmp_path, *words)
        assert set(wanted) <= set(offered) if words[-1] == "bas" else offered == wanted, words
    assert complete(script, tmp_path, "") == sorted(below(""))
    assert "--site" in complete(script, tmp_path, "disable", "--")


def test_a_tab_runs_nothing_that_somebody_named_a_directory(share: Path, tmp_path: Path) -> None:
    """Map directories may be shared with other users."""
    maps = tmp_path / ".local/state/tarazu/maps"
    for name in ("$(touch ran)", "`touch ran`", "two words"):
        (maps / name).mkdir(parents=True)
    offered = complete(share / "bash-completion/completions/tarazu", tmp_path, "job", "show", "")
    assert offered == ["\\$\\(touch\\ ran\\)", "\\`touch\\ ran\\`", "two\\ words"]
    assert not (tmp_path / "ran").exists()


def test_an_interactive_bash_completes_at_a_tab(share: Path, tmp_path: Path) -> None:
    script = share / "bash-completion/completions/tarazu"
    process, terminal = pty.fork()
    if process == 0:
        os.execve(
            shutil.which("bash") or "bash",
            ["bash", "--norc", "--noprofile", "-i"],
            {"HOME": str(tmp_path), "PATH": "/bin", "PS1": "> ", "TERM": "dumb", "INPUTRC": "/dev/null"},
        )
    try:
        os.write(terminal, f"source {script}; echo re''ady\n".encode())
        seen = b""
        while b"ready" not in seen:
            seen += os.read(terminal, 4096)
        os.write(terminal, b"echo tarazu; tarazu job check-a\t")
        while b"check-app " not in seen:
            seen += os.read(terminal, 4096)
    finally:
        os.close(terminal)
        os.waitpid(process, 0)
