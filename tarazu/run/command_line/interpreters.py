"""Which script an interpreter runs, and which arguments are the script's own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

import msgspec

_RUNNERS = frozenset(
    """
    mpi4py mpi4py.run mpi4py.futures mpi4py.bench cProfile profile pdb trace coverage torch.distributed.run
    torch.distributed.launch accelerate.commands.launch memory_profiler scalene viztracer torchrun deepspeed
    accelerate kernprof
    """.split()
)
"""Modules of Python, and commands, that run another script."""


class _Interpreter(msgspec.Struct, frozen=True):
    """How it reads its command line. Options without dashes; what is not named here has no value."""

    names: str
    """Its basenames; `*` stands for a version."""
    values: str = ""
    """Followed by a value, in the same word or the next."""
    attached: str = ""
    """Letters whose value is the rest of their word."""
    code: str = ""
    """Their value is the program itself."""
    module: str = ""
    """Their value is the name of the program."""
    words: bool = False
    """Long options have a single dash."""
    subcommands: str = ""
    """Words that are passed over."""
    command: bool = False
    """`-c` is a flag: the first word that is no option is a command line."""


_INTERPRETERS = (
    _Interpreter("python* ipython* pypy*", "W X Q check-hash-based-pycs", code="c", module="m"),
    _Interpreter(
        "sh bash dash zsh ksh mksh csh tcsh fish",
        "o O rcfile init-file init-command",
        command=True,
        attached="D",
    ),
    _Interpreter("perl*", "I", attached="MmliF0CDxV", code="e E"),
    _Interpreter("ruby*", "r I C E external-encoding encoding", attached="WKxTFi0", code="e"),
    _Interpreter("Rscript", code="e"),
    _Interpreter("R", "g gui d debugger", code="e", module="f file", subcommands="CMD BATCH"),
    _Interpreter(
        "julia*",
        "J sysimage p procs t threads H home L load C cpu-target machine-file",
        attached="gO",
        code="e E eval print",
    ),
    _Interpreter(
        "java",
        "cp classpath class-path p module-path upgrade-module-path add-modules add-opens add-exports add-reads",
        module="jar m module",
        words=True,
    ),
    _Interpreter("lua* luajit*", "l", code="e"),
    _Interpreter("node nodejs", "r require C conditions import loader env-file", code="e eval p print"),
    _Interpreter("octave octave-cli", "p path", code="eval"),
    _Interpreter("matlab", "sd logfile c", code="batch r", words=True),
    _Interpreter("tclsh* wish* expect"),
    _Interpreter("ncl gnuplot idl gawk awk", "f"),
)
_BY_NAME = {name: interpreter for interpreter in _INTERPRETERS for name in interpreter.names.split()}

_TORCH = _Interpreter(
    "torch accelerate deepspeed kernprof coverage",
    """
    nnodes nproc_per_node nproc-per-node node_rank node-rank rdzv_backend rdzv-backend rdzv_endpoint rdzv-endpoint
    rdzv_id rdzv-id rdzv_conf rdzv-conf max_restarts max-restarts monitor_interval monitor-interval start_method
    start-method role log_dir log-dir r redirects t tee master_addr master-addr master_port master-port local_addr
    local-addr config_file num_processes num_machines machine_rank main_process_ip main_process_port mixed_precision
    gpu_ids hostfile include exclude num_nodes num_gpus launcher launcher_args o outfile rcfile
    """,
    subcommands="launch run",
)
_PYTHON_RUNNER = _Interpreter("", "o outfile s sort f file C coverdir rc count-as", module="m")
_MPI4PY = _Interpreter("", "rc", module="m", words=True)


_REDIRECTION = r"(?:[012]?>>?|&>>?|<)"
_TARGET = r"(?:&[12]|[\w./+-]+)"


class ProgramCall(msgspec.Struct, frozen=True):
    """What a command runs."""

    name: str
    """Basename of the script, or of the command itself."""
    arguments: tuple[str, ...]
    command: tuple[str, ...] = ()
    """The words of `sh -c '…'` where they are one plain command, to be read as a command line of its own."""


def read(words: Sequence[str]) -> ProgramCall:
    """The program of a command without launchers: `python3 -u train.py 5` → `train.py` with `5`."""
    name = PurePath(words[0]).name or words[0]
    if name in _RUNNERS:
        return _read(words, name, _TORCH)
    stem = name.removesuffix("-dbg").rstrip("0123456789.")
    interpreter = _BY_NAME.get(name) or _BY_NAME.get(f"{stem}*")
    return _read(words, name, interpreter) if interpreter else ProgramCall(name, tuple(words[1:]))


def _read(words: Sequence[str], name: str, how: _Interpreter) -> ProgramCall:
    """`words` begin with the interpreter, or with the module that runs another."""
    position, inline = 1, False
    while position < len(words):
        word = words[position]
        if word == "--":
            position += 1
            break
        if how.command and word[0:1] == "+":
            position += 1 + (word in ("+o", "+O"))
            continue
        if word == "-" or not word.startswith("-"):
            if word in how.subcommands.split():
                position += 1
                continue
            break
        if how.command and re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", word):
            inline = True
        option, value, position = _option(words, position, how)
        if option in how.code.split():
            return _statement(name, value, words[position:])
        if option in how.module.split():
            return _named(value or name, words[position - 1 :])
    if position >= len(words) or words[position] == "-":
        return ProgramCall(name, ())
    if inline:
        return _command(name, words[position], words[position + 1 :])
    return ProgramCall(PurePath(words[position]).name or name, tuple(words[position + 1 :]))


def _option(words: Sequence[str], position: int, how: _Interpreter) -> tuple[str, str, int]:
    """(the option that ends the word, its value, where what follows begins)."""
    word = words[position]
    following = words[position + 1] if position + 1 < len(words) else ""
    valued = {*how.values.split(), *how.code.split(), *how.module.split()}
    if word.startswith("--") or how.words:
        option, equals, value = word.lstrip("-").partition("=")
        if equals or option not in valued:
            return option, value, position + 1
        return option, following, position + 2
    for i, letter in enumerate(word[1:], 1):
        if letter in valued:
            rest = word[i + 1 :]
            return (letter, rest, position + 1) if rest else (letter, following, position + 2)
        if letter in how.attached:
            break
    return "", "", position + 1


def _named(name: str, words: Sequence[str]) -> ProgramCall:
    """A module or archive by name; one that runs another script is read on. `words` begin with it."""
    if name in _RUNNERS and len(words) > 1:
        how = _TORCH if name.startswith(tuple(_TORCH.names.split())) else _PYTHON_RUNNER
        if name.startswith("mpi4py"):
            how = _MPI4PY
        return _read([name, *words[1:]], name, how)
    return ProgramCall(PurePath(name).name or name, tuple(words[1:]))


def _statement(name: str, code: str, rest: Sequence[str]) -> ProgramCall:
    """A program on the command line itself: the interpreter's name, but `matlab -batch "model(3)"` is `model`."""
    call = re.fullmatch(r"\s*([A-Za-z]\w*)\s*(?:\(([^()]*)\))?\s*;?\s*", code)
    if name == "matlab" and call:
        return ProgramCall(call.group(1), tuple((call.group(2) or "").replace(",", " ").split()))
    return ProgramCall(name, tuple(rest))


def _without_redirections(text: str) -> str:
    """`./app > out 2>&1` → `./app`."""
    words = list(re.finditer(r"\S+", text))
    count = len(words)
    while count > 1:
        last, before = words[count - 1].group(), words[count - 2].group()
        if re.fullmatch(_REDIRECTION + _TARGET, last):
            count -= 1
        elif count > 2 and re.fullmatch(_TARGET, last) and re.fullmatch(_REDIRECTION, before):
            count -= 2
        else:
            break
    return text[: words[count - 1].end()] if words else text


def _command(name: str, text: str, rest: Sequence[str]) -> ProgramCall:
    """`sh -c TEXT`: one plain command is read as if it were typed; of anything else the shell is the program."""
    import shlex  # few commands are texts for a shell

    text = _without_redirections(text)
    try:
        words = shlex.split(text)
    except ValueError:
        words = []
    while words and (words[0] == "exec" or re.match(r"[A-Za-z_]\w*=", words[0])):
        words = words[1:]
    if (
        not words
        or re.search(r"[;&|<>()$`\n*?{}]", text)
        or words[0] in ("cd", "source", ".", "for", "while", "if")
    ):
        return ProgramCall(name, tuple(rest))
    return ProgramCall(name, tuple(rest), tuple(words))
