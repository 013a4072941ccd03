"""Streams of requests that the classifier learns from, and how its answers are counted."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from tarazu.parts.council.study import detected, streams, train
from tarazu.parts.council.study.confusion import Confusion


def test_the_same_seed_makes_the_same_streams() -> None:
    one, again, other = (list(streams.streams(12, streams.TRAIN, seed)) for seed in (4, 4, 5))
    assert one == again and one != other
    assert one[:5] == list(islice(streams.streams(50, streams.TRAIN, 4), 5))


def test_what_is_held_out_was_never_seen() -> None:
    for name in streams.Domain._fields:
        assert not set(getattr(streams.TRAIN, name)) & set(getattr(streams.HELD_OUT, name)), name


def test_every_kind_is_there_and_each_is_what_it_says() -> None:
    made = list(streams.streams(100, streams.TRAIN, seed=6))
    assert {s.kind for s in made} == set(streams.KINDS) and {s.view for s in made} == {"node", "server"}
    for stream in made:
        assert stream.spatiality == streams.KINDS[stream.kind][0]
        assert len(stream.requests) >= streams.MIN_REQUESTS
        assert all(offset >= 0 and size > 0 for offset, size, *_ in stream.requests)
        if stream.kind in ("own part", "own file", "in turn") and stream.view == "node" and not stream.mixed:
            # Nobody accesses what was accessed before.
            assert max(Counter((offset, file) for offset, _, file, _ in stream.requests).values()) == 1


def test_striping_leaves_each_byte_on_one_server() -> None:
    requests = [(offset, 100_000, 1, 5) for offset in range(0, 2_000_000, 100_000)]
    pieces = [streams.on_server(requests, server, 3, 65536) for server in range(3)]
    assert sum(size for seen in pieces for _, size, *_ in seen) == 2_000_000
    for seen in pieces:
        # Contiguous in the file is contiguous in each object.
        assert [offset for offset, *_ in seen][1:] == [offset + size for offset, size, *_ in seen][:-1]


def test_a_confusion_matrix() -> None:
    seen = Confusion.of([("a", "a"), ("a", "b"), ("b", "b"), ("b", "b")])
    assert (seen.total, seen.accuracy, seen.recall("a"), seen.recall("b")) == (4, 0.75, 0.5, 1.0)
    assert [line.split() for line in str(seen).splitlines()][1:] == [["a", "1", "1"], ["b", "0", "2"]]
    assert Confusion.of([]).accuracy == 0.0


def test_training_says_how_to_call_it(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        train.main(["--help"])
    assert "example:" in capsys.readouterr().out


def test_what_nothing_can_be_learned_from_is_refused_in_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit):
        train.main(["--streams", "0"])
    assert "--streams: expected at least" in capsys.readouterr().err
    monkeypatch.setattr(train, "find_spec", lambda name: None)
    with pytest.raises(SystemExit):
        train.main([])
    assert "pip install scikit-learn" in capsys.readouterr().err


def test_a_folder_that_cannot_be_is_refused_in_a_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    assert detected.main([str(tmp_path / "file")]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "expected a folder" in line
