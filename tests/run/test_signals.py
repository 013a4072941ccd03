"""Signals that a leader gets are the program's, each one and once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.run.signalled import CAUGHT, COUNTS, DIES, LED, goes_on, started, state, stops
from tests.waiting import LONG_S, until

NOT_FATAL = {
    signal.SIGCONT, signal.SIGURG, signal.SIGWINCH, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU,
}  # fmt: skip


def test_a_signal_that_ends_the_leader_leaves_no_orphan() -> None:
    """SIGXCPU, SIGPROF, SIGVTALRM, SIGIO and SIGRTMIN+n did, and the job's status was theirs at once."""
    for number in CAUGHT:
        if number not in NOT_FATAL:
            with started(DIES) as run:
                run.process.send_signal(number)
                assert run.process.wait(LONG_S) == -number
                assert state(run.pid) == ""


def test_a_handler_runs_as_often_as_without_a_leader() -> None:
    """SIGTSTP and SIGURG did not reach it at all."""
    sent = [n for n in CAUGHT if n != signal.SIGUSR2]
    with started(COUNTS) as run:
        for number in sent:
            run.process.send_signal(number)
            assert int(run.lines.readline()) == number
        run.process.send_signal(signal.SIGUSR2)
        assert (run.lines.read(), run.process.wait(LONG_S)) == ("", 0)


def test_signals_that_queue_arrive_one_by_one() -> None:
    with started(COUNTS) as run:
        for _ in range(100):
            run.process.send_signal(signal.SIGRTMIN)
        assert [int(run.lines.readline()) for _ in range(100)] == [signal.SIGRTMIN] * 100
        run.process.send_signal(signal.SIGUSR2)
        assert (run.lines.read(), run.process.wait(LONG_S)) == ("", 0)


def test_a_program_that_signals_its_group_gets_that_once() -> None:
    """`kill 0` in a script: the leader is in the group too."""
    code = COUNTS[2].replace('os.write(1, b"ready', 'os.kill(0, signal.SIGTERM); os.write(1, b"ready')
    with started((*COUNTS[:2], code)) as run:
        assert int(run.lines.readline()) == signal.SIGTERM
        run.process.send_signal(signal.SIGRTMIN)  # of several that wait the lowest number comes first
        assert int(run.lines.readline()) == signal.SIGRTMIN
        run.process.send_signal(signal.SIGUSR2)
        assert (run.lines.read(), run.process.wait(LONG_S)) == ("", 0)


@pytest.mark.parametrize("number", [signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGSTOP])
def test_a_leader_stops_and_goes_on_with_its_program(number: signal.Signals) -> None:
    """Its parent, a shell, looks at the leader alone."""
    with started(DIES) as run:
        os.kill(run.pid if number == signal.SIGSTOP else run.process.pid, number)
        stops(run.pid, run.process.pid)
        run.process.send_signal(signal.SIGCONT)
        goes_on(run.pid, run.process.pid)
        run.process.send_signal(signal.SIGTERM)
        assert run.process.wait(LONG_S) == -signal.SIGTERM


@pytest.mark.parametrize("end", [signal.SIGCONT, signal.SIGKILL])
def test_a_leader_does_not_stay_stopped_when_its_program_does_not(end: signal.Signals) -> None:
    """Somebody continues, or ends, the program alone: nobody would continue the leader, and the job never ended."""
    with started(DIES) as run:
        os.kill(run.pid, signal.SIGSTOP)
        stops(run.process.pid)
        os.kill(run.pid, end)
        if end == signal.SIGCONT:
            goes_on(run.pid, run.process.pid)
            run.process.send_signal(signal.SIGTERM)
        assert run.process.wait(LONG_S) == -(signal.SIGTERM if end == signal.SIGCONT else end)


def test_a_handler_of_sigcont_runs_once_after_a_stop() -> None:
    """The shell continues the whole group."""
    with started(COUNTS) as run:
        os.kill(run.pid, signal.SIGSTOP)
        stops(run.pid, run.process.pid)
        os.killpg(run.process.pid, signal.SIGCONT)
        assert int(run.lines.readline()) == signal.SIGCONT
        goes_on(run.process.pid)
        run.process.send_signal(signal.SIGUSR2)
        assert (run.lines.read(), run.process.wait(LONG_S)) == ("", 0)


HELD = """
import os, sys
from tarazu.run.program import StartedProgram, end_like, hold_signals
hold_signals()
print("ready", os.getpid(), flush=True)
sys.stdin.readline()
status = StartedProgram(sys.argv[1:], os.environ).wait()
print("over", flush=True)
sys.stdin.readline()
sys.exit(end_like(status))
"""
PREPARES = (sys.executable, "-c", HELD)


def test_a_signal_that_comes_before_the_program_waits_for_it() -> None:
    """`sbatch --signal=USR1` while a plan is waited for: the leader died, and the program never ran."""

    def blocked() -> None:
        signal.pthread_sigmask(
            signal.SIG_BLOCK, [signal.SIGUSR1]
        )  # in the program too, until it waits for it

    with started(COUNTS, PREPARES, stdin=subprocess.PIPE, preexec_fn=blocked) as run:
        run.process.send_signal(signal.SIGUSR1)
        run.process.stdin.write("go on\n")  # type: ignore[union-attr]
        run.process.stdin.flush()  # type: ignore[union-attr]
        word, pid = run.lines.readline().split()
        assert word == "ready" and int(run.lines.readline()) == signal.SIGUSR1
        os.kill(int(pid), signal.SIGUSR2)
        assert run.lines.readline() == "over\n"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_who_ends_a_leader_before_its_program_does_not_wait(number: signal.Signals) -> None:
    with started(COUNTS, PREPARES, stdin=subprocess.PIPE) as run:
        run.process.send_signal(number)
        assert run.process.wait(LONG_S) == -number


def test_a_signal_after_the_end_changes_no_status() -> None:
    with started(("sh", "-c", "exit 5"), PREPARES, stdin=subprocess.PIPE) as run:
        run.process.stdin.write("go on\n")  # type: ignore[union-attr]
        run.process.stdin.flush()  # type: ignore[union-attr]
        assert run.lines.readline() == "over\n"
        for number in (signal.SIGTERM, signal.SIGXCPU, signal.SIGRTMIN):
            run.process.send_signal(number)
        until(lambda: not _pending(run.process.pid))
        run.process.communicate("end\n")
        assert run.process.returncode == 5


def _pending(pid: int) -> bool:
    with open(f"/proc/{pid}/status") as status:
        return any(line.startswith("ShdPnd") and int(line.split()[1], 16) for line in status)


@pytest.mark.parametrize("how", ["exit 7", "kill -TERM $$", "sh -c 'exit 9'; exit $?"])
def test_the_status_is_the_programs_where_the_user_ignores_sigchld(how: str) -> None:
    """Then the kernel keeps no child's status, and the job's was 0."""
    done = [
        subprocess.run(
            [*by, "sh", "-c", how],
            check=False,
            preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
        ).returncode
        for by in ((), LED)
    ]
    assert done[0] == done[1] != 0


def test_what_a_leader_starts_beside_the_program_blocks_no_signal() -> None:
    """A launcher that gathers could not be told to end, nor hear that its own children have."""
    code = (
        "import os, sys\nfrom tarazu.run.nodes import each_node\nfrom tarazu.run.program import StartedProgram\n"
        "running = StartedProgram(['true'], os.environ)\n"
        "each = each_node.EachNode(('sh', '-c'), ())\n"
        "limits = each_node.CommandLimits(300, 1 << 20)\n"
        "words = ['grep SigBlk /proc/self/status']\n"
        "print(each_node.run(each, words, os.environ, lambda line: print(line.decode()), limits) or running.wait())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    mask, status = done.stdout.splitlines()
    assert (int(mask.split()[1], 16), status) == (0, "0")


def test_signals_beside_many_short_helpers_are_not_lost() -> None:
    """Whatever thread they reach: each helper is started with the user's mask."""
    code = (
        "import os, sys, threading\nfrom tarazu.program import Program\n"
        "from tarazu.run.program import StartedProgram, end_like\n"
        "running = StartedProgram(sys.argv[1:], os.environ); os.write(1, b'led\\n')\n"
        "def helpers():\n while True: Program('true', 'true').call(())\n"
        "for _ in range(3): threading.Thread(target=helpers, daemon=True).start()\n"
        "status = running.wait(); sys.stdout.flush(); os._exit(status)"
    )
    sent = [signal.SIGRTMIN + n % 3 for n in range(300)]
    with started(COUNTS, (sys.executable, "-c", code)) as run:
        for number in sent:
            run.process.send_signal(number)
            assert int(run.lines.readline()) == number
        run.process.send_signal(signal.SIGUSR2)
        assert (run.lines.read(), run.process.wait(LONG_S)) == ("", 0)
        assert state(run.pid) == ""


def test_the_end_of_a_program_that_ends_at_once_is_noticed_at_once() -> None:
    """It ended before the leader knew its pid, and was looked for a second later."""
    code = (
        "import os\nfrom tarazu.run import program\n"
        "program.LOOK_S = 1e6\n"
        "raise SystemExit(program.StartedProgram(['sh', '-c', 'exit 3'], os.environ).wait())"
    )
    leaders = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(20)]
    try:
        assert [leader.wait(LONG_S) for leader in leaders] == [3] * len(leaders)
    finally:
        for leader in leaders:
            leader.kill()
            leader.wait()
