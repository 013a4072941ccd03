"""Tables that the code knows: conf.py puts each in its page, at `<!-- table: NAME -->`. Git does not keep them."""

from __future__ import annotations

import re
from collections.abc import Callable

import error_table
import metric_table
import scenario_tables

from tarazu import config
from tarazu.part import installed
from tarazu.stats import params

TABLES: dict[str, Callable[[], str]] = {
    "settings": config.table,
    "parameters": params.table,
    "errors": error_table.table,
    "keys": scenario_tables.keys,
    "columns": scenario_tables.columns,
}
_HERE = re.compile(r"^<!-- table: (\w+)(?: of (\w+))? -->$", re.MULTILINE)


def _settings(name: str) -> str:
    part = installed()[name]
    own = {f"{config.PART}.{name}": part.settings} if part.settings else {}
    return config.table(own).partition("\n\n")[2].strip()


def _metrics(name: str) -> str:
    """Of the part that shows them all, those of the core."""
    if name == "metrics":
        return metric_table.table()
    return "\n".join(map(metric_table.line, metric_table.of_part(installed()[name])))


OF_PARTS: dict[str, Callable[[str], str]] = {"settings": _settings, "metrics": _metrics}
"""The same of a part: `<!-- table: settings of NAME -->`."""


def filled(text: str) -> str:
    """A page with its tables."""
    return _HERE.sub(lambda found: _of_part(*found.groups()) if found[2] else TABLES[found[1]](), text)


def _of_part(what: str, name: str) -> str:
    return OF_PARTS[what](name) if name in installed() else "The part is not here."
