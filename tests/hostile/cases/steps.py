"""What a job step reads: its placement map, its control page, its program, what was kept of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from tarazu import built, config, escapes, native
from tarazu.batch.environment import small_text
from tarazu.cli.job import own as own_jobs
from tarazu.run import job_log
from tarazu.run.command_line.launchers import _in_files
from tarazu.run.plan import reports
from tarazu.store import control
from tarazu.store.placement_map import read_map, write_map
from tarazu.wire import local
from tests.hostile.cases.case import Case, copy, text


def _map(directory: Path) -> Path:
    from tests.store.test_placement_map import KEY, PFL1, PLAIN, row

    path = directory / "map.1"
    lists = ((1,), (2, 3, 4), tuple(range(5, 13)), tuple(range(16)))
    rows = [row(0, PLAIN), row(1, PFL1, lists, (True,) * 4)]
    write_map(path, generation=1, hash_key=KEY, ost_counts={"lustre": 35}, rows=rows, created_s=1000)
    return path


def _lookup(path: Path) -> None:
    native.map_lookup(path, "lustre", "/o/f.0", native.template("/o/f.0", rank=0), 0, 0, 0)


def _report(directory: Path) -> Path:
    path = directory / "one.report"
    path.write_bytes(
        msgspec.json.encode(reports.KeptReport(local.StepReport("fs", (1,), ("a",)), "/nowhere"))
    )
    return path


def _control(directory: Path) -> Path:
    control.write_control(directory)
    control.stop(directory, "for a while")
    return directory / "control"


def _about(directory: Path) -> Path:
    values: dict[type, Any] = {str: "a", int: 1, float: 1.0}
    made = {f.name: values.get(f.type, 1) for f in msgspec.structs.fields(control.RunningStep)}
    control.write_about(directory, control.RunningStep(**made))
    return directory / control.ABOUT


CASES = (
    Case("placement map", ("tarazu.store.placement_map:read_map",), _map, read_map),
    Case("placement map in the library", (), _map, _lookup),
    Case(
        "control page",
        ("tarazu.store.control:read_control",),
        _control,
        lambda p: control.read_control(p.parent),
    ),
    Case(
        "control page, changed",
        ("tarazu.store.control:_store",),
        _control,
        lambda p: control.resume(p.parent),
    ),
    Case(
        "what a step is", ("tarazu.store.control:read_about",), _about, lambda p: control.read_about(p.parent)
    ),
    Case(
        "jobs.log",
        ("tarazu.run.job_log:numbered", "tarazu.run.job_log:_unquoted"),
        text("jobs.log", "2026-11-22T10:00:00 a-b app=ior mode=place job=4711 problem='none' exit=0\n"),
        lambda p: (
            own_jobs.lines(config.Settings(run=config.RunSettings(state_dir=str(p.parent))), "4711"),
            job_log.steps(p, 0, 1e12),
        ),
    ),
    Case(
        "kept report",
        ("tarazu.run.plan.reports:_deliver",),
        _report,
        lambda p: reports._deliver(p, "/nowhere"),
    ),
    Case(
        "program",
        ("tarazu.escapes:read_elf",),
        copy(built.library_path("libtarazu.so")),
        escapes.read_elf,
        400,
    ),
    Case(
        "script",
        ("tarazu.escapes:_interpreter",),
        text("script", "#!/usr/bin/env -S python3 'a b'\nx\n"),
        lambda p: escapes._interpreter(str(p)),
    ),
    Case(
        "Open MPI's settings",
        ("tarazu.run.command_line.launchers:_in_files",),
        text(".openmpi/mca-params.conf", "# ours\nplm = slurm\nplm_rsh_agent = ssh -q\n"),
        lambda p: _in_files("mpirun", {"HOME": str(p.parents[1])}),
    ),
    Case(
        "launcher's file",
        ("tarazu.batch.environment:small_text",),
        text("hosts", "n1 slots=4\nn2\n"),
        lambda p: small_text(str(p)),
    ),
)
