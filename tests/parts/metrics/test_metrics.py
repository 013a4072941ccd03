"""A real Prometheus scrapes the three daemons; promtool finds nothing to say; a scrape holds nobody up."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tarazu.config import Settings
from tarazu.daemons.service import Service, Wakeup
from tarazu.errors import Unavailable
from tarazu.figures import Family, gauge
from tarazu.part import installed
from tarazu.parts.metrics import PART
from tarazu.parts.metrics.exporter import Ask, Exporter
from tarazu.sim.testbed.processes import free_port
from tests.daemons.conftest import DATA, PATIENCE_S, Site, allocation, ask, patiently
from tests.parts.metrics.dashboards import expressions
from tests.stats.conftest import Series

pytest.importorskip("prometheus_client")

DOCS = Path(__file__).parents[3] / "docs"
DAEMONS = ("mdsd", "ossd", "clientd")


def fetched(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        return str(answer.read().decode())


@pytest.fixture
def documented(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """All metrics of docs/metrics.md and of the parts' pages."""
    monkeypatch.syspath_prepend(str(DOCS))
    import metric_table  # type: ignore[import-not-found]

    return {family.name for part in installed().values() for family in metric_table.of_part(part)}


@pytest.fixture
def scraped(site: Site, tmp_path: Path) -> dict[str, int]:
    """The three daemons, with metrics at these ports."""
    ports = {daemon: free_port() for daemon in DAEMONS}
    lines = "".join(f"{daemon} = '127.0.0.1:{port}'\n" for daemon, port in ports.items())
    site.config.write_text(site.config.read_text() + f"[part.metrics]\n{lines}")
    # An OST where the MDS makes no objects.
    (site.mds_root / "sys/fs/lustre/osp/lustre-OST0001-osc-MDT0000/active").write_text("0\n")
    shutil.copytree(DATA / "oss", tmp_path / "oss")
    Series(tmp_path / "oss").set(1)
    site.mdsd()
    site.ossd(root=tmp_path / "oss")
    site.start("clientd", "--socket", str(tmp_path / "clientd.sock"), "--database", str(tmp_path / "db"))
    site.wait_status(lambda status: status["statistics"]["received"] > 1)
    assert ask(site.client(), allocation()).status == "allocated"
    return ports


def test_a_real_prometheus_scrapes_all_three(
    scraped: dict[str, int], documented: set[str], tmp_path: Path
) -> None:
    no_job_no_path_no_user_stands_in_a_label(fetched(f"http://127.0.0.1:{scraped['mdsd']}/metrics"))
    for tool in ("prometheus", "promtool"):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    for port in scraped.values():
        text = patiently(lambda: fetched(f"http://127.0.0.1:{port}/metrics"))  # noqa: B023
        done = subprocess.run(
            ["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert set(re.findall(r"^# HELP (tarazu_\w+)", text, re.MULTILINE)) <= documented
    targets = [
        {"targets": [f"127.0.0.1:{port}"], "labels": {"daemon": name}} for name, port in scraped.items()
    ]
    scrape = {"job_name": "tarazu", "scrape_interval": "1s", "static_configs": targets}
    (tmp_path / "prometheus.yml").write_text(json.dumps({"scrape_configs": [scrape]}))
    at = f"127.0.0.1:{free_port()}"
    command = ["prometheus", f"--config.file={tmp_path}/prometheus.yml", f"--web.listen-address={at}"]
    with (tmp_path / "prometheus.log").open("w") as log:
        process = subprocess.Popen(
            [*command, f"--storage.tsdb.path={tmp_path}/tsdb"], stdout=log, stderr=log, cwd=tmp_path
        )

    def query(expression: str) -> list[dict[str, Any]]:
        data = json.loads(fetched(f"http://{at}/api/v1/query?query={urllib.parse.quote(expression)}"))
        return list(data["data"]["result"])

    try:
        up = patiently(lambda: found if len(found := query("up == 1")) == 3 else None)
        assert {row["metric"]["daemon"] for row in up} == set(DAEMONS)
        usable = query("tarazu_target_usable")
        assert {row["metric"]["target"] for row in usable} == {f"lustre-OST000{i}" for i in range(5)}
        assert {(row["metric"]["component"], row["metric"]["fs"]) for row in usable} == {("ost", "lustre")}
        promised = query("sum(tarazu_target_promised_bytes)")
        assert float(promised[0]["value"][1]) == 16 << 20
        for series, at_least in {
            'tarazu_mdsd_answers_total{status="allocated"}': 1,
            "tarazu_mdsd_allocation_seconds_count": 1,
            "tarazu_mdsd_batch_requests_count": 1,
            'tarazu_mdsd_messages_received_total{socket="statistics"}': 2,
            "tarazu_ossd_collection_seconds_count": 2,
            "tarazu_ossd_targets": 5,
            "tarazu_clientd_plans_waiting": 0,
            'tarazu_clientd_requests_total{kind="plans"}': 0,
            'process_resident_memory_bytes{daemon="ossd"}': 1,
        }.items():
            found = query(series)
            assert found and float(found[0]["value"][1]) >= at_least, series
        # Each panel of the dashboards: rates are there once there are two scrapes.
        series, missing = Series(tmp_path / "oss"), dict(expressions())
        moments = itertools.cycle(series.MOMENTS)

        def all_are_there() -> bool:
            """While the server's disks write, as captured."""
            series.set(next(moments))
            for where in [where for where, expression in missing.items() if query(expression)]:
                del missing[where]
            return not missing

        try:
            patiently(all_are_there)
        except AssertionError:
            raise AssertionError(f"no series: {missing}") from None
        (memory,) = query('process_resident_memory_bytes{daemon="ossd"}')
        assert float(memory["value"][1]) < 40e6
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def no_job_no_path_no_user_stands_in_a_label(text: str) -> None:
    labels = {label for line in text.splitlines() if "{" in line for label in _labels(line)}
    known = {"component", "target", "fs", "reason", "health", "status", "socket", "version", "le"}
    assert labels - {"generation", "implementation", "major", "minor", "patchlevel"} <= known
    assert "4711" not in "".join(line for line in text.splitlines() if line.startswith("tarazu_target"))


def _labels(line: str) -> list[str]:
    inside = line[line.index("{") + 1 : line.rindex("}")]
    return [part.partition("=")[0] for part in inside.split(",")]


def test_a_port_that_is_taken_is_a_line_and_the_daemon_serves(site: Site) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        site.config.write_text(site.config.read_text() + f"[part.metrics]\nmdsd = {port}\n")
        site.mdsd()
        site.wait_status(lambda status: status["daemon"] == "mdsd")
        said = [line for line in site.log("mdsd").splitlines() if "metrics" in line]
        assert said == [f"tarazu-mdsd: ERROR: no metrics at {port}: Address already in use"]


def test_nothing_listens_and_nothing_is_loaded_by_default(site: Site) -> None:
    ossd = site.ossd()
    patiently(lambda: "publishes to" in site.log("ossd"))
    assert "metrics" not in site.log("ossd")
    loaded = Path(f"/proc/{ossd.pid}/maps").read_text()
    assert "prometheus" not in loaded
    code = (
        "import sys, tarazu.daemons.ossd.service, tarazu.daemons.mdsd.service\n"
        "print([name for name in sys.modules if name in ('prometheus_client', 'http.server')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


class Loop:
    """A main loop that turns until it is told to hang."""

    def __init__(self) -> None:
        self.woken = threading.Event()
        self.hangs = threading.Event()
        self.over = False

    def run(self, exporter: Exporter) -> None:
        while not self.over:
            self.woken.wait(0.05)
            self.woken.clear()
            if not self.hangs.is_set():
                exporter.turn()


def test_parts_are_given_one_a_turn_and_errors_go_to_the_asker() -> None:
    ask = Ask(lambda: None)
    answers: list[object] = []

    def ask_for(part: object) -> None:
        try:
            answers.append(ask(lambda: 1 / 0 if part == "error" else part))
        except ZeroDivisionError as error:
            answers.append(error)

    threads = [threading.Thread(target=ask_for, args=(part,)) for part in (1, "error")]
    for number, thread in enumerate(threads, 1):
        thread.start()
        patiently(lambda number=number: len(ask._open) == 1 or len(answers) >= number)
        ask.answer_one()
        thread.join(PATIENCE_S)
        assert len(answers) == number
    assert answers[0] == 1 and isinstance(answers[1], ZeroDivisionError)
    ask.answer_one()


def test_a_loop_that_hangs_costs_the_scrape_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tarazu.parts.metrics.exporter.ANSWER_S", 0.2)
    loop, asked = Loop(), []
    port = free_port()

    def families(ask: Ask) -> Any:
        asked.append(time.monotonic())
        yield ask(lambda: gauge("seven", "Seven.", 7))

    exporter = Exporter(str(port), loop.woken.set, families)
    thread = threading.Thread(target=loop.run, args=(exporter,))
    thread.start()
    try:
        url = f"http://127.0.0.1:{port}/metrics"
        monkeypatch.setattr("tarazu.parts.metrics.text.SHARE", 1000.0)  # made anew each time
        assert "\ntarazu_seven 7.0\n" in fetched(url)
        with pytest.raises(urllib.error.HTTPError, match="404"):
            fetched(f"http://127.0.0.1:{port}/other")
        loop.hangs.set()
        with pytest.raises(urllib.error.HTTPError, match="503"):
            fetched(url)
        loop.hangs.clear()
        assert "tarazu_seven" in fetched(url)
        monkeypatch.setattr("tarazu.parts.metrics.text.SHARE", 1e-6)  # made, and good for long
        fetched(url)
        before = len(asked)
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(2)]  # say nothing
        assert all("tarazu_seven" in fetched(url) for _ in range(5))
        assert len(asked) == before
        for connection in idle:
            connection.close()
    finally:
        loop.over = True
        thread.join(PATIENCE_S)
        exporter.close()


def test_an_answer_that_never_comes_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tarazu.parts.metrics.exporter.ANSWER_S", 0.05)
    ask = Ask(lambda: None)
    with pytest.raises(Unavailable, match="main loop"):
        ask(lambda: 1)
    ask.answer_one()  # nobody waits for it any more: not even looked at


class Own(Service):
    """A part's daemon."""

    USED = ()

    def figures(self) -> Iterator[Family]:
        yield gauge("own", "Its own.", 7)


def test_a_part_s_daemon_tells_its_own_where_it_says_so() -> None:
    port = free_port()
    with Wakeup() as wakeup, contextlib.closing(Own(Settings(), wakeup)) as silent:
        assert PART.in_daemon(silent) is None
    with Wakeup() as wakeup, contextlib.closing(Own(Settings(), wakeup, f"127.0.0.1:{port}")) as own:
        found: list[str] = []

        def ask() -> None:
            try:
                found.append(fetched(f"http://127.0.0.1:{port}/metrics"))
            finally:
                wakeup.stopping = True
                wakeup.wake()

        own.every(lambda: PATIENCE_S, lambda _: threading.Thread(target=ask).start())
        own.loop()
    assert "\ntarazu_own 7.0\n" in found[0] and "\ntarazu_build_info{" in found[0]
