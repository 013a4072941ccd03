"""Write the man pages and bash's completion: `python packaging/manual.py DIR`.

DIR/man/man1/tarazu.1, tarazu-run.1 …    the commands
DIR/man/man5/tarazu.toml.5               the settings
DIR/man/man8/tarazu-mdsd.8 …             the daemons
DIR/bash-completion/completions/tarazu

argparse-manpage and shtab make them of the parsers that `--help` prints; the settings are `tarazu config default`.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import shtab
from argparse_manpage.manpage import Manpage

from tarazu import config
from tarazu.cli import ABOUT, below, command, commands, groups
from tarazu.daemons.programs import programs
from tarazu.part import sections

STATUS = {
    "0": "It did what it was asked.",
    "1": "It could not, or found what should not be; one line on standard error says which.",
    "2": "The command line, the configuration or a file is not what it must be.",
}
RUN_STATUS = {
    "N": "The program's own, and its own signal; 127 where there is no such program, 126 where it cannot be run."
}
VARIABLES = {
    "TARAZU_CONFIG": "instead of /etc/tarazu/tarazu.toml",
    "TARAZU_SECTION_NAME": "one setting, before all files: TARAZU_RUN_MODE is run.mode",
    "TARAZU_DISABLE": "1: programs run without tarazu",
}
FILES = {
    "/etc/tarazu/tarazu.toml": "the settings, tarazu.toml(5)",
    "/etc/tarazu/conf.d/*.toml": "more of them, read after it in the order of their names",
    "~/.local/state/tarazu/jobs.log": "a line for each job step that was led",
    "~/.local/state/tarazu/history": "the remembered runs",
}
SIGNALS = {
    "SIGTERM": "ends it; what it holds is written first",
    "SIGHUP": "the settings are read again; its log says which need a restart",
}
SETTINGS = """TOML, in UTF-8: a table for each section, in it name = value. One file serves all nodes. What it does not
say has its default. Before all files count the variables of the environment: TARAZU_RUN_MODE is run.mode. `tarazu
config check` names each mistake with its file and line, `tarazu config` prints what is in force, `tarazu config
default` the following."""
_FILE, _DIRECTORY = {"bash": "_shtab_compgen_files"}, {"bash": "_shtab_compgen_dirs"}
_PROGRAM, _STEP, _APPLICATION = (
    {"bash": f"_tarazu_{kind}"} for kind in ("program_or_file", "steps", "applications")
)
COMPLETE = {
    "FILE": _FILE,
    "PATH": _FILE,
    "DIR": _DIRECTORY,
    "DIRECTORY": _DIRECTORY,
    "directory": _DIRECTORY,
    "PROGRAM [ARGS…]": _PROGRAM,
    "program": _PROGRAM,
    "application": _APPLICATION,
    "APP": _APPLICATION,
    "RUN": _STEP,
    "JOB": _STEP,
}
"""A word in the place of an argument → what bash offers there."""
PREAMBLE = r"""
# Names as words that no shell expands: never by compgen -W, which runs what a name such as $(reboot) holds.
_tarazu_names() { # CURRENT DIRECTORY…
    local current=$1 word
    shift
    [[ -d $1 ]] || return
    for word in "${@%/}"; do
        word=${word##*/}
        [[ $word == "$current"* ]] && printf '%q\n' "$word"
    done
}
_tarazu_applications() {
    _tarazu_names "$1" "${TARAZU_RUN_STATE_DIR:-$HOME/.local/state/tarazu}/history"/*/*/
}
_tarazu_steps() {
    _tarazu_names "$1" "${TARAZU_RUN_MAP_DIR:-$HOME/.local/state/tarazu/maps}"/*/
}
_tarazu_program_or_file() { # from the program on all words are its own: files
    if [[ ${COMP_WORDS[COMP_CWORD-1]} == -- || $completed_positional_actions == 0 && $pos_only == 0 ]]; then
        compgen -c -- "$1"
    else
        compgen -f -- "$1"
    fi
}
"""


def write(directory: Path) -> list[Path]:
    """All of them below `directory`, as below /usr/share; what was written. Raises OSError."""
    texts = {f"man/man{name[-1]}/{name}": text for name, text in pages().items()}
    texts["bash-completion/completions/tarazu"] = completion()
    for name, text in texts.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return [directory / name for name in texts]


def pages() -> dict[str, str]:
    """File name → roff. Imports every command and daemon."""
    pages = [f"tarazu-{name}(1)" for name in below("")]
    top = argparse.ArgumentParser(
        prog="tarazu", description=command("", ()).description, usage="tarazu COMMAND [OPTIONS]"
    )
    for heading, names in groups().items():
        group = top.add_argument_group(heading)
        for name in names:
            group.add_argument(name, metavar=f"tarazu-{name}(1)", help=commands()[name][1])
    found = {"tarazu.toml.5": settings_page()}
    found["tarazu.1"] = page(
        top, 1, STATUS, [*pages, "tarazu.toml(5)", *(f"{d.prog}(8)" for d, _ in daemons())], ABOUT
    )
    for name in below(""):
        parser = command(name)
        status = RUN_STATUS if name == "run" else STATUS
        found[f"tarazu-{name}.1"] = page(
            parser, 1, status, ["tarazu(1)", "tarazu.toml(5)"], commands()[name][1]
        )
    for parser, opening in daemons():
        summary, parser.description = parser.description or "", opening
        see = ["tarazu(1)", "tarazu-doctor(1)", "tarazu-status(1)", "tarazu.toml(5)"]
        found[f"{parser.prog}.8"] = page(
            parser, 8, STATUS, see, summary[:1].lower() + summary[1:].rstrip(".")
        )
    return found


def daemons() -> Iterator[tuple[argparse.ArgumentParser, str]]:
    """Every daemon that the package installs, and how its module opens; it has `command_line() -> ArgumentParser`. Not
    those of a part that was taken away.
    """
    for _, name in sorted(programs().items()):
        module = import_module(name)
        yield module.command_line(), (module.__doc__ or "").strip()


def page(
    parser: argparse.ArgumentParser, section: int, status: dict[str, str], see: list[str], summary: str
) -> str:
    """A page of one parser and its verbs."""
    for each in walk(parser):
        each.description = _filled(each.description or "")
    title = {1: "User commands", 8: "Administration"}[section]
    data = {
        "project_name": "tarazu",
        "version": version("tarazu"),
        "manual_section": section,
        "manual_title": title,
    }
    made = Manpage(parser, data | {"description": summary}, "single-commands-section")
    made.prog, made.date = parser.prog.replace(" ", "-"), ""
    parts = {"ENVIRONMENT": VARIABLES, "FILES": FILES, "EXIT STATUS": status} | (
        {"SIGNALS": SIGNALS} if section == 8 else {}
    )
    for heading, rows in parts.items():
        made.add_section(heading, "=", "\n".join(f".TP\n.B {word}\n{text}" for word, text in rows.items()))
    made.add_section("SEE ALSO", "=", ", ".join(rf"\fB{each}\fR" for each in see))
    verbs = any(isinstance(action, argparse._SubParsersAction) for action in parser._actions)
    text = str(made).replace("POSITIONAL ARGUMENTS", "VERBS" if verbs else "ARGUMENTS")
    text = re.sub(r"\S{60,}", lambda match: match[0].replace(",", r",\:"), text)
    return _ascii(text.replace(".SH NAME", ".nh\n.ad l\n.SH NAME", 1))


def settings_page() -> str:
    """tarazu.toml(5)."""
    lines = re.sub(
        r"^(?=[.'])", r"\\&", config.commented(sections()).replace("\\", "\\e"), flags=re.MULTILINE
    )
    return _ascii(
        f'.TH "TARAZU.TOML" "5" "" "tarazu {version("tarazu")}" "File formats"\n.SH NAME\n'
        r"tarazu.toml \- settings of tarazu's daemons and commands"
        "\n.SH SYNOPSIS\n/etc/tarazu/tarazu.toml\n.br\n/etc/tarazu/conf.d/*.toml\n.SH DESCRIPTION\n"
        f"{SETTINGS}\n.SH SETTINGS\n.nf\n{lines}.fi\n.SH SEE ALSO\n"
        r"\fBtarazu(1)\fR, \fBtarazu-config(1)\fR, \fBtarazu-doctor(1)\fR"
        "\n"
    )


def _filled(text: str) -> str:
    """Paragraphs in one line each; lines that are indented, or set in columns, stay as they are."""
    parts: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        prose = ""
        for line in paragraph.split("\n"):
            if line.startswith(" ") or re.match(r"(tarazu [a-z]|eval )", line) or "   " in line:
                parts += [prose, f".nf\n{line}\n.fi"] if prose else [f".nf\n{line}\n.fi"]
                prose = ""
            else:
                prose = f"{prose} {line}".strip()
        parts += [prose, ""] if prose else [""]
    return "\n".join(parts).replace("\n.fi\n.nf\n", "\n").strip("\n")


def _ascii(text: str) -> str:
    """As groff reads it wherever it is."""
    return re.sub(r"[^\x00-\x7f]", lambda match: rf"\[u{ord(match[0]):04X}]", text)


def walk(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """It and all verbs."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb in action.choices.values():
                yield from walk(verb)


def completion() -> str:
    """The script for bash. Imports every command."""
    top = command("")
    for parser in walk(top):
        for action in parser._actions:
            word = action.metavar if isinstance(action.metavar, str) else ""
            word = word or (action.dest.upper() if action.option_strings else action.dest)
            kind = COMPLETE.get(word, _FILE if action.type is Path else None)
            kind = _APPLICATION if action.dest in ("app", "application") else kind
            if kind and not action.choices and action.nargs != 0:
                action.complete = kind  # type: ignore[attr-defined]
            elif isinstance(action.choices, list):
                action.choices = [choice for choice in action.choices if choice != []]
    return shtab.complete(top, "bash", preamble=PREAMBLE)


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    for path in write(Path(sys.argv[1])):
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
