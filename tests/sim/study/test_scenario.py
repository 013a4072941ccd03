"""A scenario file is read as it is meant, and what is wrong in it is named in one line."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tarazu.errors import BadInput
from tarazu.sim.model import presets
from tarazu.sim.study import results
from tarazu.sim.study.cases import expand
from tarazu.sim.study.runner import compute
from tarazu.sim.study.scenario import ScenarioFile, parse

from .conftest import SMALL


def read(text: str) -> ScenarioFile:
    return parse(text, Path("s.toml"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "small"', "name = ", "s.toml: expected TOML, found 'Invalid value"),
        ('name = "small"', "", "s.toml: name: expected text that is not empty, found 'none'"),
        ('name = "small"', "name = 7", "s.toml: name: expected text that is not empty, found 7"),
        ("seeds = 2", "seads = 2", "s.toml: seads: expected a key among name, cluster, jobs"),
        ("seeds = 2", "seeds = 0", "s.toml: seeds: expected a number above 0"),
        ("seeds = 2", "seeds = [1, 1]", "s.toml: seeds: expected a number above 0, or a list of different"),
        ('"random"', '"rnd"', "s.toml: policies[1]: expected one of tarazu, tarazu-linear, lsa"),
        ("seeds = 2", 'seeds = 2\nlayouts = ["plian"]', "s.toml: layouts[0]: expected one of plain, pfl-1"),
        ('"paper"', '"papers"', "s.toml: cluster.preset: expected one of paper, titan, scaling, frontier"),
        ('"paper"', '"paper"\nost = 3', "s.toml: cluster.ost: expected a key among"),
        ('"paper"', '"paper"\nosts = "many"', "s.toml: cluster.osts: expected a whole number, found 'many'"),
        ('"paper"', '"paper"\nnic_bytes_per_s = 0', "s.toml: cluster.nic_bytes_per_s: expected above 0, found 0"),
        ('"paper"', '"paper"\nost_bytes = "10 apples"', "s.toml: cluster.ost_bytes: expected a size such as 64K"),
        ('"paper"', '"paper"\nused = [1.5]', "s.toml: cluster.used: expected shares from 0 to 1, found 1.5"),
        ('"paper"', '"paper"\nwrite = {peak = 1}', "s.toml: cluster.write.peak: expected a key among"),
        ('preset = "paper"', "osts = 4", "s.toml: cluster.osts_per_oss: expected a whole number, found 'none'"),
        ('kind = "ior"', 'kind = "iro"', "jobs[0].workload.kind: expected one of ior, "),
        ('kind = "ior"', "", "jobs[0].workload.kind: expected one of ior, "),
        ("ranks = 4", "rank = 4", "jobs[0].workload.rank: expected a key among ranks, "),
        ("ranks = 4", "ranks = 4.5", "jobs[0].workload.ranks: expected a whole number, found 4.5"),
        ('name = "writers"', "start_s = -1", "s.toml: jobs[0].start_s: expected a number, 0 or more, found -1"),
        ("ost = 3", "ost = 10", "s.toml (with cluster.osts = 10): failures[0].ost: expected an OST below 10, found 10"),
        ("until_s = 0.5", "until_s = 0.05", "s.toml: failures[0].until_s: expected above 0.1, found 0.05"),
        ("[10, 20]", "[]", "s.toml: sweep.cluster.osts: expected one value or more, found []"),
        ('"cluster.osts"', '"cluster.osst"', "s.toml (with cluster.osst = 10): cluster.osst: expected a key among"),
        ('"cluster.osts"', '"jobs.reader.start_s"', "s.toml: jobs.reader: expected one of writers, found 'reader'"),
        ('"cluster.osts"', '"policies"', "s.toml: sweep.policies: expected a key below cluster, jobs"),
        ("[sweep]", "[loop]\nstatistics_s = 0\n[sweep]", "s.toml: loop.statistics_s: expected seconds above 0"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_key(old: str, new: str, message: str) -> None:
    assert old in SMALL
    with pytest.raises(BadInput) as caught:
        expand(read(SMALL.replace(old, new)))
    text = str(caught.value)
    assert message in text and "\n" not in text, text


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    from tarazu.sim.study.scenario import load

    with pytest.raises(BadInput, match=r"none\.toml: expected a scenario file, found 'No such file"):
        load(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match="expected TOML in UTF-8"):
        load(tmp_path / "bytes.toml")


def test_a_preset_gives_what_the_file_does_not() -> None:
    file = read(SMALL.replace('"paper"', '"paper"\nost_bytes = "20G"\nwrite = { interference = 0.5 }'))
    cluster = expand(file)[0].cluster
    paper = presets.named("paper").spec
    assert cluster.ost_bytes == 20 << 30 and cluster.osts == 10
    assert cluster.write.interference == 0.5
    assert cluster.write.peak_bytes_per_s == paper.write.peak_bytes_per_s
    assert cluster.read == paper.read


def test_cases_are_every_combination_in_one_order() -> None:
    found = expand(read(SMALL))
    assert [(c.cluster.osts, c.policy, c.seed) for c in found] == [
        (osts, policy, seed) for osts in (10, 20) for policy in ("lsa", "random", "tarazu") for seed in (0, 1)
    ]
    assert found[0].failures[0].until_s == 0.5


def test_a_job_is_swept_by_its_name_and_a_failure_by_its_number() -> None:
    text = SMALL.replace(
        '"cluster.osts" = [10, 20]', '"jobs.writers.workload.ranks" = [2, 4]\n"failures.0.ost" = [1, 2]'
    )
    found = {(c.jobs[0].workload["ranks"], c.failures[0].ost) for c in expand(read(text))}
    assert found == {(2, 1), (2, 2), (4, 1), (4, 2)}


def test_infinity_is_a_number_of_toml() -> None:
    text = SMALL.replace("until_s = 0.5", "until_s = inf")
    assert expand(read(text))[0].failures[0].until_s == math.inf


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ('"paper"', '"paper"\nwrite = {peak_bytes_per_s = inf}', "cluster.write.peak_bytes_per_s"),
        ('"paper"', '"paper"\nspeeds = [1.0, inf]', "cluster.speeds[1]"),
        ('"paper"', '"paper"\nnic_bytes_per_s = nan', "cluster.nic_bytes_per_s"),
        ("[10, 20]", '[10]\n"cluster.read.peak_bytes_per_s" = [inf]', "sweep.cluster.read.peak_bytes_per_s[0]"),
        ("[sweep]", "[loop]\nperiod_s = inf\n[sweep]", "loop.period_s"),
    ],
)  # fmt: skip
def test_infinity_is_refused_where_rows_would_not_be_readable(old: str, new: str, key: str) -> None:
    with pytest.raises(BadInput) as caught:
        read(SMALL.replace(old, new))
    assert str(caught.value).startswith(f"s.toml: {key}: expected a finite number"), caught.value


def test_rows_of_a_cluster_without_limits_of_its_network_are_readable(tmp_path: Path) -> None:
    links = ("nic", "oss_link", "io_router", "lnet_router", "cpu")
    free = "\n".join(f"{name}_bytes_per_s = inf" for name in links)
    text = SMALL.replace('"paper"', f'"paper"\n{free}')
    (tmp_path / "rows.jsonl").write_bytes(results.encode(compute(expand(read(text))[0])))
    (row,) = results.read(tmp_path / "rows.jsonl")
    assert math.isfinite(row.write_limit_bytes_per_s) and not row.error


@pytest.mark.parametrize("name", presets.NAMES)
def test_every_preset_is_a_cluster_that_can_be(name: str) -> None:
    text = SMALL.replace('"paper"', f'"{name}"').replace(
        '"cluster.osts" = [10, 20]', '"cluster.create_s" = [0.001]'
    )
    cluster = expand(read(text))[0].cluster
    assert cluster.osts % cluster.osts_per_oss == 0
    preset = presets.named(name)
    assert preset.sources and preset.assumed
