"""Grafana's dashboards as they are shipped: their panels, and what each asks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tarazu.parts.metrics import PART

DIRECTORY = PART.folder / "grafana"
FILES = sorted(DIRECTORY.glob("*.json"))
ALERTS = DIRECTORY / "alerts.yml"
VARIABLES = {"$__rate_interval": "10s", "$__range": "1m", '"$fs"': '".*"'}
"""What Grafana puts in their place."""


def panels(file: Path) -> list[dict[str, Any]]:
    return [panel for panel in json.loads(file.read_text())["panels"] if panel["type"] != "row"]


def expressions() -> Iterator[tuple[str, str]]:
    """(where, what Prometheus is asked)."""
    for file in FILES:
        for panel in panels(file):
            for target in panel["targets"]:
                expression = target["expr"]
                for name, value in VARIABLES.items():
                    expression = expression.replace(name, value)
                assert "$" not in expression, expression
                yield f"{file.stem}: {panel['title']}: {target['refId']}", expression
