"""The independent cases of a scenario, each with an id that is the hash of all that its result depends on.

An interrupted study goes on where it stopped, and rows of a scenario, a log or a simulator that were another do not
mix with new ones: their ids differ.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from tarazu.errors import BadInput
from tarazu.sim.model.spec import ClusterSpec, Failure
from tarazu.sim.study import workloads
from tarazu.sim.study.case import Case, digest, fingerprint
from tarazu.sim.study.scenario import (
    JobTable,
    LoopTable,
    Scalar,
    ScenarioFile,
    cluster_of,
    put,
    read,
    seeds_of,
    sizes,
)


class ScenarioCase(Case, frozen=True):
    """One simulation, complete: whoever has it needs nothing else but the files in `jobs`."""

    scenario: str
    cluster: ClusterSpec
    jobs: tuple[JobTable, ...]
    layout: str
    """Of the jobs that have none of their own."""
    policy: str
    seed: int
    failures: tuple[Failure, ...]
    loop: LoopTable
    resolution_s: float
    per_ost: bool
    sweep: dict[str, Scalar]
    """The swept keys and this case's values."""
    inputs: dict[str, str]
    """Files that the jobs read → SHA-256 of their contents."""
    model: str
    """Fingerprint of the simulator that the study was begun with."""

    @property
    def id(self) -> str:
        content = msgspec.structs.asdict(self) | {
            "inputs": sorted(self.inputs.values()),
            "model": fingerprint(),
        }
        content["jobs"] = [
            msgspec.structs.replace(job, workload=workloads.without_files(job.workload)) for job in self.jobs
        ]
        return digest(_plain(content))

    @property
    def computed_by(self) -> str:
        """Module that computes its rows."""
        return "tarazu.sim.study.simulate"

    @property
    def label(self) -> str:
        """For people: what is different from the other cases of the study."""
        swept = [f"{key}={value}" for key, value in self.sweep.items()]
        return " ".join([*swept, self.layout, self.policy, f"seed {self.seed}"])

    @property
    def weight(self) -> float:
        """How long it takes, about, in a unit of its own: a case on 3,600 OSTs half as long again as one on 160."""
        return float(self.cluster.osts + 5000) * self.loop.runs


def _plain(value: Any) -> Any:
    """Every field is told, for what counts as a default depends on the process; numbers as text: JSON has no inf."""
    if isinstance(value, msgspec.Struct):
        return _plain(msgspec.structs.asdict(value))
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    return repr(value) if isinstance(value, float) else value


def expand(file: ScenarioFile) -> tuple[ScenarioCase, ...]:
    """Every case in the canonical order: swept values, layouts, policies, seeds. Raises BadInput."""
    keys = list(file.scenario.sweep)
    cases: list[ScenarioCase] = []
    digests: dict[str, str] = {}
    for values in product(*file.scenario.sweep.values()):
        raw: dict[str, Any] = {k: v for k, v in file.raw.items() if k != "sweep"}
        where = file.where
        for key, value in zip(keys, values, strict=True):
            raw = put(raw, key, value, where)
            where = f"{where} (with {key} = {value})"
        scenario = read(raw, where)
        cluster = cluster_of(scenario.cluster, where)
        jobs = []
        for index, job in enumerate(scenario.jobs):
            place = f"{where}: jobs[{index}].workload"
            workload, files = workloads.checked(job.workload, file.path.parent, place)
            for path in files:
                if str(path) not in digests:
                    digests[str(path)] = _digest(path, place)
            jobs.append(msgspec.structs.replace(job, workload=workload))
        named = {str(p) for job in jobs for p in workloads.files_of(job.workload)}
        for layout, policy, seed in product(scenario.layouts, scenario.policies, seeds_of(scenario)):
            cases.append(
                ScenarioCase(
                    scenario.name,
                    cluster,
                    tuple(jobs),
                    layout,
                    policy,
                    seed,
                    tuple(failure.failure() for failure in scenario.failures),
                    scenario.loop,
                    scenario.resolution_s,
                    scenario.per_ost,
                    dict(zip(keys, values, strict=True)),
                    {path: digests[path] for path in sorted(named)},
                    fingerprint(),
                )
            )
    return tuple(cases)


def _digest(path: Path, place: str) -> str:
    try:
        with path.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise BadInput(place, f"a file that can be read, {path}", error.strerror) from None


def first_cases(
    file: ScenarioFile, policies: Sequence[str], layout: str | None, seed: int | None, settings: Sequence[str]
) -> tuple[ScenarioCase, ...]:
    """One case for each policy: the first of everything, or what is given.

    settings: `KEY=VALUE`, as in [sweep]. Raises BadInput.
    """
    swept = {key: values[0] for key, values in file.scenario.sweep.items()}
    for text in settings:
        key, value = _setting(text)
        swept[key] = value
    raw: dict[str, Any] = {key: value for key, value in file.raw.items() if key != "sweep"}
    raw["sweep"] = {key: [value] for key, value in swept.items()}
    raw["policies"] = list(policies) or [file.scenario.policies[0]]
    if "all" in policies:
        raw["policies"] = list(file.scenario.policies)
    raw["layouts"] = [layout or file.scenario.layouts[0]]
    raw["seeds"] = [seeds_of(file.scenario)[0] if seed is None else seed]
    return expand(ScenarioFile(file.path, file.text, raw, read(raw, file.where)))


def _setting(text: str) -> tuple[str, Scalar]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise BadInput("--set", "KEY=VALUE", text)
    try:
        parsed: Scalar = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value
    return key, sizes({key.split(".")[-1]: parsed}, "--set")[key.split(".")[-1]]  # type: ignore[no-any-return]
