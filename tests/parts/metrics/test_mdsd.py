"""What mdsd's families say of targets and servers."""

from __future__ import annotations

import msgspec
import pytest

from tarazu.model import Oss, SystemView
from tarazu.parts.metrics import mdsd as families
from tarazu.wire.reports import STATISTICS, OssReport, RouterLoad
from tests.daemons.mdsd.test_one_verdict import EXPECTED, FS, Mdsd, mdsd, view  # noqa: F401

REPORT = OssReport("oss1", 1, 0.0, 1.0, **dict.fromkeys(STATISTICS, 0.5), osts=())


@pytest.mark.parametrize("name", STATISTICS)
def test_a_declared_statistic_is_measured(name: str) -> None:
    rows = [(1.0, Oss("oss1", 0.5, 0.5, 0.5, 0.5), REPORT)]
    found = {family.name: family.samples for family in families._servers(rows)}
    assert found[f"server_{STATISTICS[name].metric}"] == {("oss", "oss1"): 0.5}


def test_what_a_router_forwards_is_a_figure_and_of_a_server_that_is_none_there_is_none() -> None:
    load = RouterLoad(("10.77.0.11@tcp",), 5e6, 10.0)
    router = msgspec.structs.replace(REPORT, oss="router1", router=load)
    found = {family.name: family for family in families._servers([(1.0, None, router), (1.0, None, REPORT)])}
    assert found["server_routed_bytes_per_second"].samples == {("oss", "router1"): 5e6}


def test_metrics_carry_mdsd_s_verdict_and_the_alert_is_for_those_that_were_alerted(
    view: SystemView,  # noqa: F811
    mdsd: Mdsd,  # noqa: F811
) -> None:
    details = mdsd.system.views.details(FS, mdsd.now)
    found = {family.name: family for family in families._targets([view], [details])}
    unwell = found["target_unwell"]
    assert unwell.labels == ("component", "target", "fs", "health")
    words = {target: word for _, target, _, word in unwell.samples}
    assert words == {f"{FS}-OST{i:04x}": word for i, word in EXPECTED.items() if i}
