"""The public face, and what importing it loads."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
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
    assert not loaded & {"numpy", "networkx", "ortools", "statsmodels", "pandas", "matplotlib", "zmq"}


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
