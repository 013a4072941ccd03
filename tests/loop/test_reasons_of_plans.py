"""Each reason for which a plan leaves files to Lustre, or does not come, as it happens in life: all five tell it."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tarazu.left import AS_GOOD, MORE_THAN_A_PLAN
from tarazu.sim.testbed import processes
from tarazu.sim.testbed.daemons import mdsd_view
from tests.loop.reasons import (
    Counted,
    children,
    everybody_says,
    held,
    last_line,
    pid_of,
    running,
    site_of,
    stopped,
    until,
    words,
)

if TYPE_CHECKING:
    from tests.loop.conftest import Loop

Site = tuple["Loop", Counted]
LONG = {"TARAZU_RUN_WAIT_S": "300"}
TIB = 1 << 40
SIZES = """
import os, sys
for n in range(int(sys.argv[2])):
    fd = os.open(f"{sys.argv[1]}/m.{n}", os.O_CREAT | os.O_WRONLY, 0o644)
    os.pwrite(fd, b"end", (n + 1) * 131072 - 3)
    os.close(fd)
"""

TAKEN = ("comp_add", "comp_extent_set", "pattern_set", "stripe_size_set", "stripe_count_set", "pool_name_set")
REFUSING = """
void llapi_msg_set_level(int level) { (void)level; }
void *llapi_layout_alloc(void) { static int layout; return &layout; }
void llapi_layout_free(void *layout) { (void)layout; }
int llapi_layout_sanity(void) { return 7; }
""" + "\n".join(f"int llapi_layout_{name}(void) {{ return 0; }}" for name in TAKEN)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    yield from site_of(tmp_path_factory.mktemp("plans") / "tb", {}, ost_bytes=12 * TIB)


@pytest.fixture(autouse=True)
def usual(site: Site) -> Iterator[None]:
    """A test may tell the daemons other settings."""
    loop, counted = site
    before = (loop.testbed.directory / "etc" / "tarazu.toml").read_bytes()
    yield
    if (loop.testbed.directory / "etc" / "tarazu.toml").read_bytes() != before:
        counted.told(loop, {})


def again(site: Site, app: str, why: str, of: int = 1, size: int = 1 << 28, **options: Any) -> str:
    """The line of the application's second run, of one file, of which all say that `why` begins its reason."""
    loop, counted = site
    before = counted.of(why.partition(":")[0])
    loop.run(*words(loop, app, size=size), app=app, **options)
    line = last_line(loop, app)
    match = re.search(re.escape(why) + r"[^'\"]*", line)
    assert match, line
    everybody_says(loop, app, match[0], files=1, of=of, path=loop.mount() / app)
    counted.wait(why.partition(":")[0], before + 1)
    return line


def first(site: Site, app: str, size: int = 1 << 28) -> None:
    loop, _ = site
    loop.run(*words(loop, app, size=size), app=app)
    assert "why='no forecast: " in last_line(loop, app)


def test_advising(site: Site) -> None:
    first(site, "advised")
    again(site, "advised", "advising: run.mode is advise", mode="advise")


def test_stopped_before_its_first_file(site: Site, tmp_path: Path) -> None:
    """`job explain` told why the run before had not placed it, the line of other nodes and of spools that were lost."""
    loop, counted = site
    first(site, "off")
    before = counted.of("disabled")
    with held(loop, "off", words(loop, "off"), tmp_path / "go"):
        assert loop.json("disable", "--reason", "a test")["jobs"]
    why = "disabled: stopped by its owner: a test"
    everybody_says(loop, "off", why, files=1, of=0, path=loop.mount() / "off")
    assert "problem=" not in last_line(loop, "off")
    counted.wait("disabled", before + 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root stops a site")
def test_the_site_is_stopped_before_its_first_file(site: Site, tmp_path: Path) -> None:
    loop, counted = site
    first(site, "site_off")
    before = counted.of("disabled")
    try:
        with held(loop, "site_off", words(loop, "site_off"), tmp_path / "go"):
            assert loop.tarazu("disable", "--site", "--reason", "a test").returncode == 0
            until(lambda: loop.json("job", "show", "site_off")["running"][0]["site_stopped"] is not None)
        why = f"disabled: stopped by {loop.testbed.directory}/etc/stop: a test"
        everybody_says(loop, "site_off", why, files=1, of=0, path=loop.mount() / "site_off")
        counted.wait("disabled", before + 1)
    finally:
        assert loop.tarazu("enable", "--site").returncode == 0
        until(lambda: not loop.json("status")["mdsd"]["gate"]["why_closed"])


@pytest.mark.parametrize(
    ("setting", "value", "why"),
    [
        ("EXCLUDE", "/own*", "run.exclude names it"),
        ("EXCLUDE_PROGRAMS", "nothing:py*", f"run.exclude_programs names {Path(sys.executable).name}"),
    ],
)
def test_what_its_owner_excludes_is_not_called_unseen(site: Site, setting: str, value: str, why: str) -> None:
    first(site, f"own_{setting}")
    line = again(
        site, f"own_{setting}", f"excluded: {why}", of=0, env={**LONG, f"TARAZU_RUN_{setting}": value}
    )
    assert " files=0 " in line and "problem=" not in line


@pytest.mark.parametrize(
    ("setting", "value", "why"),
    [
        ("exclude_users", ["root"], "run.exclude_users names root"),
        ("exclude", ["/site*"], "run.exclude names it"),
    ],
)
def test_what_the_site_excludes_and_this_node_does_not_know_yet(
    site: Site, setting: str, value: list[str], why: str
) -> None:
    loop, counted = site
    first(site, f"site_{setting}")
    counted.told(loop, {"run": {setting: value}})
    env = {**LONG, f"TARAZU_RUN_{setting.upper()}": ""}
    again(site, f"site_{setting}", f"excluded: {why}", env=env)


def test_settings_that_cannot_be_read(site: Site) -> None:
    """The line lay in another directory than the settings name, and `history report` could not read it; clientd heard
    nothing of it.
    """
    loop, counted = site
    first(site, "wrong")
    before = counted.runs("wrong settings")
    loop.run(*words(loop, "wrong"), app="wrong", env={"TARAZU_RUN_WAIT_S": "x"})
    why = "wrong settings: $TARAZU_RUN_WAIT_S: expected a number"
    everybody_says(loop, "wrong", why, files=0, of=0, path=loop.mount() / "wrong")
    assert " mode=none " in last_line(loop, "wrong") and counted.runs("wrong settings") == before + 1
    assert "cannot be read" not in loop.tarazu("history", "report", "--since", "1h").stdout


def test_settings_that_cannot_be_read_are_counted_later_where_clientd_is_not_there(site: Site) -> None:
    loop, counted = site
    before = counted.runs("wrong settings")
    nobody = {"TARAZU_RUN_WAIT_S": "x", "TARAZU_CLIENTD_SOCKET": str(loop.home / "none.sock")}
    loop.run(*words(loop, "wrong"), app="wrong", env=nobody)
    assert counted.runs("wrong settings") == before
    loop.run(*words(loop, "wrong"), app="wrong", env=LONG)
    until(lambda: counted.runs("wrong settings") == before + 1)


def test_no_usable_ost(site: Site) -> None:
    loop, counted = site
    first(site, "room")
    counted.told(loop, {"mdsd": {"exclude": ["lustre:0-3"]}})
    again(site, "room", "no room: no usable OST", env=LONG)


def test_more_than_the_user_s_share(site: Site) -> None:
    loop, counted = site
    first(site, "share")
    counted.told(loop, {"mdsd": {"user_share": 0.000001}})
    line = again(site, "share", "no room: uid 0 holds promises of", env=LONG)
    assert " plan='declined' " in line


def test_no_ost_is_large_enough(site: Site, tmp_path: Path) -> None:
    """Never, once all servers have had the time to report; before that, not now."""
    loop, counted = site
    counted.told(loop, {"layout": {"stripe_count": "1"}, "mdsd": {"stale_after_s": 5.0}})
    first(site, "huge", size=13 * TIB)
    before, never = counted.of("impossible"), counted.plans("never")
    with held(loop, "huge", words(loop, "huge", size=13 * TIB), tmp_path / "go", 0.0):
        until(lambda: counted.plans("never") > never)
    why = "impossible: file system lustre: expected 1 OSTs of 13.0 TiB or more, found 0"
    assert " plan='never' " in last_line(loop, "huge")
    everybody_says(loop, "huge", why, files=1, of=1, path=loop.mount() / "huge")
    counted.wait("impossible", before + 1)
    (loop.mount() / "huge").unlink()
    loop.testbed.refresh()


def test_lustre_s_own_allocator_does_as_well(site: Site) -> None:
    loop, counted = site
    first(site, "even")
    counted.told(loop, {"allocate": {"least_gain": 0.01}, "layout": {"stripe_count": "1"}})
    again(site, "even", f"no gain: {AS_GOOD}", env=LONG)


def test_mdsd_declines(site: Site, tmp_path: Path) -> None:
    """The first answer was that mdsd is silent: the newest one counts."""
    loop, counted = site
    first(site, "busy")
    counted.told(loop, {"mdsd": {"memory_limit": 0.0}})
    before = counted.of("daemon busy")
    silent, declined = counted.plans("unavailable"), counted.plans("declined")
    with held(loop, "busy", words(loop, "busy"), tmp_path / "go", 0.0):
        with stopped(pid_of(loop, "mdsd")):
            until(lambda: counted.plans("unavailable") > silent)
        until(lambda: counted.plans("declined") > declined)
    line = last_line(loop, "busy")
    match = re.search(r"daemon busy: memory at \d+% of this node, limit 0%", line)
    assert match and " plan='declined' because='memory at " in line, line
    everybody_says(loop, "busy", match[0], files=1, of=1, path=loop.mount() / "busy")
    counted.wait("daemon busy", before + 1)


def test_no_oss_has_reported_the_file_system(site: Site) -> None:
    loop, _ = site
    first(site, "unknown")
    with stopped(*(pid_of(loop, f"ossd-oss{n}") for n in (1, 2))):
        processes.kill(loop.testbed.directory, "tarazu-mdsd")
        loop.testbed.start_daemons()
        until(lambda: "unavailable" not in loop.json("status")["mdsd"])
        why = "file system unknown: mdsd: no OSS has reported lustre yet"
        again(site, "unknown", why, env=LONG)


def test_the_forecast_s_process_finds_no_memory(site: Site) -> None:
    """It was said twice: `forecast failed: the forecast failed: …`."""
    loop, _ = site
    first(site, "failed")
    (server,) = children(pid_of(loop, "clientd-client1"))
    resource.prlimit(server, resource.RLIMIT_AS, (1 << 20, 1 << 20))
    try:
        line = again(site, "failed", "forecast failed: the forecast process ended", env=LONG)
    finally:
        os.kill(server, signal.SIGKILL)  # clientd begins another one
    assert "the forecast failed" not in line


def test_the_key_may_not_ask_for_this_user(site: Site) -> None:
    """It was called busy."""
    loop, counted = site
    first(site, "uids")
    before = counted.of("not allowed")
    allowed = loop.testbed.directory / "etc" / "keys" / "client.uids"
    allowed.write_text("1000-1999\n")

    def is_refused() -> bool:
        """mdsd looks at its directory of keys now and then."""
        loop.run(*words(loop, "uids"), app="uids", env=LONG)
        return " plan='declined' " in last_line(loop, "uids")

    try:
        until(is_refused)
        why = "not allowed: expected a uid that the key client may ask for, found 0"
        everybody_says(loop, "uids", why, files=1, of=1, path=loop.mount() / "uids")
        counted.wait("not allowed", before + 1)
    finally:
        allowed.unlink()


def test_mdsd_does_not_know_the_key_any_more(site: Site) -> None:
    """It was called silent."""
    loop, _ = site
    first(site, "strange")
    public = loop.testbed.directory / "etc" / "keys" / "client.pub"
    public.rename(public.with_suffix(".gone"))
    try:
        until(lambda: "refused key: " in loop.tarazu("status").stdout)
        line = again(site, "strange", "not allowed: refused key: tcp://", env=LONG)
        assert " plan='unavailable' " in line
    finally:
        public.with_suffix(".gone").rename(public)
        until(lambda: "gate" in loop.json("status")["mdsd"])


@pytest.mark.long
def test_more_layouts_than_a_plan_holds(site: Site) -> None:
    loop, counted = site
    directory, sizes, files = loop.mount() / "many", loop.testbed.directory / "sizes.py", 10_400
    sizes.write_text(SIZES)
    counted.told(loop, {"layout": {"stripe_count": "1", "striping": "contiguous", "min_size": 0}})
    before = counted.of("too many")
    for _ in range(2):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        loop.run(sys.executable, sizes, directory, files, app="many", env=LONG)
    match = re.search(r" left=(\d+) why='too many: " + MORE_THAN_A_PLAN, last_line(loop, "many"))
    assert match, last_line(loop, "many")
    why = f"too many: {MORE_THAN_A_PLAN}"
    last = directory / f"m.{files - 1}"
    everybody_says(loop, "many", why, files=int(match[1]), of=files, path=last)
    counted.wait("too many", before + int(match[1]))


def creates_again(loop: Loop, ost: int) -> None:
    """And mdsd knows it: the next job is not told that it is refusing."""
    loop.testbed.set_ost(ost, no_create=False)
    until(lambda: (view := mdsd_view(loop.testbed).view) and all(ost.usable for ost in view.osts))


@pytest.mark.parametrize(
    ("default", "component", "why"), [("1", 0, "refused"), ("0-4M:1,4M-EOF:2", 1, "partly")]
)
def test_an_ost_that_refuses_since_the_plan_was_made(
    site: Site, tmp_path: Path, default: str, component: int, why: str
) -> None:
    loop, counted = site
    (loop.mount() / why).mkdir()
    loop.testbed.set_default_layout(default)
    counted.told(loop, {"layout": {"stripe_count": "site"}})
    app = f"{why}/file"
    path = loop.mount() / app
    loop.run(*words(loop, app), app=why)
    before = counted.of(why)
    ost = -1
    try:
        with held(loop, why, words(loop, app), tmp_path / "go"):
            osts = loop.rows(why)[0]["placement"]["osts"]
            ost = next(index for index in osts[component] if component == 0 or index not in osts[0])
            loop.testbed.set_ost(ost, no_create=True)
        match = re.search(rf"{why}: [^'\"]*", last_line(loop, why))
        assert match and f" {why}=1 " in last_line(loop, why), last_line(loop, why)
        everybody_says(loop, why, match[0], files=1, of=1, path=path)
        counted.wait(why, before + 1)
    finally:
        loop.testbed.set_default_layout("1")
        creates_again(loop, ost)


def test_its_ost_refuses_before_it_is_made_and_nobody_plans_anew(site: Site, tmp_path: Path) -> None:
    loop, counted = site
    first(site, "moves")
    before, ost = counted.of("no room"), -1
    try:
        with held(loop, "moves", words(loop, "moves"), tmp_path / "go"):
            counted.told(loop, {"mdsd": {"memory_limit": 0.0}})
            ost = loop.rows("moves")[0]["placement"]["osts"][0][0]
            loop.testbed.set_ost(ost, no_create=True)
            until(lambda: re.search(r"moves: .* leave OST", loop.log()))
        why = f"no room: its OST {ost} is refusing"
        everybody_says(loop, "moves", why, files=1, of=1, path=loop.mount() / "moves")
        counted.wait("no room", before + 1)
    finally:
        creates_again(loop, ost)


def test_liblustreapi_refuses_the_layout(site: Site, tmp_path: Path) -> None:
    """As one of another version may."""
    (tmp_path / "llapi.c").write_text(REFUSING)
    command = ["cc", "-shared", "-fPIC", "-o", tmp_path / "liblustreapi.so.1", tmp_path / "llapi.c"]
    subprocess.run(command, check=True)
    first(site, "strict")
    before = os.environ | site[0].testbed.environment(0)
    places = f"{tmp_path}:{before.get('LD_LIBRARY_PATH', '')}"
    again(
        site,
        "strict",
        "refused: liblustreapi: llapi_layout_sanity: 7",
        env={**LONG, "LD_LIBRARY_PATH": places},
    )


def test_the_map_s_directory_is_removed_beneath_a_job(site: Site, tmp_path: Path) -> None:
    loop, counted = site
    first(site, "cleared")
    before = counted.of("plan unusable")
    program = words(loop, "cleared", go=tmp_path / "go")
    with (
        stopped(*children(pid_of(loop, "mdsd"))),
        running(loop, "cleared", program, tmp_path / "go", 0.2),
    ):
        shutil.rmtree(loop.home / "maps")
        for pid in children(pid_of(loop, "mdsd")):
            os.kill(pid, signal.SIGCONT)
        until(lambda: "map.1: expected" in loop.log())
    line = last_line(loop, "cleared")
    match = re.search(r"plan unusable: \S+/maps/\S+ \(deleted\)/map\.1: expected a place that [\w ]+", line)
    assert match, line
    everybody_says(loop, "cleared", match[0], files=1, of=1, path=loop.mount() / "cleared")
    counted.wait("plan unusable", before + 1)


def test_neither_maps_nor_spools_have_a_place(site: Site) -> None:
    """There was no line at all."""
    loop, counted = site
    first(site, "nowhere")
    before = counted.runs("plan unusable")
    env = {**LONG, "TARAZU_RUN_MAP_DIR": "/proc/nowhere", "TARAZU_RUN_SPOOL_DIR": "/proc/nowhere"}
    loop.run(*words(loop, "nowhere"), app="nowhere", env=env)
    why = "plan unusable: run.spool_dir: /proc/nowhere/"
    everybody_says(loop, "nowhere", why, files=0, of=0, path=loop.mount() / "nowhere")
    assert "run.map_dir: /proc/nowhere/" in last_line(loop, "nowhere")
    assert counted.runs("plan unusable") == before + 1


def test_files_are_not_called_unseen_where_only_spools_have_no_place(site: Site) -> None:
    """They were placed: `not seen: planned 1 file, saw none`."""
    loop, _ = site
    first(site, "unsaid")
    loop.run(*words(loop, "unsaid"), app="unsaid", env={**LONG, "TARAZU_RUN_SPOOL_DIR": "/proc/nowhere"})
    line = last_line(loop, "unsaid")
    assert " why=" not in line and " problem='run.spool_dir: /proc/nowhere/" in line, line
    assert "not placed" not in loop.tarazu("job", "explain", loop.mount() / "unsaid").stdout
