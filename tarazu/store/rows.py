"""What goes into the interaction database and comes out of it, and how that is shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from tarazu.malformed import described
from tarazu.model import FileName, FilePlacement, Forecast, JobStep, Layout


class PlanRow(msgspec.Struct, frozen=True):
    """One plan: the files forecast for one job step, and what came of placing them."""

    id: int
    step: JobStep
    created_s: float
    policy: str
    status: str
    """`new` until an allocation is set, then its status."""
    reason: str
    request_id: str
    ost_cost: float
    ost_cost_bound: float
    elapsed_s: float
    ended_s: float | None


class NewFile(msgspec.Struct, frozen=True):
    """A file to be planned. `layout` is None for one that is left to Lustre."""

    forecast: Forecast
    layout: Layout | None
    left_because: str = ""
    """Why it is left."""
    own: Layout | None = None
    """What Lustre would give it without us; None: not known. Not stored."""


class FileRow(msgspec.Struct, frozen=True):
    """One file of a plan."""

    id: int
    """Row id, also in the placement map."""
    plan_id: int
    forecast: Forecast
    layout: Layout | None
    placement: FilePlacement | None = None
    """None while no OSTs were allocated."""
    request_id: str = ""
    request_index: int = -1
    """Place in the allocation request; −1 before."""
    outcome: str = ""
    """Empty before the run ended; `unseen` when it ended without creating the file."""
    found: str = "no"
    actual_key: str = ""
    actual_bytes: int | None = None
    actual_layout: bytes = b""
    """`lustre.lov` as read back."""
    left_because: str = ""
    """Why it is left to Lustre; empty for a file that is not."""


class Explained(msgspec.Struct, frozen=True):
    """Why a file went where it is."""

    plan: PlanRow
    file: FileRow


_Flat = msgspec.defstruct(
    "Forecast",
    [
        *((field.name, field.type) for field in msgspec.structs.fields(FileName)),
        *((field.name, field.type, field.default) for field in msgspec.structs.fields(Forecast)[1:]),
    ],
    omit_defaults=True,
)


def flat(forecast: Forecast) -> msgspec.Struct:
    """A forecast as `--json` and the local socket show it: the fields of its name beside its own."""
    _, *others = msgspec.structs.astuple(forecast)
    return _Flat(*msgspec.structs.astuple(forecast.name), *others)


def shown(row: FileRow) -> FileRow:
    """A row for `--json`, its forecast flat."""
    return msgspec.structs.replace(row, forecast=flat(row.forecast))


def to_builtins(row: FileRow) -> dict[str, Any]:
    """A row for the local socket."""
    return {**msgspec.to_builtins(shown(row)), "actual_layout": row.actual_layout.hex()}


def from_builtins(values: Mapping[str, Any]) -> FileRow:
    """The inverse of `to_builtins`. Raises ValidationError."""
    forecast = values["forecast"]
    name = [forecast.get(field) for field in FileName.__struct_fields__]
    layout = bytes.fromhex(values["actual_layout"])
    return msgspec.convert(
        {**values, "forecast": {**forecast, "name": name}, "actual_layout": layout}, FileRow
    )


described(PlanRow, FileRow)
