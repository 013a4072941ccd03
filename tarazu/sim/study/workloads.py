"""`[jobs.workload]`: a kind and its parameters, which are those of the function that makes it."""

from __future__ import annotations

import glob
import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import msgspec

from tarazu.errors import BadInput
from tarazu.sim.study.scenario import one_of
from tarazu.sim.workloads.workload import Workload
from tarazu.table import convert


class WorkloadKind(NamedTuple):
    """How a kind of workload is made."""

    module: str
    """Below tarazu.sim.workloads."""
    function: str
    fixed: tuple[tuple[str, Any], ...] = ()
    """Parameters that are the kind's own."""


KINDS = {
    "ior": WorkloadKind("ior", "workload"),
    "hacc-io": WorkloadKind("hacc", "workload"),
    "genomicPrediction": WorkloadKind("stand_ins", "workload", (("name", "genomicPrediction"),)),
    "E3SM": WorkloadKind("stand_ins", "workload", (("name", "E3SM"),)),
    "cosmoFlow": WorkloadKind("stand_ins", "workload", (("name", "cosmoFlow"),)),
}
LOGS = ("darshan", "history")
NAMES = (*KINDS, *LOGS)


class LogTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Of kinds `darshan` and `history`: what is played again."""

    kind: str
    files: str | tuple[str, ...]
    """Paths or patterns (`runs/*.darshan`), relative to the scenario's folder; each file is a job of its own."""
    start: str = "together"
    """`together`, or `logged`: as long after the first one as it was."""
    placement: bool = False
    """Files lie where they lay, as far as the log says; else they are placed anew."""
    ranks_per_node: int | None = None
    """Of a Darshan log 1, for it says nothing; of a history as the step had them."""
    requests: int | None = None
    """Of a Darshan log: over how many equal requests the bytes of a file and rank are spread."""
    mount: str | None = None
    """Of a Darshan log: only files below it."""
    trace: bool = True
    """Of a Darshan log: DXT's times are used where it has them."""


class JobPart(NamedTuple):
    """One job of a `[[jobs]]` table."""

    suffix: str
    """Behind the job's name where there are several."""
    workload: Workload
    after_s: float
    """Its start after that of the table's job."""


def checked(table: Mapping[str, Any], folder: Path, where: str) -> tuple[dict[str, Any], tuple[Path, ...]]:
    """The table with whole paths, and its files. Raises BadInput for what the kind does not know."""
    kind = one_of(table.get("kind"), NAMES, f"{where}.kind")
    if kind in LOGS:
        logs = convert(dict(table), LogTable, where)
        one_of(logs.start, ("together", "logged"), f"{where}.start")
        paths = _found(logs, folder, where)
        return {**table, "files": [str(path) for path in paths]}, paths
    parameters(table, where)
    return dict(table), ()


def _found(logs: LogTable, folder: Path, where: str) -> tuple[Path, ...]:
    patterns = (logs.files,) if isinstance(logs.files, str) else logs.files
    paths: list[Path] = []
    for pattern in patterns:
        path = folder / Path(pattern).expanduser()
        matched = [path] if path.is_file() else [Path(name) for name in sorted(glob.glob(str(path)))]
        if not matched:
            raise BadInput(f"{where}.files", "files that are there", pattern)
        paths += [match.resolve() for match in matched]
    return tuple(dict.fromkeys(paths))


def files_of(table: Mapping[str, Any]) -> tuple[str, ...]:
    """The files of a checked table."""
    return tuple(table["files"]) if table["kind"] in LOGS else ()


def without_files(table: Mapping[str, Any]) -> dict[str, Any]:
    """What of a table counts for a result: not where its files lie."""
    return {key: value for key, value in table.items() if key != "files"}


def parameters(table: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The keyword arguments that make it. Raises BadInput."""
    kind = KINDS[table["kind"]]
    function = maker(kind)
    hints = get_type_hints(function)
    fixed = dict(kind.fixed)
    known = [name for name in inspect.signature(function).parameters if name not in fixed]
    given: dict[str, Any] = {}
    for key, value in table.items():
        if key == "kind":
            continue
        if key not in known:
            raise BadInput(f"{where}.{key}", f"a key among {', '.join(known)}", key)
        given[key] = convert(value, hints[key], f"{where}.{key}")
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.default is inspect.Parameter.empty and name not in given and name not in fixed:
            raise BadInput(f"{where}.{name}", "a value", "none")
    return given | fixed


def maker(kind: WorkloadKind) -> Callable[..., Workload]:
    """The function that makes workloads of that kind."""
    made: Callable[..., Workload] = getattr(
        import_module(f"tarazu.sim.workloads.{kind.module}"), kind.function
    )
    return made


def make(table: Mapping[str, Any], where: str, seed: int = 0) -> tuple[JobPart, ...]:
    """The jobs of a checked table; what is drawn is drawn with that seed unless the table has one. Raises BadInput."""
    if table["kind"] in KINDS:
        known = inspect.signature(maker(KINDS[table["kind"]])).parameters
        drawn = {"seed": seed} if "seed" in known and "seed" not in table else {}
        table = {**table, **drawn}
    return _made(msgspec.json.encode(table, order="deterministic"), where)


@lru_cache(16)
def _made(encoded: bytes, where: str) -> tuple[JobPart, ...]:
    table: dict[str, Any] = msgspec.json.decode(encoded)
    if table["kind"] in LOGS:
        return _replayed(convert(table, LogTable, where), where)
    try:
        return (JobPart("", maker(KINDS[table["kind"]])(**parameters(table, where)), 0.0),)
    except BadInput as error:
        raise BadInput(f"{where}: {error.where}", error.expected, error.found) from None


def _replayed(logs: LogTable, where: str) -> tuple[JobPart, ...]:
    played = [_played(logs, Path(path), where) for path in logs.files]
    first = min(start for _, start in played)
    several = len(played) > 1
    return tuple(
        JobPart(
            f"-{number}" if several else "",
            workload,
            start - first if logs.start == "logged" else 0.0,
        )
        for number, (workload, start) in enumerate(played, 1)
    )


def _played(logs: LogTable, path: Path, where: str) -> tuple[Workload, float]:
    """One log's workload and when it started, Unix time."""
    given = {
        name: value
        for name, value in (
            ("ranks_per_node", logs.ranks_per_node),
            ("requests", logs.requests),
            ("mount", logs.mount),
        )
        if value is not None
    }
    if logs.kind == "darshan":
        from tarazu.sim.workloads import darshan
        from tarazu.trace.darshan.read import read

        log = read(path)
        return darshan.workload(log, placement=logs.placement, trace=logs.trace, **given), log.start_s  # type: ignore[arg-type]
    for name in ("requests", "mount"):
        if name in given:
            raise BadInput(f"{where}.{name}", "a Darshan log", "a run of the history")
    from tarazu.sim.workloads import history
    from tarazu.trace.runfile import read_run

    run = read_run(path)
    return history.workload(run, placement=logs.placement, **given), run.start_s  # type: ignore[arg-type]
