"""Which package holds what: nothing is forgotten, an OSS gets little, units go with what they start."""

from __future__ import annotations

import tomllib
from pathlib import Path, PurePosixPath

import contents
import pytest
import tree

import tarazu
from tarazu import native
from tests.test_imports import Imports, parsed, product

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LEFT_OUT = {
    "dask": "sweeps on an existing cluster: who has one has a Python environment for it",
    "parquet": "pyarrow is there: bursts needs it",
    "viz": "matplotlib is there: darshan needs it",
    "tune": "trains the classifier, which nothing on a cluster does",
    "dev": "tests",
}
"""Extras of the wheel that no package names → why."""


def test_each_program_is_in_one_package() -> None:
    named = [program for package in contents.PACKAGES for program in package.programs]
    assert sorted(named) == sorted(PROJECT["scripts"])


def test_each_extra_is_in_a_package_or_left_out_for_a_reason() -> None:
    packed = {extra for package in contents.PACKAGES for extra in package.extras}
    assert packed | set(LEFT_OUT) == set(PROJECT["optional-dependencies"]) and not packed & set(LEFT_OUT)


@pytest.mark.parametrize("unit", sorted(path.name for path in tree.UNITS.glob("*.service")))
def test_a_unit_lies_in_the_package_of_the_program_that_it_starts(unit: str) -> None:
    started = next(
        line.partition("=")[2].split()[0]
        for line in (tree.UNITS / unit).read_text().splitlines()
        if line.startswith("ExecStart=")
    )
    holder = contents.package_of(PurePosixPath("lib/systemd/system", unit), {})
    assert holder == contents.package_of(PurePosixPath("bin", started), {})
    if started != "tarazu":
        assert started in next(package for package in contents.PACKAGES if package.name == holder).programs


@pytest.mark.parametrize(
    ("path", "package"),
    [
        ("lib/tarazu/libtarazu.so", "tarazu-preload"),
        ("lib/tmpfiles.d/tarazu.conf", "tarazu-preload"),
        ("lib/tarazu/bin/python3", "tarazu-oss"),
        ("lib/tarazu/bin/tarazu-mdsd", "tarazu"),
        ("lib/tarazu/lib/python3.11/site-packages/tarazu/cli/run.py", "tarazu-oss"),
        ("lib/tarazu/lib/python3.11/site-packages/tarazu/lib/libtarazu_core.so", "tarazu"),
        ("lib/tarazu/lib/python3.11/site-packages/tarazu/lib/libtestbed.so", "tarazu-analysis"),
        ("lib/tarazu/lib/python3.11/site-packages/tarazu/lib/testbed/iorlike", "tarazu-analysis"),
        ("lib/tarazu/lib/python3.11/site-packages/tarazu/sim/demo.py", "tarazu-analysis"),
        (
            "lib/tarazu/lib/python3.11/site-packages/tarazu/sim/cli/__pycache__/sim.c-311.pyc",
            "tarazu-analysis",
        ),
        ("lib/tarazu/lib/python3.11/site-packages/tarazu/daemons/burstd/kept.py", "tarazu-oss"),
        (
            "lib/tarazu/lib/python3.11/site-packages/tarazu/daemons/burstd/__pycache__/jobs.c-311.pyc",
            "tarazu-analysis",
        ),
        ("lib/tarazu/lib/python3.11/site-packages/ortools/init.py", "tarazu"),
        ("lib/tarazu/lib/python3.11/dist-packages/ortools/init.py", "tarazu"),
        ("share/man/man8/tarazu-burstd.8.gz", "tarazu-analysis"),
    ],
)
def test_where_a_file_belongs(path: str, package: str) -> None:
    assert contents.package_of(PurePosixPath(path), {"ortools": "tarazu"}) == package


def modules() -> dict[str, PurePosixPath]:
    """Module → its file below site-packages."""
    found = {name: PurePosixPath(path.relative_to(ROOT)) for name, path in product().items()}
    return {name: path if path.parts[0] == "tarazu" else "tarazu" / path for name, path in found.items()}


def test_nothing_imports_what_only_analysis_has() -> None:
    files = product()
    analysis = {name for name, path in modules().items() if contents.is_of_analysis(path)}
    for name in files.keys() - analysis:
        visitor = Imports(files, types=False)
        visitor.visit(parsed(files[name]))
        assert not visitor.found & analysis, name


@pytest.mark.parametrize("folder", sorted(contents.ANALYSIS.keys() - {"lib"}))
def test_what_only_analysis_has_exists(folder: str) -> None:
    there = {path.stem for path in (ROOT / "tarazu" / folder).iterdir()}
    assert set(contents.ANALYSIS[folder].split()) <= there


def test_an_oss_gets_little() -> None:
    assert set(tree.closure(["oss"])) == {"msgspec", "psutil", "pyzmq"}
    assert set(tree.closure(["oss", "metrics"])) == {"msgspec", "psutil", "pyzmq", "prometheus-client"}


def test_jobs_preload_the_path_that_compute_nodes_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have no site-packages: the library that lies there is a link."""
    library = tmp_path / contents.PRELOAD
    place = library.parent / "lib/python3.11/site-packages/tarazu"
    (place / "lib").mkdir(parents=True)
    library.touch()
    (place / "lib/libtarazu.so").symlink_to("../../../../../libtarazu.so")
    monkeypatch.setattr(tarazu, "__path__", [str(place)])
    assert native.library_path("libtarazu.so") == library
