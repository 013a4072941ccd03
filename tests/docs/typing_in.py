"""Types the commands of the pages into a shell, page by page, and says which ones failed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.docs import not_run
from tests.docs.grammar import whole
from tests.docs.reading import ROOT, Block, blocks, script, simple_commands, typed
from tests.docs.scene import PROGRAMS, SITE, STANDS_FOR, WORK

LIMIT_S = 300.0
BARE = {"quickstart.md", "operator-guide.md", "operator-quickstart.md"}
"""Pages whose blocks begin on a machine that is no client of a file system."""
LOOKED_AT = (
    "tarazu",
    "make",
    "python",
    "python3",
    "pip",
    "git",
    "systemctl",
    "prometheus",
    "apt",
    "rpm",
    "tar",
)
"""Programs that are not called where `not_run.toml` says so."""
_SHIM = """\
#!/bin/bash
line="${0##*/} $*"
while IFS= read -r begins; do
    [[ "$line " == "$begins "* ]] && exit 0
done < %s/not_run
%s "$@"
status=$?
[ $status = 0 ] || echo "$BLOCK: exit status $status: $line" >> "$REPORT"
exit $status
"""
"""It says itself what failed: bash's trap does not see what stands before `&&`."""
_PAGE = """\
set -E -o pipefail
trap 'echo "$BLOCK: exit status $?: $BASH_COMMAND" >> "$REPORT"' ERR
export BLOCK REPORT=%(report)s
%(blocks)s
"""
_BLOCK = """\
BLOCK=%(name)s; cd %(start)s
source %(file)s
"""


class Done(NamedTuple):
    page: str
    typed: int
    failed: tuple[str, ...]
    seconds: float


def look_at_each() -> None:
    """Puts what decides whether a command is called before the programs themselves."""
    lines = [entry.begins for entry in not_run.entries() if not entry.block]
    (PROGRAMS / "not_run").write_text("".join(f"{line}\n" for line in lines))
    ours = [path.name for path in Path(sys.executable).parent.glob("tarazu-*")]
    for name in (*LOOKED_AT, *ours):
        stand_in = PROGRAMS / name
        if stand_in.exists():
            real = stand_in.rename(PROGRAMS / f".{name}")
        elif found := shutil.which(name, path=f"{Path(sys.executable).parent}:/usr/bin:/usr/sbin"):
            real = Path(found)
        else:
            continue
        stand_in.write_text(_SHIM % (PROGRAMS, real))
        stand_in.chmod(0o755)


def page(path: Path, env: dict[str, str], client: dict[str, str]) -> Done:
    """Its blocks in their order, each from the repository's folder; then what its prose names."""
    begin = time.monotonic()
    (SITE / "etc" / "stop").unlink(missing_ok=True)  # a page may have switched the site off
    chosen = [
        block for block in blocks(path) if block.language in ("bash", "console") and not _left_out(block)
    ]
    failed = _run(path.name, list(_scripts(chosen)), env if path.name in BARE else client)
    wanted = [each for each in typed(path) if each.in_prose and whole(each)]
    prose = list(dict.fromkeys(" ".join(_quoted(each.words)) for each in wanted))
    failed += _run(path.name, [(path.name, _meant(line)) for line in prose], client, WORK)
    commands = sum(len(list(simple_commands(script(block)))) for block in chosen)
    return Done(path.name, commands + len(prose), tuple(failed), time.monotonic() - begin)


def _left_out(block: Block) -> bool:
    first = next(simple_commands(script(block)), None)
    return first is not None and not_run.begins(first, block=True) is not None


def _quoted(words: tuple[str, ...]) -> Iterator[str]:
    for word in words:
        plain = word.strip("[]") if word.startswith("[") else word
        yield (
            plain
            if plain and not set(plain) & set(" '\"$;&|<>()")
            else "'" + plain.replace("'", "'\\''") + "'"
        )


def _meant(line: str) -> str:
    for words, value in STANDS_FOR.items():
        line = re.sub(rf"(?<=\s){words}(?=\s|$)", value, line)
    return line


def _scripts(chosen: list[Block]) -> Iterator[tuple[str, str]]:
    for block in chosen:
        if block.language == "bash":
            yield str(block), block.text
            continue
        for number, (command, printed) in enumerate(prompts(block.text)):
            out = PROGRAMS / f"printed-{block.page}-{block.line}-{number}"
            expected = json.dumps(printed)
            yield (
                str(block),
                f"{command} > {out} 2>&1\n{sys.executable} -m tests.docs.printed {out} <<'END'\n{expected}\nEND\n",
            )


def prompts(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each command behind a prompt, with the lines that it is said to print."""
    command, printed = "", list[str]()
    for line in text.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, printed
            command, printed = line[2:], []
        else:
            printed.append(line)
    if command:
        yield command, printed


def _run(name: str, scripts: list[tuple[str, str]], env: dict[str, str], start: Path = ROOT) -> list[str]:
    if not scripts:
        return []
    report = PROGRAMS / f"report-{name}"
    report.unlink(missing_ok=True)
    parts = []
    for number, (where, text) in enumerate(scripts):
        file = PROGRAMS / f"block-{name}-{number}.sh"
        file.write_text(text)
        parts.append(_BLOCK % {"name": "'" + where.replace("'", "'\\''") + "'", "start": start, "file": file})
    text = _PAGE % {"report": report, "blocks": "".join(parts)}
    output = PROGRAMS / f"output-{name}"
    with output.open("w") as out:
        shell = subprocess.Popen(
            ["bash", "--norc", "-c", text],
            env=env,
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=out,
            text=True,
            start_new_session=True,
        )
        late = []
        try:
            shell.communicate("y\n" * 100, timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            late = [f"{name}: not done after {LIMIT_S:g} s"]
            os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
    if "--show" in sys.argv:
        print(output.read_text())
    lines = report.read_text().splitlines() if report.exists() else []
    lines = [line for line in lines if not _rightly(line)]
    said = {line for line in lines if not line.partition(": ")[2].partition(": ")[2].startswith("source ")}
    return late + sorted(said, key=lines.index)


def _rightly(line: str) -> bool:
    """Of a line of the report: `page.md:7: exit status 1: tarazu doctor`."""
    found = re.fullmatch(r".*?: exit status (\d+): (.*)", line)
    return found is not None and not_run.as_it_should(found[2], int(found[1]))
