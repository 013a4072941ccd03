"""One case of a scenario, for `tarazu sim run`: the first of everything, or what is given."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any

from tarazu.errors import BadInput
from tarazu.sim.study.cases import ScenarioCase, expand
from tarazu.sim.study.runner import compute
from tarazu.sim.study.scenario import Scalar, ScenarioFile, read, seeds_of, sizes

__all__ = ["cases", "compute"]


def cases(
    file: ScenarioFile, policies: Sequence[str], layout: str | None, seed: int | None, settings: Sequence[str]
) -> tuple[ScenarioCase, ...]:
    """One case for each policy. settings: `KEY=VALUE`, as in [sweep]. Raises BadInput."""
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
