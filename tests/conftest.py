"""Shared by all tests: skips that could have been avoided fail where TARAZU_NO_SKIPS=1 (in CI)."""

from __future__ import annotations

import gc
import os
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from tests.leftovers import Session

# Threads of a worker's own, on cores that all workers share, wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# How fast examples are made says something of the machine that day, not of the code.
hypothesis.settings.register_profile(
    "tarazu", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("tarazu")

# A shell starts what ends in `&` with ^C ignored, and so are all programs that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def without_ortools(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a site that has not installed `tarazu[sim]`: whoever imports it all the same fails."""
    for name in {"ortools", *(name for name in sys.modules if name.startswith("ortools."))}:
        monkeypatch.setitem(sys.modules, name, None)


@pytest.fixture(scope="module")
def on_disk() -> Iterator[Path]:
    """A directory that is not in memory, as others may be, and not below /dev/shm."""
    with tempfile.TemporaryDirectory(prefix="tarazu-test-", dir="/var/tmp") as directory:
        yield Path(directory)


_session: list[Session] = []


@pytest.fixture(autouse=True)
def environ_stays() -> Iterator[None]:
    """What a test, or a daemon's --root in this process, puts into the environment ends with the test; a peer that
    hangs up later does not end the worker; and later children hear signals, although a leader ran in this process.
    """
    before, mask = dict(os.environ), signal.pthread_sigmask(signal.SIG_BLOCK, ())
    yield
    assert signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    if os.environ != before:
        os.environ.clear()
        os.environ.update(before)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput") and not _session:
        _session.append(Session())


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """The tests themselves are thousands of objects that stay: no collector need walk them during each."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_unconfigure(config: pytest.Config) -> Generator[None, Any, Any]:
    """After the workers have ended."""
    done = yield
    if not hasattr(config, "workerinput") and _session and (left := _session.pop().end()):
        raise pytest.UsageError("still running after the last test: " + "; ".join(left))
    return done


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> Generator[None, Any, Any]:
    report = yield
    avoidable = not item.get_closest_marker("lustre")
    if (
        os.environ.get("TARAZU_NO_SKIPS") == "1"
        and report.skipped
        and avoidable
        and not hasattr(report, "wasxfail")
    ):
        report.outcome = "failed"
        report.longrepr = f"skipped where everything should be there: {report.longrepr[2]}"
    return report


_LONG = (
    *("tests/chaos", "tests/loop", "tests/hostile", "tests/daemons", "tests/parts"),
    *("tests/test_types.py", "tests/store"),
)
"""Folders and files whose tests start daemons, servers or mypy."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes long comes first, so that at the end no worker waits for another one's last file. The longest run in
    `make soak`'s first round."""
    if not os.environ.get("TARAZU_SOAK"):
        longest = [item for item in items if item.get_closest_marker("long")]
        config.hook.pytest_deselected(items=longest)
        items[:] = [item for item in items if not item.get_closest_marker("long")]
    items.sort(
        key=lambda item: next((i for i, name in enumerate(_LONG) if item.nodeid.startswith(name)), len(_LONG))
    )
