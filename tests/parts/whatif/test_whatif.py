"""`tarazu whatif`: a real log with a sick OST, and written ones for what no log at hand has."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest

from tarazu.cli import main
from tarazu.model import Ost, SystemView
from tarazu.parts.whatif.picture import SLOW
from tarazu.units import GIB, MIB, TIB

pytest.importorskip("darshan")

from tests.parts.whatif.logs import job
from tests.trace.darshan import writer

DATA = Path(__file__).parents[2] / "data"
Capture = pytest.CaptureFixture[str]


def whatif(capsys: Capture, *words: object, status: int = 0) -> str:
    assert main(["whatif", *map(str, words)]) == status
    return capsys.readouterr().out


def answer(capsys: Capture, *words: object, status: int = 0) -> Any:
    """The only file system of the only log."""
    ((of,),) = [log["file_systems"] for log in json.loads(whatif(capsys, *words, "--json", status=status))]
    return of


def placed(of: Any, policy: str) -> Any:
    (found,) = [p for p in of["compared"]["placed"] if p["policy"] == policy]
    return found


def time_s(of: Any, policy: str) -> float:
    return float(placed(of, policy)["time_s"]["median"])


def test_the_job_of_the_sick_ost(capsys: Capture, tmp_path: Path) -> None:
    of = answer(capsys, "--example", "--picture", tmp_path / "osts.svg")
    assert of["actual"]["time_s"]["median"] == pytest.approx(727.5, abs=0.5)
    assert of["actual"]["slowest_ost"] == 14
    assert of["actual"]["ost_cost"]["median"] == pytest.approx(1.008, abs=0.001)
    assert time_s(of, "lsa") == pytest.approx(of["actual"]["time_s"]["median"], rel=0.02)
    bound = of["compared"]["time_bound_s"]
    assert bound * (1 - 1e-9) <= time_s(of, "tarazu") <= 1.01 * bound
    assert bound == pytest.approx(14.2, abs=0.1)
    sick = of["rows"][14]
    assert sick["seen_bytes_per_s"] == pytest.approx(31.4e6, rel=0.01)
    assert sick["bytes"]["tarazu"] < 0.05 * sick["bytes"]["as logged"]
    (wide,) = [w for w in of["wider"] if w["name"] == "all OSTs"]
    assert wide["compared"]["time_bound_s"] > 600, "a stripe on every OST waits for the sick one"
    picture = (tmp_path / "osts.svg").read_text()
    assert picture.count("<rect") == 2 * 24
    assert picture.count(SLOW) == 2, "OST 14, before and after"
    ElementTree.fromstring(picture)


def test_the_table_names_the_slow_ost_and_promises_no_more_than_the_run_has(
    capsys: Capture, tmp_path: Path
) -> None:
    sizes, osts = [GIB] * 16, [[n % 8] for n in range(16)]
    ends = [11.0 + 9 * (n % 8 == 3) for n in range(16)]
    out = whatif(capsys, job(tmp_path / "log.darshan", sizes, osts, ends=ends))
    first, second, *_ = out.splitlines()
    assert re.match(
        r"app: writing would have taken \d\.\d s instead of 10\.0 s at best \(\d\d% less\), ", first
    )
    assert first.endswith("because OST 3 was 10 times slower than the rest.")
    assert re.fullmatch(r"The whole run would have taken 9[12]\.\d s or more instead of 100 s: .*", second)
    assert "10.0% of a run of 100 s" in out


def test_a_large_file_that_one_process_wrote_alone_is_no_slow_ost(capsys: Capture, tmp_path: Path) -> None:
    sizes, osts = [*[GIB] * 14, 20 * GIB], [*([n % 7] for n in range(14)), [7]]
    of = answer(capsys, job(tmp_path / "log.darshan", sizes, osts, ends=[*[12.0] * 14, 30.0]))
    assert of["actual"]["time_s"]["median"] == pytest.approx(20.0)
    assert time_s(of, "tarazu") == pytest.approx(20.0, rel=0.01)


def test_phases_are_not_merged_into_one(capsys: Capture, tmp_path: Path) -> None:
    starts = [10.0] * 4 + [60.0] * 4
    log = job(
        tmp_path / "log.darshan", [GIB] * 8, [[n] for n in range(4)] * 2,
        starts=starts, ends=[s + 2.0 for s in starts],
    )  # fmt: skip
    of = answer(capsys, log)
    assert (of["phases"], of["span_s"], of["writing_s"]) == (2, 52.0, 4.0)
    assert of["actual"]["time_s"]["median"] == pytest.approx(4.0)
    assert of["compared"]["time_bound_s"] == pytest.approx(4.0, rel=0.01)


def test_stripes_are_counted_exactly(capsys: Capture, tmp_path: Path) -> None:
    """5 MiB in stripes of 1 MiB over three OSTs: 2, 2, 1."""
    of = answer(capsys, job(tmp_path / "log.darshan", [5 * MIB], [[4, 7, 2]], ends=[11.0]))
    assert {row["ost"]: row["bytes"]["as logged"] for row in of["rows"]} == {2: MIB, 4: 2 * MIB, 7: 2 * MIB}
    assert of["actual"]["ost_cost"]["median"] == pytest.approx(2 / (5 / 3))


def test_two_lustre_file_systems_and_one_that_is_none(capsys: Capture, tmp_path: Path) -> None:
    names = {1: "/a/f", 2: "/b/f", 3: "/tmp/f", 4: "/a/g"}
    log = job(
        tmp_path / "log.darshan", [GIB] * 4, [[0], [0], [0], [1]], ends=[11.0] * 4, names=names,
        extra={"LUSTRE": writer.plain(1, [0]) + writer.plain(2, [0]) + writer.plain(4, [1])},
        mounts=(("/a", "lustre"), ("/b", "lustre"), ("/tmp", "tmpfs"), ("/", "ext4")),
    )  # fmt: skip
    ((found),) = json.loads(whatif(capsys, log, "--json"))
    assert [(of["mount"], of["files"]) for of in found["file_systems"]] == [("/a", 2), ("/b", 1)]
    assert "1.0 GiB were written to tmpfs, no Lustre" in found["notes"]


def cases() -> dict[str, tuple[dict[str, Any], str]]:
    """What a log may lack → how it is made, and the words."""
    nowhere = writer.plain(1, [-1, -1])
    two = [[0, 1], [2, 3]]
    return {
        "no Lustre records": ({"osts": []}, "cannot be compared, because the log has no Lustre records"),
        "read only": ({"changes": {"BYTES_WRITTEN": 0, "MAX_BYTE_WRITTEN": 0}}, "wrote nothing, as far as"),
        "partial": ({"partial": ["POSIX"]}, "the log is partial"),
        "sparse": ({"osts": two, "changes": {"MAX_BYTE_WRITTEN": 9 * GIB}}, "which objects got the bytes is not known"),
        "mapped": ({"changes": {"MMAPS": 1}}, "mapped into memory"),
        "no OSTs": ({"extra": {"LUSTRE": nowhere + writer.plain(2, [1])}}, "mirrored or without OSTs"),
        "written twice": ({"changes": {"BYTES_WRITTEN": 3 * GIB}}, "were written over earlier bytes"),
        "there before": (
            {"changes": {"BYTES_READ": 9, "MAX_BYTE_READ": 9, "F_READ_START_TIMESTAMP": 9.5}},
            "would have gained nothing, because all its files were there before",
        ),
    }  # fmt: skip


@pytest.mark.parametrize("case", cases())
def test_what_a_log_cannot_tell_is_said_and_no_figure_stands_for_it(
    case: str, capsys: Capture, tmp_path: Path
) -> None:
    options, words = cases()[case]
    log = job(
        tmp_path / "log.darshan", [GIB] * 2, options.pop("osts", [[0], [1]]), ends=[11.0] * 2, **options
    )
    main(["whatif", str(log)])
    out = capsys.readouterr().out
    assert words in out
    assert "Traceback" not in out
    main(["whatif", str(log), "--json"])
    for of in json.loads(capsys.readouterr().out)[0]["file_systems"]:
        assert (of["actual"] is None) == (case not in ("written twice",))
        assert not (of["why_no_times"] and of["actual"])


def test_a_log_without_lustre_records_is_compared_on_so_many_osts(capsys: Capture, tmp_path: Path) -> None:
    log = job(tmp_path / "log.darshan", [GIB] * 9, [], ends=[11.0] * 9)
    of = answer(capsys, log, "--osts", 4, "--stripe-count", 2)
    assert (of["actual"], of["osts"], of["stripe_count"]) == (None, 4, "2")
    assert placed(of, "tarazu")["time_s"] is None
    assert placed(of, "tarazu")["ost_cost"]["median"] == pytest.approx(of["compared"]["ost_cost_bound"])
    assert answer(capsys, log, status=1)["compared"] is None


def test_a_view_brings_the_other_osts_and_one_that_is_gone_gets_nothing(
    capsys: Capture, tmp_path: Path
) -> None:
    osts = tuple(Ost(i, "oss0", TIB, TIB, TIB) for i in range(1, 6))
    view = tmp_path / "view.json"
    view.write_bytes(msgspec.json.encode(SystemView("scratch", 0.0, osts)))
    log = job(tmp_path / "log.darshan", [GIB] * 8, [[n % 4] for n in range(8)], ends=[11.0] * 8)
    of = answer(capsys, log, "--view", view)
    assert of["osts"] == 6
    assert any("no longer has: 0; they get no files" in note for note in of["notes"])
    assert any("the speed of 2 OSTs is not known" in note for note in of["notes"])
    assert of["rows"][0]["bytes"]["tarazu"] == 0 < of["rows"][0]["bytes"]["as logged"]
    assert all(row["bytes"]["tarazu"] for row in of["rows"][1:])


@pytest.mark.parametrize(("words", "expected"), [
    (["--view", "{dir}/none.json"], "expected a readable file"),
    (["--view", "{log}"], "expected a SystemView in JSON"),
    (["--picture", "{dir}/p.jpg"], "a picture's name that ends in .svg"),
    (["--picture", "{dir}/no/p.svg"], "expected a file that can be written"),
    (["--osts", "1"], "expected --osts 2 or more: it names OST 1, found 1"),
    (["--stripe-count", "2"], "--stripe-count: expected --osts N or --view FILE beside it"),
    (["--osts", "4", "--stripe-count", "2"], "--stripe-count: expected a log without Lustre records"),
    (["--osts", "4", "--stripe-size", "2M"], "--stripe-size: expected a log without Lustre records"),
    (["--osts", "4", "--stripe-count", "5"], "--stripe-count: expected at most 4, the number of OSTs"),
])  # fmt: skip
def test_bad_input_is_one_line(words: list[str], expected: str, capsys: Capture, tmp_path: Path) -> None:
    log = job(tmp_path / "log.darshan", [GIB] * 2, [[0], [1]], ends=[11.0] * 2)
    assert main(["whatif", str(log), *(w.format(dir=tmp_path, log=log) for w in words)]) == 2
    said = capsys.readouterr().err.strip()
    assert expected in said
    assert "\n" not in said


def test_several_logs_are_a_line_each_and_a_total(capsys: Capture, tmp_path: Path) -> None:
    logs = [
        job(tmp_path / f"{n}.darshan", [GIB] * 4, [[0], [1], [2], [0]], ends=[12.0, 12.0, 12.0, 12.0])
        for n in range(2)
    ]
    lines = whatif(capsys, *logs, job(tmp_path / "2.darshan", [GIB] * 2, [], ends=[11.0] * 2)).splitlines()
    assert [line.split(":")[0] for line in lines[:3]] == ["0.darshan", "1.darshan", "2.darshan"]
    assert "the log has no Lustre records" in lines[2]
    assert lines[4].startswith("log ") and len(lines) == 8
    assert lines[7].startswith("total of 2")


def test_of_several_logs_each_says_why(capsys: Capture, tmp_path: Path) -> None:
    """It ended at `at best`, without the reason, and other file systems' logs had their whole path."""
    good = job(
        tmp_path / "a.darshan", [GIB] * 9, [[n % 8] for n in range(8)] + [[0]], ends=[12.0] * 8 + [60.0]
    )
    first, second, *_ = whatif(capsys, good, DATA / "traces" / "ckpt_fpp_n8_s8.darshan").splitlines()
    assert first.startswith("a.darshan: app: writing would have taken ") and "because OST 0 " in first
    assert second.startswith("ckpt_fpp_n8_s8.darshan: wrote nothing to Lustre")


def test_the_option_that_was_given_is_not_asked_for(capsys: Capture, tmp_path: Path) -> None:
    log = DATA / "traces" / "ckpt_fpp_n8_s8.darshan"
    said = whatif(capsys, log, "--osts", 1, status=1).splitlines()[0]
    assert said.startswith("ckpt: cannot be compared, because only one OST is known")
    beside = job(
        tmp_path / "beside.darshan", [GIB], [], ends=[11.0], directory="/home",
        mounts=(("/lustre", "lustre"), ("/home", "nfs")),
    )  # fmt: skip
    for words in ([], ["--osts", 8]):
        assert "--osts" not in whatif(capsys, beside, *words, status=1), (
            "it would stay as it is: no Lustre's file"
        )


def test_all_that_got_most_are_counted_not_the_first_named(capsys: Capture, tmp_path: Path) -> None:
    log = job(
        tmp_path / "log.darshan", [GIB] * 8, [[n % 4] for n in range(8)], starts=[10.0] * 4 + [30.0] * 4,
        ends=[30.1] * 4 + [50.0] * 4,
    )  # fmt: skip
    first = whatif(capsys, log, "--osts", 16).splitlines()[0]
    assert first.endswith("(50% less), because 4 of 16 OSTs got 4 times their share of the bytes.")


def test_a_bad_log_among_many_is_named_and_the_rest_is_compared(capsys: Capture, tmp_path: Path) -> None:
    good = job(tmp_path / "good.darshan", [GIB] * 4, [[0], [1], [2], [0]], ends=[12.0] * 4)
    bad = tmp_path / "bad.darshan"
    bad.write_bytes(good.read_bytes()[:-9])
    size = bad.stat().st_size
    assert main(["whatif", str(bad), str(good)]) == 2
    out, err = capsys.readouterr()
    assert "bad.darshan: cannot be compared: expected a Darshan log that is whole" in out
    assert "total of 1" in out
    assert err.count("\n") == 1 and "bad.darshan: expected a Darshan log that is whole" in err
    assert f"found 'one that is cut off: {size} bytes of at least {size + 9}'" in err
    assert main(["whatif", str(bad), str(good), "--json"]) == 2
    first, second = json.loads(capsys.readouterr().out)
    assert "whole" in first["error"] and first["file_systems"] == []
    assert second["error"] is None and second["answer"][0].startswith("app: ")


def test_a_log_of_another_file_system_is_compared_as_if_on_lustre(capsys: Capture) -> None:
    """As the guide says of logs without Lustre records."""
    log = DATA / "traces" / "ckpt_fpp_n8_s8.darshan"
    assert "wrote nothing to Lustre (312.3 MiB to ext4); --osts N" in whatif(capsys, log, status=1)
    out = whatif(capsys, log, "--osts", 16, "--stripe-count", 2)
    assert re.match(
        r"ckpt: on 16 OSTs the fullest would get 1\.\d\d times its share of the bytes from tarazu, ", out
    )
    assert "its files were on ext4: compared as if they were on Lustre" in out


@pytest.mark.parametrize(("name", "sentence"), [
    ("traces/ser_cp", "wrote nothing, as far as its log counts."),
    ("traces/ser_numpy_tofile", "wrote nothing to Lustre (14.5 MiB to ext4)"),
    ("traces/ior_posix_fpp_n8_i6_m_partial", "wrote nothing to Lustre (32.0 MiB to ext4)"),
    ("phases/ior_posix_fpp_n8_t32k", "wrote nothing to Lustre (32.0 MiB to ext4)"),
])  # fmt: skip
def test_an_odd_log_gets_one_sentence(name: str, sentence: str, capsys: Capture) -> None:
    first, *rest = whatif(capsys, DATA / f"{name}.darshan", status=1).splitlines()
    assert sentence in first
    assert all(line.startswith("note: ") for line in rest)


def test_even_bytes_on_even_osts_gain_nothing(capsys: Capture, tmp_path: Path) -> None:
    log = job(tmp_path / "log.darshan", [GIB] * 8, [[n % 4] for n in range(8)], ends=[90.0] * 8)
    first = whatif(capsys, log).splitlines()[0]
    assert first == "app: would have gained nothing, because its bytes already lay evenly on its OSTs."


def test_a_job_that_hardly_wrote_gains_nothing(capsys: Capture, tmp_path: Path) -> None:
    ends = [10.05 + 0.45 * (n % 8 == 3) for n in range(16)]
    log = job(tmp_path / "log.darshan", [GIB] * 16, [[n % 8] for n in range(16)], ends=ends)
    first = whatif(capsys, log).splitlines()[0]
    assert first == "app: would have gained nothing, because it was writing for only 0.5 s of its 100 s."


def test_bytes_through_stdio_have_no_times_but_an_answer(capsys: Capture, tmp_path: Path) -> None:
    stdio = writer.table("STDIO", [1, 2, 3], [0, 1, 2], OPENS=1, BYTES_WRITTEN=GIB, MAX_BYTE_WRITTEN=GIB - 1)
    log = job(
        tmp_path / "log.darshan", [0] * 3, [[0], [0], [1]], ends=[11.0] * 3, changes={"MAX_BYTE_WRITTEN": 0},
        extra={"STDIO": stdio, "LUSTRE": writer.plain(1, [0]) + writer.plain(2, [0]) + writer.plain(3, [1])},
    )  # fmt: skip
    first, second, *_ = whatif(capsys, log).splitlines()
    assert first.startswith(
        "app: how much time it would have gained cannot be said, because 100% of the bytes"
    )
    assert second.startswith("On 2 OSTs the fullest would get 1.33 times its share of the bytes")


@pytest.mark.long
def test_many_ranks_take_seconds(capsys: Capture, tmp_path: Path) -> None:
    """The short form: 65,536 ranks on 2,000 OSTs are tests/benchmarks/sim/whatif_ranks.py's."""
    ranks, osts = 2_048, 100
    rng = np.random.default_rng(1)
    sizes = (rng.uniform(0.5, 1.5, ranks) * 64 * MIB).astype(np.int64)
    where = rng.integers(0, osts, ranks)
    log = job(
        tmp_path / "log.darshan", sizes, [[int(o)] for o in where], ends=11.0 + rng.uniform(0, 2, ranks)
    )
    of = answer(capsys, log)
    assert of["ranks"] == of["files"] == ranks
    held = np.bincount(where, sizes, osts)
    assert of["actual"]["ost_cost"]["median"] == pytest.approx(held.max() / held.mean())
    assert (
        of["compared"]["time_bound_s"] * (1 - 1e-9)
        <= time_s(of, "tarazu")
        <= of["actual"]["time_s"]["median"]
    )


def test_bytes_that_no_job_can_have_written_are_refused_in_a_line(tmp_path: Path, capsys: Capture) -> None:
    path = job(tmp_path / "x.darshan", [2**62] * 4, [[0], [1], [2], [3]], ends=[20.0] * 4)
    assert main(["whatif", str(path)]) != 0
    assert "expected less than 8 PiB in one log" in capsys.readouterr().err


def test_writes_that_end_before_they_begin_give_no_times(tmp_path: Path, capsys: Capture) -> None:
    path = job(tmp_path / "x.darshan", [MIB] * 4, [[0], [1], [2], [3]], ends=[5.0] * 4)
    assert main(["whatif", str(path)]) == 0
    assert "a write that ends before it begins" in capsys.readouterr().out


def test_a_directory_is_called_one(tmp_path: Path, capsys: Capture) -> None:
    assert main(["whatif", str(tmp_path)]) == 2
    assert (
        "expected a folder with outputs of IOR or IO500 (a Darshan log is a file)" in capsys.readouterr().err
    )
