"""Grafana's dashboards and Prometheus' alerts: of Grafana's own schema, current, and of metrics that there are.

That each query gives series in a real Prometheus: test_metrics.py.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tarazu.part import installed
from tests.parts.metrics.dashboards import ALERTS, FILES, expressions, panels

ROOT = Path(__file__).parents[3]
SCHEMAS = ROOT / "tests/data/grafana"


def schema(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((SCHEMAS / f"{name}.jsonschema.json").read_text())
    return found


def check(value: object, of: str, definition: str = "") -> None:
    whole = schema(of)
    if definition:
        whole["$ref"] = f"#/definitions/{definition}"
    jsonschema.Draft7Validator(whole).validate(value)


@pytest.fixture
def generators(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    import dashboards  # type: ignore[import-not-found]
    import metric_table  # type: ignore[import-not-found]

    return dashboards, metric_table


def test_there_are_two_and_they_are_current(generators: tuple[Any, Any]) -> None:
    dashboards, _ = generators
    assert [file.stem for file in FILES] == sorted(dashboards.DASHBOARDS) == ["storage", "tarazu"]
    for file in FILES:
        assert file.read_text() == dashboards.text(file.stem), "run `make docs`"


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_grafana_s_own_schema_allows_it(file: Path) -> None:
    whole = json.loads(file.read_text())
    check(whole, "dashboard")
    taken: set[tuple[int, int]] = set()
    numbers = [panel["id"] for panel in whole["panels"]]
    assert len(set(numbers)) == len(numbers) > 15
    for panel in panels(file):
        check(panel["options"], panel["type"], "Options")
        if panel["type"] == "timeseries":
            check(panel["fieldConfig"]["defaults"]["custom"], "timeseries", "FieldConfig")
        for target in panel["targets"]:
            check(target, "prometheus")
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken and at["x"] + at["w"] <= 24, panel["title"]
        taken |= cells


@pytest.mark.parametrize(
    "change",
    [
        lambda of: of.update(panel=[]),
        lambda of: of["panels"][1].update(gridpos={}),
        lambda of: of["panels"][1].update(fieldConfig={}),
        lambda of: of.pop("schemaVersion"),
    ],
    ids=["unknown", "misspelt", "incomplete", "missing"],
)
def test_the_schema_refuses_what_is_wrong(change: Any) -> None:
    whole = json.loads(FILES[0].read_text())
    change(whole)
    with pytest.raises(jsonschema.ValidationError):
        check(whole, "dashboard")


def test_of_two_mdsds_each_target_counts_once() -> None:
    """Both tell of all targets and servers: what adds up, lists or ranks them takes the larger of the two first."""
    of_both = re.compile(r"tarazu_(?:target|server)_\w+")
    once = re.compile(r"(?:max|min) by \((?:fs, )?target[^)]*\) \(tarazu_(?:target|server)_\w+")
    found = [
        *expressions(),
        *(("alert", line) for line in ALERTS.read_text().splitlines() if "expr:" in line),
    ]
    for where, expression in found:
        assert len(of_both.findall(expression)) == len(once.findall(expression)), (where, expression)
    assert sum(bool(once.search(expression)) for _, expression in found) > 20


def test_every_metric_they_name_exists(generators: tuple[Any, Any]) -> None:
    _, metric_table = generators
    families = [family for part in installed().values() for family in metric_table.of_part(part)]
    known = {family.name: family.kind for family in families}
    asked = [*expressions(), ("alerts", ALERTS.read_text())]
    for where, expression in asked:
        for name in re.findall(r"\btarazu_[a-z_]+\b", expression):
            if name.startswith("tarazu_changes_") and "changes" not in installed():
                continue
            family = re.sub(r"_(bucket|sum|count)$", "", name)
            assert known.get(name) in ("gauge", "counter") or known.get(family) == "histogram", (where, name)
    assert len(asked) > 70


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool")
def test_promtool_takes_the_alerts_and_they_fire(tmp_path: Path) -> None:
    series = [
        # Two mdsds tell of the same.
        *(
            (f'{name}{{instance="{mdsd}",{labels}}}', value)
            for mdsd in ("mds1", "mds2")
            for name, labels, value in (
                ("tarazu_target_unwell", 'component="ost",target="s-OST0001",fs="s",health="sick"', "1x30"),
                ("tarazu_server_report_age_seconds", 'component="oss",target="oss1"', "700x30"),
            )
        ),
        ('tarazu_changes_not_as_wanted{instance="oss1",lever="nrs"}', "1x30"),
        ('tarazu_changes_failed_total{instance="oss1",lever="nrs"}', "0+1x30"),
    ]
    fired = {
        "LustreTargetUnwell": "s-OST0001 is sick.",
        "LustreServerSilent": "oss1 has not reported for ten minutes; nothing new is placed on its OSTs.",
        "TarazuMdsdSilent": "No mdsd tells Prometheus anything; new jobs get no plans.",
        "TarazuChangeNotAsWanted": "nrs on oss1 is half set, or could not be restored: tarazu change list there.",
        "TarazuChangesFail": "nrs on oss1 fails to be set or restored again and again: tarazu change log there.",
    }
    labels = {
        "LustreTargetUnwell": {"target": "s-OST0001", "fs": "s", "health": "sick"},
        "LustreServerSilent": {"target": "oss1"},
        "TarazuChangeNotAsWanted": {"instance": "oss1", "lever": "nrs"},
        "TarazuChangesFail": {"instance": "oss1", "lever": "nrs"},
    }
    tests = [
        {
            "eval_time": "20m",
            "alertname": name,
            "exp_alerts": [
                {
                    "exp_labels": {"severity": "warning", **labels.get(name, {})},
                    "exp_annotations": {"summary": text},
                }
            ],
        }
        for name, text in fired.items()
    ]
    tests.append({"eval_time": "20m", "alertname": "TarazuGateClosed", "exp_alerts": []})
    whole = {
        "rule_files": [str(ALERTS)],
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series],
                "alert_rule_test": tests,
            }
        ],
    }
    (tmp_path / "test.yml").write_text(json.dumps(whole))
    for command in (["check", "rules", str(ALERTS)], ["test", "rules", str(tmp_path / "test.yml")]):
        done = subprocess.run(["promtool", *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
