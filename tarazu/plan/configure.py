"""The layout of each expected file: the configuration manager's, below each directory's own default (paper, 5.5.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from tarazu.config import LayoutSettings
from tarazu.layout import pfl
from tarazu.layout.manager import (
    ConfigurationManager,
    LayoutChoice,
    LayoutPolicy,
    UsableOsts,
    left_to_lustre,
    lustres_own,
)
from tarazu.left import MORE_THAN_A_PLAN, NAMES_OSTS, OWN_DEFAULT
from tarazu.model import Forecast, Layout
from tarazu.plan.left_to_lustre import (
    default_layout,
    names_osts,
    within_a_request,
)
from tarazu.store.rows import NewFile
from tarazu.wire import local

Directories = Callable[[tuple[str, ...]], local.DirectoryLayouts]
"""Asks for the default layouts of directories."""


def layout_policy(layout: LayoutSettings) -> LayoutPolicy:
    """The site's choices. Raises a TarazuError when the PFL file cannot be used."""
    return LayoutPolicy(
        stripe_count=layout.stripe_count,
        striping=layout.striping,
        rules=pfl.read(layout.pfl_file) if layout.pfl_file else (),
        min_size_bytes=layout.min_size,
    )


class Configured(NamedTuple):
    """The layout of each file."""

    files: list[NewFile]
    stripes: str = ""
    """With `layout.stripe_count = auto`: why so many, of most of the files; empty otherwise."""


def configure(
    forecasts: Sequence[Forecast],
    targets: UsableOsts,
    directories: Directories,
    policy: LayoutPolicy,
    *,
    foreign_defaults: bool,
    of_wave: Sequence[int] = (),
) -> Configured:
    """The layout of each file. Those below directories with a user's own default are left alone, unless
    `foreign_defaults`; and always those below a default that names its OSTs.

    of_wave: the wave in which each is written; empty: all at one time.
    """
    parents = [_parent(forecast) for forecast in forecasts]
    answer = directories(parents_of(forecasts))
    root = default_layout(answer.root)
    blob_of = {p: answer.parents.get(p, answer.root) for p in set(parents)}
    default_in = {blob: _default_of(blob, answer.root) for blob in set(blob_of.values())}
    by_default: dict[Layout | str | None, list[int]] = {}
    for place, parent in enumerate(parents):
        by_default.setdefault(default_in[blob_of[parent]], []).append(place)
    chosen: dict[int, LayoutChoice] = {}
    for default, places in by_default.items():
        # Layouts are compared, not blobs: these also carry the directory's own identity.
        foreign = default != root and not foreign_defaults
        if foreign or isinstance(default, str):
            why = default if isinstance(default, str) else OWN_DEFAULT
            chosen.update(dict.fromkeys(places, left_to_lustre(why)))
            continue
        manager = ConfigurationManager(policy, targets, default)
        mine = [of_wave[place] for place in places] if of_wave else ()
        chosen.update(zip(places, manager.choose([forecasts[place] for place in places], mine), strict=True))
    own = {d: None if isinstance(d, str) else lustres_own(d, targets) for d in by_default}
    choices = [chosen[place] for place in range(len(forecasts))]
    fits = within_a_request([choice.layout for choice in choices])
    too_many = left_to_lustre(MORE_THAN_A_PLAN)
    choices = [choice if fit else too_many for choice, fit in zip(choices, fits, strict=True)]
    stripes = Counter(c.stripes_because for c in choices if c.stripes_because).most_common(1)
    return Configured(
        [
            NewFile(f, choice.layout, choice.left_because, own[default_in[blob_of[parent]]])
            for f, choice, parent in zip(forecasts, choices, parents, strict=True)
        ],
        stripes[0][0] if stripes else "",
    )


def _default_of(blob: bytes, root: bytes) -> Layout | str | None:
    """A directory's default, or why nothing is placed below it. A plain one that names neither OSTs nor a pool gets the
    root's start index, too (`lod_ah_init`).
    """
    default = default_layout(blob)
    if not isinstance(default, Layout):
        return default
    follows = not default.composite and not default.components[0].pool
    named = names_osts(blob) or (follows and isinstance(default_layout(root), Layout) and names_osts(root))
    return NAMES_OSTS if named else default


def parents_of(forecasts: Iterable[Forecast]) -> tuple[str, ...]:
    """The directories in which these files are expected."""
    return tuple(sorted({_parent(forecast) for forecast in forecasts}))


def _parent(forecast: Forecast) -> str:
    return forecast.name.key.rpartition("/")[0] or "/"
