"""The public face, the package in wheel and editable form, and the light installation of an OSS."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

import tarazu

ROOT = Path(__file__).parents[1]


def test_the_public_names_are_pinned() -> None:
    assert sorted(tarazu.__all__) == sorted(
        "Allocation Allocator BadInput Component CreateRequest EOF FilePlacement Forecast History InfeasibleRequest "
        "InsufficientResources JobStep Layout Oss Ost SystemView TarazuError Unavailable forecast format_layout "
        "import_darshan load_config open_database parse_layout".split()
    )
    for name in tarazu.__all__:
        assert getattr(tarazu, name) is not None


def test_importing_tarazu_imports_nothing_heavy() -> None:
    code = "import sys, tarazu, tarazu.daemons, tarazu.sim; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"numpy", "networkx", "ortools", "statsmodels", "pandas", "matplotlib", "zmq", "cffi"}


def test_a_job_does_not_wait_for_heavy_imports() -> None:
    code = "import sys; from tarazu.cli import main\ntry: main(['run', '--help'])\nexcept SystemExit: pass\n"
    done = subprocess.run(
        [sys.executable, "-c", code + "print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "tarazu.cli.run" in loaded
    assert not loaded & {
        "numpy",
        "simpy",
        "pandas",
        "distributed",
        "dask",
        "networkx",
        "ortools",
        "matplotlib",
    }


def test_daemons_and_simulator_are_packages_of_tarazu_in_the_checkout() -> None:
    import tarazu.daemons
    import tarazu.sim

    assert Path(str(tarazu.daemons.__file__)).parent == ROOT / "tarazu/daemons"
    assert Path(str(tarazu.sim.__file__)).parent == ROOT / "tarazu/sim"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    # A build directory of its own: the checkout's belongs to its editable installation.
    subprocess.run(
        [*command, "--config-settings", f"build-dir={folder}/build", "-w", str(folder), str(ROOT)],
        check=True,
        capture_output=True,
    )
    return next(folder.glob("tarazu-*.whl"))


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert len(tops) == 2 and "tarazu" in tops, tops
    for wanted in (
        "tarazu/lib/libtarazu.so",
        "tarazu/daemons/ossd/service.py",
        "tarazu/sim/testbed/testbed.py",
        "tarazu/sim/study/examples/quick.toml",
        "tarazu/tune/detect/spatiality.json",
    ):
        assert wanted in names
    assert not [n for n in names if n.endswith((".c", ".h")) or "/tests/" in n]


def test_an_oss_installs_little_and_imports_what_it_must(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}

    def run(*words: str) -> str:
        done = subprocess.run(
            [str(python), *words], env=environ, capture_output=True, text=True, check=False, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"tarazu[oss] @ file://{wheel}")
    listed = {line.split("==")[0].lower() for line in run("-m", "pip", "freeze").split() if "==" in line}
    assert listed <= {"msgspec", "psutil", "pyzmq"}, listed
    # What pip and venv bring, and what Python compiles for itself, are not counted.
    ask = "import importlib.metadata as m; names = 'tarazu', 'msgspec', 'psutil', 'pyzmq'\n"
    ask += "files = (f for name in names for f in m.files(name) if '__pycache__' not in f.parts)\n"
    files = run("-c", ask + "print(*(f.locate() for f in files), sep='\\n')").splitlines()
    size = sum(Path(file).stat().st_size for file in files)
    assert len(files) > 500, files
    assert size <= 10.6e6, size
    run(
        "-c", "import tarazu.daemons.ossd.service, tarazu.daemons.routers.service, tarazu.sim, tarazu.daemons"
    )
    # An announcer and what it uses; the classifier's weights, though it is the council that asks it.
    run(
        "-c",
        "import tarazu.daemons.announcer.service, tarazu.tune.detect.counters;"
        "from tarazu.daemons.changes.agents import parameters;"
        "from tarazu.tune.detect import classifier; assert classifier.trained().layers",
    )
    help_text = run("-m", "tarazu.daemons.ossd.service", "--help")
    assert "--interval" in help_text


@pytest.mark.long
def test_a_log_is_looked_at_with_numpy_and_networkx_alone(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=True)
    programs = tmp_path / "venv" / "bin"
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}

    def run(*words: str | Path) -> str:
        done = subprocess.run(words, env=environ, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(
        programs / "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        f"tarazu[whatif] @ file://{wheel}",
    )
    listed = {line.split("==")[0].lower() for line in run(programs / "pip", "freeze").split() if "==" in line}
    assert listed <= {"msgspec", "psutil", "pyzmq", "numpy", "networkx"}, listed
    out = run(programs / "tarazu", "whatif", "--example", "--picture", "osts.svg")
    assert "because OST 14 was 54 times slower than the rest" in out
    assert (tmp_path / "osts.svg").stat().st_size > 1000
