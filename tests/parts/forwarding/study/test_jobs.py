"""Jobs and resources are read from TOML, and errors name the place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarazu.errors import BadInput
from tarazu.parts.forwarding.application import Resources
from tarazu.parts.forwarding.curve import curve
from tarazu.parts.forwarding.study import jobs

HERE = Path("jobs.toml")
RESOURCES = '[resources]\nkind = "ost"\ncount = 4\nnodes = 16\n'
JOB = '[[job]]\nname = "a"\nnodes = 2\ncpu_s = 10\nio_bytes = "1G"\n'


def test_the_example_is_read() -> None:
    found = jobs.parse(jobs.EXAMPLE, HERE)
    assert found.resources == Resources("io-node", 8, 480)
    climate, genome, post = found.applications
    assert climate.curve == curve([(1, 1e9), (2, 1.8e9), (2, 1.9e9), (2, 1.7e9), (4, 3.1e9), (8, 4.4e9)])
    assert (climate.nodes, climate.cpu_s, climate.io_bytes, climate.phases) == (256, 3000, 8 << 40, 20)
    assert genome.curve == curve([(1, 4e8), (4, 1.2e9), (8, 9e8)])
    assert (post.phases, post.curve.bandwidth(8)) == (1, 6e8)


def test_curves_of_a_file_by_name(tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text("application,resources,bytes_per_s\nior,1,1e9\nior,4,4e9\n")
    path = tmp_path / "jobs.toml"
    path.write_text(f'{RESOURCES}curves = "own.csv"\n{JOB}curve = "ior"\n')
    (found,) = jobs.read(path).applications
    assert found.curve == curve([(1, 1e9), (4, 4e9)])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"jobs\.toml: resources: expected a table, found 'none'"),
        ("x = \n", r"jobs\.toml: expected TOML, found .*line 1"),
        ("x = 1", r"jobs\.toml: x: expected a key among resources, job, found 'x'"),
        (RESOURCES, r"jobs\.toml: job: expected \[\[job\]\], once or several times"),
        (
            RESOURCES.replace("ost", "disk") + JOB,
            r"jobs\.toml: resources\.kind: expected one of io-node, ost, found 'disk'",
        ),
        (
            RESOURCES.replace("4", "0") + JOB,
            r"resources\.count: expected a whole number, 1 to 1000000, found 0",
        ),
        (RESOURCES + JOB, r"job\[0\]\.curve: expected .*, found 'none'"),
        (
            RESOURCES + JOB + 'curve = "ior"',
            r"job\[0\]\.curve: expected points, or an application in `curves`",
        ),
        (
            RESOURCES + JOB + "curve = { 1 = -1 }",
            r"job\[0\]\.curve\.1: expected a number, 0\.001 to 1e\+18 or a list, found -1",
        ),
        (RESOURCES + JOB.replace("1G", "1X") + "curve = { 1 = 1 }", r"job\[0\]\.io_bytes: expected bytes"),
        (
            RESOURCES + (JOB + "curve = { 1 = 1 }\n") * 2,
            r"job\[1\]\.name: expected a name that no other job has, found 'a'",
        ),
    ],
)
def test_one_line_says_what_is_wrong_and_where(text: str, message: str) -> None:
    with pytest.raises(BadInput, match=message) as error:
        jobs.parse(text, HERE)
    assert "\n" not in str(error.value)
