"""Which package holds what: nothing is forgotten, an OSS gets little, units go with what they start."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path, PurePosixPath

import contents
import pytest
import tree

import tarazu
from tarazu import built
from tarazu.part import installed
from tarazu.trace import exchange
from tarazu.trace.flat import NamedRun
from tarazu.trace.runfile import encode_run
from tests.test_imports import imports_of, product
from tests.trace.test_history import sample

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LEFT_OUT = {
    "dask": "sweeps on an existing cluster: who has one has a Python environment for it",
    "whatif": "`tarazu whatif` from a clone: less than sim, which has it all",
    "parquet": "pyarrow is there: bursts needs it",
    "viz": "matplotlib is there: sim needs it",
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
        ("lib/tarazu/lib/python3.11/site-packages/tarazu/parts/bursts/burstd/kept.py", "tarazu-oss"),
        (
            "lib/tarazu/lib/python3.11/site-packages/tarazu/parts/bursts/burstd/__pycache__/jobs.c-311.pyc",
            "tarazu-analysis",
        ),
        ("lib/tarazu/lib/python3.11/site-packages/ortools/init.py", "tarazu"),
        ("lib/tarazu/lib/python3.11/dist-packages/ortools/init.py", "tarazu"),
        ("share/man/man8/tarazu-burstd.8.gz", "tarazu-analysis"),
        ("share/doc/tarazu/README.md", "tarazu-oss"),
        ("share/doc/tarazu/docs/changes.md", "tarazu"),
    ],
)
def test_where_a_file_belongs(path: str, package: str) -> None:
    assert contents.package_of(PurePosixPath(path), {"ortools": "tarazu"}) == package


def modules() -> dict[str, PurePosixPath]:
    """Module → its file below site-packages."""
    found = {name: PurePosixPath(path.relative_to(ROOT)) for name, path in product().items()}
    return {name: path if path.parts[0] == "tarazu" else "tarazu" / path for name, path in found.items()}


ASK_ANALYSIS = {"tarazu.cli.report", "tarazu.trace.training"}
if "forwarding" in installed():
    ASK_ANALYSIS |= {"tarazu.parts.forwarding.loaded"}
ASK_ANALYSIS |= {f"tarazu.parts.{path.parent.name}" for path in (ROOT / "tarazu").glob("parts/*/testbed.py")}
"""Import in a function what only analysis has, for one option or one kind of file; what is missing they say."""


def test_nothing_imports_what_only_analysis_has() -> None:
    files = product()
    analysis = {name for name, path in modules().items() if contents.is_of_analysis(path)}
    asking = set()
    for name in files.keys() - analysis:
        if imports_of(files[name], files.keys(), types=False) & analysis:
            assert not imports_of(files[name], files.keys(), types=False, at_once=True) & analysis, name
            asking.add(name)
    assert asking == ASK_ANALYSIS


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tarazu's modules as a node has them that is without tarazu-analysis."""
    site = tmp_path_factory.mktemp("site")
    for name, path in modules().items():
        if not contents.is_of_analysis(path):
            (site / path).parent.mkdir(parents=True, exist_ok=True)
            (site / path).symlink_to(product()[name])
    (site / "tarazu/lib").symlink_to(ROOT / "tarazu/lib")
    return site


def tarazu_in(site: Path, *words: str) -> subprocess.CompletedProcess[str]:
    run = (
        "import sys; sys.path[:0] = sys.argv[1:3]; from tarazu.cli import main; sys.exit(main(sys.argv[3:]))"
    )
    python = [sys.executable, "-S", "-c", run, site, sysconfig.get_path("platlib")]
    return subprocess.run([*python, *words], capture_output=True, text=True, check=False, cwd=site)


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        ("history import LOG --dry-run --fs lustre", "trace.darshan"),
        ("history report --picture a.png", "report.picture"),
    ],
)
def test_without_analysis_a_line_says_what_is_missing(base: Path, words: str, missing: str) -> None:
    (base / "LOG").write_bytes(b"no run, no spool")
    ended = tarazu_in(base, *words.split())
    expected = "expected the package tarazu-analysis, or pip install '.[sim,bursts]' in a clone"
    assert ended.stderr == f"tarazu {' '.join(words.split()[:2])}: {expected}; found no tarazu.{missing}\n"
    assert (ended.returncode, ended.stdout) == (2, "")


def test_without_analysis_a_part_that_lies_there_says_what_it_needs(base: Path) -> None:
    for part in installed().values():
        for name, (module, _) in part.commands.items() if part.extra else ():
            if not contents.is_of_analysis(PurePosixPath(*module.split(".")).with_suffix(".py")):
                continue
            ended = tarazu_in(base, *name.split())
            expected = f"expected the package tarazu-analysis, or pip install '.[{part.extra}]' in a clone"
            missing = "tarazu.sim" if name.startswith("sim ") else module  # what is above it comes first
            assert ended.stderr == f"tarazu {name}: {expected}; found no {missing}\n"
            assert (ended.returncode, ended.stdout) == (2, "")


def test_without_analysis_exported_runs_are_taken(base: Path) -> None:
    exchange.write_file(
        [NamedRun("20261120T090823.900772-d1b8f4c52d940704", sample())], "json", base / "all.json"
    )
    ended = tarazu_in(base, *"history import all.json --dry-run".split())
    assert ended.returncode == 0 and "1 imported" in ended.stdout, ended


if "forwarding" in installed():  # whose command it is

    def test_without_analysis_own_runs_have_phases_and_logs_say_what_is_missing(base: Path) -> None:
        (base / "run").write_bytes(encode_run(sample()))
        ended = tarazu_in(base, "history", "phases", "run")
        assert ended.returncode == 0 and sample().step.application in ended.stdout, ended
        (base / "LOG").write_bytes(b"no run, no spool")
        assert "found no tarazu.trace.darshan" in tarazu_in(base, "history", "phases", "LOG").stderr


def is_here(folder: str) -> bool:
    """Not of a part that was taken away."""
    return not folder.startswith("parts/") or folder.split("/")[1] in installed()


@pytest.mark.parametrize("folder", sorted(filter(is_here, contents.ANALYSIS.keys() - {"lib", "parts"})))
def test_what_only_analysis_has_exists(folder: str) -> None:
    there = {path.stem for path in (ROOT / "tarazu" / folder).iterdir()}
    assert set(contents.ANALYSIS[folder].split()) <= there


def test_parts_of_analysis_say_so_themselves() -> None:
    of_analysis = {*contents.ANALYSIS["parts"].split()}
    of_analysis |= {path.split("/")[1] for path in contents.ANALYSIS if path.startswith("parts/")}
    assert all((name in of_analysis) == bool(part.extra) for name, part in installed().items())


def test_an_oss_gets_little() -> None:
    assert set(tree.closure(["oss"])) == {"msgspec", "psutil", "pyzmq"}
    more = {"prometheus-client", "jinja2", "markupsafe"}
    assert set(tree.closure(["oss", "metrics", "page"])) == {"msgspec", "psutil", "pyzmq", *more}


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
    assert built.library_path("libtarazu.so") == library
