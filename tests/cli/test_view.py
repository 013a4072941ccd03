"""Whom the commands ask: on a node without clientd mdsd itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tarazu import config
from tarazu.cli.view import overview_of, status_of
from tarazu.config import Settings
from tarazu.errors import Unavailable
from tests.daemons.conftest import Site, site

__all__ = ["site"]


def settings_of(site: Site) -> Settings:
    return config.override(config.load(site.config), "clientd", socket=str(site.directory / "nobody"))


def test_without_clientd_mdsd_is_asked_directly(site: Site) -> None:
    site.configure(exclude=["lustre:1"])
    site.mdsd()
    site.ossd()
    site.wait_status(lambda status: moved(status) is not None)
    status = status_of(settings_of(site))
    assert "nobody: No such file" in status["clientd"]["unavailable"]
    found = overview_of(settings_of(site))
    assert [server.name for server in found.servers] == ["oss1"]
    assert [target.verdict for target in found.targets] == ["ok", "excluded", "ok", "ok", "ok"]
    assert [target.no_create for target in found.targets] == [False] * 5
    assert found.targets[0].moving_bytes_per_s == 0.0 and found.imbalances[0].load is None


def moved(status: dict[str, object]) -> object:
    """What its first OST wrote in its server's last interval; None until there were two reports."""
    known = status["file_systems"].get("lustre")
    return known and known["osts"][0]["writing_bytes_per_s"]


def test_where_neither_answers_both_are_named(tmp_path: Path) -> None:
    settings = config.override(Settings(), "clientd", socket=str(tmp_path / "nobody"))
    settings = config.override(settings, "keys", directory=str(tmp_path / "keys"))
    settings = config.override(settings, "mdsd", requests="tcp://192.0.2.1:5771")
    with pytest.raises(
        Unavailable, match=r"nobody: No such file.*; and mdsd: tcp://192.*expected CURVE keys"
    ):
        status_of(settings)
