"""The keys of a scenario and the columns of a row: documentation made of the structs themselves."""

from __future__ import annotations

from typing import Any, get_type_hints

import msgspec

from tarazu.sim.study.results import ScenarioRow
from tarazu.sim.study.scenario import FailureTable, JobTable, LoopTable, Scenario

SECTIONS = (("", Scenario), ("jobs.", JobTable), ("failures.", FailureTable), ("loop.", LoopTable))


def keys() -> str:
    """Every key of a scenario but those of the cluster and of workloads."""
    return "\n".join(
        f"- `{prefix}{field.encode_name}`{_default(field)}: {_meaning(struct, field.name)}"
        for prefix, struct in SECTIONS
        for field in msgspec.structs.fields(struct)
    )


def columns() -> str:
    """Every column of a row."""
    return "\n".join(
        f"- `{field.name}`: {_meaning(ScenarioRow, field.name)}"
        for field in msgspec.structs.fields(ScenarioRow)
    )


def _meaning(struct: type[msgspec.Struct], name: str) -> str:
    hint: Any = get_type_hints(struct, include_extras=True)[name]
    return next((m.description for m in reversed(hint.__metadata__) if getattr(m, "description", None)), "")


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return " (must be given)"
    default = field.default if field.default is not msgspec.NODEFAULT else None
    if default is None or isinstance(default, msgspec.Struct) or default in ((), "", {}):
        return ""
    return f" = `{_toml(default)}`"


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(_toml(v) for v in value)}]"
    return f'"{value}"' if isinstance(value, str) else "none" if value is None else f"{value}"
