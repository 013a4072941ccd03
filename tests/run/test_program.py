"""The program is itself: exit status, signals, streams."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = """
import os, sys
from tarazu.run.program import StartedProgram, end_like, status_of_error
try:
    program = StartedProgram(sys.argv[1:], os.environ)
except OSError as error:
    sys.exit(status_of_error(error))
print("started", file=sys.stderr, flush=True)
sys.exit(end_like(program.wait()))
"""


def lead(*argv: str, **options: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *argv],
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # The tests may run under nohup or behind `&`; what is ignored from the start a shell cannot trap.
        preexec_fn=lambda: [signal.signal(s, signal.SIG_DFL) for s in (signal.SIGHUP, signal.SIGINT)],  # noqa: PLW1509
        **options,  # type: ignore[call-overload]
    )


@pytest.mark.parametrize("status", [0, 1, 3, 77, 255])
def test_exit_status(status: int) -> None:
    with lead("sh", "-c", f"exit {status}") as leader:
        leader.communicate()
    assert leader.returncode == status


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGSEGV, signal.SIGKILL, signal.SIGABRT])
def test_a_program_that_dies_of_a_signal_makes_its_leader_die_of_it(number: signal.Signals) -> None:
    with lead("sh", "-c", f"kill -{number.value} $$") as leader:
        leader.communicate()
    assert leader.returncode == -number


def test_streams_are_the_programs() -> None:
    with lead("sh", "-c", "cat; echo error >&2") as leader:
        out, err = leader.communicate("through\n")
    # Which of the two says its line first is nobody's promise.
    assert out == "through\n" and sorted(err.splitlines()) == ["error", "started"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP, signal.SIGINT])
def test_signals_reach_the_program(number: signal.Signals, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    code = f"trap 'echo got; exit 9' {number.value}; : > {ready}; while :; do sleep 0.05; done"
    with lead("sh", "-c", code, start_new_session=True) as leader:
        deadline = time.monotonic() + 300
        while not ready.exists() and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(leader.pid, number)
        out, _ = leader.communicate(timeout=300)
    assert (leader.returncode, out) == (9, "got\n")


def test_programs_that_cannot_be_started(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program")
    for path, status in (("/nonexistent", 127), (str(plain), 126)):
        with lead(path) as leader:
            leader.communicate()
        assert leader.returncode == status


def test_an_ignored_signal_stays_ignored() -> None:
    code = "import os, signal; os.kill(os.getpid(), signal.SIGHUP); print('alive')"
    quiet = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN);"
    with subprocess.Popen(
        [sys.executable, "-c", quiet + SCRIPT, sys.executable, "-c", code], text=True, stdout=subprocess.PIPE
    ) as leader:
        out, _ = leader.communicate()
    assert (leader.returncode, out) == (0, "alive\n")


@pytest.mark.parametrize(("how", "status"), [("exit 7", 7), ("kill -TERM $$", -signal.SIGTERM)])
def test_the_status_is_the_programs_where_tarazu_was_uninstalled_meanwhile(how: str, status: int) -> None:
    gone = "; sys.path[:] = []; sys.modules['resource'] = None; sys.exit(end_like(program.wait()))"
    code = SCRIPT.strip().rpartition("\n")[0] + gone
    done = subprocess.run([sys.executable, "-c", code, "sh", "-c", how], capture_output=True, check=False)
    assert done.returncode == status, done.stderr


LOOKS = ("sh", "-c", "env; grep -E '^Sig(Ign|Blk)' /proc/self/status; ls /proc/self/fd")
CODE = "import os, sys; from tarazu.run.program import *; restore_environment(); sys.exit({})"


@pytest.mark.parametrize(
    "way", ["become(sys.argv[1:])", "end_like(StartedProgram(sys.argv[1:], os.environ).wait())"]
)
@pytest.mark.parametrize("given", [{}, {"LC_CTYPE": "C"}, {"LC_CTYPE": "C.UTF-8"}])
def test_what_python_does_at_its_start_does_not_reach_the_program(way: str, given: dict[str, str]) -> None:
    """It sets LC_CTYPE in the C locale (PEP 538), and ignores SIGPIPE and SIGXFSZ."""
    environ = {"PATH": os.environ["PATH"], **given}
    alone, led = (
        subprocess.run([*words, *LOOKS], env=environ, capture_output=True, text=True, check=True).stdout
        for words in ((), (sys.executable, "-c", CODE.format(way)))
    )
    assert led == alone
