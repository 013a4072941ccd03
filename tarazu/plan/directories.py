"""What a plan asks for each expected directory: it and its parent, and what Lustre would do with it by itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tarazu.config import RunSettings
from tarazu.config.taking_part import why_not_key
from tarazu.lustre import LMV_INHERIT_RR_NONE, inherited_rr
from tarazu.model import DirectoryForecast, DirectorySpec
from tarazu.wire.local import DirectoryPlace

NOWHERE = DirectoryPlace()


class WantedDirectory(NamedTuple):
    """One that an MDT is asked for."""

    forecast: DirectoryForecast
    spec: DirectorySpec


def parents_outside(expected: Sequence[DirectoryForecast]) -> tuple[str, ...]:
    """Directories in which some are expected, and that are none of them themselves."""
    keys = {forecast.name.key for forecast in expected}
    return tuple(sorted({parent_of(key) for key in keys} - keys))


def parent_of(key: str) -> str:
    return key.rpartition("/")[0] or "/"


def wanted(
    run: RunSettings,
    expected: Sequence[DirectoryForecast],
    places: Mapping[str, DirectoryPlace],
    of_wave: Sequence[int],
) -> list[WantedDirectory]:
    """Those that may be placed, parents first. `places`: of the parents outside, as the leader saw them; `of_wave`: the
    wave of each that is expected.

    Left alone is what the site excludes, and what a default decides: one that names an MDT, or stripes.
    """
    chosen = [each for each in zip(expected, of_wave, strict=True) if not why_not_key(run, each[0].name.key)]
    chosen.sort(key=lambda each: (each[0].name.key.count("/"), each[0].at_s))
    kept: list[WantedDirectory] = []
    position: dict[str, int] = {}
    levels: dict[str, DirectoryPlace] = {}
    """Key → how things lie below it."""
    for forecast, wave in chosen:
        key = forecast.name.key
        parent = parent_of(key)
        place = levels.get(parent) or places.get(parent, NOWHERE)
        levels[key] = DirectoryPlace(-1, inherited_rr(place.in_turn), place.own)
        if place.own:
            continue
        inside = position.get(parent, -1)
        spec = DirectorySpec(
            forecast.creates,
            inside,
            wave,
            -1 if inside >= 0 else place.mdt,
            place.in_turn != LMV_INHERIT_RR_NONE or parent == "/",
            key.count("/") - 1,
        )
        position.setdefault(key, len(kept))
        kept.append(WantedDirectory(forecast, spec))
    return kept
