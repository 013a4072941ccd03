"""The public face, and what importing it loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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


def test_what_msgspec_and_pathlib_could_not_have_at_their_import_they_have_when_it_is_used() -> None:
    code = (
        "import sys, tarazu\n"
        "print(*sorted({'platform', 'typing_extensions', 'urllib.parse'} & set(sys.modules)))\n"
        "import pathlib, platform, urllib.parse, uuid, msgspec\n"
        "print(pathlib.Path('/a b').as_uri(), platform.system(), urllib.parse.quote('a b'))\n"
        "print(msgspec.json.decode(msgspec.json.encode(uuid.UUID(int=7)), type=uuid.UUID).int)\n"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["", "file:///a%20b Linux a%20b", "7"]


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
