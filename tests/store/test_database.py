"""The interaction database: one contract for SQLite and MariaDB, and what several who write at once meet."""

from __future__ import annotations

import itertools
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tarazu.errors import StoreError
from tarazu.lustre import EOF
from tarazu.model import ANY_RANK, Component, FileName, FilePlacement, Forecast, JobStep, Layout
from tarazu.names import from_text, to_text
from tarazu.store import files, sqlite
from tarazu.store.connection import write
from tarazu.store.database import PLAN_BYTES, InteractionDatabase, open_database
from tarazu.store.rows import FileRow, NewFile, from_builtins, to_builtins
from tarazu.trace.records import FileRecord, RunRecord

MIB = 1 << 20
STEP = JobStep("lustre", 1000, "ior", "17", ranks=2, numbers=(8.5, 2.0), start_s=1e9)
PLAIN = Layout((Component(0, EOF, MIB, 4),))
PFL = Layout(
    (Component(0, 64 * MIB, MIB, 1), Component(64 * MIB, EOF, 4 * MIB, 3, pool="ssd")), composite=True
)
NUMBERS = itertools.count()
TABLES = ("extents", "files", "plan_layouts", "components", "layouts", "requests", "plans")


def planned(rank: int, layout: Layout | None = PLAIN, key: str = "") -> NewFile:
    name = key or f"/ior/test.{rank}"
    size = 256 * MIB
    return NewFile(
        Forecast(
            FileName(name, "/ior/test.{rank}", "/ior/test.#", False, rank, 0, 1),
            size,
            1.25,
            3,
            rank == ANY_RANK,
            "arima",
        ),
        layout,
    )


def created(rank: int, **fields: object) -> FileRecord:
    record = FileRecord(
        f"/ior/test.{rank}",
        "/ior/test.{rank}",
        "/ior/test.#",
        rank,
        (rank,),
        0,
        0,
        1.0,
        300 * MIB,
        outcome="hit",
    )
    return msgspec.structs.replace(record, **fields)


def count(database: InteractionDatabase, table: str) -> int:
    """Its rows."""
    return int(database._db.query(f"SELECT COUNT(*) FROM {table}")[0][0])


def finished(*files: FileRecord) -> RunRecord:
    return RunRecord(STEP, 1e9, 50.0, "light", files)


class Contract:
    """What every interaction database does."""

    @pytest.fixture
    def database(self) -> Iterator[InteractionDatabase]:
        raise NotImplementedError

    def test_a_plan_and_its_files_come_back_as_they_went_in(self, database: InteractionDatabase) -> None:
        plan_id = database.new_plan(STEP)
        files = [planned(0), planned(1, PFL), planned(ANY_RANK, None, "/ior/it's")]
        ids = database.add_files(plan_id, files)
        plan = database.plan(plan_id)
        assert plan is not None and plan.step == STEP
        assert (plan.policy, plan.status, plan.ended_s) == ("", "new", None)
        assert 0 <= time.time() - plan.created_s < 600
        rows = database.files(plan_id)
        assert [r.id for r in rows] == ids and [(r.forecast, r.layout) for r in rows] == [
            (f.forecast, f.layout) for f in files
        ]
        assert all(r.placement is None and r.outcome == "" and r.actual_bytes is None for r in rows)

    def test_allocations_are_kept_per_component_and_rolling(self, database: InteractionDatabase) -> None:
        plan_id = database.new_plan(STEP)
        first, second = database.add_files(plan_id, [planned(0), planned(1, PFL)])
        one = FilePlacement(((5, 1, 3, 0),))
        database.set_allocation(
            plan_id,
            status="allocated",
            request_id="r1",
            policy="convex",
            ost_cost=1.5,
            placements={first: one},
        )
        two = FilePlacement(((2,), ()))
        database.set_allocation(
            plan_id, status="declined", reason="busy", request_id="r2", ost_cost=1.1, placements={second: two}
        )
        rows = database.files(plan_id)
        assert [r.placement for r in rows] == [one, two]
        assert [(r.request_id, r.request_index) for r in rows] == [("r1", 0), ("r2", 0)]
        plan = database.plan(plan_id)
        assert plan is not None
        assert (plan.status, plan.reason, plan.ost_cost, plan.request_id) == ("declined", "busy", 1.1, "r2")
        assert count(database, "requests") == 2

    def test_the_order_of_an_allocation_is_the_order_of_its_request(
        self, database: InteractionDatabase
    ) -> None:
        plan_id = database.new_plan(STEP)
        ids = database.add_files(plan_id, [planned(r) for r in range(3)])
        placements = {i: FilePlacement(((1, 2, 3, 4),)) for i in reversed(ids)}
        database.set_allocation(plan_id, status="allocated", request_id="r", placements=placements)
        assert [r.request_index for r in database.files(plan_id)] == [2, 1, 0]

    def test_a_placement_of_another_plans_row_changes_nothing(self, database: InteractionDatabase) -> None:
        plan_id, other = database.new_plan(STEP), database.new_plan(STEP)
        (mine,) = database.add_files(plan_id, [planned(0)])
        (foreign,) = database.add_files(other, [planned(0)])
        placement = FilePlacement(((1, 2, 3, 4),))
        with pytest.raises(StoreError, match=f"row {foreign}|'row {foreign}'"):
            database.set_allocation(
                plan_id, status="allocated", placements={mine: placement, foreign: placement}
            )
        plan = database.plan(plan_id)
        assert plan is not None and plan.status == "new"
        assert database.files(plan_id)[0].placement is None and count(database, "requests") == 0

    def test_outcomes_are_found_by_row_then_by_key(self, database: InteractionDatabase) -> None:
        plan_id = database.new_plan(STEP)
        ids = database.add_files(plan_id, [planned(r) for r in range(4)])
        run = finished(
            created(7, row_id=ids[0], layout=b"\xd0\x0b", found="loose"),
            created(1, outcome="late"),
            created(2, closed=False, size_bytes=0),
            created(9, outcome="miss"),
        )
        assert database.record_outcomes(plan_id, run) == 3
        a, b, c, d = database.files(plan_id)
        assert (a.outcome, a.found, a.actual_key, a.actual_bytes) == (
            "hit",
            "loose",
            "/ior/test.7",
            300 * MIB,
        )
        assert a.actual_layout == b"\xd0\x0b"
        assert (b.outcome, b.actual_key, c.actual_bytes, d.outcome) == ("late", "/ior/test.1", None, "unseen")
        plan = database.plan(plan_id)
        assert plan is not None and plan.ended_s == 1e9 + 50

    def test_plans_come_newest_first(self, database: InteractionDatabase) -> None:
        old, new = database.new_plan(STEP), database.new_plan(STEP)
        database.new_plan(msgspec.structs.replace(STEP, uid=1001))
        database.new_plan(msgspec.structs.replace(STEP, application="hacc"))
        assert [p.id for p in database.plans() if p.step == STEP] == [new, old]
        assert [p.step.application for p in database.plans()][:2] == ["hacc", "ior"]
        assert database.plan(10**9) is None

    def test_plans_of_a_job_are_found_by_its_id_and_by_its_arrays(
        self, database: InteractionDatabase
    ) -> None:
        def new(**of: Any) -> int:
            return database.new_plan(msgspec.structs.replace(STEP, **of))

        first = new(job_id="4711")
        new(job_id="47112"), new(job_id="14711"), new(job_id="4711", uid=1001)
        tasks = [new(job_id=str(4800 + n), array_job="4799", array_index=n) for n in (3, 4)]
        server = new(job_id="99.pbs1")

        def found(job: str, uid: int | None = 1000, most: int = 9) -> list[int]:
            return [plan.id for plan in database.plans_of_job(job, uid, most)]

        assert found("4711") == [first] and len(found("4711", None)) == 2
        assert found("4799") == tasks[::-1] and found("4799", most=1) == tasks[1:]
        assert found("4799_3") == tasks[:1] and found("4803") == tasks[:1]
        assert found("99") == found("99.pbs1") == [server]
        assert found("47%") == found("4_11") == found("") == []

    def test_a_plan_in_a_few_numbers(self, database: InteractionDatabase) -> None:
        plan_id = database.new_plan(STEP)
        left = msgspec.structs.replace(planned(2, None), left_because="too small")
        ids = database.add_files(plan_id, [planned(0), planned(1), left])
        placements = {id: FilePlacement(((1, 2, 3, 4),)) for id in ids[:2]}
        database.set_allocation(plan_id, status="allocated", request_id="r1", placements=placements)
        assert database.request_ids(plan_id) == ["r1"]
        counts = {"files": 3, "size_bytes": 768 * MIB, "placed": 2, "left": {"too small": 1}}
        assert database.counts(plan_id) == {**counts, "outcomes": {"not yet": 3}}
        database.record_outcomes(plan_id, finished(created(0, row_id=ids[0])))
        assert database.counts(plan_id) == {**counts, "outcomes": {"unseen": 2, "hit": 1}}

    def test_explain_finds_forecast_and_actual_names_newest_first(
        self, database: InteractionDatabase
    ) -> None:
        first = database.new_plan(STEP)
        (row,) = database.add_files(first, [planned(0)])
        second = database.new_plan(STEP)
        database.add_files(second, [planned(0)])
        database.record_outcomes(first, finished(created(5, row_id=row)))
        assert [e.plan.id for e in database.explain("/ior/test.0")] == [second, first]
        assert [e.plan.id for e in database.explain("/ior/test.5")] == [first]
        assert database.explain("/ior/test.0", fs_name="home") == []
        assert database.explain("/nothing") == []

    def test_what_the_next_run_begins_with_is_kept_for_its_user_and_application(
        self, database: InteractionDatabase, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        other = msgspec.structs.replace(STEP, uid=1001)
        odd = msgspec.structs.replace(STEP, application="odd\udcff")
        assert database.prepared(STEP) == b""
        for step, body in ((STEP, b"before"), (STEP, b"\x00\xff"), (other, b"another's"), (odd, b"odd")):
            database.keep_prepared(step, body)
        assert [database.prepared(step) for step in (STEP, other, odd)] == [b"\x00\xff", b"another's", b"odd"]
        monkeypatch.setattr("tarazu.store.database.MOST_PREPARED", 1)
        database.keep_prepared(msgspec.structs.replace(STEP, application="new"), b"new")
        assert (database.prepared(STEP), database.prepared(odd)) == (b"", b"")
        assert database.prepared(other) == b"another's"

    def test_prune_keeps_the_newest_of_each_and_row_ids_are_not_used_again(
        self, database: InteractionDatabase
    ) -> None:
        other = database.new_plan(msgspec.structs.replace(STEP, application="hacc"))
        ids = []
        for _ in range(3):
            plan_id = database.new_plan(STEP)
            ids += database.add_files(plan_id, [planned(0)])
            database.set_allocation(
                plan_id, status="allocated", placements={ids[-1]: FilePlacement(((1, 2, 3, 4),))}
            )
        assert database.prune(STEP, keep=1, user_bytes=1 << 40) == 2
        assert [p.id for p in database.plans()] == [plan_id, other]
        assert (count(database, "files"), count(database, "extents"), count(database, "requests")) == (
            1,
            1,
            1,
        )
        for step in (STEP, msgspec.structs.replace(STEP, application="hacc")):
            assert database.prune(step, keep=0, user_bytes=1 << 40) == 1
        assert database.add_files(database.new_plan(STEP), [planned(0)])[0] > max(ids)

    def test_one_user_with_many_applications_does_not_push_out_anothers_plans(
        self, database: InteractionDatabase
    ) -> None:
        theirs = database.new_plan(msgspec.structs.replace(STEP, uid=1001))
        database.add_files(theirs, [planned(r) for r in range(100)])
        for number in range(60):
            step = msgspec.structs.replace(STEP, application=f"app{number}")
            plan_id = database.new_plan(step)
            database.add_files(plan_id, [planned(0)])
            database.prune(step, keep=1000, user_bytes=20 * PLAN_BYTES)
        mine = [p for p in database.plans() if p.step.uid == STEP.uid]
        assert 10 < len(mine) < 20 and mine[0].id == plan_id, "the newest are kept"
        assert len(database.files(theirs)) == 100

    def test_a_plan_counts_by_what_its_files_take(self, database: InteractionDatabase) -> None:
        small = database.new_plan(STEP)
        large = database.new_plan(msgspec.structs.replace(STEP, application="large"))
        ids = database.add_files(large, [planned(0, PFL, "/" + "x" * 1000) for _ in range(50)])
        placements = {i: FilePlacement((tuple(range(100)), ())) for i in ids}
        database.set_allocation(large, status="allocated", placements=placements)
        database.record_outcomes(large, finished(created(0, row_id=ids[0], layout=b"x" * 9000)))
        newest = database.new_plan(STEP)
        used = 50 * (1000 * 2 + 200 + 300) + 1000 + 18_000
        assert database.prune(STEP, keep=10, user_bytes=2 * used) == 0
        assert database.prune(STEP, keep=10, user_bytes=used) == 2, "and with it all that is older"
        assert [p.id for p in database.plans()] == [newest] and small < large

    def test_layouts_go_with_their_last_plan(self, database: InteractionDatabase) -> None:
        first, second = database.new_plan(STEP), database.new_plan(STEP)
        database.add_files(first, [planned(0, PFL), planned(1, PLAIN)])
        database.add_files(second, [planned(0, PLAIN), planned(1, PLAIN)])
        assert (count(database, "layouts"), count(database, "components")) == (2, 3)
        database.prune(STEP, keep=1, user_bytes=1 << 40)
        assert (count(database, "layouts"), count(database, "components")) == (1, 1)
        assert {r.layout for r in database.files(second)} == {PLAIN}
        third = database.new_plan(STEP)
        database.add_files(third, [planned(0, PFL)])
        assert database.files(third)[0].layout == PFL, "one that went comes back"

    def test_pruning_costs_what_the_users_own_plans_cost(self, database: InteractionDatabase) -> None:
        """Every plan used to look at all plans of all users."""
        for _ in range(5):
            database.new_plan(STEP)
        for number in range(200):
            database.new_plan(msgspec.structs.replace(STEP, uid=2000 + number))
        seen = 0
        query = database._db.query

        def counted(statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
            nonlocal seen
            rows = query(statement, values)
            seen += len(rows)
            return rows

        database._db.query = counted  # type: ignore[method-assign]
        assert database.prune(STEP, keep=3, user_bytes=1 << 40) == 2
        assert seen < 20

    def test_names_that_are_no_utf8_or_more_than_the_basic_plane(self, database: InteractionDatabase) -> None:
        names = [b"/caf\xe9".decode("utf-8", "surrogateescape"), "/𝛑/ü", "/a\nb'\"%s?", "/" + "x" * 4000]
        plan_id = database.new_plan(msgspec.structs.replace(STEP, application=names[0]))
        database.add_files(plan_id, [planned(0, key=n) for n in names])
        assert [r.forecast.name.key for r in database.files(plan_id)] == names
        for name in names:
            assert [e.file.forecast.name.key for e in database.explain(name)] == [name]
        assert [plan.step.application for plan in database.plans()] == names[:1]

    def test_unknown_plans_are_refused(self, database: InteractionDatabase) -> None:
        for call in (
            lambda: database.add_files(77, [planned(0)]),
            lambda: database.set_allocation(77, status="allocated"),
            lambda: database.record_outcomes(77, finished()),
        ):
            with pytest.raises(StoreError, match="a plan that exists, found 77"):
                call()

    def test_what_fails_half_way_is_not_there(self, database: InteractionDatabase) -> None:
        plan_id = database.new_plan(STEP)
        too_large = msgspec.structs.replace(planned(1).forecast, size_bytes=2**63)
        with pytest.raises(StoreError, match="usable interaction database"):
            database.add_files(plan_id, [planned(0, PFL), NewFile(too_large, PLAIN)])
        assert database.files(plan_id) == [] and count(database, "layouts") == 0
        database.add_files(plan_id, [planned(0, PFL)])
        assert database.files(plan_id)[0].layout == PFL

    def test_the_view_has_the_papers_columns(self, database: InteractionDatabase) -> None:
        gib = 1024 * MIB
        layout = Layout(
            (
                Component(0, 128 * MIB, MIB, 1),
                Component(128 * MIB, 512 * MIB, MIB, 3),
                Component(512 * MIB, 2 * gib, MIB, 8),
                Component(2 * gib, EOF, MIB, 16),
            ),
            composite=True,
        )
        forecast = msgspec.structs.replace(planned(1).forecast, size_bytes=8 * gib)
        plan_id = database.new_plan(STEP)
        (row,) = database.add_files(plan_id, [NewFile(forecast, layout)])
        osts = ((24,), (13, 9, 29), tuple(range(8)), tuple(range(16)))
        database.set_allocation(plan_id, status="allocated", placements={row: FilePlacement(osts)})
        name = "/ior/test.1"
        columns = "file_name, file_size, extent_id, extent_start, extent_end, stripe_size, stripe_count"
        view = f"SELECT {columns}, mpi_rank, ost_list FROM interaction WHERE plan_id=? ORDER BY extent_id"
        assert database._db.query(view, (plan_id,)) == [
            (name, 8589934592, 1, 0, 134217728, 134217728, 1, 1, "24"),
            (name, 8589934592, 2, 134217728, 536870912, 134217728, 3, 1, "13 9 29"),
            (name, 8589934592, 3, 536870912, 2147483648, 201326592, 8, 1, "0 1 2 3 4 5 6 7"),
            (name, 8589934592, 4, 2147483648, 8589934592, 402653184, 16, 1, " ".join(map(str, range(16)))),
        ]


class TestSqlite(Contract):
    @pytest.fixture
    def database(self, tmp_path: Path) -> Iterator[InteractionDatabase]:
        with open_database(tmp_path / "interaction.db") as database:
            yield database


class TestMysql(Contract):
    @pytest.fixture
    def database(self, mariadb: Path) -> Iterator[InteractionDatabase]:
        import pymysql

        name = f"tarazu{next(NUMBERS)}"
        root = pymysql.connect(unix_socket=str(mariadb), user="root")
        with root.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
        url = f"mysql://root@localhost/{name}?socket={mariadb}"
        with open_database(url) as database:
            yield database
        with open_database(url):
            pass  # the schema is recognised
        with root.cursor() as cursor:
            cursor.execute(f"DROP DATABASE {name}")
        root.close()


def test_two_connections_see_each_others_rows_and_share_no_ids(tmp_path: Path) -> None:
    path = tmp_path / "i.db"
    with open_database(path) as one, open_database(path) as two:
        a = one.add_files(one.new_plan(STEP), [planned(r, PFL) for r in range(3)])
        b = two.add_files(two.new_plan(STEP), [planned(r, PFL) for r in range(3)])
        assert not set(a) & set(b) and len(one.plans()) == 2 and count(one, "layouts") == 1


def test_threads_that_write_wait_for_their_turn_not_for_the_busy_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_S", 0.05)
    step = JobStep("lustre", 1000, "app", "1")
    open_database(tmp_path / "db").close()
    holding, failed = threading.Event(), []

    def writes() -> None:
        try:
            with open_database(tmp_path / "db") as database:
                holding.wait(120)
                database.new_plan(step)
        except StoreError as error:
            failed.append(error)

    threads = [threading.Thread(target=writes) for _ in range(4)]
    with open_database(tmp_path / "db") as database:
        for thread in threads:
            thread.start()

        def hold() -> None:
            holding.set()
            time.sleep(0.2)

        write(database._db, hold)
    for thread in threads:
        thread.join(120)
    with open_database(tmp_path / "db") as database:
        assert not failed and len(database.plans()) == 4


def test_a_transaction_that_fails_keeps_no_other_thread_from_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_S", 0.05)
    monkeypatch.setattr(sqlite, "TURN_S", 0.05)
    step = JobStep("lustre", 1000, "app", "1")
    with open_database(tmp_path / "db") as one, open_database(tmp_path / "db") as two:
        with pytest.raises(StoreError, match="plan that exists"):
            one.set_allocation(7, status="declined")
        two.new_plan(step)
        other = sqlite3.connect(tmp_path / "db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked"):
            one.new_plan(step)
        other.close()
        two.new_plan(step)

        def meanwhile() -> None:
            with pytest.raises(StoreError, match="a turn to write"):
                two.new_plan(step)

        write(one._db, meanwhile)
        unfinished = open_database(tmp_path / "db")
        unfinished._db.begin()
        unfinished.close()
        assert two.new_plan(step)


def test_the_space_of_plans_that_went_is_used_again(tmp_path: Path) -> None:
    path = tmp_path / "i.db"
    sizes = []
    with open_database(path) as database:
        for _ in range(14):
            database.prune(STEP, keep=1, user_bytes=1 << 40)
            database.add_files(database.new_plan(STEP), [planned(r, PFL) for r in range(3000)])
            database.prune(STEP, keep=1, user_bytes=1 << 40)
            log = path.with_name("i.db-wal")
            sizes.append(path.stat().st_size + log.stat().st_size)
    assert sizes[-1] < 1.2 * sizes[6], sizes


def test_every_column_of_files_is_written_and_read_under_one_name(tmp_path: Path) -> None:
    open_database(tmp_path / "i.db").close()
    raw = sqlite3.connect(tmp_path / "i.db")
    found = {row[1] for row in raw.execute("PRAGMA table_info(files)")}
    raw.close()
    fields = {**files.columns(FileName), **files.columns(Forecast, "name", "until_s")}
    fields |= files.columns(FileRow, "forecast", "layout", "placement")
    assert found == {*fields, "layout_id"}


def test_a_row_shows_its_names_fields_beside_its_forecasts_and_comes_back() -> None:
    row = FileRow(1, 2, planned(3).forecast, PFL, FilePlacement(((1,), (2, 3, 4))), actual_layout=b"\xd0\x0b")
    values = to_builtins(row)
    assert list(values["forecast"]) == [
        *FileName.__struct_fields__, "size_bytes", "at_s", "writers", "method",
    ]  # fmt: skip
    assert values["actual_layout"] == "d00b"
    assert from_builtins(msgspec.msgpack.decode(msgspec.msgpack.encode(values))) == row


def test_texts_round_trip() -> None:
    for text in ("/plain", "//", "", b"/\xff%".decode("utf-8", "surrogateescape")):
        assert from_text(to_text(text)) == text
