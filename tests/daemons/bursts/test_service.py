"""tarazu-burstd on real sockets with keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tarazu import config
from tarazu.daemons.bursts.service import BurstService
from tarazu.daemons.process import Wakeup
from tarazu.errors import Unavailable
from tarazu.wire import keys
from tests.daemons.conftest import free_port


class Site:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.keys = directory / "keys"
        for role in keys.ROLES:
            keys.create(self.keys, role)
        self.address = f"tcp://127.0.0.1:{free_port()}"
        self.services: list[BurstService] = []

    def settings(self, **own: object) -> config.Settings:
        path = self.directory / "tarazu.toml"
        own = {"statistics": self.address, "directory": str(self.directory / "kept"), **own}
        path.write_text(
            f"[keys]\ndirectory = '{self.keys}'\n[run]\nstop_file = ''\n[bursts]\n"
            + "".join(f"{key} = {value!r}\n" for key, value in own.items())
        )
        return config.load(str(path))

    def service(self, **own: object) -> BurstService:
        self.services.append(BurstService(self.settings(**own), Wakeup()))
        return self.services[-1]

    def close(self) -> None:
        for service in self.services:
            service.close()
            service.wakeup.close()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    site = Site(tmp_path)
    yield site
    site.close()


def test_a_second_one_ends_and_the_first_tells_how_it_is(site: Site) -> None:
    service = site.service()
    with pytest.raises(Unavailable):
        BurstService(site.settings(), service.wakeup)
    service.turn(service.started)
    assert json.loads((site.directory / "kept/status.json").read_text())["daemon"] == "burstd"
