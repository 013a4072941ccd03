"""Write Grafana's dashboards, which the part `metrics` has; what each panel asks stands in `dashboard_panels.py`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from dashboard_panels import ITSELF, STORAGE, Panel

DIRECTORY = Path(__file__).parents[1] / "tarazu" / "parts" / "metrics" / "grafana"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
WIDTH = 24
OF_FS = "label_values(tarazu_target_size_bytes, fs)"


DASHBOARDS = {
    "storage": ("tarazu: storage system", "OSTs and OSSs as mdsd knows them.", STORAGE, True),
    "tarazu": ("tarazu: itself", "Daemons, plans, hits, allocations, promises.", ITSELF, False),
}


def _thresholds(bad: float | None) -> dict[str, Any]:
    if bad is None:
        return {"mode": "absolute", "steps": [{"value": None, "color": "text"}]}
    below, above = ("red", "green") if bad < 0 else ("green", "red")
    return {
        "mode": "absolute",
        "steps": [{"value": None, "color": below}, {"value": abs(bad), "color": above}],
    }


def _panel(of: Panel, number: int, x: int, y: int, height: int) -> dict[str, Any]:
    options: dict[str, Any]
    custom: dict[str, Any] = {}
    if of.kind == "stat":
        reduce = {"calcs": ["lastNotNull"], "fields": "", "values": False}
        options = {
            "graphMode": "area", "colorMode": "value", "justifyMode": "auto", "textMode": "auto",
            "wideLayout": True, "showPercentChange": False, "reduceOptions": reduce,
            "percentChangeColorMode": "standard", "orientation": "auto",
        }  # fmt: skip
    elif of.kind == "table":
        options = {"showHeader": True, "cellHeight": "sm", "frameIndex": 0, "showTypeIcons": False}
    else:
        options = {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
        custom = {
            "drawStyle": "line",
            "lineWidth": 1,
            "fillOpacity": 8,
            "showPoints": "never",
            "spanNulls": False,
        }
    defaults: dict[str, Any] = {"unit": of.unit, "custom": custom}
    if of.kind == "stat":
        defaults["thresholds"] = _thresholds(of.bad)
    found: dict[str, Any] = {
        "id": number,
        "type": of.kind,
        "title": of.title,
        "description": of.text,
        "datasource": SOURCE,
        "gridPos": {"h": height, "w": of.width, "x": x, "y": y},
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options,
        "targets": [
            {
                "refId": chr(ord("A") + at),
                "datasource": SOURCE,
                "expr": expression,
                "legendFormat": legend or "__auto",
                **(
                    {"instant": True, "range": False, "format": "table"}
                    if of.kind == "table"
                    else {"range": True}
                ),
            }
            for at, (legend, expression) in enumerate(of.queries)
        ],
    }
    if of.kind == "table":
        hidden = ("Time", "Value", "__name__", "instance", "job", "component")
        found["transformations"] = [
            {"id": "organize", "options": {"excludeByName": dict.fromkeys(hidden, True)}}
        ]
    return found


def dashboard(name: str) -> dict[str, Any]:
    """As Grafana imports it."""
    title, text, rows, by_fs = DASHBOARDS[name]
    panels: list[dict[str, Any]] = []
    y = 0
    for row, of_row in rows:
        at = {"h": 1, "w": WIDTH, "x": 0, "y": y}
        panels.append(
            {
                "id": len(panels) + 1,
                "type": "row",
                "title": row,
                "collapsed": False,
                "panels": [],
                "gridPos": at,
            }
        )
        x, y = 0, y + 1
        height = 4 if of_row[0].kind == "stat" else 8
        for panel in of_row:
            if x + panel.width > WIDTH:
                x, y = 0, y + height
            panels.append(_panel(panel, len(panels) + 1, x, y, height))
            x += panel.width
        y += height
    variables: list[dict[str, Any]] = [
        {"type": "datasource", "name": "datasource", "label": "Prometheus", "query": "prometheus"}
    ]
    if by_fs:
        variables.append(
            {
                "type": "query", "name": "fs", "label": "file system", "datasource": SOURCE,
                "query": OF_FS, "definition": OF_FS,
                "refresh": 2, "multi": True, "includeAll": True, "allValue": ".*",
                "current": {"text": ["All"], "value": ["$__all"]},
            }
        )  # fmt: skip
    return {
        "uid": f"tarazu-{name}",
        "title": title,
        "description": text,
        "tags": ["tarazu", "lustre"],
        "timezone": "browser",
        "editable": True,
        "graphTooltip": 1,
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "1m",
        "schemaVersion": 39,
        "version": 1,
        "panels": panels,
        "templating": {"list": variables},
        "annotations": {"list": []},
        "links": [],
    }


def text(name: str) -> str:
    """The file: a line for each panel and variable, so that a change of one is a change of one line."""
    whole = dashboard(name)
    lists = {"panels": whole.pop("panels"), "list": whole["templating"].pop("list")}
    whole["panels"], whole["templating"] = "panels", {"list": "list"}
    found = json.dumps(whole, indent=1)
    for key, items in lists.items():
        lines = ",\n".join(f"  {json.dumps(item)}" for item in items)
        found = found.replace(f'"{key}": "{key}"', f'"{key}": [\n{lines}\n ]')
    return found + "\n"


def main() -> int:
    DIRECTORY.mkdir(exist_ok=True)
    for name in DASHBOARDS:
        (DIRECTORY / f"{name}.json").write_text(text(name))
        print(f"{DIRECTORY / name}.json: {sum(p['type'] != 'row' for p in dashboard(name)['panels'])} panels")
    return 0


if __name__ == "__main__":
    sys.exit(main())
