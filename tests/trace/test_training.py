"""Darshan logs as training data: real logs into a history, and what is forecast from it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from tarazu.errors import TraceError
from tarazu.model import JobStep
from tarazu.predict import aipa
from tarazu.predict.accuracy import walk_forward
from tarazu.run.command_line import job_step
from tarazu.trace import exchange
from tarazu.trace.darshan.log import DarshanLog, DarshanMount
from tarazu.trace.darshan.read import read
from tarazu.trace.darshan_runs import run_of
from tarazu.trace.flat import NamedRun
from tarazu.trace.history import History
from tarazu.trace.places import Place, PlaceKeys, find_places
from tarazu.trace.runfile import read_run
from tarazu.trace.training import Importer, TakenRun, TrainingRules, sources, tally
from tests.trace.test_history import sample

DATA = Path(__file__).parents[1] / "data" / "traces"
UID = read(DATA / "series_ckpt_0_b2048k.darshan").uid
SERIES = {"haccfpp": "hacc_io_fpp_posix", "ckpt": "ckpt", "iorm": "ior"}
"""Five runs each: file name → application."""
NAMED = (("/scratch/run", "lustre"),)


def logs(series: str) -> list[Path]:
    return sorted(DATA.glob(f"series_{series}_*.darshan"))


def importer(history: Path, **changes: object) -> Importer:
    rules = msgspec.structs.replace(TrainingRules(uid=UID, keep_runs=100, named=NAMED), **changes)
    return Importer(History(history), rules, job_step.logged)


def take(history: Path, paths: Sequence[Path], **changes: object) -> list[TakenRun]:
    one = importer(history, **changes)
    return one.settle([taken for path in paths for taken in one.take(path)])


@pytest.mark.parametrize(
    ("series", "files", "most_error"), [("haccfpp", 8, 0.001), ("ckpt", 56, 0.001), ("iorm", 40, 0.001)]
)
def test_the_fifth_run_is_forecast_from_the_logs_of_four(
    tmp_path: Path, series: str, files: int, most_error: float
) -> None:
    """As after four recorded runs; the command line of the fifth is known before it runs, its files are not."""
    application = SERIES[series]
    *before, fifth = logs(series)
    taken = take(tmp_path, before[::-1])
    assert [t.outcome for t in taken] == ["imported"] * 4 and not any(t.partial for t in taken)
    history = History(tmp_path).runs("lustre", application)
    assert [r.start_s for r in history] == sorted(t.start_s for t in taken), "in whatever order they came"
    take(tmp_path / "fifth", [fifth])
    (actual,) = History(tmp_path / "fifth").runs("lustre", application)
    prediction = aipa.forecast(history, actual.step)
    expected = {f.name.key: f.size_bytes for f in prediction.files}
    assert expected.keys() == {f.key for f in actual.files} and len(expected) == files
    errors = [abs(expected[f.key] - f.size_bytes) / f.size_bytes for f in actual.files]
    assert sum(errors) / len(errors) <= most_error
    (*_, scored) = walk_forward([*history, actual], "arima")
    assert scored.hit_rate == 1 and scored.size_error <= most_error


def test_a_log_is_imported_once_wherever_it_lies_and_whatever_its_name(tmp_path: Path) -> None:
    first = take(tmp_path / "h", logs("ckpt"))
    copy = tmp_path / "copy.darshan"
    shutil.copy(logs("ckpt")[2], copy)
    again = take(tmp_path / "h", [*logs("ckpt"), copy])
    assert tally(first) == {"imported": 5} and tally(again) == {"known": 6}
    assert tally(take(tmp_path / "dry", [copy, logs("ckpt")[2]], dry_run=True)) == {"imported": 1, "known": 1}
    assert not (tmp_path / "dry").exists()
    moved = take(tmp_path / "h", [copy], named=(("/scratch", "lustre"),))
    assert tally(moved) == {"replaced": 1}, "imported with the wrong mount at first"
    keys = [f.key for run in History(tmp_path / "h").runs("lustre", "ckpt") for f in run.files]
    assert len(keys) == 5 * 56 and sum(key.startswith("/run/ckpt/") for key in keys) == 56


def test_only_the_newest_runs_are_kept_whatever_the_order(tmp_path: Path) -> None:
    for order in (logs("ckpt"), logs("ckpt")[::-1]):
        history = tmp_path / order[0].stem
        assert tally(take(history, order, keep_runs=3)) == {"imported": 3, "older": 2}
        assert tally(take(history, order, keep_runs=3)) == {"known": 3, "older": 2}
        newest = [read(log).start_s for log in logs("ckpt")[2:]]
        assert [r.start_s for r in History(history).runs("lustre", "ckpt")] == newest


def test_a_run_that_was_recorded_itself_is_not_learned_twice(tmp_path: Path) -> None:
    take(tmp_path / "a", logs("ckpt")[:1])
    (run,) = History(tmp_path / "a").runs("lustre", "ckpt")
    wider = msgspec.structs.replace(
        run,
        source="recorder",
        start_s=run.start_s - 1.5,
        duration_s=run.duration_s + 2.5,
        step=msgspec.structs.replace(run.step, job_id=""),
    )
    for changed, expected in (
        (wider, "recorded"),
        (msgspec.structs.replace(wider, start_s=run.start_s - 3600), "imported"),
        (msgspec.structs.replace(wider, duration_s=1.0), "imported"),
        (msgspec.structs.replace(wider, step=msgspec.structs.replace(run.step, job_id="1")), "imported"),
    ):
        history = tmp_path / f"{expected}{changed.start_s}{changed.duration_s}{changed.step.job_id}"
        History(history).append(changed)
        assert [t.outcome for t in take(history, logs("ckpt")[:1])] == [expected]


def test_one_log_on_two_file_systems_is_two_runs_of_one_step(tmp_path: Path) -> None:
    taken = take(
        tmp_path, [DATA / "ior_mpiio_coll_ssf_n4_t4m_i3.darshan"], named=(("/scratch", "a"), ("/tmp", "b"))
    )
    assert [(t.fs_name, t.files, t.outcome) for t in taken] == [("a", 1, "imported"), ("b", 2, "imported")]
    assert len({Path(t.path).name.partition("-")[0] for t in taken}) == 1, "as runs of one step are known"


def test_partial_foreign_empty_and_damaged_logs_are_told_apart_and_stop_no_other(tmp_path: Path) -> None:
    damaged, cut = tmp_path / "damaged.darshan", tmp_path / "cut.darshan"
    damaged.write_bytes(b"no log")
    cut.write_bytes(logs("ckpt")[0].read_bytes()[:4000])
    partial = DATA / "ior_posix_fpp_n8_i6_m_partial.darshan"
    found = take(tmp_path / "h", [damaged, cut, partial, logs("ckpt")[1], tmp_path / "none.darshan"])
    assert [t.outcome for t in found] == ["refused", "refused", "imported", "imported", "refused"]
    assert found[2].partial and "records of a module are missing" in found[2].why
    assert all(
        str(path) in t.why and "\n" not in t.why for path, t in zip([damaged, cut], found, strict=False)
    )
    (run,) = History(tmp_path / "h").runs("lustre", "ior")
    assert run.partial and not run.complete
    other = take(tmp_path / "h", logs("haccfpp"), uid=UID + 1)
    assert tally(other) == {"foreign": 5}
    assert tally(take(tmp_path / "h", logs("haccfpp"), uid=UID + 1, any_user=True)) == {"imported": 5}
    assert {r.step.uid for r in History(tmp_path / "h").runs("lustre", "hacc_io_fpp_posix")} == {UID + 1}
    assert tally(take(tmp_path / "h", logs("ckpt")[2:3], named=(("/lustre", "x"),))) == {"empty": 1}


def test_directories_are_searched_for_logs(tmp_path: Path) -> None:
    for day, log in enumerate(logs("iorm")):
        (tmp_path / "2026" / str(day)).mkdir(parents=True)
        shutil.copy(log, tmp_path / "2026" / str(day))
    (tmp_path / "2026" / "readme.txt").write_text("")
    assert [p.name for p in sources(tmp_path)] == [p.name for p in logs("iorm")]
    (tmp_path / "empty").mkdir()
    with pytest.raises(TraceError, match="a directory with logs"):
        list(sources(tmp_path / "empty"))


@pytest.fixture
def on_lustre() -> DarshanLog:
    """A real log as a site with three Lustre file systems would have it; `/lustre/b/home` is another type."""
    log = read(logs("ckpt")[0])
    mounts = [
        ("/lustre/b/home", "nfs"),
        ("/lustre/a", "lustre"),
        ("/lustre/b", "lustre"),
        ("/lustre/c", "lustre"),
    ]
    names = {
        record: name.replace("/scratch/run/ckpt", "/lustre/a/me/x" if "log." in name else "/lustre/b/me")
        for record, name in log.names.items()
    }
    return msgspec.structs.replace(
        log, mounts=(*(DarshanMount(*m) for m in mounts), *log.mounts), names=names
    )


def test_file_systems_are_found_by_the_mounts_of_log_and_node(on_lustre: DarshanLog) -> None:
    here = (Place("/lustre/a", "alpha"), Place("/lustre/b", "beta", "/projects"), Place("/lustre/c", "gamma"))
    places = find_places(on_lustre, here, ())
    assert {p.fs_name for p in places} == {"alpha", "beta"}, "nothing was written on the third"
    assert PlaceKeys(on_lustre, places)("/lustre/a/me/x/log.0") == "/me/x/log.0"
    assert PlaceKeys(on_lustre, places)("/lustre/b/me/f") == "/projects/me/f"
    assert PlaceKeys(on_lustre, places)("/lustre/b/home/f") is None, "another mount lies between"
    assert PlaceKeys(on_lustre, places)("/lustre/bb/f") is None
    assert [p.fs_name for p in find_places(on_lustre, here, (("", "beta"),))] == ["beta"]


def test_file_systems_without_a_name_have_to_be_named(on_lustre: DarshanLog) -> None:
    with pytest.raises(
        TraceError, match=r"name is known: add --mount DIR --fs NAME, found '/lustre/a, /lustre/b'"
    ):
        find_places(on_lustre, (), ())
    with pytest.raises(TraceError, match="one Lustre mount to be x: add --mount DIR"):
        find_places(on_lustre, (), (("", "x"),))
    one = msgspec.structs.replace(
        on_lustre, mounts=tuple(m for m in on_lustre.mounts if m.path != "/lustre/b")
    )
    assert find_places(one, (), (("", "x"),)) == [Place("/lustre/a", "x")]
    below = find_places(on_lustre, (), (("/lustre/a/me", "x"),))
    assert below == [Place("/lustre/a/me", "x", "/me")], "the log knows where the file system begins"
    with pytest.raises(TraceError, match="--fs NAME beside it"):
        find_places(on_lustre, (), (("/scratch", ""),))
    with pytest.raises(TraceError, match="a path from /"):
        find_places(on_lustre, (), (("scratch", "x"),))


def test_a_log_without_lustre_says_where_the_job_wrote(tmp_path: Path) -> None:
    (taken,) = take(tmp_path, logs("iorm")[:1], named=())
    assert taken.outcome == "refused"
    assert "--mount DIR --fs NAME, found '32 files below /scratch/run on / (ext4)'" in taken.why


def test_a_directory_that_links_into_lustre_has_the_keys_of_its_target(tmp_path: Path) -> None:
    """As /scratch often is; the recorder resolves it too."""
    (tmp_path / "lustre" / "users").mkdir(parents=True)
    (tmp_path / "scratch").symlink_to(tmp_path / "lustre" / "users")
    here = (Place(str(tmp_path / "lustre"), "alpha"),)
    (place,) = find_places(read(logs("ckpt")[0]), here, ((str(tmp_path / "scratch"), ""),))
    assert place == Place(str(tmp_path / "scratch"), "alpha", "/users")


def test_command_lines_of_logs_are_read_as_those_of_tarazu_run() -> None:
    assert job_step.logged(("/opt/py/bin/python3", "-u", "/apps/train.py", "5")) == ("train.py", (5.0,))
    assert job_step.logged(("/apps/ior", "-b", "16m")) == ("ior", (2.0**24,))
    assert job_step.logged(()) == ("unknown", ())


def test_an_exported_history_moves_to_another_home(tmp_path: Path) -> None:
    take(tmp_path / "old", logs("ckpt"))
    old = History(tmp_path / "old")
    kept = [
        NamedRun(path.stem, run)
        for path, run in old.each("lustre", "ckpt", lambda error: pytest.fail(str(error)))
    ]
    exchange.write_file(kept, "json", tmp_path / "all.json")
    assert tally(take(tmp_path / "new", [tmp_path / "all.json"], uid=4711)) == {"imported": 5}
    assert tally(take(tmp_path / "new", [tmp_path / "all.json"], uid=4711)) == {"known": 5}
    renamed = take(
        tmp_path / "site", [tmp_path / "all.json"], named=(("", "scratch2"),), application="checkpoint"
    )
    assert {(t.fs_name, t.application) for t in renamed} == {("scratch2", "checkpoint")}
    moved = History(tmp_path / "new").runs("lustre", "ckpt")
    assert {run.step.uid for run in moved} == {4711}
    assert [run.files for run in moved] == [one.run.files for one in kept]
    assert [p.name for p in History(tmp_path / "new").paths("lustre", "ckpt")] == [
        p.name for p in old.paths("lustre", "ckpt")
    ]


@pytest.mark.parametrize("format", exchange.FORMATS)
def test_ones_own_export_is_there_already(tmp_path: Path, format: str) -> None:
    """Under the names that `tarazu run` gives to runs, which hold more than an export does."""
    history = History(tmp_path / "history")
    for at, id in enumerate(
        ["17-abcdef", "4711-012345", "20261122T183000-17-abcdef-login1", "d1b8f4c52d940704"]
    ):
        run = sample(1e9 + at, application=("one", "two")[at % 2])
        history.append(msgspec.structs.replace(run, ost_bytes={0: 4096}), id)
    kept = [NamedRun(p.stem, read_run(p)) for app in ("one", "two") for p in history.paths("lustre", app)]
    before = {p: p.read_bytes() for p in history.directory.rglob("*.run")}
    export = tmp_path / f"all.{format}"
    exchange.write_file(kept, format, export)
    exchange.write_tables(kept, format, tmp_path / "tables")
    for source in (export, tmp_path / "tables", export):
        assert tally(take(history.directory, [source])) == {"known": 4}
    renamed = [one._replace(run_id=f"run{at}") for at, one in enumerate(kept)]
    exchange.write_file([*renamed, NamedRun("new", sample(2e9))], format, export)
    assert tally(take(history.directory, [export])) == {"imported": 1, "known": 4}
    assert tally(take(history.directory, [export], application="other")) == {"imported": 5}
    assert tally(take(history.directory, [export], application="other")) == {"known": 5}
    after = {p: p.read_bytes() for p in history.directory.rglob("*.run")}
    assert after | before == after and len(after) == 4 + 1 + 5


def test_exports_that_were_put_together_are_read_as_one(tmp_path: Path) -> None:
    whole = tmp_path / "all.csv"
    exchange.write_file([NamedRun("a-0001", sample(1e9)), NamedRun("b-0002", sample(2e9))], "csv", whole)
    header, *rows = whole.read_text().splitlines(keepends=True)
    first = [row for row in rows if row.startswith("a")]
    for content in (
        [header, *rows, header, *rows],
        [header, *rows, *rows],
        [header, *first, *first, *rows[len(first) :]],
    ):
        (tmp_path / "both.csv").write_text("".join(content))
        taken = take(tmp_path / "history", [tmp_path / "both.csv"], dry_run=True)
        assert [t.files for t in taken if t.outcome == "imported"] == [len(sample().files)] * 2
        assert {t.outcome for t in taken} <= {"imported", "known"}


def test_a_log_of_one_process_has_no_ranks_as_the_recorder_has_it(tmp_path: Path) -> None:
    """Digits in its names are then no ranks, so that recorded runs go on with the series."""
    log = read(logs("ckpt")[0])
    alone = msgspec.structs.replace(log, ranks=1)
    step = JobStep("lustre", 0, "ckpt", "1", ranks=1)
    run = run_of(alone, step, PlaceKeys(alone, [Place("/scratch/run", "lustre")]))
    assert {(f.rank, f.creators, f.writers) for f in run.files} == {(-1, (), 1)}
    assert all("{rank}" not in f.precise for f in run.files) and len(run.files) == 56
