"""Settings: one declaration; every mistake is named with its file, line and key."""

import dataclasses
import os
import pickle
import re
from pathlib import Path

import pytest

from tarazu import config
from tarazu.config.combinations import impossible
from tarazu.errors import ConfigError


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "tarazu.toml"
    path.write_text(text)
    return path


def test_precedence_is_environment_file_default(tmp_path: Path) -> None:
    path = write(tmp_path, '[ossd]\ninterval_s = 5\n[layout]\nmin_size = "8M"\n')
    settings = config.load(path, {"TARAZU_OSSD_INTERVAL_S": "2.5", "TARAZU_RUN_EXCLUDE": "/a/*:/b"})
    assert settings.ossd.interval_s == 2.5
    assert settings.layout.min_size == 8 << 20
    assert settings.run.exclude == ("/a/*", "/b")
    environ = {"TARAZU_MDSD_EXCLUDE": '["scratch:0-3", "scratch.flash"]'}
    assert config.load(path, environ).mdsd.exclude == ("scratch:0-3", "scratch.flash")
    for text in ('["a"', "[1]", "[]x"):
        with pytest.raises(ConfigError, match=r"\$TARAZU_MDSD_EXCLUDE: expected a list of strings"):
            config.load(path, {"TARAZU_MDSD_EXCLUDE": text})
    assert settings.mdsd.cpu_limit == 0.70


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[ossd]\n\ninterval_s = "x"\n', "tarazu.toml:3: [ossd] interval_s: expected a number, found 'x'"),
        ("[ossd]\ninterval_s = 0\n", "tarazu.toml:2: [ossd] interval_s: expected a number above 0"),
        ("[oss]\nx = 1\n", "tarazu.toml:1: expected a section (did you mean ossd?), found 'oss'"),
        (
            "[run]\nmoode = 1\n",
            "tarazu.toml:2: [run] moode: expected a setting of [run] (did you mean mode?), found",
        ),
        ("[run\n", "tarazu.toml:1: expected TOML"),
        ("[run]\na = [\n1,\n", "tarazu.toml:4: expected TOML"),
        ("[run]\ninterval_s = 1\n", "expected a setting of [run] (there is ossd.interval_s)"),
        ("[mdsd]\nrequests = 'mds1:5770'\n", "expected an address such as tcp://mds1:5770"),
        ("[layout]\nmin_size = '64Q'\n", "tarazu.toml:2: [layout] min_size: expected a size such as 64M"),
        ("[keys]\ninsecure = 1\n", "expected true or false"),
    ],
)
def test_mistakes_are_one_line_with_place_and_expectation(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        config.load(write(tmp_path, text), {})
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("section", "name", "path", "expected"),
    [
        ("run", "map_dir", "/mnt/lustre/.maps-{user}", "stands for the user's number"),
        ("run", "state_dir", "/mnt/{uid}/{gid}", "stands for the user's number"),
        ("run", "spool_dir", "/dev/shm/{uid", "stands for the user's number"),
        ("run", "map_dir", "/mnt/$USER/maps", "stands for the user's number"),
        ("run", "spool_dir", "/mnt/%u", "stands for the user's number"),
        ("clientd", "socket", "/run/%h.sock", "without {…}"),
        ("run", "stop_file", "/etc/{uid}", "without {…}"),
        ("clientd", "socket", "/run/{uid}.sock", "without {…}"),
        ("state", "directory", "/var/{host}", "without {…}"),
    ],
)
def test_what_stands_for_something_elsewhere_is_a_mistake_in_a_path(
    tmp_path: Path, section: str, name: str, path: str, expected: str
) -> None:
    """`run.map_dir = "….maps-{uid}"` was a directory of that name, and `config check` found nothing wrong."""
    with pytest.raises(ConfigError, match=rf"toml:2: \[{section}\] {name}: .*{re.escape(expected)}"):
        config.load(write(tmp_path, f'[{section}]\n{name} = "{path}"\n'), {})


def test_uid_and_host_stand_for_the_same_in_every_directory_of_a_user(tmp_path: Path) -> None:
    paths = {name: f"/x/{name}-{{uid}}-%h" for name in ("state_dir", "map_dir", "spool_dir")}
    text = "[run]\n" + "".join(f'{name} = "{path}"\n' for name, path in paths.items())
    run = config.load(write(tmp_path, text), {}).run
    known = {name: str(config.own_path(getattr(run, name))) for name in paths}
    assert known == {name: f"/x/{name}-{os.getuid()}-{os.uname().nodename}" for name in paths}


def test_a_variable_is_named_in_its_error() -> None:
    with pytest.raises(ConfigError, match=r"\$TARAZU_RUN_MODE: expected one of observe"):
        config.load(None, {"TARAZU_RUN_MODE": "fast"})


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected a readable configuration file"):
        config.load(tmp_path / "none.toml", {})


def test_every_setting_is_documented_with_its_default_as_the_file_takes_it(tmp_path: Path) -> None:
    rows = re.findall(r"^- `(\w+)\.(\w+)` = `(.*?)` \(", config.table(), re.MULTILINE)
    assert len(rows) == sum(len(c.__dataclass_fields__) for c in config.SECTIONS.values())
    text = "".join(
        f"[{section}]\n" + "".join(f"{name} = {value}\n" for of, name, value in rows if of == section)
        for section in config.SECTIONS
    )
    assert config.load(write(tmp_path, text), {}) == config.Settings()


def test_several_mdsds_are_named_in_the_order_in_which_they_are_asked(tmp_path: Path) -> None:
    settings = config.load(write(tmp_path, "[mdsd]\nrequests = 'tcp://mds1:5771, tcp://mds2:5771'\n"), {})
    assert settings.requests() == ("tcp://mds1:5771", "tcp://mds2:5771")
    assert settings.statistics() == ("tcp://127.0.0.1:5770",)
    with pytest.raises(ConfigError, match="or several with commas between"):
        config.load(write(tmp_path, "[mdsd]\nrequests = 'tcp://mds1:5771 mds2'\n"), {})


def test_files_of_conf_d_are_read_after_the_file_in_order_and_the_environment_last(tmp_path: Path) -> None:
    path = write(tmp_path, "[ossd]\ninterval_s = 5\nexports = false\n[run]\nmode = 'place'\n")
    more = tmp_path / "conf.d"
    more.mkdir()
    (more / "20-site.toml").write_text("[ossd]\ninterval_s = 7\n[run]\nmode = 'advise'\n")
    (more / "10-rack.toml").write_text("[ossd]\ninterval_s = 6\nexports = true\n")
    (more / "30-off.toml.rpmsave").write_text("[ossd]\ninterval_s = 8\n")
    (more / ".30-off.toml").write_text("[ossd]\ninterval_s = 9\n")
    settings = config.load(path, {"TARAZU_RUN_MODE": "observe"})
    assert (settings.ossd.interval_s, settings.ossd.exports, settings.run.mode) == (7, True, "observe")
    assert config.load(None, {"TARAZU_CONFIG": str(path)}).run.mode == "advise"
    (more / "20-site.toml").write_text("[ossd]\n\ninterval_s = 'x'\n")
    with pytest.raises(ConfigError, match=r"conf.d/20-site.toml:3: \[ossd\] interval_s: expected a number"):
        config.load(path, {})
    (more / "20-site.toml").unlink()
    (more / "20-site.toml").symlink_to("nowhere")
    with pytest.raises(ConfigError, match=r"conf.d/20-site.toml: expected a readable configuration file"):
        config.load(path, {})


def test_a_second_daemon_has_its_own_settings_and_port(tmp_path: Path) -> None:
    """A file of another name beside tarazu.toml is not changed by the conf.d of that one."""
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / "mdsd.toml").write_text("[mdsd]\nrequests = 'tcp://127.0.0.1:5774'\n")
    other = tmp_path / "mdsd-b.toml"
    other.write_text("[mdsd]\nrequests = 'tcp://127.0.0.1:5784'\n")
    assert config.load(other, {}).mdsd.requests == "tcp://127.0.0.1:5784"
    assert config.load(write(tmp_path, ""), {}).mdsd.requests == "tcp://127.0.0.1:5774"


HOSTILE = {
    "lists in lists": ("x = " + "[" * 100_000, "expected TOML"),
    "digits": ("[ossd]\ninterval_s = " + "9" * 5000, "expected TOML"),
    "a number beyond floats": ("[ossd]\ninterval_s = 1" + "0" * 400, ":2: .* a number that means something"),
    "a number beyond decimals": ("[ossd]\ninterval_s = 0x" + "f" * 5000, "found 'one of 20000 bits'"),
    "inf": ("[ossd]\ninterval_s = inf", "a number that means something, found inf"),
    "nan": ("[ossd]\ninterval_s = nan", "a number that means something, found nan"),
    "an age": ("[ossd]\ninterval_s = 1e15", "at most 1000000000 s"),
    "NUL": ('[mdsd]\nexclude = ["a\\u0000b"]', "no NUL"),
    "dotted": ("\nmdsd.audit_log = 5.5", r"conf.d/a.toml:2: \[mdsd\] audit_log"),
    "quoted": ('[mdsd]\n"audit_log" = 5.5', r"conf.d/a.toml:2: \[mdsd\] audit_log"),
    "inline": ("\nmdsd = {audit_log = 5.5}", r"conf.d/a.toml:2: \[mdsd\] audit_log"),
    "long": ("#" * (1 << 21), "at most 1 MiB"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_an_absurd_file_of_conf_d_is_a_mistake_and_its_place_is_named(tmp_path: Path, name: str) -> None:
    text, says = HOSTILE[name]
    (tmp_path / "conf.d").mkdir()
    (tmp_path / "conf.d" / "a.toml").write_text(text)
    with pytest.raises(ConfigError, match=rf"conf.d/a.toml.*{says}|{says}"):
        config.load(write(tmp_path, ""), {})


def test_a_pipe_in_conf_d_holds_nobody_up(tmp_path: Path) -> None:
    (tmp_path / "conf.d").mkdir()
    os.mkfifo(tmp_path / "conf.d" / "a.toml")
    with pytest.raises(ConfigError, match="expected a configuration file, found 'a pipe or a device'"):
        config.load(write(tmp_path, ""), {})


def test_a_list_of_the_environment_that_is_none_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match="TARAZU_MDSD_EXCLUDE: expected a list of strings"):
        config.load(None, {"TARAZU_CONFIG": "/dev/null", "TARAZU_MDSD_EXCLUDE": "[" * 50_000})


def test_the_default_file_says_what_is_so_anyway(tmp_path: Path) -> None:
    text = config.commented()
    assert config.load(write(tmp_path, text), {}) == config.Settings()
    settings = [line for line in text.splitlines() if re.match(r"#\w+ = ", line)]
    assert len(settings) == sum(len(cls.__dataclass_fields__) for cls in config.SECTIONS.values())
    active = re.sub(r"^#(\w+ = )", r"\1", text, flags=re.MULTILINE)
    assert config.load(write(tmp_path, active), {}) == config.Settings()
    assert max(map(len, text.splitlines())) <= 120


def test_every_mistake_is_found_at_once(tmp_path: Path) -> None:
    path = write(
        tmp_path, "[mdsd]\nrequests = 1.5\nintervall = 4\n[oss]\n[run]\nwait_s = -1\nmode = 'place'\n"
    )
    found = config.examine(path, {"TARAZU_RUN_ALIVE_S": "no"})
    assert [error.where.removeprefix(str(path)) for error in found.problems] == [
        ":2: [mdsd] requests",
        ":3: [mdsd] intervall",
        ":4",
        ":6: [run] wait_s",
        "$TARAZU_RUN_ALIVE_S",
    ]
    assert found.settings.run.mode == "place" and found.settings.run.wait_s == config.RunSettings().wait_s
    assert found.origins == {"run.mode": f"{path}:7: [run] mode"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[mdsd]\nstale_after_s = 30\n",
            ":2: [mdsd] stale_after_s (mdsd.stale_after_s, ossd.interval_s): expected at",
        ),
        (
            "[ossd]\ninterval_s = 600\n",
            ":2: [ossd] interval_s (mdsd.stale_after_s, ossd.interval_s): expected at",
        ),
        (
            "[mdsd]\nrequests = 'tcp://127.0.0.1:5770'\n",
            "expected another address than that of mdsd.statistics",
        ),
        ("[mdsd]\nuser_share = 0\n", "[mdsd] user_share (mdsd.user_share): expected more than 0"),
        ("[clientd]\npassword_file = '/x'\n", "expected a database such as mysql"),
    ],
)
def test_what_cannot_work_together_is_named(tmp_path: Path, text: str, message: str) -> None:
    found = config.examine(write(tmp_path, text), {})
    assert not found.problems
    [wrong] = impossible(found)
    assert message in str(wrong)


def test_the_defaults_work_together() -> None:
    assert impossible(config.examine(None, {"TARAZU_CONFIG": "/dev/null"})) == []


def test_a_section_behaves_as_a_frozen_dataclass() -> None:
    one, other = config.RunSettings(wait_s=1.0), config.RunSettings(wait_s=1.0)
    assert (
        one == other
        and hash(one) == hash(other)
        and one != config.RunSettings()
        and one != config.OssdSettings()
    )
    assert "wait_s=1.0" in repr(one) and pickle.loads(pickle.dumps(one)) == one
    assert dataclasses.replace(one, wait_s=2.0).wait_s == 2.0 and dataclasses.asdict(one)["wait_s"] == 1.0
    assert config.Weights(0.5) == config.Weights(fill_budget=0.5)
    assert config.Settings(run=one).run == one and config.Settings().run == config.RunSettings()
    for wrong in (lambda: config.RunSettings(unheard_of=1), lambda: config.OssdSettings(*range(100))):
        with pytest.raises(TypeError, match="no setting"):
            wrong()
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.wait_s = 3.0  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        del one.wait_s
