"""A server behind two routers, with rules of tarazu's and of the site's."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from tarazu.parts.changes.agent import Agent
from tarazu.parts.changes.model.change import Change
from tarazu.parts.routers import agent as routers
from tarazu.sim.testbed import lnetctl as stand_in
from tarazu.sim.testbed.daemons import lnetctl_command, stand_ins
from tarazu.sim.testbed.routers import rules_of
from tarazu.sim.testbed.statfiles import lnet_routes
from tests.parts.changes.case import Case, Here

GATEWAY = "10.77.0.11@tcp"
RULES = [f"--dst 10.77.64.{n}@tcp1 --rte {GATEWAY}" for n in range(1, 4)]
ROUTES = "sys/kernel/debug/lnet/routes"


class RoutersCase(Case):
    name = "routers"

    def __init__(self, root: Path, *, in_process: bool = True) -> None:
        super().__init__(root, in_process=in_process)
        if not (root / ROUTES).exists():
            (root / ROUTES).parent.mkdir(parents=True)
            (root / ROUTES).write_text(lnet_routes(False, [("tcp1", GATEWAY, True)]))
            self._site()

    def environment(self) -> dict[str, str]:
        return {**stand_ins(self.root, lnetctl=lnetctl_command(self.root)), "TARAZU_ROOT": str(self.root)}

    def made(self, stopped: Callable[[], str]) -> Agent:
        agent = routers.agent_of(self.settings, stopped=stopped)
        if self.in_process:
            for lever in agent.engine.levers.values():
                lever.lnetctl.program = Here("lnetctl", stand_in.main, self.root)  # type: ignore[attr-defined]
        return agent

    def wishes(self) -> list[list[Change]]:
        def wish(rule: str) -> Change:
            return Change(lever="routers", target=rule, wanted={rule: "set"}, why="a test", asked_by="test")

        return [[wish(RULES[0])], [wish(RULES[1]), wish(RULES[2])], [wish(RULES[2]), wish(RULES[0])]]

    def now(self) -> dict[str, str]:
        shown = [f"--dst {rule.dst} --rte {rule.rte}" for rule in rules_of(self.root) if rule.rte]
        others = {f"src {rule.src}": rule.priority for rule in rules_of(self.root) if not rule.rte}
        return dict.fromkeys(RULES, "") | dict.fromkeys(shown, "set") | others

    def administrator(self, number: int) -> None:
        """He deletes one of them, or all about routers."""
        for rule in [RULES[1 + number % 2]] if number % 3 else RULES:
            shown = [f"--dst {each.dst} --rte {each.rte}" for each in rules_of(self.root)]
            if rule in shown:
                self._lnetctl("del", "--idx", str(shown.index(rule)))

    def boot(self) -> None:
        shutil.rmtree(self.root / "lnet", ignore_errors=True)
        self._site()

    def _site(self) -> None:
        """As the node's own scripts set it."""
        self._lnetctl("add", "--src", "tcp", "--priority", "0")

    def _lnetctl(self, *words: str) -> None:
        answer = Here("lnetctl", stand_in.main, self.root).call(("udsp", *words))
        assert answer.status == 0, answer


CASES = (RoutersCase,)
