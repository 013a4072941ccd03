"""Read a command line that may begin with launchers: where the program is, how many ranks on how many hosts.

What is not known of an option is guessed: a word behind it that can be run is the program, any other its value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath

import msgspec

from tarazu.run.command_line.launcher_options import MPI, LauncherSyntax, dialect

_NUMBER = r"(\d{1,18})([kKmM]?)\b"
_TIMES = {"": 1, "k": 1 << 10, "m": 1 << 20}
"""As Slurm reads `-N 1k`."""
_ATTACHED = r"([A-Za-z]+)(\d+)$"
_ASSIGNMENT = r"[A-Za-z_]\w*\+?="
_REACHING_MCA = r"(plm|oob|ras|routed|ess|(prte|orte)(?!_(tag|timestamp|xml|output)))_"
"""Parameters of Open MPI that say how its daemons come to their hosts."""


class Option(msgspec.Struct, frozen=True):
    """One option of a launcher, as it was given."""

    name: str
    """In full, without dashes."""
    value: str
    words: tuple[str, ...]
    """The words of the command line that it takes."""


class CommandLine(msgspec.Struct, frozen=True):
    """What a command line says. 0: it does not say."""

    program_index: int
    """Where the program stands; with several (`:`) the first."""
    programs: tuple[tuple[str, ...], ...]
    """Each program with its arguments; more than one where the launcher starts several (`:`)."""
    launcher: str = ""
    """The parallel launcher as typed; empty for none."""
    launcher_index: int = -1
    ranks: int = 0
    nodes: int = 0
    most_nodes: int = 0
    """Of a range, `-N 2-4`; else `nodes`."""
    ranks_per_node: int = 0
    one_a_node: bool = False
    """`LauncherSyntax.one_a_node`."""
    parts: tuple[tuple[int, int, int, int], ...] = ()
    """Of each program its ranks, nodes, ranks per node and most nodes."""
    host_options: tuple[tuple[Option, ...], ...] = ()
    """The launcher's options that choose hosts and reach them, of each program: `--host`, `-hostfile`, `-f`, `-w` …"""
    names: frozenset[str] = frozenset()
    """Options of the launcher that are given, without dashes."""


class _CommandPart(msgspec.Struct, frozen=True):
    """A launcher's own words before one program."""

    options: tuple[Option, ...]
    program: int
    """Position of what follows; the length of the command line when nothing does."""


def parse(argv: Sequence[str]) -> CommandLine:
    """Read a command line of one word at least."""
    index, end = 0, len(argv)
    line, others = CommandLine(0, ()), []
    while (reads := dialect(argv[index])) is not None:
        spans = _spans(argv, index + 1, end, reads)
        parts = [_read(argv, start, stop, reads) for start, stop in spans]
        if parts[0].program >= spans[0][1]:
            break
        if reads.parallel:
            line = _parallel(argv, index, parts, reads)
            others = [argv[part.program : span[1]] for part, span in zip(parts[1:], spans[1:], strict=True)]
        index, end = parts[0].program, spans[0][1]
    programs = tuple(tuple(words) for words in (argv[index:end], *others) if words)
    return msgspec.structs.replace(line, program_index=index, programs=programs)


def is_mpi(name: str) -> bool:
    """True for the basename of an MPI library's own launcher: mpirun, mpiexec.hydra, prterun …"""
    return dialect(name) is MPI()


def _spans(argv: Sequence[str], start: int, end: int, reads: LauncherSyntax) -> list[tuple[int, int]]:
    """(first word, behind the last) of each of several programs with its options."""
    colons = [i for i in range(start, end) if argv[i] == ":"] if reads.colon else []
    return list(zip([start, *(i + 1 for i in colons)], [*colons, end], strict=True))


def _parallel(
    argv: Sequence[str], index: int, parts: Sequence[_CommandPart], reads: LauncherSyntax
) -> CommandLine:
    """What a launcher says of the ranks of all its programs."""
    sizes = [_size(part.options, reads, PurePath(argv[index]).name) for part in parts]
    return CommandLine(
        program_index=index,
        programs=(),
        launcher=argv[index],
        launcher_index=index,
        ranks=sum(size[0] for size in sizes),
        nodes=max(size[1] for size in sizes),
        most_nodes=max(size[3] for size in sizes),
        ranks_per_node=sizes[0][2],
        one_a_node=reads.one_a_node,
        parts=tuple(sizes),
        host_options=tuple(tuple(o for o in part.options if _is_host_option(o, reads)) for part in parts),
        names=frozenset(option.name for part in parts for option in part.options),
    )


def _read(argv: Sequence[str], start: int, end: int, reads: LauncherSyntax) -> _CommandPart:
    """A launcher's options from `start` on, up to the program."""
    options: list[Option] = []
    operands, subcommands = reads.operands, reads.subcommands
    position = start
    while position < end:
        word = argv[position]
        if word == "--":
            position += 1
            if not operands and not subcommands:
                break
        elif word == "-" and reads.assignments:
            position += 1  # `env -`
        elif len(word) > 1 and word[0] == "-":
            read = _option if reads.words or word.startswith("--") else _short_options
            more, position = read(argv, position, end, reads)
            options += more
        elif subcommands is not None:
            if word != "mini":
                if word not in subcommands:
                    return _CommandPart(tuple(options), end)
                operands, subcommands = subcommands[word], None
            position += 1
        elif operands:
            operands -= 1
            position += 1
        elif reads.assignments and re.match(_ASSIGNMENT, word):
            position += 1
        else:
            break
    return _CommandPart(tuple(options), min(position, end))


def _option(argv: Sequence[str], position: int, end: int, reads: LauncherSyntax) -> tuple[list[Option], int]:
    """One option that is a whole word, and where what follows it begins."""
    word = argv[position]
    name, equals, value = word.lstrip("-").partition("=")
    full = reads.known(name)
    if not full and not equals and (attached := re.match(_ATTACHED, name)):
        short = attached.group(1)
        if short in reads.ranks | reads.per_node | reads.nodes:
            return [Option(short, attached.group(2), (word,))], position + 1
    if equals:
        count = max(reads.values.get(full, 1) - 1, 0)
    elif full:
        count = reads.values.get(full, 0)
    else:
        count = _guess(argv, position, end)
    if count == 2 and "=" in argv[min(position + 1, end - 1)]:
        count = 1  # PALS: `--env NAME=value`
    after = min(position + 1 + count, end)
    words = tuple(argv[position:after])
    return [Option(full or name, value if equals else " ".join(words[1:]), words)], after


def _short_options(
    argv: Sequence[str], position: int, end: int, reads: LauncherSyntax
) -> tuple[list[Option], int]:
    """A word of options of one letter (`-vn4`), and where what follows it begins."""
    word = argv[position]
    options: list[Option] = []
    for i, letter in enumerate(word[1:], 1):
        rest = word[i + 1 :]
        if letter in reads.values:
            after = position + 1 if rest else min(position + 1 + reads.values[letter], end)
            value = rest.removeprefix("=") or " ".join(argv[position + 1 : after])
            words = (f"-{letter}{rest}", *argv[position + 1 : after])
            return [*options, Option(letter, value, words)], after
        options.append(Option(letter, "", (f"-{letter}",)))
        if letter not in reads.flags:
            return options, position + 1 + (0 if rest else _guess(argv, position, end))
    return options, position + 1


def _guess(argv: Sequence[str], position: int, end: int) -> int:
    """Words that are probably the value of the unknown option there: 0 or 1."""
    if position + 2 >= end:
        return 0
    word = argv[position + 1]
    return int(not word.startswith("-") and which(word) is None)


def which(program: str, path: str | None = None) -> str | None:
    """As `shutil.which`, which is slow to import: most command lines do not need it."""
    from shutil import which

    return which(program, path=path)


def _is_host_option(option: Option, reads: LauncherSyntax) -> bool:
    reaching = not option.name.endswith("mca") or re.match(_REACHING_MCA, option.value)
    return option.name in reads.hosts or bool(option.name in reads.reach and reaching)


def _size(options: Sequence[Option], reads: LauncherSyntax, launcher: str) -> tuple[int, int, int, int]:
    """(ranks, nodes, ranks per node, most nodes) that the options say; 0 for each of which they say nothing."""

    def numbers(names: frozenset[str]) -> list[int]:
        given = [
            re.findall(_NUMBER, o.value) for o in options if o.name in names and re.match(_NUMBER, o.value)
        ]
        return [int(digits) * _TIMES[times.lower()] for digits, times in given[-1]] if given else [0]

    def number(names: frozenset[str]) -> int:
        return numbers(names)[0]

    ranks, per_node = number(reads.ranks), number(reads.per_node)
    nodes, most = number(reads.nodes), numbers(reads.nodes)[-1]
    if nodes < most:
        return ranks, nodes, per_node, most
    if launcher == "jsrun":
        sets, tasks = number(frozenset({"n", "nrs"})), number(frozenset({"a", "tasks_per_rs"})) or 1
        sets_per_host = number(frozenset({"r", "rs_per_host"}))
        ranks = ranks or sets * tasks
        per_node = sets_per_host * tasks
    for option in options:
        if option.name == "pernode":
            per_node = 1
        elif option.name in ("map-by", "ppr", "mapby") and (
            ppr := re.search(r"(?:^|ppr:)(\d+):node", option.value)
        ):
            per_node = int(ppr.group(1))
    hosts = _named_hosts(options, reads)
    slots = sum(hosts.values())
    if not ranks and not per_node and any(hosts[h] > 1 for h in hosts):
        ranks = slots
    nodes = nodes or len(hosts)
    if per_node:
        ranks = ranks or per_node * nodes
        nodes = min(nodes or ranks, -(-ranks // per_node)) if ranks else nodes
    elif ranks and hosts and slots > len(hosts):
        nodes = filled(list(hosts.values()), ranks)
    elif ranks and nodes:
        nodes = min(nodes, ranks)
    return ranks, nodes, per_node, nodes


def _named_hosts(options: Sequence[Option], reads: LauncherSyntax) -> dict[str, int]:
    """Hosts that are named on the command line itself (`--host a:2,b:2`) → slots."""
    hosts: dict[str, int] = {}
    for option in options:
        if option.name in reads.hosts and option.name in ("H", "host", "hosts", "add-host"):
            for entry in filter(None, option.value.split(",")):
                host, _, slots = entry.rpartition(":") if re.search(r":\d+$", entry) else (entry, "", "1")
                hosts[host] = hosts.get(host, 0) + int(slots)
    return hosts


def filled(slots: Sequence[int], ranks: int) -> int:
    """How many hosts get a rank when each is filled before the next."""
    for used, count in enumerate(slots, 1):
        ranks -= count
        if ranks <= 0:
            return used
    return len(slots)


OPEN_MPI_LIST = "OMPI_MCA_mca_base_env_list"
SECOND_LIST = f"{OPEN_MPI_LIST}_internal"
_TUNED = "mca_base_envar_file_prefix"
"""Files with the user's own `-x`: the parameter that `--tune` sets."""
_SET = rf"(?m)^\s*(mca_base_env_list|{_TUNED})\s*=\s*(.*?)\s*$"


def open_mpi_forwarded(
    argv: Sequence[str], environ: Mapping[str, str], names: Iterable[str]
) -> dict[str, str]:
    """What the environment of `argv` needs so that Open MPI hands `names`, which have values, to other nodes.

    Open MPI hands only its own variables to other nodes, unless `mca_base_env_list` names more. It prints a warning of
    many lines for each name without a value, and refuses to start with `-x` beside the list. A user's own list is kept,
    with ours behind it: a list in the environment would hide one in a file. Beside `-x` ours go into a second list,
    which Open MPI 2 to 4 have for the files of `--tune`; beside such a file no list is ours to set.
    """
    line = parse(argv)
    if not is_mpi(PurePath(line.launcher).name):
        return {}
    parameters = _in_files(line.launcher, environ)
    words = argv[line.launcher_index : line.program_index]
    if "tune" in line.names or _TUNED in words or f"OMPI_MCA_{_TUNED}" in environ or _TUNED in parameters:
        return {}
    delimiter = environ.get(f"{OPEN_MPI_LIST}_delimiter") or ";"
    his = environ.get(OPEN_MPI_LIST) or parameters.get("mca_base_env_list", "")
    if "x" in line.names:
        return {} if his or SECOND_LIST in environ else {SECOND_LIST: delimiter.join(names)}
    return {OPEN_MPI_LIST: delimiter.join([his, *names] if his else names)}


def _in_files(launcher: str, environ: Mapping[str, str]) -> dict[str, str]:
    """What the user's or the site's parameter file says of variables; the first that says anything counts."""
    program = Path(which(launcher, environ.get("PATH")) or "/usr/bin/mpirun")
    prefix = Path(environ.get("OPAL_PREFIX") or program.resolve().parent.parent)
    files = [
        Path(environ.get("HOME", "/")) / ".openmpi" / "mca-params.conf",
        prefix / "etc" / "openmpi-mca-params.conf",
        Path("/etc/openmpi/openmpi-mca-params.conf"),
    ]
    said: dict[str, str] = {}
    for path in files:
        try:
            said = dict(re.findall(_SET, path.read_text(encoding="utf-8", errors="surrogateescape"))) | said
        except OSError:
            continue
    return said
