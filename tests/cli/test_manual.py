"""Man pages and completion: made from the parsers, and as man and bash want them."""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from tarazu import config
from tarazu.cli import COMMANDS
from tarazu.cli.manual import completion, described, pages, roff
from tarazu.cli.manual.__main__ import write

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("share")
    write(directory)
    return directory


def test_there_is_a_page_for_each_command_each_daemon_and_the_settings(share: Path) -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    wanted = {f"tarazu-{name}.1" for name in COMMANDS} | {"tarazu.1", "tarazu.toml.5"}
    wanted |= {f"{name}.8" for name in scripts if name != "tarazu"}
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
        ["groff", "-man", "-Tascii", "-P-c", "-P-b", "-P-u", "-rLL=300n", share / "man/man1/tarazu-keys.1"],
        capture_output=True,
        text=True,
        check=True,
    )
    text = " ".join(done.stdout.split())
    keys = described.of_parser(described.command("keys")[0], "")
    assert [verb.name for verb in keys.verbs] == [
        "tarazu keys create",
        "tarazu keys list",
        "tarazu keys revoke",
    ]
    for command in (keys, *keys.verbs):
        for option in (*command.options, *command.arguments):
            assert option.help.replace("`", "") in text and all(flag in text for flag in option.flags)
    assert "tarazu keys create client --name login1 --uids 1000-1999,2500" in text


def test_the_page_of_settings_has_each_with_its_default(share: Path) -> None:
    text = (share / "man/man5/tarazu.toml.5").read_text()
    found = re.findall(r"^\.SS \"\[(\w+)\]\"|^\\fB(\w+)\\fR = (.*)", text, re.MULTILINE)
    names = [name for _, name, _ in found if name]
    assert names == [name for cls in config.SECTIONS.values() for name in cls.__dataclass_fields__]
    assert [section for section, _, _ in found if section] == list(config.SECTIONS)


@pytest.mark.parametrize(
    "text", [".de x", "'br", "a\\b", "`x` .y\n.z", "-1 ~ ^ — ü", "\\fBx", ".\n.", " \t.", "..", '"q"']
)
def test_no_text_becomes_a_request(text: str) -> None:
    for line in [*roff.inline(text).split("\n"), *roff.escape(text).split("\n")]:
        assert not line.startswith((".", "'")) and line.isascii()
        assert set(re.findall(r"\\(.)", line)) <= set("&e-(fR[:B")
        assert text != "\\fBx" or line == r"\efBx"


def complete(script: Path, home: Path, *words: str) -> list[str]:
    """What bash offers for the last of the words."""
    text = (
        'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tarazu; '
        '[[ ${#COMPREPLY[@]} -gt 0 ]] && printf "%s\\n" "${COMPREPLY[@]}"; true'
    )
    command = ["bash", "--norc", "-uc", text, "bash", str(script), "tarazu", *words]
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
        ("che",): ["check-app"],
        ("bursts", "re"): ["remap", "report"],
        ("--debug", "bursts", "report", "--day"): ["--days"],
        ("run", "--mode", ""): ["advise", "observe", "place"],
        ("run", "--mode", "=", "pl"): ["place"],
        ("run", "--mode", "="): ["advise", "observe", "place"],
        ("run", "--app", "io"): ["ior-easy"],
        ("predict", ""): ["ior-easy", "wrf.exe"],
        ("disable", "--job", ""): ["20261122-ab"],
        ("status", "--config", "si"): ["site one.toml"],
        ("keys", "list", "--directory", "k"): ["keys"],
        ("run", "--", "bas"): ["bash", "bashbug"],
        ("run", "--", "ls", "-"): [],
        ("nosuch", ""): sorted(COMMANDS),
    }.items():
        offered = complete(script, tmp_path, *words)
        assert set(wanted) <= set(offered) if words[-1] == "bas" else offered == wanted, words
    assert complete(script, tmp_path, "") == sorted(COMMANDS)
    assert "--undo" in complete(script, tmp_path, "tune", "--")


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
        os.write(terminal, b"echo tarazu; tarazu check-a\t")
        while b"check-app " not in seen:
            seen += os.read(terminal, 4096)
    finally:
        os.close(terminal)
        os.waitpid(process, 0)


def test_the_script_is_made_anew_from_the_parsers() -> None:
    assert completion.script().count("'bursts report --days'") == 1
    assert r"tarazu\-doctor(1)" in pages.top_page()
