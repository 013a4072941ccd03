"""The short form of `make hostile`, and that its mutations are what they are meant to be."""

from __future__ import annotations

import importlib

import pytest

from tarazu.errors import WireError
from tarazu.wire import local, messages
from tests.hostile import __main__ as hostile
from tests.hostile import mutations, site, valid
from tests.hostile.of_part import of_parts


def refused(data: bytes, decode: object) -> bool:
    try:
        decode(data)  # type: ignore[operator]
    except WireError:
        return True
    return False


@pytest.mark.parametrize(
    ("found", "decode"),
    [
        (valid.of_mdsd(), messages.decode),
        (valid.of_clientd(), local.decode),
        *((daemon.valid(), daemon.decode) for daemon in of_parts().values()),
    ],
    ids=["mdsd", "clientd", *of_parts()],
)
def test_whatever_comes_is_a_message_or_a_wire_error(found: list[bytes], decode: object) -> None:
    """And what is sent is worth sending: some of it gets past the decoder, and must be refused later."""
    assert not any(refused(data, decode) for data in found)
    pool = mutations.pool(found, 1_500, seed=7)
    share = sum(refused(data, decode) for data in pool) / len(pool)
    assert 0.5 < share < 0.97
    assert pool == mutations.pool(found, 1_500, seed=7)


def test_text_that_is_no_utf8_is_refused_like_anything_else() -> None:
    """It ended mdsd: the decoder raises another kind of error for it."""
    data = messages.encode(messages.StatusRequest("m")).replace(b"status?", b"stat\xffs?")
    with pytest.raises(WireError, match=r"(?i)utf-8"):
        messages.decode(data)
    with pytest.raises(WireError, match=r"(?i)utf-8"):
        local.decode(local.encode(local.StatusQuery()).replace(b"status?", b"stat\xffs?"))


@pytest.mark.long
@pytest.mark.soak
def test_hostile_peers_neither_end_a_daemon_nor_hold_up_honest_ones(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """How long honest ones wait is measured by `make hostile`, on an idle machine."""
    for module, name in ((hostile, "DEADLINE_S"), (hostile, "READING_S"), (site, "DEADLINE_S")):
        monkeypatch.setattr(module, name, 300.0)
    status = hostile.main(["--messages", "1000", *(f"--only={name}" for name in hostile.TARGETS)])
    shown = capsys.readouterr()
    assert status == 0, shown.out + shown.err
    assert all(f"{name} " in shown.out for name in hostile.TARGETS)


@pytest.mark.parametrize("module", hostile.FILES.values())
def test_what_damages_files_is_there(module: str) -> None:
    """In short elsewhere, where each case is a test of its own."""
    assert callable(getattr(importlib.import_module(f"tests.hostile.{module}"), f"mutate_{module}"))
