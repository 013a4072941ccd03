"""Slurm's plugin in Lua: asks about whom nobody has said nodes for, and believes no answer that cannot be."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tarazu.parts.bursts.burstd import answering as asked
from tarazu.parts.bursts.burstd.answering import AboutJob
from tarazu.parts.bursts.settings import Bursts
from tarazu.parts.bursts.slurm import ANSWER_S, KINDS, plugin
from tests.loop.slurm import missing_lua

LUA = shutil.which("lua5.1")
pytestmark = pytest.mark.skipif(
    bool(missing_lua()) or LUA is None, reason=missing_lua() or "needs lua5.1 (Debian: lua5.1)"
)

JOB = {
    "user_id": 1000,
    "user_name": "ann",
    "name": "wrf",
    "min_nodes": 4,
    "max_nodes": 4,
    "bitflags": 503316480,
}
PARTITIONS = (
    '{ test = { nodes = "n[1-16],m[01-04],r[001-128]", flag_default = 1 }, other = { nodes = "k[1-9]" } }'
)
FINE = b'{"v":1,"nodes":"n[1-2,5-6]","say":""}\n'
LOOP = """
slurm = { SUCCESS = 0, log_user = function(_, text) print("say " .. text) end, log_debug = function() end }
local tarazu = loadfile(arg[1])()
for line in io.lines(arg[2]) do
    local job = loadstring("return " .. line)()
    local nodes, say, why = tarazu.asked(job, %s)
    print(string.format("%%.6f\\t%%s\\t%%s\\t%%s", os.clock(), nodes or "", say or "", why or ""))
end
"""


def lua(value: object) -> str:
    """A literal."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"[{lua(k)}]={lua(v)}" for k, v in value.items()) + "}"
    if isinstance(value, str):
        return '"' + "".join(f"\\{byte:03d}" for byte in value.encode("utf-8", "surrogateescape")) + '"'
    return json.dumps(value)


class Plugin:
    def __init__(self, directory: Path, answer_s: float = ANSWER_S) -> None:
        self.directory = directory
        self.socket = directory / "socket"
        (directory / "tarazu.lua").write_text(plugin("library", Bursts(socket=str(self.socket)), answer_s))
        (directory / "loop.lua").write_text(LOOP % PARTITIONS)

    def asked(self, *jobs: Mapping[str, object]) -> list[tuple[float, str, str, str]]:
        """For each job: seconds of computing by then, nodes, what is said to the user, why nothing is asked for."""
        (self.directory / "jobs").write_text("".join(f"{lua(job)}\n" for job in jobs))
        words = ["loop.lua", "tarazu.lua", "jobs"]
        done = subprocess.run(
            [str(LUA), *words],
            cwd=self.directory,
            capture_output=True,
            check=True,
            errors="replace",
        )
        assert not done.stderr, done.stderr
        rows = [line.split("\t") for line in str(done.stdout).splitlines()]
        return [(float(row[0]), row[1], row[2], row[3]) for row in rows]

    @contextmanager
    def service(self, answer: Callable[[bytes], bytes | None]) -> Iterator[list[bytes]]:
        """What it was asked; `answer` None: nothing is sent, and the connection stays."""
        heard: list[bytes] = []
        held: list[socket.socket] = []
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(self.socket))
            listening.listen(64)

            def serve() -> None:
                while True:
                    sock, _ = listening.accept()
                    held.append(sock)
                    line = sock.recv(65536)
                    if line == b"end":
                        return
                    heard.append(line)
                    said = answer(line)
                    if said is not None:
                        with suppress(OSError):
                            sock.sendall(said)
                        sock.close()

            thread = threading.Thread(target=serve)
            thread.start()
            try:
                yield heard
            finally:
                with socket.socket(socket.AF_UNIX) as last:
                    last.connect(str(self.socket))
                    last.sendall(b"end")
                    thread.join()
                for sock in held:
                    sock.close()
        self.socket.unlink()


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Plugin:
    return Plugin(tmp_path_factory.mktemp("lua"), answer_s=120.0)


def test_it_asks_and_says_what_was_answered(patient: Plugin) -> None:
    with patient.service(lambda _: b'{"v":1,"nodes":"n[1-2,5],m04","say":"hear"}\n') as heard:
        later = int(time.time()) + 3600
        rows = patient.asked(
            JOB, {**JOB, "partition": "test", "dependency": "singleton"}, {**JOB, "begin_time": later}
        )
    assert [row[1:] for row in rows] == [("n[1-2,5],m04", "hear", "")] * 3
    first, second, third = map(asked.read, heard)
    assert first == AboutJob(1, "wrf", 4, 1000, "ann")
    assert second == AboutJob(1, "wrf", 4, 1000, "ann", "test", waits=True)
    assert isinstance(third, AboutJob) and third.waits


OWN: dict[str, object] = {
    "req_nodes": "n1",
    "exc_nodes": "n1",
    "features": "tz1",
    "prefer": "tz1",
    "reservation": "r",
    "array_inx": "1-2",
    "clusters": "c",
    "burst_buffer": "b",
    "batch_features": "f",
    "contiguous": 1,
    "req_switch": 1,
    "immediate": 1,
    "het_job_offset": 0,
    "pack_job_offset": 1,
    "bitflags": 503316480 + 256,
    "max_nodes": 5,
    "min_nodes": 1,
}


def test_what_the_user_said_is_not_asked_about(patient: Plugin) -> None:
    jobs = [{**JOB, name: value} for name, value in OWN.items()]
    jobs += [{**JOB, "min_nodes": 4294967294, "max_nodes": 4294967294}, {"name": None}]
    # What the service would refuse is no failure of its: a user could have it left alone for all.
    jobs += [{**JOB, "name": "x" * 1025}, {**JOB, "min_nodes": 100_001, "max_nodes": 100_001}]
    jobs += [{**JOB, "name": "\1" * 1000, "partition": "\1" * 1000}]
    with patient.service(lambda _: FINE) as heard:
        rows = patient.asked(*jobs, JOB)
    assert len(heard) == 1 and [row[1] for row in rows] == [""] * len(jobs) + ["n[1-2,5-6]"]
    assert all(row[3] for row in rows[:-1])


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(exclude_characters="\0"), max_size=30), min_size=8, max_size=8))
def test_any_name_arrives_as_it_is(patient: Plugin, names: list[str]) -> None:
    whole = [name.encode(errors="replace").decode() for name in names]
    with patient.service(lambda _: FINE) as heard:
        patient.asked(*({**JOB, "name": name} for name in whole))
    found = [json.loads(line)["name"].encode("latin-1").decode() for line in heard]
    assert found == whole
    longest = "\x01" * asked.MAX_CHARACTERS
    with patient.service(lambda _: FINE) as heard:
        patient.asked({**JOB, "name": longest, "user_name": "u" * 32})
    assert len(heard[0]) <= asked.MAX_QUESTION and asked.read(heard[0].rstrip(b"\n")).name == longest


WRONG = [
    b"",
    b"\n",
    b"\0\xff" * 40000 + b"\n",
    b"x" * 200_000,
    b'{"v":2,"nodes":"n[1-2,5-6]","say":""}\n',
    b'{"v":1,"nodes":"n[1-2,5-6]","say":"a"b"}\n',
    b'{"v":1,"nodes":"n[1-2,5]","say":""}\n',
    b'{"v":1,"nodes":"n[1-2,5-7]","say":""}\n',
    b'{"v":1,"nodes":"n[1-2,5,17]","say":""}\n',
    b'{"v":1,"nodes":"n[1-2,5,05]","say":""}\n',
    b'{"v":1,"nodes":"n[1-2,5,9-8]","say":""}\n',
    b'{"v":1,"nodes":"n[1-2,5],m4","say":""}\n',
    b'{"v":1,"nodes":"n[1-2,5],n1a","say":""}\n',
    b'{"v":1,"nodes":"n[15-18]","say":""}\n',
    b'{"v":1,"nodes":"k[1-4]","say":""}\n',
    b'{"v":1,"nodes":"n[1-4000000000]","say":""}\n',
    b'{"v":1,"nodes":"n[1-99999999999999999999999]","say":""}\n',
    b'{"v":1,"nodes":"n[1-4","say":""}\n',
    b'{"v":1,"nodes":"n[a-d]","say":""}\n',
    b'{"v":1,"nodes":",,,,","say":""}\n',
    b'{"v":1,"nodes":"n1 n2 n3 n4","say":""}\n',
]


def test_an_answer_that_cannot_be_is_none(patient: Plugin) -> None:
    for wrong in WRONG:
        with patient.service(lambda _, wrong=wrong: wrong):  # type: ignore[misc]
            ((_, nodes, say, why),) = patient.asked(JOB)
        assert (nodes, say) == ("", "") and why, wrong
    for fine in (
        b"n[1-2,5],m04",
        b"m[03-04],n16,n1",
        b"n1,n2,n3,n4",
        b"n[9-12]",
        b"r[098-101]",
        b"r[100-103]",
    ):
        with patient.service(lambda _, fine=fine: b'{"v":1,"nodes":"%s","say":""}\n' % fine):  # type: ignore[misc]
            assert patient.asked(JOB)[0][1] == fine.decode()
    with patient.service(lambda _: FINE):
        rows = patient.asked({**JOB, "partition": "other"}, {**JOB, "partition": "test,other"}, JOB)
    assert [row[1] for row in rows] == ["", "", "n[1-2,5-6]"]


@pytest.mark.parametrize(
    "listed",
    [b"1" * 32_000 + b"a1", b"n[" + b"1" * 32_000 + b"-1-]", b",".join(b"n%da1" % i for i in range(6000))],
)
def test_a_long_list_of_nodes_held_up_slurm_for_half_a_minute(tmp_path: Path, listed: bytes) -> None:
    one = Plugin(tmp_path, answer_s=120.0)
    with one.service(lambda _: b'{"v":1,"nodes":"%s","say":""}\n' % listed):
        rows = one.asked(JOB)
    assert not any(row[1] for row in rows)
    assert rows[-1][0] < 5.0, "seconds of computing; some hundredths where nothing else runs"


@pytest.mark.parametrize("how", ["nobody", "dead", "silent", "slow", "endless"])
def test_trouble_costs_little_and_soon_nothing(tmp_path: Path, how: str) -> None:
    """Three in a row are asked about, in `answer_s` each."""
    one = Plugin(tmp_path)
    library = tmp_path / "tarazu.lua"
    library.write_text(library.read_text().replace("rest_s = 30,", "rest_s = 3600,"))
    jobs = [JOB] * 100
    if how in ("nobody", "dead"):
        if how == "dead":
            with socket.socket(socket.AF_UNIX) as left:
                left.bind(str(one.socket))
        rows = one.asked(*jobs)
    else:

        def answer(_: bytes) -> bytes | None:
            if how == "slow":
                time.sleep(0.06)
                return FINE
            return b"x" * (1 << 22) if how == "endless" else None

        with one.service(answer) as heard:
            rows = one.asked(*jobs)
        assert len(heard) <= 4
    assert not any(nodes for _, nodes, _, _ in rows)
    assert [row[3] == "resting" for row in rows] == [False] * 3 + [True] * 97


def test_each_plugin_loads_and_a_site_may_have_strange_paths(tmp_path: Path) -> None:
    for kind in KINDS:
        text = plugin(kind, Bursts(socket='/a "b"\\\né/s'), 0.5)
        (tmp_path / "x.lua").write_text(f"slurm = {{ SUCCESS = 0 }}\n{text}")
        subprocess.run([str(LUA), "x.lua"], cwd=tmp_path, check=True)
    (tmp_path / "y.lua").write_text('io.write(dofile("x.lua").socket)')
    library = plugin("library", Bursts(socket='/a "b"\\\né/s'))
    (tmp_path / "x.lua").write_text(library)
    done = subprocess.run([str(LUA), "y.lua"], cwd=tmp_path, check=True, capture_output=True)
    assert done.stdout.decode() == '/a "b"\\\né/s'
