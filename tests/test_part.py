"""The seam: parts are found, ordered, asked by rights, off when they fail; the example of the docs is alive."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tarazu import config
from tarazu.config.check import setting
from tarazu.errors import ConfigError
from tarazu.part import Live, Part, ordered
from tarazu.wire.messages import Acknowledged, PartReply, PartRequest, StepEnded
from tarazu.wire.security import curve_for
from tarazu.wire.sockets import ZmqTransport
from tests.daemons.conftest import PATIENCE_S, Site, patiently

EXAMPLE = Path(__file__).parents[1] / "docs" / "example-part"
BROKEN = """
from tarazu.part import InMdsd, Part

class Broken(InMdsd):
    def turn(self, now, listening):
        raise RuntimeError("on purpose")

class BrokenPart(Part):
    name = "broken"
    def in_mdsd(self, mdsd):
        return Broken()

PART = BrokenPart()
"""


def part(own: str, *own_needs: str) -> Part:
    class Made(Part):
        name = own
        needs = own_needs

    return Made()


def parts(*made: Part) -> dict[str, Part]:
    return {each.name: each for each in made}


def test_a_part_comes_after_those_that_it_needs() -> None:
    assert [*ordered(parts(part("a", "c"), part("b"), part("c", "b")))] == ["b", "c", "a"]


def test_a_part_whose_need_is_not_there_is_not_either(caplog: pytest.LogCaptureFixture) -> None:
    assert [*ordered(parts(part("a", "b"), part("b", "c"), part("d")))] == ["d"]
    assert "part b: expected the parts that it needs, found no c" in caplog.messages


def test_a_circle_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"need one another in a circle, found .a, b"):
        ordered(parts(part("a", "b"), part("b", "a")))


def test_a_part_that_fails_is_off_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[str] = []

    def work(name: str) -> str:
        calls.append(name)
        if name == "bad":
            raise RuntimeError("on purpose")
        return name.upper()

    live = Live(
        lambda of: None if of.name == "none" else of.name, parts(part("bad"), part("good"), part("none"))
    )
    assert live.each(work) == {"good": "GOOD"} == live.each(work)
    assert calls == ["bad", "good", "good"] and [*live] == ["good"]
    assert live.failed == {"bad": "RuntimeError: on purpose"} and live.call("bad", work) is None
    assert caplog.messages == ["part bad failed, and is off until the next start"]


def test_a_part_that_cannot_be_made_is_off_but_not_for_wrong_settings() -> None:
    def make(error: Exception) -> Any:
        raise error

    assert Live(lambda _: make(OSError("no disk")), parts(part("a"))).failed == {"a": "OSError: no disk"}
    with pytest.raises(ConfigError):
        Live(lambda _: make(ConfigError("a", "b", "c")), parts(part("a")))


@config.check.section(frozen=True)
class Own:
    RELOADED = ("names",)
    names: tuple[str, ...] = setting((), "some")
    count: int = setting(3, "how many")


def test_a_part_reads_its_own_section_from_the_file_and_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "tarazu.toml"
    file.write_text("[mdsd]\ncpu_limit = 1.0\n[part.own]\ncount = 4\n[part.other]\nx = 1\n")
    found = config.load(file, {"TARAZU_PART_OWN_NAMES": "a:b"})
    assert found.part.of("own", Own) == Own(("a", "b"), 4) and found.part.names() == ("own", "other")
    assert config.load(file, {}) != found == config.load(file, {"TARAZU_PART_OWN_NAMES": "a:b"})
    file.write_text("[part.own]\ncuont = 4\ncount = 'x'\n")
    _, wrong = config.load(file, {}).part.examined("own", Own)
    assert [str(each) for each in wrong] == [
        f"{file}:2: [part.own] cuont: expected a setting of [part.own] (did you mean count?), found 'cuont'",
        f"{file}:3: [part.own] count: expected a whole number, found 'x'",
    ]
    file.write_text("part = 4\n")
    assert "a table [part.NAME]" in str(config.examine(file, {}).problems[0])
    assert "- `part.own.names` = `[]` (SIGHUP): some" in config.table({"part.own": Own})


def distribution(place: Path, **modules: str) -> dict[str, str]:
    """The environment in which these modules' parts, and the example, are installed."""
    entries = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"][
        "tarazu.parts"
    ]
    own = place / "tarazu_example-1.dist-info"
    own.mkdir(parents=True)
    (own / "METADATA").write_text("Metadata-Version: 2.1\nName: tarazu-example\nVersion: 1\n")
    for name, text in modules.items():
        (place / f"{name}_part.py").write_text(text)
        entries[name] = f"{name}_part:PART"
    lines = [f"{name} = {target}" for name, target in entries.items()]
    (own / "entry_points.txt").write_text("\n".join(["[tarazu.parts]", *lines, ""]))
    (place / "tarazu_example.py").write_text((EXAMPLE / "tarazu_example.py").read_text())
    return {"PYTHONPATH": str(place)}


def installed(environ: dict[str, str]) -> tuple[list[str], str]:
    code = "import json, logging as l; from tarazu import part; l.basicConfig(); print(json.dumps([*part.installed()]))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=True,
    )
    names: list[str] = json.loads(done.stdout)
    return names, done.stderr


def test_a_part_that_was_taken_away_is_not_missed(tmp_path: Path) -> None:
    environ = distribution(tmp_path, gone="", cracked="import nothing_of_this_name")
    (tmp_path / "gone_part.py").unlink()
    names, said = installed(environ)
    assert "example" in names and not {"gone", "cracked"} & {*names}
    assert "part cracked: cannot be loaded" in said and "gone" not in said


def test_a_plain_run_looks_for_no_parts() -> None:
    code = "import sys; from tarazu.cli import main; main(['run', '--', 'true']); print([*sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "importlib.metadata" not in done.stdout and "tarazu.part'" not in done.stdout


@pytest.fixture(scope="module")
def with_example(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = Site(tmp_path_factory.mktemp("parts"))
    environ = distribution(site.directory / "installed", broken=BROKEN)
    with site.config.open("a") as file:
        file.write("[part.example]\nword = 'good day'\n")
    site.start("mdsd", "--root", str(site.mds_root), environ=environ)
    yield site
    site.stop()


def ask(asking: Any, message_id: str, name: str = "example", uid: int = 7, body: bytes = b"") -> Any:
    body = body or msgspec.msgpack.encode({"type": "greeting", "name": "Ada"})
    return asking.request(PartRequest(message_id, name, body, uid), PATIENCE_S)


def test_the_example_of_the_docs_answers_clients_and_nobody_else(with_example: Site) -> None:
    site = with_example
    client = site.client()
    greeting = ask(client, "m1")
    assert isinstance(greeting, PartReply)
    assert msgspec.msgpack.decode(greeting.body) == {"type": "greeting", "name": "good day Ada"}
    assert "status=part part=example uid=7" in patiently(site.audit.read_text)
    transport = ZmqTransport(curve_for("oss", site.keys))
    site.transports.append(transport)
    oss = transport.requester(site.requests)
    assert ask(oss, "m2") == Acknowledged("m2")
    assert ask(client, "m3", body=b"\xc1") == Acknowledged("m3")
    assert ask(client, "m4", name="nobody") == Acknowledged("m4")
    assert site.status()["parts"]["example"]["greetings"] >= 1, "who waits for long asks again"
    assert "a message that part example does not take" in site.log("mdsd")
    assert "may send part example no Greeting" in site.log("mdsd")


def test_the_core_goes_on_without_a_part_that_failed(with_example: Site) -> None:
    site = with_example
    status = site.wait_status(lambda status: "failed" in status["parts"].get("broken", {}))
    assert status["parts"]["broken"] == {"failed": "RuntimeError: on purpose"}
    assert site.client().request(StepEnded("a", "end"), PATIENCE_S) == Acknowledged("end")
    assert site.log("mdsd").count("part broken failed, and is off until the next start") == 1


def test_nothing_of_a_part_that_fails_comes_to_a_led_program() -> None:
    code = "from tarazu.part import Live, Part; Live(lambda of: 1 / 0, {'a': Part()})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "" == done.stdout
    assert logging.getLogger("tarazu.parts").handlers
