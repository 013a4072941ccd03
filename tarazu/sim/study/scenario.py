"""A scenario file (TOML) as structs: the cluster, the jobs on it, what is compared, what fails, what is swept.

The structs are the one place where a key is told: its type, default and meaning; `tarazu sim example` and the table
in docs/scenario-keys.csv come from them. Every error is one line: file, key, what was expected, what was found.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tarazu.errors import BadInput, LayoutError
from tarazu.sim.model import presets
from tarazu.sim.model.spec import ClusterSpec, Failure, RequestCosts, ServiceCurve
from tarazu.table import Keys, convert, placed
from tarazu.units import parse_bytes

Scalar = str | int | float | bool

NotNegative = Annotated[float, Meta(ge=0)]


class JobTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`[[jobs]]`: one application, or other users' traffic."""

    workload: Annotated[dict[str, Any], Meta(description="what it does: `kind`, and the kind's parameters")]
    name: Annotated[str, Meta(description="how it is called in results; empty: its kind")] = ""
    layout: Annotated[str, Meta(description="layout of its new files; empty: the case's, from `layouts`")] = (
        ""
    )
    start_s: Annotated[
        NotNegative, Meta(description="when it starts, seconds after the start of the run")
    ] = 0.0
    first_node: Annotated[
        int, Meta(description="its first compute node; -1: behind the job before", ge=-1)
    ] = -1
    background: Annotated[
        bool, Meta(description="other users' traffic: placed by Lustre's allocator, not waited for")
    ] = False


class FailureTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`[[failures]]`: an OST that is slow, or lost, for a time."""

    ost: Annotated[int, Meta(description="index of the OST", ge=0)]
    speed: Annotated[NotNegative, Meta(description="its speed over what it was; 0: lost")]
    at_s: Annotated[
        NotNegative, Meta(description="from then on, seconds after the start of the first run")
    ] = 0.0
    until_s: Annotated[NotNegative, Meta(description="until then; `inf`: for good")] = math.inf

    def failure(self) -> Failure:
        return Failure(self.ost, self.at_s, self.speed, self.until_s)


class LoopTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`[loop]`: runs in a row on one file system, with statistics that are as old as they are on a site."""

    runs: Annotated[int, Meta(description="runs in a row", ge=1)] = 1
    statistics_s: Annotated[
        float | None,
        Meta(
            description="OSSs publish every so many seconds, and policies see nothing else; absent: the truth"
        ),
    ] = None
    period_s: Annotated[
        NotNegative,
        Meta(description="seconds from one run's start to the next; a run that takes longer delays the next"),
    ] = 0.0
    drift: Annotated[
        dict[str, float],
        Meta(description='a job\'s number grows so from run to run: `"ior.workload.block_bytes" = 1.05`'),
    ] = {}


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The whole file."""

    name: Annotated[str, Meta(description="a short name; it stands in every row", min_length=1)]
    cluster: Annotated[
        dict[str, Any], Meta(description="`preset`, and fields of the cluster that differ from it")
    ]
    jobs: Annotated[tuple[JobTable, ...], Meta(description="what runs at once", min_length=1)]
    description: Annotated[str, Meta(description="what is asked, for the report")] = ""
    policies: Annotated[tuple[str, ...], Meta(description="allocation policies to compare", min_length=1)] = (
        "lsa",
        "tarazu",
    )
    layouts: Annotated[tuple[str, ...], Meta(description="layouts of new files to compare", min_length=1)] = (
        "plain",
    )
    seeds: Annotated[int | tuple[int, ...], Meta(description="so many seeds from 0, or these")] = 5
    resolution_s: Annotated[
        NotNegative, Meta(description="seconds between two shares of bandwidth at least; 0: exact")
    ] = 0.0
    per_ost: Annotated[
        bool, Meta(description="keep what each OST held and when it was done, in every row")
    ] = True
    failures: Annotated[tuple[FailureTable, ...], Meta(description="OSTs that become slow or are lost")] = ()
    loop: Annotated[LoopTable, Meta(description="several runs in a row, closed by statistics")] = LoopTable()
    sweep: Annotated[
        dict[str, list[Scalar]],
        Meta(
            description='every combination of these: `"cluster.osts" = [160, 320]`, a key of this file each'
        ),
    ] = {}


class ScenarioFile(msgspec.Struct, frozen=True):
    """A scenario as written: what a sweep changes is the raw tables, which are then read again."""

    path: Path
    text: str
    raw: dict[str, Any]
    scenario: Scenario

    @property
    def where(self) -> str:
        return str(self.path)


def load(path: Path) -> ScenarioFile:
    """The scenario in that file. Raises BadInput."""
    try:
        text = path.read_bytes().decode()
    except OSError as error:
        raise BadInput(str(path), "a scenario file", error.strerror) from None
    except UnicodeDecodeError:
        raise BadInput(str(path), "TOML in UTF-8", "other bytes") from None
    return parse(text, path)


def parse(text: str, path: Path) -> ScenarioFile:
    """The scenario in `text`; `path` is named in errors, and paths in the scenario are relative to its folder."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(str(path), "TOML", str(error)) from None
    return ScenarioFile(path, text, raw, read(raw, str(path)))


def read(raw: Mapping[str, Any], where: str) -> Scenario:
    """The tables as structs, checked as far as can be without opening other files."""
    from tarazu.sim.allocation import policies

    sized = sizes(raw, where)
    _finite(sized, where)
    scenario = convert(sized, Scenario, where)
    for index, name in enumerate(scenario.policies):
        one_of(name, policies.NAMES, f"{where}: policies[{index}]")
    for index, name in enumerate(scenario.layouts):
        _layout(name, f"{where}: layouts[{index}]")
    for index, job in enumerate(scenario.jobs):
        if job.layout:
            _layout(job.layout, f"{where}: jobs[{index}].layout")
    names = [job_name(job) for job in scenario.jobs]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise BadInput(f"{where}: jobs[{index}].name", "a name that no other job has", name)
    if seeds_of(scenario) != tuple(dict.fromkeys(seeds_of(scenario))) or not seeds_of(scenario):
        raise BadInput(f"{where}: seeds", "a number above 0, or a list of different seeds", scenario.seeds)
    if min(seeds_of(scenario)) < 0:
        raise BadInput(f"{where}: seeds", "seeds from 0 on", min(seeds_of(scenario)))
    spec = cluster_of(scenario.cluster, where)
    for index, failure in enumerate(scenario.failures):
        if failure.ost >= spec.osts:
            raise BadInput(f"{where}: failures[{index}].ost", f"an OST below {spec.osts}", failure.ost)
        if failure.until_s <= failure.at_s:
            raise BadInput(f"{where}: failures[{index}].until_s", f"above {failure.at_s:g}", failure.until_s)
    if scenario.loop.statistics_s is not None and not 0 < scenario.loop.statistics_s < math.inf:
        raise BadInput(f"{where}: loop.statistics_s", "seconds above 0", scenario.loop.statistics_s)
    for key, values in scenario.sweep.items():
        if not values:
            raise BadInput(f"{where}: sweep.{key}", "one value or more", values)
        if key.split(".")[0] in ("sweep", "policies", "layouts", "seeds", "name", "description"):
            raise BadInput(f"{where}: sweep.{key}", "a key below cluster, jobs, failures or loop", key)
    return scenario


def _layout(text: str, place: str) -> None:
    from tarazu.sim.model import striping

    try:
        striping.rule(text)
    except LayoutError as error:
        raise BadInput(place, error.expected, error.found) from None


def seeds_of(scenario: Scenario) -> tuple[int, ...]:
    return tuple(range(scenario.seeds)) if isinstance(scenario.seeds, int) else scenario.seeds


def job_name(job: JobTable) -> str:
    return job.name or str(job.workload.get("kind", ""))


def cluster_of(table: Mapping[str, Any], where: str) -> ClusterSpec:
    """`[cluster]`: the preset's fields, then those that are given. Raises BadInput."""
    place = f"{where}: cluster"
    given = {key: value for key, value in table.items() if key != "preset"}
    fields: dict[str, Any] = {}
    if "preset" in table:
        name = one_of(table["preset"], presets.NAMES, f"{place}.preset")
        fields = msgspec.structs.asdict(presets.named(name).spec)
    _known(given, ClusterSpec, place)
    for key, value in given.items():
        curve = fields.get(key)
        if isinstance(value, dict) and isinstance(curve, msgspec.Struct):
            fields[key] = msgspec.structs.asdict(curve) | value
        else:
            fields[key] = value
    fields.setdefault("name", str(table.get("preset", "own")))
    fields = {k: msgspec.structs.asdict(v) if isinstance(v, msgspec.Struct) else v for k, v in fields.items()}
    spec = convert(fields, ClusterSpec, where, ("cluster",))
    _physical(spec, place)
    return spec


def _known(table: Mapping[str, Any], kind: type[msgspec.Struct], place: str) -> None:
    types = {field.name: field.type for field in msgspec.structs.fields(kind)}
    for key, value in table.items():
        if key not in types:
            raise BadInput(f"{place}.{key}", f"a key among {', '.join(sorted(types))}", key)
        inner = types[key]
        if isinstance(value, dict) and isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            _known(value, inner, f"{place}.{key}")


MAY_BE_ZERO = {"create_s", "interference", "io_routers", "lnet_routers", "speeds", "used"} | {
    field.name for field in msgspec.structs.fields(RequestCosts) if field.default == 0
}


def _physical(struct: msgspec.Struct, place: str) -> None:
    """What a cluster's numbers must be for a simulation to end."""
    for name, value in msgspec.structs.asdict(struct).items():
        if isinstance(value, msgspec.Struct):
            _physical(value, f"{place}.{name}")
            continue
        numbers = value if isinstance(value, tuple) else (value,)
        for number in numbers:
            if isinstance(number, str) or number is None:
                continue
            if name == "used" and not 0 <= number <= 1:
                raise BadInput(f"{place}.{name}", "shares from 0 to 1", number)
            if number < 0 or (number == 0 and name not in MAY_BE_ZERO):
                raise BadInput(f"{place}.{name}", "0 or more" if name in MAY_BE_ZERO else "above 0", number)


INFINITE = {
    field.name
    for kind in (ClusterSpec, ServiceCurve, FailureTable)
    for field in msgspec.structs.fields(kind)
    if field.default == math.inf
}
"""Where `inf` says that there is no limit. What is infinite elsewhere gives results that no row can hold."""


def _finite(raw: Any, where: str, keys: Keys = ()) -> None:
    entries = raw.items() if isinstance(raw, Mapping) else enumerate(raw) if isinstance(raw, list) else ()
    for key, value in entries:
        _finite(value, where, (*keys, key))
    if isinstance(raw, float) and not math.isfinite(raw):
        named = next((key for key in reversed(keys) if isinstance(key, str)), "").rpartition(".")[2]
        if math.isnan(raw) or named not in INFINITE:
            raise BadInput(placed(where, keys), "a finite number", raw)


def put(raw: Mapping[str, Any], key: str, value: Scalar, where: str) -> dict[str, Any]:
    """A copy of `raw` with another value at a dotted key; jobs are named by their name or number. Raises BadInput."""
    copy: dict[str, Any] = {k: v for k, v in raw.items()}  # noqa: C416
    at: Any = copy
    words = key.split(".")
    for depth, word in enumerate(words):
        last = depth == len(words) - 1
        spot: str | int = word
        if isinstance(at, list):
            spot = _index(at, word, f"{where}: {'.'.join(words[: depth + 1])}")
        if last:
            if isinstance(at, list):
                raise BadInput(f"{where}: {key}", "a key of a table", value)
            at[spot] = value
            continue
        inner = at[spot] if isinstance(spot, int) else at.get(spot, {})
        if not isinstance(inner, (dict, list)):
            raise BadInput(f"{where}: {key}", "a key of a table", inner)
        at[spot] = inner.copy()
        at = at[spot]
    return copy


def _index(entries: Sequence[Any], word: str, place: str) -> int:
    names = [
        entry.get("name") or entry.get("workload", {}).get("kind", "") if isinstance(entry, dict) else ""
        for entry in entries
    ]
    if word in names:
        return names.index(word)
    if word.isdecimal() and int(word) < len(entries):
        return int(word)
    raise BadInput(place, f"one of {', '.join(n for n in names if n) or len(entries)}", word)


def one_of(value: object, names: Sequence[str], place: str) -> str:
    if value not in names:
        raise BadInput(place, f"one of {', '.join(names)}", value)
    return str(value)


def sizes(raw: Any, where: str, keys: tuple[str | int, ...] = ()) -> Any:
    """The same tables with sizes as numbers: `"64M"` stands wherever a key ends in bytes or bytes_per_s."""
    if isinstance(raw, Mapping):
        return {key: sizes(value, where, (*keys, key)) for key, value in raw.items()}
    if isinstance(raw, list):
        return [sizes(value, where, (*keys, index)) for index, value in enumerate(raw)]
    named = next((str(key) for key in reversed(keys) if isinstance(key, str)), "")
    if isinstance(raw, str) and named.endswith(("bytes", "bytes_per_s")):
        try:
            return parse_bytes(raw)
        except ValueError:
            raise BadInput(placed(where, keys), "a size such as 64K, 128M or 2G", raw) from None
    return raw
