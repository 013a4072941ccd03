"""Real daemons under attack, and an honest client of theirs that measures how long it waits."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

from tarazu.errors import TarazuError, Unavailable
from tarazu.units import KIB
from tarazu.wire import local
from tarazu.wire.channel import connect
from tarazu.wire.messages import StatusReply, StatusRequest
from tests.daemons.conftest import Site, allocation, ask
from tests.hostile.of_part import PAUSE_S, Waits, of_parts

DEADLINE_S = 3.0
"""What clientd gives mdsd for an answer (`questions.ANSWER_S`); of an allocation it is ten times as long."""
PATIENCE_S = 60.0


class Attacked(Site):
    """mdsd, an ossd, a clientd, and daemons of parts."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.socket = directory / "clientd.sock"
        self.daemons: dict[str, Popen[str]] = {"mdsd": self.mdsd(), "ossd": self.ossd()}
        self.daemons["clientd"] = self.start(
            "clientd", "--socket", str(self.socket), "--database", str(directory / "interaction.db")
        )
        for name, daemon in of_parts().items():
            self.daemons[name] = daemon.start(self)
        self.wait_status(lambda status: status["osses"])
        # The first allocation loads what all need: that is no growth, and no wait that an attack caused.
        mdsd = self.client()
        assert ask(mdsd, allocation("first", uid=77, expires_s=5.0)).status == "allocated"
        mdsd.close()
        deadline = time.monotonic() + PATIENCE_S
        while not self._forecasts():
            assert time.monotonic() < deadline, self.log("clientd")
            time.sleep(0.05)

    def _forecasts(self) -> bool:
        """clientd has loaded what its forecasts need, which no attack is to blame for."""
        try:
            with connect(str(self.socket), PATIENCE_S) as channel:
                answer = channel.ask(local.StatusQuery())
        except Unavailable:
            return False
        return isinstance(answer, local.StatusAnswer) and answer.ready

    def rss_bytes(self, daemon: str) -> int:
        """Of the process and its children (forecasts). 0 for one that is gone."""
        return sum(_rss_bytes(pid) for pid in _family(self.daemons[daemon].pid))

    def dead(self) -> list[str]:
        return [name for name, process in self.daemons.items() if process.poll() is not None]


def _family(pid: int) -> list[int]:
    children: list[str] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):  # of whichever thread
        with contextlib.suppress(OSError):
            children += task.read_text().split()
    return [pid, *(each for child in children for each in _family(int(child)))]


def _rss_bytes(pid: int) -> int:
    """Its share of what is in memory: processes of forecasts have most of it from the one that forked them."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * KIB for line in lines if line.startswith("Pss:"))


@contextmanager
def honest(site: Attacked) -> Iterator[dict[str, Waits]]:
    """Peers that ask mdsd (status, and allocations of a user of their own) and clientd (status) meanwhile."""
    parts = of_parts()
    waits = {name: Waits() for name in ("mdsd", "allocation", "clientd", *parts)}
    stopping = threading.Event()
    threads = [
        threading.Thread(target=_ask_mdsd, args=(site, waits["mdsd"], waits["allocation"], stopping)),
        threading.Thread(target=_ask_clientd, args=(site, waits["clientd"], stopping)),
        *(
            threading.Thread(target=part.honest, args=(site, waits[name], stopping, DEADLINE_S))
            for name, part in parts.items()
        ),
    ]
    for thread in threads:
        thread.start()
    try:
        yield waits
    finally:
        stopping.set()
        for thread in threads:
            thread.join()


def _ask_mdsd(site: Attacked, status: Waits, allocations: Waits, stopping: threading.Event) -> None:
    mdsd, number = site.client(), 0
    mdsd.resend_s = 1.0
    while not stopping.is_set():
        number += 1
        begin = time.monotonic()
        try:
            reply = mdsd.request(StatusRequest(f"honest-status-{number}"), 10 * DEADLINE_S)
            status.s.append(time.monotonic() - begin)
            assert isinstance(reply, StatusReply)
            if number % 10 == 0:
                begin = time.monotonic()
                request = allocation(f"honest-{number}", uid=77, expires_s=5.0, deadline_s=10 * DEADLINE_S)
                answer = mdsd.request(request, 10 * DEADLINE_S)
                allocations.s.append(time.monotonic() - begin)
                if answer.status not in ("allocated", "later"):
                    allocations.failed.append(f"{answer.status}: {answer.reason}")
        except TarazuError as error:
            status.failed.append(str(error))
        time.sleep(PAUSE_S)
    mdsd.close()


def _ask_clientd(site: Attacked, waits: Waits, stopping: threading.Event) -> None:
    while not stopping.is_set():
        begin = time.monotonic()
        try:
            with connect(str(site.socket), 10 * DEADLINE_S) as channel:
                answer = channel.ask(local.StatusQuery())
            waits.s.append(time.monotonic() - begin)
            assert isinstance(answer, local.StatusAnswer)
        except TarazuError as error:
            waits.failed.append(str(error))
        time.sleep(PAUSE_S)
